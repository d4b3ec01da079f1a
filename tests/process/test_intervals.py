"""Truncated normal laws against integrals, and stand-ins that agree with each other."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from scipy.integrate import quad
from scipy.special import log_ndtr

from xcopula.errors import NotPositiveDefiniteError
from xcopula.marginals import LogNormal
from xcopula.process import Moments, Sample
from xcopula.process.intervals import (
    Held,
    Intervals,
    StandIns,
    known_as_intervals,
    settle,
    truncate,
    without_extra,
)

CASES = {
    "below a limit": (0.3, 2.0, -np.inf, 0.5),
    "above a limit": (-0.3, 0.5, 0.5, np.inf),
    "both sides": (0.0, 1.0, -1.0, 1.3),
    "about the centre": (0.0, 1.0, -0.1, 0.2),
    "narrow": (0.4, 1.0, 1.0, 1.0 + 1e-6),
    "not quite narrow": (0.0, 1.0, 2.0, 2.51),
    "near the tail": (0.0, 1.0, 4.9, 6.0),
    "in the tail": (0.0, 1.0, 5.01, 5.2),
    "30 deviations below": (0.0, 1.0, -np.inf, -30.0),
    "30 deviations above": (0.0, 1.0, 30.0, np.inf),
    "narrow at 30 deviations": (0.0, 1.0, 30.0, 30.1),
    "200 deviations above": (0.0, 1.0, 200.0, np.inf),
    "a small variance": (1.0, 0.01, 3.0, np.inf),
}


def integrated(mean, variance, low, high):
    """Return log mass, mean and variance of a truncated normal law by quadrature."""
    scale = np.sqrt(variance)
    a, b = (low - mean) / scale, (high - mean) / scale
    if b < -a:
        log_mass, centre, spread = integrated(-mean, variance, -high, -low)
        return log_mass, -centre, spread
    start = max(a, -12.0)
    end = min(b - start, 40.0 / max(start, 0.0) if start > 3.0 else 24.0)

    def moment(function):
        def weighted(t):
            decay = t * start + 0.5 * t * t if start > 0.0 else 0.5 * (start + t) ** 2
            return function(t) * np.exp(-decay)

        return quad(weighted, 0.0, end, epsabs=0.0, epsrel=1e-12, limit=400)[0]

    total = moment(lambda t: 1.0)
    centre = moment(lambda t: t) / total
    spread = moment(lambda t: (t - centre) ** 2) / total
    offset = 0.5 * start**2 if start > 0.0 else 0.0
    log_mass = np.log(total) - 0.5 * np.log(2.0 * np.pi) - offset
    return log_mass, mean + scale * (start + centre), variance * spread


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
class TestTruncate:
    def test_moments(self, case):
        """Log mass, mean and variance equal integrals to 1e-10, in far tails too."""
        mean, variance, low, high = map(np.atleast_1d, case)
        law = truncate(Moments(mean, variance), low, high)
        expected = integrated(*case)
        assert law.log_mass[0] == pytest.approx(expected[0], rel=1e-10, abs=1e-12)
        assert law.mean[0] == pytest.approx(expected[1], rel=1e-10)
        assert law.variance[0] == pytest.approx(expected[2], rel=1e-9)
        assert law.shift[0] == pytest.approx(law.mean[0] - mean[0], rel=1e-9)
        assert law.gain[0] == pytest.approx(1.0 - law.variance[0] / variance[0], abs=1e-12)

    def test_slopes(self, case):
        """Derivatives by the limits equal central differences of the log mass."""
        mean, variance, low, high = map(np.atleast_1d, case)
        moments = Moments(mean, variance)
        law = truncate(moments, low, high)
        step = 1e-5 * min(1.0, float(high[0] - low[0]))
        for slope, end, (before, after) in (
            (law.by_low, low, ((low - step, high), (low + step, high))),
            (law.by_high, high, ((low, high - step), (low, high + step))),
        ):
            if np.isinf(end[0]):
                assert slope[0] == 0.0
                continue
            rise = truncate(moments, *after).log_mass - truncate(moments, *before).log_mass
            assert slope[0] == pytest.approx(rise[0] / (2.0 * step), rel=1e-4)


def test_what_an_open_interval_takes_away_is_tiny_but_right():
    """Far from its limit an interval takes phi(b) b of the variance away, to many digits."""
    law = truncate(Moments(np.zeros(1), np.ones(1)), np.array([-np.inf]), np.array([8.0]))
    density = np.exp(-32.0) / np.sqrt(2.0 * np.pi)
    assert law.gain[0] == pytest.approx(8.0 * density, rel=1e-9)
    assert law.log_mass[0] == pytest.approx(log_ndtr(8.0), rel=1e-12)


class TestIntervals:
    INPUTS = (np.arange(4.0)[:, None],)

    def test_of_limits(self):
        """Limits become scores by the law; open sides stay open."""
        limits = [np.array([[-np.inf, 1.0, 0.5, 3.0], [0.2, 2.0, 0.5, np.inf]])]
        sample = Sample.of(self.INPUTS, [np.array([0.1, 1.5, 0.5, 4.0])], limits=limits)
        law = LogNormal(0.1, 0.8)
        found = Intervals.of((law,), sample)
        np.testing.assert_array_equal(found.rows, [0, 1, 3])
        np.testing.assert_allclose(found.low, [-np.inf, law.to_normal(1.0), law.to_normal(3.0)])
        np.testing.assert_allclose(found.high, [law.to_normal(0.2), law.to_normal(2.0), np.inf])
        assert found.possible
        np.testing.assert_array_equal(known_as_intervals((law,), sample), [True, True, False, True])

    def test_of_an_atom(self):
        """A value that is the atom, and limits that hold it, are open below."""
        law = reference.Dry(0.4)
        values = np.array([0.0, 1.0, 0.1, 2.0])
        plain = Sample.of(self.INPUTS, [values])
        found = Intervals.of((law,), plain)
        np.testing.assert_array_equal(found.rows, [0])
        assert found.low[0] == -np.inf
        assert found.high[0] == pytest.approx(law.to_normal(0.0))
        np.testing.assert_array_equal(
            known_as_intervals((law,), plain), [True, False, False, False]
        )
        limits = np.stack([values, values])
        limits[:, 2] = 0.0, 0.5
        both = Intervals.of((law,), Sample.of(self.INPUTS, [values], limits=[limits]))
        np.testing.assert_array_equal(both.rows, [0, 2])
        np.testing.assert_array_equal(both.low, -np.inf)
        assert both.high[1] == pytest.approx(law.to_normal(0.5))

    def test_without_probability(self):
        """An interval outside the support has none."""
        limits = [np.array([[0.5, 1.0, 1.0, -2.0], [0.5, 1.0, 1.0, -1.0]])]
        sample = Sample.of(self.INPUTS, [np.array([0.5, 1.0, 1.0, -1.5])], limits=limits)
        assert not Intervals.of((LogNormal(),), sample).possible

    def test_none(self):
        """A sample of numbers has none."""
        sample = Sample.of(self.INPUTS, [np.ones(4)])
        assert Intervals.of((LogNormal(),), sample) is None
        assert Intervals.of((reference.Dry(),), sample) is None


class TestStandIns:
    def test_take_the_cavity_to_the_truncated_law(self):
        """Precisions and pulls of the cavity and the stand-in add up to those of the law."""
        cavity = Moments(np.array([0.3, -1.0]), np.array([0.5, 2.0]))
        law = truncate(cavity, np.array([-np.inf, 0.0]), np.array([0.0, 0.4]))
        found = StandIns.of(cavity, law)
        np.testing.assert_allclose(found.precision + 1.0 / cavity.variance, 1.0 / law.variance)
        pull = found.pull + cavity.mean / cavity.variance
        np.testing.assert_allclose(pull, law.mean / law.variance)
        np.testing.assert_allclose(found.scores * found.precision, found.pull)

    def test_a_number_and_nothing(self):
        """A very narrow interval is a number, one of all numbers says nothing."""
        cavity = Moments(np.array([0.3, 0.3]), np.array([0.5, 0.5]))
        law = truncate(cavity, np.array([1.0, -np.inf]), np.array([1.0 + 1e-9, np.inf]))
        found = StandIns.of(cavity, law)
        assert found.scores[0] == pytest.approx(1.0, abs=1e-8)
        assert found.extra[0] == pytest.approx(1e-10)
        assert found.extra[1] == pytest.approx(1e8)
        assert found.pull[1] == 0.0

    def test_errors_are_no_part_of_the_process(self):
        """Their variance is taken off, and what rounding makes of nothing is not negative."""
        found = without_extra(np.zeros(2), np.array([1.5, 2.0]), np.array([1.0, 2.1]))
        np.testing.assert_allclose(found.variance, [0.5, 1e-12])


class TestSettle:
    def intervals(self, low, high):
        """Return intervals of scores."""
        rows = np.arange(len(low))
        return Intervals(rows, np.stack([low, high]), np.array(low), np.array(high))

    def test_independent_values_settle_at_once(self):
        """Cavities that do not depend on stand-ins need two rounds; what is found is kept."""
        held, asked = Held(), []

        def cavities(stand_ins):
            asked.append(stand_ins)
            return Moments(np.array([0.1, 0.2]), np.array([1.0, 2.0]))

        own = self.intervals([-np.inf, 0.5], [0.0, 1.0])
        found, cavity = settle(held, own, cavities, lambda: "here")
        assert len(asked) == 2
        np.testing.assert_array_equal(cavity, cavities(None))
        law = truncate(cavities(None), own.low, own.high)
        np.testing.assert_allclose(found.extra, StandIns.of(cavities(None), law).extra)
        del asked[:]
        settle(held, own, cavities, lambda: "here")
        assert len(asked) == 1

    def test_what_never_settles_is_told(self):
        """Cavities that jump for ever end in an error that names the parameters."""
        rng = np.random.default_rng(0)

        def cavities(stand_ins):
            return Moments(rng.normal(size=1), np.ones(1))

        with pytest.raises(
            NotPositiveDefiniteError, match=r"of 1 censored values does not settle at here"
        ):
            settle(Held(), self.intervals([0.0], [1.0]), cavities, lambda: "here")
