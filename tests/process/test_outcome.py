"""Predictive formulas against closed forms, scipy.stats and Monte Carlo."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from xcopula.marginals import GEV, Exponential, Gamma, Grouped, LogNormal, Normal, StudentT, regress
from xcopula.process import outcome

MEAN = np.array([-1.3, 0.0, 0.4, 2.0])
STD = np.array([1.0, 0.3, 0.05, 0.7])
NORMAL = Normal(3.0, 2.0)
LOGNORMAL = LogNormal(0.5, 0.8)

# The predictive law itself: normal, and log-normal with the latent moments scaled.
CLOSED = [
    (NORMAL, stats.norm(3.0 + 2.0 * MEAN, 2.0 * STD)),
    (LOGNORMAL, stats.lognorm(0.8 * STD, scale=np.exp(0.5 + 0.8 * MEAN))),
]
ONE, ZERO = np.array([1.0]), np.array([0.0])


@pytest.mark.parametrize(("law", "exact"), CLOSED, ids=["normal", "lognormal"])
class TestClosedForms:
    @pytest.mark.parametrize("level", [1e-9, 0.05, 0.5, 0.95, 1 - 1e-9])
    def test_quantile(self, law, exact, level):
        """Quantiles are those of the predictive law."""
        np.testing.assert_allclose(
            outcome.quantile(MEAN, STD, law, level), exact.ppf(level), rtol=1e-9
        )

    @pytest.mark.parametrize("value", [0.1, 1.0, 4.0, 30.0])
    def test_cdf_and_exceedance(self, law, exact, value):
        """Both probabilities are exact, also where they are tiny."""
        np.testing.assert_allclose(
            outcome.cdf(MEAN, STD, law, value), exact.cdf(value), rtol=1e-9, atol=1e-300
        )
        np.testing.assert_allclose(
            outcome.exceedance(MEAN, STD, law, value), exact.sf(value), rtol=1e-9, atol=1e-300
        )

    def test_mean_and_std(self, law, exact):
        """The quadrature is exact for these laws."""
        np.testing.assert_allclose(outcome.mean(MEAN, STD, law), exact.mean(), rtol=1e-12)
        np.testing.assert_allclose(outcome.std(MEAN, STD, law), exact.std(), rtol=1e-10)


def test_a_tiny_exceedance_is_right():
    """A probability near 1e-20 keeps its digits instead of vanishing in 1 - cdf."""
    score = 9.3
    threshold = float(LOGNORMAL.from_normal(score))
    tail = outcome.exceedance(ZERO, ONE, LOGNORMAL, threshold)[0]
    assert 1e-21 < tail < 1e-19
    assert tail == pytest.approx(stats.norm.sf(score), rel=1e-9)
    low = float(LOGNORMAL.from_normal(-score))
    assert outcome.cdf(ZERO, ONE, LOGNORMAL, low)[0] == pytest.approx(tail, rel=1e-9)


@pytest.mark.parametrize(
    "law", [Exponential(2.0), Gamma(2.5, 1.5), GEV(1.0, 0.5, 0.2), StudentT(1.0, 2.0, 5.0)]
)
def test_monte_carlo(law):
    """Quantiles, probabilities and moments agree with draws of the predictive law."""
    mean, std = np.array([0.6]), np.array([0.5])
    z = np.random.default_rng(0).normal(size=400_000)
    draws = law.from_normal(mean + std * z)
    error = 5.0 / np.sqrt(draws.size)
    for level in (0.1, 0.5, 0.9):
        q = float(outcome.quantile(mean, std, law, level)[0])
        assert abs((draws <= q).mean() - level) < error
    assert abs((draws > 2.0).mean() - outcome.exceedance(mean, std, law, 2.0)[0]) < error
    assert abs(draws.mean() - outcome.mean(mean, std, law)[0]) < error * draws.std()
    assert outcome.std(mean, std, law)[0] == pytest.approx(draws.std(), rel=0.03)


class TestHeavyTails:
    @pytest.mark.parametrize("shape", [-0.3, 0.0, 0.2, 0.45, 0.6, 0.9])
    def test_gev_moments_at_prior_variance(self, shape):
        """With s = 1 the moments are those of the law, and NaN where it has none."""
        law, exact = GEV(0.0, 1.0, shape), stats.genextreme(-shape)
        assert outcome.mean(ZERO, ONE, law)[0] == pytest.approx(exact.mean(), rel=1e-6)
        spread = outcome.std(ZERO, ONE, law)[0]
        if shape < 0.5:
            assert spread == pytest.approx(exact.std(), rel=1e-4)
        else:
            assert np.isnan(spread)

    @pytest.mark.parametrize("law", [GEV(0.0, 1.0, 1.2), StudentT(0.0, 1.0, 0.9)])
    def test_no_mean(self, law):
        """A tail of index one or more has no mean at s = 1, but one where s is small."""
        both = outcome.mean(np.zeros(2), np.array([1.0, 0.3]), law)
        assert np.isnan(both[0])
        assert np.isfinite(both[1])
        assert np.isnan(outcome.std(ZERO, ONE, law)[0])

    @pytest.mark.parametrize("df", [1.2, 1.5, 2.0])
    def test_t_with_a_mean_but_no_variance(self, df):
        """Between one and two degrees of freedom there is a mean and no standard deviation."""
        law = StudentT(4.0, 2.0, df)
        assert outcome.mean(ZERO, ONE, law)[0] == pytest.approx(4.0, abs=1e-4)
        assert np.isnan(outcome.std(ZERO, ONE, law)[0])

    @pytest.mark.parametrize("df", [2.1, 2.5, 4.0])
    def test_t_near_the_edge_of_a_variance(self, df):
        """A variance that barely exists is still right."""
        spread = outcome.std(ZERO, ONE, StudentT(0.0, 2.0, df))[0]
        assert spread == pytest.approx(2.0 * stats.t(df).std(), rel=1e-4)


class TestExactCells:
    def test_a_known_cell_has_no_spread(self):
        """With s = 0 every quantile is the value, and the standard deviation is zero."""
        mean, std = np.array([0.7]), np.array([0.0])
        value = float(LOGNORMAL.from_normal(0.7))
        for level in (0.01, 0.5, 0.99):
            assert outcome.quantile(mean, std, LOGNORMAL, level)[0] == value
        assert outcome.std(mean, std, LOGNORMAL)[0] == 0.0
        assert outcome.mean(mean, std, LOGNORMAL)[0] == pytest.approx(value, rel=1e-14)

    def test_probabilities_are_zero_or_one(self):
        """A known value is at most itself and does not exceed itself."""
        mean, std = np.array([0.0]), np.array([0.0])
        for value, at_most in [(2.9, 0.0), (3.0, 1.0), (3.1, 1.0)]:
            assert outcome.cdf(mean, std, NORMAL, value)[0] == at_most
            assert outcome.exceedance(mean, std, NORMAL, value)[0] == 1.0 - at_most

    def test_nan_stays_nan(self):
        """A cell without a prediction has none in any form."""
        mean, std = np.array([np.nan, 0.0]), np.array([np.nan, 1.0])
        for function, extra in [
            (outcome.quantile, (0.5,)),
            (outcome.cdf, (1.0,)),
            (outcome.exceedance, (1.0,)),
            (outcome.mean, ()),
            (outcome.std, ()),
        ]:
            out = function(mean, std, LOGNORMAL, *extra)
            assert np.isnan(out).tolist() == [True, False]


class TestVaryingLaws:
    """Each cell has a law of its own, bound to its row."""

    GROUPS = Grouped("k", ("a", "b", "c"), (NORMAL, LOGNORMAL, GEV(0.0, 1.0, 0.6)))
    ROWS = np.array([[0.0], [1.0], [2.0], [1.0]])
    FUNCTIONS = (
        (outcome.quantile, 0.9),
        (outcome.cdf, 2.0),
        (outcome.exceedance, 2.0),
        (outcome.mean, None),
        (outcome.std, None),
    )

    @pytest.mark.parametrize(("function", "extra"), FUNCTIONS)
    def test_cell_by_cell(self, function, extra):
        """Every result is that of the cell's law alone, NaN where that has no moment."""
        rest = () if extra is None else (extra,)
        std = np.array([1.0, 0.3, 0.95, 0.7])
        got = function(MEAN, std, self.GROUPS.at(self.ROWS), *rest)
        for n, row in enumerate(self.ROWS[:, 0].astype(int)):
            one = slice(n, n + 1)
            expected = function(MEAN[one], std[one], self.GROUPS.laws[row], *rest)
            np.testing.assert_allclose(got[one], expected, rtol=1e-12)
        assert np.isnan(got[2]) == (function is outcome.std)

    @pytest.mark.parametrize(("function", "extra"), FUNCTIONS)
    @pytest.mark.parametrize("spread", [0.0, 0.5])
    def test_nan_rows(self, function, extra, spread):
        """A cell whose covariate is missing has no prediction, known exactly or not."""
        rest = () if extra is None else (extra,)
        x = np.linspace(0.0, 1.0, 20)
        trend = regress("gamma", on="x").fit(np.exp(x) + np.tile([0.1, 0.3], 10), x[:, None])
        rows = np.array([[0.2], [np.nan], [0.4], [0.9]])
        for law in (trend.at(rows), self.GROUPS.at(np.array([[0.0], [np.nan], [1.0], [0.0]]))):
            out = function(MEAN, np.full(4, spread), law, *rest)
            assert np.isnan(out).tolist() == [False, True, False, False]

    def test_regression_shifts_the_prediction(self):
        """Under an identity link the mean moves by the trend and the spread does not."""
        x = np.linspace(0.0, 1.0, 20)
        law = regress("normal", on="x").fit(3.0 * x + np.tile([0.1, -0.1], 10), x[:, None])
        bound = law.at(np.array([[0.0], [1.0]]))
        mean = outcome.mean(np.zeros(2), np.full(2, 0.5), bound)
        assert mean[1] - mean[0] == pytest.approx(law.parameters["x"])
        spread = outcome.std(np.zeros(2), np.full(2, 0.5), bound)
        assert spread[0] == pytest.approx(spread[1]) == 0.5 * law.base.scale

    def test_crps(self):
        """The score of an observation is that under the law of its row."""
        observed = np.array([2.0, 1.0, 0.5, 3.0])
        got = outcome.crps(MEAN, STD, self.GROUPS.at(self.ROWS), observed)
        for n, row in enumerate(self.ROWS[:, 0].astype(int)):
            one = slice(n, n + 1)
            law = self.GROUPS.laws[row]
            expected = outcome.crps(MEAN[one], STD[one], law, observed[one])
            np.testing.assert_allclose(got[one], expected, rtol=1e-12)


class TestCrps:
    """Ranks laws and rules: it has to be right to more digits than they differ by."""

    @pytest.mark.parametrize("far", np.linspace(0.0, 5.0, 11))
    def test_closed_form_of_the_normal(self, far):
        """Observations up to five standard deviations out: 1e-12."""
        observed = np.array([far, -far])
        closed = (
            far * (2.0 * stats.norm.cdf(far) - 1.0)
            + 2.0 * stats.norm.pdf(far)
            - 1.0 / np.sqrt(np.pi)
        )
        found = outcome.crps(np.zeros(2), np.ones(2), Normal(0.0, 1.0), observed)
        np.testing.assert_allclose(found, closed, rtol=1e-12)

    @pytest.mark.parametrize("far", [-8.0, -6.5, 6.5, 8.0])
    def test_closed_forms_of_observations_far_out(self, far):
        """Eight standard deviations out, where one side takes nearly the whole range."""
        observed = LOGNORMAL.from_normal(MEAN + far * STD)
        scale = 0.8 * STD
        below, above = 2.0 * stats.norm.cdf(far) - 1.0, stats.norm.cdf(far - scale)
        closed = observed * below - 2.0 * np.exp(0.5 + 0.8 * MEAN + scale**2 / 2.0) * (
            above + stats.norm.cdf(scale / np.sqrt(2.0)) - 1.0
        )
        found = outcome.crps(MEAN, STD, LOGNORMAL, observed)
        np.testing.assert_allclose(found, closed, rtol=1e-11)

    def test_of_what_is_known_it_is_the_distance(self):
        """Without uncertainty the score is the absolute error; of a missing value it is NaN."""
        observed = np.array([1.5, 0.5, 1.0, np.nan])
        found = outcome.crps(np.ones(4), np.zeros(4), Normal(0.0, 1.0), observed)
        np.testing.assert_allclose(found, [0.5, 0.5, 0.0, np.nan], atol=1e-14)

    def test_a_value_that_the_law_excludes(self):
        """Below the support the score is the mean distance to it: E|Y - y| - E|Y - Y'| / 2."""
        law, draws = LogNormal(0.0, 1.0), np.random.default_rng(0).normal(size=(2, 2_000_000))
        y, other = np.exp(draws)
        found = outcome.crps(np.zeros(1), np.ones(1), law, np.array([-1.0]))[0]
        expected = np.abs(y + 1.0).mean() - 0.5 * np.abs(y - other).mean()
        assert found == pytest.approx(expected, rel=3e-3)
