"""What a fit compared: candidates of each variable, and of the whole model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xcopula.kernels import TaskKernel
from xcopula.kernels.covariance import InputGroup
from xcopula.marginals import Marginal
from xcopula.model.extremes import EXTREME_SCORE

__all__ = ["Candidate", "Trial"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Candidate:
    """A single-task process fitted to one variable: what step one compares.

    Attributes
    ----------
    kernel : Kernel or Nested
    marginal : Marginal
        At its fitted parameters.
    theta : ndarray
        All parameters of the single-task process.
    log_likelihood : float
    aic : float
    largest_score : float
        The largest absolute normal score of an observation.
    structures : int
        Number of nested structures.
    error : float
        Standard error of the difference in AIC to the best candidate, where the likelihood is that
        of terms that stand for all; else zero.
    groups : tuple of InputGroup
        Columns of the inputs, with the directions of their metrics.
    limit : float
        A score beyond it is extreme: chance does not reach so far with so many values.
    """

    kernel: TaskKernel
    marginal: Marginal
    theta: FloatArray
    log_likelihood: float
    aic: float
    largest_score: float
    structures: int = 1
    error: float = 0.0
    groups: tuple[InputGroup, ...] = ()
    limit: float = EXTREME_SCORE

    @property
    def is_extreme(self) -> bool:
        """Whether a value is so far out that it distorts predictions near it."""
        return self.largest_score > self.limit

    @property
    def rank(self) -> tuple[bool, float]:
        """Sort key: candidates without extreme scores first, then by AIC."""
        return (self.is_extreme, self.aic)


class Trial(NamedTuple):
    """A candidate of the whole model, and its scores of left-out values of the primary.

    Attributes
    ----------
    name : str
        Law and kernel of the primary, structures, coupling.
    log_likelihood : float
    crps, log_score : float
        Means of values that were left out alone, and with all that is near them.
    weight : float
        Its share of a prediction.
    """

    name: str
    log_likelihood: float
    crps: float
    log_score: float = float("nan")
    weight: float = float("nan")
