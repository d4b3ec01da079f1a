"""Laws between limits against integrals and draws."""

from __future__ import annotations

import numpy as np
from scipy import stats

from xcopula.process import Sample
from xcopula.process.bounded import Bounded, Limits
from xcopula.process.intervals import Intervals

MEAN, STD = np.array([0.3, -1.0, 0.5, 2.0]), np.array([0.8, 0.5, 1.5, 1.0])
LOW, HIGH = np.array([-np.inf, 0.2, -0.4, -np.inf]), np.array([0.1, np.inf, 0.9, np.inf])


def normal(k):
    """Return scipy's truncated normal law of a site."""
    a, b = (LOW[k] - MEAN[k]) / STD[k], (HIGH[k] - MEAN[k]) / STD[k]
    return stats.truncnorm(a, b, MEAN[k], STD[k])


class TestNormal:
    law = Bounded(MEAN, STD, LOW, HIGH)

    def test_probabilities_and_quantiles(self):
        """Both tails and quantiles are scipy's, to 1e-9."""
        at = np.array([-0.2, 0.5, 0.3, 2.5])
        expected = [normal(k).cdf(at[k]) for k in range(4)]
        np.testing.assert_allclose(self.law.tail(at, 1.0), expected, atol=1e-12)
        np.testing.assert_allclose(self.law.tail(at, -1.0), 1.0 - np.array(expected), atol=1e-12)
        for level in (0.01, 0.5, 0.97):
            own = [normal(k).ppf(level) for k in range(4)]
            np.testing.assert_allclose(self.law.quantile(level), own, atol=1e-8)
        np.testing.assert_array_equal(self.law.where, [True, True, True, False])

    def test_beyond_the_limits(self):
        """There is nothing below the lower limit and nothing above the upper one."""
        np.testing.assert_array_equal(self.law.tail(-9.0, 1.0)[1:3], 0.0)
        np.testing.assert_array_equal(self.law.tail(9.0, 1.0)[[0, 2]], 1.0)
        np.testing.assert_array_equal(self.law.tail(9.0, -1.0)[[0, 2]], 0.0)

    def test_moments(self):
        """Means and variances are scipy's."""
        found = self.law.moments
        np.testing.assert_allclose(found.mean, [normal(k).mean() for k in range(4)], atol=1e-9)
        np.testing.assert_allclose(found.variance, [normal(k).var() for k in range(4)], atol=1e-9)


def test_far_tails():
    """Up to 50 deviations out quantiles and probabilities keep their digits."""
    low = np.array([8.0, 20.0, 50.0])
    law = Bounded(np.zeros(3), np.ones(3), low, np.full(3, np.inf))
    mirrored = Bounded(np.zeros(3), np.ones(3), np.full(3, -np.inf), -low)
    for level in (1e-12, 0.05, 0.5, 0.95, 1.0 - 1e-9):
        found = law.quantile(level)
        np.testing.assert_allclose(law.tail(found, -1.0), 1.0 - level, rtol=1e-9)
        # An exponential law of rate a, to first order in 1 / a^2.
        expected = low - np.log1p(-level) / low
        np.testing.assert_allclose(found[1:], expected[1:], atol=0.08)
        np.testing.assert_allclose(mirrored.quantile(1.0 - level), -found, atol=1e-9)
    exact = stats.norm.isf(0.5 * stats.norm.sf(low[:2]))
    np.testing.assert_allclose(law.quantile(0.5)[:2], exact, rtol=1e-13)


def test_narrow_intervals():
    """Their quantiles are spread evenly."""
    low = np.array([0.0, 3.0, -30.0])
    law = Bounded(np.zeros(3), np.ones(3), low, low + 1e-7)
    for level in (0.25, 0.5, 0.75):
        np.testing.assert_allclose((law.quantile(level) - low) / 1e-7, level, atol=1e-5)
        np.testing.assert_allclose(law.tail(low + level * 1e-7, 1.0), level, atol=1e-5)


def test_limits_are_found_by_site():
    """Each task has its own; numbers and other places have none."""
    sample = Sample.of([np.array([[0.0], [1.0]]), np.array([[1.0], [2.0]])], [np.ones(2)] * 2)
    intervals = Intervals(np.array([0, 3]), np.zeros((2, 2)), np.array([-np.inf, 0.5]), np.ones(2))
    limits = Limits.of(intervals, sample)
    sites = np.append(sample.sites[[0, 1, 3]], -1)
    np.testing.assert_array_equal(limits.at(sites, 0)[1], [1.0, np.inf, np.inf, np.inf])
    np.testing.assert_array_equal(limits.at(sites, 1)[0], [-np.inf, -np.inf, 0.5, -np.inf])
    assert limits.holds(0)
    assert limits.holds(1)
    assert Limits.of(None, sample) is None
