"""Probabilities of two normal variables at once."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, owens_t

from xcopula.arrays import FloatArray

__all__ = ["both_above"]

_TINY = 1e-200  # Owen's formula divides by the thresholds
_FAR = 40.0  # beyond, a normal probability is zero


def both_above(first: FloatArray, second: FloatArray, correlation: FloatArray) -> FloatArray:
    """Return the probability that two standard normal variables both exceed a threshold each.

    By Owen's T function, to 1e-15; thresholds may be infinite, correlations up to one.
    """
    h, k, rho = np.broadcast_arrays(-first, -second, correlation)
    unknown = np.isnan(h) | np.isnan(k) | np.isnan(rho)
    h, k = (np.clip(np.where(x == 0.0, _TINY, x), -_FAR, _FAR) for x in (h, k))
    left = np.sqrt(np.maximum((1.0 - rho) * (1.0 + rho), 0.0))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slopes = (k - rho * h) / (h * left), (h - rho * k) / (k * left)
    # Both are one line, or opposite: the slope is infinite, or nothing divided by nothing.
    one, other = (np.where(np.isnan(s), 0.0, s) for s in slopes)
    inner = 0.5 * (ndtr(h) + ndtr(k)) - owens_t(h, one) - owens_t(k, other)
    found = np.clip(inner - np.where(h * k < 0.0, 0.5, 0.0), 0.0, 1.0)
    found = np.where(rho >= 1.0, ndtr(np.minimum(h, k)), found)
    found = np.where(rho <= -1.0, np.maximum(ndtr(h) - ndtr(-k), 0.0), found)
    return np.where(unknown, np.nan, found)
