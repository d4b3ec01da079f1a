"""Measure what docs/promises.md promises: how far results move where they should not.

Run as ``python benchmarks/bench_promises.py`` (``--quick``: fewer sites; ``--only same``: a part of
the table). Differences are those of latent means and standard deviations, which have no
units; likelihoods are in nats. All sites of the Jura in four units: ``bench_units.py``.
"""

from __future__ import annotations

import argparse
import dataclasses
import logging
import multiprocessing
import os
import signal
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import xarray as xr
from bench_units import OPTIONS, largest, latent, units
from promised_numbers import crps, eigenvalue, gradient, inverse, noise_free, outliers
from threadpoolctl import threadpool_limits

import xcopula
from xcopula.labels.observations import observe


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
                **OPTIONS,
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
    found = found.transpose("y", "x", ...)
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


def dask_threads(data: xr.Dataset, grid: xr.Dataset) -> float:
    """Run a recorded fit and its prediction on one thread of dask, and on four."""
    options = {"marginals": "lognormal", "compute": False, **OPTIONS}
    lazy = xcopula.fit(data, "Cd", ["Ni", "Zn"], **options).posterior(grid, chunks={"x": 9}).latent
    found = [lazy.compute(scheduler="threads", num_workers=n) for n in (1, 4)]
    return max(largest(found[0][n].values, found[1][n].values) for n in ("mean", "std"))


def orders(model: xcopula.CopulaModel, data: xr.Dataset, grid: xr.Dataset) -> float:
    """Shuffle the sites of a model and the cells of its target, and turn the target round."""
    rng = np.random.default_rng(0)
    mixed = data.isel(site=rng.permutation(data.sizes["site"]))
    other = with_data(model, mixed, ["Cd", "Ni", "Zn"])
    turned = grid.isel(x=rng.permutation(grid.sizes["x"])).transpose("x", "y")
    one, two = (m.posterior(g).latent for m, g in ((model, grid), (other, turned)))
    two = two.sortby("x").transpose(*one["mean"].dims)
    return max(largest(one[n].values, two[n].values) for n in ("mean", "std"))


def sites_of_a_fit(data: xr.Dataset, grid: xr.Dataset) -> tuple[float, float]:
    """Fit anew with the sites in another order: nats, and latent differences."""
    mixed = data.isel(site=np.random.default_rng(0).permutation(data.sizes["site"]))
    return _compared([(data, ["Ni", "Zn"]), (mixed, ["Ni", "Zn"])], grid)


def variables_of_a_fit(data: xr.Dataset, grid: xr.Dataset) -> tuple[float, float]:
    """Fit anew with the secondaries in another order: nats, and latent differences."""
    return _compared([(data, ["Ni", "Zn"]), (data, ["Zn", "Ni"])], grid)


def _compared(fits: list[tuple[xr.Dataset, list[str]]], grid: xr.Dataset) -> tuple[float, float]:
    options = {"marginals": "lognormal", "method": "full", **OPTIONS}
    one, two = (xcopula.fit(data, "Cd", names, **options) for data, names in fits)
    moved = largest(latent(one, grid), latent(two, grid))
    return abs(one.log_likelihood - two.log_likelihood), moved


def with_data(
    model: xcopula.CopulaModel, data: xr.Dataset, names: list[str]
) -> xcopula.CopulaModel:
    """Return a model with its parameters and other data."""
    return dataclasses.replace(model, observations=observe(data, names))


def elsewhere(frame: xr.Dataset) -> xr.Dataset:
    """Return a frame in metres, with another origin."""
    return frame.assign_coords(
        {
            c: (frame[c].dims, 1e3 * (frame[c].values + 7.0), frame[c].attrs | {"units": "m"})
            for c in "xy"
        }
    )


def coordinates(model: xcopula.CopulaModel, data: xr.Dataset, grid: xr.Dataset) -> float:
    """Move a model, its data and its target to another unit and origin."""
    other = with_data(model, elsewhere(data), ["Cd", "Ni", "Zn"])
    return largest(latent(model, grid), latent(other, elsewhere(grid)))


def coordinates_of_a_fit(data: xr.Dataset, grid: xr.Dataset) -> tuple[float, float]:
    """Fit anew in metres with another origin: nats, and latent differences."""
    options = {"marginals": "lognormal", **OPTIONS}
    one, two = (xcopula.fit(d, "Cd", ["Ni"], **options) for d in (data, elsewhere(data)))
    moved = largest(latent(one, grid), latent(two, elsewhere(grid)))
    return abs(one.log_likelihood - two.log_likelihood), moved


def _fit_in_child(data: xr.Dataset) -> np.ndarray:
    return np.asarray(xcopula.fit(data, "Cd", ["Ni"], marginals="lognormal", **OPTIONS).theta)


def forked(data: xr.Dataset) -> float:
    """Fit here, and in a process that is forked afterwards."""
    here = _fit_in_child(data)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return largest(here, pool.apply(_fit_in_child, (data,)))


def killed_worker(model: xcopula.CopulaModel, grid: xr.Dataset) -> float:
    """Kill the first worker process that comes to a chunk of the mask."""
    import distributed

    inside = xr.DataArray(
        np.ones(tuple(grid.sizes.values()), bool), {c: grid[c] for c in grid.sizes}, grid.sizes
    )
    chunks = {"x": 10, "y": 10}
    with tempfile.TemporaryDirectory() as folder:
        flag = Path(folder) / "killed"

        def deadly(block: np.ndarray) -> np.ndarray:
            if block.size > 1 and not flag.exists():  # not the one that dask tries a function on
                flag.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return block

        mask = inside.chunk(chunks).copy()
        mask = mask.copy(data=mask.data.map_blocks(deadly, dtype=bool, meta=np.ones((0, 0), bool)))
        plain = model.predict(grid, mask=inside)["Cd"].values
        with (
            distributed.LocalCluster(
                2, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
            ) as cluster,
            distributed.Client(cluster),
        ):
            found = model.predict(grid, mask=mask, chunks=chunks)["Cd"].compute().values
        assert flag.exists(), "nobody was killed"
    return largest(found / plain, np.ones_like(plain))


def more_data(model: xcopula.CopulaModel, data: xr.Dataset, grid: xr.Dataset) -> float:
    """Return by how much half of the sites know a cell better than all of them, at most."""
    half = with_data(model, data.isel(site=slice(0, None, 2)), ["Cd", "Ni", "Zn"])
    much, little = (m.posterior(grid).latent["std"].values ** 2 for m in (model, half))
    return max(float((much - little).max()), 0.0)


def datum(model: xcopula.CopulaModel, data: xr.Dataset) -> float:
    """Predict the data at their own sites: differences of scores, and deviations."""
    known = data[["Cd"]].dropna("site")
    found = model.posterior(known.drop_vars("Cd")).latent
    scores = model.marginals[0].to_normal(known["Cd"].values)
    return max(largest(found["mean"].values, scores), float(found["std"].max()))


def epoch() -> float:
    """Move the dates of a model, its data and its target by forty years."""
    days = np.arange("2000-01-01", "2000-03-01", dtype="M8[D]").astype("M8[ns]")
    level = np.sin(np.arange(60.0) / 5.0) + 0.1 * np.random.default_rng(0).normal(size=60)
    data = xr.Dataset({"level": ("time", level)}, {"time": days})
    model = xcopula.fit(data, "level", marginals="normal", **OPTIONS)
    moved = data.assign_coords(time=days - np.timedelta64(14_600, "D"))
    later = np.timedelta64(36, "h")
    found = []
    for one, frame in ((model, data), (with_data(model, moved, ["level"]), moved)):
        when = xr.Dataset(coords={"time": frame["time"].values + later})
        latents = one.posterior(when).latent
        found.append(np.concatenate([latents["mean"].values, latents["std"].values]))
    return largest(*found)


def nugget_floor(model: xcopula.CopulaModel, grid: xr.Dataset) -> float:
    """Return by how much the variance of an observation falls below the nugget, at most."""
    least = float(model.parameters["nugget"].values.ravel()[0])
    return max(least - float((model.posterior(grid).latent["std"] ** 2).min()), 0.0)


def main(quick: bool, only: list[str]) -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    step = 9 if quick else 2
    data = xcopula.datasets.jura(hide="Cd").isel(site=slice(0, None, step))
    grid = xcopula.datasets.jura_grid()
    grid = grid.isel(x=slice(None, None, 8 if quick else 3), y=slice(None, None, 8 if quick else 3))
    grid = grid.drop_vars(list(grid.data_vars))
    options = {"marginals": "lognormal", **OPTIONS}
    model = xcopula.fit(data, "Cd", ["Ni", "Zn"], **options)
    full = xcopula.fit(data, "Cd", ["Ni", "Zn"], method="full", **options)
    parts: dict[str, dict[str, Callable[[], float | tuple[float, float]]]] = {
        "same": {
            "any chunks of a grid": lambda: chunks(model, grid),
            "a part of a grid": lambda: subset(model, grid),
            "lazy fit and prediction": lambda: lazily(data, grid),
            "the same seed": lambda: seeds(data, grid),
            "one or two threads of BLAS, fit and prediction": lambda: blas(data, grid),
            "one or four threads of dask, fit and prediction": lambda: dask_threads(data, grid),
            "orders of sites, cells and dims, same parameters": lambda: orders(full, data, grid),
            "order of sites, fit anew: nats, latent": lambda: sites_of_a_fit(data, grid),
            "order of variables, fit anew: nats, latent": lambda: variables_of_a_fit(data, grid),
            "a fit in a forked process": lambda: forked(data),
            "a worker that is killed, relative": lambda: killed_worker(model, grid),
        },
        "conventions": {
            "unit and origin of coordinates, same parameters": lambda: coordinates(
                full, data, grid
            ),
            "unit and origin of coordinates, fit anew: nats, latent": lambda: coordinates_of_a_fit(
                data, grid
            ),
            "dates moved by forty years, same parameters": epoch,
            "coordinates of one variable in single precision": lambda: single_precision(data, grid),
        },
        "numbers": {
            "smallest eigenvalue of random covariances": lambda: eigenvalue(20 if quick else 320),
            "gradient, of its largest entry": lambda: gradient(full),
            "CRPS of a normal law, relative": crps,
            "the CDF of a quantile": lambda: inverse(33 if quick else 999),
            "more data raise a variance by": lambda: more_data(full, data, grid),
            "a datum at its own site": lambda: datum(model, data),
            "noise-free data, in deviations of the nugget": noise_free,
            "variance below the nugget": lambda: nugget_floor(model, grid),
            "outliers move the Parzen bandwidth by": outliers,
        },
    }
    rows = {name: check for part in only if part in parts for name, check in parts[part].items()}
    for name, check in rows.items():
        if quick and "killed" in name:
            continue
        found = check()
        figures = found if isinstance(found, tuple) else (found,)
        print(f"{name:55}  {', '.join(f'{figure:.1e}' for figure in figures)}", flush=True)
    if "units" in only:
        laws = ["normal"] if quick else [*xcopula.marginals.MARGINALS, "select"]
        for name, figure in units(data, grid, laws):
            print(f"{name:55}  {figure}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    every = ["same", "conventions", "numbers", "units"]
    parser.add_argument("--only", nargs="+", choices=every, default=every)
    arguments = parser.parse_args()
    main(arguments.quick, arguments.only)
