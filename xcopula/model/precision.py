r"""How well the parameters are determined: the inverse of the information matrix.

With H the information of the fit, priors included, :math:`H^{-1}` approximates the covariance of
the estimates. A function of the parameters has the variance :math:`J H^{-1} J'` (delta method), and
:math:`H^{-1} (H - H_\text{prior})` has on its diagonal how much of each parameter the data
determine: these numbers add up to the effective number of parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from xcopula.arrays import FloatArray, IntArray
from xcopula.process import Process

__all__ = ["effective_parameters", "estimate_covariance", "free_parameters", "standard_errors"]

# Of central differences, in widths of the bounds.
_STEP = 1e-6
# A parameter this close to an end of its box, in widths of the box, has no standard error; nor has
# what changes by more than the second share, relative to itself, with a unit of that parameter.
_EDGE, _DEPENDS = 1e-6, 0.01


def estimate_covariance(
    process: Process, theta: FloatArray, information: FloatArray | None
) -> FloatArray | None:
    """Return the covariance (p, p) of the estimates, NaN for parameters at an end of their box.

    None where there is no information matrix, or where it is not positive definite.
    """
    if information is None:
        return None
    free = free_parameters(process, theta)
    inner = information[np.ix_(free, free)]
    diagonal = np.diagonal(inner)
    if not np.isfinite(inner).all() or not (diagonal > 0.0).all():
        return None
    root = np.sqrt(diagonal)
    try:
        factor = np.linalg.cholesky(inner / np.outer(root, root))
    except np.linalg.LinAlgError:
        return None
    inverse = np.linalg.inv(factor) / root
    out = np.full(information.shape, np.nan)
    out[np.ix_(free, free)] = inverse.T @ inverse
    return out


def free_parameters(process: Process, theta: FloatArray) -> IntArray:
    """Return which parameters are not at an end of their box."""
    bounds = process.bounds()
    slack = _EDGE * np.ptp(bounds, axis=1)
    return np.flatnonzero((theta > bounds[:, 0] + slack) & (theta < bounds[:, 1] - slack))


def effective_parameters(
    process: Process, theta: FloatArray, information: FloatArray | None
) -> FloatArray:
    """Return how much of each parameter (p,) the data determine, between 0 and 1.

    One for all of them where the information is not known. A parameter at an end of its box is
    determined by the box.
    """
    covariance = estimate_covariance(process, theta, information)
    if covariance is None:
        return np.ones(theta.size)
    known = np.isfinite(np.diagonal(covariance))
    inner = np.ix_(known, known)
    assert information is not None
    of_data = information[inner] - process.prior_information(theta)[inner]
    share = np.zeros(theta.size)
    share[known] = np.einsum("ij,ji->i", covariance[inner], of_data)
    return np.clip(share, 0.0, 1.0)


def standard_errors(
    process: Process,
    theta: FloatArray,
    covariance: FloatArray | None,
    function: Callable[[FloatArray], Mapping[str, FloatArray]],
) -> dict[str, FloatArray]:
    """Return the standard errors of functions of the parameters, NaN where there are none.

    Parameters
    ----------
    covariance : ndarray (p, p) or None
        Of the estimates; see :func:`estimate_covariance`.
    function : callable
        Returns arrays of any shapes by name, as a function of theta.
    """
    values = function(theta)
    if covariance is None:
        return {name: np.full(np.shape(value), np.nan) for name, value in values.items()}
    steps = _STEP * np.maximum(np.ptp(process.bounds(), axis=1), 1e-12)
    known = np.isfinite(np.diagonal(covariance))
    variance = {name: np.zeros((*np.shape(value), theta.size)) for name, value in values.items()}
    for k, step in enumerate(steps):
        above, below = (function(theta + s * np.eye(theta.size)[k]) for s in (step, -step))
        for name, slopes in variance.items():
            slopes[..., k] = (above[name] - below[name]) / (2.0 * step)
    out = {}
    inner = covariance[np.ix_(known, known)]
    for name, slopes in variance.items():
        free, held = slopes[..., known], slopes[..., ~known]
        error = np.sqrt(np.einsum("...i,ij,...j->...", free, inner, free))
        lost = (np.abs(held) > _DEPENDS * np.abs(values[name])[..., None]).any(axis=-1)
        out[name] = np.where(lost, np.nan, error)
    return out
