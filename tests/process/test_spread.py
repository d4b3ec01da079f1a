"""Laws of errors against scipy's normal and Student's t."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from xcopula.process.spread import NORMAL, Spread, Student


def test_one_normal_law():
    """Without doubt about the scale, errors are normal."""
    assert NORMAL.quantile(0.95) == stats.norm.ppf(0.95)
    assert NORMAL.quantile(0.5) == 0.0
    assert NORMAL.std == 1.0


def test_a_mixture_of_two():
    """Its quantile is where the mixture's distribution function has the level."""
    both = Spread(np.array([0.5, 3.0]), np.array([0.7, 0.3]))
    for level in (0.01, 0.3, 0.5, 0.9):
        at = both.quantile(level)
        assert both.weights @ stats.norm.cdf(at / both.scales) == pytest.approx(level, abs=1e-15)
    draws = np.random.default_rng(0).choice(both.scales, 200_000, p=both.weights)
    assert both.std == pytest.approx(np.sqrt(np.mean(draws**2)), rel=0.01)


class TestStudent:
    @pytest.mark.parametrize(("values", "parameters", "close"), [(35, 4, 1e-9), (14, 4, 1e-5)])
    def test_quantiles_are_those_of_t(self, values, parameters, close):
        """The deviation times sqrt(n / (n - k)), with n - k degrees of freedom."""
        exact = stats.t(values - parameters, scale=np.sqrt(values / (values - parameters)))
        spread = Student(values, parameters).spread
        for level in (0.025, 0.05, 0.4, 0.5, 0.75, 0.95, 0.975):
            assert spread.quantile(level) == pytest.approx(exact.ppf(level), rel=close)
        assert spread.quantile(0.999) == pytest.approx(exact.ppf(0.999), rel=1e-3)
        assert spread.std == pytest.approx(exact.std(), rel=max(1e-8, 20.0 * close))

    def test_many_values_leave_no_doubt(self):
        """With a million values it is next to normal, and the rule does not overflow."""
        assert Student(1e6, 10).spread.quantile(0.95) == pytest.approx(stats.norm.ppf(0.95), 2e-5)

    def test_the_far_tail_is_normal(self):
        """So the mean of a variable that grows like an exponential exists."""
        scales, weights = Student(35.0, 4.0).spread.scales, Student(35.0, 4.0).spread.weights
        mean = weights @ np.exp(0.5 * scales**2)
        assert np.exp(0.5) < mean < 2.0
        assert weights.sum() == pytest.approx(1.0, abs=1e-15)
