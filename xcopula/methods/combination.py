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
from xcopula.process import Moments, scores

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


def combine(rule: Combination, mean: FloatArray, variance: FloatArray, rest: FloatArray) -> Moments:
    """Combine predictions point by point.

    Parameters
    ----------
    rule : Combination
    mean, variance : ndarray (t, m)
        Of the sub-models.
    rest : ndarray (m,)
        The part of the variance that no sub-model can explain; zero for the signal.
    """
    if rule.kind == "stacked":
        stacked = _stack(rule.error_precision, mean, variance)
        # Secondaries with nothing in common know the most that can be known. Errors that differ
        # where they were learnt would otherwise promise more at cells that no secondary informs,
        # where all sub-models say the same.
        ones = np.ones(len(mean) - 1)
        most = np.array([1.0 - ones.sum(), *ones])
        least = _add_precisions(most, mean, variance, rest).variance
        return Moments(stacked.mean, np.maximum(stacked.variance, least))
    return _add_precisions(rule.coefficients, mean, variance, rest)


def _add_precisions(
    coefficients: FloatArray, mean: FloatArray, variance: FloatArray, rest: FloatArray
) -> Moments:
    # A point that a sub-model knows exactly is known: a floor keeps the arithmetic finite.
    weights = coefficients[:, None] / np.maximum(variance - rest, 1e-12)
    total = weights.sum(axis=0)
    return Moments((weights * mean).sum(axis=0) / total, 1.0 / total + rest)


def _stack(error_precision: FloatArray, mean: FloatArray, variance: FloatArray) -> Moments:
    inverse = 1.0 / np.sqrt(np.maximum(variance, 1e-12))
    weights = inverse * (error_precision @ inverse)
    total = weights.sum(axis=0)
    return Moments((weights * mean).sum(axis=0) / total, 1.0 / total)


def calibrate(
    kind: str,
    law: Marginal,
    values: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    rest: FloatArray,
) -> Combination:
    """Learn a rule from leave-one-out predictions.

    Parameters
    ----------
    kind : {"auto", "calibrated", "stacked", "report"}
        "auto" takes that of calibrated and stacked which has the lower CRPS.
    law : Marginal
        Law of the primary, bound to the rows of its observations if it varies.
    values : ndarray (n,)
        Its observations.
    mean, variance : ndarray (t, n)
        Leave-one-out predictions of them by the sub-models, the single-task one first.
    rest : ndarray (n,)
        The part of the variance that no sub-model can explain.
    """
    secondaries = len(mean) - 1
    observed = law.to_normal(values)
    ones = np.ones(secondaries)
    precision = _error_precision((observed - mean) / np.sqrt(variance))
    rules = {"report": Combination("report", ones, precision, {}, {})}
    if secondaries > 1:
        beta = _calibrated_weights(observed, mean, variance, rest)
        rules["calibrated"] = Combination("calibrated", beta, precision, {}, {})
        rules["stacked"] = Combination("stacked", beta, precision, {}, {})
    combined = {name: combine(rule, mean, variance, rest) for name, rule in rules.items()}
    log_scores = {name: _log_score(observed, m) for name, m in combined.items()}
    ranked = {name: float(scores(m, law, values).crps.mean()) for name, m in combined.items()}
    if secondaries <= 1:
        chosen = "report"  # one secondary: the pair model is the full model, there is no choice
    elif kind == "auto":
        chosen = min(("calibrated", "stacked"), key=lambda name: ranked[name])
    else:
        chosen = kind
    rule = rules[chosen]
    return Combination(rule.kind, rule.beta, rule.error_precision, log_scores, ranked)


def _error_precision(errors: FloatArray) -> FloatArray:
    """Return the inverse second moments (t, t) of standardised errors (t, n), shrunk."""
    t, n = errors.shape
    moments = errors @ errors.T / n
    moments = moments * (1.0 - _SHRINKAGE * (1.0 - np.eye(t)))
    # Moments learnt from n errors flatter the combination: the first factor makes up for weights
    # that fit them, the second for the mean over sites that these weights will not see.
    flattery = n / (n - t + 1) * (n - 1) / (n - t) if n > t + 1 else 1.0
    return np.asarray(np.linalg.inv(moments), np.float64) / flattery


def _log_score(observed: FloatArray, moments: Moments) -> float:
    error = (observed - moments.mean) ** 2 / moments.variance
    return float(-0.5 * np.mean(error + np.log(2.0 * np.pi * moments.variance)))


def _calibrated_weights(
    observed: FloatArray, mean: FloatArray, variance: FloatArray, rest: FloatArray
) -> FloatArray:
    """Return the weights in [0, 1] of the best leave-one-out log score."""
    from scipy.optimize import Bounds, minimize

    precision = 1.0 / np.maximum(variance - rest, 1e-12)
    gain = precision[1:] - precision[0]
    pull = (mean * precision)[1:] - (mean * precision)[0]

    def loss(beta: FloatArray) -> tuple[float, FloatArray]:
        total = precision[0] + beta @ gain
        centre = (mean[0] * precision[0] + beta @ pull) / total
        error = observed - centre
        spread = 1.0 / total + rest
        value = 0.5 * float(np.sum(error**2 / spread + np.log(spread)))
        by_centre = -error / spread
        by_total = 0.5 * ((error / spread) ** 2 - 1.0 / spread) / total**2
        return value, gain @ by_total + ((pull - centre * gain) / total) @ by_centre

    start = np.full(len(gain), 1.0 / len(gain))
    found = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(np.zeros(len(gain)), np.ones(len(gain))),
    )
    return np.asarray(found.x, np.float64)
