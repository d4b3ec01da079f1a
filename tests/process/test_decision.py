"""Wrong decisions at a threshold: the closed form against draws and against the plain formula."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr, owens_t
from xcopula.process.spread import NORMAL, Student

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
    """Of Student's errors, too: one unknown scale for the mean to come and for what is left."""
    rng, spread, size = np.random.default_rng(2), Student(14.0, 6.0).spread, 400_000
    scale = rng.choice(spread.scales, size, p=spread.weights)
    mean = 0.5 + scale * np.sqrt(0.3) * rng.normal(size=size)
    truth = mean + scale * np.sqrt(0.4) * rng.normal(size=size)
    wrong = ((truth > 0.0) != (mean > 0.0)).mean()
    distance, variance = np.array([0.5 / np.sqrt(0.7)]), np.array([0.7])
    (found,) = expected_error(distance, variance, np.array([0.3]), spread)
    assert abs(found - wrong) < 4.0 * np.sqrt(wrong * (1.0 - wrong) / size)


def test_nothing_measured_and_all_known():
    """The ends of the closed form."""
    distance = np.array([0.0, 0.7, np.inf])
    variance = np.array([0.5, 0.5, 0.0])
    before = expected_error(distance, variance, np.zeros(3))
    np.testing.assert_allclose(before, ndtr(-distance), atol=1e-15)
    np.testing.assert_array_equal(expected_error(distance, variance, variance), 0.0)


@pytest.mark.parametrize("spread", [NORMAL, Student(12.0, 5.0).spread], ids=["normal", "t"])
def test_what_is_left_out_counts_nothing(spread):
    """A measurement far away, and a scale that is rare: the whole sum, to the last digits."""
    rng = np.random.default_rng(5)
    distance, variance = np.abs(rng.normal(size=200)) * 2.0, rng.uniform(0.1, 1.0, 200)
    reduction = variance * 10.0 ** rng.uniform(-12.0, -0.01, (30, 200))
    slope = np.sqrt((variance - reduction) / reduction)
    parts = zip(spread.weights, spread.scales, strict=True)
    want = sum(2.0 * w * owens_t(distance / s, slope) for w, s in parts)
    found = expected_error(distance, variance, reduction, spread)
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
    spread = Student(20.0, 5.0).spread
    found = Variance(variance, spread)(less, slice(1, 3))
    np.testing.assert_allclose(found, spread.std**2 * (variance[1:] - less), atol=1e-15)
    found = Misclassification(distance, variance)(less, slice(1, 3))
    want = expected_error(distance[1:], variance[1:], less, NORMAL)
    np.testing.assert_array_equal(found, want)
