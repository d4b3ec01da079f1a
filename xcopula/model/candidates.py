"""What a fit compared: candidates of each variable, and laws of the primary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xcopula.kernels import Kernel
from xcopula.kernels.covariance import InputGroup
from xcopula.marginals import Marginal
from xcopula.model.extremes import EXTREME_SCORE

__all__ = ["Candidate", "LawTrial"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Candidate:
    """A single-task process fitted to one variable: what step one compares.

    Attributes
    ----------
    kernel : Kernel
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
    """

    kernel: Kernel
    marginal: Marginal
    theta: FloatArray
    log_likelihood: float
    aic: float
    largest_score: float
    structures: int = 1
    error: float = 0.0
    groups: tuple[InputGroup, ...] = ()

    @property
    def rank(self) -> tuple[bool, float]:
        """Sort key: candidates without extreme scores first, then by AIC."""
        return (self.largest_score > EXTREME_SCORE, self.aic)


class LawTrial(NamedTuple):
    """A marginal law of the primary, tried in the whole model."""

    marginal: str
    log_likelihood: float
    crps: float
