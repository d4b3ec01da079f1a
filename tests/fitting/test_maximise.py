"""The one search: on some terms first, with neighbours that suit, then on all."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from xcopula.errors import NotPositiveDefiniteError
from xcopula.fitting import maximise as module
from xcopula.fitting.maximise import minimise_in_stages

RNG = np.random.default_rng
BOX = np.tile([-40.0, 40.0], (3, 1))
NO_LENGTHS = np.empty(0, np.int64)


class World:
    """A sum of many random terms, quadratic or nearly; some of them stand for all."""

    def __init__(self, size=5000, seed=0):
        rng = RNG(seed)
        self.slopes = rng.normal(size=(size, 3)) * np.array([1.0, 0.3, 0.05])
        self.centres = rng.normal([1.0, -2.0, 3.0], 1.0, (size, 3))
        self.some = rng.permutation(size)
        self.prepared: list[tuple[np.ndarray, int | None]] = []
        self.evaluations = {True: 0, False: 0}

    def value(self, theta, rows=slice(None), weight=1.0):
        """Return the sum over some terms."""
        u = ((theta - self.centres[rows]) * self.slopes[rows]).sum(axis=1)
        root = np.sqrt(25.0 + u**2)
        return weight * 5.0 * (root - 5.0).sum(), weight * self.slopes[rows].T @ (5.0 * u / root)

    def prepare(self, theta, terms):
        """Return the objective of some terms, or of all."""
        self.prepared.append((theta, terms))
        part = terms is not None
        rows = self.some[:terms] if part else slice(None)
        weight = len(self.some) / terms if part else 1.0

        def informed(point):
            self.evaluations[not part] += 1
            u = ((point - self.centres[rows]) * self.slopes[rows]).sum(axis=1)
            bend = (self.slopes[rows].T * (125.0 / (25.0 + u**2) ** 1.5)) @ self.slopes[rows]
            return *self.value(point, rows, weight), weight * bend

        return informed

    @functools.cached_property
    def minimum(self):
        """The minimum of the whole, by Newton's method."""
        theta = np.zeros(3)
        for _ in range(50):
            u = ((theta - self.centres) * self.slopes).sum(axis=1)
            bend = (self.slopes.T * (125.0 / (25.0 + u**2) ** 1.5)) @ self.slopes
            theta = theta - np.linalg.solve(bend, self.value(theta)[1])
        assert np.abs(self.value(theta)[1]).max() < 1e-8
        return self.value(theta)[0]


def search(prepare, starts=None, **options):
    """Minimise in stages from zero, unless it is said otherwise."""
    given = {"terms": 500, "size": 500, "lengths": NO_LENGTHS, "anew": False, **options}
    return minimise_in_stages(prepare, starts or [np.zeros(3)], BOX, **given)


@pytest.mark.parametrize("seed", range(6))
def test_ends_at_the_minimum_of_the_whole(seed):
    """Within 0.3 nats, by few evaluations of all terms, though the part's minimum is elsewhere."""
    world = World(seed=seed)
    optimum = search(world.prepare)
    assert optimum.converged
    assert "promises less than 0.1 nats" in optimum.message
    assert world.minimum - 1e-6 <= optimum.value < world.minimum + 0.15
    assert optimum.value == pytest.approx(world.value(optimum.theta)[0])
    assert world.evaluations[True] <= 4
    assert optimum.evaluations == world.evaluations[True] + world.evaluations[False]
    part = search(World(seed=seed).prepare, whole=False)
    assert world.value(part.theta)[0] > optimum.value
    assert world.evaluations[False] > 2
    np.testing.assert_array_equal(optimum.prepared, world.prepared[-1][0])


def test_some_seeds_gain_much():
    """The part alone would have missed the whole's minimum by more than is tolerated."""
    missed = []
    for seed in range(6):
        world = World(seed=seed)
        part = search(world.prepare, whole=False)
        missed.append(world.value(part.theta)[0] - world.minimum)
    assert max(missed) > 0.6


def test_all_terms_are_one_stage():
    """Without a number of terms one search on all of them is all there is."""
    world = World()
    optimum = search(world.prepare, terms=None)
    assert [terms for _, terms in world.prepared] == [None]
    assert optimum.value == pytest.approx(world.minimum, abs=0.01)
    np.testing.assert_array_equal(optimum.prepared, np.zeros(3))


def test_what_the_part_says_may_be_enough():
    """Then nothing is made of all terms."""
    world = World()
    optimum = search(world.prepare, whole=False)
    assert {terms for _, terms in world.prepared} == {500}
    assert world.evaluations[True] == 0
    assert optimum.value == pytest.approx(world.value(optimum.theta, world.some[:500], 10.0)[0])


class TestNeighboursAnew:
    """What is made of a sample suits the lengths that it is made for."""

    @staticmethod
    def prepare(calls, drift):
        """Return objectives whose minimum is where they were made for, moved by a function."""

        def prepare(theta, terms):
            calls.append((theta.copy(), terms))
            minimum = drift(theta)

            def objective(point):
                away = point - minimum
                return 50.0 * float(away @ away), 100.0 * away, None

            return objective

        return prepare

    @pytest.mark.parametrize("terms", [None, 500])
    def test_until_lengths_stay(self, terms):
        """The structure is made again while a length moves by a tenth, and searched from there."""
        calls = []
        goal = np.array([2.0, 0.0, 0.0])
        # Each time half of the way is left.
        optimum = search(
            self.prepare(calls, lambda made: 0.5 * (made + goal)),
            terms=terms,
            lengths=np.array([0]),
            anew=True,
        )
        made = [theta[0] for theta, t in calls if t == terms]
        rounds = [0.0, 1.0, 1.5, 1.75, 1.875] if terms is None else [0.0, 1.0, 1.5]
        # A rough search ends where 0.05 nats are left.
        np.testing.assert_allclose(made[: len(rounds)], rounds, atol=0.035)
        if terms:
            assert calls[-1][1] is None
            np.testing.assert_array_equal(calls[-1][0], optimum.prepared)
        else:
            np.testing.assert_array_equal(optimum.prepared, calls[-1][0])

    def test_not_for_ever(self):
        """Neighbours that chase their lengths are given up after some rounds."""
        calls = []
        search(self.prepare(calls, lambda made: made + 1.0), lengths=np.array([0]), anew=True)
        assert len([t for _, t in calls if t]) == 1 + module._ROUNDS_ON_SOME
        # For the steps on all terms, and once more after them.
        assert len([t for _, t in calls if t is None]) == 2

    @pytest.mark.parametrize("anew", [True, False])
    def test_steps_on_all_terms_move_lengths_too(self, anew):
        """Then neighbours are chosen once more for where they ended, and all terms evaluated."""
        calls = []

        def prepare(theta, terms):
            calls.append((theta.copy(), terms))
            goal = np.zeros(3) if terms else np.array([1.0, 0.0, 0.0])

            def objective(point):
                away = point - goal
                return 50.0 * float((away**2).sum()), 100.0 * away, None

            return objective

        optimum = search(prepare, lengths=np.array([0]), anew=anew)
        assert [terms for _, terms in calls] == ([500, None, None] if anew else [500, None])
        np.testing.assert_allclose(optimum.theta, [1.0, 0.0, 0.0], atol=0.05)
        np.testing.assert_array_equal(optimum.prepared, calls[-1][0])
        assert calls[-1][0][0] == pytest.approx(1.0 if anew else 0.0, abs=0.05)

    def test_the_last_search_is_a_fine_one(self):
        """What the part says, where it is all, is said to a hundredth of a nat."""
        world = World()
        optimum = search(world.prepare, whole=False, lengths=np.arange(3), anew=True)
        rows = world.some[:500]
        best = min(
            search(world.prepare, [start], whole=False).value
            for start in (optimum.theta, np.array([1.0, -2.0, 3.0]))
        )
        assert optimum.value == pytest.approx(best, abs=0.02)
        assert optimum.value == pytest.approx(world.value(optimum.theta, rows, 10.0)[0])

    @pytest.mark.parametrize("anew", [True, False])
    def test_only_lengths_count(self, anew):
        """Other parameters may move, and where nothing depends on lengths, these too."""
        calls = []
        goal = np.array([3.0, 0.02, 3.0])
        lengths = np.array([1]) if anew else np.array([0])
        search(self.prepare(calls, lambda made: goal), lengths=lengths, anew=anew)
        assert [t for _, t in calls] == [500, None]

    def test_evaluations_of_all_rounds_count(self):
        """Also those of the rounds before the last."""
        calls, counts = [], [0]
        prepare = self.prepare(calls, lambda made: 0.5 * (made + 2.0))

        def counted(theta, terms):
            objective = prepare(theta, terms)

            def count(point):
                counts[0] += 1
                return objective(point)

            return count

        optimum = search(counted, terms=None, lengths=np.array([0]), anew=True)
        assert optimum.evaluations == counts[0]


class TestWalls:
    def test_an_infinite_start_is_passed_over(self):
        """Another start that is finite is followed."""
        world = World()

        def prepare(theta, terms):
            inner = world.prepare(theta, terms)
            return lambda p: (np.inf, np.zeros(3), None) if p[0] < -20.0 else inner(p)

        optimum = search(prepare, [np.array([-30.0, 0.0, 0.0]), np.zeros(3)])
        assert optimum.converged
        assert optimum.value < world.minimum + 0.3

    def test_infinite_everywhere(self):
        """It has not converged, and says why."""
        optimum = search(lambda *_: lambda p: (np.inf, np.zeros(3), None))
        assert not optimum.converged
        assert "zero at every point" in optimum.message
        part = search(lambda *_: lambda p: (np.inf, np.zeros(3), None), whole=False)
        assert not part.converged
        assert "zero at every point" in part.message

    def test_the_whole_is_infinite_where_the_part_ends(self):
        """What the part found is returned, as not converged."""
        world = World()

        def prepare(theta, terms):
            inner = world.prepare(theta, terms)
            return inner if terms else lambda p: (np.inf, np.zeros(3), None)

        optimum = search(prepare)
        expected = search(World().prepare, whole=False)
        # One search ends roughly, since another was to follow.
        np.testing.assert_allclose(optimum.theta, expected.theta, atol=1e-3)
        assert not optimum.converged
        assert "zero at every point" in optimum.message

    @pytest.mark.parametrize("wall", ["infinite", "not positive definite"])
    def test_a_step_into_a_wall_is_shortened(self, wall):
        """A step that meets one is tried again, shorter, and the search goes on from there."""

        def prepare(theta, terms):
            goal, edge = (-3.0, np.inf) if terms else (2.0, 0.5)

            def objective(p):
                if p[0] > edge:
                    if wall == "infinite":
                        return np.inf, np.zeros(3), None
                    raise NotPositiveDefiniteError("too long")
                return float(((p - goal) ** 2).sum()), 2.0 * (p - goal), None

            return objective

        optimum = search(prepare)
        assert -3.0 < optimum.theta[0] <= 0.5
        # The part's minimum has 75 nats, the best within the wall much less.
        assert optimum.value < 25.0

    def test_no_step_gains(self):
        """A slope that promises what the value does not keep leaves the search where it began."""
        evaluations = []

        def prepare(theta, terms):
            def part(p):
                return float(p @ p), 2.0 * p, None

            def whole(p):
                evaluations.append(p)
                return 7.0 + float(np.abs(p).sum()), np.full(3, -5.0), None

            return part if terms else whole

        optimum = search(prepare)
        assert optimum.value == pytest.approx(7.0)
        np.testing.assert_allclose(optimum.theta, 0.0, atol=1e-8)
        assert len(evaluations) <= 25

    @pytest.mark.parametrize("bend", [0.5, 30.0])
    def test_the_part_bends_otherwise(self, bend):
        """More or less than the whole: what the whole says is learnt on the way."""

        def prepare(theta, terms):
            def part(p):
                return bend * float(((p - 1.0) ** 2).sum()), 2.0 * bend * (p - 1.0), None

            def whole(p):
                away = p - np.array([3.0, 2.0, 0.0])
                return 5.0 * float(away @ away), 10.0 * away, None

            return part if terms else whole

        optimum = search(prepare)
        assert optimum.converged
        assert optimum.value < 0.3


def test_the_whole_ends_no_higher_than_it_began():
    """Whatever the part makes of it."""
    rng = RNG(0)
    for _ in range(20):
        bends = rng.uniform(0.2, 5.0, (2, 3))
        centres = rng.normal(size=(2, 3)) * 3.0

        def prepare(theta, terms, bends=bends, centres=centres):
            k = int(terms is None)

            def objective(p):
                u = p - centres[k]
                return float((bends[k] * u**2).sum()), 2.0 * bends[k] * u, None

            return objective

        optimum = search(prepare)
        assert optimum.value <= prepare(None, None)(centres[0])[0] + 1e-9
        if optimum.converged and "no step" not in optimum.message:
            # The part says how the whole bends: what it says is left is so within that.
            assert optimum.value < 0.3 * (bends[0] / bends[1]).max() + 0.1
