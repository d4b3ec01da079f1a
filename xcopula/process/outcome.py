r"""The predictive law at one site, in terms of the latent moments and the marginal law.

With :math:`\mu, s` the latent mean and standard deviation, the prediction is
:math:`Y^* = F^{-1}(\Phi(\mu + s Z))`: quantiles and probabilities have closed forms, moments are
integrals over Z. A law that varies is bound to the rows of the cells (:meth:`Marginal.at`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from xcopula.marginals import Marginal

__all__ = ["cdf", "crps", "exceedance", "mean", "quantile", "score_of", "std", "tail"]

FloatArray = npt.NDArray[np.float64]

# The score's integral runs over so many standard deviations, with so many nodes on each side of
# the observation: the normal law's closed form is met to 1e-14.
_FARTHEST = 9.0
_LEGENDRE = np.polynomial.legendre.leggauss(48)
# The same between 0 and 1.
_UNIT = 0.5 * (1.0 + _LEGENDRE[0]), 0.5 * _LEGENDRE[1]


def quantile(mean: FloatArray, std: FloatArray, marginal: Marginal, level: float) -> FloatArray:
    """Return the quantile of a level in (0, 1)."""
    return marginal.from_normal(mean + std * ndtri(level))


def cdf(
    mean: FloatArray, std: FloatArray, marginal: Marginal, value: float | FloatArray
) -> FloatArray:
    """Return P(Y* <= value), for one value or one of each cell."""
    return tail(score_of(marginal, value, mean.shape), mean, std, 1.0)


def exceedance(
    mean: FloatArray, std: FloatArray, marginal: Marginal, value: float | FloatArray
) -> FloatArray:
    """Return P(Y* > value), for one value or one of each cell; exact also where it is tiny."""
    return tail(score_of(marginal, value, mean.shape), mean, std, -1.0)


def score_of(
    marginal: Marginal, value: float | FloatArray, shape: tuple[int, ...]
) -> float | FloatArray:
    """Return the normal score of a value, or of one of each cell."""
    # A law that varies has a score at each cell, a constant one the same at all.
    return marginal.to_normal(np.broadcast_to(value, shape) if marginal.fields else value)


def tail(
    score: float | FloatArray, mean: FloatArray, std: FloatArray, sign: float | FloatArray
) -> FloatArray:
    """Return the probability of a latent value up to a score (sign 1), or above it (-1)."""
    # A cell that is known exactly (std = 0) has probability 0 or 1; the value itself is not above.
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.where(
            std > 0.0, (score - mean) / std, np.where(score >= mean, np.inf, -np.inf)
        )
    return np.where(np.isnan(mean) | np.isnan(score), np.nan, ndtr(sign * distance))


def mean(mean: FloatArray, std: FloatArray, marginal: Marginal) -> FloatArray:
    """Return E[Y*], NaN where the marginal's tail is too heavy for it to exist."""
    return _moment(mean, std, marginal, 1)


def std(mean: FloatArray, std: FloatArray, marginal: Marginal) -> FloatArray:
    """Return the standard deviation of Y*, NaN where it does not exist."""
    centre = marginal.from_normal(mean)
    first = _moment(mean, std, marginal, 1, centre)
    second = _moment(mean, std, marginal, 2, centre)
    return np.sqrt(np.maximum(second - first**2, 0.0))


def _moment(
    mean: FloatArray,
    std: FloatArray,
    marginal: Marginal,
    power: int,
    centre: FloatArray | float = 0.0,
) -> FloatArray:
    r"""Integrate (y - centre)^power over Z by the trapezoid rule.

    In a tail of index xi, y grows like :math:`\exp(\xi z^2 / 2)`, so the integrand decays like a
    Gaussian of variance 1 / (1 - power xi s^2): the nodes are spread to match, and where that is
    not positive the moment does not exist.
    """
    decay = 1.0 - power * marginal.tail_index * std**2
    exists = decay > 0.0
    spread = 1.0 / np.sqrt(np.where(exists, decay, 1.0))
    if marginal.atom is not None:
        total = _moment_with_atom(mean, std, marginal, power, centre, spread)
        return np.where(exists, total, np.nan)
    total = np.zeros_like(mean)
    step = 0.25
    for node in np.arange(-40, 41) * step:
        z = node * spread
        root = (step * spread / np.sqrt(2.0 * np.pi)) ** (1.0 / power) * np.exp(-(z**2) / 2 / power)
        y = marginal.from_normal(mean + std * z)
        # Where y overflows the weight has long underflowed: that node counts nothing.
        with np.errstate(invalid="ignore"):
            total += np.where(np.isinf(y), 0.0, (root * (y - centre)) ** power)
    return np.where(exists, total, np.nan)


def _moment_with_atom(
    mean: FloatArray,
    std: FloatArray,
    marginal: Marginal,
    power: int,
    centre: FloatArray | float,
    spread: FloatArray,
) -> FloatArray:
    """Integrate apart above the atom, where values begin to grow, in ways that may have a root."""
    atom = np.float64(marginal.atom)
    edge = score_of(marginal, float(atom), mean.shape)
    total = tail(edge, mean, std, 1.0) * (atom - centre) ** power
    far = 10.0 * spread
    with np.errstate(divide="ignore", invalid="ignore"):
        start = np.clip(np.where(std > 0.0, (edge - mean) / std, np.inf), -far, far)
    middle = np.minimum(start + 1.5, far)
    known = ~(std > 0.0) & (mean > edge)  # a number that is not the atom
    for low, high, root in ((start, middle, 4), (middle, far, 1)):
        for node, weight in zip(*_UNIT, strict=True):
            z = low + (high - low) * node**root
            y = marginal.from_normal(mean + std * z)
            share = weight * (high - low) * root * node ** (root - 1) / np.sqrt(2.0 * np.pi)
            with np.errstate(invalid="ignore", over="ignore", under="ignore"):
                own = share ** (1.0 / power) * np.exp(-(z**2) / 2 / power) * (y - centre)
                total = total + np.where(np.isinf(y), 0.0, own**power)
    return np.where(known, (marginal.from_normal(mean) - centre) ** power, total)


def crps(mean: FloatArray, std: FloatArray, marginal: Marginal, observed: FloatArray) -> FloatArray:
    r"""Return the continuous ranked probability score of observations, in their own units.

    .. math:: 2 \int (1[y < Q(p)] - p)\,(Q(p) - y)\,dp

    The integral over levels is taken in :math:`u = \Phi^{-1}(p)`, where the quantile function of
    every law is tame, and apart on each side of the observation, where the integrand has a kink.
    A law with an atom has another one there: :class:`~xcopula.process.predictive.Predictive` has
    its score.
    """
    score = marginal.to_normal(observed)
    with np.errstate(divide="ignore", invalid="ignore"):
        split = np.where(std > 0.0, (score - mean) / std, np.where(score > mean, np.inf, -np.inf))
    kink = np.clip(np.where(np.isnan(score), np.nan, split), -_FARTHEST, _FARTHEST)
    total = np.zeros_like(kink)
    for low, high, sign in ((-_FARTHEST, kink, -1.0), (kink, _FARTHEST, 1.0)):
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        for node, weight in zip(*_LEGENDRE, strict=True):
            u = middle + half * node
            gap = marginal.from_normal(mean + std * u) - observed
            # ndtr(-u) is 1 - p above the observation, ndtr(u) is p below it
            total += weight * half * sign * ndtr(-sign * u) * gap * np.exp(-0.5 * u * u)
    return np.asarray(np.sqrt(2.0 / np.pi) * total)
