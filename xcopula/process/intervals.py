r"""Values that are known as intervals, and the normal data that stand in for them.

A value below a detection limit, a zero under a law with an atom, a rounded or a saturated value all
say that the latent z lies between two limits. *Expectation propagation* puts a *stand-in* in the
place of each: a score that was observed with an error of its own variance. It is chosen so that
mean and variance of z are right given the interval and all other data. What these others say of z
is its *cavity*, normal with moments m and v; with the interval it is a truncated normal law.

The likelihood is then that of a Gaussian sample whose interval rows have the stand-ins' scores and
extra variances D. With :math:`Q = (K + D)^{-1}` and :math:`\alpha = Q w`, the cavity of a row is
:math:`m = w_i - \alpha_i / Q_{ii}` and :math:`v = 1 / Q_{ii} - D_{ii}`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from xcopula.arrays import FloatArray, IntArray
from xcopula.errors import NotPositiveDefiniteError
from xcopula.marginals.base import Marginal
from xcopula.marginals.intervals import interval_scores, is_interval
from xcopula.process.sample import Moments, Sample

__all__ = [
    "Held",
    "Intervals",
    "StandIns",
    "TruncatedNormal",
    "known_as_intervals",
    "settle",
    "sites_alone",
    "truncate",
    "typical_scores",
    "unsettled",
    "without_extra",
]

# In standard units: beyond so far a tail, or within so narrow an interval, closed forms cancel. An
# integral by a Gauss rule is then right to the last digits: the law decays by e^-38 in its range.
_FAR, _NARROW, _DECAY = 5.0, 0.5, 38.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
# Precisions of stand-ins: an interval that says nothing, and one that is a number.
_LEAST, _MOST = 1e-8, 1e10
_TINY = 1e-12
_LOG_ROOT = 0.5 * np.log(2.0 * np.pi)
# Stand-ins are found by going round: until none moves by more than the first, in units of its
# deviation. The second is taken where rounding keeps them moving. Steps remember so many before.
_SETTLED, _NEARLY, _ROUNDS, _MEMORY = 1e-9, 1e-6, 150, 4


class TruncatedNormal(NamedTuple):
    """Normal laws between limits, each number (c,).

    Attributes
    ----------
    log_mass : ndarray
        Log of the probability of the interval.
    mean, variance : ndarray
        Given the interval.
    shift : ndarray
        How far the interval moves the mean.
    gain : ndarray
        The part of the variance that the interval takes away, right also where it is tiny.
    by_low, by_high : ndarray
        Derivatives of the log mass by the limits.
    """

    log_mass: FloatArray
    mean: FloatArray
    variance: FloatArray
    shift: FloatArray
    gain: FloatArray
    by_low: FloatArray
    by_high: FloatArray


def truncate(moments: Moments, low: FloatArray, high: FloatArray) -> TruncatedNormal:
    """Return normal laws with these moments between limits (c,), right in far tails too."""
    scale = np.sqrt(moments.variance)
    a, b = (low - moments.mean) / scale, (high - moments.mean) / scale
    # The tail that is nearer to the centre is worked on: the other is its mirror image.
    flip = b < -a
    near, far = np.where(flip, -b, a), np.where(flip, -a, b)
    hard = (near > _FAR) | (far - near < _NARROW)
    log_mass, mean, left, gain = (np.empty_like(near) for _ in range(4))
    for which, rule in ((~hard, _in_closed_form), (hard, _by_quadrature)):
        if which.any():
            found = rule(near[which], far[which])
            log_mass[which], mean[which], left[which], gain[which] = found
    with np.errstate(under="ignore"):
        by_a, by_b = (np.exp(-0.5 * x * x - _LOG_ROOT - log_mass) / scale for x in (a, b))
    shift = scale * np.where(flip, -mean, mean)
    return TruncatedNormal(
        log_mass,
        moments.mean + shift,
        moments.variance * left,
        shift,
        gain,
        -by_a,
        by_b,
    )


def _in_closed_form(a: FloatArray, b: FloatArray) -> tuple[FloatArray, ...]:
    """Return log mass, mean, variance and one minus it of a standard normal in [a, b]."""
    above = ndtr(-b)
    mass = np.where(a > 0.0, ndtr(-a) - above, 1.0 - ndtr(a) - above)
    log_mass = np.where(a > 0.0, np.log(mass), np.log1p(-ndtr(a) - above))
    with np.errstate(under="ignore"):
        at_a, at_b = (np.exp(-0.5 * x * x - _LOG_ROOT) / mass for x in (a, b))
    mean = at_a - at_b
    edges = np.where(np.isinf(b), 0.0, b) * at_b - np.where(np.isinf(a), 0.0, a) * at_a
    gain = mean * mean + edges
    return log_mass, mean, 1.0 - gain, np.maximum(gain, 0.0)


def _by_quadrature(a: FloatArray, b: FloatArray) -> tuple[FloatArray, ...]:
    """Return the same, by an integral over what the density has not left behind."""
    reach = 2.0 * _DECAY / (np.sqrt(a * a + 2.0 * _DECAY) + np.abs(a))
    half = 0.5 * np.where(a > 0.0, np.minimum(b - a, reach), b - a)
    t = half * (1.0 + _NODES[:, None])
    weights = _WEIGHTS[:, None] * np.exp(-t * (a + 0.5 * t))
    total = weights.sum(axis=0)
    weights /= total
    mean = (weights * t).sum(axis=0)
    variance = (weights * (t - mean) ** 2).sum(axis=0)
    log_mass = np.log(half * total) - 0.5 * a * a - _LOG_ROOT
    return log_mass, a + mean, variance, 1.0 - variance


@dataclass(frozen=True)
class Intervals:
    """Observations of a sample that are known as intervals.

    Attributes
    ----------
    rows : ndarray (c,)
        Their numbers.
    ends : ndarray (2, c)
        Their limits as values; -inf and +inf leave a side open.
    low, high : ndarray (c,)
        Their limits as normal scores.
    """

    rows: IntArray
    ends: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, laws: Sequence[Marginal], sample: Sample) -> Intervals | None:
        """Find them by the limits of a sample and the atoms of its laws; None if there are none.

        An atom is an interval of scores, and belongs to every interval that it is an end of.
        """
        if sample.limits is None and all(law.atom is None for law in laws):
            return None
        parts = []
        for i, law in enumerate(laws):
            start, values = sample.offsets[i], sample.values[sample.task(i)]
            limits = sample.limits_of(i)
            inside = is_interval(limits)
            if law.atom is not None:
                inside = inside | (values == law.atom)
            rows = np.flatnonzero(inside)
            # A law that varies takes all rows at once; numbers are not asked for.
            scores = interval_scores(law, np.where(inside, limits, [[-np.inf], [np.inf]]))
            parts.append((rows + start, limits[:, rows], *scores[:, rows]))
        rows, ends, low, high = (np.concatenate(p, axis=-1) for p in zip(*parts, strict=True))
        return cls(rows, ends, low, high) if rows.size else None

    @property
    def possible(self) -> bool:
        """Whether each has some probability."""
        return bool((self.low < self.high).all())


def known_as_intervals(laws: Sequence[Marginal], sample: Sample) -> npt.NDArray[np.bool_]:
    """Tell which values (n,) are intervals: by their limits, or as the atom of their law."""
    found = sample.is_interval
    for i, law in enumerate(laws):
        if law.atom is not None:
            found[sample.task(i)] |= sample.values[sample.task(i)] == law.atom
    return found


def typical_scores(laws: Sequence[Marginal], sample: Sample) -> FloatArray:
    """Return the normal scores (n,) of a sample; of an interval the mean that it leaves z.

    That is what its law alone says, without other data. NaN where the interval is impossible.
    """
    each = [law.to_normal(sample.values[sample.task(i)]) for i, law in enumerate(laws)]
    scores, own = np.concatenate(each), Intervals.of(laws, sample)
    if own is not None:
        fine = own.low < own.high
        some = Moments(np.zeros(int(fine.sum())), np.ones(int(fine.sum())))
        scores[own.rows] = np.nan
        scores[own.rows[fine]] = truncate(some, own.low[fine], own.high[fine]).mean
    return scores


class StandIns(NamedTuple):
    """Normal data in the place of intervals, each (c,).

    Attributes
    ----------
    precision : ndarray
        Of their errors.
    pull : ndarray
        Their scores times that.
    """

    precision: FloatArray
    pull: FloatArray

    @classmethod
    def nothing(cls, size: int) -> StandIns:
        """Return stand-ins that say nothing."""
        return cls(np.full(size, _LEAST), np.zeros(size))

    @classmethod
    def of(cls, cavity: Moments, law: TruncatedNormal) -> StandIns:
        """Return what takes each cavity to the moments of the truncated law."""
        pull = (cavity.mean * law.gain + law.shift) / law.variance
        return cls(law.gain / law.variance, pull)._within()

    def _within(self) -> StandIns:
        """Return them with precisions that can be worked with; what a number says stays."""
        too_much = np.minimum(_MOST / np.maximum(self.precision, _LEAST), 1.0)
        return StandIns(np.clip(self.precision, _LEAST, _MOST), self.pull * too_much)

    @property
    def scores(self) -> FloatArray:
        """Their scores."""
        return np.asarray(self.pull / self.precision)

    @property
    def extra(self) -> FloatArray:
        """The variances of their errors."""
        return np.asarray(1.0 / self.precision)

    def cavity(self, alpha: FloatArray, precision: FloatArray) -> Moments:
        """Return what all other data say, from alpha and the diagonal of Q at their rows."""
        return without_extra(self.scores - alpha / precision, 1.0 / precision, self.extra)


def sites_alone(intervals: Intervals) -> StandIns:
    """Return the normal data in the place of intervals that the marginals alone suggest."""
    size = intervals.rows.size
    cavity = Moments(np.zeros(size), np.ones(size))
    return StandIns.of(cavity, truncate(cavity, intervals.low, intervals.high))


def without_extra(mean: FloatArray, variance: FloatArray, extra: FloatArray | None) -> Moments:
    """Return moments of the process, given those of stand-ins that have errors beside it."""
    if extra is None:
        return Moments(mean, variance)
    # A difference of large numbers, where a stand-in says nothing: rounding may make it negative.
    return Moments(mean, np.maximum(variance - extra, _TINY))


@dataclass(frozen=True, eq=False)
class Held:
    """The stand-ins that were found last: those of the next parameters are near.

    They only say where to begin. Threads may write at the same time: what one of them finds is
    whole, and as good as what another does.
    """

    _last: list[StandIns] = field(default_factory=list, init=False, repr=False)

    @property
    def stand_ins(self) -> StandIns | None:
        """What was found last, if anything was."""
        return next(iter(self._last), None)

    def keep(self, found: StandIns) -> None:
        """Remember what was found."""
        self._last[:] = [found]


def settle(
    held: Held,
    intervals: Intervals,
    cavities: Callable[[StandIns], Moments],
    describe: Callable[[], str],
) -> tuple[StandIns, Moments]:
    """Find the stand-ins that agree with each other; also return their cavities.

    All are renewed at once, given their cavities. Steps are those of Anderson: the combination of
    the last ones that would have moved least.

    Parameters
    ----------
    held : Held
        Where to begin; what is found is kept there.
    intervals : Intervals
    cavities : callable
        Returns what all other data say of each interval, given the stand-ins.
    describe : callable
        Names the parameters, for the error.

    Raises
    ------
    NotPositiveDefiniteError
        If they do not settle.
    """
    size, start = intervals.rows.size, held.stand_ins
    own = start if start is not None and start.pull.size == size else StandIns.nothing(size)
    points: list[FloatArray] = []
    moves: list[FloatArray] = []
    for _ in range(_ROUNDS):
        cavity = cavities(own)
        law = truncate(cavity, intervals.low, intervals.high)
        new = StandIns.of(cavity, law)
        unit = np.concatenate([law.variance, np.sqrt(law.variance)])
        points.append(np.concatenate(own))
        moves.append(np.concatenate(new) - points[-1])
        # Of a narrow interval rounding moves precision and pull together; the score stays.
        precision, pull = np.split(moves[-1], 2)
        moved = float(
            np.abs([precision, pull - own.scores * precision] * unit.reshape(2, -1)).max()
        )
        if not moved > _SETTLED:
            break
        del points[: -_MEMORY - 1], moves[: -_MEMORY - 1]
        step = _combined(np.stack(points), np.stack(moves), unit)
        own = StandIns(np.clip(step[:size], _LEAST, _MOST), step[size:])
    if not moved < _NEARLY:
        raise unsettled(size, describe())
    held.keep(own)
    return own, cavity


def unsettled(size: int, parameters: str) -> NotPositiveDefiniteError:
    """Return the error of intervals for which expectation propagation does not settle."""
    return NotPositiveDefiniteError(
        f"Expectation propagation of {size} censored values does not settle at {parameters}: "
        "limits of sites that almost coincide contradict each other. Check their limits, or drop "
        "or average such sites."
    )


def _combined(points: FloatArray, moves: FloatArray, unit: FloatArray) -> FloatArray:
    """Return where the combination of the last steps (k, p) goes that would have moved least."""
    step = points[-1] + moves[-1]
    if len(points) == 1:
        return np.asarray(step)
    change = np.diff(moves, axis=0)
    shares = np.linalg.lstsq((change * unit).T, moves[-1] * unit, rcond=1e-10)[0]
    return np.asarray(step - shares @ (np.diff(points, axis=0) + change))
