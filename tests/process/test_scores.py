"""Scores of predictions against the closed forms of the normal and the log-normal law."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from scipy import stats
from scipy.integrate import quad

from xcopula.marginals import Gamma, Grouped, LogNormal, Normal
from xcopula.process import Moments, Scores, drawn_scores, scores

LAW = Normal(3.0, 2.0)
MEAN = np.array([-1.3, 0.0, 0.4, 2.0, -0.2, 0.0])
STD = np.array([1.0, 0.3, 0.05, 0.7, 0.9, 1.0])
# From the middle of the prediction to seven of its deviations away.
OBSERVED = 3.0 + 2.0 * (MEAN + STD * np.array([0.0, -1.2, 0.4, 2.5, -4.0, 7.0]))
MOMENTS = Moments(MEAN, STD**2)
PREDICTIVE = stats.norm(3.0 + 2.0 * MEAN, 2.0 * STD)


@pytest.fixture
def found():
    """Six predictions of a normal variable."""
    return scores(MOMENTS, LAW, OBSERVED)


class TestNormal:
    def test_quantiles(self, found):
        """Median and the ends of the central 90 % are those of the predictive law, to 1e-12."""
        for got, level in [(found.median, 0.5), (found.lower, 0.05), (found.upper, 0.95)]:
            np.testing.assert_allclose(got, PREDICTIVE.ppf(level), rtol=1e-12)

    def test_pit(self, found):
        """The probability integral transform is the predictive distribution function, to 1e-12."""
        np.testing.assert_allclose(found.pit, PREDICTIVE.cdf(OBSERVED), rtol=0, atol=1e-12)

    def test_log_score(self, found):
        """The log score is the predictive log density, in the units of the variable, to 1e-12."""
        np.testing.assert_allclose(found.log_score, PREDICTIVE.logpdf(OBSERVED), rtol=1e-12)

    def test_crps(self, found):
        """The CRPS is Gneiting and Raftery's closed form, to 1e-12."""
        z = (OBSERVED - PREDICTIVE.mean()) / PREDICTIVE.std()
        closed = z * (2.0 * stats.norm.cdf(z) - 1.0) + 2.0 * stats.norm.pdf(z) - np.pi**-0.5
        np.testing.assert_allclose(found.crps / PREDICTIVE.std(), closed, rtol=1e-12)

    def test_latent_parts(self, found):
        """Scores, means and deviations are latent; what was observed is as it was."""
        np.testing.assert_array_equal(found.observed, OBSERVED)
        np.testing.assert_allclose(found.score, (OBSERVED - 3.0) / 2.0, rtol=1e-12)
        np.testing.assert_array_equal(found.mean, MEAN)
        np.testing.assert_allclose(found.std, STD, rtol=1e-14)

    def test_every_part_has_an_entry_for_each_value(self, found):
        """All parts are arrays (m,), under their names."""
        assert isinstance(found, Scores)
        assert all(part.shape == MEAN.shape for part in found)


class TestOtherLaws:
    @pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (0.3, 0.5)])
    def test_a_value_outside_the_support(self, mean, std):
        """No density and the lowest PIT; the CRPS is finite and larger than at the end."""
        moments = Moments(np.full(2, mean), np.full(2, std**2))
        found = scores(moments, Gamma(2.0, 1.0), np.array([-1.0, 0.01]))
        assert found.log_score[0] == -np.inf
        assert np.isfinite(found.log_score[1])
        assert found.pit[0] == 0.0
        assert found.crps[0] - found.crps[1] == pytest.approx(1.01, rel=0.05)

    @pytest.mark.parametrize("observed", [0.4, 1.5, 6.0])
    def test_lognormal(self, observed):
        """Log score, PIT and quantiles are those of the log-normal prediction, to 1e-10."""
        law = LogNormal(0.5, 0.8)
        expected = stats.lognorm(0.8 * STD, scale=np.exp(0.5 + 0.8 * MEAN))
        found = scores(MOMENTS, law, np.full(MEAN.shape, observed))
        np.testing.assert_allclose(found.log_score, expected.logpdf(observed), rtol=1e-10)
        np.testing.assert_allclose(found.pit, expected.cdf(observed), rtol=1e-10, atol=1e-300)
        np.testing.assert_allclose(found.median, expected.median(), rtol=1e-10)
        np.testing.assert_allclose(found.lower, expected.ppf(0.05), rtol=1e-10)
        np.testing.assert_allclose(found.upper, expected.ppf(0.95), rtol=1e-10)

    @pytest.mark.parametrize("law", [LogNormal(0.5, 0.8), Gamma(2.5, 1.5)])
    def test_crps_is_the_integral_of_the_squared_distance(self, law):
        """The CRPS is the integral of (F(x) - [y <= x])^2 over x, to 1e-7 of the value."""
        moments = Moments(np.array([0.3]), np.array([0.36]))

        def below(x):
            return stats.norm.cdf((float(law.to_normal(x)) - 0.3) / 0.6)

        for y in (0.5, 2.0, 9.0):
            low = quad(lambda x: below(x) ** 2, 0.0, y, limit=200)[0]
            high = quad(lambda x: (1.0 - below(x)) ** 2, y, np.inf, limit=200)[0]
            found = scores(moments, law, np.array([y])).crps[0]
            assert found == pytest.approx(low + high, rel=1e-7)

    def test_log_score_integrates_to_one(self):
        """The log score is the logarithm of a density."""
        law, moments = Gamma(2.5, 1.5), Moments(np.array([0.3]), np.array([0.36]))
        nodes, weights = np.polynomial.legendre.leggauss(200)
        y = 20.0 * (nodes + 1.0)
        broad = Moments(*(np.repeat(part, y.size) for part in moments))
        total = 20.0 * weights @ np.exp(scores(broad, law, y).log_score)
        assert total == pytest.approx(1.0, abs=1e-7)

    def test_a_law_that_varies_is_bound_to_the_rows(self):
        """Each value is scored under the law of its own row."""
        groups = Grouped("k", ("a", "b"), (LAW, LogNormal(0.5, 0.8)))
        rows = np.array([[0.0], [1.0], [1.0], [0.0], [1.0], [0.0]])
        observed = np.array([2.0, 1.0, 3.0, 4.0, 0.5, 3.5])
        found = scores(MOMENTS, groups.at(rows), observed)
        for n, k in enumerate(rows[:, 0].astype(int)):
            one = slice(n, n + 1)
            alone = scores(Moments(MEAN[one], STD[one] ** 2), groups.laws[k], observed[one])
            for part, expected in zip(found, alone, strict=True):
                np.testing.assert_allclose(part[one], expected, rtol=1e-12)

    def test_the_truth_scores_best(self):
        """Both scores are proper: on average the law that made the values wins."""
        rng = np.random.default_rng(0)
        z = 0.4 + 0.6 * rng.normal(size=4000)
        values = LAW.from_normal(z)

        def mean_scores(mean, std):
            moments = Moments(np.full(z.shape, mean), np.full(z.shape, std**2))
            found = scores(moments, LAW, values)
            return found.log_score.mean(), found.crps.mean()

        log_score, crps = mean_scores(0.4, 0.6)
        for mean, std in [(0.3, 0.6), (0.5, 0.6), (0.4, 0.5), (0.4, 0.72)]:
            other_log_score, other_crps = mean_scores(mean, std)
            assert other_log_score < log_score
            assert other_crps > crps


class TestIntervals:
    """Values of which only an interval is known."""

    LIMITS = np.stack([OBSERVED, OBSERVED])
    LIMITS[0, 0], LIMITS[1, 3], LIMITS[:, 4] = -np.inf, np.inf, (1.5, 2.5)

    @pytest.fixture
    def known(self):
        """Six predictions, three of intervals."""
        return scores(MOMENTS, LAW, OBSERVED, self.LIMITS)

    def test_numbers_are_scored_as_before(self, known, found):
        """Every score of the other three is the same."""
        for got, expected in zip(known, found, strict=True):
            np.testing.assert_array_equal(got[[1, 2, 5]], expected[[1, 2, 5]])

    def test_log_score_is_the_probability(self, known):
        """Of the interval, in logarithms."""
        low, high = self.LIMITS
        mass = PREDICTIVE.cdf(high) - PREDICTIVE.cdf(low)
        np.testing.assert_allclose(known.log_score[[0, 3, 4]], np.log(mass[[0, 3, 4]]), rtol=1e-9)

    def test_crps_is_what_lies_outside(self, known):
        """The integral of F^2 below and (1 - F)^2 above."""
        for k in (0, 3, 4):
            one = stats.norm(3.0 + 2.0 * MEAN[k], 2.0 * STD[k])
            low, high = self.LIMITS[:, k]
            below = quad(lambda y, one=one: one.cdf(y) ** 2, -60.0, low)[0] if low > -1e9 else 0.0
            above = quad(lambda y, one=one: one.sf(y) ** 2, high, 60.0)[0] if high < 1e9 else 0.0
            assert known.crps[k] == pytest.approx(below + above, rel=1e-6, abs=1e-9)

    def test_pit_lies_between(self, known):
        """At the documented points of the way from F(low) to F(high); the score goes with it."""
        low, high = PREDICTIVE.cdf(self.LIMITS)
        for k, row in enumerate((0, 3, 4)):
            place = (0.5 + k * 0.5 * (np.sqrt(5.0) - 1.0)) % 1.0
            expected = low[row] + place * (high[row] - low[row])
            assert known.pit[row] == pytest.approx(expected, rel=1e-9)
            z = MEAN[row] + STD[row] * stats.norm.ppf(expected)
            assert known.score[row] == pytest.approx(z, rel=1e-9)

    def test_pit_of_many_is_uniform(self):
        """Values that were censored have a uniform PIT where the prediction is right."""
        rng = np.random.default_rng(0)
        y = rng.normal(size=2000)
        limits = np.stack([np.where(y < 0.3, -np.inf, y), np.where(y < 0.3, 0.3, y)])
        moments = Moments(np.zeros(2000), np.ones(2000))
        pit = scores(moments, Normal(0.0, 1.0), np.maximum(y, 0.3), limits).pit
        assert stats.kstest(pit, "uniform").statistic < 0.03

    def test_an_atom(self):
        """A zero is scored by its probability; its PIT lies below it."""
        law = reference.Dry(0.4, 2.0)
        moments = Moments(np.array([0.2, 0.2]), np.array([0.5, 0.5]))
        found = scores(moments, law, np.array([0.0, 1.0]))
        dry = stats.norm.cdf((law.to_normal(0.0) - 0.2) / np.sqrt(0.5))
        assert found.log_score[0] == pytest.approx(np.log(dry))
        assert found.pit[0] == pytest.approx(0.5 * dry)
        density = law.log_density(1.0) + stats.norm.logpdf(
            law.to_normal(1.0), 0.2, np.sqrt(0.5)
        ) - stats.norm.logpdf(law.to_normal(1.0))  # fmt: skip
        assert found.log_score[1] == pytest.approx(density)

    def test_drawn_scores(self):
        """Of a law alone: standard normal where it is right, and numbers keep theirs."""
        y = np.random.default_rng(4).normal(3.0, 2.0, 2000)
        limits = np.stack([np.where(y < 4.0, -np.inf, y), np.where(y < 4.0, 4.0, y)])
        z = drawn_scores(Normal(3.0, 2.0), np.maximum(y, 4.0), limits)
        np.testing.assert_array_equal(z[y >= 4.0], Normal(3.0, 2.0).to_normal(y[y >= 4.0]))
        assert (z[y < 4.0] < 0.5).all()
        assert stats.kstest(z, "norm").statistic < 0.03
        law = reference.Dry(0.4, 2.0)
        dry = drawn_scores(law, np.zeros(500), np.zeros((2, 500)))
        assert stats.kstest(stats.norm.cdf(dry) / 0.4, "uniform").statistic < 0.01
