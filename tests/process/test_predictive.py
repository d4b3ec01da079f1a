"""Mixtures of predictive laws against closed forms, quadrature and draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from xcopula.marginals import GEV, Gamma, LogNormal, Normal, StudentT, regress
from xcopula.process import NORMAL, Moments, Predictive, Student, outcome, scores

LEVELS = (1e-6, 0.05, 0.5, 0.95, 1.0 - 1e-6)
LAWS = (LogNormal(0.1, 0.7), Gamma(2.0, 1.0), Normal(1.0, 1.0), GEV(1.0, 0.5, -0.2))
T = Student(20.0, 4.0).spread


def mixture(sites: int = 5, laws=LAWS, spreads=None, seed: int = 0) -> Predictive:
    """Return components of different laws, moments and weights."""
    rng = np.random.default_rng(seed)
    count = len(laws)
    spreads = (NORMAL, NORMAL, T, NORMAL)[:count] if spreads is None else spreads
    weights = rng.dirichlet(np.ones(count))
    means, stds = rng.normal(0.0, 0.5, (count, sites)), rng.uniform(0.2, 1.0, (count, sites))
    return Predictive(means, stds, tuple(laws), weights, spreads)


def draws_of(predicted: Predictive, site: int, count: int, seed: int = 0) -> np.ndarray:
    """Draw from the law of one site, component by component."""
    rng = np.random.default_rng(seed)
    which = rng.choice(len(predicted.laws), count, p=predicted.weights)
    out = np.empty(count)
    for k, (law, spread) in enumerate(zip(predicted.laws, predicted.spreads, strict=True)):
        own = np.flatnonzero(which == k)
        scales = rng.choice(spread.scales, own.size, p=spread.weights)
        z = predicted.means[k, site] + predicted.stds[k, site] * scales * rng.normal(size=own.size)
        out[own] = law.from_normal(z)
    return out


class TestOne:
    """One component with normal errors is the closed form, to the last bit."""

    MEAN, STD = np.array([-1.3, 0.0, 2.0]), np.array([1.0, 0.3, 0.7])
    OBSERVED = np.array([0.4, 1.0, 3.0])

    @pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
    def test_all_of_it(self, law):
        """What a plug-in model says has not changed."""
        one = Predictive.of(Moments(self.MEAN, self.STD**2), law)
        given = self.MEAN, one.stds[0], law
        assert one.plain
        np.testing.assert_array_equal(one.stds[0], np.sqrt(self.STD**2))
        for level in (0.05, 0.5, 0.9):
            expected = outcome.quantile(*given, level)
            np.testing.assert_array_equal(one.quantile(level), expected)
        for value in (0.7, self.OBSERVED):
            np.testing.assert_array_equal(one.cdf(value), outcome.cdf(*given, value))
            np.testing.assert_array_equal(one.exceedance(value), outcome.exceedance(*given, value))
        np.testing.assert_array_equal(one.mean(), outcome.mean(*given))
        np.testing.assert_array_equal(one.std(), outcome.std(*given))
        np.testing.assert_array_equal(one.crps(self.OBSERVED), outcome.crps(*given, self.OBSERVED))
        np.testing.assert_array_equal(one.latent_mean(), self.MEAN)
        np.testing.assert_array_equal(one.latent_std(), one.stds[0])

    def test_copies_of_it(self):
        """Components that are the same say what one of them says."""
        law = LAWS[0]
        one = Predictive.of(Moments(self.MEAN, self.STD**2), law)
        weights = np.array([0.2, 0.3, 0.5])
        many = Predictive(
            np.tile(one.means, (3, 1)),
            np.tile(one.stds, (3, 1)),
            (law,) * 3,
            weights,
            (NORMAL,) * 3,
        )
        for level in LEVELS:
            np.testing.assert_allclose(many.quantile(level), one.quantile(level), rtol=1e-12)
        np.testing.assert_allclose(many.mean(), one.mean(), rtol=1e-12)
        np.testing.assert_allclose(many.std(), one.std(), rtol=1e-9)
        np.testing.assert_allclose(many.latent_std(), one.latent_std(), rtol=1e-12)
        found = many.log_density(self.OBSERVED)
        np.testing.assert_allclose(found, one.log_density(self.OBSERVED), rtol=1e-12)
        expected = one.crps(self.OBSERVED)
        np.testing.assert_allclose(many.crps(self.OBSERVED), expected, rtol=1e-7)


class TestStudent:
    """A normal law with t errors is a t law."""

    MEAN, STD = np.array([-0.4, 1.1]), np.array([0.5, 0.9])
    EXACT = stats.t(31, 2.0 + 3.0 * MEAN, 3.0 * STD * np.sqrt(35.0 / 31.0))
    ONE = Predictive(
        MEAN[None], STD[None], (Normal(2.0, 3.0),), np.ones(1), (Student(35.0, 4.0).spread,)
    )

    def test_all_of_it(self):
        """Against scipy's."""
        assert not self.ONE.plain
        for level in (0.01, 0.05, 0.5, 0.95, 0.99):
            np.testing.assert_allclose(self.ONE.quantile(level), self.EXACT.ppf(level), rtol=1e-9)
        for value in (-4.0, 0.0, 3.0, 9.0):
            np.testing.assert_allclose(self.ONE.cdf(value), self.EXACT.cdf(value), rtol=1e-7)
            found = self.ONE.log_density(np.full(2, value))
            np.testing.assert_allclose(found, self.EXACT.logpdf(value), rtol=1e-7)
        np.testing.assert_allclose(self.ONE.mean(), self.EXACT.mean(), rtol=1e-10)
        np.testing.assert_allclose(self.ONE.std(), self.EXACT.std(), rtol=1e-8)

    def test_crps(self):
        """Against quadrature of scipy's distribution function."""
        nu, scale = 31.0, 3.0 * self.STD * np.sqrt(35.0 / 31.0)
        observed = np.array([2.7, 9.0])
        z = (observed - self.EXACT.mean()) / scale
        expected = [
            integrate.quad(lambda y, k=k: stats.t.cdf(y, nu) ** 2, -60.0, z[k])[0]
            + integrate.quad(lambda y, k=k: stats.t.sf(y, nu) ** 2, z[k], 60.0)[0]
            for k in range(2)
        ]
        np.testing.assert_allclose(self.ONE.crps(observed), scale * expected, rtol=1e-6)


class TestMixture:
    def test_quantiles_are_where_the_cdf_has_the_level(self):
        """Also where components have different supports."""
        predicted = mixture()
        for level in LEVELS:
            found = predicted.quantile(level)
            np.testing.assert_allclose(predicted.cdf(found), level, rtol=1e-9)
            np.testing.assert_allclose(predicted.exceedance(found), 1.0 - level, rtol=1e-9)

    def test_cdf_is_the_weighted_sum(self):
        """Component by component."""
        predicted = mixture(spreads=(NORMAL,) * 4)
        for value in (0.2, 1.3, 4.0):
            each = [
                outcome.cdf(m, s, law, value)
                for m, s, law in zip(predicted.means, predicted.stds, LAWS, strict=True)
            ]
            np.testing.assert_allclose(predicted.cdf(value), predicted.weights @ each, rtol=1e-13)

    def test_draws(self):
        """Quantiles, moments and the density agree with draws of the mixture."""
        predicted = mixture(1)
        draws = draws_of(predicted, 0, 400_000)
        error = 5.0 / np.sqrt(draws.size)
        for level in (0.05, 0.5, 0.95):
            assert abs((draws <= predicted.quantile(level)).mean() - level) < error
        assert abs(draws.mean() - predicted.mean()[0]) < error * draws.std()
        assert draws.std() == pytest.approx(predicted.std()[0], rel=0.02)
        inside = (draws > 1.0) & (draws < 1.02)
        density = float(np.exp(predicted.log_density(np.array([1.01])))[0])
        assert inside.mean() == pytest.approx(0.02 * density, rel=0.05)

    def test_crps_by_brute_force(self):
        """The integral of the squared error of the distribution function."""
        predicted = mixture()
        observed = predicted.quantile(0.3)
        found = predicted.crps(observed)
        for k, y in enumerate(observed):
            one = Predictive(
                predicted.means[:, [k]],
                predicted.stds[:, [k]],
                LAWS,
                predicted.weights,
                predicted.spreads,
            )
            grid = np.unique(np.concatenate([np.linspace(-9.0, 60.0, 60_001), [y]]))
            middle, width = 0.5 * (grid[1:] + grid[:-1]), np.diff(grid)
            whole = Predictive(
                np.tile(one.means, (1, middle.size)),
                np.tile(one.stds, (1, middle.size)),
                LAWS,
                one.weights,
                one.spreads,
            )
            squared = np.where(middle < y, whole.cdf(middle), whole.exceedance(middle)) ** 2
            assert found[k] == pytest.approx(squared @ width, rel=2e-6)

    def test_crps_of_observations_far_out(self):
        """It grows as the distance does."""
        predicted = mixture(2)
        near, far = predicted.crps(np.full(2, 50.0)), predicted.crps(np.full(2, 60.0))
        np.testing.assert_allclose(far - near, 10.0, rtol=1e-6)

    def test_crps_of_a_law_that_saturates(self):
        """Quantiles that overflow count nothing."""

        class Saturated(Normal):
            """A normal law that knows no scores beyond eight."""

            def from_normal(self, z):
                value = super().from_normal(z)
                return np.where(np.abs(z) > 8.0, np.copysign(np.inf, value), value)

        one = Predictive.of(Moments(np.zeros(1), np.ones(1)), Normal(0.0, 1.0))
        both = Predictive(
            np.zeros((2, 1)),
            np.ones((2, 1)),
            (Saturated(0.0, 1.0),) * 2,
            np.full(2, 0.5),
            (NORMAL,) * 2,
        )
        observed = np.array([0.4])
        np.testing.assert_allclose(both.crps(observed), one.crps(observed), rtol=1e-9)

    def test_sites_do_not_know_each_other(self):
        """To the last bit: a prediction does not depend on its chunk."""
        predicted = mixture(7)
        part = Predictive(
            predicted.means[:, 2:5],
            predicted.stds[:, 2:5],
            LAWS,
            predicted.weights,
            predicted.spreads,
        )
        for level in LEVELS:
            np.testing.assert_array_equal(part.quantile(level), predicted.quantile(level)[2:5])

    def test_a_datum_is_known(self):
        """Where no component doubts, quantiles are the value and probabilities are 0 or 1."""
        laws = (LogNormal(0.1, 0.7), LogNormal(0.2, 0.6))
        means = np.array([[float(law.to_normal(1.5))] for law in laws])
        known = Predictive(means, np.zeros((2, 1)), laws, np.array([0.4, 0.6]), (NORMAL,) * 2)
        for level in LEVELS:
            np.testing.assert_allclose(known.quantile(level), 1.5, rtol=1e-12)
        np.testing.assert_array_equal(known.cdf(1.6), 1.0)
        np.testing.assert_array_equal(known.exceedance(1.6), 0.0)
        np.testing.assert_allclose(known.std(), 0.0, atol=1e-12)

    def test_a_heavy_tail_has_no_mean(self):
        """One component without a mean leaves none to the mixture."""
        laws = (StudentT(0.0, 1.0, 0.9), Normal(0.0, 1.0))
        predicted = Predictive(
            np.zeros((2, 1)), np.ones((2, 1)), laws, np.array([0.1, 0.9]), (NORMAL,) * 2
        )
        assert np.isnan(predicted.mean()[0])
        assert np.isnan(predicted.std()[0])
        assert np.isfinite(predicted.quantile(0.95)[0])

    def test_laws_that_vary(self):
        """Each site has the law of its own row."""
        rng = np.random.default_rng(1)
        rows = rng.uniform(size=(40, 1))
        values = 1.0 + 2.0 * rows[:, 0] + rng.normal(size=40)
        law = regress("normal", on="height").fit(values, rows)
        bound = law.at(rows[:3])
        both = Predictive(
            np.zeros((2, 3)), np.ones((2, 3)), (bound, bound), np.full(2, 0.5), (NORMAL,) * 2
        )
        np.testing.assert_allclose(both.quantile(0.5), bound.from_normal(np.zeros(3)), rtol=1e-10)
        assert np.unique(both.cdf(2.0)).size == 3

    def test_latent_moments(self):
        """Variance within and between components."""
        predicted = mixture(spreads=(NORMAL, T, NORMAL, NORMAL))
        scales = np.array([1.0, T.std, 1.0, 1.0])[:, None]
        second = predicted.weights @ (predicted.means**2 + (scales * predicted.stds) ** 2)
        mean = predicted.weights @ predicted.means
        np.testing.assert_allclose(predicted.latent_mean(), mean)
        np.testing.assert_allclose(predicted.latent_std(), np.sqrt(second - mean**2))


def test_scores_of_a_law_that_ends():
    """A value beyond the support has no density, and a probability of one to be exceeded."""
    found = scores(Moments(np.zeros(1), np.full(1, 0.5)), LAWS[0], np.array([-1.0]))
    assert found.log_score[0] == -np.inf
    assert found.pit[0] == 0.0
