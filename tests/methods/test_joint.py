"""The one Gaussian model of all variables, whatever the method."""

from __future__ import annotations

import numpy as np
import pytest

from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import MARGINALS
from xcopula.methods import METHODS, Committee, Full, Sparse, Transductive
from xcopula.methods.joint import Origin, is_joint, joint, joint_origin
from xcopula.process import Process, Sample, Targets
from xcopula.solvers import Exact, Neighbours


def world(tasks: int, solver=None, method=None):
    rng = np.random.default_rng(tasks)
    covariance = Covariance((KERNELS["matern32"],) * tasks, (InputGroup(2),))
    process = Process(covariance, (MARGINALS["normal"](0.0, 1.0),) * tasks)
    sample = Sample.of(
        [rng.uniform(-0.5, 0.5, (16 + i, 2)) for i in range(tasks)],
        [rng.normal(size=16 + i) for i in range(tasks)],
    )
    theta = process.join(rng.normal(size=covariance.size) * 0.4 - 0.5)
    origin = Origin(process, theta, sample, solver or Exact())
    structure = method.prepare(origin.solver, process, theta, sample)
    return method.condition(process, sample, structure, theta), origin


@pytest.mark.parametrize("name", [*METHODS])
@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_it_is_the_full_model(name, tasks):
    if name == "pitc":
        pytest.skip("needs blocks")
    method = METHODS[name]
    if isinstance(method, Committee):
        method = Committee(blocks=2)
    if isinstance(method, Sparse):
        method = Sparse(name, inducing=8)
    conditioned, origin = world(tasks, method=method)
    whole, _ = world(tasks, method=Full())
    targets = Targets.nowhere(np.random.default_rng(9).uniform(-0.5, 0.5, (2, 5)))
    found = joint(conditioned, origin)
    for task in range(tasks):
        want = whole.moments(targets, task=task)
        np.testing.assert_allclose(found.moments(targets, task=task), want, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("tasks", "expected"), [(1, True), (2, True), (3, False)])
def test_a_transductive_model_is_joint_up_to_a_pair(tasks, expected):
    conditioned, origin = world(tasks, method=Transductive())
    assert is_joint(conditioned, tasks) is expected
    if expected:
        assert joint(conditioned, origin) is conditioned.models[-1]


@pytest.mark.parametrize("solver", [Exact(), Neighbours(predict=100)], ids=["exact", "local"])
def test_given_some_observations(solver):
    """Without a variable it is the model of the others."""
    conditioned, origin = world(2, solver, Full())
    targets = Targets.nowhere(np.random.default_rng(9).uniform(-0.5, 0.5, (2, 5)))
    few = joint_origin(conditioned, origin).given(np.arange(16))
    assert few.sample.sizes == [16, 0]
    process, index = origin.process.with_tasks((0,))
    sample = origin.sample.select((0,))
    want = Exact().condition(process, sample, None, origin.theta[index]).moments(targets)
    np.testing.assert_allclose(few.condition().moments(targets), want, rtol=0, atol=1e-9)


def test_it_keeps_the_options_of_neighbours():
    conditioned, origin = world(3, Neighbours(predict=17), Transductive())
    assert joint(conditioned, origin).solver == Neighbours(predict=17)


def test_many_values_are_taken_by_neighbours(monkeypatch):
    monkeypatch.setattr("xcopula.solvers.MOST_EXACT", 20)
    conditioned, origin = world(3, method=Transductive())
    assert joint(conditioned, origin).solver == Neighbours()
