"""Probabilities in logarithms: the arithmetic that every marginal law shares.

A normal score is always computed from the smaller of the two tail probabilities, in logarithms,
so that nothing saturates at 0 or 1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import exprel, log_ndtr, ndtri_exp

__all__ = [
    "Array",
    "log_between",
    "log_phi",
    "normal_score",
    "smaller_tail",
    "stretch",
    "stretch_slope",
    "unstretch",
]

Array = npt.NDArray[np.float64]

_LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)
_SERIES_RADIUS = 0.05
# (x/(1+x) - log1p(x)) / x^2 = sum_k (-1)^(k+1) (k+1)/(k+2) x^k, to 1e-17 within the radius
_SLOPE_SERIES = [(-1.0) ** (k + 1) * (k + 1) / (k + 2) for k in range(14)]
# Half widths of an interval, in units of the scale on which the density changes, for its series.
_NARROW = 0.03


def log_phi(z: npt.ArrayLike) -> Array:
    """Evaluate the log density of the standard normal law."""
    z = np.asarray(z, dtype=np.float64)
    return np.asarray(-0.5 * z * z - _LOG_SQRT_2PI)


def normal_score(log_cdf: Array, log_sf: Array) -> Array:
    """Turn the logarithms of F(y) and 1 - F(y) into z, using the smaller of the two."""
    lower = log_cdf <= log_sf
    magnitude = ndtri_exp(np.where(lower, log_cdf, log_sf))
    return np.asarray(np.where(lower, magnitude, -magnitude))


def smaller_tail(z: npt.ArrayLike) -> Array:
    """Evaluate log Phi(-|z|), the log probability of the tail on z's own side."""
    return np.asarray(log_ndtr(-np.abs(np.asarray(z, dtype=np.float64))))


def log_between(low: npt.ArrayLike, high: npt.ArrayLike) -> Array:
    """Evaluate log(Phi(high) - Phi(low)) for low <= high, also far out and where they are close.

    The difference is that of the tails on their own side of zero. A narrow interval has a series
    about its middle: there the tails agree in most digits.
    """
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    if high.ndim == 0 and high == np.inf:
        return np.asarray(log_ndtr(-low))
    if low.ndim == 0 and low == -np.inf:
        return np.asarray(log_ndtr(high))
    with np.errstate(divide="ignore", invalid="ignore"):
        # by symmetry, the interval with the smaller probabilities
        flip = low + high > 0.0
        a, b = np.where(flip, -high, low), np.where(flip, -low, high)
        upper = log_ndtr(b)
        out = np.asarray(upper + np.log(-np.expm1(log_ndtr(a) - upper)))
        narrow = 0.5 * (b - a) * (1.0 + 0.5 * np.abs(a + b)) < _NARROW
        if narrow.any():
            out[narrow] = _log_narrow(a[narrow], b[narrow])
    return np.where(low == high, -np.inf, out)


def _log_narrow(low: Array, high: Array) -> Array:
    """Evaluate log(Phi(high) - Phi(low)) of narrow intervals."""
    half, middle = 0.5 * (high - low), 0.5 * (low + high)
    h, m = half**2, middle**2
    # 1/2h times the integral of phi(m + t) / phi(m) over |t| < h
    terms = (m - 1.0) * h / 6.0 + (m * m - 6.0 * m + 3.0) * h * h / 120.0
    terms += (m**3 - 15.0 * m * m + 45.0 * m - 15.0) * h**3 / 5040.0
    return np.asarray(log_phi(middle) + np.log(2.0 * half) + np.log1p(terms))


def stretch(s: Array, shape: float) -> Array:
    r"""Evaluate the reduced variate of extreme value theory.

    .. math:: g = \log(1 + \xi s) / \xi, \qquad g = s \text{ at } \xi = 0

    ``log1p(x) / x`` is accurate for every x but 0, so that no series is needed. Values of s past
    the end of the support give an infinite g on the side of that end.
    """
    if shape == 0.0:
        return s
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.log1p(np.maximum(shape * s, -1.0)) / shape)


def unstretch(g: Array, shape: float) -> Array:
    r"""Invert :func:`stretch`: :math:`s = (e^{\xi g} - 1) / \xi`."""
    if shape == 0.0:
        return g
    with np.errstate(over="ignore", invalid="ignore"):
        s = g * exprel(shape * g)
    # inf * exprel(-inf) is undefined in floating point; its limit is the end of the support
    return np.where(np.isinf(g) & (shape * g < 0.0), -1.0 / shape, s)


def stretch_slope(s: Array, shape: float) -> Array:
    r"""Evaluate dg/dxi of :func:`stretch` at fixed s.

    .. math:: \partial g / \partial\xi = s^2 \, \frac{x/(1+x) - \log(1+x)}{x^2}, \qquad x = \xi s
    """
    x = np.asarray(shape * s)
    near = np.asarray(np.abs(x) < _SERIES_RADIUS)
    safe = np.where(near, 1.0, x)
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.asarray((safe / (1.0 + safe) - np.log1p(safe)) / (safe * safe))
    out[near] = np.polynomial.polynomial.polyval(x[near], _SLOPE_SERIES)
    return np.asarray(s * s * out)
