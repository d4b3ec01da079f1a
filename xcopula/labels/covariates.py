"""Covariates that a marginal may vary with, read at the sites of a model's observations."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from xcopula.arrays import FloatArray
from xcopula.errors import FieldError
from xcopula.labels.entries import find_entries
from xcopula.labels.fields import attach_fields, fields_of
from xcopula.labels.georeference import georeferenced
from xcopula.labels.observations import Observations
from xcopula.labels.rows import Rows, place_of, read_rows
from xcopula.labels.variables import Data, names_in, pick, without_idle

__all__ = ["covariates_at"]


def covariates_at(data: Data, observations: Observations) -> tuple[dict[str, FloatArray], ...]:
    """Read the variables of some data that are no variables of a model, at its observations.

    Where the data hold a variable of the model too, the covariates are laid out along its dims:
    elevation of stations beside values of stations and times. Else their own coordinates say where
    they are known. Fields that the law of a variable varies with already are left out.

    Returns
    -------
    tuple of dict
        For each variable of the model, the covariates (n,) by name.

    Raises
    ------
    TypeError, KeyError
        If the data are none, or have no covariate.
    FieldError
        If one is missing where a variable was observed, or has no numbers.
    """
    data = georeferenced(data)
    there, inputs = names_in(data), observations.coordinates.names
    names = [n for n in there if n not in observations.names and n not in inputs]
    if not names:
        raise KeyError(
            f"`covariates` has the variables {there}, and none beside those of the model "
            f"({list(observations.names)}) and its coordinates. Add some; `reset_coords(name)` "
            "makes a variable of a coordinate."
        )
    return tuple(
        {
            name: _at_observations(data, name, observations, task)
            for name in names
            if name not in {field.source for field in variable.fields}
        }
        for task, variable in enumerate(observations.variables)
    )


def _at_observations(data: Any, name: str, observations: Observations, task: int) -> FloatArray:
    """Return a covariate (n,) at the observations of a task."""
    system, own = observations.coordinates, observations.sample.task(task)
    rows = _read(data, name, observations, task)
    known = observations.sites.find(system.places(list(rows.positions.T)))
    order = np.argsort(known, kind="stable")
    # A place beyond the last one, for sites that are nowhere.
    numbers, values = np.append(known[order], -2), np.append(rows.covariates[order], np.nan)
    place = np.searchsorted(numbers[:-1], observations.places()[own])
    missing = np.flatnonzero(numbers[place] != observations.places()[own])
    if missing.size:
        raise FieldError(
            f"The covariate {name!r} is missing at {missing.size} of {place.size} observations of "
            f"{observations.names[task]!r} (first: "
            f"{place_of(system, observations.positions[own][missing[0]])}). Fill it in, or leave "
            "it out."
        )
    return np.asarray(values[place])


def _read(data: Any, name: str, observations: Observations, task: int) -> Rows:
    """Read a covariate where it is known, by the code that reads the fields of a law."""
    system, variable = observations.coordinates, observations.names[task]
    there = names_in(data)
    anchor = variable if variable in there else name
    inputs = [n for n in system.names if n in there]
    array = pick(data, [anchor], inputs or None)[anchor]
    array = attach_fields(variable, xr.ones_like(array, np.float64), [name], data)
    array = without_idle(array, list(system.names), [name])
    entries = find_entries({variable: array.where(array[name].notnull())})[variable]
    if not entries.values.size:
        return Rows(np.empty((0, len(system.names))), np.empty(0), np.empty((0, 1)))
    return read_rows(entries, fields_of(entries.labels, [name], (), system), system)
