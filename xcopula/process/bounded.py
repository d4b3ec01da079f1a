"""The latent law of a value that is known as an interval: normal, truncated to the interval.

At the site of such a value an observation is that value. The other data give the mean and the
deviation of its score, and the datum gives the limits.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

from xcopula.arrays import FloatArray, IntArray
from xcopula.marginals.tails import log_between, normal_score
from xcopula.process.intervals import Intervals, TruncatedNormal, truncate
from xcopula.process.sample import Moments, Sample

__all__ = ["Bounded", "Limits", "standardised"]


def standardised(
    score: float | FloatArray, mean: FloatArray, std: FloatArray
) -> npt.NDArray[np.float64]:
    """Return how many deviations a score is above the mean.

    Where the latent value is known (std = 0) that is infinite; the value itself is not above it.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        side = np.where(score >= mean, np.inf, -np.inf)
        found = np.where(std > 0.0, (score - mean) / std, side)
    return np.where(np.isnan(score) | np.isnan(mean), np.nan, found)


@dataclass(frozen=True)
class Limits:
    """The intervals of normal scores in which the observations of a sample lie.

    Attributes
    ----------
    sample : Sample
    low, high : ndarray (n,)
        Infinite on open sides, and for exact values.
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
        rows = self.sample.task(task)
        return bool((np.isfinite(self.low[rows]) | np.isfinite(self.high[rows])).any())

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
    """Truncated normal laws at m sites.

    All is computed from logarithms of probabilities, so that far tails keep their digits.

    Attributes
    ----------
    mean, std : ndarray (m,)
        Without the limits.
    low, high : ndarray (m,)
    """

    mean: FloatArray
    std: FloatArray
    low: FloatArray
    high: FloatArray

    @property
    def where(self) -> npt.NDArray[np.bool_]:
        """At which sites there are limits."""
        return np.isfinite(self.low) | np.isfinite(self.high)

    @functools.cached_property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """The limits in units of the deviation from the mean."""
        return (
            standardised(self.low, self.mean, self.std),
            standardised(self.high, self.mean, self.std),
        )

    @functools.cached_property
    def _log_mass(self) -> FloatArray:
        return log_between(*self._ends)

    @functools.cached_property
    def moments(self) -> TruncatedNormal:
        """Mean and variance given the limits."""
        variance = np.where(self.std > 0.0, self.std**2, 1.0)
        return truncate(Moments(self.mean, variance), self.low, self.high)

    def tail(self, score: FloatArray | float, sign: float | FloatArray) -> FloatArray:
        """Return the probability up to a score (sign 1), or above it (-1), given the limits."""
        low, high = self._ends
        at = np.clip(standardised(score, self.mean, self.std), low, high)
        below = np.asarray(sign) > 0.0
        part = log_between(np.where(below, low, at), np.where(below, at, high))
        return np.asarray(np.clip(np.exp(part - self._log_mass), 0.0, 1.0))

    def quantile(self, level: float | FloatArray) -> FloatArray:
        """Return the score of a level in (0, 1), or of one of each site."""
        low, high = self._ends
        log_cdf = np.logaddexp(log_ndtr(low), np.log(level) + self._log_mass)
        log_sf = np.logaddexp(log_ndtr(-high), np.log1p(-np.asarray(level)) + self._log_mass)
        score = np.clip(normal_score(log_cdf, log_sf), low, high)
        return np.clip(self.mean + self.std * score, self.low, self.high)
