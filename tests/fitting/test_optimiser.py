"""Minimisation in a box: walls, several starts, progress."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import numpy as np
import pytest

from xcopula.errors import NotPositiveDefiniteError
from xcopula.fitting import optimiser
from xcopula.fitting.optimiser import OPTIMIZERS, minimise, minimise_from

BOX = np.array([[-2.0, 2.0], [-2.0, 2.0]])


def rosenbrock(x):
    a, b = x
    gradient = np.array([-2 * (1 - a) - 400 * a * (b - a**2), 200 * (b - a**2)])
    return (1 - a) ** 2 + 100 * (b - a**2) ** 2, gradient


def steep(x):
    """Rosenbrock's valley a thousand times as deep: what counts are nats, not shares of a value."""
    value, gradient = rosenbrock(x)
    return 1e3 * value, 1e3 * gradient


def two_basins(x):
    """A quartic with a shallow minimum near -1 (value 0.19) and a deep one near 1 (-0.21)."""
    (v,) = x
    return (v**2 - 1) ** 2 - 0.2 * v, np.array([4 * v * (v**2 - 1) - 0.2])


def test_finds_the_minimum():
    """Rosenbrock's valley is followed to its end, to 1e-3."""
    optimum = minimise(steep, np.array([-1.2, 1.0]), BOX)
    assert optimum.converged
    np.testing.assert_allclose(optimum.theta, [1.0, 1.0], atol=1e-3)
    assert optimum.value == steep(optimum.theta)[0]
    assert optimum.evaluations > 10


def test_stays_in_the_box():
    """A minimum outside the box ends on its face, and nothing outside is evaluated."""
    box = np.array([[-2.0, 0.5], [-2.0, 2.0]])
    seen = []

    def recorded(x):
        seen.append(x.copy())
        return rosenbrock(x)

    optimum = minimise(recorded, np.array([-1.2, 1.0]), box)
    np.testing.assert_allclose(optimum.theta, [0.5, 0.25], atol=1e-3)
    assert (np.array(seen) <= box[:, 1]).all()
    assert (np.array(seen) >= box[:, 0]).all()


def test_start_outside_the_box_is_moved_in():
    """A start past a bound is taken from the bound."""
    optimum = minimise(steep, np.array([-9.0, 9.0]), BOX)
    np.testing.assert_allclose(optimum.theta, [1.0, 1.0], atol=1e-3)


@pytest.mark.parametrize("optimizer", ["l-bfgs", "cg"])
@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_units_and_constants_cannot_be_told(optimizer, factor):
    """A parameter in other units, with its box, and a constant in the value change nothing."""

    def rescaled(x):
        value, gradient = rosenbrock(np.array([x[0] / factor, x[1]]))
        return value + 1e3, gradient / np.array([factor, 1.0])

    unit = np.array([factor, 1.0])
    plain = minimise(rosenbrock, np.array([-1.2, 1.0]), BOX, optimizer=optimizer)
    other = minimise(
        rescaled, unit * np.array([-1.2, 1.0]), unit[:, None] * BOX, optimizer=optimizer
    )
    np.testing.assert_allclose(other.theta / unit, plain.theta, rtol=1e-6)
    assert other.evaluations == plain.evaluations


@pytest.mark.parametrize("failure", ["infinite", "nan", "raises"])
def test_walls_lead_back(failure):
    """Where the function is infinite, NaN or not positive definite the search turns round."""
    hits = []

    def walled(x):
        if x[0] < 0.1:
            hits.append(x[0])
            if failure == "raises":
                raise NotPositiveDefiniteError("no")
            return (np.inf if failure == "infinite" else np.nan), np.zeros(1)
        return float((x[0] - 0.2) ** 2 + 0.01 / x[0]), 2 * (x - 0.2) - 0.01 / x**2

    optimum = minimise(walled, np.array([4.0]), np.array([[-5.0, 5.0]]))
    assert hits, "the wall was never met: the test proves nothing"
    assert optimum.theta[0] == pytest.approx(0.2691, abs=0.02)
    assert np.isfinite(optimum.value)


def test_failure_at_the_start_is_raised():
    """If the very first matrix cannot be factorised the caller is told."""

    def hopeless(x):
        raise NotPositiveDefiniteError("at length_scale=[3.]")

    with pytest.raises(NotPositiveDefiniteError, match="length_scale"):
        minimise(hopeless, np.zeros(1), np.array([[-1.0, 1.0]]))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize("starts", [1, 3])
def test_infinite_everywhere_has_not_converged(optimizer, value, starts):
    """Nothing finite to be found: an infinite value at the start, and a message that says why."""
    optimum = minimise_from(
        lambda x: (value, np.zeros(1)),
        [np.zeros(1)] * starts,
        np.array([[-1.0, 1.0]]),
        optimizer=optimizer,
    )
    assert optimum.value == np.inf
    assert optimum.theta == pytest.approx([0.0])
    assert not optimum.converged
    assert optimum.message == "the likelihood is zero at every point that was tried"


class TestStartsThatFail:
    """A start where no covariance can be factorised ends the fit only if there is no other."""

    box = np.array([[-2.0, 2.0]])

    @staticmethod
    def broken(x):
        """Fail to the right of 0.5; the minimum is at -0.4."""
        if x[0] > 0.5:
            raise NotPositiveDefiniteError(f"at {x[0]:g}")
        return float((x[0] + 0.4) ** 2), 2.0 * (x + 0.4)

    @pytest.mark.parametrize("order", [[1.5, -1.5, 0.0], [-1.5, 1.5, 0.0], [-1.5, 0.0, 1.5]])
    @pytest.mark.parametrize("optimizer", ["l-bfgs", "cg"])
    def test_others_go_on(self, order, optimizer):
        """Wherever the bad one stands."""
        starts = [np.array([s]) for s in order]
        optimum = minimise_from(self.broken, starts, self.box, optimizer=optimizer)
        assert optimum.converged
        assert optimum.theta[0] == pytest.approx(-0.4, abs=1e-3)

    def test_one_good_start_is_enough(self):
        """Two of three fail."""
        starts = [np.array([s]) for s in (1.5, 1.9, -1.5)]
        optimum = minimise_from(self.broken, starts, self.box)
        assert optimum.theta[0] == pytest.approx(-0.4, abs=1e-3)

    @pytest.mark.parametrize("starts", [[1.5], [1.5, 1.9], [1.1, 1.5, 1.9]])
    def test_if_all_fail_the_first_failure_is_told(self, starts):
        """The error is that of the start that was suggested."""
        with pytest.raises(NotPositiveDefiniteError, match=f"at {starts[0]:g}"):
            minimise_from(self.broken, [np.array([s]) for s in starts], self.box)

    def test_a_start_of_zero_likelihood_is_passed_over(self):
        """An infinite value is worse than any other."""

        def walled(x):
            if x[0] > 0.5:
                return np.inf, np.zeros(1)
            return float((x[0] + 0.4) ** 2) + 1e12, 2.0 * (x + 0.4)

        optimum = minimise_from(walled, [np.array([1.5]), np.array([-1.5])], self.box)
        assert optimum.theta[0] == pytest.approx(-0.4, abs=1e-3)
        assert np.isfinite(optimum.value)

    def test_other_errors_are_not_hidden(self):
        """What is no matter of a covariance ends the search."""

        def wrong(x):
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            minimise_from(wrong, [np.zeros(1), np.ones(1)], self.box)


class TestSeed:
    @staticmethod
    def trace(seed: int, starts: int) -> np.ndarray:
        """Return all points that annealing looked at."""
        seen = []

        def recorded(x):
            seen.append(x.copy())
            return rosenbrock(x)

        first = [np.array([-1.2, 1.0]), np.array([0.5, -0.5])][:starts]
        minimise_from(recorded, first, BOX, optimizer="annealing", seed=seed)
        return np.array(seen)

    @pytest.mark.parametrize("starts", [1, 2])
    def test_reaches_the_annealing(self, starts):
        """One seed has one trace, two seeds have two."""
        first, again, other = (self.trace(seed, starts) for seed in (3, 3, 4))
        np.testing.assert_array_equal(first, again)
        assert first.shape != other.shape or not np.array_equal(first, other)
        # The trace is random from its second point on: the start is that of the caller.
        np.testing.assert_array_equal(first[0], other[0])


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimiser_finds_the_minimum_in_the_box(optimizer):
    """Also where it stands on a face of the box, and nothing outside is evaluated."""
    box = np.array([[-2.0, 0.5], [-2.0, 2.0]])
    seen = []

    def recorded(x):
        seen.append(x.copy())
        return rosenbrock(x)

    optimum = minimise(recorded, np.array([-1.2, 1.0]), box, optimizer=optimizer)
    np.testing.assert_allclose(optimum.theta, [0.5, 0.25], atol=0.05)
    assert (np.array(seen) <= box[:, 1] + 1e-12).all()
    assert (np.array(seen) >= box[:, 0] - 1e-12).all()


def test_conjugate_gradients_get_there_by_themselves(monkeypatch):
    """Without the finish they end near the minimum, on a face of the box too."""
    nothing = SimpleNamespace(success=True, message="")
    monkeypatch.setattr(optimiser, "_finish", lambda function, iterations, seed: nothing)
    for high, end in ((0.5, [0.5, 0.25]), (2.0, [1.0, 1.0])):
        box = np.array([[-2.0, high], [-2.0, 2.0]])
        optimum = minimise(steep, np.array([-1.2, 1.0]), box, optimizer="cg")
        np.testing.assert_allclose(optimum.theta, end, atol=0.05)


@pytest.mark.parametrize("optimizer", ["cg", "annealing"])
def test_searches_that_magnify_rounding_end_at_the_very_minimum(optimizer):
    """From starts that are far apart, to 1e-6; an end at rounding has converged."""
    for start in ([-1.2, 1.0], [1.7, -0.3], [0.0, 0.0]):
        optimum = minimise(steep, np.array(start), BOX, optimizer=optimizer)
        np.testing.assert_allclose(optimum.theta, [1.0, 1.0], atol=1e-6)
        assert optimum.converged


def test_an_end_where_nothing_is_lower_to_rounding_has_converged():
    """The line search gives up there; how flat it is tells whether that is the end."""

    def rough(x):
        value, gradient = steep(x)
        return round(value, 9), gradient

    assert minimise(rough, np.array([-1.2, 1.0]), BOX, optimizer="cg").converged

    def wrong(x):
        value, gradient = steep(x)
        return value, -gradient

    assert not minimise(wrong, np.array([-1.2, 1.0]), BOX, optimizer="cg").converged


def test_several_starts_choose_the_better_basin():
    """One start is trapped in the shallow basin; with two, the deep one wins, in any order."""
    box = np.array([[-2.0, 2.0]])
    trapped = minimise_from(two_basins, [np.array([-1.05])], box)
    assert trapped.theta[0] < -0.9
    for starts in ([-1.05, 1.05], [1.05, -1.05]):
        best = minimise_from(two_basins, [np.array([s]) for s in starts], box)
        assert best.theta[0] == pytest.approx(1.0241, abs=0.02)
        assert best.value < trapped.value
        assert best.evaluations > 2


def test_progress_is_reported():
    """Each iteration reports its number, the best value so far and where it was."""
    calls = []

    def progress(iteration, value, theta):
        calls.append((iteration, value, theta.copy()))

    optimum = minimise(rosenbrock, np.array([-1.2, 1.0]), BOX, progress=progress)
    assert [c[0] for c in calls] == list(range(1, len(calls) + 1))
    values = [c[1] for c in calls]
    assert values == sorted(values, reverse=True)
    for _, value, theta in calls:
        assert value == rosenbrock(theta)[0]
    assert values[-1] == optimum.value


def test_one_small_gain_may_be_a_stumble(monkeypatch):
    """Two in a row are the end; one is not."""
    values = iter([10.0, 9.9999, 5.0, 4.9999, 4.9998, 0.0])

    def steps(function, iterations, seed):
        with contextlib.suppress(StopIteration):
            while True:
                function(np.zeros(1))
                function.report()
        return SimpleNamespace(success=False, message="")

    monkeypatch.setitem(OPTIMIZERS, "steps", steps)
    found = minimise(
        lambda theta: (next(values), np.zeros(1)),
        np.zeros(1),
        np.array([[-1.0, 1.0]]),
        optimizer="steps",
    )
    assert (found.value, found.evaluations, found.converged) == (4.9998, 5, True)


def test_iterations_are_limited():
    """A search may be stopped after a few iterations, and says so."""
    calls = []
    optimum = minimise(
        rosenbrock, np.array([-1.2, 1.0]), BOX, progress=lambda *a: calls.append(a), iterations=3
    )
    assert not optimum.converged
    assert len(calls) == 3
    assert "LIMIT" in optimum.message.upper()


def test_deterministic():
    """The same call gives the same optimum, to the last bit."""
    first, second = (minimise(rosenbrock, np.array([-1.2, 1.0]), BOX) for _ in range(2))
    np.testing.assert_array_equal(first.theta, second.theta)
    assert (first.value, first.evaluations) == (second.value, second.evaluations)
