"""The latent law of a value that is known as an interval: what all others say, between its limits.

At the site of such a value an observation is that value. Of its score the other data tell a mean
and a deviation, and the datum tells the limits.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from xcopula.process import outcome
from xcopula.process.intervals import Intervals, truncate
from xcopula.process.roots import find_roots
from xcopula.process.sample import Moments, Sample
from xcopula.process.spread import Spread

__all__ = ["Bounded", "Limits"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
# How far a law is followed into its tail: by so much the exponent of its density falls.
_DECAY = 45.0
_TINY = 1e-100  # a deviation where a number is known
_FARTHEST = 37.0  # beyond so many deviations a normal probability underflows


@dataclass(frozen=True)
class Limits:
    """Between which scores the observations of a sample lie.

    Attributes
    ----------
    sample : Sample
    low, high : ndarray (n,)
        Infinite on open sides, and for numbers.
    """

    sample: Sample
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, intervals: Intervals | None, sample: Sample) -> Limits | None:
        """Return the limits of a sample, None if it has no intervals."""
        if intervals is None:
            return None
        low, high = np.full(sample.size, -np.inf), np.full(sample.size, np.inf)
        low[intervals.rows], high[intervals.rows] = intervals.low, intervals.high
        return cls(sample, low, high)

    def holds(self, task: int) -> bool:
        """Tell whether a task has intervals."""
        own = self.sample.task(task)
        return bool((np.isfinite(self.low[own]) | np.isfinite(self.high[own])).any())

    def at(self, sites: IntArray, task: int) -> FloatArray:
        """Return the limits (2, m) of a task at sites; infinite where it is no interval."""
        datum = self.sample.observed(task, sites)
        return np.stack(
            [
                np.where(datum >= 0, self.low[datum], -np.inf),
                np.where(datum >= 0, self.high[datum], np.inf),
            ]
        )


@dataclass(frozen=True, eq=False)
class Bounded:
    """A latent law between limits, at m sites.

    Attributes
    ----------
    mean, std : ndarray (m,)
        Without the limits.
    spread : Spread
        The law of its errors, in units of the deviation.
    low, high : ndarray (m,)
    """

    mean: FloatArray
    std: FloatArray
    spread: Spread
    low: FloatArray
    high: FloatArray

    @property
    def where(self) -> npt.NDArray[np.bool_]:
        """At which sites there are limits."""
        return np.isfinite(self.low) | np.isfinite(self.high)

    def _parts(self) -> list[tuple[float, FloatArray]]:
        """Return shares and deviations of the normal laws that it is a mixture of."""
        pairs = zip(self.spread.weights.tolist(), self.spread.scales.tolist(), strict=True)
        return [(share, np.maximum(scale * self.std, _TINY)) for share, scale in pairs]

    def _free(self, score: FloatArray, sign: FloatArray) -> FloatArray:
        """Return the probability up to a score (sign 1), or above it (-1), without the limits."""
        total = np.zeros(self.mean.shape)
        for share, std in self._parts():
            total = total + share * outcome.tail(score, self.mean, std, sign)
        return total

    def tail(self, score: FloatArray | float, sign: float | FloatArray) -> FloatArray:
        """Return the probability up to a score (sign 1), or above it (-1), given the limits."""
        at = np.clip(score, self.low, self.high)
        up_to_low, up_to_high, mass = self._sides
        start = np.where(np.asarray(sign) > 0.0, up_to_low, up_to_high)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.abs(self._free(at, self._side) - start) / mass
        below = np.where(at >= self._edge, 1.0, 0.0)
        gone = np.where(np.asarray(sign) > 0.0, below, 1.0 - below)
        return np.where(mass > 0.0, np.clip(found, 0.0, 1.0), gone)

    @property
    def _side(self) -> FloatArray:
        """From which side probabilities are taken: of the tail that the interval is in."""
        return np.where(self.low > self.mean, -1.0, 1.0)

    @property
    def _edge(self) -> FloatArray:
        """The nearer limit: so far out that probabilities underflow, all is there."""
        return np.where(self.low > self.mean, self.low, self.high)

    @functools.cached_property
    def _sides(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        low, high = self._free(self.low, self._side), self._free(self.high, self._side)
        return low, high, np.abs(high - low)

    def _range(self) -> tuple[FloatArray, FloatArray]:
        """Return between which finite scores nearly all of the law lies."""
        wide = np.maximum(float(self.spread.scales.max()) * self.std, _TINY)
        near = np.clip(self.mean, self.low, self.high)
        off = (near - self.mean) / wide
        reach = wide * (np.sqrt(off * off + 2.0 * _DECAY) - np.abs(off))
        whole = np.sqrt(2.0 * _DECAY) * wide
        low = np.maximum(self.low, near - np.where(off < 0.0, reach, whole))
        high = np.minimum(self.high, near + np.where(off > 0.0, reach, whole))
        return low, high

    def quantile(self, level: float | FloatArray) -> FloatArray:
        """Return the score of a level in (0, 1), or of one of each site."""
        sign, goal = np.where(np.asarray(level) <= 0.5, 1.0, -1.0), ndtri(level)

        def excess(score: FloatArray) -> FloatArray:
            found = sign * ndtri(self.tail(score, sign))
            return np.asarray(np.clip(found, -_FARTHEST, _FARTHEST) - goal)

        return np.where(self._sides[2] > 0.0, find_roots(excess, *self._range()), self._edge)

    def nodes(self) -> tuple[FloatArray, FloatArray]:
        """Return scores and weights (j, m) whose sums are integrals over the law."""
        low, high = self._range()
        scores = 0.5 * (low + high) + 0.5 * (high - low) * _NODES[:, None]
        each = np.stack(
            [
                np.log(share / std) - 0.5 * ((scores - self.mean) / std) ** 2
                for share, std in self._parts()
            ]
        )
        # In units of the largest: all may be far out.
        logs = np.logaddexp.reduce(each)
        with np.errstate(under="ignore"):
            weights = _WEIGHTS[:, None] * np.exp(logs - logs.max(axis=0))
        return scores, weights / weights.sum(axis=0)

    def log_mass(self) -> FloatArray:
        """Return the log of the probability of the interval."""
        with np.errstate(divide="ignore"):
            each = [
                np.log(share) + truncate(Moments(self.mean, std**2), self.low, self.high).log_mass
                for share, std in self._parts()
            ]
        return np.asarray(np.logaddexp.reduce(each))
