r"""How the predictions of sub-models become one.

Sub-model 0 sees the primary alone, sub-model i the primary and secondary i. Two rules:

*Precisions.* The single-task precision plus the information that each secondary adds,

.. math:: P = G_1^{-1} + \sum_i \beta_i (G_{1i}^{-1} - G_1^{-1})

The report's rule is :math:`\beta = 1`. It counts what secondaries have in common once for each;
calibrated weights in [0, 1] undo that.

*Stacking.* The best linear combination of the predictions, given how their errors correlate.

Both are learnt from the sub-models' leave-one-out predictions of the primary, in closed form or
nearly so, without a refit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xcopula.marginals.base import Marginal
from xcopula.fitting.optimiser import minimise
from xcopula.process.outcome import crps
from xcopula.process.copula import Moments

__all__ = ["WEIGHTS", "Combination", "calibrate", "combine"]

FloatArray = npt.NDArray[np.float64]

WEIGHTS = ("auto", "calibrated", "stacked", "report")

# How far correlations between errors are drawn to zero.
_SHRINKAGE = 0.05


@dataclass(frozen=True)
class Combination:
    """A rule of combination, learnt.

    Attributes
    ----------
    kind : {"calibrated", "stacked", "report"}
    beta : ndarray (t - 1,)
        Weight of each secondary's information.
    error_precision : ndarray (t, t)
        Inverse second moments of the sub-models' standardised errors, for stacking.
    log_scores : dict
        Mean leave-one-out log score of each rule, in latent units.
    crps : dict
        Mean leave-one-out CRPS of each rule, in the units of the primary.
    """

    kind: str
    beta: FloatArray
    error_precision: FloatArray
    log_scores: dict[str, float]
    crps: dict[str, float]

    @property
    def coefficients(self) -> FloatArray:
        """Weights (t,) of the sub-models' precisions; they add up to one."""
        return np.concatenate([[1.0 - self.beta.sum()], self.beta])


def combine(rule: Combination, mean: FloatArray, variance: FloatArray) -> Moments:
    """Combine predictions point by point: means and variances (t, m) of the sub-models."""
    if rule.kind == "stacked":
        stacked = _stack(rule.error_precision, mean, variance)
        # Secondaries with nothing in common know the most that can be known. Errors that differ
        # where they were learnt would otherwise promise more at cells that no secondary informs,
        # where all sub-models say the same.
        ones = np.ones(len(mean) - 1)
        least = _add_precisions(np.array([1.0 - ones.sum(), *ones]), mean, variance).variance
        return Moments(stacked.mean, np.maximum(stacked.variance, least))
    return _add_precisions(rule.coefficients, mean, variance)


def _add_precisions(coefficients: FloatArray, mean: FloatArray, variance: FloatArray) -> Moments:
    # A point that a sub-model knows exactly is known: a floor keeps the arithmetic finite.
    weights = coefficients[:, None] / np.maximum(variance, 1e-12)
    total = weights.sum(axis=0)
    return Moments((weights * mean).sum(axis=0) / total, 1.0 / total)


def _stack(error_precision: FloatArray, mean: FloatArray, variance: FloatArray) -> Moments:
    inverse = 1.0 / np.sqrt(np.maximum(variance, 1e-12))
    weights = inverse * (error_precision @ inverse)
    total = weights.sum(axis=0)
    return Moments((weights * mean).sum(axis=0) / total, 1.0 / total)


def calibrate(
    kind: str, marginal: Marginal, values: FloatArray, mean: FloatArray, variance: FloatArray
) -> Combination:
    """Learn a rule from leave-one-out predictions.

    Parameters
    ----------
    kind : {"auto", "calibrated", "stacked", "report"}
        "auto" takes that of calibrated and stacked which has the lower CRPS.
    marginal : Marginal
        Law of the primary, bound to the rows of its observations if it varies.
    values : ndarray (n,)
        Its observations.
    mean, variance : ndarray (t, n)
        Leave-one-out predictions of them by the sub-models, the single-task one first.
    """
    secondaries = len(mean) - 1
    scores = marginal.to_normal(values)
    ones = np.ones(secondaries)
    errors = (scores - mean) / np.sqrt(variance)
    moments = errors @ errors.T / scores.size
    moments = moments * (1.0 - _SHRINKAGE * (1.0 - np.eye(len(mean))))
    # Moments learnt from n errors flatter the combination: the first factor makes up for weights
    # that fit them, the second for the mean over sites that these weights will not see.
    n, t = scores.size, len(mean)
    flattery = n / (n - t + 1) * (n - 1) / (n - t) if n > t + 1 else 1.0
    precision = np.asarray(np.linalg.inv(moments), np.float64) / flattery
    rules = {"report": Combination("report", ones, precision, {}, {})}
    if secondaries > 1:
        beta = _calibrated_weights(scores, mean, variance)
        rules["calibrated"] = Combination("calibrated", beta, precision, {}, {})
        rules["stacked"] = Combination("stacked", beta, precision, {}, {})
    combined = {name: combine(rule, mean, variance) for name, rule in rules.items()}
    log_scores = {name: _log_score(scores, m) for name, m in combined.items()}
    ranked = {
        name: float(crps(m.mean, np.sqrt(m.variance), marginal, values).mean())
        for name, m in combined.items()
    }
    if secondaries <= 1:
        chosen = "report"  # one secondary: the pair model is the full model, there is no choice
    elif kind == "auto":
        chosen = min(("calibrated", "stacked"), key=lambda name: ranked[name])
    else:
        chosen = kind
    rule = rules[chosen]
    return Combination(rule.kind, rule.beta, rule.error_precision, log_scores, ranked)


def _log_score(scores: FloatArray, moments: Moments) -> float:
    error = (scores - moments.mean) ** 2 / moments.variance
    return float(-0.5 * np.mean(error + np.log(2.0 * np.pi * moments.variance)))


def _calibrated_weights(scores: FloatArray, mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Return the weights in [0, 1] of the best leave-one-out log score."""
    precision = 1.0 / variance
    gain = precision[1:] - precision[0]
    pull = (mean * precision)[1:] - (mean * precision)[0]

    def loss(beta: FloatArray) -> tuple[float, FloatArray]:
        total = precision[0] + beta @ gain
        centre = (mean[0] * precision[0] + beta @ pull) / total
        error = scores - centre
        value = 0.5 * float(np.sum(total * error**2 - np.log(total)))
        by_centre = -total * error
        by_total = 0.5 * (error**2 - 1.0 / total)
        return value, gain @ by_total + ((pull - centre * gain) / total) @ by_centre

    box = np.tile([0.0, 1.0], (len(gain), 1))
    start = np.full(len(gain), 1.0 / len(gain))
    return minimise(loss, start, box).theta
