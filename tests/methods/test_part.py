"""Sub-models: a selection of tasks or of observations, and sums of their likelihoods."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
import reference

from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import Gamma, LogNormal, Normal
from xcopula.methods.part import Part, condition_each, total
from xcopula.process import Process
from xcopula.solvers import Exact


@dataclass(frozen=True)
class Recorder:
    """The exact solver, with a record of what it was asked."""

    asked: list = field(default_factory=list)

    def prepare(self, process, theta, sample):
        self.asked.append(("prepare", sample))
        return len(self.asked)

    def objective(self, process, sample, structure, theta):
        self.asked.append(("objective", structure))
        return Exact().objective(process, sample, None, theta)

    def condition(self, process, sample, structure, theta):
        self.asked.append(("condition", structure))
        return Exact().condition(process, sample, None, theta)


@pytest.fixture
def setting():
    """Three tasks, partly co-located."""
    covariance = Covariance((KERNELS["matern32"],) * 3, (InputGroup(2),), "lmc", 2)
    process = Process(covariance, (LogNormal(0.3, 0.6), Normal(1.0, 2.0), Gamma(2.5, 0.8)))
    rng = np.random.default_rng(0)
    theta = process.join(reference.random_theta(covariance, rng))
    inputs = reference.random_inputs(covariance, rng, (9, 8, 7), 4)
    return process, reference.simulate(process, theta, inputs), theta


@pytest.mark.parametrize("tasks", [None, (0,), (0, 1), (0, 2), (0, 1, 2)])
class TestPart:
    def test_is_made_of_its_tasks(self, setting, tasks):
        """It has the sample of its tasks, and what the solver made of that."""
        process, sample, theta = setting
        solver = Recorder()
        part = Part.of(solver, process, theta, sample, tasks)
        own = tasks or (0, 1, 2)
        assert part.tasks == own
        np.testing.assert_array_equal(part.sample.values, sample.select(own).values)
        np.testing.assert_array_equal(part.sample.sites, sample.select(own).sites)
        assert [name for name, _ in solver.asked] == ["prepare"]
        assert part.structure == 1
        if own == (0, 1, 2):
            assert part.sample is sample

    def test_objective_is_that_of_the_parameters_it_has(self, setting, tasks):
        """Value of its tasks alone; the gradient is zero for parameters it does not have."""
        process, sample, theta = setting
        part = Part.of(Exact(), process, theta, sample, tasks)
        value, gradient = part.objective(process, theta)
        own = tasks or (0, 1, 2)
        sub, index = process.with_tasks(own)
        expected, by_own = reference.objective(Exact(), sub, sample.select(own), theta[index])
        assert value == expected
        np.testing.assert_array_equal(gradient[index], by_own)
        np.testing.assert_array_equal(np.delete(gradient, index), 0.0)
        numeric = reference.differences(lambda x: part.objective(process, x)[0], theta, step=5e-4)
        np.testing.assert_allclose(gradient, numeric, rtol=0, atol=1e-6 * np.abs(numeric).max())

    def test_condition_is_that_of_its_tasks(self, setting, tasks):
        """The conditioned part predicts what its tasks alone predict."""
        process, sample, theta = setting
        part = Part.of(Exact(), process, theta, sample, tasks)
        own = tasks or (0, 1, 2)
        cells = reference.targets(sample, sample.inputs[:, ::4] + 0.01)
        sub, index = process.with_tasks(own)
        mean, variance = reference.moments(sub, theta[index], sample.select(own), cells)
        found = part.condition(process, theta).moments(cells)
        np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-8)
        np.testing.assert_allclose(found.variance, variance, rtol=0, atol=1e-8)


class TestTotal:
    def parts(self, setting, solver=None, counts=(1.0, 1.0, 1.0)):
        process, sample, theta = setting
        solver = solver or Exact()
        tasks = [(0,), (0, 1), (0, 2)]
        return [
            Part.of(solver, process, theta, sample, t, count=c)
            for t, c in zip(tasks, counts, strict=True)
        ]

    def test_is_the_weighted_sum(self, setting):
        """Values and gradients add up, each as often as it counts."""
        process, _, theta = setting
        counts = [-1.0, 1.0, 0.5]
        parts = self.parts(setting, counts=counts)
        value, gradient = total(parts, process, theta)
        each = [part.objective(process, theta) for part in parts]
        assert value == pytest.approx(sum(c * v for c, (v, _) in zip(counts, each, strict=True)))
        expected = sum(c * g for c, (_, g) in zip(counts, each, strict=True))
        np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-12)

    def test_what_does_not_count_is_not_evaluated(self, setting):
        """A part that counts nothing costs nothing."""
        process, _, theta = setting
        solver = Recorder()
        parts = self.parts(setting, solver, [0.0, 1.0, 0.0])
        solver.asked.clear()
        total(parts, process, theta)
        assert solver.asked == [("objective", 2)]

    def test_one_impossible_part_is_enough(self, setting):
        """An infinite part makes the sum infinite, whatever its sign, and the gradient zero."""
        process, sample, theta = setting
        values = sample.values.copy()
        values[2] = -1.0  # no log-normal value
        broken = type(sample)(sample.inputs, sample.offsets, values, sample.sites)
        parts = self.parts((process, broken, theta), counts=[-1.0, 1.0, 1.0])
        value, gradient = total(parts, process, theta)
        assert value == np.inf
        np.testing.assert_array_equal(gradient, np.zeros(process.size))

    def test_structures_are_used_as_they_were_made(self, setting):
        """Neither a likelihood nor a conditioning prepares again."""
        process, _, theta = setting
        solver = Recorder()
        parts = self.parts(setting, solver)
        solver.asked.clear()
        total(parts, process, theta)
        models = condition_each(parts, process, theta)
        assert sorted(solver.asked) == [(name, k) for name in ("condition", "objective")
                                        for k in (1, 2, 3)]  # fmt: skip
        assert [m.sample for m in models] == [part.sample for part in parts]
