"""Anchors: which points a transductive prediction shares between its cells."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from xcopula.methods import Settings, transductive
from xcopula.methods.anchors import MOST_ANCHORS, choose_anchors, usable_anchors
from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import Normal
from xcopula.process.copula import Process, Sample


def sample_of(*inputs, seed=0):
    """Put random values at the tasks' sites, each (n_i, d)."""
    rng = np.random.default_rng(seed)
    return Sample.of(
        [np.asarray(x, float) for x in inputs], [rng.normal(size=len(x)) for x in inputs]
    )


def as_set(points):
    """Return points (d, m) as a set of tuples."""
    return {tuple(map(float, np.round(x, 9))) for x in points.T}


def process_of(tasks, seed=0):
    """Draw a process in the plane and its parameters."""
    covariance = Covariance((KERNELS["matern32"],) * tasks, (InputGroup(2),))
    process = Process(covariance, (Normal(0.0, 1.0),) * tasks)
    rng = np.random.default_rng(seed)
    return process, process.join(reference.random_theta(covariance, rng))


class TestChoice:
    def test_are_the_sites_of_secondaries_without_the_primary(self):
        """Each such site once, whichever secondary it belongs to; none where the primary is."""
        a, b, c, d, e = np.random.default_rng(0).uniform(size=(5, 2))
        sample = sample_of([a, b], [a, c, d], [b, d, e])
        assert as_set(choose_anchors(sample)) == as_set(np.array([c, d, e]).T)

    def test_sites_within_rounding_are_one(self):
        """Sites nearer than 1e-9 of the extent are the same site."""
        a, b = np.random.default_rng(0).uniform(size=(2, 2))
        sample = sample_of([a], [a + 1e-12, b], [b - 1e-12])
        assert choose_anchors(sample).shape == (2, 1)

    @pytest.mark.parametrize("tasks", [1, 2, 3])
    def test_none_where_the_primary_is_known_everywhere(self, tasks):
        """Co-located tasks have no anchors, and that is no error."""
        sites = np.random.default_rng(0).uniform(size=(6, 2))
        assert choose_anchors(sample_of(*[sites] * tasks)).shape == (2, 0)

    @given(seed=st.integers(0, 2**16), most=st.integers(1, 30), dimension=st.integers(1, 3))
    @settings(max_examples=30, deadline=None)
    def test_too_many_are_thinned_to_a_spread_out_subset(self, seed, most, dimension):
        """At most so many, all of them sites, and farther apart than a random subset is likely."""
        rng = np.random.default_rng(seed)
        extra = rng.uniform(size=(30, dimension))
        sample = sample_of(rng.uniform(size=(4, dimension)) + 2.0, extra)
        found = choose_anchors(sample, most)
        assert found.shape == (dimension, most)
        assert found.flags.c_contiguous or most < 30
        assert as_set(found) <= as_set(extra.T)
        assert len(as_set(found)) == most

    def test_each_is_the_farthest_from_those_before(self):
        """The subset is that of the greedy farthest-point rule, started at the centre."""
        rng = np.random.default_rng(1)
        extra = rng.uniform(size=(40, 2))
        found = choose_anchors(sample_of(np.array([[5.0, 5.0], [6.0, 6.0]]), extra), 10)
        chosen = [int(np.argmin(np.linalg.norm(extra - extra.mean(axis=0), axis=1)))]
        while len(chosen) < 10:
            gaps = np.linalg.norm(extra[:, None] - extra[chosen], axis=-1).min(axis=1)
            chosen.append(int(np.argmax(gaps)))
        assert as_set(found) == as_set(extra[chosen].T)

    def test_the_default_is_some_hundreds(self):
        """A dense secondary does not make the cost of a cell grow without bound."""
        rng = np.random.default_rng(2)
        found = choose_anchors(sample_of(rng.uniform(size=(5, 2)), rng.uniform(size=(900, 2))))
        assert found.shape == (2, MOST_ANCHORS)
        assert 100 <= MOST_ANCHORS <= 1000


class TestUsable:
    def test_order_is_kept_and_repeats_and_known_sites_are_dropped(self):
        """Given points come back in their order, less those that would add nothing."""
        rng = np.random.default_rng(3)
        a, b, c, d = rng.uniform(size=(4, 2))
        sample = sample_of([a, b], [c])
        found = usable_anchors(np.array([d, a, c, d, b]).T, sample)
        np.testing.assert_array_equal(found, np.array([d, c]).T)
        assert found.flags.c_contiguous

    def test_no_points_are_no_anchors(self):
        """An empty set of points is a set."""
        sample = sample_of(np.random.default_rng(0).uniform(size=(3, 2)))
        assert usable_anchors(np.empty((2, 0)), sample).shape == (2, 0)


class TestUse:
    def setting(self, *, colocated=False):
        """Three tasks, and targets among them."""
        process, theta = process_of(3)
        rng = np.random.default_rng(5)
        known, unknown = rng.uniform(size=(12, 2)), rng.uniform(size=(7, 2))
        others = [known, known[:6]] if colocated else [np.vstack([known[:5], unknown]), unknown[:4]]
        return process, sample_of(known, *others), theta, rng.uniform(size=(2, 40)), unknown

    def moments(self, weights, anchors, **options):
        """Return combined moments at the targets."""
        process, sample, theta, targets, _ = self.setting(**options)
        combined = transductive.condition(process, sample, theta, Settings(weights, anchors))
        return combined.moments(targets)

    def test_auto_is_those_sites_given_explicitly(self):
        """The same anchors, in any order and with idle ones among them, give the same result."""
        process, sample, theta, _, unknown = self.setting()
        idle = sample.inputs[:, sample.task(0)]
        points = np.column_stack([unknown[::-1].T, idle, unknown[2]])
        combined = transductive.condition(process, sample, theta, Settings("report", points))
        assert combined.anchors.points.shape == (2, 7)
        left, right = self.moments("report", "auto"), self.moments("report", points)
        np.testing.assert_allclose(left.mean, right.mean, rtol=0, atol=1e-11)
        np.testing.assert_allclose(left.variance, right.variance, rtol=0, atol=1e-11)

    @pytest.mark.parametrize("anchors", ["auto", "known", "empty"])
    def test_without_anchors_it_is_point_by_point(self, anchors):
        """Where no anchor is left, each cell is combined from scalars."""
        process, sample, theta, targets, _ = self.setting(colocated=True)
        points = {"auto": "auto", "empty": np.empty((2, 0))}
        given = points.get(anchors, sample.inputs[:, sample.task(0)])
        combined = transductive.condition(process, sample, theta, Settings("report", given))
        assert combined.anchors is None
        expected = self.moments("report", None, colocated=True)
        np.testing.assert_array_equal(combined.moments(targets).mean, expected.mean)

    def test_anchors_matter(self):
        """With and without anchors the predictions differ, and neither is broken."""
        with_anchors, without = self.moments("report", "auto"), self.moments("report", None)
        assert np.abs(with_anchors.mean - without.mean).max() > 1e-3
        for moments in (with_anchors, without):
            assert ((moments.variance > 0.0) & (moments.variance < 1.0)).all()

    def test_a_cell_does_not_depend_on_its_neighbours(self):
        """One target alone has the moments that it has among forty, to 1e-12."""
        process, sample, theta, targets, unknown = self.setting()
        cells = np.column_stack([targets, unknown.T, sample.inputs[:, :5]])
        combined = transductive.condition(process, sample, theta, Settings("report", "auto"))
        together = combined.moments(cells)
        for k in range(cells.shape[1]):
            alone = combined.moments(cells[:, k : k + 1].copy())
            assert alone.mean[0] == pytest.approx(together.mean[k], rel=0, abs=1e-12)
            assert alone.variance[0] == pytest.approx(together.variance[k], rel=0, abs=1e-12)

    def test_batches_of_any_size_give_the_same(self, monkeypatch):
        """A small byte budget cuts the cells into batches, and changes nothing beyond 1e-12."""
        whole = self.moments("report", "auto")
        monkeypatch.setattr(transductive.exact, "BATCH_BYTES", 2048)
        cut = self.moments("report", "auto")
        np.testing.assert_allclose(cut.mean, whole.mean, rtol=0, atol=1e-12)
        np.testing.assert_allclose(cut.variance, whole.variance, rtol=0, atol=1e-12)
