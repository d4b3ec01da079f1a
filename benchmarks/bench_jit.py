"""Time the loops over pairs of sites, and what surrounds them, in CPU time of one thread.

Run as ``python benchmarks/bench_jit.py``. CPU time is counted, because the loops are to be compared
with LAPACK on machines that do other work as well; the ratio is that of ``bench_budgets.py``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from xcopula.kernels import KERNELS
from xcopula.kernels.assembly import contract_lower, cross, lower
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.linalg import cholesky, inverse_from_cholesky

PLANE = (InputGroup(2),)
TURNED = InputGroup(2, directions=((1.0, 0.0), (0.0, 1.0)))
MATERN = (KERNELS["matern32"],) * 3
LARGE, SMALL = (259, 359, 359), (10, 10, 10)

CASES = {
    "plane": (LARGE, Covariance(MATERN, PLANE)),
    "three families": (
        LARGE,
        Covariance(tuple(KERNELS[k] for k in ("matern12", "matern32", "se")), PLANE),
    ),
    "two structures": (LARGE, Covariance(MATERN, PLANE, "lmc", 2)),
    "space and time": (LARGE, Covariance(MATERN, (InputGroup(2), InputGroup(1)))),
    "and a scale each": (LARGE, Covariance(MATERN, (InputGroup(2, ard=True), InputGroup(1)))),
    "directions": (LARGE, Covariance(MATERN, (TURNED,))),
    "and time": (LARGE, Covariance(MATERN, (TURNED, InputGroup(1)))),
    "few": (SMALL, Covariance(MATERN, PLANE)),
}


def shortest(*functions: Callable[[], object], repeats: int) -> list[float]:
    """Return the shortest runs in milliseconds, taken in turns so that all see the same machine."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats + 1):  # the first compiles
        for taken, function in zip(times, functions, strict=True):
            began = time.thread_time()
            function()
            taken.append(time.thread_time() - began)
    return [1e3 * min(taken[1:]) for taken in times]


def measure(name: str, sizes: tuple[int, ...], covariance: Covariance) -> str:
    """Time one covariance: tables, fill, contraction, pullback, rows for targets, and LAPACK."""
    rng = np.random.default_rng(0)
    places = rng.random((max(sizes), covariance.columns))
    inputs = np.require(np.vstack([places[:n] for n in sizes]).T, float, "CW")
    sites = np.concatenate([np.arange(n) for n in sizes])
    offsets = np.cumsum([0, *sizes])
    theta = np.zeros(covariance.size)
    lengths = covariance.part(theta, "length")
    lengths[:] = np.log(0.1) + 0.5 * rng.random(lengths.shape)
    covariance.part(theta, "correlation")[:] = 0.6
    state = covariance.state(theta)
    matrix = np.eye(sites.size) + 0.1
    alpha = rng.normal(size=sites.size)
    by = contract_lower(state, matrix, alpha, inputs, sites, offsets)
    own = np.require(inputs[:, : sizes[0]], float, "CW")

    def lapack() -> None:
        inverse_from_cholesky(cholesky(lambda: matrix.copy(), str)[0])

    tables, fill, contraction, pullback, rows, least = shortest(
        lambda: covariance.state(theta),
        lambda: lower(state, inputs, sites, offsets),
        lambda: contract_lower(state, matrix, alpha, inputs, sites, offsets),
        lambda: covariance.pullback(theta, by),
        lambda: cross(state, own, sites[: sizes[0]], 0, inputs, sites, offsets),
        lapack,
        repeats=2000 if sites.size < 100 else 60,
    )
    extra = (tables + fill + contraction + pullback) / least
    return (
        f"{name:>16}, n = {sites.size:3d}: tables {tables:5.2f}, fill {fill:6.3f}, contraction "
        f"{contraction:6.3f}, pullback {pullback:4.2f}, rows {rows:6.3f} ms; "
        f"dpotrf + dpotri {least:6.3f} ms, the sum of the first four is {extra:.2f} of it"
    )


if __name__ == "__main__":
    for case, (sizes, covariance) in CASES.items():
        print(measure(case, sizes, covariance), flush=True)
