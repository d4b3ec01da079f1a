r"""What the data leave open about the parameters: weighted draws around the optimum.

Near the optimum the posterior density of theta, on its unconstrained scale and with the weak
priors, is close to a normal one whose precision is the Hessian of what the fit minimised (Laplace's
approximation). A few draws of it stand for all; each is weighted by how much more likely it is than
the approximation says (importance weights).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv

from xcopula.errors import NotPositiveDefiniteError

__all__ = [
    "DRAWS",
    "Draws",
    "draw",
    "effective_size",
    "hessian",
    "precision",
    "standard_draws",
    "weigh",
]

FloatArray = npt.NDArray[np.float64]
Objective = Callable[[FloatArray], tuple[float, FloatArray]]

DRAWS = 30
_SEED = 20_000
# Steps of the differences, in units of the parameters' boxes.
_STEP = 1e-3
# A direction that the data say next to nothing about has at most this deviation in these units:
# about that of the weak priors.
_WIDEST = 1.4
# Draws of less weight than this are left out: each costs as much as the others.
_LIGHTEST = 1e-3
# No weight is more than so many times the mean.
_HEAVIEST = 2.0


class Draws(NamedTuple):
    """Draws of parameters.

    Attributes
    ----------
    thetas : ndarray (s, p)
    weights : ndarray (s,)
        They add up to one.
    effective : float
        As how many draws of equal weight they counted before the largest weights were cut.
    """

    thetas: FloatArray
    weights: FloatArray
    effective: float


def draw(
    likelihood: Objective,
    log_prior: Objective,
    theta: FloatArray,
    unit: FloatArray,
    count: int = DRAWS,
) -> Draws:
    """Draw parameters around an optimum.

    Parameters
    ----------
    likelihood : callable
        Returns the negative log-likelihood at parameters, and its gradient.
    log_prior : callable
        Returns the log prior, and its gradient.
    theta : ndarray (p,)
        The optimum.
    unit : ndarray (p,)
        Unit of each parameter.
    count : int
        How many draws.

    Raises
    ------
    FloatingPointError
        If the likelihood is not finite beside the optimum; its argument is the number of the
        parameter.
    """
    by_data = hessian(likelihood, theta, _STEP * unit)
    # What the likelihood does not depend on stays: of it, a draw would only be a draw of its prior.
    told = np.flatnonzero(by_data.any(axis=0))
    by_prior = hessian(lambda point: _negative(*log_prior(point)), theta, _STEP * unit)
    root = precision((by_data + by_prior)[np.ix_(told, told)], unit[told])
    standard = standard_draws(count, told.size)
    thetas = np.tile(theta, (len(standard), 1))
    thetas[:, told] += standard @ root
    losses = np.array([_loss(likelihood, log_prior, each) for each in thetas])
    log_ratios = 0.5 * (standard**2).sum(axis=1) - losses
    weights = weigh(log_ratios)
    kept = weights > _LIGHTEST
    effective = effective_size(np.exp(log_ratios - log_ratios.max()))
    return Draws(thetas[kept], weights[kept] / weights[kept].sum(), effective)


def _negative(value: float, gradient: FloatArray) -> tuple[float, FloatArray]:
    return -value, -gradient


def _loss(likelihood: Objective, log_prior: Objective, theta: FloatArray) -> float:
    """Return the negative log posterior; infinite where there is none."""
    try:
        value = likelihood(theta)[0] - log_prior(theta)[0]
    except NotPositiveDefiniteError:
        return np.inf
    return value if np.isfinite(value) else np.inf


def hessian(objective: Objective, theta: FloatArray, steps: FloatArray) -> FloatArray:
    """Return the second derivatives (p, p) by central differences of the gradient.

    Raises
    ------
    FloatingPointError
        If the function is not finite beside theta; its argument is the number of the parameter.
    """
    rows = np.empty((theta.size, theta.size))
    for k, step in enumerate(steps):
        beside = []
        for sign in (1.0, -1.0):
            point = theta.copy()
            point[k] += sign * step
            try:
                value, gradient = objective(point)
            except NotPositiveDefiniteError:
                raise FloatingPointError(k) from None
            if not (np.isfinite(value) and np.isfinite(gradient).all()):
                raise FloatingPointError(k)
            beside.append(gradient)
        rows[k] = (beside[0] - beside[1]) / (2.0 * step)
    return 0.5 * (rows + rows.T)


def precision(curvature: FloatArray, unit: FloatArray) -> FloatArray:
    """Return rows (p, p) that turn standard normal draws into draws of that precision.

    Directions in which the curvature is small or negative get the widest deviation there is, in the
    parameters' units.
    """
    values, vectors = np.linalg.eigh(curvature * unit[:, None] * unit)
    floored = np.maximum(values, _WIDEST**-2)
    return np.asarray((vectors / np.sqrt(floored)).T * unit)


def standard_draws(count: int, dimension: int) -> FloatArray:
    """Return draws (count, dimension) of a standard normal vector, always the same.

    They come in pairs of opposite signs. The directions of the pairs are orthogonal, as far as
    there are so many, and their lengths stand at equal probabilities: with few draws that is closer
    to the law than chance.
    """
    pairs = count // 2
    rng = np.random.default_rng(_SEED)
    blocks = []
    for _ in range(-(-pairs // max(dimension, 1))):
        blocks.append(np.linalg.qr(rng.normal(size=(dimension, dimension)))[0])
    directions = np.concatenate(blocks)[:pairs]
    levels = (np.arange(pairs) + 0.5) / pairs
    lengths = np.sqrt(2.0 * gammaincinv(0.5 * dimension, levels))
    half = directions * rng.permutation(lengths)[:, None]
    return np.concatenate([half, -half])


def weigh(log_ratios: FloatArray) -> FloatArray:
    """Return importance weights that add up to one, none larger than twice the mean.

    With few draws a large weight is mostly chance: cut, predictions get better, and intervals stay
    almost as wide.
    """
    ratios = np.exp(log_ratios - log_ratios.max())
    # Those that are cut share what the others leave, so that they have twice the mean of all.
    order = np.sort(ratios)
    below = np.concatenate([[0.0], np.cumsum(order)])[:-1]
    cut = np.arange(ratios.size, 0, -1)  # if this one and all larger ones are cut
    room = ratios.size - _HEAVIEST * cut
    with np.errstate(divide="ignore", invalid="ignore"):
        limit = np.where(room > 0.0, _HEAVIEST * below / room, np.inf)
    most = limit[np.argmax(order >= limit)] if (order >= limit).any() else np.inf
    weights = np.minimum(ratios, most)
    return np.asarray(weights / weights.sum())


def effective_size(weights: FloatArray) -> float:
    """Return as how many draws of equal weight these count."""
    return float(weights.sum() ** 2 / (weights @ weights))
