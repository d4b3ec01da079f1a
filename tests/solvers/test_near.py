"""A sample in units of its length scales: metrics of structures, and how many are looked at."""

from __future__ import annotations

import numpy as np
import pytest
import reference

from xcopula.solvers import near as module
from xcopula.solvers.near import Near, places, tree_of


def near_of(name="single", sizes=(80, 60, 50), seed=0):
    """Return a sample in the metric of its covariance, and what made it."""
    process, sample, theta, _ = reference.example(name, sizes=sizes, seed=seed)
    return Near.of(process, theta, sample), process, theta


def test_metric_is_a_mean_weighted_by_variance():
    """The logarithms of lengths of tasks and structures, by their shares of the variance."""
    _, process, theta = near_of("groups")
    own = theta[: process.covariance.size]
    lengths = process.covariance.part(own, "length")
    *amplitudes, _ = reference.task_matrices(process.covariance, own)
    shares = np.array([np.diag(a) for a in amplitudes])
    found, each = module._metrics(process, theta)
    assert each.shape == (3, 3)
    np.testing.assert_array_equal(each[2], found)
    for g, columns in enumerate((slice(0, 2), slice(2, 3))):
        expected = np.exp(np.average(lengths[:, g], weights=shares))
        np.testing.assert_allclose(found[columns], expected)
        for q in range(2):
            expected = np.exp(np.average(lengths[q, g], weights=shares[q]))
            np.testing.assert_allclose(each[q, columns], expected)


@pytest.mark.parametrize("name", ["single", "mixed", "lmc"])
def test_one_metric_where_structures_do_not_differ_in_kind(name):
    """One structure, or one group in which all distances are stretched alike."""
    near, *_ = near_of(name)
    np.testing.assert_array_equal(near.metrics, near.lengths[None])


def test_places_are_in_units_of_lengths():
    """One row for each observation, and a tree that finds the nearest of them."""
    near, *_ = near_of("groups")
    where = places(near.inputs, near.lengths)
    np.testing.assert_allclose(where, (near.inputs / near.lengths[:, None]).T)
    np.testing.assert_array_equal(near.places, where)
    away = np.linalg.norm(where - where[3], axis=1)
    _, found = tree_of(where).query(where[3], k=5)
    np.testing.assert_allclose(away[found], np.sort(away)[:5])


@pytest.mark.parametrize(
    ("name", "own", "others"), [("single", 10, 10), ("mixed", 15, 15), ("groups", 15, 10)]
)
def test_how_many_are_looked_at(name, own, others):
    """Where distance does not decide, more than are kept; as many at least, of every task."""
    near, *_ = near_of(name)
    assert near.candidates(10, own=True) == own
    assert near.candidates(10, own=False) == others
