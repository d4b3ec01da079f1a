"""Newton's method in a box, on functions whose minimum is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der, rosen_hess

from xcopula.errors import NotPositiveDefiniteError
from xcopula.fitting.newton import descend

WIDE = np.array([[-5.0, 5.0]] * 3)
OPTIONS = {"gain": 1e-12, "promise": 1e-12, "iterations": 100, "report": lambda *_: None}


def search(function, start, bounds=WIDE, **options):
    return descend(
        function, np.asarray(start, float), bounds, np.ones(len(start)), **OPTIONS | options
    )


def rosenbrock(x):
    return rosen(x), rosen_der(x), rosen_hess(x)


def test_a_curved_valley():
    """Rosenbrock's function, whose Hessian is indefinite on the way."""
    end = search(rosenbrock, [-1.2, 1.0, 2.0])
    assert end.converged
    assert end.evaluations < 80
    np.testing.assert_allclose(end.theta, 1.0, atol=1e-5)
    np.testing.assert_allclose(end.information, rosen_hess(end.theta))


def test_a_wrong_curvature_is_corrected():
    """Secant corrections make up for an information matrix that is half of the truth."""
    end = search(lambda x: (rosen(x), rosen_der(x), 0.5 * rosen_hess(x)), [-1.2, 1.0, 2.0])
    np.testing.assert_allclose(end.theta, 1.0, atol=1e-4)


def test_the_minimum_at_a_bound():
    """The box holds, and the other parameters go on."""
    matrix, centre = np.diag([1.0, 2.0, 3.0]) + 0.5, np.array([9.0, 1.0, -9.0])

    def quadratic(x):
        return 0.5 * (x - centre) @ matrix @ (x - centre), matrix @ (x - centre), matrix

    end = search(quadratic, np.zeros(3))
    assert end.converged
    np.testing.assert_allclose(end.theta[[0, 2]], [5.0, -5.0])
    slope = quadratic(end.theta)[1]
    assert abs(slope[1]) < 1e-6
    assert slope[0] < 0.0 < slope[2]


@pytest.mark.parametrize("wall", ["infinite", "not positive definite"])
def test_walls(wall):
    """Steps into a wall are taken back, and the search goes along it."""

    def walled(x):
        if x[0] > 0.5:
            if wall == "infinite":
                return np.inf, np.zeros(3), None
            raise NotPositiveDefiniteError("a wall")
        return rosenbrock(x)

    end = search(walled, [-1.2, 1.0, 2.0])
    assert end.value < rosen([-1.2, 1.0, 2.0]) - 1.0
    assert end.theta[0] <= 0.5


def test_a_flat_direction():
    """A parameter without effect stays where it is."""
    end = search(
        lambda x: (x[0] ** 2, np.array([2.0 * x[0], 0, 0]), np.diag([2.0, 0, 0])), [3, 1, 2]
    )
    assert end.converged
    np.testing.assert_allclose(end.theta, [0.0, 1.0, 2.0], atol=1e-6)


def test_no_start():
    """Nothing but a wall has no optimum; a matrix that fails at the start is an error."""
    end = search(lambda x: (np.inf, np.zeros(3), None), np.zeros(3))
    assert not end.converged
    assert end.information is None

    def fails(x):
        raise NotPositiveDefiniteError("at the start")

    with pytest.raises(NotPositiveDefiniteError, match="at the start"):
        search(fails, np.zeros(3))


def test_ends_where_a_step_promises_little():
    """And says so; a limit of iterations is no convergence."""
    end = search(rosenbrock, [-1.2, 1.0, 2.0], promise=1e-2)
    assert "promises less than 0.01 nats" in end.message
    assert end.value < 0.1
    assert not search(rosenbrock, [-1.2, 1.0, 2.0], iterations=2).converged
