"""Minimise a smooth function in a box, starting from several points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xcopula.errors import NotPositiveDefiniteError

__all__ = ["OPTIMIZERS", "Objective", "Optimum", "minimise", "minimise_from"]

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
    optimizer: str = "l-bfgs",
    seed: int = 0,
) -> Optimum:
    """Minimise in a box; ``progress(iteration, value, theta)`` is called at each iteration.

    Where the function is infinite (a value left its law's support, a matrix was not positive
    definite) the search meets a wall that leads back to the best point so far. A search that met
    nothing but walls has not converged.
    """
    walled = _Walled(objective, np.clip(start, bounds[:, 0], bounds[:, 1]), progress)
    result = OPTIMIZERS[optimizer](walled, walled.theta, bounds, iterations, seed)
    converged, message = bool(result.success), str(result.message)
    if not np.isfinite(walled.value):
        converged, message = False, "the likelihood is zero at every point that was tried"
    return Optimum(walled.theta, walled.value, converged, message, walled.evaluations)


class _Walled:
    """An objective that remembers its best point and turns infinities into walls around it."""

    def __init__(self, objective: Objective, start: FloatArray, progress: Progress | None) -> None:
        self.objective, self.progress = objective, progress
        self.theta, self.value = start, np.inf
        self.evaluations = self.iterations = 0

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        self.evaluations += 1
        try:
            value, gradient = self.objective(theta)
        except NotPositiveDefiniteError:
            if not np.isfinite(self.value):
                raise
            value, gradient = np.inf, np.zeros_like(theta)
        if np.isfinite(value) and np.isfinite(gradient).all():
            if value < self.value:
                self.value, self.theta = value, theta.copy()
            return value, gradient
        if not np.isfinite(self.value):
            return 1e10, np.zeros_like(theta)
        step = theta - self.theta
        return self.value + 1e3 * (1.0 + float(step @ step)), 2e3 * step

    def report(self, *_: object) -> None:
        """Count an iteration."""
        self.iterations += 1
        if self.progress is not None:
            self.progress(self.iterations, self.value, self.theta)


def _lbfgs(
    function: _Walled, start: FloatArray, bounds: FloatArray, iterations: int, seed: int
) -> Any:
    """Quasi-Newton with limited memory, in a box."""
    from scipy.optimize import Bounds, minimize

    scale = max(1.0, abs(function(start)[0]))
    return minimize(
        function,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(bounds[:, 0], bounds[:, 1]),
        callback=function.report,
        options={
            "maxiter": iterations,
            "maxcor": 20,
            "ftol": _TOLERANCE / scale,
            "gtol": 1e-3,
        },
    )


def _cg(
    function: _Walled, start: FloatArray, bounds: FloatArray, iterations: int, seed: int
) -> Any:
    """Conjugate gradients; a sine maps the real line to the box."""
    from scipy.optimize import minimize

    middle, half = bounds.mean(axis=1), 0.5 * np.ptp(bounds, axis=1)

    def unbounded(x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = function(middle + half * np.sin(x))
        return value, gradient * half * np.cos(x)

    x = np.arcsin(np.clip((start - middle) / half, -0.999, 0.999))
    return minimize(
        unbounded,
        x,
        jac=True,
        method="CG",
        callback=function.report,
        options={"maxiter": iterations, "gtol": 0.05},
    )


def _annealing(
    function: _Walled, start: FloatArray, bounds: FloatArray, iterations: int, seed: int
) -> Any:
    """Generalised simulated annealing, then L-BFGS from the best point it met."""
    from scipy.optimize import dual_annealing

    dual_annealing(
        lambda theta: function(theta)[0],
        bounds,
        x0=start,
        maxfun=10 * iterations,
        no_local_search=True,
        rng=np.random.default_rng(seed),
        callback=function.report,
    )
    return _lbfgs(function, function.theta, bounds, iterations, seed)


OPTIMIZERS: dict[str, Callable[[_Walled, FloatArray, FloatArray, int, int], Any]] = {
    "l-bfgs": _lbfgs,
    "cg": _cg,
    "annealing": _annealing,
}


def minimise_from(
    objective: Objective,
    starts: Sequence[FloatArray],
    bounds: FloatArray,
    *,
    progress: Progress | None = None,
    scout: bool = False,
    optimizer: str = "l-bfgs",
    seed: int = 0,
) -> Optimum:
    """Look at each start for a few iterations, then follow the best one to convergence.

    With ``scout`` the look at the first start is all. A start where no covariance can be
    factorised is passed over while another can.

    Raises
    ------
    NotPositiveDefiniteError
        If that is so at every start.
    """

    def search(start: FloatArray, iterations: int) -> Optimum:
        return minimise(
            objective,
            start,
            bounds,
            progress=progress,
            iterations=iterations,
            optimizer=optimizer,
            seed=seed,
        )

    if len(starts) == 1:
        return search(starts[0], _SCOUT_ITERATIONS if scout else _MAX_ITERATIONS)
    scouts: list[Optimum] = []
    failures: list[NotPositiveDefiniteError] = []
    for start in starts:
        try:
            scouts.append(search(start, _SCOUT_ITERATIONS))
        except NotPositiveDefiniteError as error:
            failures.append(error)
    if not scouts:
        raise failures[0]
    best = min(scouts, key=lambda s: s.value)
    final = search(best.theta, _MAX_ITERATIONS)
    evaluations = final.evaluations + sum(s.evaluations for s in scouts)
    return Optimum(final.theta, final.value, final.converged, final.message, evaluations)
