"""Small models at fixed parameters, and what is computed from them.

``python tests/reference_models.py`` writes ``tests/data/reference_models.json`` from the code as it
stands. `test_reference_models.py` computes the same numbers again: a change of the code that is
meant to change none of them keeps all to 1e-10.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import xcopula
from xcopula import by, regress
from xcopula.methods import Transductive
from xcopula.solvers import Neighbours

FILE = Path(__file__).parent / "data" / "reference_models.json"
KM = {"units": "km"}


def plane() -> xr.Dataset:
    """Three correlated variables at 36 sites of a plane, with gaps, a field and a group."""
    rng = np.random.default_rng(7)
    x, y = rng.uniform(0.0, 10.0, size=(2, 36))
    apart = np.hypot(x[:, None] - x, y[:, None] - y)
    root = np.linalg.cholesky(np.exp(-apart / 4.0) + 1e-9 * np.eye(36))
    field = root @ rng.normal(size=36)
    values = {
        name: np.exp(0.5 * (field + s * rng.normal(size=36)))
        for name, s in {"a": 0.4, "b": 0.5, "c": 0.8}.items()
    }
    values["a"][24:] = np.nan
    values["c"][:6] = np.nan
    data = xr.Dataset({k: ("site", v) for k, v in values.items()})
    height, kind = ("site", rng.normal(size=36)), ("site", np.array(["clay", "sand"] * 18))
    coords = {"x": ("site", x, KM), "y": ("site", y, KM), "height": height, "kind": kind}
    return data.assign_coords(coords)


def globe() -> xr.Dataset:
    """One variable at 20 places of the globe in three months."""
    rng = np.random.default_rng(8)
    coords = {
        "lon": ("place", rng.uniform(-180.0, 180.0, 20), {"units": "degrees_east"}),
        "lat": ("place", rng.uniform(-80.0, 80.0, 20), {"units": "degrees_north"}),
        "time": np.array(["2001-01-15", "2001-02-15", "2001-03-15"], "datetime64[ns]"),
    }
    return xr.Dataset({"a": (("place", "time"), rng.gamma(2.0, size=(20, 3)))}, coords)


def limits() -> xr.Dataset:
    """The plane with a detection limit of the first variable."""
    data = plane()
    return data.assign(a=data["a"].clip(min=0.7))


def zeros() -> xr.Dataset:
    """The plane with zeros of the first variable."""
    data = plane()
    return data.assign(a=(data["a"] - 0.8).clip(min=0.0))


PAIR, THREE = ("a", "b"), ("a", "b", "c")
PLAIN = {"marginals": "lognormal", "kernels": "matern32", "anisotropy": False}
Case = tuple[Callable[[], xr.Dataset], tuple[str, ...], dict[str, Any]]
CASES: dict[str, Case] = {
    "default": (plane, THREE, {}),
    "single": (plane, ("a",), {}),
    "full": (plane, THREE, {"method": "full"}),
    "report weights": (plane, THREE, PLAIN | {"method": Transductive(weights="report")}),
    "no anchors": (plane, THREE, PLAIN | {"method": Transductive(anchors=None)}),
    "block": (plane, THREE, PLAIN | {"method": Transductive(anchors="block")}),
    **{m: (plane, PAIR, PLAIN | {"method": m}) for m in ("dtc", "fitc", "pitc", "bcm")},
    "cokriging": (plane, PAIR, {"method": "cokriging", "kernels": "matern32"}),
    "neighbours": (plane, PAIR, PLAIN | {"method": "full", "solver": Neighbours(6)}),
    "neighbours of pairs": (plane, THREE, PLAIN | {"solver": Neighbours(8)}),
    "icm": (plane, PAIR, PLAIN | {"method": "full", "coupling": "icm"}),
    "lmc": (plane, PAIR, PLAIN | {"method": "full", "coupling": "lmc", "structures": 2}),
    "independent noise": (plane, PAIR, PLAIN | {"noise": "independent"}),
    "mixed kernels": (plane, THREE, {"kernels": {"a": "se", "b": "matern12", "c": "matern52"}}),
    "nested": (plane, PAIR, {"kernels": ["matern32", "matern12"], "method": "full"}),
    **{
        f"{law} marginal": (plane, ("a",), {"marginals": law, "kernels": "matern52"})
        for law in ("normal", "exponential", "gev", "gamma", "t", "parzen")
    },
    "support": (plane, ("a",), {"marginals": "normal", "support": (0.0, 20.0)}),
    "trend": (plane, PAIR, {"marginals": {"a": regress(on="height")}}),
    "groups": (plane, ("b",), {"marginals": by("kind", "lognormal")}),
    "groups and trend": (plane, ("b",), {"marginals": regress(by("kind", "normal"), on="height")}),
    "limits": (limits, PAIR, PLAIN | {"censored": {"a": 0.7}}),
    "limits by neighbours": (
        limits,
        PAIR,
        PLAIN | {"censored": {"a": 0.7}, "method": "full", "solver": Neighbours(6)},
    ),
    "zeros": (zeros, PAIR, {}),
    "globe and time": (globe, ("a",), {}),
    "globe by neighbours": (globe, ("a",), {"solver": Neighbours(10)}),
}


def fitted(name: str) -> xcopula.CopulaModel:
    """Fit a case, with plug-in errors."""
    make, (primary, *secondaries), options = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return xcopula.fit(make(), primary, secondaries, uncertainty="plugin", **options)


def at(model: xcopula.CopulaModel, theta: list[float]) -> xcopula.CopulaModel:
    """Return the model at other parameters, with neighbours and blocks for these."""
    point = np.array(theta)
    return replace(model, theta=point, prepared=point)


def targets(name: str) -> xr.Dataset:
    """Return the sites of three observations, and five places beside sites."""
    data = CASES[name][0]()
    dim = "place" if "place" in data.dims else "site"
    some = data.isel({dim: slice(0, 8)})
    if "time" in data.dims:
        some = some.isel(time=1)
    beside = xr.DataArray([0.0] * 3 + [1.0] * 5, dims=dim)
    steps = {"lon": 1.0, "lat": -1.0, "x": 0.3, "y": -0.2}
    places = {
        k: (some[k] + step * beside).assign_attrs(some[k].attrs)
        for k, step in steps.items()
        if k in some.coords
    }
    return some[[]].assign_coords(places)


def numbers(name: str, model: xcopula.CopulaModel) -> dict[str, list[float]]:
    """Return what is computed from a model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value, gradient = model.objective(model.theta)
        posterior = model.posterior(targets(name))
        signal = model.posterior(targets(name), of="signal")
        out = {
            "objective": np.array([value]),
            "gradient": gradient,
            "quantiles": posterior.quantile([0.05, 0.5, 0.95]).values,
            "signal": signal.quantile([0.25, 0.75]).values,
            "exceedance": posterior.exceedance(1.0).values,
            "mean": posterior.mean().values,
            "loo": model.loo()["crps"].values,
        }
        if model.method.name not in ("dtc", "fitc", "pitc", "bcm", "cokriging"):
            out["draws"] = posterior.sample(2, seed=3).values
        largest = posterior.max(n=4, seed=1)
        out["largest"] = largest["quantiles"].values
    return {k: [float(v) for v in np.ravel(values)] for k, values in out.items()}


def main() -> None:
    """Write the numbers of all cases."""
    cases = {}
    for name in CASES:
        model = fitted(name)
        theta = [round(float(value), 3) for value in model.theta]
        cases[name] = {"theta": theta, "numbers": numbers(name, at(model, theta))}
        print(f"{name}: {sum(map(len, cases[name]['numbers'].values()))} numbers")
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(cases, indent=0), encoding="utf-8")


if __name__ == "__main__":
    main()
