"""What a search has learnt of a function's curvature, and descents that begin with it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import Bounds, minimize, rosen, rosen_der, rosen_hess

from xcopula.fitting.curvature import descend, learnt, measured
from xcopula.fitting.optimiser import minimise

WIDE = np.array([[-1e3, 1e3]])


def parabola(size: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, size))
    matrix = root @ root.T + 0.1 * np.eye(size)
    lowest = rng.normal(size=size)

    def function(x):
        away = x - lowest
        return 0.5 * float(away @ matrix @ away), matrix @ away

    return function, matrix, lowest


def counted(function):
    def evaluate(x):
        evaluate.calls += 1
        return function(x)

    evaluate.calls = 0
    return evaluate


class Until:
    """Ends a descent once its slope is small, as the watch of a search does."""

    def __init__(self, most=200):
        self.points, self.most = [], most

    def __call__(self):
        self.points.append(None)
        if len(self.points) >= self.most:
            raise StopIteration


def test_steps_along_every_direction_tell_the_curvature():
    function, matrix, lowest = parabola(5)
    points = [lowest + step for step in np.vstack([np.zeros(5), np.cumsum(np.eye(5), axis=0)])]
    # Steps that are conjugate teach all of it; so do many that are not.
    rng = np.random.default_rng(1)
    points += [lowest + rng.normal(size=5) for _ in range(60)]
    found = learnt(points, [function(x)[1] for x in points])
    np.testing.assert_allclose(found, matrix, rtol=0.02, atol=0.02)
    assert np.linalg.eigvalsh(found).min() > 0.0


def test_without_steps_the_curvature_is_what_was_known():
    known = np.diag([1.0, 2.0])
    assert learnt([], [], known) is known
    assert learnt([np.zeros(2)], [np.ones(2)], known) is known
    assert learnt([np.zeros(2)], [np.ones(2)]) is None


def test_a_step_over_a_hill_does_not_make_the_curvature_indefinite():
    points = [np.array([0.0, 0.0]), np.array([1.0, 0.0]), np.array([1.0, 1.0])]
    slopes = [np.array([0.0, 0.0]), np.array([0.01, 0.0]), np.array([0.0, 2.0])]
    found = learnt(points, slopes, np.diag([5.0, 5.0]))
    assert np.linalg.eigvalsh(found).min() > 0.0


class TestMeasured:
    def test_a_parabola(self):
        """Whatever the units of its coordinates, also where steps must go down."""
        function, matrix, lowest = parabola(5)
        box = np.column_stack([lowest - 1.0, lowest + np.array([1.0, 1e-9, 1.0, 1e-9, 1.0])])
        seen = []

        def inside(x):
            assert (x >= box[:, 0]).all()
            assert (x <= box[:, 1]).all()
            seen.append(x)
            return function(x)

        for unit in (np.ones(5), np.array([0.1, 1.0, 5.0, 0.3, 1.0])):
            seen.clear()
            found = measured(inside, lowest, unit, box)
            np.testing.assert_allclose(found, matrix, rtol=1e-6, atol=1e-8)
            assert len(seen) == 6

    def test_a_curved_valley(self):
        """Close to its second derivatives."""
        x = np.ones(3)
        box = np.repeat([[-3.0, 3.0]], 3, 0)
        found = measured(lambda p: (float(rosen(p)), rosen_der(p)), x, np.ones(3), box)
        exact = rosen_hess(x)
        assert np.linalg.eigvalsh(exact).min() > 0.0
        np.testing.assert_allclose(found, exact, rtol=0.05, atol=5.0)

    def test_a_saddle_bends_up_everywhere(self):
        """By as much as it bends down."""
        bend = np.diag([4.0, -2.0, 0.0])
        box = np.repeat([[-3.0, 3.0]], 3, 0)
        found = measured(lambda p: (0.5 * p @ bend @ p, bend @ p), np.ones(3), np.ones(3), box)
        np.testing.assert_allclose(found, np.diag([4.0, 2.0, 4e-8]), atol=1e-9)

    def test_next_to_a_wall(self):
        """Nothing is known there."""
        box = np.repeat([[-3.0, 3.0]], 2, 0)

        def wall(x):
            return (np.inf, np.zeros(2)) if x[1] > 1.005 else (float(x @ x), 2.0 * x)

        assert measured(wall, np.ones(2), np.ones(2), box) is None


def test_a_step_that_promises_little_is_not_made():
    function, matrix, lowest = parabola(4)
    calls = counted(function)
    start = lowest + 0.1
    left = function(start)[0]
    box = np.repeat(WIDE, 4, 0)
    found = descend(calls, start, box, matrix, 5, lambda: None, 1.01 * left)
    assert found.success
    assert "promises less" in found.message
    assert calls.calls == 1
    calls.calls = 0
    found = descend(calls, start, box, matrix, 5, lambda: None, 0.99 * left)
    assert calls.calls == 2


def test_a_known_parabola_takes_one_step():
    function, matrix, lowest = parabola(6)
    calls = counted(function)
    found = descend(calls, lowest + 0.1, np.repeat(WIDE, 6, 0), matrix, 1, lambda: None)
    assert calls.calls == 2
    value, _ = function(lowest)
    assert minimise(function, lowest + 0.1, np.repeat(WIDE, 6, 0), curvature=matrix).value == (
        pytest.approx(value, abs=1e-12)
    )
    assert not found.success
    assert "1 iterations" in found.message


def test_a_descent_in_a_box_ends_where_another_search_does():
    function, matrix, lowest = parabola(4, seed=3)
    box = np.column_stack([lowest - 2.0, lowest + np.array([-0.5, 2.0, -0.3, 2.0])])
    start = np.clip(lowest - 1.0, box[:, 0], box[:, 1])
    reference = minimize(
        function, start, jac=True, method="L-BFGS-B", bounds=Bounds(*box.T), tol=1e-14
    )
    found = minimise(function, start, box, curvature=np.diag(np.diag(matrix)), gain=1e-13)
    np.testing.assert_allclose(found.theta, reference.x, atol=1e-5)
    assert found.converged


def test_a_curved_valley_is_followed():
    def function(x):
        return float(rosen(x)), rosen_der(x)

    start = np.array([-1.2, 1.0, 0.5])
    box = np.repeat([[-3.0, 3.0]], 3, 0)
    found = minimise(function, start, box, curvature=rosen_hess(np.ones(3)), gain=1e-12)
    np.testing.assert_allclose(found.theta, np.ones(3), atol=1e-4)


def test_a_search_goes_on_with_what_it_learnt():
    function, _, lowest = parabola(20, seed=5)
    box = np.repeat([[-20.0, 20.0]], 20, 0)
    first = minimise(function, lowest + 1.0, box, gain=1e-10)
    tilt = np.random.default_rng(2).normal(size=20)

    def tilted(x):
        value, slope = function(x)
        return value + float(tilt @ x), slope + tilt

    cold = minimise(tilted, first.theta, box, gain=1e-8)
    warm = minimise(tilted, first.theta, box, gain=1e-8, curvature=first.curvature)
    assert warm.value == pytest.approx(cold.value, abs=1e-5)
    assert warm.evaluations < 0.6 * cold.evaluations


def test_a_descent_that_cannot_gain_says_so():
    def wrong(x):
        return float(np.abs(x).sum()), -np.ones_like(x)

    found = descend(wrong, np.zeros(2), np.repeat(WIDE, 2, 0), np.eye(2), 5, lambda: None)
    assert not found.success
    assert "gains" in found.message


def test_a_watch_ends_a_descent():
    function, matrix, lowest = parabola(3)
    watch = Until(2)
    found = descend(function, lowest + 5.0, np.repeat(WIDE, 3, 0), 10.0 * matrix, 50, watch)
    assert found.success
    assert len(watch.points) == 2


def test_a_descent_gets_over_where_the_function_bends_downwards():
    def dip(x):
        value = np.exp(-0.5 * float(x @ x))
        return 1.0 - value, value * x

    box = np.repeat([[-8.0, 8.0]], 2, 0)
    found = minimise(dip, np.array([3.0, 0.5]), box, curvature=0.02 * np.eye(2), gain=1e-12)
    np.testing.assert_allclose(found.theta, 0.0, atol=1e-4)
