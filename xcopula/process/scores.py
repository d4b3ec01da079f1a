"""How good a prediction was: proper scores of observed values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xcopula.marginals.base import Marginal
from xcopula.process.predictive import Predictive
from xcopula.process.sample import Moments

__all__ = ["Scores", "scores", "scores_of"]

FloatArray = npt.NDArray[np.float64]


class Scores(NamedTuple):
    """Predictions of observed values and their scores, each (m,).

    ``lower`` and ``upper`` bound the central 90 %; ``score``, ``mean`` and ``std`` are latent, and
    means over components where there are several.
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
    return scores_of(Predictive.of(moments, law), observed)


def scores_of(predicted: Predictive, observed: FloatArray) -> Scores:
    """Score predictions of observed values, each made without it."""
    return Scores(
        observed=observed,
        median=predicted.quantile(0.5),
        lower=predicted.quantile(0.05),
        upper=predicted.quantile(0.95),
        pit=predicted.cdf(observed),
        crps=predicted.crps(observed),
        log_score=predicted.log_density(observed),
        score=predicted.score(observed),
        mean=predicted.latent_mean(),
        std=predicted.latent_std(),
    )
