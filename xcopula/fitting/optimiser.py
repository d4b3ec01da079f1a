"""Minimise a smooth function in a box, starting from several points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from xcopula.errors import NotPositiveDefiniteError
from xcopula.fitting import newton
from xcopula.fitting.newton import Informed

__all__ = [
    "OPTIMIZERS",
    "UNWATCHED",
    "Loss",
    "Objective",
    "Optimum",
    "Watching",
    "each_way",
    "minimise",
    "minimise_from",
    "units",
]

FloatArray = npt.NDArray[np.float64]
Objective = Callable[[FloatArray], tuple[float, FloatArray]]
Progress = Callable[[int, float, FloatArray], object]


class Watching(Protocol):
    """What follows a search; see :class:`~xcopula.fitting.watch.Watch`."""

    def begin(self, start: int, starts: int) -> object:
        """Go on with one of several starting points."""

    def stage(self) -> object:
        """Go on with another function, from where the last one led."""

    def __call__(self, iteration: int, value: float, theta: FloatArray) -> object:
        """Note an iteration."""


class _Nobody:
    """Follows a search that nobody asked about."""

    def begin(self, start: int, starts: int) -> None:
        """Say nothing."""

    def stage(self) -> None:
        """Say nothing."""

    def __call__(self, iteration: int, value: float, theta: FloatArray) -> None:
        """Say nothing."""


UNWATCHED: Watching = _Nobody()

_MAX_ITERATIONS = 300
# Two iterations in a row that gain less than so many nats are the last: one may be a stumble. So is
# one where no parameter pulls by more than so many nats for a unit of its own.
_TOLERANCE = 3e-4
_GRADIENT = 1e-3
# Searches that magnify rounding end in a finish that goes as far as rounding lets it.
_FINE_TOLERANCE, _FINE_GRADIENT = 1e-12, 1e-6
# A box is so many units wide: that of a law's location is four scales to each side.
_BOX = 8.0
# L-BFGS remembers so many steps, or one for each parameter: a law for every month has many.
_MEMORY = 20
# A first look at each start, before the most promising one is followed to the end.
_SCOUT_ITERATIONS = 15


@dataclass(frozen=True)
class Loss:
    """A function to be minimised, with its information matrix where there is one.

    Attributes
    ----------
    plain : callable
        Returns the value and the gradient at a point.
    informed : callable, optional
        Returns the information matrix too.
    """

    plain: Objective
    informed: Informed | None = None

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient."""
        return self.plain(theta)


def each_way(
    objective: Objective, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Loss:
    """Return a function whose evaluations, with the information or without, are wrapped."""
    if not isinstance(objective, Loss):
        return Loss(wrap(objective))
    informed = None if objective.informed is None else wrap(objective.informed)
    return Loss(wrap(objective.plain), informed)


@dataclass(frozen=True)
class Optimum:
    """Where a minimisation ended, with the information matrix there if the search had one."""

    theta: FloatArray
    value: float
    converged: bool
    message: str
    evaluations: int
    information: FloatArray | None = None


def minimise(
    objective: Objective,
    start: FloatArray,
    bounds: FloatArray,
    *,
    progress: Progress | None = None,
    iterations: int = _MAX_ITERATIONS,
    optimizer: str = "l-bfgs",
    seed: int = 0,
    gain: float = _TOLERANCE,
    promise: float = 0.0,
) -> Optimum:
    """Minimise in a box; ``progress(iteration, value, theta)`` is called at each iteration.

    Two iterations in a row that gain less than ``gain`` nats are the last. With an information
    matrix the search is Newton's, and also ends where a step promises less than ``promise`` nats.
    Where the function is infinite (a value left its law's support, a matrix was not positive
    definite) the search meets a wall that leads back to the best point so far. A search that met
    nothing but walls has not converged.
    """
    if isinstance(objective, Loss) and objective.informed is not None and optimizer == "l-bfgs":
        return _newton(
            objective.informed, start, bounds, progress, iterations, gain, promise or gain
        )
    walled = _Walled(objective, start, bounds, progress, gain)
    result = OPTIMIZERS[optimizer](walled, iterations, seed)
    converged, message = bool(result.success), str(result.message)
    if walled.settled:
        converged, message = True, f"two iterations gained less than {walled.gain:g} nats each"
    if not np.isfinite(walled.value):
        converged, message = False, "the likelihood is zero at every point that was tried"
    return Optimum(walled.theta, walled.value, converged, message, walled.evaluations)


def _newton(
    function: Informed,
    start: FloatArray,
    bounds: FloatArray,
    progress: Progress | None,
    iterations: int,
    gain: float,
    promise: float,
) -> Optimum:
    """Minimise by Newton's method: see :func:`xcopula.fitting.newton.descend`."""

    def report(iteration: int, value: float, theta: FloatArray) -> None:
        if progress is not None:
            progress(iteration, value, theta)

    end = newton.descend(
        function,
        start,
        bounds,
        units(bounds),
        gain=gain,
        promise=promise,
        iterations=iterations,
        report=report,
    )
    return Optimum(
        end.theta, end.value, end.converged, end.message, end.evaluations, end.information
    )


def units(bounds: FloatArray) -> FloatArray:
    """Return the unit of each parameter: a share of the width of its box (size, 2)."""
    width = np.ptp(bounds, axis=1)
    return np.asarray(np.where(width > 0.0, width, 1.0) / _BOX)


class _Walled:
    """An objective that remembers its best point and turns infinities into walls around it.

    It is a function of x, the distance from the start in units of the box, and its value is that
    above the start's: neither the units of the data nor a constant in the likelihood can be told.
    """

    def __init__(
        self,
        objective: Objective,
        start: FloatArray,
        bounds: FloatArray,
        progress: Progress | None,
        gain: float,
    ) -> None:
        self.objective, self.progress = objective, progress
        self.start = self.theta = np.clip(start, bounds[:, 0], bounds[:, 1])
        self.unit = units(bounds)
        self.box = (bounds - self.start[:, None]) / self.unit[:, None]
        self.value = self.first = np.inf
        self.evaluations = self.iterations = 0
        self.expect(gain)

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray]:
        self.evaluations += 1
        theta = self.start + self.unit * x
        try:
            value, gradient = self.objective(theta)
        except NotPositiveDefiniteError:
            if not np.isfinite(self.value):
                raise
            value, gradient = np.inf, np.zeros_like(theta)
        if np.isfinite(value) and np.isfinite(gradient).all():
            if not np.isfinite(self.first):
                self.first = value
            if value < self.value:
                self.value, self.theta = value, theta
            return value - self.first, gradient * self.unit
        if not np.isfinite(self.value):
            return 1e10, np.zeros_like(theta)
        step = x - self.best
        return self.value - self.first + 1e3 * (1.0 + float(step @ step)), 2e3 * step

    @property
    def best(self) -> FloatArray:
        """Where the best point so far stands."""
        return np.asarray((self.theta - self.start) / self.unit)

    def expect(self, gain: float) -> None:
        """Begin to watch for gains of less than so many nats."""
        self.gain = gain
        self.last, self.small, self.settled = np.inf, False, False

    def report(self, *_: object) -> None:
        """Count an iteration; two in a row that gain next to nothing are the last."""
        self.count()
        small = self.last - self.value < self.gain
        self.settled = small and self.small
        self.last, self.small = self.value, small
        if self.settled:
            raise StopIteration

    def count(self, *_: object) -> None:
        """Count an iteration."""
        self.iterations += 1
        if self.progress is not None:
            self.progress(self.iterations, self.value, self.theta)


def _lbfgs(function: _Walled, iterations: int, seed: int, *, gradient: float = _GRADIENT) -> Any:
    """Quasi-Newton with limited memory, in a box."""
    from scipy.optimize import Bounds, minimize

    return minimize(
        function,
        function.best,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(function.box[:, 0], function.box[:, 1]),
        callback=function.report,
        # A gain in nats ends it, not one relative to the value, which has the data's units in it.
        options={
            "maxiter": iterations,
            "maxcor": max(_MEMORY, function.start.size),
            "ftol": 0.0,
            "gtol": gradient,
        },
    )


def _finish(function: _Walled, iterations: int, seed: int) -> Any:
    """L-BFGS from the best point so far to the very minimum.

    Where a path magnifies the rounding of the data's units, only its end is the same in all units.
    """
    function.expect(_FINE_TOLERANCE)
    result = _lbfgs(function, iterations, seed, gradient=_FINE_GRADIENT)
    # A line search that sees nothing but rounding gives up: what counts is how flat it is there.
    free = result.x - np.clip(result.x - result.jac, function.box[:, 0], function.box[:, 1])
    result.success = result.success or bool(np.abs(free).max(initial=0.0) < _GRADIENT)
    return result


def _cg(function: _Walled, iterations: int, seed: int) -> Any:
    """Conjugate gradients, a sine maps the real line to the box; then L-BFGS to the end."""
    from scipy.optimize import minimize

    middle, half = function.box.mean(axis=1), 0.5 * np.ptp(function.box, axis=1)

    def unbounded(x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = function(middle + half * np.sin(x))
        return value, gradient * half * np.cos(x)

    with np.errstate(invalid="ignore", divide="ignore"):
        place = np.where(half > 0.0, (function.best - middle) / half, 0.0)
    minimize(
        unbounded,
        np.arcsin(np.clip(place, -0.999, 0.999)),
        jac=True,
        method="CG",
        callback=function.report,
        options={"maxiter": iterations, "gtol": _GRADIENT},
    )
    return _finish(function, iterations, seed)


def _annealing(function: _Walled, iterations: int, seed: int) -> Any:
    """Generalised simulated annealing, then L-BFGS from the best point it met."""
    from scipy.optimize import dual_annealing

    dual_annealing(
        lambda x: function(x)[0],
        function.box,
        x0=function.best,
        maxfun=10 * iterations,
        no_local_search=True,
        rng=np.random.default_rng(seed),
        callback=function.count,
    )
    return _finish(function, iterations, seed)


OPTIMIZERS: dict[str, Callable[[_Walled, int, int], Any]] = {
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
    watch: Watching = UNWATCHED,
    optimizer: str = "l-bfgs",
    seed: int = 0,
    gain: float = _TOLERANCE,
) -> Optimum:
    """Look at each start for a few iterations, then follow the best one to convergence.

    A start where no covariance can be
    factorised is passed over while another can. A watch hears of each start and iteration.

    Raises
    ------
    NotPositiveDefiniteError
        If that is so at every start.
    """

    def each(iteration: int, value: float, theta: FloatArray) -> None:
        watch(iteration, value, theta)
        if progress is not None:
            progress(iteration, value, theta)

    def search(start: FloatArray, iterations: int, number: int = 0) -> Optimum:
        watch.begin(number + 1, len(starts))
        return minimise(
            objective,
            start,
            bounds,
            progress=each,
            iterations=iterations,
            optimizer=optimizer,
            seed=seed,
            gain=gain,
        )

    if len(starts) == 1:
        return search(starts[0], _MAX_ITERATIONS)
    scouts: dict[int, Optimum] = {}
    failures: list[NotPositiveDefiniteError] = []
    for number, start in enumerate(starts):
        try:
            scouts[number] = search(start, _SCOUT_ITERATIONS, number)
        except NotPositiveDefiniteError as error:
            failures.append(error)
    if not scouts:
        raise failures[0]
    best = min(scouts, key=lambda number: scouts[number].value)
    final = search(scouts[best].theta, _MAX_ITERATIONS, best)
    evaluations = final.evaluations + sum(s.evaluations for s in scouts.values())
    return replace(final, evaluations=evaluations)
