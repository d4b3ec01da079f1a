"""The exact solver: one dense covariance of all observations.

One factorisation serves the value, every derivative, prediction and leave-one-out. It costs n^3
operations and two matrices of n^2 numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from xcopula.arrays import FloatArray, IntArray
from xcopula.kernels.assembly import (
    between,
    contract_lower,
    cross,
    lower,
    multiply_lower,
    scaled_inputs,
)
from xcopula.kernels.covariance import CovarianceState
from xcopula.linalg import (
    cholesky,
    inverse_from_cholesky,
    log_determinant,
    solve_lower,
    symmetric_product,
)
from xcopula.process import (
    Evidence,
    Moments,
    Process,
    Sample,
    Targets,
    keep_data,
    keep_scores,
    known_data,
)
from xcopula.process.intervals import Held, Intervals, StandIns, settle, without_extra
from xcopula.solvers.batches import batches
from xcopula.solvers.contract import Informed
from xcopula.solvers.cost import Cost

__all__ = ["Exact", "Factorised"]

# The covariance beside its inverse, and the copy that leave-one-out makes.
_MATRICES = 2


@dataclass(frozen=True)
class Exact:
    """Solve with the whole covariance matrix: right to the last digit, for some thousand values."""

    name: ClassVar[str] = "exact"
    # The variance takes a triangular system for each cell.
    mean_is_cheaper: ClassVar[bool] = True

    def prepare(self, process: Process, theta: FloatArray, sample: Sample) -> Held:
        """Prepare to remember what stands in for intervals; the covariance is made each time."""
        return Held()

    def objective(
        self, process: Process, sample: Sample, structure: Held, theta: FloatArray
    ) -> tuple[float, FloatArray]:
        """Return the negative log-likelihood and its gradient.

        Infinite, with a zero gradient, where a value has no density under its marginal law.

        Raises
        ------
        NotPositiveDefiniteError
            If the covariance cannot be factorised.
        """
        evidence = Evidence.of(process, sample, theta)
        if not evidence.possible:
            return evidence.impossible()
        made = _Made.of(process, sample, theta)
        evidence = made.fill_in(evidence, structure)
        factor, _ = made.factorise(evidence.extra)
        alpha = _solve(factor, evidence.scores.copy())
        value = evidence.value(alpha, log_determinant(factor))
        inverse = inverse_from_cholesky(factor)
        by = contract_lower(made.state, inverse, alpha, made.inputs, sample.sites, sample.offsets)
        return value, evidence.gradient(alpha, by)

    def information(
        self, process: Process, sample: Sample, structure: Held, theta: FloatArray
    ) -> Informed:
        r"""Return the objective with its average information.

        With :math:`q_i = \partial_i K\, K^{-1} w` the block of the covariance is
        :math:`\tfrac12 Q' K^{-1} Q` (Gilmour, Thompson & Cullis 1995). That of the marginals, and
        the mixed one, are exact; sites of intervals are held.
        """
        evidence = Evidence.of(process, sample, theta)
        if not evidence.possible:
            return Informed(*evidence.impossible(), None)
        made = _Made.of(process, sample, theta)
        evidence = made.fill_in(evidence, structure)
        factor, _ = made.factorise(evidence.extra)
        alpha = _solve(factor, evidence.scores.copy())
        value = evidence.value(alpha, log_determinant(factor))
        inverse = inverse_from_cholesky(factor)
        arrays = made.inputs, sample.sites, sample.offsets
        by = contract_lower(made.state, inverse, alpha, *arrays)
        covariance = process.covariance
        slopes = covariance.slopes(theta[: covariance.size])
        products = slopes @ multiply_lower(made.state, alpha, *arrays)
        directions = np.concatenate([-products, evidence.moves().T])
        matrix = directions @ symmetric_product(inverse, directions).T
        matrix[: covariance.size, : covariance.size] *= 0.5
        matrix[covariance.size :, covariance.size :] += evidence.marginal_curvature(alpha)
        return Informed(value, evidence.gradient(alpha, by), matrix)

    def condition(
        self, process: Process, sample: Sample, structure: Held, theta: FloatArray
    ) -> Factorised:
        """Condition the process at theta on a sample.

        Stand-ins are found from nothing: a prediction does not depend on what was asked before.
        """
        evidence = Evidence.of(process, sample, theta)
        made = _Made.of(process, sample, theta)
        evidence = made.fill_in(evidence, Held())
        factor, jitter = made.factorise(evidence.extra)
        return Factorised(
            sample,
            made.state,
            made.inputs,
            factor,
            _solve(factor, evidence.scores.copy()),
            evidence.scores,
            jitter,
            evidence.extra,
        )

    def cost(self, sizes: Sequence[int], correlations: int = 1) -> Cost:
        """Count one dense covariance of all observations: factor and inverse take n^3."""
        n = float(sum(sizes))
        return Cost(_MATRICES * 8.0 * n * n, n**3)


@dataclass(frozen=True)
class _Made:
    """A sample, and the covariance at theta."""

    process: Process
    sample: Sample
    theta: FloatArray
    state: CovarianceState
    inputs: FloatArray  # scaled

    @classmethod
    def of(cls, process: Process, sample: Sample, theta: FloatArray) -> _Made:
        state = process.state(theta)
        return cls(process, sample, theta, state, scaled_inputs(sample.inputs, state))

    def describe(self) -> str:
        return self.process.describe(self.theta)

    def matrix(self) -> FloatArray:
        """Return the covariance, its lower triangle."""
        return lower(self.state, self.inputs, self.sample.sites, self.sample.offsets)

    def factorise(self, extra: FloatArray | None) -> tuple[FloatArray, float]:
        """Return the lower factor, with extra variances (n,) if there are any, and its jitter."""

        def fill() -> FloatArray:
            matrix = self.matrix()
            if extra is not None:
                matrix.flat[:: len(matrix) + 1] += extra
            return matrix

        return cholesky(fill, self.describe)

    def fill_in(self, evidence: Evidence, held: Held) -> Evidence:
        """Return the evidence with stand-ins for its intervals."""
        if evidence.intervals is None:
            return evidence
        mean, covariance = self._given_numbers(evidence.intervals, evidence.scores)

        def cavities(stand_ins: StandIns) -> Moments:
            def fill() -> FloatArray:
                matrix = covariance.copy()
                matrix.flat[:: len(matrix) + 1] += stand_ins.extra
                return matrix

            factor, _ = cholesky(fill, self.describe)
            alpha = _solve(factor, stand_ins.scores - mean)
            return stand_ins.cavity(alpha, np.diagonal(inverse_from_cholesky(factor)))

        return evidence.with_stand_ins(*settle(held, evidence.intervals, cavities, self.describe))

    def _given_numbers(
        self, intervals: Intervals, scores: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return mean (c,) and covariance (c, c) of intervals, given the values that are numbers.

        The lower triangle only. It is made once: stand-ins are found in c dimensions, not in n.
        """
        rows, matrix = intervals.rows, self.matrix()
        known = np.setdiff1d(np.arange(self.sample.size), rows)
        covariance = np.tril(matrix[np.ix_(rows, rows)])  # above it is whatever was in memory
        if not known.size:
            return np.zeros(rows.size), covariance
        later = rows[:, None] > known
        cross = np.where(later, matrix[np.ix_(rows, known)], matrix[np.ix_(known, rows)].T)
        factor, _ = cholesky(lambda: matrix[np.ix_(known, known)], self.describe)
        white = solve_lower(factor, np.ascontiguousarray(cross))
        mean = white @ solve_lower(factor, scores[known])
        return np.asarray(mean), np.asarray(covariance - white @ white.T)


def _solve(factor: FloatArray, rows: FloatArray) -> FloatArray:
    """Overwrite rows (k, n) by their products with the inverse covariance."""
    return solve_lower(factor, solve_lower(factor, rows), transposed=True)


@dataclass(frozen=True)
class Factorised:
    """A process conditioned on a sample: one factorisation, any number of predictions."""

    sample: Sample
    state: CovarianceState
    inputs: FloatArray
    factor: FloatArray
    alpha: FloatArray
    scores: FloatArray
    jitter: float
    extra: FloatArray | None = None  # (n,): variances of the stand-ins for intervals

    def moments(self, targets: Targets, *, task: int = 0, nugget: bool = True) -> Moments:
        """Return the latent mean and variance of a task at targets."""
        mean, variance = np.empty(targets.size), np.empty(targets.size)
        prior = self.prior_variance(task=task, nugget=nugget)
        rows = None
        for where in batches(targets.size, self.sample.size):
            if rows is None:
                rows = np.empty((where.stop, self.sample.size))
            part = targets.take(where)
            mean[where], white = self.whiten(part, task=task, nugget=nugget, out=rows)
            variance[where] = prior - np.einsum("ij,ij->i", white, white)
        # A site that is known exactly ends a rounding error below zero.
        moments = Moments(mean, np.maximum(variance, 0.0))
        if not nugget:
            return moments
        # A target may stand a rounding of its coordinates away from the site that it is.
        return keep_data(moments, self.sample, self._known, targets, task)

    def mean(self, targets: Targets, *, task: int = 0, nugget: bool = True) -> FloatArray:
        """Return the latent mean of a task at targets: no triangular system is solved."""
        mean = np.empty(targets.size)
        rows = None
        for where in batches(targets.size, self.sample.size):
            if rows is None:
                rows = np.empty((where.stop, self.sample.size))
            mean[where] = self._cross(targets.take(where), task, nugget, rows) @ self.alpha
        return keep_scores(mean, self.sample, self._known, targets, task) if nugget else mean

    def means(
        self, targets: Targets, scores: FloatArray, *, task: int = 0, nugget: bool = True
    ) -> FloatArray:
        """Return the means (k, m) of a task that other scores (k, n) would give."""
        return self.means_of(scores)(targets, task, nugget)

    def means_of(self, scores: FloatArray) -> Callable[[Targets, int, bool], FloatArray]:
        """Return :meth:`means` of scores (k, n) as a function of targets, task and nugget.

        The system is solved once.
        """
        alphas = self.solve(scores)

        def means(targets: Targets, task: int, nugget: bool) -> FloatArray:
            out = np.empty((len(alphas), targets.size))
            for where in batches(targets.size, self.sample.size):
                rows = self._cross(targets.take(where), task, nugget)
                out[:, where] = alphas @ rows.T
            return out

        return means

    def with_scores(self, scores: FloatArray) -> Factorised:
        """Return the same process, conditioned on other scores (n,) at the same sites."""
        return replace(self, scores=scores, alpha=_solve(self.factor, scores.copy()))

    def prior_variance(self, *, task: int = 0, nugget: bool = True) -> float:
        """Return the variance of a task before any data."""
        own = float(self.state.nugget[task, task]) if nugget else 0.0
        return float(self.state.amplitudes[:, task, task].sum()) + own

    def solve(self, rows: FloatArray) -> FloatArray:
        """Return rows (k, n) times the inverse of the covariance of the data."""
        return _solve(self.factor, np.array(rows, np.float64, order="C"))

    def whiten(
        self,
        targets: Targets,
        *,
        task: int = 0,
        nugget: bool = True,
        out: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mean at targets, and rows (m, n) of L^-1 k.

        The inner product of two rows is the covariance that the data explain.
        """
        rows = self._cross(targets, task, nugget, out)
        mean = rows @ self.alpha
        return mean, solve_lower(self.factor, rows)

    def prior(
        self, targets: Targets, others: Targets, *, task: int = 0, nugget: bool = True
    ) -> FloatArray:
        """Return the prior covariance (m, k) of a task at targets and at other points."""
        both = targets.inputs, targets.sites, task, others.inputs, others.sites, task
        return between(self.state, *both, nugget=nugget)

    def correlation(
        self, targets: Targets, tasks: tuple[int, int], *, nugget: bool = True
    ) -> FloatArray:
        """Return the correlation (m,) of two tasks at targets given the data; 0 where known."""
        found = np.empty(targets.size)
        prior = self._at_one_site(tasks, nugget)
        for where in batches(targets.size, 2 * self.sample.size):
            part = targets.take(where)
            first, second = (self.whiten(part, task=t, nugget=nugget)[1] for t in tasks)
            own = [prior[k, k] - np.einsum("ij,ij->i", w, w) for k, w in enumerate((first, second))]
            shared = prior[0, 1] - np.einsum("ij,ij->i", first, second)
            free = (own[0] > 0.0) & (own[1] > 0.0)
            for task in tasks if nugget else ():
                free &= self.sample.observed(task, part.sites) < 0
            found[where] = np.where(free, shared / np.sqrt(np.where(free, own[0] * own[1], 1.0)), 0)
        return np.clip(found, -1.0, 1.0)

    def _at_one_site(self, tasks: tuple[int, int], nugget: bool) -> FloatArray:
        """Return the prior covariance (2, 2) of two tasks at one site."""
        place, site = np.zeros((len(self.inputs), 1)), np.zeros(1, np.int64)
        return np.array(
            [
                [
                    between(self.state, place, site, i, place, site, j, nugget=nugget)[0, 0]
                    for j in tasks
                ]
                for i in tasks
            ]
        )

    def leave_one_out(self) -> Moments:
        """Return the moments of each score given all others, in closed form from the inverse."""
        inverse = inverse_from_cholesky(self.factor.copy())
        variance = 1.0 / np.diagonal(inverse)
        return without_extra(self.scores - self.alpha * variance, variance, self.extra)

    @functools.cached_property
    def _known(self) -> Moments:
        return known_data(self.scores, self.extra, self.leave_one_out)

    def left_out(self, rows: IntArray, without: Iterable[IntArray]) -> Moments:
        """Return the moments of some scores, each given all but itself and some others."""
        inverse = inverse_from_cholesky(self.factor.copy())
        mean, variance = np.empty(rows.size), np.empty(rows.size)
        for k, (row, others) in enumerate(zip(rows, without, strict=True)):
            out = np.concatenate([[row], others])
            # What is left out has the precision that it has in the whole.
            high, low = np.maximum(out[:, None], out), np.minimum(out[:, None], out)
            own = np.linalg.solve(inverse[high, low], np.eye(out.size, 1))[:, 0]
            mean[k], variance[k] = self.scores[row] - own @ self.alpha[out], own[0]
        return without_extra(mean, variance, None if self.extra is None else self.extra[rows])

    def describe(self) -> list[str]:
        """Return lines for the model's summary."""
        return []

    def _cross(
        self, targets: Targets, task: int, nugget: bool, out: FloatArray | None = None
    ) -> FloatArray:
        """Return the covariance (m, n) of a task at targets with the data."""
        return cross(
            self.state,
            scaled_inputs(targets.inputs, self.state),
            targets.sites,
            task,
            self.inputs,
            self.sample.sites,
            self.sample.offsets,
            nugget=nugget,
            out=out,
        )
