"""Newton's method in a trust region, with the information matrix of a likelihood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xcopula.errors import NotPositiveDefiniteError

__all__ = ["Descent", "Informed", "descend"]

FloatArray = npt.NDArray[np.float64]
# Value, gradient and information at a point; no information where the value is infinite.
Informed = Callable[[FloatArray], tuple[float, FloatArray, FloatArray | None]]

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
class Descent:
    """Where a search ended.

    Attributes
    ----------
    theta : ndarray
    value : float
    information : ndarray or None
        At theta.
    evaluations : int
    converged : bool
    message : str
    """

    theta: FloatArray
    value: float
    information: FloatArray | None
    evaluations: int
    converged: bool
    message: str


def descend(
    function: Informed,
    start: FloatArray,
    bounds: FloatArray,
    unit: FloatArray,
    *,
    gain: float,
    promise: float,
    iterations: int,
    report: Callable[[int, float, FloatArray], object],
) -> Descent:
    """Minimise in a box (p, 2).

    Parameters
    ----------
    function : callable
    start : ndarray (p,)
    bounds : ndarray (p, 2)
    unit : ndarray (p,)
        Units of the parameters, in which the trust region is a ball.
    gain : float
        Two steps in a row that gain less are the last.
    promise : float
        A step that promises less is not made.
    iterations : int
        Steps at most.
    report : callable
        Called as ``report(iteration, value, theta)`` after each step.

    Raises
    ------
    NotPositiveDefiniteError
        If the function raises it at the start.
    """
    theta = np.clip(start, bounds[:, 0], bounds[:, 1])
    value, slope, matrix = function(theta)
    evaluations, radius, small = 1, _RADIUS, 0
    if not np.isfinite(value) or matrix is None or not np.isfinite(slope).all():
        message = "the likelihood is zero at every point that was tried"
        return Descent(theta, np.inf, None, evaluations, False, message)
    pairs: list[tuple[FloatArray, FloatArray]] = []

    def ended(converged: bool, message: str) -> Descent:
        return Descent(theta, value, matrix, evaluations, converged, message)

    for iteration in range(1, iterations + 1):
        curvature = _positive(matrix * np.outer(unit, unit))
        for step, change in pairs[-_MEMORY:]:
            curvature = _corrected(curvature, step, change)
        pull = slope * unit
        low, high = theta <= bounds[:, 0], theta >= bounds[:, 1]
        free = np.flatnonzero(~((low & (pull > 0.0)) | (high & (pull < 0.0))))
        bends, axes = np.linalg.eigh(curvature[np.ix_(free, free)])
        bends = np.maximum(np.abs(bends), _FLAT * np.abs(bends).max(initial=1e-300))
        along = axes.T @ pull[free]
        while True:
            step = np.zeros(theta.size)
            step[free] = axes @ _within(along, bends, radius)
            new = np.clip(theta + unit * step, bounds[:, 0], bounds[:, 1])
            step = (new - theta) / unit
            inner = axes.T @ step[free]
            promised = -float(pull @ step) - 0.5 * float(inner @ (bends * inner))
            if promised < promise:
                return ended(True, f"a step promises less than {promise:g} nats")
            try:
                new_value, new_slope, new_matrix = function(new)
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
            if share > _KEPT and new_matrix is not None:
                break
            if radius < _SHORTEST:
                return ended(False, "no step along the slope gains")
        pairs.append((step, (new_slope - slope) * unit))
        small = small + 1 if value - new_value < gain else 0
        theta, value, slope, matrix = new, new_value, new_slope, new_matrix
        report(iteration, value, theta)
        if small >= 2:
            return ended(True, f"two iterations gained less than {gain:g} nats each")
    return ended(False, f"{iterations} iterations were not enough")


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
