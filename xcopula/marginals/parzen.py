"""The Parzen window law: a smoothed sample with Pareto tails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr

from xcopula.marginals.base import Marginal
from xcopula.marginals.estimation import check_sample
from xcopula.marginals.smoother import (
    ParetoTail,
    ScoreTable,
    choose_bandwidth,
    fit_tail_shape,
    representatives,
    smooth,
    tabulate,
)
from xcopula.marginals.tails import Array, log_phi, normal_score, smaller_tail

__all__ = ["Parzen"]

_PER_TAIL = 20  # values past each threshold, but at least 5 % and at most 20 % of the sample


@dataclass(frozen=True, eq=False)
class Parzen(Marginal):
    r"""Describe a variable by its own sample, smoothed, with tails that extrapolate.

    Between two thresholds F is the distribution function of the sample, smoothed by a Gaussian
    kernel. It is stored as an increasing cubic in z, with knots an eighth of a bandwidth apart.
    Past the thresholds it is a generalised Pareto tail that continues F and its density:

    .. math:: 1 - F(y) = p \left(1 + \xi (y - u)/\sigma\right)^{-1/\xi}, \quad \sigma = p / f(u)

    with :math:`\xi` in [0, 0.5] by penalised maximum likelihood. So every number has a finite score
    (every positive number, if the sample is positive).

    A positive sample is smoothed in log y, and its lower tail is a power of y
    (:math:`F \propto y^{1/\sigma}`): the support is the positive numbers. A sample with a zero or a
    negative value is smoothed as it is, and the support is all numbers.

    Outliers have no say in the bandwidth: at most a tenth of the sample on each side, ten times as
    far from the median as the other values. Both maps increase for any sample.

    There are no free parameters. Scores round-trip to 1e-12 from z = -30 to 30 while y is a
    normal floating-point number. Use :meth:`fit` to make one: it depends on the sample only.

    Examples
    --------
    >>> law = Parzen.fit([1.0, 2.0, 3.0, 5.0, 8.0])
    >>> law.support
    (0.0, inf)
    """

    name: ClassVar[str] = "parzen"
    sample: Array
    logarithmic: bool
    bandwidth: float
    table: ScoreTable
    lower: ParetoTail
    upper: ParetoTail

    @classmethod
    def fit(cls, values: npt.ArrayLike, *, residuals: bool = False) -> Self:
        """Choose a bandwidth, smooth the sample, and fit the shapes of the tails.

        With ``residuals`` zero has no special meaning: a positive sample too is smoothed as it is.
        """
        sample = np.sort(check_sample(values, cls))
        logarithmic = bool(sample[0] > 0.0) and not residuals
        x = np.log(sample) if logarithmic else sample
        bandwidth = choose_bandwidth(x)
        k = int(np.clip(_PER_TAIL, 0.05 * x.size, 0.2 * x.size))
        low, high = float(x[k]), float(x[-1 - k])
        if not high - low > bandwidth:  # ties fill the body, or nearly so
            low, high = low - bandwidth, high + bandwidth
        table = tabulate(x, bandwidth, low, high)
        lower = _lower_tail(table, x, fixed=logarithmic)
        upper = _upper_tail(table, sample, logarithmic)
        return cls(sample, logarithmic, bandwidth, table, lower, upper)

    def _working(self, y: Array) -> Array:
        if not self.logarithmic:
            return y
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(y, 0.0)))

    def _split(self, y: npt.ArrayLike) -> tuple[Array, Array, Array, Array]:
        """Return body coordinate, lower and upper excess, and part: -1, 0 or 1."""
        y = np.asarray(y, dtype=np.float64)
        x = self._working(y)
        below, above = self.lower.threshold - x, y - self.upper.threshold
        part = np.where(below > 0.0, -1, np.where(above > 0.0, 1, 0))
        body = np.clip(x, self.table.x[0], self.table.x[-1])
        return body, np.maximum(below, 0.0), np.maximum(above, 0.0), part

    def to_normal(self, y: npt.ArrayLike) -> Array:
        """Map values to normal scores."""
        body, below, above, part = self._split(y)
        certain = np.zeros_like(below)
        z = np.where(part < 0, normal_score(self.lower.log_mass(below), certain), 0.0)
        z = np.where(part > 0, -normal_score(self.upper.log_mass(above), certain), z)
        return np.where(part == 0, self.table.evaluate(body)[0], z)

    def from_normal(self, z: npt.ArrayLike) -> Array:
        """Map normal scores to values."""
        z = np.asarray(z, dtype=np.float64)
        low, high = self.table.z[0], self.table.z[-1]
        # ties may put both thresholds on one side of the median
        tail = smaller_tail(z)
        to_left = tail if low <= 0.0 else log_ndtr(z)
        to_right = tail if high >= 0.0 else log_ndtr(-z)
        missing = np.isnan(z)
        x = self.table.invert(np.clip(np.where(missing, low, z), low, high))
        x = np.where(missing, np.nan, x)
        below = self.lower.distance(np.minimum(to_left, np.log(self.lower.probability)))
        above = self.upper.distance(np.minimum(to_right, np.log(self.upper.probability)))
        with np.errstate(under="ignore"):
            x = np.where(z < low, self.lower.threshold - below, x)
            y = np.exp(np.minimum(x, self.table.x[-1])) if self.logarithmic else x
        return np.where(z > high, self.upper.threshold + above, y)

    def log_density(self, y: npt.ArrayLike) -> Array:
        """Evaluate the log density, the exact derivative of F."""
        body, below, above, part = self._split(y)
        z, slope = self.table.evaluate(body)
        out = np.where(part < 0, self.lower.log_density(below), log_phi(z) + np.log(slope))
        if self.logarithmic:
            x = self._working(np.asarray(y, dtype=np.float64))
            with np.errstate(invalid="ignore"):
                out = np.where(np.isinf(x), -np.inf, out - x)
        return np.where(part > 0, self.upper.log_density(above), out)

    def log_density_slope(self, y: npt.ArrayLike) -> Array:
        """Evaluate d log f / dy; it jumps at the knots of the table."""
        body, below, above, part = self._split(y)
        z, slope = self.table.evaluate(body)
        out = self.table.curvature(body) / slope - z * slope
        out = np.where(part < 0, -self.lower.log_density_slope(below), out)
        if self.logarithmic:
            with np.errstate(divide="ignore", invalid="ignore"):
                out = (out - 1.0) / np.asarray(y, dtype=np.float64)
        return np.where(part > 0, self.upper.log_density_slope(above), out)

    @property
    def theta(self) -> Array:
        """Empty: there are no free parameters."""
        return np.empty(0)

    def with_theta(self, theta: npt.ArrayLike) -> Self:
        """Return this law: there is nothing to change."""
        if np.size(theta):
            raise ValueError(f"parzen has no free parameters, got {np.size(theta)}.")
        return self

    @property
    def parameters(self) -> dict[str, float]:
        """Bandwidth (of log y for a positive sample) and the shapes of the tails."""
        return {
            "bandwidth": self.bandwidth,
            "lower_shape": self.lower.shape,
            "upper_shape": self.upper.shape,
        }

    @property
    def support(self) -> tuple[float, float]:
        """All numbers, or the positive ones for a positive sample."""
        return (0.0 if self.logarithmic else -np.inf), np.inf

    @property
    def dof(self) -> float:
        r"""Leverage of the smoother over the body, plus one for the shape of each tail.

        .. math:: \sum_i K_h(0) / (n \hat f(y_i)) + 2
        """
        x = self._working(self.sample)
        points = representatives(x)
        body = points[(points >= self.table.x[0]) & (points <= self.table.x[-1])]
        _, density = smooth(body, x, self.bandwidth)
        peak = float(np.exp(log_phi(0.0))) / self.bandwidth
        return float((peak / (points.size * density)).sum()) + 2.0

    @property
    def tail_index(self) -> float:
        """Shape of the heavier tail; a lower tail that ends at zero has none."""
        return max(self.upper.shape, 0.0 if self.logarithmic else self.lower.shape)


def _lower_tail(table: ScoreTable, x: Array, *, fixed: bool) -> ParetoTail:
    threshold, z = float(table.x[0]), float(table.z[0])
    probability = float(ndtr(z))
    scale = probability / float(table.slope[0] * np.exp(log_phi(z)))
    shape = 0.0 if fixed else fit_tail_shape(threshold - x[x < threshold], scale)
    return ParetoTail(threshold, probability, scale, shape)


def _upper_tail(table: ScoreTable, y: Array, logarithmic: bool) -> ParetoTail:
    z, slope = float(table.z[-1]), float(table.slope[-1])
    threshold = float(np.exp(table.x[-1]) if logarithmic else table.x[-1])
    if logarithmic:
        slope /= threshold
    probability = float(ndtr(-z))
    scale = probability / float(slope * np.exp(log_phi(z)))
    shape = fit_tail_shape(y[y > threshold] - threshold, scale)
    return ParetoTail(threshold, probability, scale, shape)
