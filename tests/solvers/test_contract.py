"""What every solver fulfils, and how one is asked for."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
import reference

from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import LogNormal, Normal
from xcopula.process import Moments, Process
from xcopula.solvers import SOLVERS, Exact, Gaussian, Solver, contract, resolve_solver, settle


@pytest.fixture
def setting():
    """Two tasks in the plane, partly co-located, and cells among them."""
    covariance = Covariance((KERNELS["matern32"],) * 2, (InputGroup(2),), "icm")
    process = Process(covariance, (LogNormal(0.3, 0.6), Normal(1.0, 2.0)))
    rng = np.random.default_rng(0)
    theta = process.join(reference.random_theta(covariance, rng))
    inputs = reference.random_inputs(covariance, rng, (9, 7), 4)
    sample = reference.simulate(process, theta, inputs)
    points = np.column_stack([rng.uniform(size=(2, 5)), sample.inputs[:, [0, -1]]])
    return process, sample, theta, reference.targets(sample, points)


def members(protocol):
    """Return the names that a protocol asks for, its parents' included."""
    return {name for c in protocol.__mro__ for name in vars(c) if not name.startswith("_")}


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS.keys())
class TestEverySolver:
    def test_has_the_parts_of_the_contract(self, solver, setting):
        """Every name of the protocols is there, and the solver is registered under its own."""
        process, sample, theta, _ = setting
        assert SOLVERS[solver.name] is solver
        assert all(hasattr(solver, name) for name in members(Solver))
        conditioned = reference.condition(solver, process, sample, theta)
        assert all(hasattr(conditioned, name) for name in members(Gaussian))
        assert conditioned.sample is sample
        np.testing.assert_array_equal(conditioned.scores, process.scores(theta, sample))
        assert conditioned.jitter == 0.0
        assert all(isinstance(line, str) for line in conditioned.describe())

    def test_is_a_frozen_value(self, solver, setting):
        """A solver is equal to another with its options, travels, and cannot be changed."""
        assert dataclasses.is_dataclass(solver)
        assert pickle.loads(pickle.dumps(solver)) == solver
        assert hash(solver) == hash(dataclasses.replace(solver))
        with pytest.raises(AttributeError):
            solver.name = "other"

    def test_conditioned_travels(self, solver, setting):
        """A pickled conditioned process predicts the same."""
        process, sample, theta, cells = setting
        conditioned = reference.condition(solver, process, sample, theta)
        back = pickle.loads(pickle.dumps(conditioned))
        np.testing.assert_array_equal(back.moments(cells), conditioned.moments(cells))

    def test_shapes(self, solver, setting):
        """Moments (m,), means (k, m), leave-one-out (n,), for every task."""
        process, sample, theta, cells = setting
        conditioned = reference.condition(solver, process, sample, theta)
        for task in range(2):
            for nugget in (True, False):
                found = conditioned.moments(cells, task=task, nugget=nugget)
                assert isinstance(found, Moments)
                assert found.mean.shape == found.variance.shape == (cells.size,)
                mean = conditioned.mean(cells, task=task, nugget=nugget)
                np.testing.assert_allclose(mean, found.mean, rtol=0, atol=1e-12)
                rows = np.ones((3, sample.size))
                means = conditioned.means(cells, rows, task=task, nugget=nugget)
                assert means.shape == (3, cells.size)
        assert conditioned.leave_one_out().mean.shape == (sample.size,)

    def test_a_structure_serves_other_laws(self, solver, setting):
        """What is made of a sample does not depend on the marginal laws."""
        process, sample, theta, _ = setting
        structure = solver.prepare(process, theta, sample)
        other = Process(process.covariance, (LogNormal(0.1, 0.9), Normal(0.0, 1.0)))
        moved = other.join(theta[: process.covariance.size])
        found = solver.objective(other, sample, structure, moved)
        expected = reference.objective(solver, other, sample, moved)
        assert found[0] == expected[0]
        np.testing.assert_array_equal(found[1], expected[1])


class TestResolve:
    def test_by_name(self):
        """Names stand for solvers; "auto" leaves the choice."""
        assert resolve_solver("exact") is SOLVERS["exact"]
        assert resolve_solver("neighbours") is SOLVERS["neighbours"]
        assert resolve_solver("auto") is None

    def test_the_size_decides(self):
        """Exact up to 4,000 values of the largest sub-model, by neighbours above."""
        assert settle(None, [[100], [100, 3900]]) is SOLVERS["exact"]
        assert settle(None, [[100], [100, 3901]]) is SOLVERS["neighbours"]
        assert settle(None, []) is SOLVERS["exact"]
        mine = Exact()
        assert settle(mine, [[10**6]]) is mine

    def test_an_object_is_itself(self):
        """A solver of one's own needs the parts of the contract, no base class."""

        class Mine:
            name = "mine"
            mean_is_cheaper = True

            def prepare(self, process, theta, sample):
                return None

            def objective(self, process, sample, structure, theta):
                return 0.0, theta

            def condition(self, process, sample, structure, theta):
                return None

            def cost(self, sizes, correlations=1):
                return contract.Cost(0.0, 0.0)

        mine = Mine()
        assert resolve_solver(mine) is mine
        exact = Exact()
        assert resolve_solver(exact) is exact
        del Mine.mean_is_cheaper
        with pytest.raises(TypeError, match=r"`solver` must be .* found Mine"):
            resolve_solver(mine)

    def test_an_unknown_name(self):
        """The message names the choices."""
        with pytest.raises(ValueError, match=r"Unknown solver 'x'\. Choose one of 'auto', 'exact'"):
            resolve_solver("x")

    @pytest.mark.parametrize("bad", [object(), 3, None, ["exact"]])
    def test_what_is_no_solver(self, bad):
        """The message says what was found."""
        with pytest.raises(TypeError, match=f"`solver` must be .* found {type(bad).__name__}"):
            resolve_solver(bad)

    def test_a_class(self):
        """A class in place of an object is told how to be made."""
        with pytest.raises(
            TypeError, match=r"`solver` is a class\. Give an object instead: Exact\(\)"
        ):
            resolve_solver(Exact)
