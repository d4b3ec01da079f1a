"""The exact solver: one dense covariance of all observations.

One factorisation serves the value, every derivative, prediction and leave-one-out. It costs n^3
operations and two matrices of n^2 numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from xcopula.kernels.assembly import contract_lower, cross, lower, scaled_inputs
from xcopula.kernels.covariance import CovarianceState
from xcopula.linalg import cholesky, inverse_from_cholesky, log_determinant, solve_lower
from xcopula.process import Evidence, Moments, Process, Sample, Targets, keep_data, keep_scores
from xcopula.solvers.batches import batches
from xcopula.solvers.cost import Cost

__all__ = ["Exact", "Factorised"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# The covariance beside its inverse, and the copy that leave-one-out makes.
_MATRICES = 2


@dataclass(frozen=True)
class Exact:
    """Solve with the whole covariance matrix: right to the last digit, for some thousand values."""

    name: ClassVar[str] = "exact"
    # The variance takes a triangular system for each cell.
    mean_is_cheaper: ClassVar[bool] = True

    def prepare(self, process: Process, theta: FloatArray, sample: Sample) -> None:
        """Prepare nothing: the covariance matrix is all there is."""

    def objective(
        self, process: Process, sample: Sample, structure: None, theta: FloatArray
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
        state, inputs, factor, _ = _factorise(process, sample, theta)
        alpha = _solve(factor, evidence.scores.copy())
        value = evidence.value(alpha, log_determinant(factor))
        inverse = inverse_from_cholesky(factor)
        by = contract_lower(state, inverse, alpha, inputs, sample.sites, sample.offsets)
        return value, evidence.gradient(alpha, by)

    def condition(
        self, process: Process, sample: Sample, structure: None, theta: FloatArray
    ) -> Factorised:
        """Condition the process at theta on a sample."""
        state, inputs, factor, jitter = _factorise(process, sample, theta)
        w = process.scores(theta, sample)
        return Factorised(sample, state, inputs, factor, _solve(factor, w.copy()), w, jitter)

    def cost(self, sizes: Sequence[int], correlations: int = 1) -> Cost:
        """Count one dense covariance of all observations: factor and inverse take n^3."""
        n = float(sum(sizes))
        return Cost(_MATRICES * 8.0 * n * n, n**3)


def _factorise(
    process: Process, sample: Sample, theta: FloatArray
) -> tuple[CovarianceState, FloatArray, FloatArray, float]:
    """Return the covariance at theta, scaled inputs, the lower factor and its jitter."""
    state = process.state(theta)
    inputs = scaled_inputs(sample.inputs, state)
    factor, jitter = cholesky(
        lambda: lower(state, inputs, sample.sites, sample.offsets),
        lambda: process.describe(theta),
    )
    return state, inputs, factor, jitter


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
        return keep_data(moments, self.sample, self.scores, targets, task)

    def mean(self, targets: Targets, *, task: int = 0, nugget: bool = True) -> FloatArray:
        """Return the latent mean of a task at targets: no triangular system is solved."""
        mean = np.empty(targets.size)
        rows = None
        for where in batches(targets.size, self.sample.size):
            if rows is None:
                rows = np.empty((where.stop, self.sample.size))
            mean[where] = self._cross(targets.take(where), task, nugget, rows) @ self.alpha
        return keep_scores(mean, self.sample, self.scores, targets, task) if nugget else mean

    def means(
        self, targets: Targets, scores: FloatArray, *, task: int = 0, nugget: bool = True
    ) -> FloatArray:
        """Return the means (k, m) of a task that other scores (k, n) would give."""
        alphas = self.solve(scores)
        out = np.empty((len(scores), targets.size))
        for where in batches(targets.size, self.sample.size):
            rows = self._cross(targets.take(where), task, nugget)
            out[:, where] = alphas @ rows.T
        return out

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
        points, inputs = (scaled_inputs(t.inputs, self.state) for t in (targets, others))
        offsets = np.zeros(len(self.sample.offsets), np.int64)
        offsets[task + 1 :] = others.size
        return cross(
            self.state, points, targets.sites, task, inputs, others.sites, offsets, nugget=nugget
        )

    def leave_one_out(self) -> Moments:
        """Return the moments of each score given all others, in closed form from the inverse."""
        inverse = inverse_from_cholesky(self.factor.copy())
        variance = 1.0 / np.diagonal(inverse)
        return Moments(self.scores - self.alpha * variance, variance)

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
        return Moments(mean, variance)

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
