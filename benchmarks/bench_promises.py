"""Measure what docs/promises.md promises: how far results move where they should not.

Run as ``python benchmarks/bench_promises.py`` (``--quick``: fewer sites). Differences are those
of latent means and standard deviations, which have no units; likelihoods are in nats.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np
import xarray as xr
from threadpoolctl import threadpool_limits

import xcopula

FACTORS = (1e-9, 1e-6, 1e3, 1e9)
OPTIONS = {"kernels": "matern32", "restarts": 1}


def latent(model: xcopula.CopulaModel, target: xr.Dataset, **options: object) -> np.ndarray:
    """Return latent means and deviations on a target, one after the other."""
    found = model.posterior(target, **options).latent.compute()
    return np.concatenate([found["mean"].values.ravel(), found["std"].values.ravel()])


def largest(one: np.ndarray, two: np.ndarray) -> float:
    """Return the largest difference."""
    return float(np.nanmax(np.abs(one - two)))


def units(data: xr.Dataset, target: xr.Dataset, laws: list[str]) -> list[tuple[str, str]]:
    """Fit in mg/kg and in four other units, with each of some laws."""
    rows = []
    for law in laws:
        options = OPTIONS if law != "auto" else {"kernels": "auto"}
        fits = [
            xcopula.fit(
                data.assign({n: f * data[n] for n in ("Cd", "Ni")}),
                "Cd",
                ["Ni"],
                marginals=law,
                **options,
            )
            for f in (1.0, *FACTORS)
        ]
        plain, *others = fits
        size = plain.observations.sample.size
        moved = max(largest(latent(m, target), latent(plain, target)) for m in others)
        nats = max(
            abs(m.log_likelihood + size * np.log(f) - plain.log_likelihood)
            for m, f in zip(others, FACTORS, strict=True)
        )
        same = all(
            [a.name for a in m.marginals] == [b.name for b in plain.marginals] for m in others
        )
        text = f"{moved:.1e}, {nats:.1e} nats" + ("" if same else ", OTHER LAWS")
        rows.append((f"units of values x {FACTORS}, {law}", text))
    return rows


def chunks(model: xcopula.CopulaModel, grid: xr.Dataset) -> float:
    """Compare a grid in memory with the same grid in several chunkings."""
    whole = latent(model, grid)
    cuts = [{"x": 7, "y": 11}, {"x": 1}, {"y": 1}, {"x": -1, "y": 5}]
    return max(largest(latent(model, grid, chunks=cut), whole) for cut in cuts)


def subset(model: xcopula.CopulaModel, grid: xr.Dataset) -> float:
    """Compare a part of a grid with the same cells of the whole."""
    part = {"x": slice(3, None, 2), "y": slice(None, None, 3)}
    whole = model.posterior(grid).latent.isel(part)
    alone = model.posterior(grid.isel(part)).latent
    return max(largest(whole[n].values, alone[n].values) for n in ("mean", "std"))


def blas(data: xr.Dataset, target: xr.Dataset) -> float:
    """Compare one thread of BLAS with two, in conditioning and prediction."""
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            model = xcopula.fit(
                data,
                "Cd",
                ["Ni"],
                method="full",
                marginals="lognormal",
                **OPTIONS | {"restarts": 0},
            )
            found.append(latent(model, target))
    return largest(*found)


def seeds(data: xr.Dataset, target: xr.Dataset) -> float:
    """Fit twice with one seed."""
    one, two = (
        xcopula.fit(data, "Cd", ["Ni"], marginals="lognormal", seed=3, **OPTIONS) for _ in range(2)
    )
    return max(largest(one.theta, two.theta), largest(latent(one, target), latent(two, target)))


def lazily(data: xr.Dataset, target: xr.Dataset) -> float:
    """Compare a fit at once with one that is recorded and run."""
    options = {"marginals": "lognormal", **OPTIONS}
    now = xcopula.fit(data, "Cd", ["Ni", "Zn"], **options)
    later = xcopula.fit(data, "Cd", ["Ni", "Zn"], compute=False, **options)
    found = later.posterior(target).latent.compute()
    flat = np.concatenate([found["mean"].values.ravel(), found["std"].values.ravel()])
    return largest(flat, latent(now, target))


def single_precision(data: xr.Dataset, target: xr.Dataset) -> float:
    """Store the coordinates of one variable in single precision."""
    far = data.assign_coords(x=data["x"] + 500.0, y=data["y"] + 4500.0)
    there = target.assign_coords(x=target["x"] + 500.0, y=target["y"] + 4500.0)
    rounded = far.assign_coords(x=far["x"].astype("f4"), y=far["y"].astype("f4"))
    options = {"marginals": "lognormal", **OPTIONS}
    plain = xcopula.fit(far, "Cd", ["Ni"], **options)
    mixed = xcopula.fit({"Cd": far["Cd"], "Ni": rounded["Ni"]}, "Cd", ["Ni"], **options)
    return largest(latent(mixed, there), latent(plain, there))


def main(quick: bool) -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    step = 9 if quick else 2
    data = xcopula.datasets.jura(hide="Cd").isel(site=slice(0, None, step))
    grid = xcopula.datasets.jura_grid()
    grid = grid.isel(x=slice(None, None, 8 if quick else 3), y=slice(None, None, 8 if quick else 3))
    grid = grid.drop_vars(list(grid.data_vars))
    model = xcopula.fit(data, "Cd", ["Ni", "Zn"], marginals="lognormal", **OPTIONS)
    checks: dict[str, Callable[[], float]] = {
        "any chunks of a grid": lambda: chunks(model, grid),
        "a part of a grid": lambda: subset(model, grid),
        "lazy fit and prediction": lambda: lazily(data, grid),
        "the same seed": lambda: seeds(data, grid),
        "one or two threads of BLAS, fit and prediction": lambda: blas(data, grid),
        "coordinates of one variable in single precision": lambda: single_precision(data, grid),
    }
    rows = [(name, f"{check():.1e}") for name, check in checks.items()]
    rows += units(data, grid, ["normal"] if quick else [*xcopula.marginals.MARGINALS, "auto"])
    width = max(len(name) for name, _ in rows)
    for name, figure in rows:
        print(f"{name:{width}}  {figure}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    main(parser.parse_args().quick)
