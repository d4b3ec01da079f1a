"""Laws between limits against integrals and draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from xcopula.process import NORMAL, Sample, Student
from xcopula.process.bounded import Bounded, Limits
from xcopula.process.intervals import Intervals

MEAN, STD = np.array([0.3, -1.0, 0.5, 2.0]), np.array([0.8, 0.5, 1.5, 1.0])
LOW, HIGH = np.array([-np.inf, 0.2, -0.4, -np.inf]), np.array([0.1, np.inf, 0.9, np.inf])


def normal(k):
    """Return scipy's truncated normal law of a site."""
    a, b = (LOW[k] - MEAN[k]) / STD[k], (HIGH[k] - MEAN[k]) / STD[k]
    return stats.truncnorm(a, b, MEAN[k], STD[k])


class TestNormal:
    law = Bounded(MEAN, STD, NORMAL, LOW, HIGH)

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

    def test_integrals_and_mass(self):
        """Means and variances by its nodes, and the log mass, are scipy's."""
        scores, weights = self.law.nodes()
        mean = (weights * scores).sum(axis=0)
        variance = (weights * scores**2).sum(axis=0) - mean**2
        np.testing.assert_allclose(mean, [normal(k).mean() for k in range(4)], atol=1e-9)
        np.testing.assert_allclose(variance, [normal(k).var() for k in range(4)], atol=1e-9)
        mass = stats.norm.cdf(HIGH, MEAN, STD) - stats.norm.cdf(LOW, MEAN, STD)
        np.testing.assert_allclose(self.law.log_mass(), np.log(mass), atol=1e-10)


def test_far_out():
    """50 deviations out, where probabilities underflow, all is at the nearer limit."""
    law = Bounded(np.zeros(2), np.ones(2), NORMAL, np.array([50.0, -51.0]), np.array([51.0, -50.0]))
    np.testing.assert_allclose(np.abs(law.quantile(0.5)), 50.0, atol=0.05)
    scores, weights = law.nodes()
    np.testing.assert_allclose(np.abs((scores * weights).sum(axis=0)), 50.02, atol=1e-3)
    np.testing.assert_array_equal(law.tail(np.array([50.5, -50.5]), 1.0), [1.0, 0.0])


def test_student():
    """A t law between limits is that of scipy, as nearly as its normal parts are."""
    student = Student(20.0, 5.0)
    law = Bounded(MEAN[:1], STD[:1], student.spread, LOW[:1], HIGH[:1])
    t = stats.t(15.0, MEAN[0], STD[0] * np.sqrt(20.0 / 15.0))
    whole = t.cdf(HIGH[0])
    assert law.tail(np.array([-1.0]), 1.0)[0] == pytest.approx(t.cdf(-1.0) / whole, abs=1e-6)
    assert law.quantile(0.3)[0] == pytest.approx(t.ppf(0.3 * whole), abs=1e-5)
    assert law.log_mass()[0] == pytest.approx(np.log(whole), abs=1e-6)
    scores, weights = law.nodes()
    values = np.linspace(-14.0, HIGH[0], 200_001)
    expected = np.trapezoid(values * t.pdf(values), values) / whole
    assert (scores * weights).sum() == pytest.approx(expected, abs=1e-4)


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
