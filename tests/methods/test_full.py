"""The full method: one model of all tasks, by the solver that it is given."""

from __future__ import annotations

import numpy as np
import pytest
import reference

from xcopula.methods import METHODS, Full
from xcopula.solvers import Exact
from xcopula.solvers.exact import Factorised


def test_is_the_solver_itself():
    """Likelihood, gradient and conditioning are the exact solver's, bit for bit."""
    process, sample, theta, rng = reference.example("mixed")
    value, gradient = reference.objective(Full(), process, sample, theta)
    expected, by_theta = reference.objective(Exact(), process, sample, theta)
    assert value == expected
    np.testing.assert_array_equal(gradient, by_theta)
    ours = reference.condition(Full(), process, sample, theta)
    assert isinstance(ours, Factorised)
    cells = reference.some_targets(sample, rng)
    exact = reference.condition(Exact(), process, sample, theta)
    np.testing.assert_array_equal(ours.moments(cells), exact.moments(cells))
    np.testing.assert_array_equal(ours.leave_one_out(), exact.leave_one_out())
    assert ours.describe() == []


@pytest.mark.parametrize("name", ["groups", "lmc", "shared"])
@pytest.mark.parametrize("nugget", [True, False])
def test_any_task_is_the_first_of_a_permuted_process(name, nugget):
    """Moments and left-out values of task i are those with the tasks permuted, to 1e-9."""
    process, sample, theta, rng = reference.example(name)
    cells = reference.some_targets(sample, rng)
    ours = reference.condition(Full(), process, sample, theta)
    tasks = list(range(sample.tasks))
    for i in tasks[1:]:
        order = [i, *(j for j in tasks if j != i)]
        other, moved = reference.permuted(process, theta, order)
        theirs = reference.condition(Full(), other, sample.select(order), moved)
        np.testing.assert_allclose(
            ours.moments(cells, task=i, nugget=nugget),
            theirs.moments(cells, nugget=nugget),
            rtol=0,
            atol=1e-9,
        )
        own = [part[sample.task(i)] for part in ours.leave_one_out()]
        first = [part[: sample.sizes[i]] for part in theirs.leave_one_out()]
        np.testing.assert_allclose(own, first, rtol=0, atol=1e-9)


def test_any_task_against_dense_algebra():
    """Moments of every task equal those of matrices made entry by entry, to 1e-8."""
    process, sample, theta, rng = reference.example("shared")
    cells = reference.some_targets(sample, rng)
    ours = reference.condition(Full(), process, sample, theta)
    for task in range(3):
        for nugget in (True, False):
            expected = reference.moments(process, theta, sample, cells, task, nugget=nugget)
            found = ours.moments(cells, task=task, nugget=nugget)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


def test_cost_and_name():
    """One model of all observations, under the name that users know."""
    assert Full().cost(Exact(), [30, 20]) == Exact().cost([30, 20])
    assert METHODS["full"] == Full()
    assert Full().name == "full"
