"""Minimise a smooth function in a box, starting from several points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xcopula.errors import NotPositiveDefiniteError

__all__ = ["Objective", "Optimum", "minimise", "minimise_from"]

FloatArray = npt.NDArray[np.float64]
Objective = Callable[[FloatArray], tuple[float, FloatArray]]
Progress = Callable[[int, float, FloatArray], object]

_MAX_ITERATIONS = 300
# An iteration that gains less than this many nats is the last.
_TOLERANCE = 3e-4
# A first look at each start, before the most promising one is followed to the end.
_SCOUT_ITERATIONS = 15


@dataclass(frozen=True)
class Optimum:
    """Where a minimisation ended."""

    theta: FloatArray
    value: float
    converged: bool
    message: str
    evaluations: int


def minimise(
    objective: Objective,
    start: FloatArray,
    bounds: FloatArray,
    *,
    progress: Progress | None = None,
    iterations: int = _MAX_ITERATIONS,
) -> Optimum:
    """Minimise by L-BFGS-B; ``progress(iteration, value, theta)`` is called at each iteration.

    Where the function is infinite (a value left its law's support, a matrix was not positive
    definite) the search meets a wall that leads back to the best point so far.
    """
    from scipy.optimize import Bounds, minimize

    start = np.clip(start, bounds[:, 0], bounds[:, 1])
    best_value, best_theta = np.inf, start

    def walled(theta: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best_value, best_theta
        try:
            value, gradient = objective(theta)
        except NotPositiveDefiniteError:
            if not np.isfinite(best_value):
                raise
            value, gradient = np.inf, np.zeros_like(theta)
        if np.isfinite(value) and np.isfinite(gradient).all():
            if value < best_value:
                best_value, best_theta = value, theta.copy()
            return value, gradient
        if not np.isfinite(best_value):
            return 1e10, np.zeros_like(theta)
        step = theta - best_theta
        return best_value + 1e3 * (1.0 + float(step @ step)), 2e3 * step

    count = 0

    def report(theta: FloatArray) -> None:
        nonlocal count
        count += 1
        if progress is not None:
            progress(count, best_value, best_theta)

    scale = max(1.0, abs(walled(start)[0]))
    result = minimize(
        walled,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(bounds[:, 0], bounds[:, 1]),
        callback=report,
        options={"maxiter": iterations, "maxcor": 20, "ftol": _TOLERANCE / scale, "gtol": 1e-3},
    )
    return Optimum(
        best_theta, best_value, bool(result.success), str(result.message), int(result.nfev)
    )


def minimise_from(
    objective: Objective,
    starts: Sequence[FloatArray],
    bounds: FloatArray,
    *,
    progress: Progress | None = None,
    scout: bool = False,
) -> Optimum:
    """Look at each start for a few iterations, then follow the best one to convergence.

    With ``scout`` the look at the first start is all.
    """
    if len(starts) == 1:
        iterations = _SCOUT_ITERATIONS if scout else _MAX_ITERATIONS
        return minimise(objective, starts[0], bounds, progress=progress, iterations=iterations)
    scouts = [
        minimise(objective, start, bounds, progress=progress, iterations=_SCOUT_ITERATIONS)
        for start in starts
    ]
    best = min(scouts, key=lambda s: s.value)
    final = minimise(objective, best.theta, bounds, progress=progress)
    evaluations = final.evaluations + sum(s.evaluations for s in scouts)
    return Optimum(final.theta, final.value, final.converged, final.message, evaluations)
