"""Mixtures of predictive laws against closed forms, quadrature and draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reference import Dry
from scipy import integrate, stats
from scipy.special import ndtr

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


def outside(predicted, low, high):
    """Return the integral of F^2 below and of (1 - F)^2 above an interval, by quadrature."""
    out = []
    for k in range(predicted.means.shape[1]):
        law = stats.lognorm(
            0.6 * predicted.stds[0, k], 0.0, np.exp(0.1 + 0.6 * predicted.means[0, k])
        )
        above = integrate.quad(lambda y, law=law: law.sf(y) ** 2, high[k], np.inf)[0]
        below = integrate.quad(lambda y, law=law: law.cdf(y) ** 2, 0.0, max(low[k], 0.0))[0]
        out.append(above + below)
    return np.array(out)


class TestAtom:
    """A law with an atom at zero, alone and in mixtures of different probabilities of zero."""

    MEANS, STDS = np.array([-0.8, 0.1, 1.2]), np.array([0.7, 0.5, 0.9])

    def plain(self):
        """Return one component."""
        return Predictive.of(Moments(self.MEANS, self.STDS**2), Dry(0.4, 2.0))

    def mixed(self):
        """Return two components, of which one is dry more often."""
        means = np.stack([self.MEANS, self.MEANS + 0.2])
        stds = np.stack([self.STDS, 1.2 * self.STDS])
        laws = (Dry(0.4, 2.0), Dry(0.6, 1.5))
        return Predictive(means, stds, laws, np.array([0.7, 0.3]), (NORMAL, NORMAL))

    def draws(self, predicted):
        """Return draws of each site."""
        rng, out = np.random.default_rng(0), []
        for law, mean, std, w in zip(
            predicted.laws, predicted.means, predicted.stds, predicted.weights, strict=True
        ):
            z = mean[:, None] + std[:, None] * rng.normal(size=(3, int(w * 200_000)))
            out.append(law.from_normal(z))
        return np.concatenate(out, axis=1)

    @pytest.mark.parametrize("kind", ["plain", "mixed"])
    def test_probabilities_and_quantiles(self, kind):
        """P(0), the rest, and quantiles that are exactly zero where the mass says so."""
        predicted = getattr(self, kind)()
        y = self.draws(predicted)
        dry = (y == 0.0).mean(axis=1)
        np.testing.assert_allclose(predicted.cdf(0.0), dry, atol=4e-3)
        np.testing.assert_allclose(predicted.exceedance(0.0), 1.0 - dry, atol=4e-3)
        np.testing.assert_array_equal(predicted.cdf_below(np.zeros(3)), 0.0)
        for level in (0.05, 0.3, 0.5, 0.9):
            found = predicted.quantile(level)
            expected = np.quantile(y, level, axis=1)
            np.testing.assert_allclose(found, expected, atol=0.05)
            np.testing.assert_array_equal(found == 0.0, predicted.cdf(0.0) >= level)

    @pytest.mark.parametrize("kind", ["plain", "mixed"])
    def test_mean_and_deviation(self, kind):
        """They are those of draws, to their error."""
        predicted = getattr(self, kind)()
        y = self.draws(predicted)
        np.testing.assert_allclose(predicted.mean(), y.mean(axis=1), rtol=0.02)
        np.testing.assert_allclose(predicted.std(), y.std(axis=1), rtol=0.02)

    def test_mean_is_an_integral_to_many_digits(self):
        """The mean of one component equals a fine trapezoid over scores, to 1e-8."""
        z = np.linspace(-12.0, 12.0, 400_001)
        predicted = self.plain()
        values = predicted.laws[0].from_normal(self.MEANS[:, None] + self.STDS[:, None] * z)
        weights = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
        np.testing.assert_allclose(
            predicted.mean(), np.trapezoid(values * weights, z, axis=1), rtol=1e-7
        )

    @pytest.mark.parametrize("kind", ["plain", "mixed"])
    @pytest.mark.parametrize("observed", [0.0, 0.02, 1.5])
    def test_crps(self, kind, observed):
        """At the atom and around it the score equals E|Y - y| - E|Y - Y'| / 2 of draws."""
        predicted = getattr(self, kind)()
        y = self.draws(predicted)
        rng = np.random.default_rng(1)
        other = np.stack([rng.permutation(row) for row in y])
        expected = np.abs(y - observed).mean(axis=1) - 0.5 * np.abs(y - other).mean(axis=1)
        found = predicted.crps(np.full(3, observed))
        np.testing.assert_allclose(found, expected, atol=0.015)

    def test_crps_by_levels(self):
        """One component: the integral over levels, cut at the atom, gives the same to 1e-6."""
        predicted, u = self.plain(), np.linspace(-10.0, 10.0, 400_001)
        p, density = ndtr(u), np.exp(-0.5 * u * u) / np.sqrt(2.0 * np.pi)
        for observed in (0.0, 0.3):
            values = predicted.laws[0].from_normal(self.MEANS[:, None] + self.STDS[:, None] * u)
            gap = values - observed
            integrand = 2.0 * np.where(gap > 0.0, 1.0 - p, -p) * gap * density
            expected = np.trapezoid(integrand, u, axis=1)
            np.testing.assert_allclose(predicted.crps(np.full(3, observed)), expected, rtol=1e-5)

    def test_a_mixture_with_a_law_without_atom(self):
        """The step in the middle of a bracket is found exactly."""
        means, stds = np.zeros((2, 1)), np.ones((2, 1))
        laws = (Dry(0.5, 1.0), Normal(0.0, 1.0))
        mixed = Predictive(means, stds, laws, np.array([0.5, 0.5]), (NORMAL, NORMAL))
        assert mixed.cdf(-1e-12)[0] == pytest.approx(0.25)
        assert mixed.cdf(0.0)[0] == pytest.approx(0.5)
        for level in (0.26, 0.4, 0.499):
            assert mixed.quantile(level)[0] == 0.0
        assert mixed.quantile(0.2)[0] < 0.0
        assert mixed.quantile(0.6)[0] > 0.0


class TestLimits:
    """Components between limits, at the site of an interval."""

    MEANS, STDS = np.array([[0.3, 0.3, -0.2], [0.1, 0.4, 0.0]]), np.full((2, 3), 0.8)
    LAWS = (LogNormal(0.2, 0.6), Normal(1.0, 2.0))
    ENDS = (0.4, 1.6)  # of the first site; the second is open below, the third is no interval

    def predicted(self, count):
        """Return one or two components; their limits are those of the same values."""
        limits = np.empty((2, count, 3))
        for k, law in enumerate(self.LAWS[:count]):
            low, high = law.to_normal(np.array(self.ENDS))
            limits[:, k] = [[low, -np.inf, -np.inf], [high, high, np.inf]]
        weights = np.array([0.6, 0.4])[:count]
        return Predictive(
            self.MEANS[:count],
            self.STDS[:count],
            self.LAWS[:count],
            weights / weights.sum(),
            (NORMAL,) * count,
            limits,
        )

    @pytest.mark.parametrize("count", [1, 2])
    def test_draws_between_limits(self, count):
        """Quantiles, probabilities, mean and deviation are those of draws that are kept."""
        predicted, rng = self.predicted(count), np.random.default_rng(0)
        for site in range(3):
            parts = []
            for k, law in enumerate(predicted.laws):
                z = self.MEANS[k, site] + 0.8 * rng.normal(size=400_000)
                low, high = predicted.limits[:, k, site]
                kept = z[(z > low) & (z <= high)]
                parts.append(law.from_normal(kept[: int(60_000 * predicted.weights[k])]))
            y = np.concatenate(parts)
            for level in (0.05, 0.5, 0.95):
                expected = np.quantile(y, level)
                assert predicted.quantile(level)[site] == pytest.approx(expected, abs=0.06)
            assert predicted.cdf(0.9)[site] == pytest.approx((y <= 0.9).mean(), abs=0.01)
            assert predicted.exceedance(0.9)[site] == pytest.approx((y > 0.9).mean(), abs=0.01)
            assert predicted.mean()[site] == pytest.approx(y.mean(), abs=0.03)
            assert predicted.std()[site] == pytest.approx(y.std(), abs=0.03)
            other = rng.permutation(y)
            score = np.abs(y - 0.7).mean() - 0.5 * np.abs(y - other).mean()
            assert predicted.crps(np.full(3, 0.7))[site] == pytest.approx(score, abs=0.02)

    def test_other_sites_are_as_without(self):
        """A site without limits is bit for bit what it is where no site has any."""
        with_limits = self.predicted(1)
        without = replace(with_limits, limits=None)
        for name, args in {"quantile": (0.3,), "cdf": (0.9,), "mean": (), "std": ()}.items():
            found, expected = (getattr(p, name)(*args)[2] for p in (with_limits, without))
            assert found == expected


def test_log_mass():
    """The probability of an interval is the difference of the distribution function."""
    predicted = TestAtom().mixed()
    low, high = np.array([-np.inf, 0.5, 0.0]), np.array([0.0, 1.5, np.inf])
    expected = predicted.cdf(high) - np.array([0.0, predicted.cdf(0.5)[1], 0.0])
    np.testing.assert_allclose(predicted.log_mass(low, high), np.log(expected), atol=1e-10)


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
