"""How good a prediction was: proper scores of observed values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from xcopula.marginals.base import Marginal
from xcopula.process import outcome
from xcopula.process.sample import Moments

__all__ = ["Scores", "scores"]

FloatArray = npt.NDArray[np.float64]


class Scores(NamedTuple):
    """Predictions of observed values and their scores, each (m,).

    ``lower`` and ``upper`` bound the central 90 %; ``score``, ``mean`` and ``std`` are latent.
    """

    observed: FloatArray
    median: FloatArray
    lower: FloatArray
    upper: FloatArray
    pit: FloatArray
    crps: FloatArray
    log_score: FloatArray
    score: FloatArray
    mean: FloatArray
    std: FloatArray


def scores(moments: Moments, law: Marginal, observed: FloatArray) -> Scores:
    """Score latent predictions of observed values.

    Parameters
    ----------
    moments : Moments
        Latent mean and variance of each value, predicted without it.
    law : Marginal
        Of the variable, bound to the rows of the values if it varies.
    observed : ndarray (m,)
    """
    mean, std = moments.mean, np.sqrt(moments.variance)
    score = law.to_normal(observed)
    error = (score - mean) / std
    with np.errstate(invalid="ignore"):
        gain = 0.5 * (score**2 - error**2)
    # At the end of a law's support, or beyond it, the predictive density has vanished.
    gain = np.where(np.isinf(score), np.where(std < 1.0, -np.inf, 0.0), gain)
    return Scores(
        observed=observed,
        median=law.from_normal(mean),
        lower=outcome.quantile(mean, std, law, 0.05),
        upper=outcome.quantile(mean, std, law, 0.95),
        pit=ndtr(error),
        crps=outcome.crps(mean, std, law, observed),
        log_score=law.log_density(observed) + gain - np.log(std),
        score=score,
        mean=mean,
        std=std,
    )
