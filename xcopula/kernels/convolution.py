r"""Cross-correlations of two kernels by process convolution, valid in any dimension.

Two processes that smooth the *same* white noise have the cross-spectrum
:math:`\sqrt{S_1(k) S_2(k)}`, a rank-one spectral matrix at every frequency: that is what makes the
joint covariance positive definite. It has to be taken in the dimension D of the inputs. The closed
forms known for D = 1, fed a Euclidean distance in the plane, are not positive definite.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy.special import gammaln

from xcopula.arrays import FloatArray
from xcopula.kernels.base import CrossProfile, Kernel
from xcopula.kernels.matern import Matern, matern_function
from xcopula.kernels.se import SquaredExponential

__all__ = ["CrossProfile", "cross_profile", "known_spectra"]

# The families whose spectra are known here: every pair of them has a closed form or a short rule.
_FAMILIES = (Matern, SquaredExponential)
# From this ratio of length scales on, two Matern kernels have a wider rule.
_FAR = 50.0


def cross_profile(
    first: Kernel, second: Kernel, length1: float, length2: float, dimension: int, r: FloatArray
) -> CrossProfile:
    """Evaluate the convolution cross-correlation of two kernels.

    Parameters
    ----------
    first, second : Kernel
    length1, length2 : float
        Length scales.
    dimension : int
        Dimension D of the space in which r is a Euclidean distance.
    r : ndarray (m,)
        Distances; the curvature at r = 0 may be any finite value, where the limit is infinite.

    Returns
    -------
    CrossProfile
        The derivative by the second log length scale is ``-r * slope - by_first``.
    """
    if not known_spectra(first, second):
        return _own_profile(first, second, length1, length2, dimension, r)
    smooth1, smooth2 = math.isinf(first.smoothness), math.isinf(second.smoothness)
    if smooth1 and smooth2:
        return _se_se(length1, length2, dimension, r)
    if smooth1:
        return _se_matern(length1, second.smoothness, length2, dimension, r)
    if smooth2:
        return _swapped(_se_matern(length2, first.smoothness, length1, dimension, r), r)
    return _matern_matern(first.smoothness, length1, second.smoothness, length2, dimension, r)


def known_spectra(*kernels: Kernel) -> bool:
    """Tell whether all kernels are of the families that can be convolved with each other."""
    return all(isinstance(kernel, _FAMILIES) for kernel in kernels)


def _own_profile(
    first: Kernel, second: Kernel, length1: float, length2: float, dimension: int, r: FloatArray
) -> CrossProfile:
    """Ask the kernels themselves for their cross-correlation."""
    if hasattr(first, "cross"):
        profile = first.cross(second, length1, length2, dimension, r)
        if profile is not NotImplemented:
            return CrossProfile(*profile)
    if hasattr(second, "cross"):
        profile = second.cross(first, length2, length1, dimension, r)
        if profile is not NotImplemented:
            return _swapped(CrossProfile(*profile), r)
    raise ValueError(
        f"coupling='convolution' does not know the cross-correlation of the kernels "
        f"{first.name!r} and {second.name!r}. Use coupling='icm' or 'lmc', which share one kernel "
        "between all variables, or give one of the two a method "
        "cross(other, length1, length2, dimension, r)."
    )


def _swapped(profile: CrossProfile, r: FloatArray) -> CrossProfile:
    """Change the places of the tasks: the derivatives by both lengths and by r add up to zero."""
    return profile._replace(
        by_first=-r * profile.slope - profile.by_first,
        by_first_slope=-profile.slope - r * profile.curvature - profile.by_first_slope,
    )


def _se_se(length1: float, length2: float, dimension: int, r: FloatArray) -> CrossProfile:
    total = length1**2 + length2**2
    value = (2.0 * length1 * length2 / total) ** (dimension / 2) * np.exp(-(r**2) / total)
    rate = 2.0 * length1**2 / total
    factor = dimension / 2 * (1.0 - rate) + rate * r**2 / total
    slope = -2.0 * r / total * value
    return CrossProfile(
        value=value,
        slope=slope,
        curvature=(4.0 * r**2 / total - 2.0) / total * value,
        by_first=factor * value,
        by_first_slope=factor * slope + rate * 2.0 * r / total * value,
    )


@functools.lru_cache(maxsize=64)
def _beta_rule(p1: float, p2: float, *, far: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return nodes u, 1 - u and weights of the Beta(p1, p2) expectation.

    The trapezoid rule in the log odds of u; the sinh shortens the tails, where nothing happens but
    exponential decay. Where the length scales differ ``far``, by orders of magnitude, something
    does at twice the log of their ratio: the tails then begin further out.
    """
    step, width = (0.55, 5.0) if far else (0.4, 2.0)
    v = np.arange(-70, 71) * step
    log_odds = v + 0.05 * np.sinh(v / width)
    keep = np.where(log_odds > 0.0, p2, p1) * np.abs(log_odds) < 38.0
    v, log_odds = v[keep], log_odds[keep]
    log_u, log_v = -np.logaddexp(0.0, -log_odds), -np.logaddexp(0.0, log_odds)
    log_beta = gammaln(p1) + gammaln(p2) - gammaln(p1 + p2)
    jacobian = step * (1.0 + 0.05 / width * np.cosh(v / width))
    return np.exp(log_u), np.exp(log_v), jacobian * np.exp(p1 * log_u + p2 * log_v - log_beta)


def _matern_matern(
    nu1: float, length1: float, nu2: float, length2: float, dimension: int, r: FloatArray
) -> CrossProfile:
    half = dimension / 2
    a1, a2 = math.sqrt(2.0 * nu1) / length1, math.sqrt(2.0 * nu2) / length2
    nu = 0.5 * (nu1 + nu2)
    far = not 1.0 / _FAR < length1 / length2 < _FAR
    u, v, weights = _beta_rule(0.5 * (nu1 + half), 0.5 * (nu2 + half), far=far)
    squared = u * a1**2 + v * a2**2
    alpha = np.sqrt(squared)
    log_constant = (
        0.5 * (gammaln(nu1 + half) - gammaln(nu1) + gammaln(nu2 + half) - gammaln(nu2))
        - (gammaln(nu + half) - gammaln(nu))
        + nu1 * math.log(a1)
        + nu2 * math.log(a2)
    )
    weights = weights * np.exp(log_constant - nu * np.log(squared))
    share = u * a1**2 / squared
    m, dm = matern_function(nu, np.outer(r, alpha))
    # x = alpha r is a product, so every sum over the rule is a column of one of two products.
    value, pull, slope_pull, second = (
        m
        @ np.column_stack(
            [
                weights,
                weights * (nu1 - 2.0 * nu * share),
                weights * squared * share,
                weights * squared,
            ]
        )
    ).T
    slope, slope_share = (dm @ np.column_stack([weights * alpha, weights * alpha * share])).T
    # M'' = M + (2 nu - 1) M' / x, summed before the division by r.
    safe = np.where(r > 0.0, r, 1.0)
    return CrossProfile(
        value=value,
        slope=slope,
        curvature=second + np.where(r > 0.0, (2.0 * nu - 1.0) * slope / safe, 0.0),
        by_first=-(pull + r * slope_share),
        by_first_slope=-(nu1 * slope + r * slope_pull),
    )


@functools.lru_cache(maxsize=64)
def _gamma_rule(p: float) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of the Gamma(p) expectation, by the same rule in log t."""
    step = 0.2
    v = np.arange(-80, 19) * step
    log_t = v + 0.05 * np.sinh(v / 2.0)
    v, log_t = v[p * log_t > -38.0], log_t[p * log_t > -38.0]
    t = np.exp(log_t)
    jacobian = step * (1.0 + 0.025 * np.cosh(v / 2.0))
    return t, jacobian * np.exp(p * log_t - t - gammaln(p))


def _se_matern(
    length_se: float, nu: float, length: float, dimension: int, r: FloatArray
) -> CrossProfile:
    half = dimension / 2
    a2 = 2.0 * nu / length**2
    t, weights = _gamma_rule(0.5 * (nu + half))
    tau = t / a2 + 0.25 * length_se**2
    log_constant = 0.5 * (gammaln(nu + half) - gammaln(nu)) + 0.5 * half * math.log(
        0.5 * length_se**2 / a2
    )
    weights = weights * np.exp(log_constant - half * np.log(tau))
    e = np.exp(np.outer(-(r**2) / 4.0, 1.0 / tau))
    e0, e1, e2, e3 = (e @ (weights / tau ** np.arange(4)[:, None]).T).T
    slope = -0.5 * r * e1
    # d tau / d log l = l^2 / 2
    rate = 0.5 * length_se**2
    return CrossProfile(
        value=e0,
        slope=slope,
        curvature=0.25 * r**2 * e2 - 0.5 * e1,
        by_first=half * e0 + rate * (0.25 * r**2 * e2 - half * e1),
        by_first_slope=half * slope + rate * 0.5 * r * ((1.0 + half) * e2 - 0.25 * r**2 * e3),
    )
