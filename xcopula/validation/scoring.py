"""Predict and score the withheld values of one fold: by the model, and by its climatology."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from xcopula.arrays import FloatArray, IntArray
from xcopula.fitting.defaults import fit_within
from xcopula.labels.observations import Observations
from xcopula.marginals import Law, Marginal
from xcopula.marginals.censored import Censored
from xcopula.marginals.truncation import Truncated
from xcopula.marginals.varying import innermost
from xcopula.model import CopulaModel
from xcopula.process import Moments, Predictive, scores_of

__all__ = ["Predicted", "Withheld", "climatology", "predict"]


class Predicted(NamedTuple):
    """Predictions of withheld values and their scores, each (m,); quantiles are (q, m)."""

    median: FloatArray
    pit: FloatArray
    crps: FloatArray
    log_score: FloatArray
    quantiles: FloatArray


@dataclass(frozen=True)
class Withheld:
    """Values of the primary that a model has not seen: where they are, and what they are.

    Attributes
    ----------
    positions : ndarray (m, axes)
    values : ndarray (m,)
    fields : tuple of ndarray (m,)
        What its law varies with there: numbers, or names of groups.
    limits : ndarray (2, m), optional
        Between which they lie, where some are known as intervals.
    """

    positions: FloatArray
    values: FloatArray
    fields: tuple[npt.NDArray[Any], ...]
    limits: FloatArray | None = None

    @classmethod
    def of(cls, observations: Observations, rows: IntArray) -> Withheld:
        """Return some values of the primary, by their numbers."""
        columns = observations.sample.covariates_of(0)[rows].T
        fields = [
            np.asarray(field.groups)[column.astype(np.int64)] if field.key else column
            for field, column in zip(observations.variables[0].fields, columns, strict=True)
        ]
        sample = observations.sample
        limits = None if sample.limits is None else sample.limits[:, rows]
        return cls(observations.positions[rows], sample.values[rows], tuple(fields), limits)

    def covariates(self, observations: Observations) -> FloatArray:
        """Return the covariates (m, c) as other observations count groups."""
        known = observations.variables[0].fields
        columns = [f.encode(v) for f, v in zip(known, self.fields, strict=True)]
        return np.column_stack(columns) if columns else np.empty((self.values.size, 0))


def predict(model: CopulaModel, withheld: Withheld, levels: FloatArray) -> Predicted:
    """Predict withheld values of the primary, given all that the model holds."""
    seen = model.observations
    targets = seen.targets(list(withheld.positions.T))
    process = model.predictor.process
    law = process.laws[0].at(withheld.covariates(seen))
    predicted = Predictive.of(process.moments(targets, 0), law)
    return _scored(predicted, withheld, levels)


def climatology(
    spec: Law | None, model: CopulaModel, withheld: Withheld, levels: FloatArray
) -> Predicted:
    """Predict by the primary's marginal alone, fitted to what the model holds as if independent.

    Parameters
    ----------
    spec : Law or None
        The law that was named; None takes the family of the model's.
    """
    seen, fitted = model.observations, model.marginals[0]
    law = fit_within(
        # An instance only says where the fit of the model started.
        _family(fitted) if spec is None or isinstance(spec, Marginal) else spec,
        seen.sample.select([0]),
        seen.variables[0].labels,
        fitted.support if isinstance(fitted, Truncated | Censored) else None,
    )
    unknown = Moments(np.zeros(withheld.values.size), np.ones(withheld.values.size))
    predicted = Predictive.of(unknown, law.at(withheld.covariates(seen)))
    return _scored(predicted, withheld, levels)


def _family(fitted: Marginal) -> Law:
    """Return the family of a marginal, or itself if it has no fit of its own."""
    family = type(innermost(fitted))
    fits = getattr(family.fit, "__func__", None) is not Marginal.fit.__func__  # type: ignore[attr-defined]
    return family if fits else fitted


def _scored(predicted: Predictive, withheld: Withheld, levels: FloatArray) -> Predicted:
    found = scores_of(predicted, withheld.values, withheld.limits)
    quantiles = [predicted.quantile(float(q)) for q in levels]
    return Predicted(found.median, found.pit, found.crps, found.log_score, np.stack(quantiles))
