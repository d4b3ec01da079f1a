"""What is known of an observation at a site: against the conditional law of a joint normal."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xcopula.methods.nugget import unexplained
from xcopula.process import NO_SITE, Moments, Sample, Targets, keep_data, known_data


def sample_of(*sites):
    """Put observations of each task at numbered sites; where these are does not matter."""
    values = [np.arange(float(len(s))) + 10 * i for i, s in enumerate(sites)]
    inputs = [np.zeros((len(s), 1)) for s in sites]
    return Sample.of(inputs, values, sites=np.concatenate(sites).astype(np.int64))


def nugget_of(rng, tasks, rank=None):
    """Draw a covariance of nuggets, of full rank unless another is asked for."""
    root = rng.normal(size=(tasks, rank or tasks))
    return 0.3 * root @ root.T / tasks


def conditional_variance(nugget, task, known):
    """Return Var(e_task | e_known) of a joint normal law: the residual of least squares.

    Nuggets are the rows of a root times independent normal numbers, so what others tell of one is
    its projection on their rows.
    """
    values, vectors = np.linalg.eigh(nugget)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    if not known:
        return float(root[task] @ root[task])
    weights = np.linalg.lstsq(root[list(known)].T, root[task], rcond=1e-7)[0]
    residual = root[task] - weights @ root[list(known)]
    return float(residual @ residual)


class TestUnexplained:
    @given(seed=st.integers(0, 2**16), tasks=st.integers(1, 5), data=st.data())
    @settings(max_examples=80, deadline=None)
    def test_is_the_conditional_variance(self, seed, tasks, data):
        """For any task and any pattern of co-located tasks, to 1e-9."""
        rng = np.random.default_rng(seed)
        nugget = nugget_of(rng, tasks)
        each = [np.flatnonzero(rng.uniform(size=12) < 0.5) for _ in range(tasks)]
        sample = sample_of(*each)
        task = data.draw(st.integers(0, tasks - 1))
        sites = np.append(rng.permutation(15), [NO_SITE, NO_SITE])
        others = [i for i in range(tasks) if i != task]
        there = [[i for i in others if s in each[i]] for s in sites]
        expected = [conditional_variance(nugget, task, known) for known in there]
        found = unexplained(nugget, sample, sites, task)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)

    def test_against_draws(self):
        """The residual of a regression on many drawn nuggets has this variance, within 2 %."""
        rng = np.random.default_rng(0)
        nugget = nugget_of(rng, 3)
        draws = rng.multivariate_normal(np.zeros(3), nugget, size=60_000)
        sample = sample_of([], [0, 1], [1])
        found = unexplained(nugget, sample, np.array([0, 1, 2]), 0)
        for k, known in enumerate([[1], [1, 2], []]):
            fitted = 0.0
            if known:
                fitted = draws[:, known] @ np.linalg.lstsq(draws[:, known], draws[:, 0])[0]
            assert found[k] == pytest.approx(np.var(draws[:, 0] - fitted), rel=0.02)

    @pytest.mark.parametrize("rank", [1, 2])
    def test_nuggets_that_are_one_another(self, rank):
        """A singular nugget is told where the others span it, and is never negative."""
        rng = np.random.default_rng(1)
        for _ in range(20):
            nugget = nugget_of(rng, 4, rank)
            sample = sample_of([5], [0, 1, 2], [0, 1], [0])
            found = unexplained(nugget, sample, np.array([0, 1, 2, 3]), 0)
            assert (found >= 0.0).all()
            patterns = [(1, 2, 3), (1, 2), (1,), ()]
            expected = [conditional_variance(nugget, 0, known) for known in patterns]
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)
            assert found[0] == pytest.approx(0.0, abs=1e-7)

    def test_independent_nuggets_tell_nothing(self):
        """A diagonal nugget is all of it left, wherever secondaries are."""
        nugget = np.diag([0.4, 0.2, 0.1])
        sample = sample_of([0], [0, 1], [1, 2])
        for task in range(3):
            found = unexplained(nugget, sample, np.array([0, 1, 2, 3, NO_SITE]), task)
            np.testing.assert_array_equal(found, nugget[task, task])

    def test_the_task_itself_does_not_count(self):
        """What is left is what others leave, also where the task was observed."""
        nugget = np.array([[0.5, 0.3], [0.3, 0.4]])
        sample = sample_of([0, 1], [1, 2])
        left = 0.5 - 0.3**2 / 0.4
        found = unexplained(nugget, sample, np.arange(4), 0)
        np.testing.assert_allclose(found, [0.5, left, left, 0.5], rtol=1e-12)

    def test_one_task(self):
        """Without secondaries nothing tells of the nugget."""
        found = unexplained(np.array([[0.3]]), sample_of([0, 1]), np.array([0, 7, NO_SITE]), 0)
        np.testing.assert_array_equal(found, 0.3)

    def test_no_sites(self):
        """Nothing asked, nothing left."""
        found = unexplained(np.eye(2), sample_of([0], [0]), np.empty(0, np.int64), 0)
        assert found.shape == (0,)

    def test_knowing_more_leaves_less(self):
        """Each further task at the site can only tell more."""
        rng = np.random.default_rng(3)
        nugget = nugget_of(rng, 4)
        subsets = list(itertools.chain(*(itertools.combinations((1, 2, 3), k) for k in range(4))))
        sites = [[s for s, known in enumerate(subsets) if i in known] for i in (1, 2, 3)]
        found = unexplained(nugget, sample_of([99], *sites), np.arange(len(subsets)), 0)
        for (a, less), (b, more) in itertools.product(enumerate(subsets), repeat=2):
            if set(less) < set(more):
                assert found[b] <= found[a] + 1e-12


class TestKeepData:
    def test_the_datum_where_the_task_was_observed(self):
        """Mean and variance at such sites are the score and zero; elsewhere they stay."""
        sample = sample_of([3, 1], [1, 2, 7])
        known = known_data(np.array([0.5, -0.4, 9.0, 8.0, 7.0]), None, lambda: None)
        targets = Targets(np.zeros((1, 5)), np.array([1, 2, 3, NO_SITE, 7]))
        given = Moments(np.full(5, 0.1), np.full(5, 0.2))
        first = keep_data(given, sample, known, targets, 0)
        np.testing.assert_array_equal(first.mean, [-0.4, 0.1, 0.5, 0.1, 0.1])
        np.testing.assert_array_equal(first.variance, [0.0, 0.2, 0.0, 0.2, 0.2])
        second = keep_data(given, sample, known, targets, 1)
        np.testing.assert_array_equal(second.mean, [9.0, 8.0, 0.1, 0.1, 7.0])
        np.testing.assert_array_equal(second.variance, [0.0, 0.0, 0.2, 0.2, 0.0])
        np.testing.assert_array_equal(given.mean, 0.1)

    def test_nothing_known_nothing_changed(self):
        """Where no target is a site of the task the moments are returned as they are."""
        given = Moments(np.ones(2), np.ones(2))
        targets = Targets.nowhere(np.zeros((1, 2)))
        assert keep_data(given, sample_of([0]), np.zeros(1), targets, 0) is given

    def test_of_an_interval_what_all_others_say(self):
        """Rows with an extra variance keep the moments of being left out."""
        left = Moments(np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2, 0.3]))
        known = known_data(np.array([7.0, 8.0, 9.0]), np.array([0.0, 5.0, 0.0]), lambda: left)
        np.testing.assert_array_equal(known.mean, [7.0, 2.0, 9.0])
        np.testing.assert_array_equal(known.variance, [0.0, 0.2, 0.0])
