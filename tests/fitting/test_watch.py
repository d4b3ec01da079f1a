"""The best point of a search is kept, and each iteration is told."""

from __future__ import annotations

import numpy as np
import pytest

from xcopula.fitting.maximise import minimise_in_stages
from xcopula.fitting.newton import minimise_from
from xcopula.fitting.watch import Watch, best_of, keep_best
from xcopula.progress.run import Run

BOX = np.array([[-3.0, 3.0]] * 2)


def bowl(scale=1.0, centre=0.5):
    """Return a function with its minimum at the centre."""

    def value(theta):
        away = theta - centre
        return scale * float(away @ away), 2.0 * scale * away, None

    return value


class Heard:
    """A step with a listener, and what is kept."""

    def __init__(self):
        self.events, self.kept = [], []
        self.watch = None

    def __enter__(self):
        self.step = Run("fit", self.events.append).step("pair", ("Cd", "Ni"))
        self.watch = Watch(self.step.__enter__(), lambda *kept: self.kept.append(kept))
        return self

    def __exit__(self, *failure):
        self.step.__exit__(*failure)

    @property
    def going(self):
        """Events of iterations."""
        return [e for e in self.events if e.state == "go"]


def test_iterations_of_all_starts_are_told():
    """With the number of the start; the search that follows has that of the best."""
    starts = [np.full(2, 2.5), np.full(2, 0.4), np.full(2, -2.0)]
    with Heard() as heard:
        optimum = minimise_from(bowl(), starts, BOX, watch=heard.watch)
    numbers = list(dict.fromkeys((e.start, e.starts) for e in heard.going))
    assert numbers == [(1, 3), (2, 3), (3, 3)]
    assert heard.going[-1].log_posterior == -optimum.value
    kept, value = heard.kept[-1]
    assert value == -optimum.value
    np.testing.assert_array_equal(kept, optimum.theta)
    assert [v for _, v in heard.kept] == sorted(v for _, v in heard.kept)


def test_the_best_of_several_starts_is_kept():
    """A start that is worse replaces nothing."""
    watch_kept = []
    watch = Watch(keep=lambda theta, value: watch_kept.append((theta, value)))
    for value in (3.0, 2.0, 5.0, 1.0):
        watch(1, value, np.array([value]))
    assert [v for _, v in watch_kept] == [-3.0, -2.0, -1.0]


@pytest.mark.parametrize("whole", [True, False])
def test_a_later_stage_replaces_an_earlier_one(whole):
    """Values of a part and of the whole cannot be compared: the last stage has the last word."""

    def prepare(theta, terms):
        # The whole has far larger values than its part, and its minimum elsewhere.
        return bowl(1.0, 0.5) if terms else bowl(100.0, 0.7)

    with Heard() as heard:
        staged = minimise_in_stages(
            prepare,
            [np.zeros(2)],
            BOX,
            terms=5,
            size=5,
            lengths=np.array([0]),
            anew=True,
            whole=whole,
            watch=heard.watch,
        )
    np.testing.assert_allclose(heard.kept[-1][0], staged.theta, atol=1e-3)
    np.testing.assert_allclose(staged.theta, 0.7 if whole else 0.5, atol=0.05)


def test_what_is_kept_belongs_to_a_ticket():
    """Another one has nothing, and nothing is left when the fit has ended."""
    with keep_best(5) as best:
        best_of(5).keep_pair(2, np.ones(3), -1.0)
        best_of(6).keep_pair(1, np.zeros(3), -1.0)
        best_of(5).keep_whole("process")(np.arange(2.0), -7.0)
        assert list(best.pairs) == [2]
        assert best.whole[0] == "process"
        assert best.log_posterior == -7.0
        counted = best.counted(bowl())
        for _ in range(3):
            counted(np.zeros(2))
        assert best.evaluations == 3
    assert best_of(5) is not best
