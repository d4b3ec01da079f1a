"""Wrong decisions at a threshold: the closed form against draws and against the plain formula."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr, owens_t

from xcopula.process.decision import Misclassification, Variance, distance_of, expected_error

DRAWS = 200_000


@pytest.mark.parametrize("reduction", [0.0, 0.05, 0.4, 0.79, 0.8])
@pytest.mark.parametrize("offset", [0.0, 0.3, -1.2])
def test_against_draws(reduction, offset):
    """The mean to come moves, the variance shrinks, and the decision goes by the new mean."""
    rng, variance = np.random.default_rng(1), 0.8
    mean = offset + np.sqrt(reduction) * rng.normal(size=DRAWS)
    left = np.sqrt(variance - reduction)
    wrong = ndtr(-np.abs(mean) / left) if left > 0.0 else np.zeros(DRAWS)
    distance = np.array([abs(offset) / np.sqrt(variance)])
    (found,) = expected_error(distance, np.array([variance]), np.array([reduction]))
    assert abs(found - wrong.mean()) < 4.0 * wrong.std() / np.sqrt(DRAWS) + 1e-12


def test_against_draws_of_truth_and_decision():
    """How often the truth lies on the other side of the threshold."""
    rng, size = np.random.default_rng(2), 400_000
    mean = 0.5 + np.sqrt(0.3) * rng.normal(size=size)
    truth = mean + np.sqrt(0.4) * rng.normal(size=size)
    wrong = ((truth > 0.0) != (mean > 0.0)).mean()
    distance, variance = np.array([0.5 / np.sqrt(0.7)]), np.array([0.7])
    (found,) = expected_error(distance, variance, np.array([0.3]))
    assert abs(found - wrong) < 4.0 * np.sqrt(wrong * (1.0 - wrong) / size)


def test_nothing_measured_and_all_known():
    """The ends of the closed form."""
    distance = np.array([0.0, 0.7, np.inf])
    variance = np.array([0.5, 0.5, 0.0])
    before = expected_error(distance, variance, np.zeros(3))
    np.testing.assert_allclose(before, ndtr(-distance), atol=1e-15)
    np.testing.assert_array_equal(expected_error(distance, variance, variance), 0.0)


def test_what_is_left_out_counts_nothing():
    """A measurement far away: the closed form, to the last digits."""
    rng = np.random.default_rng(5)
    distance, variance = np.abs(rng.normal(size=200)) * 2.0, rng.uniform(0.1, 1.0, 200)
    reduction = variance * 10.0 ** rng.uniform(-12.0, -0.01, (30, 200))
    want = 2.0 * owens_t(distance, np.sqrt((variance - reduction) / reduction))
    found = expected_error(distance, variance, reduction)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-11)


def test_more_taken_off_than_there_is():
    """A rounding error beyond the variance is all of it."""
    more = expected_error(np.array([0.4]), np.array([0.5]), np.array([0.5 + 1e-12]))
    np.testing.assert_array_equal(more, 0.0)
    np.testing.assert_array_equal(Variance(np.array([0.5]))(np.array([0.6])), 0.0)


def test_distance_is_that_of_the_smaller_side():
    """Exact in both tails; half and half is no distance."""
    z = np.array([-9.0, -1.0, 0.0, 2.0, 12.0])
    np.testing.assert_allclose(distance_of(ndtr(z), ndtr(-z)), np.abs(z), rtol=1e-12, atol=1e-15)
    assert distance_of(np.array([1.0]), np.array([0.0]))[0] == np.inf
    assert np.isnan(distance_of(np.array([np.nan]), np.array([np.nan]))).all()


def test_losses_of_some_cells():
    """A slice, and several reductions at once."""
    variance, distance = np.array([0.2, 0.5, 0.9]), np.array([0.1, 1.0, 2.0])
    less = np.array([[0.1, 0.2], [0.0, 0.9]])
    found = Variance(variance)(less, slice(1, 3))
    np.testing.assert_allclose(found, np.maximum(variance[1:] - less, 0.0), atol=1e-15)
    found = Misclassification(distance, variance)(less, slice(1, 3))
    want = expected_error(distance[1:], variance[1:], less)
    np.testing.assert_array_equal(found, want)
