"""Predict and score the withheld values of one fold: by the model, and by its climatology."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from xcopula.labels.observations import Observations
from xcopula.marginals import Law, Marginal, Recipe, fit_law
from xcopula.marginals.truncation import Truncate, Truncated
from xcopula.marginals.varying import innermost
from xcopula.marginals.zero_inflated import with_zeros
from xcopula.model import CopulaModel
from xcopula.process import Moments, Predictive, scores_of

__all__ = ["Predicted", "Withheld", "climatology", "predict"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


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
    """Predict by the primary's law alone, fitted to what the model holds as if independent.

    Parameters
    ----------
    spec : Law or None
        The law that was asked for; None takes the family of the model's.
    """
    seen = model.observations
    law = fit_law(
        _suited(_family(spec, model.marginals[0]), model.marginals[0]),
        seen.sample.values[seen.sample.task(0)],
        seen.sample.covariates_of(0),
        seen.variables[0].labels,
        None if seen.sample.limits is None else seen.sample.limits_of(0),
    )
    unknown = Moments(np.zeros(withheld.values.size), np.ones(withheld.values.size))
    own = Predictive.of(unknown, law.at(withheld.covariates(seen)))
    return _scored(own, withheld, levels)


def _family(spec: Law | None, fitted: Marginal) -> Law:
    """Return what is fitted to values alone: the law that was asked for, its family settled."""
    inner = innermost(fitted)
    if isinstance(spec, Recipe):
        return next(r for r in spec.candidates() if r.family in (spec.family, type(inner)))
    if isinstance(spec, type):
        return spec
    own = type(inner)
    # A law of one's own may have no fit of its own: it then is that of the model.
    fits = getattr(own.fit, "__func__", None) is not Marginal.fit.__func__  # type: ignore[attr-defined]
    return own if fits else fitted


def _suited(family: Law, fitted: Marginal) -> Law:
    """Return a law with zeros, or cut off, where the model's is."""
    if isinstance(family, Marginal):
        return family
    if isinstance(fitted, Truncated):
        return Truncate(family, fitted.lower, fitted.upper)
    return family if fitted.atom is None else with_zeros(family) or fitted


def _scored(predicted: Predictive, withheld: Withheld, levels: FloatArray) -> Predicted:
    found = scores_of(predicted, withheld.values, withheld.limits)
    quantiles = [predicted.quantile(float(q)) for q in levels]
    return Predicted(found.median, found.pit, found.crps, found.log_score, np.stack(quantiles))
