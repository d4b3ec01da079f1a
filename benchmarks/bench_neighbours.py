"""Measure the neighbour solver: time of a term, of the search, of cells, of whole fits; accuracy.

Run as ``python benchmarks/bench_neighbours.py`` (``--quick`` takes small samples; names of stages
choose among them). Times are seconds of processors, of one core unless it says otherwise.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import worlds
import xarray as xr
from growth import cpu, growth

import xcopula
from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import Normal
from xcopula.process import Process, Sample, Targets
from xcopula.solvers import Exact, Neighbours
from xcopula.solvers.terms import evaluate_terms

DOCS = Path(__file__).resolve().parents[1] / "docs" / "large"
GIVEN = {"marginals": "lognormal", "kernels": "matern32"}


def setting(values: int, tasks: int, groups: tuple[InputGroup, ...] = (InputGroup(2),)) -> Any:
    """Return a process, its parameters and a sample of so many values, tasks at common sites."""
    rng = np.random.default_rng(0)
    covariance = Covariance((KERNELS["matern32"],) * tasks, groups)
    theta = np.zeros(covariance.size)
    covariance.part(theta, "length")[:] = np.log(0.05) + 0.1 * np.arange(tasks)
    covariance.part(theta, "logit")[:] = 2.0
    covariance.part(theta, "correlation")[:] = 0.7
    process = Process(covariance, (Normal(0.0, 1.0),) * tasks)
    sites = rng.uniform(-0.5, 0.5, (values // tasks, sum(g.size for g in groups)))
    sample = Sample.of([sites] * tasks, [rng.normal(size=len(sites)) for _ in range(tasks)])
    return process, process.join(theta), sample


def times_of_terms(quick: bool) -> None:
    """Print microseconds a value of likelihood with gradient, and of the search."""
    values = 6_000 if quick else 100_000
    print(f"{'tasks':>6}{'groups':>7}{'m':>4}{'terms, us':>11}{'search, us':>12}{'exact n^3':>11}")
    space_time = (InputGroup(2), InputGroup(1))
    for tasks, m, groups in (
        (1, 20, (InputGroup(2),)),
        (1, 30, (InputGroup(2),)),
        (3, 30, (InputGroup(2),)),
        (1, 40, space_time),
        (2, 40, space_time),
    ):
        process, theta, sample = setting(values, tasks, groups)
        solver = Neighbours(neighbours=m)
        structure = solver.prepare(process, theta, sample)
        _, search = cpu(getattr, structure, "graph")
        solver.objective(process, sample, structure, theta)
        _, one = cpu(solver.objective, process, sample, structure, theta)
        estimate = Exact().cost(sample.sizes).seconds
        print(
            f"{tasks:6d}{len(groups):7d}{m:4d}{1e6 * one / sample.size:11.1f}"
            f"{1e6 * search / sample.size:12.1f}{estimate / one:10.0f}x",
            flush=True,
        )


def times_of_cells(quick: bool) -> None:
    """Print cells a second: cell by cell, in tiles, and the mean alone."""
    values, edge = (6_000, 150) if quick else (100_000, 700)
    print(f"{'tasks':>6}{'solver':>48}{'cells/s':>10}{'mean alone':>12}{'off, sd':>9}")
    for tasks in (1, 3):
        process, theta, sample = setting(values, tasks)
        axis = np.linspace(-0.25, 0.25, edge)
        grid = np.stack([a.ravel() for a in np.meshgrid(axis, axis)])
        targets = Targets.nowhere(grid)
        some = targets.take(np.random.default_rng(1).permutation(targets.size)[:2000])
        best = _conditioned(Neighbours(predict=400, tiles=False), process, theta, sample)
        truth = best.moments(some)
        for solver in (
            Neighbours(predict=30, tiles=False),
            Neighbours(predict=60, tiles=False),
            Neighbours(predict=100),
            Neighbours(predict=150),
        ):
            local = _conditioned(solver, process, theta, sample)
            found = local.moments(some)
            off = np.sqrt(np.mean((found.mean - truth.mean) ** 2 / truth.variance))
            _, both = cpu(local.moments, targets)
            _, mean = cpu(local.means, targets, local.scores[None])
            rates = f"{targets.size / both:10.0f}{targets.size / mean:12.0f}"
            print(f"{tasks:6d}{solver!s:>48}{rates}{off:9.3f}", flush=True)


def _conditioned(solver: Neighbours, process: Process, theta: np.ndarray, sample: Sample) -> Any:
    return solver.condition(process, sample, solver.prepare(process, theta, sample), theta)


FITS = {
    "3 variables, laws and kernels given": (100_000, 3, GIVEN),
    "3 variables, full": (100_000, 3, {**GIVEN, "method": "full"}),
    "3 variables, defaults": (100_000, 3, {}),
    "1 variable, laws and kernels given": (1_000_000, 1, GIVEN),
    "1 variable, defaults": (1_000_000, 1, {}),
}


def times_of_fits(quick: bool) -> None:
    """Print seconds and peak memory of whole fits, each in a process of its own."""
    print(f"{'fit':<38}{'values':>9}{'CPU s':>8}{'MB':>7}")
    for name, (values, _, _) in FITS.items():
        size = 9_000 if quick else values
        command = [sys.executable, __file__, "one-fit", "--name", name, "--values", str(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        print(f"{name:<38}{size:9d}{done.stdout.rstrip()}", flush=True)


def one_fit(name: str, values: int) -> None:
    """Fit once, and print seconds and memory."""
    _, variables, options = FITS[name]
    data = worlds.scattered(0, values // variables, variables).data
    _fit(worlds.scattered(1, 500).data, **GIVEN)  # compiled loops are loaded
    _, seconds = cpu(_fit, data, **options)
    print(f"{seconds:8.1f}{_peak():7.0f}")


def _fit(data: Any, **options: Any) -> Any:
    first, *rest = data.data_vars
    return xcopula.fit(data, first, rest, **options)


def accuracy(quick: bool) -> None:
    """Print fitted parameters beside the true ones, and coverage of 90 % intervals."""
    sites, seeds = (1_500, 1) if quick else (20_000, 3)
    print("three variables in the plane: truth 2 km, nugget 0.1, correlation 0.8")
    for seed in range(seeds):
        world = worlds.scattered(seed, sites, 3, length=0.02)
        for method in ("transductive", "full"):
            options = {"method": method, "solver": "neighbours", **GIVEN}
            model, seconds = cpu(_fit, world.data, **options)
            p = model.parameters
            out = model.predict(
                world.truth[["x", "y"]].isel(x=slice(3, None, 7), y=slice(3, None, 7))
            )
            truth = world.truth["v0"].isel(x=slice(3, None, 7), y=slice(3, None, 7))
            held = ~np.isin(_codes(truth), _codes_of_sites(world.data))
            inside = (truth > out["v0"].sel(quantile=0.05)) & (truth < out["v0"].sel(quantile=0.95))
            print(
                f"  {method:<13} lengths {np.round(p['length_scale'].values.ravel(), 2)} nugget "
                f"{np.round(p['nugget'].values, 3)} correlation "
                f"{np.round(p['correlation'].values[0, 0, 1:], 3)} coverage "
                f"{100 * float(inside.values[held].mean()):.1f} %  {seconds:.0f} s",
                flush=True,
            )
    print("two variables at stations by day: truth 15 km, 12 days, nugget 0.1, correlation 0.8")
    count, days = (40, 40) if quick else (400, 365)
    data = worlds.stations(0, count, days, 2)
    hidden = data["v0"].where(np.random.default_rng(1).random(data["v0"].shape) > 0.1)
    options = {"marginals": "normal", "kernels": "matern32", "solver": "neighbours"}
    model, seconds = cpu(lambda: _fit(data.assign(v0=hidden), **options))
    p = model.parameters
    lengths = [float(p["length_scale"].values.ravel()[k]) for k in range(p["length_scale"].size)]
    out = model.predict(data[["x", "y"]].assign_coords(time=data["time"][:: max(1, days // 20)]))
    truth = data["v0"].isel(time=slice(None, None, max(1, days // 20)))
    held = np.isnan(hidden.isel(time=slice(None, None, max(1, days // 20))).values)
    inside = (truth > out["v0"].sel(quantile=0.05)) & (truth < out["v0"].sel(quantile=0.95))
    print(
        f"  lengths {np.round(lengths, 2)} nugget {np.round(p['nugget'].values, 3)} correlation "
        f"{np.round(p['correlation'].values[0, 0, 1:], 3)} coverage of gaps "
        f"{100 * float(inside.transpose(*hidden.dims).values[held].mean()):.1f} %  {seconds:.0f} s"
    )


def _codes(grid: Any) -> np.ndarray:
    y, x = np.meshgrid(grid["y"].values, grid["x"].values, indexing="ij")
    return np.round(y, 6) + 1j * np.round(x, 6)


def _codes_of_sites(data: Any) -> np.ndarray:
    return np.round(data["y"].values, 6) + 1j * np.round(data["x"].values, 6)


SIDES = {"quick": (120, 240), "full": (1_000, 3_162)}
CHUNK = 500


def memory_of_grids(quick: bool) -> None:
    """Print peak memory and speed of predictions to Zarr, each grid in a process of its own."""
    print(
        f"{'cells':>10}{'CPU s':>8}{'cells/s':>9}{'MB before':>11}{'MB peak':>9}{'MB on disk':>12}"
    )
    for side in SIDES["quick" if quick else "full"]:
        size = "2000" if quick else "50000"
        command = [sys.executable, __file__, "one-grid", "--side", str(side), "--values", size]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        print(done.stdout.rstrip(), flush=True)


def one_grid(values: int, side: int) -> None:
    """Predict quantiles on a grid to Zarr block by block, and print what it took."""
    import dask

    data = worlds.scattered(0, values).data
    model = _fit(data, solver="neighbours", **GIVEN)
    axis = np.linspace(0.0, 100.0, side)
    km = {"units": "km"}
    grid = xr.Dataset(coords={"y": ("y", axis, km), "x": ("x", axis, km)})
    model.predict(grid.isel(x=slice(0, 20), y=slice(0, 20)))  # compiled loops are loaded
    before = _peak()
    with tempfile.TemporaryDirectory() as folder, dask.config.set(scheduler="synchronous"):
        path = Path(folder) / "prediction.zarr"
        out = model.predict(grid, chunks=CHUNK)
        _, seconds = cpu(out.to_zarr, path, consolidated=False)
        written = sum(f.stat().st_size for f in path.rglob("*") if f.is_file()) / 1e6
    print(
        f"{side * side:10d}{seconds:8.1f}{side * side / seconds:9.0f}{before:11.0f}"
        f"{_peak():9.0f}{written:12.0f}"
    )


def _peak() -> float:
    """Return the most memory that this process has held so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def threads(quick: bool) -> None:
    """Print the wall time of a likelihood on one and on two cores."""
    process, theta, sample = setting(6_000 if quick else 200_000, 3)
    solver = Neighbours()
    structure = solver.prepare(process, theta, sample)
    solver.objective(process, sample, structure, theta)
    found = {}
    for count in (1, 2):
        os.environ["OMP_NUM_THREADS"] = str(count)
        best = np.inf
        for _ in range(3):
            began = time.perf_counter()
            value, _ = solver.objective(process, sample, structure, theta)
            best = min(best, time.perf_counter() - began)
        found[count] = (best, value)
    os.environ["OMP_NUM_THREADS"] = "1"
    change = abs(found[1][1] / found[2][1] - 1.0)
    print(f"two cores {found[1][0] / found[2][0]:.2f} x one; the value moves by {change:.1e}")


def effects(quick: bool) -> None:
    """Print the expected log-likelihood that neighbours lose where effects are averages of many.

    Values are an effect of the place, an effect of the date, and noise of 70 % of the variance. The
    loss is the Kullback-Leibler divergence to the exact density, in nats.
    """
    places, dates = (20, 5) if quick else (67, 8)
    rng = np.random.default_rng(0)
    groups = InputGroup(2), InputGroup(1)
    covariance = Covariance((KERNELS["matern32"],), groups, structures=2)
    process = Process(covariance, (Normal(0.0, 1.0),))
    own = np.zeros(covariance.size)
    covariance.part(own, "length")[:, :, 0] = np.log([[0.012, 1.1], [2.7, 0.06]])
    covariance.part(own, "logit")[:] = np.log([[0.17 / 0.7], [0.13 / 0.7]])
    theta = process.join(own)
    sites = np.repeat(rng.uniform(size=(places, 2)), dates, axis=0)
    points = np.column_stack([sites, np.tile(np.linspace(0.0, 1.0, dates), places)])
    sample = Sample.of([points], [rng.normal(size=len(points))])
    none = np.zeros(sample.size)
    factor = Exact().condition(process, sample, None, theta).factor
    exact = float(np.log(np.diagonal(factor)).sum())
    print(f"{sample.size} values, {'neighbours':>12}{'nats lost':>11}")
    for most in (10, 20, 40) if quick else (20, 40, 80, 160, 320):
        graph = Neighbours(most).prepare(process, theta, sample).graph
        each = evaluate_terms(process, sample, graph, theta, none, gradient=False).each
        print(f"{most:24d}{0.5 * each[:, 1].sum() - exact:11.2f}", flush=True)


STAGES = {
    "terms": times_of_terms,
    "cells": times_of_cells,
    "threads": threads,
    "accuracy": accuracy,
    "fits": times_of_fits,
    "grids": memory_of_grids,
    "effects": effects,
}


def main() -> None:
    names = ", ".join([*STAGES, "growth"])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small samples")
    parser.add_argument("--name", help=argparse.SUPPRESS)
    parser.add_argument("--values", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--side", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help="where growth writes; docs/large by default")
    parser.add_argument("--gpboost", default=sys.executable, help="a Python that has GPBoost")
    parser.add_argument("stage", nargs="*", help=f"of {names}; all by default")
    asked = parser.parse_args()
    if asked.stage == ["one-fit"]:
        one_fit(asked.name, asked.values)
        return
    if asked.stage == ["one-grid"]:
        one_grid(asked.values, asked.side)
        return
    for name in asked.stage or [*STAGES, "growth"]:
        print(f"\n== {name}")
        if name == "growth":
            growth(asked.quick, asked.out or DOCS, asked.gpboost)
        else:
            STAGES[name](asked.quick)


if __name__ == "__main__":
    main()
