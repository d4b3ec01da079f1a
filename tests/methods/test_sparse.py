"""Sparse methods: limits, gradients, dense matrices of their definition, and what they cost."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import reference

from xcopula.methods import Full, Sparse
from xcopula.methods.lowrank import LowRank
from xcopula.methods.sparse import Inducing
from xcopula.process import Sample, Targets
from xcopula.solvers import Exact, batches

KINDS = ("dtc", "fitc", "pitc")
EXAMPLES = ("single", "mixed", "groups", "lmc")


def at_sites(kind, sample):
    """Put an inducing point at every observation."""
    inputs, _ = reference.parts(sample)
    return Sparse(kind, tuple(np.ascontiguousarray(x.T) for x in inputs))


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("kind", KINDS)
class TestLimits:
    def test_inducing_points_at_all_data_are_exact(self, kind, name):
        """With an inducing point at every observation nothing is approximated (jitter: 1e-5)."""
        process, sample, theta, rng = reference.example(name)
        method = at_sites(kind, sample)
        value, _ = reference.objective(method, process, sample, theta)
        expected, _ = reference.objective(Full(), process, sample, theta)
        assert value == pytest.approx(expected, abs=1e-4)
        ours = reference.condition(method, process, sample, theta)
        full = reference.condition(Full(), process, sample, theta)
        targets = reference.some_targets(sample, rng)
        for task in range(sample.tasks):
            for nugget in (True, False):
                a = ours.moments(targets, task=task, nugget=nugget)
                b = full.moments(targets, task=task, nugget=nugget)
                np.testing.assert_allclose(a.mean, b.mean, atol=1e-5)
                np.testing.assert_allclose(a.variance, b.variance, atol=1e-5)
        np.testing.assert_allclose(ours.leave_one_out(), full.leave_one_out(), atol=1e-5)

    def test_gradient(self, kind, name):
        """The gradient is that of the approximate likelihood, to 1e-6 of its largest entry."""
        process, sample, theta, _ = reference.example(name)
        method = Sparse(kind, 12)
        structure = reference.prepare(method, process, sample, theta)
        _, gradient = method.objective(process, sample, structure, theta)
        numeric = np.array(
            [
                (
                    method.objective(process, sample, structure, theta + step)[0]
                    - method.objective(process, sample, structure, theta - step)[0]
                )
                / 2e-5
                for step in 1e-5 * np.eye(theta.size)
            ]
        )
        np.testing.assert_allclose(gradient, numeric, atol=1e-6 * np.abs(gradient).max())


@pytest.mark.parametrize("kind", KINDS)
class TestAgainstDense:
    def setting(self, kind, name="shared"):
        """Condition three tasks with few inducing points; PITC with several blocks."""
        sizes = (24, 20, 18) if name == "shared" else (10, 8, 7)
        process, sample, theta, rng = reference.example(name, sizes)
        method = Sparse(kind, 15)
        structure = reference.prepare(method, process, sample, theta)
        if kind == "pitc":
            half = np.flatnonzero(sample.inputs[0] < 0.5)
            other = np.setdiff1d(np.arange(sample.size), half)
            structure = Inducing(structure.points, (half[None], other[None]))
        ours = method.condition(process, sample, structure, theta)
        return process, sample, theta, rng, method, structure, ours

    @pytest.mark.parametrize("name", ["mixed", "shared"])
    def test_likelihood_and_leave_one_out(self, kind, name):
        """They are those of the dense approximate covariance, with the package's Q, to 1e-8."""
        process, sample, theta, _, method, structure, ours = self.setting(kind, name)
        white = ours.pieces.white
        dense = white.T @ white
        inputs, _ = reference.parts(sample)
        full = reference.covariance_matrix(process.covariance, process.split(theta)[0], inputs)
        same = sample.sites[:, None] == sample.sites[None]
        task = np.repeat(np.arange(3), sample.sizes)
        nugget = ours.pieces.state.nugget[task[:, None], task[None]] * same
        keep = {
            "dtc": np.zeros_like(dense),
            "fitc": np.eye(sample.size),
            "pitc": np.zeros_like(dense),
        }[kind]
        if kind == "pitc":
            for (index,) in structure.blocks:
                keep[np.ix_(index, index)] = 1.0
        approximate = dense + nugget + keep * (full - nugget - dense)
        w = process.scores(theta, sample)
        expected = 0.5 * w @ (np.linalg.solve(approximate, w) - w)
        expected += 0.5 * np.linalg.slogdet(approximate)[1]
        expected -= process.marginals[0].log_density(sample.values).sum()
        value, _ = method.objective(process, sample, structure, theta)
        assert value == pytest.approx(expected, abs=1e-8)
        np.testing.assert_allclose(ours.alpha, np.linalg.solve(approximate, w), atol=1e-8)
        precision = np.diagonal(np.linalg.inv(approximate))
        left = np.diagonal(full - nugget - dense) if kind == "dtc" else 0.0
        loo = ours.leave_one_out()
        np.testing.assert_allclose(loo.variance, 1.0 / precision + left, atol=1e-8)
        np.testing.assert_allclose(loo.mean, w - ours.alpha / precision, atol=1e-8)

    @pytest.mark.parametrize("task", [0, 1, 2])
    @pytest.mark.parametrize("nugget", [True, False])
    def test_moments_of_any_task(self, kind, task, nugget):
        """They condition on the dense matrix of the definition, to 1e-6.

        A cell's covariance with the data is Q, and the nugget that observations at its site share;
        its own variance is the whole.
        """
        process, sample, theta, rng, _, structure, ours = self.setting(kind)
        cells = reference.some_targets(sample, rng)
        matrix, cross, _ = reference.low_rank(
            kind, process, theta, sample, structure.points, structure.blocks, cells, task
        )
        own = reference.task_matrices(process.covariance, theta)[-1][task]
        prior = 1.0 if nugget else 1.0 - own[task]
        if nugget:
            tasks = np.repeat(np.arange(3), sample.sizes)
            cross = cross + own[tasks] * (cells.sites[:, None] == sample.sites)
        w = process.scores(theta, sample)
        solved = np.linalg.solve(matrix, cross.T)
        mean, variance = w @ solved, prior - np.einsum("ij,ji->i", cross, solved)
        if nugget:  # the datum itself, where there is one
            datum = sample.observed(task, cells.sites)
            assert (datum >= 0).any()
            mean = np.where(datum >= 0, w[datum], mean)
            variance = np.where(datum >= 0, 0.0, variance)
        found = ours.moments(cells, task=task, nugget=nugget)
        np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-6)
        np.testing.assert_allclose(found.variance, variance, rtol=0, atol=1e-6)

    def test_means_of_other_scores(self, kind):
        """Any scores in place of the data's have the mean of the dense matrix, to 1e-6."""
        process, sample, theta, rng, _, structure, ours = self.setting(kind)
        cells = Targets.nowhere(rng.uniform(size=(2, 5)))
        matrix, cross, _ = reference.low_rank(
            kind, process, theta, sample, structure.points, structure.blocks, cells, 1
        )
        scores = rng.normal(size=(3, sample.size))
        expected = scores @ np.linalg.solve(matrix, cross.T)
        found = ours.means(cells, scores, task=1)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


class TestLeaveOneOut:
    @pytest.mark.parametrize("noise", ["independent", "correlated"])
    @pytest.mark.parametrize("kind", ["dtc", "fitc"])
    def test_is_prediction_without_the_observation(self, kind, noise):
        """Every score of every task, by a model with the same points and one value less."""
        process, sample, theta, _ = reference.example("shared", (14, 12, 11), noise=noise)
        method = Sparse(kind, 10)
        structure = reference.prepare(method, process, sample, theta)
        held = Sparse(kind, structure.points)
        loo = method.condition(process, sample, structure, theta).leave_one_out()
        for i in range(sample.size):
            task = int(np.searchsorted(sample.offsets, i, side="right")) - 1
            rest = reference.without(sample, i)
            again = reference.condition(held, process, rest, theta)
            found = again.moments(sample.targets(np.array([i])), task=task)
            assert found.mean[0] == pytest.approx(loo.mean[i], abs=1e-9)
            assert found.variance[0] == pytest.approx(loo.variance[i], abs=1e-9)

    def test_of_pitc_knows_its_block(self):
        """The approximate law of PITC has whole blocks: a value left out is told by its own.

        A new cell is in no block. So this is conditioning in the dense matrix, to 1e-6.
        """
        process, sample, theta, rng = reference.example("shared", (14, 12, 11))
        method = Sparse("pitc", 10)
        structure = reference.prepare(method, process, sample, theta)
        ours = method.condition(process, sample, structure, theta)
        cells = Targets.nowhere(rng.uniform(size=(2, 1)))
        matrix, *_ = reference.low_rank(
            "pitc", process, theta, sample, structure.points, structure.blocks, cells
        )
        w = process.scores(theta, sample)
        loo = ours.leave_one_out()
        for i in range(sample.size):
            keep = np.delete(np.arange(sample.size), i)
            weights = np.linalg.solve(matrix[np.ix_(keep, keep)], matrix[keep, i])
            assert loo.mean[i] == pytest.approx(weights @ w[keep], abs=1e-6)
            expected = matrix[i, i] - weights @ matrix[keep, i]
            assert loo.variance[i] == pytest.approx(expected, abs=1e-6)


class TestWork:
    """Prediction walks over inducing points, not over observations."""

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("nugget", [True, False])
    def test_no_cell_meets_all_observations(self, kind, nugget, monkeypatch):
        """At cells that are no sites nothing of size (cells, observations) is made or solved."""
        process, sample, theta, rng = reference.example("lmc", (1500, 1400), noise="correlated")
        ours = reference.condition(Sparse(kind, 10), process, sample, theta)
        cells = Targets.nowhere(rng.uniform(size=(2, 4000)))
        ours.moments(cells.take(slice(0, 2)), nugget=nugget)  # compiled before memory is measured
        monkeypatch.setattr(LowRank, "solve", lambda *_: pytest.fail("solved for a cell"))
        shapes = []
        original = LowRank.whiten
        monkeypatch.setattr(
            LowRank, "whiten", lambda *a: shapes.append(original(*a).shape) or original(*a)
        )
        tracemalloc.start()
        ours.moments(cells, nugget=nugget)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        points = len(ours.pieces.root)
        assert shapes == [(4000, points)]
        # an array of all pairs takes 93 MB, or 64 in a batch
        assert peak < 16 * 8 * 4000 * (points + 4)

    @pytest.mark.parametrize("kind", KINDS)
    def test_only_sites_of_other_tasks_are_solved_for(self, kind, monkeypatch):
        """Where a correlated nugget is shared, a row of the data is solved for each such cell."""
        process, sample, theta, rng = reference.example("shared")
        ours = reference.condition(Sparse(kind, 10), process, sample, theta)
        cells = reference.some_targets(sample, rng)
        own, others = sample.observed(0, cells.sites) >= 0, cells.sites >= 0
        rows = []
        original = LowRank.solve
        monkeypatch.setattr(
            LowRank, "solve", lambda self, r: rows.append(len(r)) or original(self, r)
        )
        ours.moments(cells)
        assert rows == [int((others & ~own).sum())]
        rows.clear()
        ours.moments(cells, nugget=False)
        assert rows == []

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("width", [1, 3])
    def test_batches_do_not_show(self, kind, width, monkeypatch):
        """Predictions in batches of a few cells equal those in one batch, to 1e-12."""
        process, sample, theta, rng = reference.example("shared")
        ours = reference.condition(Sparse(kind, 10), process, sample, theta)
        cells = reference.some_targets(sample, rng, 20)
        whole = ours.moments(cells)
        monkeypatch.setattr(batches, "_BATCH_BYTES", 8 * sample.size * width)
        np.testing.assert_allclose(ours.moments(cells), whole, rtol=0, atol=1e-12)

    def test_cost(self):
        """Memory grows with observations times points, operations with points squared."""
        small, large = (Sparse("fitc", 100).cost(Exact(), [n, n]) for n in (5_000, 50_000))
        assert large.flops == pytest.approx(10 * small.flops)
        more = Sparse("fitc", 200).cost(Exact(), [5_000, 5_000])
        assert more.flops == pytest.approx(4 * small.flops)
        assert small.bytes < more.bytes < 2.1 * small.bytes

    def test_cost_of_given_points(self):
        """Points of each variable, or arrays of them, are counted."""
        solver, sizes = Exact(), [500, 400]
        expected = Sparse("fitc", 30).cost(solver, sizes)
        assert Sparse("fitc", {"a": 10, "b": 20}).cost(solver, sizes) == expected
        given = (np.zeros((2, 10)), np.zeros((2, 20)))
        assert Sparse("fitc", given).cost(solver, sizes) == expected


class TestInducing:
    def test_more_than_data_are_reduced(self):
        """A count beyond the data is cut to one at each observation, with a warning."""
        process, sample, theta, _ = reference.example("shared")
        with pytest.warns(
            UserWarning, match=f"inducing=500 asks for more points than the {sample.size} obs"
        ):
            structure = reference.prepare(Sparse("fitc", 500), process, sample, theta)
        assert sum(p.shape[1] for p in structure.points) == sample.size

    def test_are_shared_by_the_number_of_observations(self):
        """Each task has its part of the points, at least one, among its own sites."""
        process, sample, theta, _ = reference.example("shared", (60, 30, 10))
        points = reference.prepare(Sparse("fitc", 20), process, sample, theta).points
        assert [p.shape[1] for p in points] == [12, 6, 2]
        few = reference.prepare(Sparse("fitc", 2), process, sample, theta).points
        assert [p.shape[1] for p in few] == [1, 1, 1]
        for i, own in enumerate(points):
            inputs = sample.inputs[:, sample.task(i)]
            assert (own >= inputs.min(axis=1, keepdims=True)).all()
            assert (own <= inputs.max(axis=1, keepdims=True)).all()

    def test_are_the_same_each_time(self):
        """The likelihood is one function of theta: nothing is drawn."""
        process, sample, theta, _ = reference.example("shared")
        first, second = (
            reference.prepare(Sparse("pitc", 12), process, sample, theta) for _ in range(2)
        )
        for a, b in zip(first.points + first.blocks, second.points + second.blocks, strict=True):
            np.testing.assert_array_equal(a, b)

    def test_blocks_of_pitc_have_about_a_hundred_observations(self):
        """One block in a small sample, several in a large one; a site is never divided."""
        process, sample, theta, _ = reference.example("shared", (300, 250, 200))
        blocks = reference.prepare(Sparse("pitc", 12), process, sample, theta).blocks
        assert 5 <= len(blocks) <= 8
        sites = [set(sample.sites[index].tolist()) for (index,) in blocks]
        assert sum(map(len, sites)) == len(set().union(*sites))

    def test_numbers_and_points_may_be_mixed(self):
        """A task with points of its own and another with a number."""
        process, sample, theta, _ = reference.example("lmc")
        own = np.array([[0.2, 0.8], [0.4, 0.6]])
        points = reference.prepare(Sparse("fitc", (own, 3)), process, sample, theta).points
        assert points[0] is own
        assert points[1].shape == (2, 3)

    def test_names_must_be_those_of_the_variables(self):
        """The message names both."""
        with pytest.raises(
            KeyError, match=r"`inducing` names \['a'\], but the variables are \['a', "
        ):
            Sparse("dtc", {"a": 7}).for_variables(["a", "b"])

    def test_numbers_by_name(self):
        """In the order of the variables; one number for all stays."""
        assert Sparse("dtc", {"b": 3, "a": 7}).for_variables(["a", "b"]).inducing == (7, 3)
        number = Sparse("dtc", 7)
        assert number.for_variables(["a", "b"]) is number


class TestOptions:
    """Bad options are refused when the method is made."""

    @pytest.mark.parametrize("kind", ["x", "FITC", None, 3])
    def test_kind(self, kind):
        """The message names the kinds."""
        with pytest.raises(ValueError, match=r"Unknown sparse method .* \('dtc', 'fitc', 'pitc'\)"):
            Sparse(kind)

    @pytest.mark.parametrize("inducing", [0, -3, {"a": 0}])
    def test_too_few(self, inducing):
        """There is at least one point."""
        with pytest.raises(ValueError, match="`inducing` must be at least 1, found"):
            Sparse(inducing=inducing)

    @pytest.mark.parametrize(
        "inducing", [True, np.True_, 2.0, "20", None, [3], {"a": 2.5}, {"a": True}]
    )
    def test_no_number(self, inducing):
        """A whole number, or a mapping of them."""
        with pytest.raises(TypeError, match="`inducing` must be an integer, found"):
            Sparse(inducing=inducing)

    def test_numbers_of_any_integer_type(self):
        """Numbers of numpy are numbers, and are kept as Python's."""
        method = Sparse(inducing=np.int64(20))
        assert method == Sparse(inducing=20)
        assert type(method.inducing) is int
        assert Sparse(inducing={"a": np.int32(3)}).inducing == {"a": 3}

    def test_name_and_description(self):
        """The kind is the name; the description counts the points that there are."""
        assert [Sparse(kind).name for kind in KINDS] == list(KINDS)
        process, sample, theta, _ = reference.example("lmc")
        ours = reference.condition(Sparse("dtc", (3, 4)), process, sample, theta)
        assert ours.describe() == ["DTC with 7 inducing points"]


def test_a_task_without_observations():
    """It has no inducing points, and is predicted from the others."""
    process, sample, theta, rng = reference.example("lmc", noise="correlated")
    alone = sample.take(np.arange(sample.sizes[0]))
    cells = reference.targets(
        alone, np.column_stack([rng.uniform(size=(2, 3)), alone.inputs[:, :2]])
    )
    ours = reference.condition(at_sites("fitc", alone), process, alone, theta)
    expected = reference.condition(Full(), process, alone, theta).moments(cells, task=1)
    np.testing.assert_allclose(ours.moments(cells, task=1), expected, rtol=0, atol=1e-5)
    counted = reference.prepare(Sparse("fitc", 5), process, alone, theta)
    assert [p.shape for p in counted.points] == [(2, 5), (2, 0)]


def test_turns_of_a_cycle():
    """Inputs that coincide at two sites share the signal and not the nugget."""
    process, sample, theta, _ = reference.example("lmc", (12, 10), noise="correlated")
    inputs, values = reference.parts(sample)
    inputs = [x.copy() for x in inputs]
    inputs[0][1] = inputs[0][0]
    turned = Sample.of(inputs, values, sites=sample.sites)
    cells = Targets(np.repeat(turned.inputs[:, :1], 3, axis=1), np.array([*sample.sites[:2], 99]))
    ours = reference.condition(at_sites("fitc", turned), process, turned, theta).moments(cells)
    full = reference.condition(Full(), process, turned, theta).moments(cells)
    np.testing.assert_allclose(ours, full, rtol=0, atol=1e-5)
    np.testing.assert_allclose(ours.mean[:2], process.scores(theta, turned)[:2], atol=1e-12)
    assert ours.variance[2] > reference.task_matrices(process.covariance, theta)[-1][0, 0]
