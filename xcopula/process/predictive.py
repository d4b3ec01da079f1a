r"""The predictive law at some sites: a mixture of processes, each with its own laws.

A component has latent moments :math:`\mu, s`, a marginal law F and a law of its errors (a
:class:`~xcopula.process.spread.Spread`). The distribution function is the weighted sum of theirs;
quantiles are solved for. Where there is one component and its errors are normal, everything is the
closed form of :mod:`xcopula.process.outcome`.

At the site of a value that is known as an interval each component is the law of that value: its
latent law between the limits (:mod:`xcopula.process.bounded`). A law with an atom keeps it: all
scores up to that of the atom are the atom.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, ndtri

from xcopula.marginals.base import Marginal
from xcopula.process import outcome
from xcopula.process.bounded import Bounded
from xcopula.process.roots import find_roots
from xcopula.process.sample import Moments
from xcopula.process.spread import NORMAL, Spread

__all__ = ["Predictive"]

FloatArray = npt.NDArray[np.float64]
# Weight, law, latent mean, deviation, law of the errors.
Component = tuple[float, Marginal, FloatArray, FloatArray, Spread]

# The score's integral is cut where components have these latent quantiles (in deviations), and a
# piece has so many nodes: the normal law's closed form is met to 1e-9.
_CUTS = (-9.0, -6.0, -4.0, -2.5, -1.25, 0.0, 1.25, 2.5, 4.0, 6.0, 9.0)
_LEGENDRE, _ROOTED = (
    (0.5 * (1.0 + nodes), 0.5 * weights)
    for nodes, weights in map(np.polynomial.legendre.leggauss, (8, 20))
)
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
    limits : ndarray (2, k, m), optional
        Between which scores each lies; infinite on open sides.
    """

    means: FloatArray
    stds: FloatArray
    laws: tuple[Marginal, ...]
    weights: FloatArray
    spreads: tuple[Spread, ...]
    limits: FloatArray | None = None

    @classmethod
    def of(cls, moments: Moments, law: Marginal) -> Self:
        """Return the law of one component with normal errors."""
        std = np.sqrt(moments.variance)
        return cls(moments.mean[None], std[None], (law,), np.ones(1), (NORMAL,))

    @property
    def plain(self) -> bool:
        """Whether it is one component with normal errors."""
        return len(self.laws) == 1 and self.spreads[0] is NORMAL

    def _components(self) -> Iterator[Component]:
        yield from zip(
            self.weights.tolist(), self.laws, self.means, self.stds, self.spreads, strict=True
        )

    @functools.cached_property
    def _bounded(self) -> tuple[Bounded | None, ...]:
        """The components between their limits, or None for each where no site has any."""
        if self.limits is None or not np.isfinite(self.limits).any():
            return (None,) * len(self.laws)
        return tuple(
            Bounded(mean, std, spread, *self.limits[:, k])
            for k, (_, _, mean, std, spread) in enumerate(self._components())
        )

    @functools.cached_property
    def atoms(self) -> list[float]:
        """Values that have a probability of their own."""
        return sorted({law.atom for law in self.laws if law.atom is not None})

    def _normals(self) -> Iterator[tuple[float, Marginal, FloatArray, FloatArray]]:
        """Yield the normal parts of all components: weight, law, latent mean and deviation."""
        for weight, law, mean, std, spread in self._components():
            for share, scale in zip(spread.weights.tolist(), spread.scales.tolist(), strict=True):
                yield weight * share, law, mean, scale * std

    def quantile(self, level: float) -> FloatArray:
        """Return the quantile of a level in (0, 1)."""
        own = []
        for bounded, (_, law, mean, std, spread) in self._with_bounds():
            score = mean + std * spread.quantile(level)
            if bounded is not None:
                score = np.where(bounded.where, bounded.quantile(level), score)
            own.append(law.from_normal(score))
        if len(own) == 1:
            return own[0]
        # The mixture's lies between those of its components.
        each, sign = np.stack(own), 1.0 if level <= 0.5 else -1.0
        goal = float(ndtri(level))

        def excess(value: FloatArray) -> FloatArray:
            # Of the smaller tail, as a normal score: nearly linear, so that few steps are needed.
            score = sign * ndtri(self._tail(value, sign))
            return np.asarray(np.clip(score, -_FARTHEST, _FARTHEST) - goal)

        low = each.min(axis=0)
        found = find_roots(excess, low, each.max(axis=0))
        # What is less likely than the least of them already is that: a step hides the root.
        found = np.where(self._tail(low, 1.0) >= level, low, found)
        for atom in self.atoms:
            below = self._tail(np.nextafter(atom, -np.inf), 1.0)
            found = np.where((below < level) & (self._tail(atom, 1.0) >= level), atom, found)
        return found

    def _with_bounds(self) -> Iterator[tuple[Bounded | None, Component]]:
        yield from zip(self._bounded, self._components(), strict=True)

    def cdf(self, value: float | FloatArray) -> FloatArray:
        """Return P(Y <= value), for one value or one of each site."""
        return self._tail(value, 1.0)

    def cdf_below(self, value: FloatArray) -> FloatArray:
        """Return P(Y < value), which an atom at the value is no part of."""
        return np.where(
            np.isin(value, self.atoms), self.cdf(np.nextafter(value, -np.inf)), self.cdf(value)
        )

    def exceedance(self, value: float | FloatArray) -> FloatArray:
        """Return P(Y > value), for one value or one of each site; exact also where it is tiny."""
        return self._tail(value, -1.0)

    def _tail(self, value: float | FloatArray, sign: float | FloatArray) -> FloatArray:
        """Return the probability of at most a value (sign 1), or of more than it (-1)."""
        total = np.zeros(self.means.shape[1:])
        for bounded, (weight, law, mean, std, spread) in self._with_bounds():
            score = outcome.score_of(law, value, mean.shape)
            own = np.zeros(self.means.shape[1:])
            for share, scale in zip(spread.weights.tolist(), spread.scales.tolist(), strict=True):
                own = own + share * outcome.tail(score, mean, scale * std, sign)
            if bounded is not None:
                own = np.where(bounded.where, bounded.tail(score, sign), own)
            total = total + weight * own
        return total

    def mean(self) -> FloatArray:
        """Return E[Y], NaN where the tail of a law is too heavy for it to exist."""
        total = np.zeros(self.means.shape[1:])
        for weight, law, mean, std in self._normals():
            total = total + weight * outcome.mean(mean, std, law)
        return total if self._between is None else np.where(*self._between[:2], total)

    def std(self) -> FloatArray:
        """Return the standard deviation of Y, NaN where it does not exist."""
        if self.plain:
            found = outcome.std(self.means[0], self.stds[0], self.laws[0])
        else:
            whole, total = self.mean(), np.zeros(self.means.shape[1:])
            for weight, law, mean, std in self._normals():
                own, within = outcome.mean(mean, std, law), outcome.std(mean, std, law)
                total = total + weight * (within**2 + (own - whole) ** 2)
            found = np.sqrt(total)
        return found if self._between is None else np.where(*self._between[::2], found)

    @functools.cached_property
    def _between(self) -> tuple[npt.NDArray[np.bool_], FloatArray, FloatArray] | None:
        """At which sites there are limits, and mean and deviation there; None if nowhere."""
        shape = self.means.shape[1:]
        where, first, second = np.zeros(shape, np.bool_), np.zeros(shape), np.zeros(shape)
        for bounded, (weight, law, *_) in self._with_bounds():
            if bounded is None:
                return None
            where = where | bounded.where
            scores, shares = bounded.nodes()
            values = np.stack([law.from_normal(z) for z in scores])
            endless = np.isposinf(bounded.high) & (law.tail_index * bounded.std**2 >= 1.0)
            own = np.where(endless, np.nan, np.einsum("jm,jm->m", shares, values))
            first = first + weight * own
            second = second + weight * np.einsum("jm,jm->m", shares, values**2)
        return where, first, np.asarray(np.sqrt(np.maximum(second - first**2, 0.0)))

    def latent_mean(self) -> FloatArray:
        """Return the mean of the latent process."""
        means, _ = self._latent
        return means[0] if len(self.laws) == 1 else np.asarray(self.weights @ means)

    def latent_std(self) -> FloatArray:
        """Return the standard deviation of the latent process."""
        means, inner = self._latent
        if len(self.laws) == 1:
            return np.asarray(inner[0])
        apart = means - self.latent_mean()
        return np.asarray(np.sqrt(self.weights @ (inner**2 + apart**2)))

    @functools.cached_property
    def _latent(self) -> tuple[FloatArray, FloatArray]:
        """Latent means and deviations (k, m) of the components, given their limits."""
        means = self.means
        stds = np.array([s.std for s in self.spreads])[:, None] * self.stds
        for k, bounded in enumerate(self._bounded):
            if bounded is not None:
                scores, shares = bounded.nodes()
                mean = (shares * scores).sum(axis=0)
                std = np.sqrt((shares * (scores - mean) ** 2).sum(axis=0))
                own = np.arange(len(means))[:, None] == k
                means = np.where(own & bounded.where, mean, means)
                stds = np.where(own & bounded.where, std, stds)
        return means, stds

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
        NaN gives NaN.
        """
        if self.plain and self.limits is None and not self.atoms:
            return outcome.crps(self.means[0], self.stds[0], self.laws[0], observed)
        found = self.crps_of_intervals(observed, observed)
        return np.where(np.isnan(observed), np.nan, found)

    def crps_of_intervals(self, low: FloatArray, high: FloatArray) -> FloatArray:
        r"""Return what the score surely is for values that lie between limits (m,).

        .. math:: \int_{-\infty}^{low} F(y)^2 dy + \int_{high}^{\infty} (1 - F(y))^2 dy

        Whatever the value is, this much is counted; between the limits nothing is known.
        """
        inside = np.where(np.isfinite(low), low, high)
        atoms = [np.full(inside.shape, atom) for atom in self.atoms]
        cuts = np.stack([low, high, *atoms, *self._cuts()])
        # A law that saturates has no quantile so far out: its piece is left out.
        cuts = np.sort(np.where(np.isfinite(cuts), cuts, inside), axis=0)
        total = np.zeros_like(inside)
        for start, stop in itertools.pairwise(cuts):
            side = np.where(stop <= low, 1.0, -1.0)
            counts = (stop > start) & ((stop <= low) | (start >= high))
            # From an atom on, a distribution function may begin with a root.
            root = np.where(np.isin(start, self.atoms), 4.0, 1.0) if self.atoms else 1.0
            for node, weight in zip(*(_ROOTED if self.atoms else _LEGENDRE), strict=True):
                at = start + (stop - start) * node**root
                share = weight * (stop - start) * root * node ** (root - 1.0)
                total += np.where(counts, share * self._tail(at, side) ** 2, 0.0)
        return total

    def log_mass(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the log of the probability of values between limits (m,)."""
        terms = []
        for weight, law, mean, std, spread in self._components():
            a, b = (outcome.score_of(law, end, mean.shape) for end in (low, high))
            if law.atom is not None:
                a = np.where(low <= law.atom, -np.inf, a)
            free = Bounded(mean, std, spread, np.where(np.isinf(low), low, a), np.asarray(b))
            terms.append(np.log(weight) + free.log_mass())
        return np.asarray(logsumexp(np.stack(terms), axis=0))

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
