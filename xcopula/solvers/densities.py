"""Log densities of the terms of a likelihood, and how surely one model has more than another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Densities"]

FloatArray = npt.NDArray[np.float64]


class Densities(NamedTuple):
    """Log densities of terms that stand for all.

    Attributes
    ----------
    each : ndarray (r,)
    weights : ndarray (r,)
        How often each term counts.
    clusters : ndarray (r,), int
        Which terms were drawn together; -1 for those that stand for themselves.
    """

    each: FloatArray
    weights: FloatArray
    clusters: npt.NDArray[np.int32]

    @property
    def total(self) -> float:
        """The log-likelihood."""
        return float(self.weights @ self.each)

    def error(self, other: Densities) -> float:
        """Return the standard error of the difference of two totals over the same terms.

        The units are clusters, and terms that stand for themselves: how much their differences
        vary says how far the sum could be from what other data would give.
        """
        gain = self.weights * (self.each - other.each)
        drawn = self.clusters >= 0
        variance = _variance_of_sum(gain[~drawn])
        for weight in np.unique(self.weights[drawn]):  # a level of the order each
            own = drawn & (self.weights == weight)
            _, cluster = np.unique(self.clusters[own], return_inverse=True)
            variance += _variance_of_sum(np.bincount(cluster, gain[own]).astype(np.float64))
        return float(np.sqrt(variance))


def _variance_of_sum(units: FloatArray) -> float:
    return units.size * float(units.var(ddof=1)) if units.size > 1 else 0.0
