r"""The predictive law at some sites, in terms of the latent moments and the marginal law.

With :math:`\mu, \sigma` the latent mean and standard deviation, the prediction is
:math:`Y^* = F^{-1}(\Phi(\mu + \sigma Z))`: quantiles, probabilities and densities have closed
forms, moments and the CRPS are integrals over Z. A law that varies is bound to the rows of the
sites (:meth:`Marginal.at`).

At the site of an interval-censored value the latent law is truncated to the interval
(:mod:`xcopula.process.bounded`). A law with an atom keeps it: all scores up to that of the atom are
the atom.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from xcopula.arrays import FloatArray, IntArray
from xcopula.marginals.base import Marginal
from xcopula.marginals.tails import log_between
from xcopula.process.bounded import Bounded, standardised
from xcopula.process.sample import Moments

__all__ = ["Predictive", "score_of"]


# The score's integral over levels runs over so many standard deviations, with so many nodes on each
# side of the observation: the normal law's closed form is met to 1e-14.
_FARTHEST = 9.0
_LEGENDRE = np.polynomial.legendre.leggauss(48)
# Where there is an atom or an interval the integral is over values, cut where the latent law has
# these quantiles (in deviations); a piece has so many nodes, more where it may begin with a root.
_CUTS = (-9.0, -6.0, -4.0, -2.5, -1.25, 0.0, 1.25, 2.5, 4.0, 6.0, 9.0)
_SMOOTH, _SHORT, _ROOTED = (
    (0.5 * (1.0 + nodes), 0.5 * weights)
    for nodes, weights in map(np.polynomial.legendre.leggauss, (10, 8, 20))
)
# Moments are integrated in panels of this width, until the density has fallen by e^-36 and a panel
# adds less than this share.
_WIDTH, _FALLEN, _NEGLIGIBLE, _PANELS = 1.5, 36.0, 1e-16, 200
_LOG_ROOT = 0.5 * np.log(2.0 * np.pi)


@dataclass(frozen=True, eq=False)
class Predictive:
    """The law of one variable at m sites.

    Attributes
    ----------
    mu, sigma : ndarray (m,)
        Latent mean and standard deviation; without the limits, where there are limits.
    law : Marginal
        Bound to the rows of the sites if it varies.
    limits : ndarray (2, m), optional
        Normal scores that bound the latent value; infinite on open sides.
    """

    mu: FloatArray
    sigma: FloatArray
    law: Marginal
    limits: FloatArray | None = None

    @classmethod
    def of(cls, moments: Moments, law: Marginal) -> Self:
        """Return the law that latent moments define."""
        return cls(moments.mean, np.sqrt(moments.variance), law)

    @functools.cached_property
    def _bounded(self) -> Bounded | None:
        """The truncated latent law; None where no site has limits."""
        if self.limits is None or not np.isfinite(self.limits).any():
            return None
        return Bounded(self.mu, self.sigma, *self.limits)

    def quantile(self, level: float) -> FloatArray:
        """Return the quantile of a level in (0, 1)."""
        score = self.mu + self.sigma * ndtri(level)
        if self._bounded is not None:
            score = np.where(self._bounded.where, self._bounded.quantile(level), score)
        return self.law.from_normal(score)

    def cdf(self, value: float | FloatArray) -> FloatArray:
        """Return P(Y <= value), for one value or one of each site."""
        return self._tail(value, 1.0)

    def cdf_below(self, value: FloatArray) -> FloatArray:
        """Return P(Y < value), which an atom at the value is no part of."""
        if self.law.atom is None:
            return self.cdf(value)
        below = np.nextafter(value, -np.inf)
        return self.cdf(np.where(value == self.law.atom, below, value))

    def exceedance(self, value: float | FloatArray) -> FloatArray:
        """Return P(Y > value), for one value or one of each site; exact also where it is tiny."""
        return self._tail(value, -1.0)

    def distance(self, value: float | FloatArray) -> FloatArray:
        """Return how many latent deviations a value, or one of each site, is above the mean."""
        return standardised(score_of(self.law, value, self.mu.shape), self.mu, self.sigma)

    def _tail(self, value: float | FloatArray, sign: float | FloatArray) -> FloatArray:
        """Return the probability of at most a value (sign 1), or of more than it (-1)."""
        found = np.asarray(ndtr(sign * self.distance(value)))
        if self._bounded is not None:
            score = score_of(self.law, value, self.mu.shape)
            found = np.where(self._bounded.where, self._bounded.tail(score, sign), found)
        return found

    def mean(self) -> FloatArray:
        """Return E[Y], NaN where the tail of the law is too heavy for it to exist."""
        return self._moment(1, 0.0)

    def std(self) -> FloatArray:
        """Return the standard deviation of Y, NaN where it does not exist."""
        return np.sqrt(self._moment(2, self.mean()))

    def _standard_limits(self) -> tuple[FloatArray, FloatArray]:
        """Return the limits of Z (m,), infinite on open sides."""
        if self.limits is None:
            return np.full(self.mu.size, -np.inf), np.full(self.mu.size, np.inf)
        low, high = (standardised(end, self.mu, self.sigma) for end in self.limits)
        return low, high

    def has_moment(self, power: int) -> npt.NDArray[np.bool_]:
        r"""Return where E[|Y|^power] is finite (m,).

        In a tail of index :math:`\xi`, y grows like :math:`\exp(\xi z^2 / 2)`, so the integrand
        decays like a Gaussian of variance 1 / (1 - power xi sigma^2). Where that is not positive,
        and the tail within the limits, the moment does not exist.
        """
        (low, high), (least, most) = self._standard_limits(), self.law.ends()
        whole = (np.isposinf(high) & np.isposinf(most)) | (np.isneginf(low) & np.isinf(least))
        return np.asarray((power * self.law.tail_index * self.sigma**2 < 1.0) | ~whole)

    def _moment(self, power: int, centre: FloatArray | float) -> FloatArray:
        """Integrate (y - centre)^power over Z, given the limits, panel by panel by a Gauss rule.

        The panels go outwards from where the density is highest, as far as they add to the moment:
        that of a log-normal law lies where its growth has moved it. In a heavy tail panels are as
        much wider as the integrand decays more slowly; see :meth:`has_moment`.
        """
        law, known, exists = self.law, ~(self.sigma > 0.0), self.has_moment(power)
        low, high = self._standard_limits()
        decay = 1.0 - power * law.tail_index * self.sigma**2
        wide = 1.0 / np.sqrt(np.where(decay > 0.0, decay, 1.0))
        log_mass, total, first = log_between(low, high), np.zeros(self.mu.shape), low
        if law.atom is not None:
            edge = standardised(score_of(law, law.atom, self.mu.shape), self.mu, self.sigma)
            first = np.clip(edge, low, high)
            total = np.exp(log_between(low, first) - log_mass) * (law.atom - centre) ** power
        start = np.clip(0.0, first, high)
        step = _WIDTH * wide / (1.0 + 0.5 * np.where(np.isfinite(start), np.abs(start), 0.0))
        size, centre = np.abs(total), np.broadcast_to(centre, total.shape)
        for end, direction in ((high, 1.0), (first, -1.0)):
            near = start.copy()
            rows = np.flatnonzero((start != end) & exists & ~known)
            for _ in range(_PANELS):
                if not rows.size:
                    break
                far = np.clip(near[rows] + direction * step[rows], first[rows], high[rows])
                pair = (near[rows], far) if direction > 0.0 else (far, near[rows])
                part = self._panel(rows, *pair, first[rows], log_mass[rows], power, centre[rows])
                total[rows] += part
                size[rows] += np.abs(part)
                near[rows] = far
                fallen = np.abs(far * far - start[rows] ** 2) > 2.0 * _FALLEN
                over = fallen & (np.abs(part) <= _NEGLIGIBLE * size[rows])
                rows = rows[~over & (far != end[rows]) & np.isfinite(part)]
        total = np.where(known, (law.from_normal(self.mu) - centre) ** power, total)
        return np.where(exists, total, np.nan)

    def _panel(
        self,
        rows: IntArray,
        low: FloatArray,
        high: FloatArray,
        first: FloatArray,
        log_mass: FloatArray,
        power: int,
        centre: FloatArray,
    ) -> FloatArray:
        """Integrate over [low, high] in units of the deviation, at some sites."""
        atom = self.law.atom is not None
        # From an atom on, values may begin to grow with a root.
        root = np.where(low == first, 4.0, 1.0) if atom else 1.0
        total, mu, sigma = np.zeros(rows.size), self.mu[rows], self.sigma[rows]
        for node, weight in zip(*(_ROOTED if atom else _SMOOTH), strict=True):
            with np.errstate(invalid="ignore", over="ignore", under="ignore"):
                z = low + (high - low) * node**root
                y = self._values(rows, mu + sigma * z)
                share = np.exp((-0.5 * z * z - _LOG_ROOT - log_mass) / power)
                # Where y overflows the density has long vanished.
                term = np.where(np.isinf(y), 0.0, share * (y - centre)) ** power
                total += weight * (high - low) * root * node ** (root - 1.0) * term
        return total

    def _values(self, rows: IntArray, scores: FloatArray) -> FloatArray:
        """Return the values of scores at some sites; a law that varies is bound to all of them."""
        if not self.law.fields:
            return self.law.from_normal(scores)
        whole = np.zeros(self.mu.shape)
        whole[rows] = scores
        return self.law.from_normal(whole)[rows]

    def latent_mean(self) -> FloatArray:
        """Return the mean of the latent process, given the limits."""
        if self._bounded is None:
            return self.mu
        return np.where(self._bounded.where, self._bounded.moments.mean, self.mu)

    def latent_std(self) -> FloatArray:
        """Return the standard deviation of the latent process, given the limits."""
        if self._bounded is None:
            return self.sigma
        return np.where(self._bounded.where, np.sqrt(self._bounded.moments.variance), self.sigma)

    def log_density(self, observed: FloatArray) -> FloatArray:
        """Return the log density of observed values."""
        score, density = self.law.to_normal(observed), self.law.log_density(observed)
        error = (score - self.mu) / self.sigma
        with np.errstate(invalid="ignore"):
            gain = 0.5 * (score**2 - error**2)
        # At the end of a law's support, or beyond it, the predictive density has vanished.
        gain = np.where(np.isinf(score), np.where(self.sigma < 1.0, -np.inf, 0.0), gain)
        return np.asarray(density + gain - np.log(self.sigma))

    def crps(self, observed: FloatArray) -> FloatArray:
        r"""Return the continuous ranked probability score of observations, in their own units.

        .. math::

            \int (F(y) - 1[y \ge y_{obs}])^2 dy
            = 2 \int (1[y_{obs} < Q(p)] - p)\,(Q(p) - y_{obs})\,dp

        The second is taken in :math:`u = \Phi^{-1}(p)`, where the quantile function of every law
        is tame, and apart on each side of the observation, where the integrand has a kink. With
        limits or an atom it is the first. NaN gives NaN.
        """
        if self.limits is None and self.law.atom is None:
            return self._crps_by_levels(observed)
        found = self.crps_of_intervals(observed, observed)
        return np.where(np.isnan(observed), np.nan, found)

    def _crps_by_levels(self, observed: FloatArray) -> FloatArray:
        split = standardised(self.law.to_normal(observed), self.mu, self.sigma)
        kink = np.clip(split, -_FARTHEST, _FARTHEST)
        total = np.zeros_like(kink)
        for low, high, sign in ((-_FARTHEST, kink, -1.0), (kink, _FARTHEST, 1.0)):
            middle, half = 0.5 * (low + high), 0.5 * (high - low)
            for node, weight in zip(*_LEGENDRE, strict=True):
                u = middle + half * node
                gap = self.law.from_normal(self.mu + self.sigma * u) - observed
                # ndtr(-u) is 1 - p above the observation, ndtr(u) is p below it
                total += weight * half * sign * ndtr(-sign * u) * gap * np.exp(-0.5 * u * u)
        return np.asarray(np.sqrt(2.0 / np.pi) * total)

    def crps_of_intervals(self, low: FloatArray, high: FloatArray) -> FloatArray:
        r"""Return the part of the score that is certain for values that lie between limits (m,).

        .. math:: \int_{-\infty}^{low} F(y)^2 dy + \int_{high}^{\infty} (1 - F(y))^2 dy

        Whatever the value is, this much is counted; between the limits nothing is known.
        """
        inside, atom = np.where(np.isfinite(low), low, high), self.law.atom
        quantiles = [self.law.from_normal(self.mu + self.sigma * cut) for cut in _CUTS]
        if atom is not None:
            quantiles.append(np.full(inside.shape, atom))
        cuts = np.stack([low, high, *quantiles])
        # A law that saturates has no quantile so far out: its piece is left out.
        cuts = np.sort(np.where(np.isfinite(cuts), cuts, inside), axis=0)
        total = np.zeros_like(inside)
        for start, stop in itertools.pairwise(cuts):
            side = np.where(stop <= low, 1.0, -1.0)
            counts = (stop > start) & ((stop <= low) | (start >= high))
            # From an atom on, a distribution function may begin with a root.
            root = 1.0 if atom is None else np.where(start == atom, 4.0, 1.0)
            for node, weight in zip(*(_SHORT if atom is None else _ROOTED), strict=True):
                at = start + (stop - start) * node**root
                share = weight * (stop - start) * root * node ** (root - 1.0)
                total += np.where(counts, share * self._tail(at, side) ** 2, 0.0)
        return total

    def log_mass(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the log of the probability of values between limits (m,)."""
        a, b = (score_of(self.law, end, self.mu.shape) for end in (low, high))
        if self.law.atom is not None:
            a = np.where(low <= self.law.atom, -np.inf, a)
        a, b = np.where(np.isinf(low), low, a), np.asarray(b)
        return log_between(*(standardised(end, self.mu, self.sigma) for end in (a, b)))


def score_of(law: Marginal, value: float | FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Return the normal score of a value, or of one of each site."""
    # A law that varies has a score at each site, a constant one the same at all.
    return law.to_normal(np.broadcast_to(value, shape) if law.fields else value)
