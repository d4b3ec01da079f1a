"""The committee: votes by dense algebra, one block, left-out values, and honest intervals."""

from __future__ import annotations

import numpy as np
import pytest
import reference

from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import Normal
from xcopula.methods import Committee, Full
from xcopula.methods.nugget import unexplained
from xcopula.process import Process, Targets
from xcopula.solvers import Exact


def vote(votes, prior, rest):
    """Combine means and variances (b, m): precisions of what can be known, less the prior's."""
    means, variances = (np.stack(part) for part in zip(*votes, strict=True))
    weights = 1.0 / (variances - rest)
    precision = weights.sum(axis=0) - (len(votes) - 1) / (prior - rest)
    return (weights * means).sum(axis=0) / precision, 1.0 / precision + rest


class TestOneBlock:
    @pytest.mark.parametrize("name", ["single", "mixed", "groups", "lmc"])
    def test_is_exact(self, name):
        """A committee of one is the full model, in all that it says of any task, to 1e-9."""
        process, sample, theta, rng = reference.example(name)
        value, gradient = reference.objective(Committee(1), process, sample, theta)
        full_value, full_gradient = reference.objective(Full(), process, sample, theta)
        assert value == pytest.approx(full_value, abs=1e-10)
        np.testing.assert_allclose(gradient, full_gradient, atol=1e-10)
        targets = reference.some_targets(sample, rng)
        ours = reference.condition(Committee(1), process, sample, theta)
        full = reference.condition(Full(), process, sample, theta)
        for task in range(sample.tasks):
            for nugget in (True, False):
                np.testing.assert_allclose(
                    ours.moments(targets, task=task, nugget=nugget),
                    full.moments(targets, task=task, nugget=nugget),
                    atol=1e-9,
                )
        np.testing.assert_allclose(ours.leave_one_out(), full.leave_one_out(), atol=1e-9)


class TestObjective:
    def test_is_the_sum_of_the_blocks(self):
        """Value and gradient are those of independent blocks, from scipy's density to 1e-7."""
        process, sample, theta, _ = reference.example("shared", (20, 18, 15))
        method = Committee(3)
        structure = reference.prepare(method, process, sample, theta)
        value, gradient = method.objective(process, sample, structure, theta)
        expected = 0.0
        for index in structure.index:
            part = sample.take(index)
            inputs, values = reference.parts(part)
            matrix = reference.covariance_matrix(process.covariance, theta, inputs)
            expected += reference.log_likelihood(matrix, process.marginals, values)
        assert -value == pytest.approx(expected, abs=1e-7)
        numeric = reference.differences(
            lambda x: method.objective(process, sample, structure, x)[0], theta, step=5e-4
        )
        np.testing.assert_allclose(gradient, numeric, rtol=0, atol=1e-6 * np.abs(numeric).max())

    @pytest.mark.parametrize("blocks", [1, 2])
    def test_members_keep_their_rows(self, blocks):
        """Laws that vary are bound, in each block, to the rows of its own observations."""
        process, sample, theta = reference.varying(2)
        method = Committee(blocks)
        structure = reference.prepare(method, process, sample, theta)
        value, _ = method.objective(process, sample, structure, theta)
        parts = [sample.take(index) for index in structure.index]
        each = [reference.objective(Exact(), process, part, theta)[0] for part in parts]
        assert value == pytest.approx(sum(each))
        w = process.scores(theta, sample)
        for index, part in zip(structure.index, parts, strict=True):
            np.testing.assert_allclose(process.scores(theta, part), w[index])


class TestVotes:
    def setting(self, blocks=3, noise=None, name="shared"):
        """Condition a committee, and give cells of all kinds."""
        process, sample, theta, rng = reference.example(name, (36, 32, 30), noise=noise)
        method = Committee(blocks)
        structure = reference.prepare(method, process, sample, theta)
        ours = method.condition(process, sample, structure, theta)
        return process, sample, theta, ours, reference.some_targets(sample, rng)

    @pytest.mark.parametrize("noise", ["independent", "correlated"])
    @pytest.mark.parametrize("task", [0, 1, 2])
    def test_any_task_against_dense_algebra(self, task, noise):
        """Each block is conditioned by dense matrices, and votes on all but the rest, to 1e-7.

        At a site of the task the datum stands; at sites of other tasks the rest is what their
        nuggets leave.
        """
        process, sample, theta, ours, cells = self.setting(noise=noise)
        nugget = reference.task_matrices(process.covariance, theta)[-1]
        blocks = [sample.take(index) for index in ours.index]
        votes = [reference.moments(process, theta, b, cells, task, nugget=False) for b in blocks]
        signal = ours.moments(cells, task=task, nugget=False)
        expected = vote(votes, 1.0 - nugget[task, task], 0.0)
        np.testing.assert_allclose(signal, expected, rtol=0, atol=1e-7)

        rest = unexplained(nugget, sample, cells.sites, task)
        datum = sample.observed(task, cells.sites)
        open_ = datum < 0
        assert open_.any()
        assert not open_.all()
        votes = [
            reference.moments(process, theta, b, cells.take(open_), task, nugget=True)
            for b in blocks
        ]
        observation = ours.moments(cells, task=task)
        expected = vote(votes, 1.0, rest[open_])
        np.testing.assert_allclose(np.array(observation)[:, open_], expected, rtol=0, atol=1e-7)
        w = process.scores(theta, sample)
        np.testing.assert_array_equal(observation.mean[~open_], w[datum[~open_]])
        np.testing.assert_array_equal(observation.variance[~open_], 0.0)

    def test_are_on_the_signal(self):
        """Away from data an observation is the signal and its nugget: same mean, variances add."""
        process, _, theta, ours, cells = self.setting()
        away = cells.take(cells.sites < 0)
        nugget = reference.task_matrices(process.covariance, theta)[-1]
        for task in range(3):
            signal = ours.moments(away, task=task, nugget=False)
            found = ours.moments(away, task=task)
            np.testing.assert_allclose(found.mean, signal.mean, rtol=1e-9, atol=1e-12)
            expected = signal.variance + nugget[task, task]
            np.testing.assert_allclose(found.variance, expected, rtol=1e-12)

    @pytest.mark.parametrize("blocks", [2, 5, 8])
    @pytest.mark.parametrize("length", [0.05, 0.5, 10.0])
    def test_never_promise_more_than_the_nugget_allows(self, blocks, length):
        """However many vote, and however sure they are, the nugget stays."""
        process, sample, theta, rng = reference.example("shared", (60, 55, 50))
        theta = theta.copy()
        process.covariance.part(theta, "length")[:] = np.log(length)
        process.covariance.part(theta, "logit")[:] = 0.0
        ours = reference.condition(Committee(blocks), process, sample, theta)
        away = Targets.nowhere(rng.uniform(size=(2, 200)))
        nugget = reference.task_matrices(process.covariance, theta)[-1]
        for task in range(3):
            assert (ours.moments(away, task=task).variance > nugget[task, task]).all()

    def test_far_from_data_the_prior_returns(self):
        """Members that know nothing have no vote: mean zero and variance one."""
        _, _, _, ours, _ = self.setting(4)
        far = Targets.nowhere(np.full((2, 1), 1e3))
        np.testing.assert_allclose(ours.moments(far), [[0.0], [1.0]], atol=1e-12)

    def test_order_of_blocks_is_immaterial(self):
        """Members permuted say the same, to 1e-12."""
        from dataclasses import replace

        _, _, _, ours, cells = self.setting(4)
        other = replace(ours, members=ours.members[::-1], index=ours.index[::-1])
        np.testing.assert_allclose(other.moments(cells), ours.moments(cells), atol=1e-12)
        np.testing.assert_allclose(other.leave_one_out(), ours.leave_one_out(), atol=1e-12)


class TestLeaveOneOut:
    @pytest.mark.parametrize("noise", ["independent", "correlated"])
    def test_is_a_vote_without_the_observation(self, noise):
        """Every score of every task: its block is conditioned again without it, to 1e-9."""
        process, sample, theta, _ = reference.example("shared", (20, 18, 15), noise=noise)
        ours = reference.condition(Committee(3), process, sample, theta)
        nugget = reference.task_matrices(process.covariance, theta)[-1]
        loo = ours.leave_one_out()
        others = [reference.condition(Exact(), process, sample.take(k), theta) for k in ours.index]
        for k, index in enumerate(ours.index):
            for i in index:
                task = int(np.searchsorted(sample.offsets, i, side="right")) - 1
                site = sample.targets(np.array([i]))
                left = sample.take(index[index != i])
                votes = [m.moments(site, task=task) for j, m in enumerate(others) if j != k]
                again = reference.condition(Exact(), process, left, theta)
                votes.append(again.moments(site, task=task))
                rest = unexplained(nugget, reference.without(sample, i), site.sites, task)
                mean, variance = vote(votes, 1.0, rest)
                assert loo.mean[i] == pytest.approx(mean[0], abs=1e-9)
                assert loo.variance[i] == pytest.approx(variance[0], abs=1e-9)

    @pytest.mark.parametrize("noise", ["independent", "correlated"])
    def test_never_promises_more_than_the_nugget_allows(self, noise):
        """A value left out has at least the part of its nugget that co-located tasks leave."""
        process, sample, theta, _ = reference.example("shared", (60, 55, 50), noise=noise)
        theta = theta.copy()
        process.covariance.part(theta, "logit")[:] = -0.5
        loo = reference.condition(Committee(5), process, sample, theta).leave_one_out()
        nugget = reference.task_matrices(process.covariance, theta)[-1]
        for task in range(3):
            own = sample.task(task)
            rest = unexplained(nugget, sample, sample.sites[own], task)
            assert (loo.variance[own] > rest).all()


class TestCoverage:
    """Half of the variance is nugget, five blocks, true parameters.

    Votes on the nugget too would cover 86, 76 and 65 % at these lengths.
    """

    KNOWN, HIDDEN, SETS = 150, 250, 40

    def process(self, length):
        covariance = Covariance((KERNELS["matern32"],), (InputGroup(2),))
        process = Process(covariance, (Normal(0.0, 1.0),))
        return process, process.join(np.array([np.log(length), 0.0]))  # logit 0: a half

    def errors(self, length):
        """Return standardised errors of held-out and of left-out observations, set by set."""
        process, theta = self.process(length)
        hidden, left = [], []
        for seed in range(self.SETS):
            size = self.KNOWN + self.HIDDEN
            sites = np.random.default_rng(seed).uniform(size=(size, 2))
            whole = reference.simulate(process, theta, [sites], 7000 + seed)
            sample = whole.take(np.arange(self.KNOWN))
            ours = reference.condition(Committee(5), process, sample, theta)
            for errors, moments, truth in [
                (hidden, ours.moments(whole.targets(slice(self.KNOWN, size))),
                 whole.values[self.KNOWN :]),
                (left, ours.leave_one_out(), sample.values),
            ]:  # fmt: skip
                errors.append((truth - moments.mean) / np.sqrt(moments.variance))
        return np.array(hidden), np.array(left)

    @pytest.mark.parametrize("length", [0.2, 0.4, 0.8])
    def test_intervals(self, length):
        """90 % intervals of new observations cover 88 to 92 %, those of left-out ones too."""
        hidden, left = (np.abs(e) < 1.6448536269514722 for e in self.errors(length))
        assert 0.88 < hidden.mean() < 0.92
        assert 0.88 < left.mean() < 0.92


class TestBlocks:
    def test_that_are_too_small(self):
        """Blocks of fewer than five sites are refused."""
        process, sample, theta, _ = reference.example("shared")
        with pytest.raises(ValueError, match=r"blocks=20 one block has only \d sites"):
            reference.prepare(Committee(20), process, sample, theta)

    def test_divide_the_sample(self):
        """Every observation is in one block, and every site too."""
        process, sample, theta, _ = reference.example("shared", (60, 55, 50))
        index = reference.prepare(Committee(5), process, sample, theta).index
        assert len(index) == 5
        assert sorted(np.concatenate(index)) == list(range(sample.size))
        sites = [set(sample.sites[block].tolist()) for block in index]
        assert sum(map(len, sites)) == len(set().union(*sites))

    def test_a_block_may_lack_a_task(self):
        """Members without observations of a task vote on it from the others."""
        process, sample, theta, rng = reference.example("shared", (40, 30, 30))
        corner = (sample.inputs > 0.6).all(axis=0)
        part = sample.take(np.flatnonzero(corner | (np.arange(sample.size) < 40)))
        ours = reference.condition(Committee(3), process, part, theta)
        assert any(0 in m.sample.sizes for m in ours.members)
        cells = Targets.nowhere(rng.uniform(size=(2, 9)))
        for task in range(3):
            found = ours.moments(cells, task=task)
            assert ((found.variance > 0.0) & (found.variance <= 1.0)).all()
        assert np.isfinite(ours.leave_one_out()).all()

    def test_description(self):
        """It counts the members and their observations."""
        process, sample, theta, _ = reference.example("shared", (60, 55, 50))
        (line,) = reference.condition(Committee(2), process, sample, theta).describe()
        assert line.startswith("committee of 2 blocks with ")
        first, second = map(int, line.split("with ")[1].removesuffix(" observations").split(", "))
        assert first + second == sample.size

    def test_cost(self):
        """As many models as blocks, each of its part of the data."""
        solver = Exact()
        one, four = Committee(1).cost(solver, [300, 100]), Committee(4).cost(solver, [300, 100])
        assert one == solver.cost([400])
        assert four.flops == pytest.approx(one.flops / 16)
        assert four.bytes == pytest.approx(one.bytes / 4)


class TestOptions:
    """Bad options are refused when the method is made."""

    @pytest.mark.parametrize("blocks", [0, -1])
    def test_too_few(self, blocks):
        """There is at least one block."""
        with pytest.raises(ValueError, match=f"`blocks` must be at least 1, found {blocks}"):
            Committee(blocks=blocks)

    @pytest.mark.parametrize("blocks", [True, 2.5, "4", None, np.True_])
    def test_no_number(self, blocks):
        """A whole number."""
        with pytest.raises(TypeError, match="`blocks` must be an integer, found"):
            Committee(blocks=blocks)

    def test_numbers_of_any_integer_type(self):
        """Numbers of numpy are numbers."""
        assert Committee(np.int64(3)) == Committee(3)
        assert type(Committee(np.int32(3)).blocks) is int
