"""New data for a model that is fitted: read under its coordinates and laws, joined with the old.

Nothing is scaled or learnt anew. Coordinates are found by role and converted to the model's units,
fields and groups are those of the training data, and sites are numbered over all that is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from xcopula.arrays import IntArray
from xcopula.labels.censoring import AUTO, Censored, Rule, rules_of
from xcopula.labels.coordinates.units import conversion, units_of
from xcopula.labels.dates import check_dates, common_dates
from xcopula.labels.entries import Entries, find_entries
from xcopula.labels.fields import attach_fields
from xcopula.labels.georeference import georeferenced
from xcopula.labels.limits import with_limits
from xcopula.labels.observations import Observations, Variable, check_positions, number
from xcopula.labels.origin import take_origins
from xcopula.labels.rows import Rows, count_specimens, place_of, read_rows
from xcopula.labels.sites import find_sites
from xcopula.labels.variables import Data, names_in, pick, without_idle
from xcopula.warn import warn_user

__all__ = ["Joined", "New", "join", "read_new", "renumber", "select"]


class New(NamedTuple):
    """New values by the number of their task, and the variables with the dates that they have."""

    rows: dict[int, Rows]
    variables: tuple[Variable, ...]


class Joined(NamedTuple):
    """Observations with new ones among them, and how many took the place of others."""

    observations: Observations
    replaced: int


def read_new(
    data: Data, observations: Observations, *, same_date: bool, censored: Censored = AUTO
) -> New:
    """Read new values of the variables of a model, by the number of the task.

    Variables that the data do not have, or that have no value in them, are not there.

    Parameters
    ----------
    data : Dataset, mapping of DataArrays, or DataFrame
    observations : Observations
        Those of the model.
    same_date : bool
        Whether another date than that of a model without time is refused.
    censored : optional
        As in a fit; "auto" stands for what was said there.

    Raises
    ------
    TypeError, KeyError
        If the data are none, or have no variable of the model.
    ValueError
        If there is no value, or a variable has infinities, or other units than the model.
    CoordinateError, FieldError
        As in a fit; also if a group does not occur in the training data, or the date is another.
    """
    data = georeferenced(data)
    there = names_in(data)
    tasks = {n: i for i, n in enumerate(observations.names) if n in there}
    if not tasks:
        raise KeyError(
            f"The new data have no variable of the model: they have {there}, the model has "
            f"{list(observations.names)}."
        )
    rules = _rules(censored, observations, tasks, data)
    system = observations.coordinates
    given = [n for n in system.names if n in there]
    arrays = pick(data, list(tasks), given or None)
    for name, i in tasks.items():
        fields = observations.variables[i].fields
        outside = [f.name for f in fields if f.source not in system.names]
        array = attach_fields(name, arrays[name], outside, data)
        used = [f.source for f in fields]
        array = without_idle(array, list(system.names), used)
        arrays[name] = with_limits(name, array, rules[name], data)
    found = find_entries(arrays)
    first = _specimens(observations, found)
    read, variables = {}, list(observations.variables)
    for name, i in tasks.items():
        variable, entries = observations.variables[i], found[name]
        _check_units(entries, variable)
        if entries.values.size:
            read[i] = read_rows(entries, variable.fields, system, specimens=first[name])
            check_positions(system, read[i].positions)
            sources = [f.source for f in variable.fields]
            found_as = system.search(entries.labels, f"Variable {name!r}", ignore=sources)
            inputs = {*sources, *(str(c.name) for c in found_as)}
            if same_date:
                check_dates(variable.dates, entries.labels, name, inputs, "The new data have")
            variables[i] = replace(variable, dates=common_dates(entries.labels, inputs))
    if not read:
        raise ValueError(f"The new data have no value of {list(tasks)}: all are NaN.")
    return New(read, tuple(variables))


def _rules(
    censored: Censored, observations: Observations, tasks: Mapping[str, int], data: Data
) -> dict[str, Rule]:
    """Return how limits are told of each variable: by default as they were in the fit.

    Raises
    ------
    KeyError
        If the data lack what told it in the fit.
    """
    asked = dict(zip(tasks, rules_of(censored, list(tasks)), strict=True))
    for name, i in tasks.items():
        fitted = observations.variables[i].censored
        if asked[name].kind != AUTO or fitted.kind == AUTO:
            continue
        named = [p for p in fitted.parts if isinstance(p, str)]
        missing = [p for p in named if p not in data and p not in data[name].coords]
        if missing or fitted.kind == "arrays":
            what = f"by {missing}, which the new data lack" if missing else "by arrays"
            raise KeyError(
                f"In the fit the limits of {name!r} were told {what}. Pass `censored` for the new "
                f"data: {{{name!r}: ...}}, or None if all their values are as they are stored."
            )
        asked[name] = fitted
    return asked


def _specimens(
    observations: Observations, found: Mapping[str, Entries]
) -> Mapping[str, int | None]:
    """Return where to count on what was measured together; None if a site has one value."""
    if observations.specimens is None:
        return dict.fromkeys(found)
    after = count_specimens(list(found.values()), int(observations.specimens.max()) + 1)
    return dict(zip(found, after, strict=True))


def _check_units(entries: Entries, variable: Variable) -> None:
    """Refuse values in other units; values without units are assumed to have the model's."""
    found, known = units_of(entries), units_of(variable)
    if conversion(found, known) != 1.0:
        raise ValueError(
            f"Variable {entries.name!r} is in {found!r}, but the model was fitted to it in "
            f"{known!r}. Convert the values and set their `units` attribute."
        )
    if found and not known:
        warn_user(
            f"Variable {entries.name!r} is in {found!r}, but it had no units when the model was "
            "fitted. The units were assumed to be the same. Set `units` on the training data."
        )


def join(observations: Observations, given: New, *, replacing: bool) -> Joined:
    """Add new values to observations.

    Raises
    ------
    ValueError
        If a variable has a value at the same site already, unless ``replacing``, or two new ones:
        where sites may have several values, new ones stand beside the old.
    """
    new = given.rows
    rows = [observations.rows_of(i) for i in range(observations.sample.tasks)]
    both = [r.followed_by(new[i]) if i in new else r for i, r in enumerate(rows)]
    known = _known(observations, rows, both, new)
    count = 0
    for i, (lost, place) in known.items():
        if lost.size and not replacing:
            if observations.specimens is not None:
                continue
            name = observations.variables[i].name
            raise ValueError(
                f"The new data have {lost.size} values of {name!r} at sites where the model has "
                f"one (first: {place}). Leave them out, or pass `replace=True` to put them in "
                "place of the old values."
            )
        count += lost.size
        kept = np.delete(np.arange(both[i].values.size), lost)
        both[i] = both[i].take(kept)
    return Joined(number(observations.variables, observations.coordinates, both), count)


def _known(
    observations: Observations,
    rows: Sequence[Rows],
    both: Sequence[Rows],
    new: Mapping[int, Rows],
) -> dict[int, tuple[IntArray, str]]:
    """Return which old values of each variable new ones stand on, and the first such site.

    New sites are those of the model where the model's own tolerance says so. Near others of the
    same variable the tolerance of all together would be smaller.
    """
    system, sample, places = observations.coordinates, observations.sample, observations.places()
    _, numbers = find_sites(system, [r.positions for r in both])
    out = {}
    for i, added in new.items():
        sites = observations.sites.find(system.places(list(added.positions.T)))
        before = places[sample.task(i)]
        old, own = np.split(numbers[i], [rows[i].values.size])
        lost = np.flatnonzero(np.isin(before, sites) | np.isin(old, own))
        met = np.flatnonzero(np.isin(sites, before) | np.isin(own, old))
        out[i] = lost, place_of(system, added.positions[met[0]]) if met.size else ""
    return out


def renumber(observations: Observations, given: New) -> Observations:
    """Return observations of the same variables that hold new values alone.

    Raises
    ------
    ValueError
        If a variable has no value.
    """
    new = given.rows
    missing = [v.name for i, v in enumerate(observations.variables) if i not in new]
    if missing:
        raise ValueError(
            f"The data have no value of {missing}: every variable of the model needs one at least. "
            "Add some, or fit a model without it."
        )
    rows = [new[i] for i in range(len(observations.variables))]
    return number(given.variables, observations.coordinates, rows)


def select(observations: Observations, rows: IntArray) -> Observations:
    """Return some of the observations, by their increasing numbers; sites keep theirs."""
    sample = observations.sample
    parts = [
        rows[(rows >= sample.offsets[i]) & (rows < sample.offsets[i + 1])] - sample.offsets[i]
        for i in range(sample.tasks)
    ]
    pieces = zip(observations.origins, parts, strict=True) if observations.origins else ()
    return replace(
        observations,
        positions=observations.positions[rows],
        sample=sample.take(rows),
        origins=tuple(take_origins(origins, own) for origins, own in pieces),
        specimens=None if observations.specimens is None else observations.specimens[rows],
    )
