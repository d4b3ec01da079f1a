"""Anchors: which points a transductive prediction shares between its cells."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from xcopula.jit.anchored import combine_conditionals
from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import Normal
from xcopula.methods import Transductive
from xcopula.methods.anchors import MOST_ANCHORS, choose_anchors, usable_anchors
from xcopula.process import Process, Sample, Targets
from xcopula.solvers import batches


def sample_of(*inputs, seed=0):
    """Put random values at the tasks' sites, each (n_i, d)."""
    rng = np.random.default_rng(seed)
    return Sample.of(
        [np.asarray(x, float) for x in inputs], [rng.normal(size=len(x)) for x in inputs]
    )


def as_set(points):
    """Return points (d, m), or targets, as a set of tuples."""
    inputs = points.inputs if isinstance(points, Targets) else points
    return {tuple(map(float, np.round(x, 9))) for x in inputs.T}


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
        found = choose_anchors(sample)
        assert as_set(found) == as_set(np.array([c, d, e]).T)
        np.testing.assert_array_equal(found.sites, reference.targets(sample, found.inputs).sites)

    def test_sites_within_rounding_are_one(self):
        """Sites nearer than 1e-9 of the extent are the same site."""
        a, b = np.random.default_rng(0).uniform(size=(2, 2))
        sample = sample_of([a], [a + 1e-12, b], [b - 1e-12])
        assert choose_anchors(sample).inputs.shape == (2, 1)

    def test_sites_are_told_apart_by_number(self):
        """A site of a cycle's next turn is another one, though its inputs are those of the first.

        The primary is known at the one and not at the other.
        """
        inputs = [np.zeros((1, 1)), np.zeros((2, 1))]
        sample = Sample.of(inputs, [np.zeros(1), np.zeros(2)], sites=np.array([0, 0, 1]))
        assert choose_anchors(sample).sites.tolist() == [1]

    @pytest.mark.parametrize("tasks", [1, 2, 3])
    def test_none_where_the_primary_is_known_everywhere(self, tasks):
        """Co-located tasks have no anchors, and that is no error."""
        sites = np.random.default_rng(0).uniform(size=(6, 2))
        assert choose_anchors(sample_of(*[sites] * tasks)).inputs.shape == (2, 0)

    @given(seed=st.integers(0, 2**16), most=st.integers(1, 30), dimension=st.integers(1, 3))
    @settings(max_examples=30, deadline=None)
    def test_too_many_are_thinned_to_a_spread_out_subset(self, seed, most, dimension):
        """At most so many, all of them sites, and farther apart than a random subset is likely."""
        rng = np.random.default_rng(seed)
        extra = rng.uniform(size=(30, dimension))
        sample = sample_of(rng.uniform(size=(4, dimension)) + 2.0, extra)
        found = choose_anchors(sample, most)
        assert found.inputs.shape == (dimension, most)
        assert found.inputs.flags.c_contiguous
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
        assert found.inputs.shape == (2, MOST_ANCHORS)
        assert 100 <= MOST_ANCHORS <= 1000


class TestUsable:
    def test_order_is_kept_and_repeats_and_known_sites_are_dropped(self):
        """Given points come back in their order, less those that would add nothing."""
        rng = np.random.default_rng(3)
        a, b, c, d = rng.uniform(size=(4, 2))
        sample = sample_of([a, b], [c])
        points = reference.targets(sample, np.array([d, a, c, d, b]).T)
        found = usable_anchors(points, sample)
        np.testing.assert_array_equal(found.inputs, np.array([d, c]).T)
        np.testing.assert_array_equal(found.sites, points.sites[[0, 2]])
        assert found.inputs.flags.c_contiguous

    def test_repeats_within_rounding_are_dropped(self):
        """Points nearer than 1e-9 of the extent are one anchor: two would be singular."""
        sample = sample_of([[0.0, 0.0]], [[1.0, 1.0]])
        points = np.array([[0.5, 0.5], [0.5 + 1e-11, 0.5], [0.5, 0.5 - 1e-11], [0.5, 0.6]]).T
        found = usable_anchors(reference.targets(sample, points), sample)
        np.testing.assert_array_equal(found.inputs, points[:, [0, 3]])

    def test_no_points_are_no_anchors(self):
        """An empty set of points is a set."""
        sample = sample_of(np.random.default_rng(0).uniform(size=(3, 2)))
        assert usable_anchors(Targets.nowhere(np.empty((2, 0))), sample).inputs.shape == (2, 0)


class TestUse:
    def setting(self, *, colocated=False):
        """Three tasks, and targets among them."""
        process, theta = process_of(3)
        rng = np.random.default_rng(5)
        known, unknown = rng.uniform(size=(12, 2)), rng.uniform(size=(7, 2))
        others = [known, known[:6]] if colocated else [np.vstack([known[:5], unknown]), unknown[:4]]
        targets = Targets.nowhere(rng.uniform(size=(2, 40)))
        return process, sample_of(known, *others), theta, targets, unknown

    def condition(self, anchors, **options):
        """Condition with anchors, which may be plain points (d, m); also return the targets."""
        process, sample, theta, targets, _ = self.setting(**options)
        if isinstance(anchors, np.ndarray):
            anchors = reference.targets(sample, anchors)
        method = Transductive("report", anchors)
        return reference.condition(method, process, sample, theta), targets

    def moments(self, anchors, **options):
        """Return combined moments at the targets."""
        combined, targets = self.condition(anchors, **options)
        return combined.moments(targets)

    def test_auto_is_those_sites_given_explicitly(self):
        """The same anchors, in any order and with idle ones among them, give the same result."""
        _, sample, _, _, unknown = self.setting()
        idle = sample.inputs[:, sample.task(0)]
        points = np.column_stack([unknown[::-1].T, idle, unknown[2]])
        combined, _ = self.condition(points)
        assert combined.anchors.points.inputs.shape == (2, 7)
        left, right = self.moments("auto"), self.moments(points)
        np.testing.assert_allclose(left.mean, right.mean, rtol=0, atol=1e-11)
        np.testing.assert_allclose(left.variance, right.variance, rtol=0, atol=1e-11)

    @pytest.mark.parametrize("anchors", ["auto", "known", "empty"])
    def test_without_anchors_it_is_point_by_point(self, anchors):
        """Where no anchor is left, each cell is combined from scalars."""
        _, sample, _, targets, _ = self.setting(colocated=True)
        points = {"auto": "auto", "empty": np.empty((2, 0))}
        given = points.get(anchors, sample.inputs[:, sample.task(0)])
        combined, _ = self.condition(given, colocated=True)
        assert combined.anchors is None
        expected = self.moments(None, colocated=True)
        np.testing.assert_array_equal(combined.moments(targets).mean, expected.mean)

    def test_anchors_matter(self):
        """With and without anchors the predictions differ, and neither is broken."""
        with_anchors, without = self.moments("auto"), self.moments(None)
        assert np.abs(with_anchors.mean - without.mean).max() > 1e-3
        for moments in (with_anchors, without):
            assert ((moments.variance > 0.0) & (moments.variance < 1.0)).all()

    def test_a_cell_does_not_depend_on_its_neighbours(self):
        """One target alone has the moments that it has among forty, to 1e-12."""
        _, sample, _, targets, unknown = self.setting()
        points = np.column_stack([targets.inputs, unknown.T, sample.inputs[:, :5]])
        cells = reference.targets(sample, points)
        combined, _ = self.condition("auto")
        together = combined.moments(cells)
        for k in range(cells.size):
            alone = combined.moments(cells.take(slice(k, k + 1)))
            assert alone.mean[0] == pytest.approx(together.mean[k], rel=0, abs=1e-12)
            assert alone.variance[0] == pytest.approx(together.variance[k], rel=0, abs=1e-12)

    def test_other_scores_keep_the_anchors(self):
        """Means of other scores are those of the model that is conditioned on them, to 1e-10."""
        combined, targets = self.condition("auto")
        scores = np.random.default_rng(1).normal(size=(3, combined.sample.size))
        _, _, theta, _, _ = self.setting()
        process, _ = process_of(3)
        for row, mean in zip(scores, combined.means(targets, scores), strict=True):
            sample = Sample.of(*reference.parts(combined.sample))
            sample.values[:] = row
            other = reference.condition(Transductive("report", "auto"), process, sample, theta)
            np.testing.assert_allclose(mean, other.moments(targets).mean, rtol=0, atol=1e-10)

    def test_batches_of_any_size_give_the_same(self, monkeypatch):
        """A small byte budget cuts the cells into batches, and changes nothing beyond 1e-12."""
        whole = self.moments("auto")
        monkeypatch.setattr(batches, "_BATCH_BYTES", 2048)
        cut = self.moments("auto")
        np.testing.assert_allclose(cut.mean, whole.mean, rtol=0, atol=1e-12)
        np.testing.assert_allclose(cut.variance, whole.variance, rtol=0, atol=1e-12)


def laws_given_anchors(rng, models, anchors, scale):
    """Draw coherent laws N(a_k + B_k f_A, s_k) of one cell, and precisions and means of f_A.

    The first has s of the given scale. Each other has seen h'f_A + f* too, with some noise v.
    """
    root = rng.normal(size=(anchors, anchors))
    at_anchors, means = [root @ root.T + np.eye(anchors)], [rng.normal(size=anchors)]
    gains, variances = [rng.normal(size=anchors)], [scale * rng.uniform(1.0, 2.0)]
    intercepts = [rng.normal()]
    for _ in range(models - 1):
        (p, m, g, s, a), v = (
            (x[0] for x in (at_anchors, means, gains, variances, intercepts)),
            rng.uniform(0.5, 2.0),
        )
        h, seen = rng.normal(size=anchors), rng.normal()
        both = h + g
        at_anchors.append(p + np.outer(both, both) / (s + v))
        means.append(np.linalg.solve(at_anchors[-1], p @ m + both * (seen - a) / (s + v)))
        share = s / (s + v)
        gains.append(g - share * both)
        intercepts.append(a + share * (seen - a))
        variances.append(s * v / (s + v))
    return at_anchors, np.stack(gains), np.array(variances), np.array(intercepts), np.stack(means)


def join(precision, gain, variance):
    """Return the precision of (f_A, f*) from that of f_A and the law of f* given f_A."""
    row = np.concatenate([-gain, [1.0]])
    joint = np.outer(row, row) / variance
    joint[:-1, :-1] += precision
    return joint


def run(coefficients, laws):
    """Combine one cell as the package does."""
    at_anchors, gains, variances, intercepts, means = laws
    base = sum(c * p for c, p in zip(coefficients, at_anchors, strict=True))
    pull = sum(c * p @ m for c, p, m in zip(coefficients, at_anchors, means, strict=True))
    lower = np.linalg.cholesky(base)
    mean, variance = np.empty(1), np.empty(1)
    combine_conditionals(
        np.linalg.solve(lower, gains.T).T[None].copy(),
        intercepts[None].copy(),
        variances[None].copy(),
        coefficients,
        np.linalg.solve(lower, pull),
        mean,
        variance,
    )
    return mean[0], variance[0]


def solved(matrix, right):
    """Solve a linear system in exact arithmetic, by elimination over fractions."""
    rows = [
        [Fraction(float(v)) if not isinstance(v, Fraction) else v for v in (*row, b)]
        for row, b in zip(matrix, right, strict=True)
    ]
    size = len(rows)
    for k in range(size):
        pivot = next(i for i in range(k, size) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [v / rows[k][k] for v in rows[k]]
        for i in range(size):
            if i != k:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]


def exactly(coefficients, laws):
    """Combine one cell by joint precisions, with fractions: no rounding, however small s is."""
    at_anchors, gains, variances, intercepts, means = laws
    size = gains.shape[1] + 1
    total = [[Fraction(0)] * size for _ in range(size)]
    pull = [Fraction(0)] * size
    for k, c in enumerate(map(float, coefficients)):
        row = [*(-Fraction(float(g)) for g in gains[k]), Fraction(1)]
        scale = Fraction(c) / Fraction(float(variances[k]))
        for i in range(size):
            pull[i] += scale * row[i] * Fraction(float(intercepts[k]))
            for j in range(size):
                total[i][j] += scale * row[i] * row[j]
        for i in range(size - 1):
            for j in range(size - 1):
                entry = Fraction(c) * Fraction(float(at_anchors[k][i, j]))
                total[i][j] += entry
                pull[i] += entry * Fraction(float(means[k, j]))
    unit = [Fraction(int(i == size - 1)) for i in range(size)]
    return float(solved(total, pull)[-1]), float(solved(total, unit)[-1])


class TestCombineConditionals:
    @given(
        seed=st.integers(0, 2**16),
        models=st.integers(2, 6),
        anchors=st.integers(1, 7),
        beta=st.floats(0.0, 1.0),
    )
    @settings(max_examples=40, deadline=None)
    def test_equals_the_weighted_sum_of_joint_precisions(self, seed, models, anchors, beta):
        """Mean and variance equal those of dense precisions of anchors and cell, to 1e-9."""
        rng = np.random.default_rng(seed)
        laws = laws_given_anchors(rng, models, anchors, 1.0)
        at_anchors, gains, variances, intercepts, means = laws
        betas = np.clip(beta * rng.uniform(0.5, 1.5, models - 1), 0.0, 1.0)
        coefficients = np.array([1.0 - betas.sum(), *betas])
        precision, pull = 0.0, 0.0
        for k, c in enumerate(coefficients):
            joint = join(at_anchors[k], gains[k], variances[k])
            centre = np.append(means[k], intercepts[k] + gains[k] @ means[k])
            precision, pull = precision + c * joint, pull + c * joint @ centre
        covariance = np.linalg.inv(precision)
        mean, variance = run(coefficients, laws)
        size = max(1.0, abs(covariance @ pull)[-1])
        assert mean == pytest.approx((covariance @ pull)[-1], rel=0, abs=1e-9 * size)
        assert variance == pytest.approx(covariance[-1, -1], rel=1e-9)

    @pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-6, 1e-10])
    @pytest.mark.parametrize("models", [2, 3, 5])
    def test_a_tiny_conditional_variance_costs_no_digits(self, models, scale):
        """Against exact arithmetic the error is below 1e-9, however well anchors tell the cell."""
        rng = np.random.default_rng(models)
        laws = laws_given_anchors(rng, models, 3, scale)
        coefficients = np.array([2.0 - models, *np.ones(models - 1)])
        expected = exactly(coefficients, laws)
        mean, variance = run(coefficients, laws)
        assert mean == pytest.approx(expected[0], rel=1e-9, abs=1e-9)
        assert variance == pytest.approx(expected[1], rel=1e-9, abs=1e-9)

    @pytest.mark.parametrize("scale", [1e-10, 1e-14])
    def test_a_cell_at_an_anchor_has_the_anchor_s_law(self, scale):
        """With equal gains and all s tiny the cell is the anchor under the combined law."""
        rng = np.random.default_rng(0)
        at_anchors, _, _, _, means = laws_given_anchors(rng, 4, 5, 1.0)
        gains = np.zeros((4, 5))
        gains[:, 2] = 1.0
        coefficients = np.array([-2.0, 1.0, 1.0, 1.0])
        base = sum(c * p for c, p in zip(coefficients, at_anchors, strict=True))
        pull = sum(c * p @ m for c, p, m in zip(coefficients, at_anchors, means, strict=True))
        covariance = np.linalg.inv(base)
        laws = at_anchors, gains, np.full(4, scale), np.zeros(4), means
        mean, variance = run(coefficients, laws)
        assert mean == pytest.approx((covariance @ pull)[2], rel=0, abs=1e-9)
        assert variance == pytest.approx(covariance[2, 2] + scale, rel=0, abs=1e-9)
