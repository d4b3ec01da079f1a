"""Predictive laws against closed forms, scipy.stats, quadrature and draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reference import Dry
from scipy import integrate, stats
from scipy.special import ndtr

from xcopula.marginals import (
    GEV,
    MARGINALS,
    Exponential,
    Gamma,
    Grouped,
    LogNormal,
    Normal,
    SinhArcsinh,
    StudentT,
    regress,
)
from xcopula.marginals.censored import Censored
from xcopula.marginals.truncation import Truncated
from xcopula.process import Moments, Predictive, scores


def evaluated(name):
    """Return a method of the predictive law as a function of latent moments and a law."""
    return lambda mean, std, law, *rest: getattr(Predictive(mean, std, law), name)(*rest)


quantile, cdf, exceedance, crps = map(evaluated, ("quantile", "cdf", "exceedance", "crps"))
mean_of, std_of = map(evaluated, ("mean", "std"))
MEAN = np.array([-1.3, 0.0, 0.4, 2.0])
STD = np.array([1.0, 0.3, 0.05, 0.7])
NORMAL = Normal(3.0, 2.0)
LOGNORMAL = LogNormal(0.5, 0.8)

# The predictive law itself: normal, and log-normal with the latent moments scaled.
CLOSED = [
    (NORMAL, stats.norm(3.0 + 2.0 * MEAN, 2.0 * STD)),
    (LOGNORMAL, stats.lognorm(0.8 * STD, scale=np.exp(0.5 + 0.8 * MEAN))),
]
SAMPLE = np.random.default_rng(7).gamma(2.0, 1.0, 200)
ONE, ZERO = np.array([1.0]), np.array([0.0])


@pytest.mark.parametrize(("law", "exact"), CLOSED, ids=["normal", "lognormal"])
class TestClosedForms:
    @pytest.mark.parametrize("level", [1e-9, 0.05, 0.5, 0.95, 1 - 1e-9])
    def test_quantile(self, law, exact, level):
        """Quantiles are those of the predictive law."""
        np.testing.assert_allclose(quantile(MEAN, STD, law, level), exact.ppf(level), rtol=1e-9)

    @pytest.mark.parametrize("value", [0.1, 1.0, 4.0, 30.0])
    def test_cdf_and_exceedance(self, law, exact, value):
        """Both probabilities are exact, also where they are tiny."""
        np.testing.assert_allclose(
            cdf(MEAN, STD, law, value), exact.cdf(value), rtol=1e-9, atol=1e-300
        )
        np.testing.assert_allclose(
            exceedance(MEAN, STD, law, value), exact.sf(value), rtol=1e-9, atol=1e-300
        )

    def test_mean_and_std(self, law, exact):
        """The quadrature is exact for these laws."""
        np.testing.assert_allclose(mean_of(MEAN, STD, law), exact.mean(), rtol=1e-12)
        np.testing.assert_allclose(std_of(MEAN, STD, law), exact.std(), rtol=1e-10)


def test_a_tiny_exceedance_is_right():
    """A probability near 1e-20 keeps its digits instead of vanishing in 1 - cdf."""
    score = 9.3
    threshold = float(LOGNORMAL.from_normal(score))
    tail = exceedance(ZERO, ONE, LOGNORMAL, threshold)[0]
    assert 1e-21 < tail < 1e-19
    assert tail == pytest.approx(stats.norm.sf(score), rel=1e-9)
    low = float(LOGNORMAL.from_normal(-score))
    assert cdf(ZERO, ONE, LOGNORMAL, low)[0] == pytest.approx(tail, rel=1e-9)


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
        q = float(quantile(mean, std, law, level)[0])
        assert abs((draws <= q).mean() - level) < error
    assert abs((draws > 2.0).mean() - exceedance(mean, std, law, 2.0)[0]) < error
    assert abs(draws.mean() - mean_of(mean, std, law)[0]) < error * draws.std()
    assert std_of(mean, std, law)[0] == pytest.approx(draws.std(), rel=0.03)


class TestHeavyTails:
    @pytest.mark.parametrize("shape", [-0.3, 0.0, 0.2, 0.45, 0.6, 0.9])
    def test_gev_moments_at_prior_variance(self, shape):
        """With s = 1 the moments are those of the law, and NaN where it has none."""
        law, exact = GEV(0.0, 1.0, shape), stats.genextreme(-shape)
        assert mean_of(ZERO, ONE, law)[0] == pytest.approx(exact.mean(), rel=1e-6)
        spread = std_of(ZERO, ONE, law)[0]
        if shape < 0.5:
            assert spread == pytest.approx(exact.std(), rel=1e-4)
        else:
            assert np.isnan(spread)

    @pytest.mark.parametrize("law", [GEV(0.0, 1.0, 1.2), StudentT(0.0, 1.0, 0.9)])
    def test_no_mean(self, law):
        """A tail of index one or more has no mean at s = 1, but one where s is small."""
        both = mean_of(np.zeros(2), np.array([1.0, 0.3]), law)
        assert np.isnan(both[0])
        assert np.isfinite(both[1])
        assert np.isnan(std_of(ZERO, ONE, law)[0])

    @pytest.mark.parametrize("df", [1.2, 1.5, 2.0])
    def test_t_with_a_mean_but_no_variance(self, df):
        """Between one and two degrees of freedom there is a mean and no standard deviation."""
        law = StudentT(4.0, 2.0, df)
        assert mean_of(ZERO, ONE, law)[0] == pytest.approx(4.0, abs=1e-4)
        assert np.isnan(std_of(ZERO, ONE, law)[0])

    @pytest.mark.parametrize("df", [2.1, 2.5, 4.0])
    def test_t_near_the_edge_of_a_variance(self, df):
        """A variance that barely exists is still right."""
        spread = std_of(ZERO, ONE, StudentT(0.0, 2.0, df))[0]
        assert spread == pytest.approx(2.0 * stats.t(df).std(), rel=1e-4)


class TestExactCells:
    def test_a_known_cell_has_no_spread(self):
        """With s = 0 every quantile is the value, and the standard deviation is zero."""
        mean, std = np.array([0.7]), np.array([0.0])
        value = float(LOGNORMAL.from_normal(0.7))
        for level in (0.01, 0.5, 0.99):
            assert quantile(mean, std, LOGNORMAL, level)[0] == value
        assert std_of(mean, std, LOGNORMAL)[0] == 0.0
        assert mean_of(mean, std, LOGNORMAL)[0] == pytest.approx(value, rel=1e-14)

    def test_probabilities_are_zero_or_one(self):
        """A known value is at most itself and does not exceed itself."""
        mean, std = np.array([0.0]), np.array([0.0])
        for value, at_most in [(2.9, 0.0), (3.0, 1.0), (3.1, 1.0)]:
            assert cdf(mean, std, NORMAL, value)[0] == at_most
            assert exceedance(mean, std, NORMAL, value)[0] == 1.0 - at_most

    def test_nan_stays_nan(self):
        """A cell without a prediction has none in any form."""
        mean, std = np.array([np.nan, 0.0]), np.array([np.nan, 1.0])
        for function, extra in [
            (quantile, (0.5,)),
            (cdf, (1.0,)),
            (exceedance, (1.0,)),
            (mean_of, ()),
            (std_of, ()),
        ]:
            out = function(mean, std, LOGNORMAL, *extra)
            assert np.isnan(out).tolist() == [True, False]


class TestVaryingLaws:
    """Each cell has a law of its own, bound to its row."""

    GROUPS = Grouped("k", ("a", "b", "c"), (NORMAL, LOGNORMAL, GEV(0.0, 1.0, 0.6)))
    ROWS = np.array([[0.0], [1.0], [2.0], [1.0]])
    FUNCTIONS = (
        (quantile, 0.9),
        (cdf, 2.0),
        (exceedance, 2.0),
        (mean_of, None),
        (std_of, None),
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
        assert np.isnan(got[2]) == (function is std_of)

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
        mean = mean_of(np.zeros(2), np.full(2, 0.5), bound)
        assert mean[1] - mean[0] == pytest.approx(law.parameters["x"])
        spread = std_of(np.zeros(2), np.full(2, 0.5), bound)
        assert spread[0] == pytest.approx(spread[1]) == 0.5 * law.base.scale

    def test_crps(self):
        """The score of an observation is that under the law of its row."""
        observed = np.array([2.0, 1.0, 0.5, 3.0])
        got = crps(MEAN, STD, self.GROUPS.at(self.ROWS), observed)
        for n, row in enumerate(self.ROWS[:, 0].astype(int)):
            one = slice(n, n + 1)
            law = self.GROUPS.laws[row]
            expected = crps(MEAN[one], STD[one], law, observed[one])
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
        found = crps(np.zeros(2), np.ones(2), Normal(0.0, 1.0), observed)
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
        found = crps(MEAN, STD, LOGNORMAL, observed)
        np.testing.assert_allclose(found, closed, rtol=1e-11)

    def test_of_what_is_known_it_is_the_distance(self):
        """Without uncertainty the score is the absolute error; of a missing value it is NaN."""
        observed = np.array([1.5, 0.5, 1.0, np.nan])
        found = crps(np.ones(4), np.zeros(4), Normal(0.0, 1.0), observed)
        np.testing.assert_allclose(found, [0.5, 0.5, 0.0, np.nan], atol=1e-14)

    def test_a_value_that_the_law_excludes(self):
        """Below the support the score is the mean distance to it: E|Y - y| - E|Y - Y'| / 2."""
        law, draws = LogNormal(0.0, 1.0), np.random.default_rng(0).normal(size=(2, 2_000_000))
        y, other = np.exp(draws)
        found = crps(np.zeros(1), np.ones(1), law, np.array([-1.0]))[0]
        expected = np.abs(y + 1.0).mean() - 0.5 * np.abs(y - other).mean()
        assert found == pytest.approx(expected, rel=3e-3)


class TestMoments:
    """Mean and deviation where the weight of the values lies far from that of the scores."""

    @pytest.mark.parametrize("scale", [0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    def test_lognormal(self, scale):
        """The closed forms, however long the tail."""
        law, spread = LogNormal(0.3, scale), scale * STD
        mean = np.exp(0.3 + scale * MEAN + 0.5 * spread**2)
        np.testing.assert_allclose(mean_of(MEAN, STD, law), mean, rtol=1e-12)
        std = mean * np.sqrt(np.expm1(spread**2))
        np.testing.assert_allclose(std_of(MEAN, STD, law), std, rtol=1e-11)

    @pytest.mark.parametrize("scale", [1.0, 4.0, 6.0])
    def test_an_atom_with_a_long_tail(self, scale):
        """A log-normal law that is censored at its median has its moments."""
        law, one, zero = Censored(LogNormal(0.0, scale), 1.0), np.ones(1), np.zeros(1)
        first, second = 0.5 + np.exp([0.5 * scale**2, 2.0 * scale**2]) * ndtr([scale, 2.0 * scale])
        assert mean_of(zero, one, law)[0] == pytest.approx(first, rel=1e-6)
        assert std_of(zero, one, law)[0] == pytest.approx(np.sqrt(second - first**2), rel=1e-6)

    @pytest.mark.parametrize("law", [LogNormal(0.0, 0.5), GEV(1.0, 0.5, 0.1), Gamma(2.0, 1.0)])
    def test_a_million_draws(self, law):
        """Within Monte-Carlo error."""
        y = law.from_normal(0.4 + 0.8 * np.random.default_rng(0).normal(size=1_000_000))
        mean, std = np.array([0.4]), np.array([0.8])
        assert mean_of(mean, std, law)[0] == pytest.approx(y.mean(), abs=4.0 * y.std() / 1e3)
        error = np.std((y - y.mean()) ** 2) / 1e3
        assert std_of(mean, std, law)[0] ** 2 == pytest.approx(y.var(), abs=4.0 * error)

    @pytest.mark.parametrize(
        "law",
        [
            *(family.fit(SAMPLE) for family in MARGINALS.values()),
            Censored(SinhArcsinh.fit(SAMPLE - 1.0)),
            Censored(StudentT(-0.5, 1.0, 6.0)),
            Truncated(Normal(0.5, 1.0), 0.0),
            Truncated(StudentT(0.5, 1.0, 4.0), 0.0, 5.0),
        ],
        ids=lambda law: law.name,
    )
    @pytest.mark.parametrize("limits", [None, (-0.4, 0.9), (0.7, np.inf), (-np.inf, 0.2)])
    def test_every_law(self, law, limits):
        """Against draws, at three deviations: with limits, with atoms, and cut off."""
        mean, std = np.full(3, 0.3), np.array([0.2, 0.6, 1.1])
        low, high = (-np.inf, np.inf) if limits is None else limits
        ends = None if limits is None else np.full((3, 2), limits).T
        predicted = Predictive(mean, std, law, ends)
        found, spread = predicted.mean(), predicted.std()
        z = np.random.default_rng(0).normal(size=1_000_000)
        for k in range(3):
            latent = 0.3 + std[k] * z
            y = law.from_normal(latent[(latent > low) & (latent <= high)])
            assert found[k] == pytest.approx(y.mean(), abs=4.5 * y.std() / np.sqrt(y.size))
            if np.isnan(spread[k]):
                assert 2.0 * law.tail_index * std[k] ** 2 >= 1.0
                assert np.isinf(high)
            elif 4.0 * law.tail_index * std[k] ** 2 < 0.5:  # the error of a variance has a size
                error = np.std((y - y.mean()) ** 2) / np.sqrt(y.size)
                assert spread[k] ** 2 == pytest.approx(y.var(), abs=6.0 * error)

    def test_open_intervals(self):
        """Above a limit a heavy tail has a mean, and no variance; between limits it has both."""
        limits = np.array([[0.5, 0.5, -np.inf], [np.inf, 1.5, 0.5]])
        found = Predictive(np.zeros(3), np.ones(3), GEV(0.0, 1.0, 0.6), limits)
        assert np.isfinite(found.mean()).all()
        assert np.isnan(found.std()).tolist() == [True, False, False]
        law = stats.genextreme(-0.6)
        ends = law.ppf(ndtr(limits)).T
        want = [law.expect(lambda y: y, lb=a, ub=b, conditional=True) for a, b in ends]
        np.testing.assert_allclose(found.mean(), want, rtol=1e-6)

    def test_far_intervals(self):
        """Twenty deviations out, a log-normal value is just above its limit."""
        limits = np.array([[20.0, 3.0], [np.inf, np.inf]])
        found = Predictive(np.zeros(2), np.ones(2), LogNormal(0.0, 2.0), limits)
        # E[exp(2 Z) | Z > a]
        want = np.exp(2.0 + stats.norm.logsf(limits[0] - 2.0) - stats.norm.logsf(limits[0]))
        np.testing.assert_allclose(found.mean(), want, rtol=1e-10)
        second = np.exp(8.0 + stats.norm.logsf(limits[0] - 4.0) - stats.norm.logsf(limits[0]))
        np.testing.assert_allclose(found.std(), np.sqrt(second - want**2), rtol=1e-7)


class TestAtom:
    """A law with an atom at zero."""

    MU, SIGMA = np.array([-0.8, 0.1, 1.2]), np.array([0.7, 0.5, 0.9])
    PREDICTED = Predictive(MU, SIGMA, Dry(0.4, 2.0))

    def draws(self):
        """Return draws of each site."""
        z = np.random.default_rng(0).normal(size=(3, 200_000))
        return self.PREDICTED.law.from_normal(self.MU[:, None] + self.SIGMA[:, None] * z)

    def test_probabilities_and_quantiles(self):
        """P(0), the rest, and quantiles that are exactly zero where the mass says so."""
        predicted, y = self.PREDICTED, self.draws()
        dry = (y == 0.0).mean(axis=1)
        np.testing.assert_allclose(predicted.cdf(0.0), dry, atol=4e-3)
        np.testing.assert_allclose(predicted.exceedance(0.0), 1.0 - dry, atol=4e-3)
        np.testing.assert_array_equal(predicted.cdf_below(np.zeros(3)), 0.0)
        for level in (0.05, 0.3, 0.5, 0.9):
            found = predicted.quantile(level)
            np.testing.assert_allclose(found, np.quantile(y, level, axis=1), atol=0.05)
            np.testing.assert_array_equal(found == 0.0, predicted.cdf(0.0) >= level)

    def test_mean_and_deviation(self):
        """They equal a fine trapezoid over scores."""
        z = np.linspace(-12.0, 12.0, 400_001)
        values = self.PREDICTED.law.from_normal(self.MU[:, None] + self.SIGMA[:, None] * z)
        weights = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
        mean = np.trapezoid(values * weights, z, axis=1)
        np.testing.assert_allclose(self.PREDICTED.mean(), mean, rtol=1e-7)
        second = np.trapezoid(values**2 * weights, z, axis=1)
        np.testing.assert_allclose(self.PREDICTED.std(), np.sqrt(second - mean**2), rtol=1e-7)

    def test_crps_by_levels(self):
        """The integral over levels, cut at the atom, gives the same to 1e-5."""
        u = np.linspace(-10.0, 10.0, 400_001)
        p, density = ndtr(u), np.exp(-0.5 * u * u) / np.sqrt(2.0 * np.pi)
        for observed in (0.0, 0.02, 0.3, 1.5):
            values = self.PREDICTED.law.from_normal(self.MU[:, None] + self.SIGMA[:, None] * u)
            gap = values - observed
            integrand = 2.0 * np.where(gap > 0.0, 1.0 - p, -p) * gap * density
            expected = np.trapezoid(integrand, u, axis=1)
            found = self.PREDICTED.crps(np.full(3, observed))
            np.testing.assert_allclose(found, expected, rtol=1e-5)

    def test_log_mass(self):
        """The probability of an interval is the difference of the distribution function."""
        low, high = np.array([-np.inf, 0.5, 0.0]), np.array([0.0, 1.5, np.inf])
        below = np.array([0.0, self.PREDICTED.cdf(0.5)[1], 0.0])
        expected = np.log(self.PREDICTED.cdf(high) - below)
        np.testing.assert_allclose(self.PREDICTED.log_mass(low, high), expected, atol=1e-10)


class TestLimits:
    """Truncated laws, at the site of an interval; the third site has none."""

    LAW = LogNormal(0.2, 0.6)
    LOW, HIGH = LAW.to_normal(np.array([0.4, 1.6]))
    LIMITS = np.array([[LOW, -np.inf, -np.inf], [HIGH, HIGH, np.inf]])
    PREDICTED = Predictive(np.array([0.3, 0.3, -0.2]), np.full(3, 0.8), LAW, LIMITS)

    def test_draws_between_limits(self):
        """Quantiles, probabilities, mean and deviation are those of draws that are kept."""
        rng = np.random.default_rng(0)
        for site in range(3):
            z = self.PREDICTED.mu[site] + 0.8 * rng.normal(size=400_000)
            low, high = self.LIMITS[:, site]
            kept = z[(z > low) & (z <= high)]
            assert self.PREDICTED.latent_mean()[site] == pytest.approx(kept.mean(), abs=0.01)
            assert self.PREDICTED.latent_std()[site] == pytest.approx(kept.std(), abs=0.01)
            y = self.LAW.from_normal(kept)
            for level in (0.05, 0.5, 0.95):
                expected = np.quantile(y, level)
                assert self.PREDICTED.quantile(level)[site] == pytest.approx(expected, abs=0.02)
            assert self.PREDICTED.cdf(0.9)[site] == pytest.approx((y <= 0.9).mean(), abs=0.01)
            above = self.PREDICTED.exceedance(0.9)[site]
            assert above == pytest.approx((y > 0.9).mean(), abs=0.01)
            assert self.PREDICTED.mean()[site] == pytest.approx(y.mean(), abs=0.01)
            assert self.PREDICTED.std()[site] == pytest.approx(y.std(), abs=0.01)
            other = rng.permutation(y)
            score = np.abs(y - 0.7).mean() - 0.5 * np.abs(y - other).mean()
            assert self.PREDICTED.crps(np.full(3, 0.7))[site] == pytest.approx(score, abs=0.01)

    def test_other_sites_are_as_without(self):
        """A site without limits is bit for bit what it is where no site has any."""
        without = replace(self.PREDICTED, limits=None)
        for name, args in {"quantile": (0.3,), "cdf": (0.9,), "mean": (), "std": ()}.items():
            found, expected = (getattr(p, name)(*args)[2] for p in (self.PREDICTED, without))
            assert found == expected


def test_log_density():
    """The derivative of the distribution function."""
    value, step = np.array([0.7, 1.1, 1.9, 4.0]), 1e-5
    up, down = (cdf(MEAN, STD, LOGNORMAL, value + s) for s in (step, -step))
    found = Predictive(MEAN, STD, LOGNORMAL).log_density(value)
    np.testing.assert_allclose(np.exp(found), (up - down) / (2.0 * step), rtol=1e-5, atol=1e-12)


def test_a_value_does_not_depend_on_other_cells():
    """To the last bit: a prediction does not depend on its chunk."""
    mean, std = np.linspace(-2.0, 2.0, 7), np.linspace(0.1, 1.0, 7)
    for function, rest in ((quantile, (0.3,)), (mean_of, ()), (std_of, ())):
        whole = function(mean, std, LOGNORMAL, *rest)
        part = function(mean[2:5], std[2:5], LOGNORMAL, *rest)
        np.testing.assert_array_equal(part, whole[2:5])


def test_scores_of_a_law_that_ends():
    """A value beyond the support has no density, and a probability of one to be exceeded."""
    found = scores(Moments(np.zeros(1), np.full(1, 0.5)), LogNormal(0.1, 0.7), np.array([-1.0]))
    assert found.log_score[0] == -np.inf
    assert found.pit[0] == 0.0


def outside(predicted, low, high):
    """Return the integral of F^2 below and of (1 - F)^2 above an interval, by quadrature."""
    out = []
    for k in range(predicted.mu.size):
        law = stats.lognorm(0.6 * predicted.sigma[k], 0.0, np.exp(0.1 + 0.6 * predicted.mu[k]))
        above = integrate.quad(lambda y, law=law: law.sf(y) ** 2, high[k], np.inf)[0]
        below = integrate.quad(lambda y, law=law: law.cdf(y) ** 2, 0.0, max(low[k], 0.0))[0]
        out.append(above + below)
    return np.array(out)


def test_crps_of_intervals():
    """It is the integral outside the interval: less than the score of any value in it."""
    predicted = Predictive.of(
        Moments(np.array([0.2, -0.4]), np.array([0.5, 1.0])), LogNormal(0.1, 0.6)
    )
    low, high = np.array([-np.inf, 0.5]), np.array([0.8, 1.5])
    found = predicted.crps_of_intervals(low, high)
    np.testing.assert_allclose(found, outside(predicted, low, high), rtol=1e-6)
    for value in (0.6, 0.75):
        assert (found < predicted.crps(np.full(2, value))).all()
    number = np.array([0.7, 1.1])
    np.testing.assert_allclose(
        predicted.crps_of_intervals(number, number), predicted.crps(number), rtol=1e-7
    )
