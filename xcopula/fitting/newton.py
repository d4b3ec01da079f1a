"""Newton's method in a box and a trust region, with the information matrix of a likelihood.

Without an information matrix the curvature is that of secant corrections alone (BFGS).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from xcopula.arrays import FloatArray
from xcopula.errors import NotPositiveDefiniteError
from xcopula.fitting.watch import Watch

__all__ = ["Loss", "Optimum", "minimise", "minimise_from", "units"]

# Value, gradient and information at a point; no information where it is unknown.
Loss = Callable[[FloatArray], tuple[float, FloatArray, FloatArray | None]]

_ITERATIONS = 300
# Two iterations that gain less nats than this are the last.
_TOLERANCE = 3e-4
# Iterations from each of several starts, before the best one is followed to the end.
_SCOUT_ITERATIONS = 15
# A box is so many units wide: the location of a marginal lies within four scales.
_BOX = 8.0
# Radius of the trust region in units of the parameters: at first, and at most.
_RADIUS, _WIDEST = 1.0, 8.0
# A step is kept if it gains this share of what was promised. The region shrinks where it gains less
# than the second share, and grows where it gains more than the third.
_KEPT, _POOR, _GOOD = 1e-4, 0.25, 0.75
_SHRINK, _GROW = 0.25, 2.5
# Steps so short are the last.
_SHORTEST = 1e-7
# Secant corrections of the information: the last steps and how the slope changed along them.
_MEMORY = 3
# A correction is mixed with what was known, unless it is at least this share of it.
_DAMPING = 0.2
# Least curvature, of the largest.
_FLAT = 1e-6
_BISECTIONS = 60


@dataclass(frozen=True)
class Optimum:
    """Where a search ended.

    Attributes
    ----------
    theta : ndarray
    value : float
    converged : bool
    message : str
    evaluations : int
    information : ndarray or None
        At theta.
    prepared : ndarray or None
        Parameters at which neighbours and blocks were chosen last, where the search chose them.
    """

    theta: FloatArray
    value: float
    converged: bool
    message: str
    evaluations: int
    information: FloatArray | None = None
    prepared: FloatArray | None = None


def units(bounds: FloatArray) -> FloatArray:
    """Return the unit of each parameter: a share of the width of its box (size, 2)."""
    width = np.ptp(bounds, axis=1)
    return np.asarray(np.where(width > 0.0, width, 1.0) / _BOX)


def minimise(
    loss: Loss,
    start: FloatArray,
    bounds: FloatArray,
    *,
    watch: Watch | None = None,
    gain: float = _TOLERANCE,
    promise: float | None = None,
    iterations: int = _ITERATIONS,
) -> Optimum:
    """Minimise in a box.

    Where the function is infinite (a value left the support of its marginal, or a matrix was not
    positive definite) steps are taken back.

    Parameters
    ----------
    loss : callable
    start : ndarray (p,)
    bounds : ndarray (p, 2)
    watch : Watch, optional
        Called after each step.
    gain : float
        Two successive steps that gain less are the last.
    promise : float, optional
        A step that promises less is not made; ``gain`` by default.
    iterations : int
        Steps at most.

    Raises
    ------
    NotPositiveDefiniteError
        If the function raises it at the start.
    """
    promise, unit = gain if promise is None else promise, units(bounds)
    theta = np.clip(start, bounds[:, 0], bounds[:, 1])
    value, slope, matrix = loss(theta)
    evaluations, radius, small = 1, _RADIUS, 0
    if not (np.isfinite(value) and np.isfinite(slope).all()):
        message = "the likelihood is zero at every point that was tried"
        return Optimum(theta, np.inf, False, message, evaluations)
    pairs: list[tuple[FloatArray, FloatArray]] = []

    def ended(converged: bool, message: str) -> Optimum:
        return Optimum(theta, value, converged, message, evaluations, matrix)

    for iteration in range(1, iterations + 1):
        curvature = _curvature(matrix, unit, pairs)
        pull, room = slope * unit, (bounds - theta[:, None]) / unit[:, None]
        while True:
            step = _step(curvature, pull, room, radius)
            new = np.clip(theta + unit * step, bounds[:, 0], bounds[:, 1])
            promised = -float(pull @ step) - 0.5 * float(step @ curvature @ step)
            if promised < promise:
                return ended(True, f"a step promises less than {promise:g} nats")
            try:
                new_value, new_slope, new_matrix = loss(new)
            except NotPositiveDefiniteError:
                new_value, new_slope, new_matrix = np.inf, slope, None
            evaluations += 1
            fine = np.isfinite(new_value) and np.isfinite(new_slope).all()
            share = (value - new_value) / promised if fine else -1.0
            length = float(np.linalg.norm(step))
            if share < _POOR:
                radius = _SHRINK * length
            elif share > _GOOD and length > 0.8 * radius:
                radius = min(_GROW * radius, _WIDEST)
            if share > _KEPT:
                break
            if radius < _SHORTEST:
                return ended(False, "no step along the slope gains")
        pairs.append((step, (new_slope - slope) * unit))
        small = small + 1 if value - new_value < gain else 0
        theta, value, slope, matrix = new, new_value, new_slope, new_matrix
        if watch is not None:
            watch(iteration, value, theta)
        if small >= 2:
            return ended(True, f"two iterations gained less than {gain:g} nats each")
    return ended(False, f"{iterations} iterations were not enough")


def minimise_from(
    loss: Loss,
    starts: Sequence[FloatArray],
    bounds: FloatArray,
    *,
    watch: Watch | None = None,
    gain: float = _TOLERANCE,
) -> Optimum:
    """Search from each start for a few iterations, then from the best one to convergence.

    A start where no covariance can be factorised is passed over while another can.

    Raises
    ------
    NotPositiveDefiniteError
        If that is so at every start.
    """

    def search(start: FloatArray, number: int, iterations: int = _ITERATIONS) -> Optimum:
        if watch is not None:
            watch.begin(number + 1, len(starts))
        return minimise(loss, start, bounds, watch=watch, gain=gain, iterations=iterations)

    if len(starts) == 1:
        return search(starts[0], 0)
    scouts: dict[int, Optimum] = {}
    failures: list[NotPositiveDefiniteError] = []
    for number, start in enumerate(starts):
        try:
            scouts[number] = search(start, number, _SCOUT_ITERATIONS)
        except NotPositiveDefiniteError as error:
            failures.append(error)
    if not scouts:
        raise failures[0]
    best = min(scouts, key=lambda number: scouts[number].value)
    final, evaluations = scouts[best], sum(scout.evaluations for scout in scouts.values())
    if not final.converged:
        final = search(final.theta, best)
        evaluations += final.evaluations
    return replace(final, evaluations=evaluations)


def _curvature(
    matrix: FloatArray | None, unit: FloatArray, pairs: Sequence[tuple[FloatArray, FloatArray]]
) -> FloatArray:
    """Return the curvature in units of the parameters: the information with secant corrections."""
    if matrix is not None:
        curvature, pairs = _positive(matrix * np.outer(unit, unit)), pairs[-_MEMORY:]
    else:
        scales = [float(y @ y) / float(s @ y) for s, y in pairs if float(s @ y) > 0.0]
        curvature = (scales[-1] if scales else 1.0) * np.eye(unit.size)
    for step, change in pairs:
        curvature = _corrected(curvature, step, change)
    return curvature


def _positive(matrix: FloatArray) -> FloatArray:
    """Return a symmetric matrix with the absolute values of its eigenvalues.

    Where a marginal is far from its values some entries overflow: these count as unknown.
    """
    matrix = np.where(np.isfinite(matrix), matrix, 0.0)
    bends, axes = np.linalg.eigh(0.5 * (matrix + matrix.T))
    bends = np.maximum(np.abs(bends), _FLAT * np.abs(bends).max(initial=1e-300))
    return np.asarray((axes * bends) @ axes.T)


def _corrected(curvature: FloatArray, step: FloatArray, change: FloatArray) -> FloatArray:
    """Return the curvature that also explains how the slope changed along a step: damped BFGS."""
    image = curvature @ step
    bend, seen = float(step @ image), float(step @ change)
    if bend <= 0.0:
        return curvature
    if seen < _DAMPING * bend:
        share = (1.0 - _DAMPING) * bend / (bend - seen)
        change = share * change + (1.0 - share) * image
    return np.asarray(
        curvature - np.outer(image, image) / bend + np.outer(change, change) / float(step @ change)
    )


def _step(curvature: FloatArray, pull: FloatArray, room: FloatArray, radius: float) -> FloatArray:
    """Return the step that is best within a radius and a box.

    It goes towards the best point of the free parameters. Where it meets a face of the box, that
    parameter stays there and the others go on: what is promised grows on the whole way.
    """
    step, free = np.zeros(pull.size), ~((room[:, 0] >= 0.0) & (pull > 0.0))
    free &= ~((room[:, 1] <= 0.0) & (pull < 0.0))
    while free.any():
        bends, axes = np.linalg.eigh(curvature[np.ix_(free, free)])
        bends = np.maximum(np.abs(bends), _FLAT * np.abs(bends).max(initial=1e-300))
        along = axes.T @ (pull + curvature @ step)[free]
        part = np.zeros(pull.size)
        left = max(radius - float(np.linalg.norm(step)), _SHORTEST * radius)
        part[free] = axes @ _within(along, bends, left)
        face = np.where(part > 0.0, room[:, 1], room[:, 0])
        shares = np.ones(pull.size)
        np.divide(face - step, part, out=shares, where=part != 0.0)
        share = float(shares.min())
        if share >= 1.0:
            return step + part
        step += share * part
        met = shares <= share
        step[met] = face[met]
        free &= ~met
    return step


def _within(along: FloatArray, bends: FloatArray, radius: float) -> FloatArray:
    """Return the step, by its parts along the eigenvectors, that is best within a radius."""
    step = -along / bends
    if np.linalg.norm(step) <= radius:
        return step
    low, high = 0.0, float(np.linalg.norm(along)) / radius
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        step = -along / (bends + middle)
        low, high = (middle, high) if np.linalg.norm(step) > radius else (low, middle)
    return np.asarray(-along / (bends + high))
