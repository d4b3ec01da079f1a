r"""Exact inference: the likelihood of all observations together, and conditional moments.

.. math:: L(\theta) = \tfrac12 w' (K^{-1} - I) w + \tfrac12 \log|K| - \sum_i \log f(y_i)

with w the normal scores. One factorisation serves the value, every derivative and leave-one-out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xcopula import jit
from xcopula.kernels.covariance import Contraction, CovarianceState
from xcopula.linalg import cholesky, inverse_from_cholesky, log_determinant, solve_lower
from xcopula.process import Moments, Process, Sample

__all__ = ["Conditioned", "condition", "objective"]

FloatArray = npt.NDArray[np.float64]

# What one batch of cross-covariances may take, whatever the size of a chunk.
BATCH_BYTES = 64 * 2**20


def _scaled(inputs: FloatArray, state: CovarianceState) -> FloatArray:
    return np.require(inputs / state.scaling[:, None], np.float64, ["C", "W"])


def _fill(inputs: FloatArray, sample: Sample, state: CovarianceState) -> FloatArray:
    out = np.empty((sample.size, sample.size))
    jit.fill_lower(
        inputs,
        sample.offsets,
        state.amplitudes,
        state.nugget,
        state.tables,
        state.groups,
        state.coefficients,
        state.ranges,
        out,
    )
    return out


def _contract(
    inverse: FloatArray,
    alpha: FloatArray,
    inputs: FloatArray,
    sample: Sample,
    state: CovarianceState,
    *,
    scaled: bool,
) -> Contraction:
    by = Contraction(
        amplitudes=np.zeros_like(state.amplitudes),
        nugget=np.zeros_like(state.nugget),
        slope=np.zeros_like(state.ranges),
        sensitivity=np.zeros_like(state.ranges),
        scaling=np.zeros_like(state.scaling),
    )
    jit.contract_gradient(
        inverse,
        alpha,
        inputs,
        sample.offsets,
        state.amplitudes,
        state.tables,
        state.groups,
        state.coefficients,
        state.sensitivities,
        state.ranges,
        scaled,
        *by,
    )
    return by


def objective(process: Process, sample: Sample, theta: FloatArray) -> tuple[float, FloatArray]:
    """Return the negative log-likelihood and its gradient.

    Infinite, with a zero gradient, where a value has no density under its marginal law.

    Raises
    ------
    NotPositiveDefiniteError
        If the covariance cannot be factorised.
    """
    covariance = process.covariance
    covariance_theta, marginals = process.split(theta)
    w = process.scores(theta, sample)
    blocks = [sample.values[sample.task(i)] for i in range(covariance.tasks)]
    log_density = sum(float(m.log_density(y).sum()) for m, y in zip(marginals, blocks, strict=True))
    if not np.isfinite(w).all() or not np.isfinite(log_density):
        return np.inf, np.zeros(process.size)

    state = covariance.state(covariance_theta)
    inputs = _scaled(sample.inputs, state)
    factor, _ = cholesky(lambda: _fill(inputs, sample, state), lambda: process.describe(theta))
    alpha = _solve(factor, w)
    value = 0.5 * float(w @ (alpha - w)) + 0.5 * log_determinant(factor) - log_density

    inverse = inverse_from_cholesky(factor)
    by = _contract(
        inverse, alpha, inputs, sample, state, scaled=any(g.ard for g in covariance.groups)
    )
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
        targets = _scaled(targets, self.state)
        size = targets.shape[1]
        mean, variance = np.empty(size), np.empty(size)
        own = self.state.nugget if nugget else np.zeros_like(self.state.nugget)
        prior = float(self.state.amplitudes[:, task, task].sum() + own[task, task])
        step = max(1, BATCH_BYTES // (8 * self.sample.size))
        cross = np.empty((min(step, size), self.sample.size))
        for start in range(0, size, step):
            where = slice(start, min(start + step, size))
            batch = np.require(targets[:, where], np.float64, ["C", "W"])
            rows = cross[: batch.shape[1]]
            jit.fill_cross(
                batch,
                task,
                self.inputs,
                self.sample.offsets,
                self.state.amplitudes,
                own,
                self.state.tables,
                self.state.groups,
                self.state.coefficients,
                self.state.ranges,
                rows,
            )
            mean[where] = rows @ self.alpha
            solve_lower(self.factor, rows)
            variance[where] = prior - np.einsum("ij,ij->i", rows, rows)
        # A site that is known exactly ends a rounding error below zero.
        return Moments(mean, np.maximum(variance, 0.0))

    def leave_one_out(self) -> Moments:
        """Return the moments of each score given all others, in closed form from the inverse."""
        inverse = inverse_from_cholesky(self.factor.copy())
        variance = 1.0 / np.diagonal(inverse)
        return Moments(self.scores - self.alpha * variance, variance)


def condition(process: Process, sample: Sample, theta: FloatArray) -> Conditioned:
    """Condition the process at theta on a sample."""
    covariance_theta, _ = process.split(theta)
    state = process.covariance.state(covariance_theta)
    inputs = _scaled(sample.inputs, state)
    factor, jitter = cholesky(lambda: _fill(inputs, sample, state), lambda: process.describe(theta))
    w = process.scores(theta, sample)
    return Conditioned(sample, state, inputs, factor, _solve(factor, w), w, jitter)
