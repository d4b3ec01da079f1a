"""From labelled variables to the arrays of a sample: gaps dropped, bad input refused."""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.errors import CoordinateError, FieldError
from xcopula.labels.coordinates import CoordinateSystem, Coords, find_coordinates
from xcopula.labels.entries import Entries, Source, Unread, find_entries, with_known
from xcopula.labels.fields import Field, fields_of, find_fields, source_of
from xcopula.labels.origin import Columns, Origin, labels_of, take_origins
from xcopula.labels.sites import find_sites
from xcopula.labels.variables import Data, Laws, pick, wanted, with_fields, without_idle
from xcopula.marginals import Law
from xcopula.process import Sample, Sites, Targets
from xcopula.warn import warn_user

__all__ = ["Observations", "Variable", "describe", "gather", "observe", "read", "to_targets"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_FEWEST = 5
_SHOWN = 3
# Extents this far from each other, in units of the whole, do not overlap.
_APART = 1e-3
# Squares of values beyond these overflow, or vanish.
_LARGEST = 1e150
_NARROWEST = 1e-150


@dataclass(frozen=True)
class Variable:
    """A variable of a model, as its labels describe it.

    Attributes
    ----------
    name : str
    attrs : dict
    dims : tuple of str
    fields : tuple of Field
        What its law varies with; groups are known once the data have been read.
    """

    name: str
    attrs: dict[str, Any]
    dims: tuple[str, ...]
    fields: tuple[Field, ...] = ()

    @property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """Names of the groups of each key of its law."""
        return {field.name: field.labels for field in self.fields if field.key}


@dataclass(frozen=True)
class Observations:
    """What a model was fitted on.

    Attributes
    ----------
    variables : tuple of Variable
        The primary first.
    coordinates : CoordinateSystem
    positions : ndarray (n, axes)
        Coordinates of the observations as numbers, in the order of the sample.
    sites : Sites
        The numbered sites; the sample holds the number of each observation.
    sample : Sample
    origins : tuple of tuple of Origin
        For each variable, where its observations stood in the data: one piece of data after the
        other.
    """

    variables: tuple[Variable, ...]
    coordinates: CoordinateSystem
    positions: FloatArray
    sites: Sites
    sample: Sample
    origins: tuple[tuple[Origin, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables, the primary first."""
        return tuple(v.name for v in self.variables)

    def targets(self, coordinates: Sequence[FloatArray]) -> Targets:
        """Turn numbers, one (m,) array for each axis, into targets of the process."""
        return to_targets(self.coordinates, self.sites, coordinates)

    def labels(self, rows: IntArray, taken: Collection[str]) -> tuple[str, Columns]:
        """Return the dim and the coordinates of results at some observations of one variable.

        Parameters
        ----------
        rows : ndarray
            Their numbers in the sample, increasing.
        taken : collection of str
            Names of the results: no coordinate gets one of them.

        Returns
        -------
        dim : str
            That of the data where the variable has one, else ``observation``.
        coords : dict
            Those of the data, and the inputs of the model in any case.
        """
        task = int(np.searchsorted(self.sample.offsets, rows[0], side="right")) - 1
        own = take_origins(self.origins[task], rows - self.sample.offsets[task])
        dim, columns = labels_of(own, taken)
        for axis, numbers in zip(self.coordinates.axes, self.positions[rows].T, strict=True):
            if axis.name not in columns:
                attrs = {"units": axis.units} if axis.units and not axis.epoch else {}
                columns[axis.name] = ((dim,), axis.decode(numbers), attrs)
        return dim, columns


def to_targets(
    system: CoordinateSystem, sites: Sites, coordinates: Sequence[FloatArray]
) -> Targets:
    """Turn numbers, one (m,) array for each axis, into inputs and numbers of sites."""
    return Targets(system.to_columns(coordinates), sites.find(system.places(coordinates)))


def observe(
    data: Data,
    names: Sequence[str],
    coords: Coords = None,
    *,
    ard: bool | Sequence[str] = False,
    laws: Laws = (),
) -> Observations:
    """Find the inputs of some variables and read them; see :func:`gather` and :func:`read`."""
    sources, system = gather(data, names, coords, ard=ard, laws=laws)
    return read(sources, system, laws or [None] * len(names))


def read(sources: Mapping[str, Source], system: CoordinateSystem, laws: Laws) -> Observations:
    """Read the finite values of some variables, where they stand, and what their laws vary with.

    Raises
    ------
    TypeError
        If a variable's dtype cannot be used.
    ValueError
        If a variable has infinities, fewer than five finite values, one value only, or two values
        at one site.
    CoordinateError
        If a variable lacks a coordinate, or it is NaN where a value is not.
    FieldError
        If a field of a law cannot be found, or is missing where a value is not.
    """
    entries = list(find_entries(sources).values())
    rows = [
        _read(e, law, system, own=k == 0)
        for k, (e, law) in enumerate(zip(entries, laws, strict=True))
    ]
    positions = np.concatenate([r.positions for r in rows])
    for axis, numbers in zip(system.axes, positions.T, strict=True):
        strange = _out_of_range(numbers)
        if strange:
            raise CoordinateError(f"Coordinate {axis.name!r} has {strange}")
    _warn_of_degrees(system, positions)
    system = system.scaled_to(positions)
    sites, numbers = find_sites(system, [r.positions for r in rows])
    for e, own, r in zip(entries, numbers, rows, strict=True):
        _refuse_duplicates(e.name, own, r.positions, system)
    inputs = [system.to_columns(list(r.positions.T)).T for r in rows]
    _warn_of_strangers([e.name for e in entries], inputs)
    return Observations(
        variables=tuple(_variable(e.name, e, r.fields) for e, r in zip(entries, rows, strict=True)),
        coordinates=system,
        positions=positions,
        sites=sites,
        sample=Sample.of(
            inputs,
            [r.values for r in rows],
            [r.covariates for r in rows],
            np.concatenate(numbers),
        ),
        origins=tuple((Origin.of(e),) for e in entries),
    )


def _variable(name: str, source: xr.DataArray | Entries, fields: tuple[Field, ...]) -> Variable:
    # A copy: a model closes its arrays, and those of the attributes are the user's.
    attrs = copy.deepcopy(dict(source.attrs))
    return Variable(name, attrs, tuple(str(d) for d in source.dims), fields)


def gather(
    data: Data,
    names: Sequence[str],
    coords: Coords = None,
    *,
    ard: bool | Sequence[str] = False,
    laws: Laws = (),
    load: bool = True,
) -> tuple[dict[str, Source], CoordinateSystem]:
    """Return the variables of a model with all they need, and the inputs of the primary.

    Parameters
    ----------
    load : bool
        Whether to find the entries of the variables, computing what is backed by dask; labels and
        attributes alone must do otherwise.
    """
    bare = pick(data, names, coords)
    laws = laws or [None] * len(names)
    arrays = with_fields(bare, laws, data)
    for (name, array), law in zip(list(arrays.items()), laws, strict=True):
        arrays[name] = without_idle(array, coords, [source_of(f) for f in wanted(law)[0]])
    primary = arrays[names[0]]
    fields = [c for c in primary.coords if c not in bare[names[0]].coords]
    if not load:
        return dict(arrays), find_coordinates(primary.drop_vars(fields), coords, ard=ard)
    found = find_entries(arrays)
    known = found[names[0]]
    whole = with_known(primary, known).drop_vars(fields)
    return dict(found), find_coordinates(whole, coords, ard=ard, extents=known.extents)


def describe(
    sources: Mapping[str, Source], laws: Laws, system: CoordinateSystem
) -> tuple[Variable, ...]:
    """Describe the variables of a model from their labels alone."""
    return tuple(
        _variable(name, source, _fields(name, _labels_of(source), law, system)[0])
        for (name, source), law in zip(sources.items(), laws, strict=True)
        if not isinstance(source, Unread)
    )


def _labels_of(source: xr.DataArray | Entries) -> xr.DataArray | xr.Dataset:
    return source.labels if isinstance(source, Entries) else source


def _fields(
    name: str, labels: xr.DataArray | xr.Dataset, law: Law | None, system: CoordinateSystem
) -> tuple[tuple[Field, ...], list[xr.DataArray]]:
    """Return the fields of a variable's law, and their values beside it."""
    try:
        fields = fields_of(labels, *wanted(law), system)
        return fields, find_fields(fields, labels, system, name, "the variable")
    except FieldError as error:
        raise FieldError(f"Variable {name!r}: {error}") from None


@dataclass(frozen=True)
class _Rows:
    """The finite entries of one variable."""

    positions: FloatArray
    values: FloatArray
    covariates: FloatArray
    fields: tuple[Field, ...]


def _read(entries: Entries, law: Law | None, system: CoordinateSystem, *, own: bool) -> _Rows:
    """Return the finite entries of a variable, their sites and the fields of its law.

    The system was found in the primary's ``own`` coordinates; those of others are looked for.
    """
    name, what = entries.name, f"Variable {entries.name!r}"
    fields, beside = _fields(name, entries.labels, law, system)
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
    _check_values(entries)
    positions = np.column_stack([entries.at(axis) for axis in axes])
    lost = ~np.isfinite(positions).all(axis=1)
    if lost.any():
        raise CoordinateError(
            f"{lost.sum()} of the {len(lost)} values of {name!r} have a coordinate that is not "
            "finite. Drop them with `dropna` or `where`."
        )
    found = [entries.at(f) for f in beside]
    fields = tuple(f.learnt_from(c, system) for f, c in zip(fields, found, strict=True))
    columns = [f.encode(c) for f, c in zip(fields, found, strict=True)]
    for field, column in zip(fields, columns, strict=True):
        _refuse_missing(field, entries, np.flatnonzero(~np.isfinite(column)))
        strange = _out_of_range(column)
        if strange:
            raise FieldError(f"The field {field.name!r} of {name!r} has {strange}")
    covariates = np.column_stack(columns) if columns else np.empty((len(lost), 0))
    return _Rows(positions, entries.values, covariates, fields)


def _refuse_missing(field: Field, entries: Entries, missing: IntArray) -> None:
    """Refuse values whose field is missing, by count and by the names of the first."""
    if missing.size:
        raise FieldError(
            f"The field {field.name!r} is missing at {missing.size} sites where {entries.name!r} "
            f"is known (first: {'; '.join(map(entries.called, missing[:_SHOWN]))}). Fill it in, or "
            "drop these sites."
        )


def _check_values(entries: Entries) -> None:
    name, values = entries.name, entries.values
    infinite = np.isinf(values)
    if infinite.any():
        raise ValueError(
            f"Variable {name!r} has {infinite.sum()} infinite values (first at position "
            f"{int(entries.places[infinite][0])}). Set them to NaN to leave them out."
        )
    if values.size < _FEWEST:
        raise ValueError(
            f"Variable {name!r} has {values.size} finite values of {math.prod(entries.shape)}; a "
            f"task needs at least {_FEWEST}. Leave it out, or give more data."
        )
    if np.ptp(values) == 0.0:
        raise ValueError(
            f"Variable {name!r} is constant: all {values.size} values are {values[0]:g}. "
            "Leave it out."
        )
    strange = _out_of_range(values)
    if strange:
        raise ValueError(f"Variable {name!r} has {strange}")


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


def _refuse_duplicates(
    name: str, sites: IntArray, positions: FloatArray, system: CoordinateSystem
) -> None:
    _, first, counts = np.unique(sites, return_index=True, return_counts=True)
    repeated = np.flatnonzero(counts > 1)
    if repeated.size:
        shown = "; ".join(
            ", ".join(_labels(system, positions[first[k]])) for k in repeated[:_SHOWN]
        )
        raise ValueError(
            f"Variable {name!r} has several values at {repeated.size} of its sites (first: "
            f"{shown}). A site has one value: average them, with `groupby(...).mean()` say, or "
            "keep one."
        )


def _labels(system: CoordinateSystem, site: FloatArray) -> list[str]:
    shown = {}
    for axis, number in zip(system.axes, site, strict=True):
        value = axis.decode(np.atleast_1d(number))[0]
        shown[axis.name] = f"{value:g}" if isinstance(value, float) else str(value)
    return [f"{name}={value}" for name, value in shown.items()]


def _warn_of_degrees(system: CoordinateSystem, sites: FloatArray) -> None:
    names = system.looks_like_degrees(sites)
    if names:
        warn_user(
            f"Coordinates {names} have no units and their values could be degrees; they were taken "
            "for distances in a plane. If they are degrees, set `units='degrees_east'` and "
            "'degrees_north' on them, or pass "
            f"`coords={{'longitude': {names[0]!r}, 'latitude': {names[1]!r}}}`; if not, set their "
            "units."
        )


def _warn_of_strangers(names: list[str], inputs: list[FloatArray]) -> None:
    """Warn of secondaries whose extent does not meet the primary's: they can say little."""
    low, high = inputs[0].min(axis=0), inputs[0].max(axis=0)
    for name, columns in zip(names[1:], inputs[1:], strict=True):
        gap = np.maximum(low - columns.max(axis=0), columns.min(axis=0) - high)
        if (gap > _APART).any():
            warn_user(
                f"The sites of {name!r} do not overlap with those of {names[0]!r} in extent; it "
                "will hardly inform the prediction. Check the coordinates and their units."
            )
