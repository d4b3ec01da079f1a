"""Samples and targets: tasks joined, sites numbered once, sub-samples that keep the numbers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import reference

from xcopula.process import NO_SITE, Sample, Targets

RNG = np.random.default_rng(0)
INPUTS = [RNG.uniform(size=(n, 2)) for n in (4, 3, 5)]
VALUES = [RNG.gamma(2.0, size=n) for n in (4, 3, 5)]


@pytest.fixture
def sample():
    """Three tasks of four, three and five observations."""
    return Sample.of(INPUTS, VALUES)


@pytest.fixture
def shared():
    """Three tasks at five places a .. e, some of them common."""
    a, b, c, d, e = np.random.default_rng(1).uniform(size=(5, 2))
    inputs = [np.array([a, b, c]), np.array([c + 1e-12, d]), np.array([e, a, d - 1e-12])]
    return Sample.of(inputs, [np.arange(3.0), np.arange(2.0), np.arange(3.0)])


class TestTasks:
    def test_are_joined_in_order(self, sample):
        """Inputs are transposed, contiguous and sorted by task."""
        assert sample.size == 12
        assert sample.tasks == 3
        assert sample.sizes == [4, 3, 5]
        assert sample.inputs.flags.c_contiguous
        np.testing.assert_array_equal(sample.offsets, [0, 4, 7, 12])
        for i in range(3):
            np.testing.assert_array_equal(sample.inputs[:, sample.task(i)].T, INPUTS[i])
            np.testing.assert_array_equal(sample.values[sample.task(i)], VALUES[i])

    def test_are_selected_in_the_order_asked(self, sample):
        """A sub-sample holds the asked tasks, in that order, and stays contiguous."""
        part = sample.select([2, 0])
        expected = Sample.of([INPUTS[2], INPUTS[0]], [VALUES[2], VALUES[0]])
        np.testing.assert_array_equal(part.inputs, expected.inputs)
        np.testing.assert_array_equal(part.offsets, expected.offsets)
        np.testing.assert_array_equal(part.values, expected.values)
        assert part.inputs.flags.c_contiguous

    def test_all_of_them_are_the_sample_itself(self, sample):
        """Nothing is copied where nothing is left out; another order is another sample."""
        assert sample.select([0, 1, 2]) is sample
        assert sample.select((0, 1, 2)) is sample
        assert sample.select([1, 0, 2]) is not sample

    def test_may_have_no_observation(self):
        """A task may have no observation at all."""
        sample = Sample.of([INPUTS[0], np.empty((0, 2))], [VALUES[0], np.empty(0)])
        assert sample.values[sample.task(1)].size == 0
        assert sample.inputs.shape == (2, 4)
        assert sample.sizes == [4, 0]
        assert sample.observed(1, np.array([0, 3, NO_SITE])).tolist() == [-1, -1, -1]


class TestSites:
    def test_are_told_apart_by_inputs(self, shared):
        """Inputs nearer than 1e-9 of the extent are one site, over all tasks."""
        a, b, c = shared.sites[shared.task(0)]
        c2, d = shared.sites[shared.task(1)]
        e, a2, d2 = shared.sites[shared.task(2)]
        assert shared.sites.dtype == np.int64
        assert (c2, a2, d2) == (c, a, d)
        assert len({a, b, c, d, e}) == 5

    def test_given_numbers_are_kept(self):
        """Numbers that the labels gave are not asked of the inputs again."""
        numbers = np.array([5, 9, 9, 5, 2])
        sample = Sample.of([np.zeros((3, 1)), np.zeros((2, 1))], [np.zeros(3), np.zeros(2)],
                           sites=numbers)  # fmt: skip
        np.testing.assert_array_equal(sample.sites, numbers)

    def test_sub_samples_keep_them(self, shared):
        """Selected tasks and taken observations have the numbers of the whole."""
        first, second, third = (shared.sites[shared.task(i)] for i in range(3))
        np.testing.assert_array_equal(shared.select([2, 0]).sites, [*third, *first])
        np.testing.assert_array_equal(shared.select([1]).sites, second)
        index = np.array([0, 2, 4, 7])
        np.testing.assert_array_equal(shared.take(index).sites, shared.sites[index])
        np.testing.assert_array_equal(shared.take(index).select([2]).sites, third[-1:])

    def test_sub_samples_do_not_number_again(self, shared, monkeypatch):
        """The question is asked once, of the whole sample."""
        from xcopula.process import sample as module

        monkeypatch.setattr(module, "number_sites", lambda *_: pytest.fail("numbered again"))
        shared.select([0, 2])
        shared.take(np.array([1, 3]))
        shared.targets(slice(None))

    def test_observed_tells_who_stands_there(self, shared):
        """For each site the observation of a task by its number, or -1."""
        for task in range(3):
            where = shared.task(task)
            asked = np.array([*np.unique(shared.sites), NO_SITE, 99])
            expected = [
                next((k for k in range(where.start, where.stop) if shared.sites[k] == s), NO_SITE)
                for s in asked
            ]
            found = shared.observed(task, asked)
            assert found.dtype == np.int64
            np.testing.assert_array_equal(found, expected)

    def test_a_repeated_site_gives_its_first_observation(self):
        """Of two observations of a task at one site the first is found."""
        sites = np.array([4, 1, 4, 1, 0])
        sample = Sample.of([np.zeros((5, 1))], [np.zeros(5)], sites=sites)
        assert sample.observed(0, np.array([1, 4, 0, 2])).tolist() == [1, 0, 4, -1]


class TestTargets:
    def test_of_observations(self, shared):
        """Observations as targets stand at their inputs with their numbers."""
        for which in (slice(1, 4), np.array([6, 0]), shared.task(2)):
            found = shared.targets(which)
            np.testing.assert_array_equal(found.inputs, shared.inputs[:, which])
            np.testing.assert_array_equal(found.sites, shared.sites[which])
            assert found.inputs.flags.c_contiguous
            assert found.size == found.sites.size

    def test_nowhere(self):
        """Points that are no site of the data have no number."""
        points = np.random.default_rng(2).uniform(size=(3, 4))
        found = Targets.nowhere(points)
        assert found.inputs is points
        assert found.size == 4
        assert found.sites.tolist() == [NO_SITE] * 4
        assert found.sites.dtype == np.int64

    @pytest.mark.parametrize(
        "which", [slice(1, 3), np.array([True, False, True, True]), np.array([3, 0])]
    )
    def test_some(self, which):
        """A part by slice, mask or numbers is contiguous."""
        whole = Targets(np.arange(8.0).reshape(2, 4), np.array([3, -1, 5, 0]))
        part = whole.take(which)
        np.testing.assert_array_equal(part.inputs, whole.inputs[:, which])
        np.testing.assert_array_equal(part.sites, whole.sites[which])
        assert part.inputs.flags.c_contiguous

    def test_points_of_the_tests_are_matched(self, shared):
        """What the tests use to number points: near an observation its site, elsewhere none."""
        points = np.column_stack([shared.inputs[:, [3, 0]] + 5e-10, [9.0, 9.0]])
        found = reference.targets(shared, points)
        assert found.sites.tolist() == [shared.sites[3], shared.sites[0], NO_SITE]


class TestCovariates:
    TABLES = (np.arange(8.0).reshape(4, 2), np.empty((3, 0)), np.arange(5.0)[:, None] % 2)

    @pytest.fixture
    def varying(self):
        """Three tasks, of which the first has two covariates and the last one."""
        return Sample.of(INPUTS, VALUES, self.TABLES)

    def test_none_by_default(self, sample):
        """A task of a sample without covariates has rows of no columns."""
        assert sample.covariates == ()
        assert [sample.covariates_of(i).shape for i in range(3)] == [(4, 0), (3, 0), (5, 0)]
        assert sample.select([1]).covariates == ()
        assert sample.take(np.arange(5)).covariates == ()

    def test_selection_carries_them(self, varying):
        """Selected tasks keep their covariates, in the order asked."""
        part = varying.select([2, 0])
        np.testing.assert_array_equal(part.covariates_of(0), self.TABLES[2])
        np.testing.assert_array_equal(part.covariates_of(1), self.TABLES[0])

    def test_observations_carry_them(self, varying):
        """Observations taken out keep inputs, values, sites and covariates, task by task."""
        index = np.array([1, 3, 8, 11])
        part = varying.take(index)
        np.testing.assert_array_equal(part.offsets, [0, 2, 2, 4])
        np.testing.assert_array_equal(part.values, varying.values[index])
        np.testing.assert_array_equal(part.inputs, varying.inputs[:, index])
        np.testing.assert_array_equal(part.sites, varying.sites[index])
        assert part.inputs.flags.c_contiguous
        np.testing.assert_array_equal(part.covariates_of(0), self.TABLES[0][[1, 3]])
        assert part.covariates_of(1).shape == (0, 0)
        np.testing.assert_array_equal(part.covariates_of(2), self.TABLES[2][[1, 4]])

    @pytest.mark.parametrize("wrong", [TABLES[:2], TABLES[::-1], (*TABLES[:2], np.arange(5.0))])
    def test_rows_must_match(self, wrong):
        """A row of covariates for each observation, or an error with the shapes."""
        message = r"tasks have \[4, 3, 5\] observations, the covariates have shapes \[\("
        with pytest.raises(ValueError, match=message):
            Sample.of(INPUTS, VALUES, wrong)


class TestLimits:
    def test_follow_their_observations(self):
        """Tasks that are selected and observations that are taken keep their own limits."""
        ends = [np.stack([v, v]) for v in VALUES]
        ends[1][0, 1], ends[2][1, 4] = -np.inf, np.inf
        sample = Sample.of(INPUTS, VALUES, limits=ends)
        np.testing.assert_array_equal(np.flatnonzero(sample.is_interval), [5, 11])
        part = sample.select([2, 1])
        np.testing.assert_array_equal(np.flatnonzero(part.is_interval), [4, 6])
        np.testing.assert_array_equal(part.limits_of(0), ends[2])
        few = sample.take(np.array([0, 5, 6, 11]))
        np.testing.assert_array_equal(few.is_interval, [False, True, False, True])
        np.testing.assert_array_equal(few.limits_of(1), ends[1][:, 1:])

    def test_are_dropped_where_no_value_is_an_interval(self, sample):
        """A sample of numbers has none, and its values are their own limits."""
        plain = Sample.of(INPUTS, VALUES, limits=[np.stack([v, v]) for v in VALUES])
        assert plain.limits is None
        assert not plain.is_interval.any()
        np.testing.assert_array_equal(sample.limits_of(1), [VALUES[1], VALUES[1]])
        ends = [np.stack([v, v]) for v in VALUES]
        ends[2][1, 4] = np.inf
        assert Sample.of(INPUTS, VALUES, limits=ends).select([0, 1]).limits is None

    def test_need_two_for_each_observation(self, sample):
        """Limits of another shape are refused."""
        with pytest.raises(ValueError, match=r"needs two limits.*12 observations"):
            dataclasses.replace(sample, limits=np.zeros((2, 3)))
