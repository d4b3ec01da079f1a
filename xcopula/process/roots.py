"""Roots of increasing functions between two points, many at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

__all__ = ["find_roots"]

FloatArray = npt.NDArray[np.float64]

_ROUNDS = 100
# A root is found where the function is this close to zero, or its bracket this narrow.
_FLAT, _NARROW = 1e-11, 4e-16


def find_roots(
    function: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return where a function is zero, at each of some places.

    Each place has its own bracket and its own end, so that its root does not depend on which others
    are sought beside it. The steps are Chandrupatla's: inverse quadratic where three points lie
    well for it, halving where not.

    Parameters
    ----------
    function : callable
        Takes and returns values (m,). It increases, and changes its sign between low and high;
        where rounding hides that, the nearer end is the root.
    low, high : ndarray (m,)
        NaN gives NaN.
    """
    a, b = high.copy(), low.copy()
    with np.errstate(invalid="ignore"):
        fa, fb = function(a), function(b)
    c, fc = a.copy(), fa.copy()
    best, least = np.where(np.abs(fa) < np.abs(fb), a, b), np.minimum(np.abs(fa), np.abs(fb))
    open_ = (fa > 0.0) & (fb < 0.0) & (least > _FLAT) & np.isfinite(a) & np.isfinite(b)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(open_, fa / (fa - fb), 0.5)  # the functions here are nearly straight
    for _ in range(_ROUNDS):
        if not open_.any():
            break
        x = np.where(open_, a + t * (b - a), best)
        fx = function(x)
        same = np.sign(fx) == np.sign(fa)
        # c is the point that the bracket loses, so that three points are known.
        move = open_ & ~same
        c, fc = np.where(open_, a, c), np.where(open_, fa, fc)
        c, fc = np.where(move, b, c), np.where(move, fb, fc)
        b, fb = np.where(move, a, b), np.where(move, fa, fb)
        a, fa = np.where(open_, x, a), np.where(open_, fx, fa)
        nearer = open_ & (np.abs(fx) < least)
        best, least = np.where(nearer, x, best), np.where(nearer, np.abs(fx), least)
        width = np.abs(b - a)
        open_ &= (least > _FLAT) & (width > _NARROW * np.maximum(np.abs(a), np.abs(b)))
        t = _step(a, b, c, fa, fb, fc)
    return best


def _step(
    a: FloatArray, b: FloatArray, c: FloatArray, fa: FloatArray, fb: FloatArray, fc: FloatArray
) -> FloatArray:
    """Return how far to go from a to b: by three points where that is safe, else half-way."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        safe = (phi**2 < xi) & ((1.0 - phi) ** 2 < 1.0 - xi)
        step = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return np.where(safe & np.isfinite(step), np.clip(step, 1e-9, 1.0 - 1e-9), 0.5)
