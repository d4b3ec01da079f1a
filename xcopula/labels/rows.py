"""The observations of one variable as rows: positions, values and covariates, checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.arrays import FloatArray, IntArray
from xcopula.errors import CoordinateError, FieldError
from xcopula.labels.coordinates import CoordinateSystem
from xcopula.labels.entries import Entries
from xcopula.labels.fields import Field, find_fields
from xcopula.labels.fill import warn_of_fill
from xcopula.labels.origin import Origin, take_origins
from xcopula.warn import warn_user

__all__ = [
    "FEWEST",
    "Rows",
    "check_count",
    "check_enough",
    "check_range",
    "count_specimens",
    "find_beside",
    "place_of",
    "read_rows",
    "refuse_duplicates",
    "warn_of_copies",
]

# Values that a variable needs to be fitted.
FEWEST = 5
_SHOWN = 3
# Squares of values beyond these overflow, or vanish.
_LARGEST = 1e150
_NARROWEST = 1e-150


@dataclass(frozen=True)
class Rows:
    """The finite entries of one variable.

    Attributes
    ----------
    positions : ndarray (n, axes)
        Coordinates as numbers.
    values : ndarray (n,)
    covariates : ndarray (n, c)
        What its law varies with.
    origins : tuple of Origin
    fields : tuple of Field
    limits : ndarray (2, n), optional
        Between which numbers each value lies, where some are known as intervals.
    specimens : ndarray (n,), int64, optional
        What was measured together, where a site may have several values of a variable: values of
        one site with different numbers are replicates. None if a site has one value.
    """

    positions: FloatArray
    values: FloatArray
    covariates: FloatArray
    origins: tuple[Origin, ...] = ()
    fields: tuple[Field, ...] = ()
    limits: FloatArray | None = None
    specimens: IntArray | None = None

    @property
    def both_limits(self) -> FloatArray:
        """The limits (2, n): the values themselves where none is an interval."""
        return np.stack([self.values] * 2) if self.limits is None else self.limits

    def take(self, rows: IntArray) -> Rows:
        """Return some of them, by increasing numbers."""
        return Rows(
            self.positions[rows],
            self.values[rows],
            self.covariates[rows],
            take_origins(self.origins, rows),
            self.fields,
            None if self.limits is None else self.limits[:, rows],
            None if self.specimens is None else self.specimens[rows],
        )

    def followed_by(self, other: Rows) -> Rows:
        """Return these and then others of the same variable.

        Where they stood is known of all of them, or of none.
        """
        known = self.origins and other.origins
        exact = self.limits is None and other.limits is None
        measured = (self.specimens, other.specimens)
        return Rows(
            np.concatenate([self.positions, other.positions]),
            np.concatenate([self.values, other.values]),
            np.concatenate([self.covariates, other.covariates]),
            (*self.origins, *other.origins) if known else (),
            self.fields,
            None if exact else np.concatenate([self.both_limits, other.both_limits], axis=1),
            np.concatenate([s for s in measured if s is not None])
            if all(s is not None for s in measured)
            else None,
        )


def read_rows(
    entries: Entries,
    fields: Sequence[Field],
    system: CoordinateSystem,
    *,
    own: bool = False,
    learn: bool = False,
    specimens: int | None = None,
) -> Rows:
    """Return the finite entries of a variable, their sites and the fields of its law.

    Parameters
    ----------
    entries : Entries
    fields : sequence of Field
    system : CoordinateSystem
    own : bool
        Whether the system was found in its own coordinates; else they are looked for by role.
    learn : bool
        Whether groups of keys are those that occur here; else they are known already.
    specimens : int, optional
        Where to count on what was measured together; None if a site has one value.

    Raises
    ------
    CoordinateError, FieldError, ValueError
        If something is missing, or cannot be used.
    """
    name, what = entries.name, f"Variable {entries.name!r}"
    beside = find_beside(name, fields, entries.labels, system)
    if own:
        axes = system.read(entries.labels, what)
    else:
        axes = system.find_in(entries.labels, what, [f.source for f in fields])
    system.check_projection(entries.projection, what)
    covered = {d for axis in axes for d in entries.covers(axis)}
    free = [str(d) for d, n in entries.sizes.items() if d not in covered and n > 1]
    if free:
        raise CoordinateError(
            f"Variable {name!r} varies along {free}, which the coordinates {list(system.names)} do "
            f"not describe. Select one entry, or add a coordinate of {free} to `coords`."
        )
    _check_finite(entries)
    if learn:
        check_enough(entries)
    check_range(what, entries.values)
    exact = ... if entries.limits is None else entries.limits[0] == entries.limits[1]
    warn_of_fill(name, entries.values[exact])
    positions = np.column_stack([entries.at(axis) for axis in axes])
    lost = ~np.isfinite(positions).all(axis=1)
    if lost.any():
        raise CoordinateError(
            f"{lost.sum()} of the {len(lost)} values of {name!r} have a coordinate that is not "
            "finite. Drop them with `dropna` or `where`."
        )
    found = [entries.at(f) for f in beside]
    if learn:
        fields = [f.learnt_from(c, system) for f, c in zip(fields, found, strict=True)]
    covariates = _encode(entries, fields, found)
    return Rows(
        positions,
        entries.values,
        covariates,
        (Origin.of(entries),),
        tuple(fields),
        entries.limits,
        None if specimens is None else entries.places + specimens,
    )


def count_specimens(every: Sequence[Entries], start: int = 0) -> list[int]:
    """Return where to count on for each variable: those of one shape are measured together."""
    firsts: dict[Any, int] = {}
    for entries in every:
        shape = tuple(entries.sizes.items())
        if shape not in firsts:
            firsts[shape], start = start, start + math.prod(entries.shape)
    return [firsts[tuple(entries.sizes.items())] for entries in every]


def find_beside(
    name: str,
    fields: Sequence[Field],
    labels: xr.Dataset | xr.DataArray,
    system: CoordinateSystem,
) -> list[xr.DataArray]:
    """Find the fields of a variable's law among its labels."""
    try:
        return find_fields(fields, labels, system, name, "the variable")
    except FieldError as error:
        raise FieldError(f"Variable {name!r}: {error}") from None


def _encode(
    entries: Entries, fields: Sequence[Field], found: Sequence[npt.NDArray[np.generic]]
) -> FloatArray:
    """Return the fields at the entries as columns of numbers: (n, c)."""
    columns = []
    for field, values in zip(fields, found, strict=True):
        try:
            column = field.encode(values)
        except FieldError as error:
            raise FieldError(f"Variable {entries.name!r}: {error}") from None
        missing = np.flatnonzero(~np.isfinite(column))
        if missing.size:
            shown = "; ".join(map(entries.called, missing[:_SHOWN]))
            raise FieldError(
                f"The field {field.name!r} is missing at {missing.size} sites where "
                f"{entries.name!r} is known (first: {shown}). Fill it in, or drop these sites."
            )
        strange = _out_of_range(column)
        if strange:
            raise FieldError(f"The field {field.name!r} of {entries.name!r} has {strange}")
        columns.append(column)
    return np.column_stack(columns) if columns else np.empty((entries.values.size, 0))


def _check_finite(entries: Entries) -> None:
    infinite = np.isinf(entries.values)
    if infinite.any():
        raise ValueError(
            f"Variable {entries.name!r} has {infinite.sum()} infinite values (first at position "
            f"{int(entries.places[infinite][0])}). Set them to NaN to leave them out."
        )


def check_enough(entries: Entries) -> None:
    """Refuse a variable that cannot be fitted: too few values, or one value only."""
    check_count(entries)
    name, values = entries.name, entries.values
    if np.ptp(values) == 0.0:
        raise ValueError(
            f"Variable {name!r} is constant: all {values.size} values are {values[0]:g}. "
            "Leave it out."
        )
    if entries.limits is not None and np.isinf(entries.limits).any(axis=0).all():
        raise ValueError(
            f"All {values.size} values of variable {name!r} are censored: each is known by one "
            "limit only, and nothing tells how far from it. Leave the variable out, or give some "
            "values, or limits on both sides."
        )


def check_count(entries: Entries) -> None:
    """Refuse a variable that has too few values to be fitted."""
    if entries.values.size < FEWEST:
        raise ValueError(
            f"Variable {entries.name!r} has {entries.values.size} finite values of "
            f"{math.prod(entries.shape)}; a task needs at least {FEWEST}. Leave it out, or give "
            "more data."
        )


def check_range(what: str, numbers: FloatArray, error: type[ValueError] = ValueError) -> None:
    """Refuse numbers that are too large or too close to compute with."""
    strange = _out_of_range(numbers)
    if strange:
        raise error(f"{what} has {strange}")


def _out_of_range(numbers: FloatArray) -> str:
    """Say why numbers are too large or too close to compute with; '' if they are not."""
    largest = float(np.abs(numbers).max())
    if largest > _LARGEST:
        found = f"values up to {largest:.3g}, which are too large"
    elif np.ptp(numbers) > 0.0 and largest * float((numbers / largest).std()) < _NARROWEST:
        found = f"values that spread by {np.ptp(numbers):.3g}, which is too little"
    else:
        return ""
    return f"{found} to compute with. Rescale its units: divide it by {largest:.0e}, say."


def refuse_duplicates(
    name: str, sites: IntArray, positions: FloatArray, system: CoordinateSystem
) -> None:
    """Refuse several values of one variable at one site."""
    _, first, counts = np.unique(sites, return_index=True, return_counts=True)
    repeated = np.flatnonzero(counts > 1)
    if repeated.size:
        shown = "; ".join(place_of(system, positions[first[k]]) for k in repeated[:_SHOWN])
        raise ValueError(
            f"Variable {name!r} has several values at {repeated.size} of its sites (first: "
            f"{shown}). A site has one value: add the coordinate that tells them apart, such as "
            "time, or average them, with `groupby(...).mean()` say. If they are several "
            "measurements of one thing, pass `replicates=True`."
        )


def warn_of_copies(name: str, sites: IntArray, values: FloatArray) -> None:
    """Warn where every replicate of a variable is a copy: rows may have been given twice."""
    places, counts = np.unique(sites, return_counts=True)
    different = np.unique(np.stack([sites, values]), axis=1).shape[1]
    if different == places.size < values.size:
        warn_user(
            f"Variable {name!r} has several values at {(counts > 1).sum()} of its sites, which "
            "are the same at each of them: the nugget will be next to nothing. If rows were given "
            "twice, keep each once, with `ds.drop_duplicates(...)` say."
        )


def place_of(system: CoordinateSystem, site: FloatArray) -> str:
    """Name a site by its coordinates, for a message."""
    shown = {}
    for axis, number in zip(system.axes, site, strict=True):
        value = axis.decode(np.atleast_1d(number))[0]
        shown[axis.name] = f"{value:g}" if isinstance(value, float) else str(value)
    return ", ".join(f"{name}={value}" for name, value in shown.items())
