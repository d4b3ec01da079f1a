"""Draws around an optimum against differences of the value and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from xcopula.errors import NotPositiveDefiniteError
from xcopula.model import laplace
from xcopula.model.laplace import draw, effective_size, hessian, precision, standard_draws, weigh


def flat(theta):
    """Return a log prior that says nothing."""
    return 0.0, np.zeros_like(theta)


class TestHessian:
    def test_of_a_model_against_differences_of_its_value(self, model):
        """The gradient's differences are the value's second differences."""
        step, theta = 1e-3, model.theta
        found = hessian(model.objective, theta, np.full(theta.size, step))
        eye, value = step * np.eye(theta.size), lambda at: model.objective(at)[0]
        for i, j in ((0, 0), (1, 4), (2, 2), (5, 7), (theta.size - 1, theta.size - 1), (0, 8)):
            corners = [value(theta + a * eye[i] + b * eye[j]) for a in (1, -1) for b in (1, -1)]
            expected = (corners[0] - corners[1] - corners[2] + corners[3]) / (4.0 * step**2)
            assert found[i, j] == pytest.approx(expected, rel=1e-3, abs=2e-3)
        np.testing.assert_array_equal(found, found.T)

    def test_of_a_quadratic(self):
        """Exact for one."""
        matrix = np.array([[2.0, 0.3], [0.3, 1.0]])
        found = hessian(lambda x: (0.5 * x @ matrix @ x, matrix @ x), np.ones(2), np.full(2, 0.1))
        np.testing.assert_allclose(found, matrix, rtol=1e-12)

    @pytest.mark.parametrize("how", ["infinite", "raises"])
    def test_beside_a_cliff(self, how):
        """The parameter whose step goes over it is named."""

        def objective(x):
            if x[1] > 1.0 and how == "raises":
                raise NotPositiveDefiniteError("no")
            return (np.inf if x[1] > 1.0 else 0.0), np.zeros(3)

        with pytest.raises(FloatingPointError) as found:
            hessian(objective, np.ones(3), np.full(3, 1e-3))
        assert found.value.args == (1,)


class TestPrecision:
    def test_turns_standard_draws_into_draws_of_the_curvature(self):
        """The covariance is its inverse."""
        curvature = np.array([[40.0, 5.0], [5.0, 30.0]])
        rows = precision(curvature, np.array([0.5, 2.0]))
        np.testing.assert_allclose(rows.T @ rows, np.linalg.inv(curvature), rtol=1e-12)

    def test_directions_that_the_data_do_not_tell(self):
        """A flat or falling one is as wide as the weak priors, in its own units."""
        rows = precision(np.diag([100.0, -3.0, 1e-9]), np.array([1.0, 2.0, 0.1]))
        deviations = np.sqrt(np.diagonal(rows.T @ rows))
        np.testing.assert_allclose(deviations, [0.1, 2.8, 0.14], rtol=1e-12)


class TestStandardDraws:
    @pytest.mark.parametrize("dimension", [1, 2, 7, 15, 40])
    def test_are_normal_vectors(self, dimension):
        """In pairs of opposite signs; lengths at equal probabilities, directions orthogonal."""
        draws = standard_draws(30, dimension)
        assert draws.shape == (30, dimension)
        np.testing.assert_allclose(draws.sum(axis=0), 0.0, atol=1e-12)
        levels = np.sort(stats.chi2.cdf((draws[:15] ** 2).sum(axis=1), dimension))
        np.testing.assert_allclose(levels, (np.arange(15) + 0.5) / 15, rtol=1e-9)
        own = draws[: min(15, dimension)]
        gram = own @ own.T
        np.testing.assert_allclose(gram - np.diag(np.diagonal(gram)), 0.0, atol=1e-9)
        assert (draws**2).mean() == pytest.approx(1.0, rel=0.06)

    def test_are_always_the_same(self):
        """The same model gives the same intervals."""
        np.testing.assert_array_equal(standard_draws(30, 5), standard_draws(30, 5))


class TestWeigh:
    def test_ratios(self):
        """Weights are proportional to ratios of densities, whatever constant they have."""
        np.testing.assert_allclose(weigh(np.log([2.0, 3.0, 5.0]) + 900.0), [0.2, 0.3, 0.5])

    def test_none_is_much_larger_than_the_others(self):
        """The largest have twice the mean, the others their shares of what is left."""
        weights = weigh(np.log([1e9, 1e3, 1.0, 2.0, 3.0, 2.0, 1.0, 1.0]))
        np.testing.assert_allclose(weights[:2], 2.0 / 8.0)
        np.testing.assert_allclose(weights[2:], 0.5 * np.array([1, 2, 3, 2, 1, 1]) / 10.0)

    @pytest.mark.parametrize("seed", range(4))
    def test_the_limit_by_iteration(self, seed):
        """Cut again and again at twice the mean, until nothing is above it."""
        ratios = np.random.default_rng(seed).normal(0.0, 2.5, 30)
        expected = np.exp(ratios)
        for _ in range(200):
            expected = np.minimum(expected, 2.0 * expected.mean())
        np.testing.assert_allclose(weigh(ratios), expected / expected.sum(), rtol=1e-6)

    def test_where_there_is_no_density(self):
        """Weight zero."""
        np.testing.assert_array_equal(weigh(np.array([0.0, -np.inf, 0.0])), [0.5, 0.0, 0.5])

    def test_effective_size(self):
        """As many as there are if they are equal, one if one has all."""
        assert effective_size(np.full(8, 0.125)) == pytest.approx(8.0)
        assert effective_size(np.array([1.0, 0.0, 0.0])) == 1.0


class TestDraw:
    @staticmethod
    def skewed(x):
        """Two parameters that are skewed and correlated: logarithms of gamma variables."""
        a, b = x[0], x[1] - 0.5 * x[0]
        value = 2.5 * (np.exp(a) - a) + 2.0 * (np.exp(b) - b)
        by_a, by_b = 2.5 * (np.exp(a) - 1.0), 2.0 * (np.exp(b) - 1.0)
        return value, np.array([by_a - 0.5 * by_b, by_b])

    def test_moments_against_a_grid(self, monkeypatch):
        """Weighted draws have the posterior's mean and deviation; unweighted ones do not."""
        monkeypatch.setattr(laplace, "_HEAVIEST", 30.0)  # nothing is cut
        found = draw(self.skewed, flat, np.zeros(2), np.ones(2))
        axis = np.linspace(-4.0, 3.0, 281)
        grid = np.stack(np.meshgrid(axis, axis, indexing="ij")).reshape(2, -1)
        density = np.exp([-self.skewed(x)[0] for x in grid.T])
        density /= density.sum()
        mean = grid @ density
        spread = np.sqrt(((grid - mean[:, None]) ** 2) @ density)
        weighted = found.weights @ found.thetas
        np.testing.assert_allclose(weighted, mean, atol=0.13 * spread.min())
        second = found.weights @ (found.thetas - weighted) ** 2
        np.testing.assert_allclose(np.sqrt(second), spread, rtol=0.12)
        assert np.abs(mean).min() > 0.25 * spread.min()  # the optimum, at zero, is not the mean
        assert found.weights.sum() == pytest.approx(1.0)

    def test_a_normal_posterior_is_met(self):
        """All draws count the same, and have its moments."""
        matrix = np.array([[9.0, 2.0], [2.0, 4.0]])
        centre = np.array([3.0, -1.0])

        def objective(x):
            return 0.5 * (x - centre) @ matrix @ (x - centre), matrix @ (x - centre)

        found = draw(objective, flat, centre, np.ones(2))
        np.testing.assert_allclose(found.weights, 1.0 / 30.0, rtol=1e-6)
        np.testing.assert_allclose(found.thetas.mean(axis=0), centre, rtol=1e-9)
        np.testing.assert_allclose(np.cov(found.thetas.T, ddof=0), np.linalg.inv(matrix), atol=0.05)

    def test_the_prior_counts(self):
        """Half of the precision is the prior's."""

        def objective(x):
            return 2.0 * float(x @ x), 4.0 * x

        def log_prior(x):
            return -2.0 * float(x @ x), -4.0 * x

        found = draw(objective, log_prior, np.zeros(1), np.ones(1))
        assert found.thetas.std() == pytest.approx(np.sqrt(1.0 / 8.0), rel=0.05)

    def test_what_the_likelihood_does_not_tell_stays(self):
        """Parameters without a say are not drawn."""

        def objective(x):
            return 8.0 * float(x[1] ** 2), np.array([0.0, 16.0 * x[1]])

        def log_prior(x):
            return -0.5 * float(x[0] ** 2), np.array([-x[0], 0.0])

        found = draw(objective, log_prior, np.array([0.7, 0.0]), np.ones(2))
        np.testing.assert_array_equal(found.thetas[:, 0], 0.7)
        assert found.thetas[:, 1].std() > 0.2

    def test_draws_that_are_impossible_are_left_out(self):
        """Beyond a wall there is no likelihood; half of the draws lie there."""

        def objective(x):
            if x[0] > 1e-2:
                raise NotPositiveDefiniteError("no")
            return (np.inf if x[0] < -3.0 else 0.5 * float(x @ x)), x

        found = draw(objective, flat, np.zeros(1), np.ones(1))
        assert (found.thetas[:, 0] <= 1e-2).all()
        assert len(found.thetas) == 15
        assert len(draw(objective, flat, np.zeros(1), np.ones(1), 4).thetas) == 2
