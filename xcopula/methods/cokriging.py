r"""Ordinary co-kriging: unknown constant means, estimated by generalised least squares.

With F the indicator of each observation's task, the latent scores are :math:`F\beta + z`. The
prediction is the best linear unbiased one: the weights of the primary's values add up to one, those
of each secondary's to zero, and the variance carries what is not known of the means.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xcopula.methods import exact
from xcopula.solvers.exact import objective
from xcopula.methods.settings import Settings
from xcopula.linalg import inverse_from_cholesky, solve_lower
from xcopula.process.copula import Moments, Process, Sample

__all__ = ["Kriged", "condition", "objective"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Kriged:
    """An exact process with unknown means, conditioned on a sample."""

    base: exact.Conditioned
    trend: FloatArray  # (t, n): rows L^-1 F
    gram: FloatArray  # (t, t): (F' K^-1 F)^-1
    means: FloatArray  # (t,)

    def moments(self, targets: FloatArray, *, nugget: bool = True) -> Moments:
        """Return the kriging mean and variance of the primary at targets (d, m)."""
        size = targets.shape[1]
        step = max(1, exact.BATCH_BYTES // (8 * self.base.sample.size))
        mean, variance = np.empty(size), np.empty(size)
        prior = self.base.prior_variance(nugget=nugget)
        for start in range(0, size, step):
            where = slice(start, min(start + step, size))
            simple, white = self.base.whiten(targets[:, where], nugget=nugget)
            missing = self._missing(white)
            mean[where] = simple + missing @ self.means
            variance[where] = prior - np.einsum("ij,ij->i", white, white)
            variance[where] += np.einsum("ij,jk,ik->i", missing, self.gram, missing)
        return Moments(mean, np.maximum(variance, 0.0))

    def _missing(self, white: FloatArray) -> FloatArray:
        """Return what simple kriging lacks to reproduce each mean: (m, t)."""
        missing = -white @ self.trend.T
        missing[:, 0] += 1.0
        return missing

    def weights(self, targets: FloatArray, *, nugget: bool = True) -> FloatArray:
        """Return the weights (m, n) of the observations in the prediction."""
        _, white = self.base.whiten(targets, nugget=nugget)
        rows = white + self._missing(white) @ self.gram @ self.trend
        return solve_lower(self.base.factor, rows, transposed=True)

    def leave_one_out(self) -> Moments:
        """Return the moments of each score given all others, the means estimated anew."""
        inverse = np.diagonal(inverse_from_cholesky(self.base.factor.copy())).copy()
        lifted = solve_lower(self.base.factor, self.trend.copy(), transposed=True)
        inverse -= np.einsum("in,ij,jn->n", lifted, self.gram, lifted)
        alpha = self.base.alpha - lifted.T @ self.means
        variance = 1.0 / inverse
        return Moments(self.base.scores - alpha * variance, variance)

    def information(self, targets: FloatArray, *, nugget: bool = True) -> FloatArray:
        """Raise ValueError: one joint model does not tell its secondaries apart."""
        raise ValueError(
            "method='cokriging' cannot tell what each secondary adds. "
            "Fit with method='transductive'."
        )

    def describe(self) -> list[str]:
        """Return lines for the model's summary."""
        return ["ordinary co-kriging: unknown means by generalised least squares"]


def condition(
    process: Process, sample: Sample, theta: FloatArray, settings: Settings | None = None
) -> Kriged:
    """Condition the process on a sample, its means unknown."""
    base = exact.condition(process, sample, theta)
    tasks = process.covariance.tasks
    trend = np.zeros((tasks, sample.size))
    for i in range(tasks):
        trend[i, sample.task(i)] = 1.0
    by_mean = trend @ base.alpha  # F' K^-1 w
    solve_lower(base.factor, trend)
    gram = np.asarray(np.linalg.inv(trend @ trend.T), np.float64)
    return Kriged(base, trend, gram, gram @ by_mean)
