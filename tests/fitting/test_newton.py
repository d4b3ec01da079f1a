"""Newton's method in a box, on functions whose minimum is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der, rosen_hess

from xcopula.errors import NotPositiveDefiniteError
from xcopula.fitting.newton import _corrected, minimise, minimise_from

# Eight units wide: a unit is one.
WIDE = np.array([[-4.0, 4.0]] * 3)
LINE = np.array([[-2.0, 2.0]])
START = np.array([-1.2, 1.0, 2.0])


def rosenbrock(x):
    return rosen(x), rosen_der(x), rosen_hess(x)


def plain(x):
    """The same without its curvature."""
    return rosen(x), rosen_der(x), None


def search(function, start=START, bounds=WIDE, gain=1e-12, **options):
    return minimise(function, np.asarray(start, float), bounds, gain=gain, **options)


def test_a_curved_valley():
    """Rosenbrock's function, whose Hessian is indefinite on the way."""
    end = search(rosenbrock)
    assert end.converged
    assert end.evaluations < 80
    np.testing.assert_allclose(end.theta, 1.0, atol=1e-5)
    np.testing.assert_allclose(end.information, rosen_hess(end.theta))


def test_a_wrong_curvature_is_corrected():
    """Secant corrections make up for an information matrix that is half of the truth."""
    end = search(lambda x: (rosen(x), rosen_der(x), 0.5 * rosen_hess(x)))
    np.testing.assert_allclose(end.theta, 1.0, atol=1e-4)


@pytest.mark.parametrize("high", [4.0, 0.5, 0.3, 0.0, -0.5])
@pytest.mark.parametrize("function", [rosenbrock, plain])
def test_it_ends_where_scipy_does(function, high):
    """With fewer than twice the evaluations of L-BFGS-B, in the box and on a face of it."""
    box = np.array([[-4.0, high], [-4.0, 4.0], [-4.0, 4.0]])
    end = search(function, bounds=box)
    options = {"ftol": 1e-14, "gtol": 1e-9}
    other = minimize(rosen, START, jac=rosen_der, bounds=box, method="L-BFGS-B", options=options)
    assert end.converged
    assert (end.information is None) == (function is plain)
    np.testing.assert_allclose(end.theta, other.x, atol=1e-4)
    assert end.evaluations < 2 * other.nfev


@pytest.mark.parametrize("function", [rosenbrock, plain])
def test_nothing_outside_the_box_is_evaluated(function):
    """A start past a bound is taken from the bound."""
    box = np.array([[-2.0, 0.5], [-2.0, 2.0], [-2.0, 2.0]])
    seen = []

    def recorded(x):
        seen.append(x.copy())
        return function(x)

    end = search(recorded, [-9.0, 9.0, 0.0], box)
    np.testing.assert_array_equal(seen[0], [-2.0, 2.0, 0.0])
    assert (np.array(seen) <= box[:, 1]).all()
    assert (np.array(seen) >= box[:, 0]).all()
    np.testing.assert_allclose(end.theta, [0.5, 0.2574, 0.0663], atol=1e-3)
    assert end.value == rosen(end.theta)


def test_the_minimum_at_a_bound():
    """The box holds, and the other parameters go on."""
    matrix, centre = np.diag([1.0, 2.0, 3.0]) + 0.5, np.array([9.0, 1.0, -9.0])

    def quadratic(x):
        return 0.5 * (x - centre) @ matrix @ (x - centre), matrix @ (x - centre), matrix

    end = search(quadratic, np.zeros(3))
    assert end.converged
    np.testing.assert_allclose(end.theta[[0, 2]], [4.0, -4.0])
    slope = quadratic(end.theta)[1]
    assert abs(slope[1]) < 1e-6
    assert slope[0] < 0.0 < slope[2]


@pytest.mark.parametrize("factor", [1e-9, 1e9])
@pytest.mark.parametrize("function", [rosenbrock, plain])
def test_units_and_constants_cannot_be_told(function, factor):
    """A parameter in other units, with its box, and a constant in the value change nothing."""
    unit = np.array([factor, 1.0, 1.0])

    def rescaled(x):
        value, slope, matrix = function(x / unit)
        return value + 1e3, slope / unit, None if matrix is None else matrix / np.outer(unit, unit)

    first = search(function, gain=1e-6)
    other = search(rescaled, unit * START, unit[:, None] * WIDE, gain=1e-6)
    np.testing.assert_allclose(other.theta / unit, first.theta, rtol=1e-6)
    assert other.evaluations == first.evaluations


@pytest.mark.parametrize("function", [rosenbrock, plain])
@pytest.mark.parametrize("wall", ["infinite", "nan", "not positive definite"])
def test_walls(function, wall):
    """Steps into a wall are taken back, and the search goes along it."""
    hits = []

    def walled(x):
        if x[0] > 0.5:
            hits.append(x)
            if wall == "not positive definite":
                raise NotPositiveDefiniteError("a wall")
            return np.inf if wall == "infinite" else np.nan, np.zeros(3), None
        return function(x)

    end = search(walled)
    assert hits, "the wall was never met: the test proves nothing"
    assert end.value < rosen(START) - 1.0
    assert end.theta[0] <= 0.5


def test_a_slope_that_overflows_is_a_wall():
    """A law far from its values may have a finite density and no slope."""

    def steep(x):
        slope = 2.0 * (x + 0.4)
        return float((x[0] + 0.4) ** 2), np.full(1, np.nan) if x[0] < -0.5 else slope, None

    end = search(steep, [1.9], LINE)
    assert end.theta[0] == pytest.approx(-0.4, abs=1e-3)


def test_entries_of_the_information_that_overflow_count_as_unknown():
    """The others are used."""

    def overflows(x):
        matrix = rosen_hess(x)
        matrix[0, 1] = matrix[1, 0] = np.inf
        return rosen(x), rosen_der(x), matrix

    end = search(overflows)
    assert end.converged
    np.testing.assert_allclose(end.theta, 1.0, atol=1e-3)


def test_a_flat_direction():
    """A parameter without effect stays where it is."""
    end = search(
        lambda x: (x[0] ** 2, np.array([2.0 * x[0], 0, 0]), np.diag([2.0, 0, 0])), [3, 1, 2]
    )
    assert end.converged
    np.testing.assert_allclose(end.theta, [0.0, 1.0, 2.0], atol=1e-6)


@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize("starts", [1, 3])
def test_infinite_everywhere_has_not_converged(value, starts):
    """An infinite value at the start, and a message that says why."""
    end = minimise_from(lambda x: (value, np.zeros(1), None), [np.zeros(1)] * starts, LINE)
    assert (end.value, end.converged, end.information) == (np.inf, False, None)
    assert end.theta == pytest.approx([0.0])
    assert end.message == "the likelihood is zero at every point that was tried"


def test_a_slope_that_lies_ends_the_search_where_it_began():
    """No step gains, and that is no convergence."""
    end = search(lambda x: (rosen(x), -rosen_der(x), None))
    assert not end.converged
    assert end.message == "no step along the slope gains"
    np.testing.assert_array_equal(end.theta, START)


def test_ends_where_a_step_promises_little():
    """And says so; a limit of iterations is no convergence."""
    end = search(rosenbrock, promise=1e-2)
    assert "promises less than 0.01 nats" in end.message
    assert end.value < 0.1
    few = search(rosenbrock, iterations=2)
    assert not few.converged
    assert few.message == "2 iterations were not enough"


def test_two_small_gains_in_a_row_are_the_end():
    """One may be a stumble."""
    values = iter([10.0, 9.9999, 5.0, 4.9999, 4.9998, 0.0])
    end = search(lambda x: (next(values), np.ones(1), None), [1.9], LINE, gain=3e-4, promise=0.0)
    assert (end.value, end.evaluations, end.converged) == (4.9998, 5, True)
    assert end.message == "two iterations gained less than 0.0003 nats each"


def test_deterministic():
    """The same call gives the same optimum, to the last bit."""
    first, second = search(plain), search(plain)
    np.testing.assert_array_equal(first.theta, second.theta)
    assert (first.value, first.evaluations) == (second.value, second.evaluations)


def two_basins(x):
    """A quartic with a shallow minimum near -1 (value 0.19) and a deep one near 1 (-0.21)."""
    (v,) = x
    return (v**2 - 1) ** 2 - 0.2 * v, np.array([4 * v * (v**2 - 1) - 0.2]), None


def broken(x):
    """Fail to the right of 0.5; the minimum is at -0.4."""
    if x[0] > 0.5:
        raise NotPositiveDefiniteError(f"at {x[0]:g}")
    return float((x[0] + 0.4) ** 2), 2.0 * (x + 0.4), None


class TestSeveralStarts:
    @staticmethod
    def search(function, *starts):
        return minimise_from(function, [np.array([start]) for start in starts], LINE)

    def test_the_better_basin_is_chosen(self):
        """One start is trapped in the shallow basin; with two, the deep one wins, in any order."""
        trapped = self.search(two_basins, -1.05)
        assert trapped.theta[0] < -0.9
        for starts in ([-1.05, 1.05], [1.05, -1.05]):
            best = self.search(two_basins, *starts)
            assert best.theta[0] == pytest.approx(1.0241, abs=0.02)
            assert best.value < trapped.value
            assert best.evaluations > 2

    def test_the_best_is_followed_to_the_end(self):
        """A few iterations are not enough for a long valley; all evaluations count."""
        count = []

        def counted(x):
            count.append(x)
            return plain(x)

        starts = [START, np.array([-3.0, -3.0, -3.0])]
        end = minimise_from(counted, starts, WIDE, gain=1e-9)
        assert end.converged
        np.testing.assert_allclose(end.theta, 1.0, atol=1e-2)
        assert end.evaluations == len(count)

    @pytest.mark.parametrize(
        "starts", [(1.5, -1.5, 0.0), (-1.5, 1.5, 0.0), (-1.5, 0.0, 1.5), (1.5, 1.9, -1.5)]
    )
    def test_one_that_fails_is_passed_over(self, starts):
        """Wherever it stands; one good start is enough."""
        end = self.search(broken, *starts)
        assert end.converged
        assert end.theta[0] == pytest.approx(-0.4, abs=1e-3)

    @pytest.mark.parametrize("starts", [[1.5], [1.5, 1.9], [1.1, 1.5, 1.9]])
    def test_if_all_fail_the_first_failure_is_raised(self, starts):
        """The error is that of the start that was suggested."""
        with pytest.raises(NotPositiveDefiniteError, match=f"at {starts[0]:g}"):
            self.search(broken, *starts)

    def test_one_of_zero_likelihood_is_passed_over(self):
        """An infinite value is worse than any other."""

        def walled(x):
            if x[0] > 0.5:
                return np.inf, np.zeros(1), None
            return float((x[0] + 0.4) ** 2) + 1e6, 2.0 * (x + 0.4), None

        end = self.search(walled, 1.5, -1.5)
        assert end.theta[0] == pytest.approx(-0.4, abs=1e-2)

    def test_other_errors_are_not_hidden(self):
        """What is no matter of a covariance ends the search."""

        def wrong(x):
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            self.search(wrong, 0.0, 1.0)


class Recorder:
    """Stands for a Watch."""

    def __init__(self):
        self.begun, self.calls = [], []

    def begin(self, start, starts):
        self.begun.append((start, starts))

    def __call__(self, iteration, value, theta):
        self.calls.append((iteration, value, theta.copy()))


@pytest.mark.parametrize("function", [rosenbrock, plain])
def test_progress_is_reported(function):
    """Each iteration reports its number, a value that never rises and where it was."""
    watch = Recorder()
    end = search(function, watch=watch)
    numbers, values, points = zip(*watch.calls, strict=True)
    assert list(numbers) == list(range(1, len(numbers) + 1))
    assert list(values) == sorted(values, reverse=True)
    assert list(values) == [rosen(x) for x in points]
    assert values[-1] == end.value
    np.testing.assert_array_equal(points[-1], end.theta)


def test_progress_of_starts():
    """Each start is announced, and the best one again for what follows."""
    watch = Recorder()
    starts = [np.array([-3.0, -3.0, -3.0]), START]
    minimise_from(plain, starts, WIDE, watch=watch, gain=1e-9)
    assert watch.begun[:2] == [(1, 2), (2, 2)]
    assert len(watch.begun) == 3


def test_a_correction_leaves_the_curvature_positive():
    """Also where the slope changed against the step."""
    for change in ([1.0, 0.0], [0.0, 3.0], [-2.0, 0.5]):
        found = _corrected(np.diag([1.0, 2.0]), np.array([1.0, 0.0]), np.array(change))
        assert np.linalg.eigvalsh(found).min() > 0.0
