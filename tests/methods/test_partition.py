"""Partitions: no site is divided, every observation is in one block, points stand for many."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.methods.partition import by_cluster, by_site, centres, spread
from xcopula.process import Sample


def sample_of(sizes=(24, 20, 18), together=12, seed=0):
    """Draw partly co-located tasks in the plane."""
    rng = np.random.default_rng(seed)
    covariance = Covariance((KERNELS["se"],) * len(sizes), (InputGroup(2),))
    inputs = reference.random_inputs(covariance, rng, sizes, together)
    return Sample.of(inputs, [rng.normal(size=len(x)) for x in inputs])


def members(blocks):
    """Return the blocks as sets of observations."""
    return [frozenset(index.tolist()) for batch in blocks for index in batch]


class TestBlocks:
    @pytest.mark.parametrize("count", [1, 4, 9])
    def test_sites_are_whole(self, count):
        """Observations at one site are in one block, whichever partition, and all are in one."""
        sample = sample_of()
        for blocks in (by_site(sample), by_cluster(sample, count)):
            seen = np.concatenate([b.ravel() for b in blocks])
            assert sorted(seen) == list(range(sample.size))
            owner = np.empty(sample.size, int)
            for k, block in enumerate(members(blocks)):
                owner[list(block)] = k
            assert all(np.unique(owner[sample.sites == s]).size == 1 for s in sample.sites)

    def test_by_site_is_every_site(self):
        """A block for each site, gathered by size, each in increasing order."""
        sample = sample_of()
        blocks = by_site(sample)
        expected = {frozenset(np.flatnonzero(sample.sites == s).tolist()) for s in sample.sites}
        assert set(members(blocks)) == expected
        sizes = [b.shape[1] for b in blocks]
        assert sizes == sorted(set(sizes))
        assert all((np.diff(b, axis=1) > 0).all() and b.dtype == np.int64 for b in blocks)

    def test_numbers_need_not_follow_each_other(self):
        """Sub-samples keep the numbers of the whole: gaps and any order are fine."""
        sample = sample_of()
        part = sample.take(np.arange(0, sample.size, 3))
        for blocks in (by_site(part), by_cluster(part, 3)):
            seen = np.concatenate([b.ravel() for b in blocks])
            assert sorted(seen) == list(range(part.size))
        assert len(members(by_site(part))) == np.unique(part.sites).size

    def test_clusters_are_neighbours(self):
        """Each site is in the block whose mean of places is the nearest, for separated groups."""
        rng = np.random.default_rng(0)
        middle = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]])
        label = rng.integers(3, size=60)
        inputs = middle[label] + rng.uniform(size=(60, 2))
        sample = Sample.of([inputs[:35], inputs[35:]], [np.zeros(35), np.zeros(25)])
        expected = {frozenset(np.flatnonzero(label == k).tolist()) for k in range(3)}
        assert set(members(by_cluster(sample, 3))) == expected

    def test_clusters_are_sorted(self):
        """The members of a block come in increasing order: tasks stay sorted."""
        blocks = by_cluster(sample_of(), 5)
        assert all(b.shape[0] == 1 and (np.diff(b[0]) > 0).all() for b in blocks)

    def test_more_clusters_than_sites_are_the_sites(self):
        """A count beyond the sites gives each a block of its own."""
        sample = sample_of((6, 5, 4), 3)
        assert set(members(by_cluster(sample, 100))) == set(members(by_site(sample)))


class TestCentres:
    def test_are_deterministic_and_inside(self):
        """The same points have the same centres, within their extent."""
        points = np.random.default_rng(0).uniform(size=(2, 80))
        first, second = centres(points, 7), centres(points, 7)
        np.testing.assert_array_equal(first, second)
        assert first.shape == (2, 7)
        assert first.flags.c_contiguous
        assert first.min() > 0
        assert first.max() < 1

    @pytest.mark.parametrize("count", [6, 7, 100])
    def test_as_many_as_points_are_the_points(self, count):
        """Then each stands for itself, and what is returned is a copy."""
        points = np.random.default_rng(0).uniform(size=(2, 6))
        found = centres(points, count)
        np.testing.assert_array_equal(found, points)
        assert found is not points

    def test_of_separated_groups_are_their_means(self):
        """Groups far apart have their means for centres."""
        rng = np.random.default_rng(1)
        groups = [rng.uniform(size=(2, 9)) + 10.0 * k for k in range(4)]
        found = centres(np.hstack(groups), 4)
        expected = np.stack([g.mean(axis=1) for g in groups], axis=1)
        order = np.argsort(found[0])
        np.testing.assert_allclose(found[:, order], expected, rtol=1e-12)

    def test_no_points(self):
        """A task without observations has no centres."""
        assert centres(np.empty((2, 0)), 3).shape == (2, 0)


class TestSpread:
    @given(seed=st.integers(0, 2**16), count=st.integers(1, 25))
    @settings(max_examples=30, deadline=None)
    def test_each_is_the_farthest_from_those_before(self, seed, count):
        """The greedy rule, from the point nearest to the mean, returned in increasing order."""
        points = np.random.default_rng(seed).uniform(size=(25, 2))
        chosen = [int(np.argmin(np.linalg.norm(points - points.mean(axis=0), axis=1)))]
        while len(chosen) < count:
            gaps = np.linalg.norm(points[:, None] - points[chosen], axis=-1).min(axis=1)
            chosen.append(int(np.argmax(gaps)))
        np.testing.assert_array_equal(spread(points.T, count), sorted(chosen))
