"""Measure what size costs: the graph of a large prediction, a run to disk, and threads.

Run as ``python benchmarks/bench_scale.py`` (``--quick`` takes small sizes). With ``cells`` it
prints one table: how many cells a processor predicts in a second, by observations and variables.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import dask
import numpy as np
import threadpoolctl
import xarray as xr

import xcopula
from xcopula import CopulaModel

QUANTILES = (0.05, 0.5, 0.95)


@contextlib.contextmanager
def stopwatch() -> Iterator[list[float]]:
    """Yield a list that holds seconds, by the clock and of processors, once the block has ended."""
    seconds: list[float] = []
    began = time.perf_counter(), time.process_time()
    yield seconds
    seconds += [time.perf_counter() - began[0], time.process_time() - began[1]]


def simulate(sites: int, secondaries: int = 1) -> xr.Dataset:
    """Return a primary on half of the sites and secondaries on all, in the unit square."""
    rng = np.random.default_rng(0)
    x, y = rng.random((2, sites))
    signal = np.sin(5.0 * x) + np.cos(4.0 * y)
    noise = 0.3 * rng.normal(size=(1 + secondaries, sites))
    known = np.arange(sites) < sites // 2
    variables = {"primary": ("site", np.where(known, np.exp(signal + noise[0]), np.nan))}
    variables |= {f"s{k}": ("site", signal + noise[k + 1]) for k in range(secondaries)}
    return xr.Dataset(variables, coords={"x": ("site", x), "y": ("site", y)})


def fit(data: xr.Dataset, method: str = "transductive") -> CopulaModel:
    """Fit with settings that leave nothing to choose."""
    laws = {str(n): "lognormal" if n == "primary" else "normal" for n in data.data_vars}
    names = [n for n in laws if n != "primary"]
    return xcopula.fit(data, "primary", names, method=method, marginals=laws, kernels="matern32")


def grid(rows: int, columns: int) -> xr.Dataset:
    return xr.Dataset(coords={"y": np.linspace(0, 1, rows), "x": np.linspace(0, 1, columns)})


def peak_memory() -> float:
    """Return the most memory that this process has held so far, in MB."""
    unit = 1.0 if sys.platform == "darwin" else 1024.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def measure_graph(model: CopulaModel, rows: int, columns: int, chunk: int) -> None:
    """Build a prediction, and count and weigh what a scheduler would be sent."""
    with stopwatch() as built:
        out = model.predict(grid(rows, columns), QUANTILES, chunks=chunk)["primary"].data
    with stopwatch() as optimised:
        (final,) = dask.optimize(out)
        graph = dict(final.__dask_graph__())
    theta = model.theta.tobytes()
    copies = sum(theta in cloudpickle.dumps(task) for task in graph.values())
    print(
        f"graph: {rows} x {columns} cells in {out.npartitions} blocks of {chunk} x {chunk}: "
        f"built in {built[0]:.3f} s, optimised in {optimised[0]:.3f} s, "
        f"{len(graph) / out.npartitions:.2f} tasks per block, "
        f"{len(cloudpickle.dumps(graph)) / 1e6:.2f} MB, the model in it {copies} time(s)"
    )


def measure_run(model: CopulaModel, side: int, chunk: int) -> None:
    """Write a prediction to Zarr block by block, one BLAS thread for each of dask's."""
    before = peak_memory()
    with tempfile.TemporaryDirectory() as folder:
        out = model.predict(grid(side, side), QUANTILES, chunks=chunk)
        with stopwatch() as seconds, threadpoolctl.threadpool_limits(1, user_api="blas"):
            out.to_zarr(Path(folder) / "prediction.zarr", consolidated=False)
    print(
        f"run: {side} x {side} cells in blocks of {chunk} x {chunk} to Zarr, {model.method.name}, "
        f"n = {model.observations.sample.size}: {seconds[0]:.1f} s, "
        f"{side * side / seconds[0]:,.0f} cells/s, {side * side / seconds[1]:,.0f} per CPU second, "
        f"{out.nbytes / 1e6:.0f} MB of results, "
        f"peak memory {peak_memory():.0f} MB (before: {before:.0f} MB)"
    )


def measure_fit_threads(data: xr.Dataset) -> None:
    """Fit sub-models side by side, with the library's limit on BLAS threads and without."""
    limits = threadpoolctl.threadpool_limits
    fit(simulate(20, 3))  # compiles
    with stopwatch() as limited:
        fit(data)
    threadpoolctl.threadpool_limits = lambda *_, **__: contextlib.nullcontext()
    try:
        with stopwatch() as free:
            fit(data)
    finally:
        threadpoolctl.threadpool_limits = limits
    print(
        f"threads: transductive fit, {len(data.data_vars)} variables at {data.sizes['site']} "
        f"sites: {free[0]:.1f} s ({free[1]:.1f} CPU s) with BLAS threads as they come, "
        f"{limited[0]:.1f} s ({limited[1]:.1f}) limited to one"
    )


def measure_prediction_threads(model: CopulaModel, side: int, chunk: int) -> None:
    """Compute the same blocks under dask's threads, with a limit on BLAS threads and without."""
    model.predict(grid(2, 2))  # compiles and factorises
    out = model.predict(grid(side, side), QUANTILES, chunks=chunk)
    with stopwatch() as free:
        out.compute(scheduler="threads")
    with stopwatch() as limited, threadpoolctl.threadpool_limits(1, user_api="blas"):
        out.compute(scheduler="threads")
    print(
        f"threads: prediction of {side} x {side} cells in blocks of {chunk} x {chunk}, "
        f"{model.method.name}, n = {model.observations.sample.size}: {free[0]:.1f} s "
        f"({free[1]:.1f} CPU s) with BLAS threads as they come, "
        f"{limited[0]:.1f} s ({limited[1]:.1f}) limited to one"
    )


def scatter(observations: int, variables: int) -> xr.Dataset:
    """Return a primary on half of the sites of each secondary, so many observations in all."""
    sites = round(observations / (variables - 0.5)) if variables > 1 else 2 * observations
    return simulate(sites, variables - 1)


def measure_cells(observations: int, variables: int, side: int) -> float:
    """Return how many cells are predicted in a CPU second, three quantiles each."""
    model = fit(scatter(observations, variables))
    target = grid(side, side)
    model.predict(grid(2, 2), QUANTILES)  # compiles and factorises
    with stopwatch() as seconds, threadpoolctl.threadpool_limits(1, user_api="blas"):
        model.predict(target, QUANTILES)
    return side * side / seconds[1]


def print_cells(quick: bool) -> None:
    """Print the cells of a CPU second as a Markdown table."""
    sizes = (60, 100) if quick else (60, 300, 1000, 3000, 10_000, 50_000)
    tasks = (1, 3) if quick else (1, 2, 4)
    side = 40 if quick else 400
    print("| observations | " + " | ".join(f"variables: {count}" for count in tasks) + " |")
    print("|---:|" + "---:|" * len(tasks))
    for size in sizes:
        rates = [measure_cells(size, count, side) for count in tasks]
        print(f"| {size:,} | " + " | ".join(f"{float(f'{r:.2g}'):,.0f}" for r in rates) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage", nargs="?", choices=["all", "cells"], default="all")
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--side", type=int, help="cells along each side of the run to Zarr")
    options = parser.parse_args()
    quick = options.quick
    if options.stage == "cells":
        print_cells(quick)
        return
    small = fit(simulate(40), "full")
    side = options.side or (300 if quick else 4000)
    measure_graph(small, 10_000, 10_000, 1000)
    measure_graph(small, 25_000, 40_000, 1000)
    half = side // 2
    # Upwards in the size of blocks: memory is the peak so far.
    for chunk in (side // 20, side // 8, side // 4):
        measure_run(small, half, chunk)
    measure_run(small, side, side // 4)
    measure_run(small, half, half)
    measure_fit_threads(simulate(40 if quick else 400, 3))
    for chosen in (
        fit(simulate(60 if quick else 400), "full"),
        fit(simulate(30 if quick else 200, 3)),
    ):
        measure_prediction_threads(chosen, 60 if quick else 300, 20 if quick else 100)


if __name__ == "__main__":
    main()
