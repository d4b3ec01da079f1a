r"""How the predictions of sub-models become one.

Sub-model 0 sees the primary alone, sub-model i the primary and secondary i. The combination is the
single-task precision plus the information that each secondary adds,

.. math:: P = G_1^{-1} + \sum_i \beta_i (G_{1i}^{-1} - G_1^{-1})

The report's rule is :math:`\beta = 1`. It counts what secondaries have in common once for each.
Calibrated weights in [0, 1] undo that: they have the best leave-one-out log score of the primary,
without a refit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from xcopula.arrays import FloatArray
from xcopula.marginals.base import Marginal
from xcopula.process import Moments, scores

__all__ = ["WEIGHTS", "Combination", "calibrate", "combine"]

WEIGHTS = ("calibrated", "report")


@dataclass(frozen=True)
class Combination:
    """A rule of combination, learnt.

    Attributes
    ----------
    kind : {"calibrated", "report"}
    beta : ndarray (t - 1,)
        Weight of each secondary's information.
    log_scores : dict
        Mean leave-one-out log score of each rule, in latent units.
    crps : dict
        Mean leave-one-out CRPS of each rule, in the units of the primary.
    """

    kind: str
    beta: FloatArray
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
    # A point that a sub-model knows exactly is known: a floor keeps the arithmetic finite.
    weights = rule.coefficients[:, None] / np.maximum(variance - rest, 1e-12)
    total = weights.sum(axis=0)
    return Moments((weights * mean).sum(axis=0) / total, 1.0 / total + rest)


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
    kind : {"calibrated", "report"}
        With one secondary the pair model is the full model, and both are the same.
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
    rules = {"report": Combination("report", ones, {}, {})}
    if secondaries > 1:
        beta = _calibrated_weights(observed, mean, variance, rest)
        rules["calibrated"] = Combination("calibrated", beta, {}, {})
    combined = {name: combine(rule, mean, variance, rest) for name, rule in rules.items()}
    log_scores = {name: _log_score(observed, m) for name, m in combined.items()}
    crps = {name: float(scores(m, law, values).crps.mean()) for name, m in combined.items()}
    return replace(rules.get(kind, rules["report"]), log_scores=log_scores, crps=crps)


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
