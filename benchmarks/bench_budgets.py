"""Measure the budgets as ratios against LAPACK, single thread, in one run.

Run as ``python benchmarks/bench_budgets.py`` (``--quick`` leaves out the large sizes).
"""

from __future__ import annotations

import argparse
import functools
import os
import time
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import xarray as xr

import xcopula
from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.linalg import cholesky, inverse_from_cholesky, solve_lower
from xcopula.marginals import MARGINALS
from xcopula.process import Process, Sample, Targets
from xcopula.solvers import Exact, Neighbours
from xcopula.solvers.batches import batches


def best_of(function: Callable[[], object], repeats: int) -> float:
    """Return the shortest of several runs, in seconds, after one to warm up."""
    function()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return min(times)


def likelihood_ratio(sizes: tuple[int, ...], kernels: tuple[str, ...], repeats: int) -> None:
    """Compare value and gradient with the factorisation and inversion they cannot do without."""
    rng = np.random.default_rng(0)
    sites = rng.random((max(sizes), 2))
    values = [np.exp(rng.normal(size=n)) for n in sizes]
    sample = Sample.of([sites[:n] for n in sizes], values)
    covariance = Covariance(tuple(KERNELS[k] for k in kernels), (InputGroup(2),))
    process = Process(covariance, tuple(MARGINALS["lognormal"].fit(v) for v in values))
    theta = np.zeros(covariance.size)
    covariance.part(theta, "length")[:] = np.log([0.1, 0.2, 0.15])
    covariance.part(theta, "logit")[:] = 1.0
    covariance.part(theta, "correlation")[:] = 0.6
    full = process.join(theta)
    matrix = np.eye(sample.size) + 0.1

    def lapack() -> None:
        factor, _ = cholesky(lambda: matrix.copy(), str)
        inverse_from_cholesky(factor)

    ours = best_of(lambda: Exact().objective(process, sample, None, full), repeats)
    base = best_of(lapack, repeats)
    print(
        f"likelihood + gradient, n = {sample.size:5d}, {'/'.join(kernels)}: {1e3 * ours:8.1f} ms"
        f" = {ours / base:.2f} x (dpotrf + dpotri, {1e3 * base:.1f} ms)"
    )
    informed = best_of(lambda: Exact().information(process, sample, None, full), repeats)
    print(f"  with information: {1e3 * informed:.1f} ms = {informed / ours:.2f} x (at most 1.5)")


def information_by_neighbours(size: int, repeats: int) -> None:
    """Compare an evaluation by neighbours with its information and without."""
    rng, solver = np.random.default_rng(0), Neighbours()
    for tasks in (1, 3):
        values = [np.exp(rng.normal(size=size // tasks)) for _ in range(tasks)]
        sample = Sample.of([rng.random((size // tasks, 2)) for _ in range(tasks)], values)
        covariance = Covariance((KERNELS["matern12"],) * tasks, (InputGroup(2),))
        process = Process(covariance, tuple(MARGINALS["lognormal"].fit(v) for v in values))
        theta = process.join(np.zeros(covariance.size))
        given = process, sample, solver.prepare(process, theta, sample), theta
        plain = best_of(functools.partial(solver.objective, *given), repeats)
        informed = best_of(functools.partial(solver.information, *given), repeats)
        print(
            f"neighbours, {sample.size} values of {tasks}: {1e6 * plain / sample.size:.1f} us a "
            f"value, with the information {informed / plain:.2f} x (at most 1.7)"
        )


def prediction_ratio(cells: int, repeats: int) -> None:
    """Compare mean and variance at many cells with the solve they need, and the mean alone."""
    data = xcopula.datasets.jura(hide="Cd")
    model = data.mtcopula.fit(
        "Cd", ["Ni", "Zn"], method="full", kernels="matern32", marginals="lognormal"
    )
    conditioned = model.conditioned
    targets = Targets.nowhere(np.random.default_rng(0).random((2, cells)) - 0.5)
    n = model.observations.sample.size
    rows = np.random.default_rng(1).random((next(batches(cells, n)).stop, n))

    def solve() -> None:
        for part in batches(cells, n):
            solve_lower(conditioned.factor, rows[: part.stop - part.start])

    ours = best_of(lambda: conditioned.moments(targets), repeats)
    alone = best_of(lambda: conditioned.mean(targets), repeats)
    base = best_of(solve, repeats)
    print(
        f"mean + variance, {cells} cells, n = {n}: {ours:.2f} s = {ours / base:.2f} x "
        f"(dtrsm, {base:.2f} s)"
    )
    print(f"mean alone: {alone:.2f} s, {ours / alone:.1f} x faster than with the variance")
    side = round(cells**0.5)
    grid = xr.Dataset(coords={"x": np.linspace(0.5, 5.0, side), "y": np.linspace(0.5, 5.5, side)})
    median = best_of(lambda: model.predict(grid, 0.5), repeats)
    ours = best_of(lambda: model.predict(grid, (0.05, 0.5, 0.95)), repeats)
    print(
        f"predict(quantiles=0.5), {side**2} cells: {median:.2f} s, {ours / median:.1f} x faster "
        "than with the interval (at least 3 x)"
    )


def fit_time() -> None:
    """Time the default choices of Jura Cd, full and transductive, with everything compiled."""
    data = xcopula.datasets.jura(hide="Cd")
    data.mtcopula.fit("Cd", ["Ni"], kernels="matern32", marginals="lognormal")
    for method in ("full", "transductive"):
        began = time.perf_counter()
        data.mtcopula.fit("Cd", ["Ni", "Zn"], method=method)
        print(f"{method} fit of Jura Cd [Ni, Zn]: {time.perf_counter() - began:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    quick = parser.parse_args().quick
    likelihood_ratio((259, 359, 359), ("matern32",) * 3, 2 if quick else 7)
    likelihood_ratio((259, 359, 359), ("matern12", "matern32", "se"), 2 if quick else 7)
    if not quick:
        likelihood_ratio((1200, 1400, 1400), ("matern32",) * 3, 3)
    information_by_neighbours(1_000 if quick else 20_000, 1 if quick else 3)
    prediction_ratio(5_000 if quick else 100_000, 1 if quick else 2)
    if not quick:
        fit_time()


if __name__ == "__main__":
    main()
