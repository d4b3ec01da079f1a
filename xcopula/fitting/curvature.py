"""What a search has learnt of how a function bends, and how another search goes on with it.

Stages of a fit minimise nearly the same function again and again: with other neighbours, on more
terms, with another slope. How it bends hardly changes, and to learn that takes most of a search:
one evaluation or more for each parameter. So a stage begins with what the last one knew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Descent", "descend", "learnt", "measured", "updated"]

FloatArray = npt.NDArray[np.float64]
Function = Callable[[FloatArray], tuple[float, FloatArray]]

# A step must gain this share of what the slope promises; else it is cut, by these factors at most.
_ENOUGH, _CUTS = 1e-4, (0.1, 0.5)
_MOST_CUTS = 20
# No coordinate moves by more than a unit at once: so far no curvature is known.
_LONGEST = 1.0
# What a step says of the curvature is mixed with what was known, unless it is at least this share.
_DAMPING = 0.2
# A curvature is measured over steps of so many units. Where the function bends down, or hardly, it
# is taken to bend up by this share of the most at least.
_STEP, _LEAST_BEND = 0.01, 1e-8


@dataclass(frozen=True)
class Descent:
    """Where a descent ended, in the terms of :func:`scipy.optimize.minimize`."""

    success: bool
    message: str


def learnt(
    points: Sequence[FloatArray], slopes: Sequence[FloatArray], known: FloatArray | None = None
) -> FloatArray | None:
    """Return the matrix of second derivatives that a search's points and slopes suggest.

    It is positive definite. Without steps to learn from it is what was known before.
    """
    pairs = list(zip(points[:-1], points[1:], slopes[:-1], slopes[1:], strict=True))
    steps = [(b - a, v - u) for a, b, u, v in pairs if (b - a) @ (v - u) > 0.0]
    if not steps:
        return known
    if known is None:
        step, change = steps[-1]
        known = np.eye(step.size) * (change @ change) / (step @ change)
    for step, change in steps:
        known = updated(known, step, change)
    return known


def measured(
    function: Function, x: FloatArray, unit: FloatArray, box: FloatArray
) -> FloatArray | None:
    """Return the matrix of second derivatives at x, by how the slope changes in each coordinate.

    It takes one evaluation, and one for each coordinate: steps of a small part of its unit that
    stay in the box (size, 2). It is made positive definite. None, where a value is infinite.

    Raises
    ------
    NotPositiveDefiniteError
        As the function does.
    """
    _, slope = function(x)
    found = np.empty((x.size, x.size))
    for row, k in zip(found, range(x.size), strict=True):
        step = _STEP * unit[k]
        moved = x.copy()
        moved[k] += step if x[k] + step <= box[k, 1] else -step
        value, there = function(moved)
        if not np.isfinite(value):
            return None
        row[:] = (there - slope) * (unit * unit[k] / (moved[k] - x[k]))
    if not np.isfinite(found).all():
        return None
    bends, axes = np.linalg.eigh(0.5 * (found + found.T))
    bends = np.maximum(np.abs(bends), _LEAST_BEND * np.abs(bends).max())
    return np.asarray((axes * bends) @ axes.T / np.outer(unit, unit))


def updated(curvature: FloatArray, step: FloatArray, change: FloatArray) -> FloatArray:
    """Return the curvature that also explains how the slope changed along a step."""
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


def descend(
    function: Function,
    x: FloatArray,
    box: FloatArray,
    curvature: FloatArray,
    iterations: int,
    report: Callable[[], object],
    promise: float = 0.0,
) -> Descent:
    """Minimise in a box (size, 2) from x on, by Newton's steps with a curvature that is known.

    Coordinates that lie on the box, and are drawn out of it, stay there for that step. The
    curvature is updated on the way. ``report`` is called after each step; StopIteration ends all. A
    step that would gain less than ``promise`` by what is known is not made.
    """
    value, slope = function(x)
    for _ in range(iterations):
        if not slope.any():
            return Descent(True, "it is flat")
        low, high = x <= box[:, 0], x >= box[:, 1]
        free = np.flatnonzero(~((low & (slope > 0.0)) | (high & (slope < 0.0))))
        step = np.zeros_like(x)
        step[free] = np.linalg.solve(curvature[np.ix_(free, free)], -slope[free])
        if -0.5 * float(slope @ step) < promise:
            return Descent(True, f"a step promises less than {promise:g} nats")
        step *= min(1.0, _LONGEST / max(float(np.abs(step).max(initial=0.0)), 1e-300))
        found = _along(function, x, value, slope, step, box)
        if found is None:
            return Descent(False, "no step along the slope gains")
        new, new_value, new_slope = found
        if (new_slope - slope).any():
            curvature = updated(curvature, new - x, new_slope - slope)
        x, value, slope = new, new_value, new_slope
        try:
            report()
        except StopIteration:
            return Descent(True, "stopped by its watch")
    return Descent(False, f"{iterations} iterations were not enough")


def _along(
    function: Function,
    x: FloatArray,
    value: float,
    slope: FloatArray,
    step: FloatArray,
    box: FloatArray,
) -> tuple[FloatArray, float, FloatArray] | None:
    """Return a point along a step, kept in the box, that gains enough; its value and slope."""
    share = 1.0
    for _ in range(_MOST_CUTS):
        new = np.clip(x + share * step, box[:, 0], box[:, 1])
        promised = float(slope @ (new - x))
        new_value, new_slope = function(new)
        if new_value <= value + _ENOUGH * promised:
            return new, new_value, new_slope
        # The parabola through both values and the slope has its minimum there.
        best = -0.5 * promised / (new_value - value - promised)
        share *= float(np.clip(best, *_CUTS))
    return None
