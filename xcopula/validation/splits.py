"""What each fold trains on and what it predicts, checked before any work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from xcopula.arrays import IntArray
from xcopula.labels.buffer import near_any
from xcopula.labels.observations import Observations
from xcopula.labels.rows import FEWEST
from xcopula.validation.folds import Folds

__all__ = ["Split", "split"]


class Split(NamedTuple):
    """A fold: its label, the observations that it predicts, and those that it is trained on."""

    label: str
    test: IntArray
    train: IntArray


def split(
    observations: Observations, folds: Folds, *, drop: bool, buffer: Mapping[str, float] | None
) -> list[Split]:
    """Return the folds of the primary.

    Parameters
    ----------
    drop : bool
        Whether secondaries are withheld at the same places.
    buffer : mapping, optional
        Distances within which the withheld variables are not used either.

    Raises
    ------
    ValueError
        If a fold leaves too little to train on.
    """
    sample, fold = observations.sample, folds.of(observations)
    own = np.arange(sample.size) < sample.offsets[1]
    withheld = np.full(sample.size, True) if drop else own
    splits = []
    for k, label in enumerate(folds.labels):
        test = np.flatnonzero(own & (fold == k))
        lost = withheld & (fold == k)
        if buffer is not None:
            lost |= withheld & near_any(observations, test, buffer)
        found = Split(str(label), test, np.flatnonzero(~lost))
        _check(observations, found, buffer)
        splits.append(found)
    return splits


def _check(observations: Observations, found: Split, buffer: Mapping[str, float] | None) -> None:
    """Refuse a fold that leaves too little of a variable to train on."""
    sample = observations.sample
    stops = np.searchsorted(found.train, sample.offsets)
    for i, variable in enumerate(observations.variables):
        values = sample.values[found.train[stops[i] : stops[i + 1]]]
        what, name = f"Fold {found.label} leaves", variable.name
        if values.size < FEWEST:
            left = f"{values.size} of {sample.sizes[i]} values" if values.size else "nothing"
            advice = "Use a smaller `buffer`" if buffer is not None else "Use other folds"
            advice += ", or secondaries='keep'" if i else ""
            raise ValueError(
                f"{what} {left} of {name!r} to train on; at least {FEWEST} are needed. {advice}."
            )
        if np.ptp(values) == 0.0:
            raise ValueError(
                f"{what} {values.size} values of {name!r} to train on that are all the same, "
                f"{values[0]:g}. Use other folds."
            )
    _check_groups(observations, found)


def _check_groups(observations: Observations, found: Split) -> None:
    """Refuse a fold that withholds a whole group of the primary's law."""
    sample, variable = observations.sample, observations.variables[0]
    train = found.train[found.train < sample.offsets[1]]
    for field, column in zip(variable.fields, sample.covariates_of(0).T, strict=True):
        lost = np.setdiff1d(column[found.test], column[train])
        if field.key and lost.size:
            raise ValueError(
                f"Fold {found.label} withholds every value of {field.name} "
                f"{field.labels[int(lost[0])]}, so that the law of {variable.name!r} cannot be "
                f"fitted there. Use folds that divide each {field.name}, or another law."
            )
