"""Fit all sites of the Jura in five units: likelihoods, held-out errors, choices, in mg/kg.

Run as ``python benchmarks/bench_units.py`` (``--quick``: one law on a ninth of the sites). Each row
has the figure in mg/kg, and the largest difference in 1e-9, 1e-6, 1e3 and 1e9 times that.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np
import xarray as xr

import xcopula
from xcopula import by, regress

FACTORS = (1.0, 1e-9, 1e-6, 1e3, 1e9)
OPTIONS = {"kernels": "matern32"}


def latent(model: xcopula.CopulaModel, target: xr.Dataset, **options: object) -> np.ndarray:
    """Return latent means and deviations on a target, one after the other."""
    found = model.posterior(target, **options).latent.compute().transpose("y", "x", ...)
    return np.concatenate([found["mean"].values.ravel(), found["std"].values.ravel()])


def largest(one: np.ndarray, two: np.ndarray) -> float:
    """Return the largest difference."""
    return float(np.nanmax(np.abs(one - two)))


def units(data: xr.Dataset, target: xr.Dataset, laws: list[str]) -> list[tuple[str, str]]:
    """Fit in mg/kg and in four other units, with each of some laws."""
    rows = []
    for law in laws:
        options = OPTIONS if law != "select" else {"kernels": "select"}
        fits = [
            xcopula.fit(
                data.assign({n: f * data[n] for n in ("Cd", "Ni")}),
                "Cd",
                ["Ni"],
                marginals=law,
                **options,
            )
            for f in FACTORS
        ]
        plain, *others = fits
        size = plain.observations.sample.size
        moved = max(largest(latent(m, target), latent(plain, target)) for m in others)
        nats = max(
            abs(m.log_likelihood + size * np.log(f) - plain.log_likelihood)
            for m, f in zip(others, FACTORS[1:], strict=True)
        )
        same = all(
            [a.name for a in m.marginals] == [b.name for b in plain.marginals] for m in others
        )
        text = f"{moved:.1e}, {nats:.1e} nats" + ("" if same else ", OTHER LAWS")
        rows.append((f"values x 1e-9, 1e-6, 1e3, 1e9, {law}", text))
    return rows


def scaled(data: xr.Dataset, factor: float, shift: float = 0.0) -> xr.Dataset:
    """Return cadmium and nickel in other units."""
    return data.assign({name: factor * (data[name] + shift) for name in ("Cd", "Ni")})


def judge(
    data: xr.Dataset, truth: xr.Dataset, factor: float, shift: float = 0.0, **options: object
) -> tuple[float, float, str]:
    """Fit in some units: log-likelihood and held-out error in mg/kg, and what was chosen."""
    frame = scaled(data, factor, shift)
    model = xcopula.fit(frame, "Cd", ["Ni"], **OPTIONS | options)
    median = model.predict(truth.drop_vars(["Cd", "Ni"]), 0.5)["Cd"] / factor - shift
    error = float(abs(median.squeeze() - truth["Cd"]).mean())
    nats = model.log_likelihood + model.observations.sample.size * np.log(factor)
    chosen = " ".join(
        f"{law.name}/{kernel.name}"
        for law, kernel in zip(model.marginals, model.process.covariance.kernels, strict=True)
    )
    return nats, error, chosen


def show(name: str, found: list[tuple[float, float, str]]) -> None:
    """Print a row: figures in mg/kg, the largest differences in other units, and choices."""
    numbers = np.array([row[:2] for row in found])
    moved = np.abs(numbers - numbers[0]).max(axis=0)
    same = {row[2] for row in found} == {found[0][2]}
    print(
        f"{name:36} {numbers[0, 0]:10.3f} nats ({moved[0]:.1e})  "
        f"MAE {numbers[0, 1]:.4f} ({moved[1]:.1e})  {found[0][2]}{'' if same else '  OTHERS'}",
        flush=True,
    )


def secondary_alone(data: xr.Dataset, truth: xr.Dataset) -> list[tuple[float, float, str]]:
    """Rescale nickel, and nothing else."""
    found = []
    for factor in FACTORS:
        frame = data.assign(Ni=factor * data["Ni"])
        model = xcopula.fit(frame, "Cd", ["Ni"], marginals="normal", **OPTIONS)
        median = model.predict(truth.drop_vars(["Cd", "Ni"]), 0.5)["Cd"].squeeze()
        size = int(data["Ni"].notnull().sum())
        nats = model.log_likelihood + size * np.log(factor)
        found.append((nats, float(abs(median - truth["Cd"]).mean()), "normal"))
    return found


def comparison(data: xr.Dataset) -> list[tuple[float, float, str]]:
    """Compare all laws for cadmium alone: the best AIC and CRPS, and the ranking by AIC."""
    found = []
    size = int(data["Cd"].notnull().sum())
    for factor in FACTORS:
        table = xcopula.compare(scaled(data, factor), "Cd", kernels=["matern32"]).squeeze()
        order = table["marginal"].values[np.argsort(table["aic"].values)]
        best = -0.5 * float(table["aic"].min()) + size * np.log(factor)
        found.append((best, float(table["loo_crps"].min()) / factor, " > ".join(order)))
    return found


def main(quick: bool) -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    data = xcopula.datasets.jura(hide="Cd")
    truth = xcopula.datasets.jura().query(site="split == 'validation'")
    if quick:
        data = data.isel(site=slice(0, None, 9))
    # A field and a group that are no metals: the place, and whether the rock is Argovian.
    data, truth = (
        d.assign_coords(
            east=("site", d["x"].values), argovian=("site", d["rock"].values == "Argovian")
        )
        for d in (data, truth)
    )
    sloped = {"Cd": regress("gev", on="east"), "Ni": "gamma"}
    grouped = {"Cd": by("argovian", "lognormal"), "Ni": "gamma"}
    in_units: dict[str, Callable[[float], tuple[float, float, str]]] = {
        **{
            law: lambda f, law=law: judge(data, truth, f, marginals=law)
            for law in (["normal"] if quick else ["normal", "t", "gev"])
        },
    }
    if not quick:
        in_units |= {
            f"{law}, origin moved by 273.15": lambda f, law=law: judge(
                data, truth, f, 0.0 if f == 1.0 else 273.15, marginals=law
            )
            for law in ("normal", "t", "gev")
        }
        in_units |= {
            "regress gev on a coordinate": lambda f: judge(data, truth, f, marginals=sloped),
            "by rock, lognormal": lambda f: judge(data, truth, f, marginals=grouped),
            "selected by AIC": lambda f: judge(
                data, truth, f, marginals="select", kernels="select"
            ),
        }
    for name, run in in_units.items():
        show(name, [run(factor) for factor in FACTORS])
    show("a secondary alone rescaled", secondary_alone(data, truth))
    if not quick:
        show("compare: best AIC / -2, CRPS, ranking", comparison(data))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    main(parser.parse_args().quick)
