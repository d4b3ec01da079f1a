"""Log densities of terms: totals, and the standard error of their differences."""

from __future__ import annotations

import numpy as np
import pytest

from xcopula.solvers.densities import Densities

RNG = np.random.default_rng


def densities(each, weights=None, clusters=None):
    """Return terms that count once and stand for themselves, unless it is said otherwise."""
    each = np.asarray(each, float)
    weights = np.ones(each.size) if weights is None else np.asarray(weights, float)
    clusters = np.full(each.size, -1) if clusters is None else np.asarray(clusters)
    return Densities(each, weights, clusters.astype(np.int32))


def test_the_total_counts_each_term_as_often_as_it_stands_for():
    """A weighted sum."""
    assert densities([1.0, -2.0, 4.0], [1.0, 3.0, 0.5]).total == pytest.approx(-3.0)


def test_error_of_terms_that_stand_for_themselves():
    """The number of terms times their variance, as of any sum of independent differences."""
    rng = RNG(0)
    a, b = rng.normal(size=(2, 50))
    expected = np.sqrt(50 * np.var(a - b, ddof=1))
    assert densities(a).error(densities(b)) == pytest.approx(expected)
    assert densities(b).error(densities(a)) == pytest.approx(expected)


def test_error_of_clusters():
    """The units are sums over clusters, to which those that stand for themselves are added."""
    rng = RNG(1)
    a, b = rng.normal(size=(2, 40))
    clusters = np.concatenate([np.full(10, -1), np.repeat(np.arange(6), 5)])
    weights = np.where(clusters < 0, 1.0, 3.0)
    gain = weights * (a - b)
    sums = [gain[clusters == k].sum() for k in range(6)]
    expected = np.sqrt(10 * np.var(gain[:10], ddof=1) + 6 * np.var(sums, ddof=1))
    found = densities(a, weights, clusters).error(densities(b, weights, clusters))
    assert found == pytest.approx(expected)


def test_error_of_clusters_of_several_levels():
    """Clusters of one weight vary among themselves: each level of the order adds its own share."""
    rng = RNG(4)
    a, b = rng.normal(size=(2, 45))
    clusters = np.repeat(np.arange(9), 5)
    weights = np.where(clusters < 5, 3.0, 8.0)
    sums = np.bincount(clusters, weights * (a - b))
    expected = np.sqrt(5 * np.var(sums[:5], ddof=1) + 4 * np.var(sums[5:], ddof=1))
    found = densities(a, weights, clusters).error(densities(b, weights, clusters))
    assert found == pytest.approx(expected)


def test_error_against_a_bootstrap():
    """Totals of clusters drawn again, with those that stand for themselves, vary by the error."""
    rng = RNG(2)
    clusters = np.concatenate([np.full(60, -1), np.repeat(np.arange(80), 7)])
    weights = np.where(clusters < 0, 1.0, 4.0)
    # What the terms of a cluster have in common makes their sum vary more.
    common = np.concatenate([rng.normal(size=60), np.repeat(rng.normal(size=80), 7)])
    gain = 0.3 + common + rng.normal(size=clusters.size)
    zero = densities(np.zeros(clusters.size), weights, clusters)
    error = densities(gain, weights, clusters).error(zero)
    units = np.bincount(clusters[60:], (weights * gain)[60:])
    totals = [
        rng.choice(gain[:60], 60).sum() + rng.choice(units, units.size).sum() for _ in range(4000)
    ]
    assert error == pytest.approx(np.std(totals), rel=0.06)
    apart = densities(gain, weights).error(densities(np.zeros(clusters.size), weights))
    assert apart < 0.6 * error


def test_error_is_that_of_repeated_samples():
    """Over worlds, the total of the drawn clusters misses that of all by the error that it says."""
    rng = RNG(3)
    misses, said = [], []
    for _ in range(400):
        world = np.repeat(rng.normal(size=400), 5) + rng.normal(size=2000)
        drawn = np.sort(rng.choice(400, 40, replace=False))
        rows = (5 * drawn[:, None] + np.arange(5)).ravel()
        weights = np.full(rows.size, 10.0)
        some = densities(world[rows], weights, np.repeat(np.arange(40), 5))
        misses.append(some.total - world.sum())
        said.append(some.error(densities(np.zeros(rows.size), weights, some.clusters)))
    # A tenth of the population is drawn: the miss is smaller by that.
    assert np.std(misses) == pytest.approx(np.sqrt(0.9) * np.mean(said), rel=0.1)


@pytest.mark.parametrize("clusters", [None, [0, 0, 0], [-1, 0, 0]])
def test_too_few_units_have_no_error(clusters):
    """One unit says nothing of how units vary; nor does a difference that is the same for all."""
    a = densities([1.0, 1.0, 1.0], None, clusters)
    assert a.error(densities([0.0, 0.0, 0.0], None, clusters)) == 0.0
    assert densities([1.0]).error(densities([3.0])) == 0.0
    assert a.error(a) == 0.0
