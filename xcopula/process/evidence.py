r"""What a sample says at given parameters, whatever evaluates its covariance.

.. math:: L(\theta) = \tfrac12 w' (K^{-1} - I) w + \tfrac12 \log|K| - \sum_i \log f(y_i)

The normal scores w and the densities are the marginal laws' part, written here once; a solver adds
:math:`\alpha = K^{-1} w`, the determinant, and the derivatives by the covariance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xcopula.kernels.covariance import Contraction
from xcopula.marginals.base import Marginal
from xcopula.process.copula import Process
from xcopula.process.sample import Sample

__all__ = ["Evidence"]

FloatArray = npt.NDArray[np.float64]


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
    log_densities : ndarray (n,)
    weights : ndarray (n,), optional
        How often each observation counts, where that is not once: it may stand for others, or be
        given and not count at all.
    """

    process: Process
    sample: Sample
    theta: FloatArray
    laws: tuple[Marginal, ...]
    scores: FloatArray
    log_densities: FloatArray
    weights: FloatArray | None = None

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
        return cls(
            process=process,
            sample=sample,
            theta=theta,
            laws=laws,
            scores=np.concatenate([law.to_normal(y) for law, y in pairs]),
            log_densities=np.concatenate([law.log_density(y) for law, y in pairs]),
            weights=weights,
        )

    @property
    def possible(self) -> bool:
        """Whether every value has a density under its law."""
        return bool(np.isfinite(self.log_densities).all() and np.isfinite(self.scores).all())

    def impossible(self) -> tuple[float, FloatArray]:
        """Return what an objective returns where a value has no density."""
        return np.inf, np.zeros(self.process.size)

    def value(self, alpha: FloatArray, log_determinant: float) -> float:
        """Return the negative log-likelihood, with alpha = K^-1 w and log|K|."""
        density = self._counted(self.log_densities).sum()
        return float(0.5 * (self.scores @ self._pull(alpha) + log_determinant) - density)

    def gradient(self, alpha: FloatArray, by: Contraction) -> FloatArray:
        """Return the gradient by theta, given the derivatives by the covariance."""
        process, covariance = self.process, self.process.covariance
        gradient, pull = np.empty(process.size), self._pull(alpha)
        gradient[: covariance.size] = covariance.pullback(self.theta[: covariance.size], by)
        for i, (law, where) in enumerate(zip(self.laws, process.slices, strict=True)):
            task = self.sample.task(i)
            values, own = self.sample.values[task], self.weights
            # A law far from its values has slopes that overflow: the optimiser meets a wall there.
            with np.errstate(invalid="ignore", over="ignore"):
                gradient[where] = law.score_pullback(values, pull[task]) - law.density_pullback(
                    values, None if own is None else own[task]
                )
        return gradient

    def _pull(self, alpha: FloatArray) -> FloatArray:
        """Return the derivative (n,) of the quadratic form by the scores."""
        return np.asarray(alpha - self._counted(self.scores))

    def _counted(self, each: FloatArray) -> FloatArray:
        """Return a number of each observation as often as it counts."""
        return each if self.weights is None else self.weights * each
