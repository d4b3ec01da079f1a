r"""How good a prediction was: proper scores of observed values.

A value that is known as an interval, or that is the atom of its law, is scored by what is known of
it. Its log score is the log of the probability of the interval. Its CRPS is the integral over what
lies outside the interval. Its PIT lies between F(low) and F(high): where, is drawn evenly. The
k-th interval (k = 0, 1, ...) takes the point :math:`\{ \tfrac12 + k (\sqrt 5 - 1) / 2 \}` of the
way, a sequence that fills [0, 1] evenly, so that the same data have the same PIT each time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from xcopula.arrays import FloatArray
from xcopula.marginals.base import Marginal
from xcopula.marginals.intervals import interval_scores, is_interval
from xcopula.process.predictive import Predictive
from xcopula.process.sample import Moments

__all__ = ["Scores", "drawn_scores", "scores", "scores_of"]

_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)


class Scores(NamedTuple):
    """Predictions of observed values and their scores, each (m,).

    ``lower`` and ``upper`` bound the central 90 %; ``score``, ``mean`` and ``std`` are latent.
    The score of an interval is the one that has its PIT.
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


def scores(
    moments: Moments, law: Marginal, observed: FloatArray, limits: FloatArray | None = None
) -> Scores:
    """Score latent predictions of observed values.

    Parameters
    ----------
    moments : Moments
        Latent mean and variance of each value, predicted without it.
    law : Marginal
        Of the variable, bound to the rows of the values if it varies.
    observed : ndarray (m,)
    limits : ndarray (2, m), optional
        Between which each lies, where some are known as intervals.
    """
    return scores_of(Predictive.of(moments, law), observed, limits)


def scores_of(
    predicted: Predictive, observed: FloatArray, limits: FloatArray | None = None
) -> Scores:
    """Score predictions of observed values, each made without it; see :func:`scores`."""
    found = Scores(
        observed=observed,
        median=predicted.quantile(0.5),
        lower=predicted.quantile(0.05),
        upper=predicted.quantile(0.95),
        pit=predicted.cdf(observed),
        crps=predicted.crps(observed),
        log_score=predicted.log_density(observed),
        score=predicted.law.to_normal(observed),
        mean=predicted.latent_mean(),
        std=predicted.latent_std(),
    )
    low, high = np.stack([observed, observed]) if limits is None else limits
    if predicted.law.atom is not None:
        low = np.where((observed == predicted.law.atom) & (low == high), -np.inf, low)
    inside = low < high
    return _with_intervals(found, predicted, low, high, inside) if inside.any() else found


def drawn_scores(law: Marginal, values: FloatArray, limits: FloatArray) -> FloatArray:
    """Return the normal scores (n,) of values under a law, bound to their rows.

    Of an interval, or an atom of the law, the score is drawn evenly between the probabilities of
    its ends, by the rule above: they are standard normal if the law is right.
    """
    inside = is_interval(limits)
    if law.atom is not None:
        inside = inside | (values == law.atom)
    scores = law.to_normal(values)
    if not inside.any():
        return scores
    ends = interval_scores(law, np.where(inside, limits, [[-np.inf], [np.inf]]))
    below, up_to = ndtr(ends)
    return np.where(inside, ndtri(below + _places(inside) * (up_to - below)), scores)


def _places(inside: npt.NDArray[np.bool_]) -> FloatArray:
    """Return how far along its way each interval's PIT stands."""
    return np.asarray(np.modf(0.5 + _GOLDEN * (np.cumsum(inside) - 1))[0])


def _with_intervals(
    found: Scores,
    predicted: Predictive,
    low: FloatArray,
    high: FloatArray,
    inside: npt.NDArray[np.bool_],
) -> Scores:
    """Score those that are known as intervals by what is known of them."""
    place = _places(inside)
    below, up_to = predicted.cdf_below(low), predicted.cdf(high)
    pit = np.where(inside, below + place * (up_to - below), found.pit)
    with np.errstate(invalid="ignore"):
        score = found.mean + found.std * ndtri(pit)
    return found._replace(
        pit=pit,
        crps=np.where(inside, predicted.crps_of_intervals(low, high), found.crps),
        log_score=np.where(inside, predicted.log_mass(low, high), found.log_score),
        score=np.where(inside, score, found.score),
    )
