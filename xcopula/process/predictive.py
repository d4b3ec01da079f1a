r"""The predictive law at some sites: a mixture of processes, each with its own laws.

A component has latent moments :math:`\mu, s`, a marginal law F and a law of its errors (a
:class:`~xcopula.process.spread.Spread`). The distribution function is the weighted sum of theirs;
quantiles are solved for. Where there is one component and its errors are normal, everything is the
closed form of :mod:`xcopula.process.outcome`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, ndtri

from xcopula.marginals.base import Marginal
from xcopula.process import outcome
from xcopula.process.roots import find_roots
from xcopula.process.sample import Moments
from xcopula.process.spread import NORMAL, Spread

__all__ = ["Predictive"]

FloatArray = npt.NDArray[np.float64]

# The score's integral is cut where components have these latent quantiles (in deviations), and a
# piece has so many nodes: the normal law's closed form is met to 1e-9.
_CUTS = (-9.0, -6.0, -4.0, -2.5, -1.25, 0.0, 1.25, 2.5, 4.0, 6.0, 9.0)
_LEGENDRE = np.polynomial.legendre.leggauss(8)
_FARTHEST = 37.0  # beyond so many deviations a normal probability underflows


@dataclass(frozen=True, eq=False)
class Predictive:
    """The law of one variable at m sites.

    Attributes
    ----------
    means, stds : ndarray (k, m)
        Latent moments of the components.
    laws : tuple of Marginal
        Of each component, bound to the rows of the sites if it varies.
    weights : ndarray (k,)
        Of the components; they add up to one.
    spreads : tuple of Spread
        The law of the errors of each, in units of its deviation.
    """

    means: FloatArray
    stds: FloatArray
    laws: tuple[Marginal, ...]
    weights: FloatArray
    spreads: tuple[Spread, ...]

    @classmethod
    def of(cls, moments: Moments, law: Marginal) -> Self:
        """Return the law of one component with normal errors."""
        std = np.sqrt(moments.variance)
        return cls(moments.mean[None], std[None], (law,), np.ones(1), (NORMAL,))

    @property
    def plain(self) -> bool:
        """Whether it is one component with normal errors."""
        return len(self.laws) == 1 and self.spreads[0] is NORMAL

    def _components(self) -> Iterator[tuple[float, Marginal, FloatArray, FloatArray, Spread]]:
        yield from zip(
            self.weights.tolist(), self.laws, self.means, self.stds, self.spreads, strict=True
        )

    def _normals(self) -> Iterator[tuple[float, Marginal, FloatArray, FloatArray]]:
        """Yield the normal parts of all components: weight, law, latent mean and deviation."""
        for weight, law, mean, std, spread in self._components():
            for share, scale in zip(spread.weights.tolist(), spread.scales.tolist(), strict=True):
                yield weight * share, law, mean, scale * std

    def quantile(self, level: float) -> FloatArray:
        """Return the quantile of a level in (0, 1)."""
        own = [
            law.from_normal(mean + std * spread.quantile(level))
            for _, law, mean, std, spread in self._components()
        ]
        if len(own) == 1:
            return own[0]
        # The mixture's lies between those of its components.
        each, sign = np.stack(own), 1.0 if level <= 0.5 else -1.0
        goal = float(ndtri(level))

        def excess(value: FloatArray) -> FloatArray:
            # Of the smaller tail, as a normal score: nearly linear, so that few steps are needed.
            score = sign * ndtri(self._tail(value, sign))
            return np.asarray(np.clip(score, -_FARTHEST, _FARTHEST) - goal)

        return find_roots(excess, each.min(axis=0), each.max(axis=0))

    def cdf(self, value: float | FloatArray) -> FloatArray:
        """Return P(Y <= value), for one value or one of each site."""
        return self._tail(value, 1.0)

    def exceedance(self, value: float | FloatArray) -> FloatArray:
        """Return P(Y > value), for one value or one of each site; exact also where it is tiny."""
        return self._tail(value, -1.0)

    def _tail(self, value: float | FloatArray, sign: float | FloatArray) -> FloatArray:
        """Return the probability of at most a value (sign 1), or of more than it (-1)."""
        total = np.zeros(self.means.shape[1:])
        for weight, law, mean, std, spread in self._components():
            score = outcome.score_of(law, value, mean.shape)
            for share, scale in zip(spread.weights.tolist(), spread.scales.tolist(), strict=True):
                total = total + weight * share * outcome.tail(score, mean, scale * std, sign)
        return total

    def mean(self) -> FloatArray:
        """Return E[Y], NaN where the tail of a law is too heavy for it to exist."""
        total = np.zeros(self.means.shape[1:])
        for weight, law, mean, std in self._normals():
            total = total + weight * outcome.mean(mean, std, law)
        return total

    def std(self) -> FloatArray:
        """Return the standard deviation of Y, NaN where it does not exist."""
        if self.plain:
            return outcome.std(self.means[0], self.stds[0], self.laws[0])
        whole = self.mean()
        total = np.zeros_like(whole)
        for weight, law, mean, std in self._normals():
            own, within = outcome.mean(mean, std, law), outcome.std(mean, std, law)
            total = total + weight * (within**2 + (own - whole) ** 2)
        return np.sqrt(total)

    def latent_mean(self) -> FloatArray:
        """Return the mean of the latent process."""
        return self.means[0] if len(self.laws) == 1 else np.asarray(self.weights @ self.means)

    def latent_std(self) -> FloatArray:
        """Return the standard deviation of the latent process."""
        inner = np.array([s.std for s in self.spreads])[:, None] * self.stds
        if len(self.laws) == 1:
            return np.asarray(inner[0])
        apart = self.means - self.latent_mean()
        return np.asarray(np.sqrt(self.weights @ (inner**2 + apart**2)))

    def score(self, observed: FloatArray) -> FloatArray:
        """Return the normal scores of observed values, the mean of those under each law."""
        each = [law.to_normal(observed) for law in self.laws]
        return each[0] if len(each) == 1 else np.asarray(self.weights @ np.stack(each))

    def log_density(self, observed: FloatArray) -> FloatArray:
        """Return the log density of observed values."""
        terms = []
        for weight, law, mean, std, spread in self._components():
            score = law.to_normal(observed)
            density = law.log_density(observed)
            for share, scale in zip(spread.weights.tolist(), spread.scales.tolist(), strict=True):
                own = _log_density(score, density, mean, scale * std)
                terms.append(own if self.plain else own + np.log(weight * share))
        return terms[0] if self.plain else np.asarray(logsumexp(np.stack(terms), axis=0))

    def crps(self, observed: FloatArray) -> FloatArray:
        r"""Return the continuous ranked probability score of observations, in their own units.

        .. math:: \int (F(y) - 1[y \ge y_{obs}])^2 dy

        The integral is taken piece by piece between quantiles of the components, by a Gauss rule.
        """
        if self.plain:
            return outcome.crps(self.means[0], self.stds[0], self.laws[0], observed)
        cuts = np.stack([observed, *self._cuts()])
        # A law that saturates has no quantile so far out: its piece is left out.
        cuts = np.sort(np.where(np.isfinite(cuts), cuts, observed), axis=0)
        total = np.zeros_like(observed)
        for low, high in itertools.pairwise(cuts):
            half = 0.5 * (high - low)
            side = np.where(high <= observed, 1.0, -1.0)
            for node, weight in zip(*_LEGENDRE, strict=True):
                at = 0.5 * (low + high) + half * node
                total += weight * half * self._tail(at, side) ** 2
        return total

    def _cuts(self) -> Iterator[FloatArray]:
        """Yield the least, the mean and the largest quantile of the components, by level."""
        widest = [s.scales.max() for s in self.spreads]
        for cut in _CUTS:
            each = np.stack(
                [
                    law.from_normal(mean + std * cut * wide)
                    for law, mean, std, wide in zip(
                        self.laws, self.means, self.stds, widest, strict=True
                    )
                ]
            )
            yield each.min(axis=0)
            if len(each) > 1:
                yield self.weights @ each
                yield each.max(axis=0)


def _log_density(
    score: FloatArray, density: FloatArray, mean: FloatArray, std: FloatArray
) -> FloatArray:
    """Return the log density of values with these normal scores and log densities of their law."""
    error = (score - mean) / std
    with np.errstate(invalid="ignore"):
        gain = 0.5 * (score**2 - error**2)
    # At the end of a law's support, or beyond it, the predictive density has vanished.
    gain = np.where(np.isinf(score), np.where(std < 1.0, -np.inf, 0.0), gain)
    return np.asarray(density + gain - np.log(std))
