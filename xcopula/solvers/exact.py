r"""Exact inference: the likelihood of all observations together, and conditional moments.

.. math:: L(\theta) = \tfrac12 w' (K^{-1} - I) w + \tfrac12 \log|K| - \sum_i \log f(y_i)

with w the normal scores. One factorisation serves the value, every derivative and leave-one-out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xcopula.methods.settings import Settings
from xcopula.kernels.assembly import contract_lower, cross, lower, scaled_inputs
from xcopula.kernels.covariance import CovarianceState
from xcopula.linalg import cholesky, inverse_from_cholesky, log_determinant, solve_lower
from xcopula.process.copula import Moments, Process, Sample

__all__ = ["Conditioned", "condition", "objective"]

FloatArray = npt.NDArray[np.float64]

# What one batch of cross-covariances may take, whatever the size of a chunk.
BATCH_BYTES = 64 * 2**20


def objective(
    process: Process, sample: Sample, theta: FloatArray, settings: Settings | None = None
) -> tuple[float, FloatArray]:
    """Return the negative log-likelihood and its gradient.

    Infinite, with a zero gradient, where a value has no density under its marginal law.

    Raises
    ------
    NotPositiveDefiniteError
        If the covariance cannot be factorised.
    """
    covariance = process.covariance
    covariance_theta, marginals = theta[: covariance.size], process.laws(theta, sample)
    blocks = [sample.values[sample.task(i)] for i in range(covariance.tasks)]
    w = np.concatenate([m.to_normal(y) for m, y in zip(marginals, blocks, strict=True)])
    log_density = sum(float(m.log_density(y).sum()) for m, y in zip(marginals, blocks, strict=True))
    if not np.isfinite(w).all() or not np.isfinite(log_density):
        return np.inf, np.zeros(process.size)

    state = covariance.state(covariance_theta)
    inputs = scaled_inputs(sample.inputs, state)
    factor, _ = cholesky(
        lambda: lower(state, inputs, sample.offsets), lambda: process.describe(theta)
    )
    alpha = _solve(factor, w)
    value = 0.5 * float(w @ (alpha - w)) + 0.5 * log_determinant(factor) - log_density

    inverse = inverse_from_cholesky(factor)
    by = contract_lower(state, inverse, alpha, inputs, sample.offsets)
    gradient = np.empty(process.size)
    gradient[: covariance.size] = covariance.pullback(covariance_theta, by)
    for i, (marginal, where) in enumerate(zip(marginals, process.slices, strict=True)):
        by_score, by_density = marginal.sensitivity(blocks[i])
        task = sample.task(i)
        gradient[where] = (alpha - w)[task] @ by_score - by_density.sum(axis=0)
    return value, gradient


def _solve(factor: FloatArray, w: FloatArray) -> FloatArray:
    return solve_lower(factor, solve_lower(factor, w.copy()), transposed=True)


@dataclass(frozen=True)
class Conditioned:
    """A process conditioned on a sample: one factorisation, any number of predictions."""

    sample: Sample
    state: CovarianceState
    inputs: FloatArray
    factor: FloatArray
    alpha: FloatArray
    scores: FloatArray
    jitter: float

    def moments(self, targets: FloatArray, *, nugget: bool = True, task: int = 0) -> Moments:
        """Return the latent mean and variance of a task at targets (d, m).

        With ``nugget`` the process includes the site's own variation, and so returns the datum at
        a site where the task was observed; without, it is the smooth signal.
        """
        size = targets.shape[1]
        mean, variance = np.empty(size), np.empty(size)
        step = max(1, BATCH_BYTES // (8 * self.sample.size))
        rows = np.empty((min(step, size), self.sample.size))
        for start in range(0, size, step):
            where = slice(start, min(start + step, size))
            mean[where], _ = self.whiten(targets[:, where], nugget=nugget, task=task, out=rows)
            white = rows[: where.stop - start]
            variance[where] = self.prior_variance(nugget=nugget, task=task) - np.einsum(
                "ij,ij->i", white, white
            )
        # A site that is known exactly ends a rounding error below zero.
        return Moments(mean, np.maximum(variance, 0.0))

    def prior_variance(self, *, nugget: bool = True, task: int = 0) -> float:
        """Return the variance of a task before any data."""
        own = float(self.state.nugget[task, task]) if nugget else 0.0
        return float(self.state.amplitudes[:, task, task].sum()) + own

    def whiten(
        self,
        targets: FloatArray,
        *,
        nugget: bool = True,
        task: int = 0,
        out: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mean at targets (d, m), and rows (m, n) of L^-1 k.

        The inner product of two rows is the covariance that the data explain.
        """
        points = scaled_inputs(targets, self.state)
        offsets = self.sample.offsets
        rows = cross(self.state, points, task, self.inputs, offsets, nugget=nugget, out=out)
        mean = rows @ self.alpha
        return mean, solve_lower(self.factor, rows)

    def prior(self, targets: FloatArray, others: FloatArray, *, nugget: bool = True) -> FloatArray:
        """Return the prior covariance (m, k) of the primary at targets and at other points."""
        points, inputs = scaled_inputs(targets, self.state), scaled_inputs(others, self.state)
        offsets = np.array([0, others.shape[1]], np.int64)
        return cross(self.state, points, 0, inputs, offsets, nugget=nugget)

    def information(self, targets: FloatArray, *, nugget: bool = True) -> FloatArray:
        """Raise ValueError: one joint model does not tell its secondaries apart."""
        raise ValueError(
            "method='full' cannot tell what each secondary adds. Fit with method='transductive'."
        )

    def describe(self) -> list[str]:
        """Return lines for the model's summary."""
        return []

    def leave_one_out(self) -> Moments:
        """Return the moments of each score given all others, in closed form from the inverse."""
        inverse = inverse_from_cholesky(self.factor.copy())
        variance = 1.0 / np.diagonal(inverse)
        return Moments(self.scores - self.alpha * variance, variance)


def condition(
    process: Process, sample: Sample, theta: FloatArray, settings: Settings | None = None
) -> Conditioned:
    """Condition the process at theta on a sample."""
    covariance_theta, _ = process.split(theta)
    state = process.covariance.state(covariance_theta)
    inputs = scaled_inputs(sample.inputs, state)
    factor, jitter = cholesky(
        lambda: lower(state, inputs, sample.offsets), lambda: process.describe(theta)
    )
    w = process.scores(theta, sample)
    return Conditioned(sample, state, inputs, factor, _solve(factor, w), w, jitter)
