r"""What a sample says at given parameters, whatever evaluates its covariance.

.. math:: L(\theta) = \tfrac12 w' (K^{-1} - I) w + \tfrac12 \log|K| - \sum_i \log f(y_i)

The normal scores w and the densities are the marginal laws' part, written here once; a solver adds
:math:`\alpha = K^{-1} w`, the determinant, and the derivatives by the covariance.

Values that are known as intervals have stand-ins (:mod:`xcopula.process.intervals`), found by the
solver: K then has their extra variances on its diagonal. With Z the probability of the interval
under the cavity of moments m and v, each counts
:math:`\log Z + \tfrac12 \log(v + D_{ii}) + \tfrac12 (w_i - m)^2 / (v + D_{ii})` instead of a
density. Where the stand-ins have settled their derivatives cancel, so that the
gradient is that of the Gaussian sample, and by the laws that of log Z by the limits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from xcopula.arrays import FloatArray
from xcopula.kernels.covariance import Contraction
from xcopula.marginals.base import Marginal
from xcopula.process.copula import Process
from xcopula.process.intervals import Intervals, StandIns, TruncatedNormal, truncate
from xcopula.process.sample import Moments, Sample

__all__ = ["Evidence"]

# Of differences of gradients, in widths of the bounds: wide, since the gradients of some marginals
# are differences too, whose rounding it divides.
_STEP = 1e-4


@dataclass(frozen=True)
class Evidence:
    """Normal scores and log densities of a sample at theta.

    Attributes
    ----------
    process : Process
    sample : Sample
    theta : ndarray
    laws : tuple of Marginal
        At theta, each bound to its rows if it varies.
    scores : ndarray (n,)
        Of an interval that of its stand-in; zero before that is known.
    log_densities : ndarray (n,)
        Zero for intervals.
    weights : ndarray (n,), optional
        How often each observation counts, where that is not once: it may stand for others, or be
        given and not count at all.
    intervals : Intervals, optional
        Values that are known as intervals.
    stand_ins : StandIns, optional
        What stands in for them.
    cavity : Moments, optional
        What all other data say of them.
    """

    process: Process
    sample: Sample
    theta: FloatArray
    laws: tuple[Marginal, ...]
    scores: FloatArray
    log_densities: FloatArray
    weights: FloatArray | None = None
    intervals: Intervals | None = None
    stand_ins: StandIns | None = None
    cavity: Moments | None = None

    @classmethod
    def of(
        cls,
        process: Process,
        sample: Sample,
        theta: FloatArray,
        weights: FloatArray | None = None,
    ) -> Evidence:
        """Evaluate the laws of a process at theta."""
        laws = process.laws(theta, sample)
        values = [sample.values[sample.task(i)] for i in range(sample.tasks)]
        pairs = list(zip(laws, values, strict=True))
        scores = np.concatenate([law.to_normal(y) for law, y in pairs])
        log_densities = np.concatenate([law.log_density(y) for law, y in pairs])
        intervals = Intervals.of(laws, sample)
        if intervals is not None:
            scores[intervals.rows] = log_densities[intervals.rows] = 0.0
        return cls(process, sample, theta, laws, scores, log_densities, weights, intervals)

    @property
    def possible(self) -> bool:
        """Whether every value has a density under its law, and every interval a probability."""
        dense = bool(np.isfinite(self.log_densities).all() and np.isfinite(self.scores).all())
        return dense and (self.intervals is None or self.intervals.possible)

    def with_stand_ins(self, stand_ins: StandIns, cavity: Moments | None = None) -> Evidence:
        """Return the evidence with normal data in the place of its intervals."""
        assert self.intervals is not None
        scores = self.scores.copy()
        scores[self.intervals.rows] = stand_ins.scores
        return replace(self, scores=scores, stand_ins=stand_ins, cavity=cavity)

    @property
    def extra(self) -> FloatArray | None:
        """Variances (n,) of the stand-ins' errors, zero for numbers; None if all are numbers."""
        if self.intervals is None or self.stand_ins is None:
            return None
        extra = np.zeros(self.sample.size)
        extra[self.intervals.rows] = self.stand_ins.extra
        return extra

    def impossible(self) -> tuple[float, FloatArray]:
        """Return what an objective returns where a value has no density."""
        return np.inf, np.zeros(self.process.size)

    def value(self, alpha: FloatArray, log_determinant: float) -> float:
        """Return the negative log-likelihood, with alpha = K^-1 w and log|K|."""
        density = (self.log_densities + self.log_masses()).sum()
        return float(0.5 * (self.scores @ self._pull(alpha) + log_determinant) - density)

    def log_masses(self) -> FloatArray:
        """Return what intervals count instead of a density (n,), zero for numbers."""
        out = np.zeros(self.sample.size)
        if self.intervals is not None:
            law, stand_ins, cavity = self._settled()
            total = cavity.variance + stand_ins.extra
            off = (stand_ins.scores - cavity.mean) ** 2 / total
            out[self.intervals.rows] = law.log_mass + 0.5 * (np.log(total) + off)
        return out

    def _settled(self) -> tuple[TruncatedNormal, StandIns, Moments]:
        assert self.intervals is not None
        assert self.stand_ins is not None
        assert self.cavity is not None
        law = truncate(self.cavity, self.intervals.low, self.intervals.high)
        return law, self.stand_ins, self.cavity

    def gradient(
        self, alpha: FloatArray, by: Contraction, ends: FloatArray | None = None
    ) -> FloatArray:
        """Return the gradient by theta, given the derivatives by the covariance.

        Those by the limits of intervals, (2, n), are in ``ends``; else stand-ins tell them.
        """
        covariance = self.process.covariance
        by_covariance = covariance.pullback(self.theta[: covariance.size], by)
        return np.concatenate([by_covariance, self.by_marginals(alpha, ends)])

    def by_marginals(self, alpha: FloatArray, ends: FloatArray | None = None) -> FloatArray:
        """Return the part of :meth:`gradient` by parameters of the marginals."""
        process, pull = self.process, self._pull(alpha)
        start = process.covariance.size
        gradient = np.empty(process.size - start)
        bounded = None if self.intervals is None else self._bounded(ends)
        for i, (law, place) in enumerate(zip(self.laws, process.slices, strict=True)):
            where = slice(place.start - start, place.stop - start)
            task = self.sample.task(i)
            values, own = self.sample.values[task], self.weights
            count = None if own is None else own[task]
            # A law far from its values has slopes that overflow: the optimiser meets a wall there.
            with np.errstate(invalid="ignore", over="ignore"):
                if bounded is None:
                    gradient[where] = law.score_pullback(values, pull[task])
                    gradient[where] -= law.density_pullback(values, count)
                else:
                    limits, slopes = (part[:, task] for part in bounded)
                    gradient[where] = self._by_law(law, values, pull[task], limits, slopes, count)
        return gradient

    def moves(self) -> FloatArray:
        """Return the derivatives of the scores (n, p) by parameters of the marginals.

        Those of intervals are zero: their sites are held.
        """
        process = self.process
        start = process.covariance.size
        out = np.zeros((self.sample.size, process.size - start))
        for i, (law, where) in enumerate(zip(self.laws, process.slices, strict=True)):
            task = self.sample.task(i)
            columns = slice(where.start - start, where.stop - start)
            with np.errstate(invalid="ignore", over="ignore"):
                out[task, columns] = law.to_normal_gradient(self.sample.values[task])
        if self.intervals is not None:
            out[self.intervals.rows] = 0.0
        return out

    def marginal_curvature(self, alpha: FloatArray, ends: FloatArray | None = None) -> FloatArray:
        """Return second derivatives (p, p) by parameters of the marginals, alpha held.

        By differences of the gradient: what the product of :meth:`moves` with the precision of the
        scores leaves out. Parameters of one marginal that affect values of their own, such as those
        of each month, are moved together.
        """
        process = self.process
        start, size = process.covariance.size, process.size - process.covariance.size
        out, bounded = np.zeros((size, size)), None
        if self.intervals is not None:
            bounded = self._bounded(ends)
        for i, (law, where) in enumerate(zip(self.laws, process.slices, strict=True)):
            task = self.sample.task(i)
            block = out[
                where.start - start : where.stop - start, where.start - start : where.stop - start
            ]
            if block.size:
                block[:] = self._curvature(law, task, alpha[task], bounded)
        return out

    def _curvature(
        self,
        law: Marginal,
        task: slice,
        alpha: FloatArray,
        bounded: tuple[FloatArray, FloatArray] | None,
    ) -> FloatArray:
        """Return the second derivatives by the parameters of one marginal."""
        values, theta, parts = self.sample.values[task], law.theta, law.parts
        count = None if self.weights is None else self.weights[task]
        ends = None if bounded is None else [part[:, task] for part in bounded]
        numbers = None if ends is None else np.isnan(ends[0][0])

        def gradient(point: FloatArray) -> FloatArray:
            moved = law.with_theta(point)
            with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
                scores = moved.to_normal(values)
                pull = alpha - (scores if count is None else count * scores)
                if ends is None:
                    return moved.score_pullback(values, pull) - moved.density_pullback(
                        values, count
                    )
                assert numbers is not None
                pull = np.where(numbers, pull, 0.0)
                return self._by_law(moved, values, pull, ends[0], ends[1], count)

        # A step is no less than what rounding leaves of it.
        steps = np.maximum(_STEP * np.ptp(law.bounds, axis=1), 8.0 * np.spacing(np.abs(theta)))
        rows, shared = np.zeros((theta.size, theta.size)), parts[-1].stop
        before = gradient(theta)
        for k in range(max(part.stop - part.start for part in parts)):
            together = [part for part in parts if part.start + k < part.stop]
            point = theta.copy()
            for part in together:
                point[part.start + k] += steps[part.start + k]
            change = gradient(point) - before
            for part in together:
                rows[part.start + k, part] = change[part] / steps[part.start + k]
        for k in range(shared, theta.size):
            point = theta.copy()
            point[k] += steps[k]
            rows[k] = (gradient(point) - before) / steps[k]
            rows[:shared, k] = rows[k, :shared]
        return 0.5 * (rows + rows.T)

    def _bounded(self, slopes: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Return limits (2, n) of intervals, NaN elsewhere, and the derivatives by their scores."""
        assert self.intervals is not None
        rows, limits = self.intervals.rows, np.full((2, self.sample.size), np.nan)
        limits[:, rows] = self.intervals.ends
        if slopes is None:
            slopes, (law, *_) = np.zeros(limits.shape), self._settled()
            slopes[:, rows] = -law.by_low, -law.by_high
        return limits, slopes

    @staticmethod
    def _by_law(
        law: Marginal,
        values: FloatArray,
        pull: FloatArray,
        ends: FloatArray,
        weights: FloatArray,
        count: FloatArray | None,
    ) -> FloatArray:
        """Return the derivative by a law's parameters, of numbers and of limits (2, n)."""
        number = np.isnan(ends[0])
        # What does not count is moved to where every law has a density.
        middle = law.from_normal(np.zeros(values.shape))
        known = np.where(number, values, middle)
        total = law.score_pullback(known, np.where(number, pull, 0.0))
        counted = number.astype(np.float64) if count is None else np.where(number, count, 0.0)
        total = total - law.density_pullback(known, counted)
        for end, weight in zip(ends, weights, strict=True):
            if weight.any():
                points = np.where(weight != 0.0, end, middle)
                total = total + law.score_pullback(points, weight)
        return np.asarray(total)

    def _pull(self, alpha: FloatArray) -> FloatArray:
        """Return the derivative (n,) of the quadratic form by the scores."""
        own = self._counted(self.scores)
        if self.intervals is not None:
            own = own.copy()
            own[self.intervals.rows] = 0.0  # stand-ins have no law of their own
        return np.asarray(alpha - own)

    def _counted(self, each: FloatArray) -> FloatArray:
        """Return a number of each observation as often as it counts."""
        return each if self.weights is None else self.weights * each
