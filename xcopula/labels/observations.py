"""From labelled variables to the arrays of a sample: gaps dropped, bad input refused."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.errors import CoordinateError, FieldError
from xcopula.labels.coordinates import CoordinateSystem, Coords, find_coordinates, find_projection
from xcopula.labels.fields import Field, fields_of, find_fields, source_of
from xcopula.labels.sites import find_sites
from xcopula.labels.variables import Data, Laws, loaded, pick, wanted, with_fields, without_idle
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
    """

    variables: tuple[Variable, ...]
    coordinates: CoordinateSystem
    positions: FloatArray
    sites: Sites
    sample: Sample

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables, the primary first."""
        return tuple(v.name for v in self.variables)

    def targets(self, coordinates: Sequence[FloatArray]) -> Targets:
        """Turn numbers, one (m,) array for each axis, into targets of the process."""
        return to_targets(self.coordinates, self.sites, coordinates)


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
    arrays, system = gather(data, names, coords, ard=ard, laws=laws)
    return read(arrays, system, laws or [None] * len(names))


def read(arrays: dict[str, xr.DataArray], system: CoordinateSystem, laws: Laws) -> Observations:
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
    arrays = loaded(arrays)
    rows = [
        _read(name, array, law, system, own=k == 0)
        for k, ((name, array), law) in enumerate(zip(arrays.items(), laws, strict=True))
    ]
    positions = np.concatenate([r.positions for r in rows])
    for axis, numbers in zip(system.axes, positions.T, strict=True):
        strange = _out_of_range(numbers)
        if strange:
            raise CoordinateError(f"Coordinate {axis.name!r} has {strange}")
    _warn_of_degrees(system, positions)
    system = system.scaled_to(positions)
    sites, numbers = find_sites(system, [r.positions for r in rows])
    for name, own, r in zip(arrays, numbers, rows, strict=True):
        _refuse_duplicates(name, own, r.positions, system)
    inputs = [system.to_columns(list(r.positions.T)).T for r in rows]
    _warn_of_strangers(list(arrays), inputs)
    return Observations(
        variables=tuple(
            _variable(name, array, r.fields)
            for (name, array), r in zip(arrays.items(), rows, strict=True)
        ),
        coordinates=system,
        positions=positions,
        sites=sites,
        sample=Sample.of(
            inputs,
            [r.values for r in rows],
            [r.covariates for r in rows],
            np.concatenate(numbers),
        ),
    )


def _variable(name: str, array: xr.DataArray, fields: tuple[Field, ...]) -> Variable:
    # A copy: a model closes its arrays, and those of the attributes are the user's.
    attrs = copy.deepcopy(dict(array.attrs))
    return Variable(name, attrs, tuple(str(d) for d in array.dims), fields)


def gather(
    data: Data,
    names: Sequence[str],
    coords: Coords = None,
    *,
    ard: bool | Sequence[str] = False,
    laws: Laws = (),
    load: bool = True,
) -> tuple[dict[str, xr.DataArray], CoordinateSystem]:
    """Return the variables of a model with all they need, and the inputs of the primary.

    Parameters
    ----------
    load : bool
        Whether to compute what is backed by dask; labels and attributes alone must do otherwise.
    """
    bare = pick(data, names, coords)
    laws = laws or [None] * len(names)
    arrays = with_fields(bare, laws, data)
    for (name, array), law in zip(list(arrays.items()), laws, strict=True):
        arrays[name] = without_idle(array, coords, [source_of(f) for f in wanted(law)[0]])
    if load:
        arrays = loaded(arrays)
    primary = arrays[names[0]]
    fields = [c for c in primary.coords if c not in bare[names[0]].coords]
    return arrays, find_coordinates(primary.drop_vars(fields), coords, ard=ard)


def describe(
    arrays: dict[str, xr.DataArray], laws: Laws, system: CoordinateSystem
) -> tuple[Variable, ...]:
    """Describe the variables of a model from their labels alone."""
    return tuple(
        _variable(name, array, _fields(name, array, law, system)[0])
        for (name, array), law in zip(arrays.items(), laws, strict=True)
    )


def _fields(
    name: str, array: xr.DataArray, law: Law | None, system: CoordinateSystem
) -> tuple[tuple[Field, ...], list[xr.DataArray]]:
    """Return the fields of a variable's law, and their values beside it."""
    try:
        fields = fields_of(array, *wanted(law), system)
        return fields, find_fields(fields, array, system, name, "the variable")
    except FieldError as error:
        raise FieldError(f"Variable {name!r}: {error}") from None


@dataclass(frozen=True)
class _Rows:
    """The finite entries of one variable."""

    positions: FloatArray
    values: FloatArray
    covariates: FloatArray
    fields: tuple[Field, ...]


def _read(
    name: str, array: xr.DataArray, law: Law | None, system: CoordinateSystem, *, own: bool
) -> _Rows:
    """Return the finite entries of a variable, their sites and the fields of its law.

    The system was found in the primary's ``own`` coordinates; those of others are looked for.
    """
    fields, beside = _fields(name, array, law, system)
    if own:
        axes = system.read(array, f"Variable {name!r}")
    else:
        axes = system.find_in(array, f"Variable {name!r}", [f.source for f in fields])
    system.check_projection(find_projection(array), f"Variable {name!r}")
    axes = [axis.reset_coords(drop=True) for axis in axes]
    covered = {d for axis in axes for d in axis.dims}
    free = [str(d) for d in array.dims if d not in covered and array.sizes[d] > 1]
    if free:
        raise CoordinateError(
            f"Variable {name!r} varies along {free}, which the coordinates {list(system.names)} do "
            f"not describe. Select one entry, or add a coordinate of {free} to `coords`."
        )
    values = np.asarray(array.values, np.float64).reshape(-1)
    _check_values(name, values)
    keep = ~np.isnan(values)
    positions = np.column_stack([_along(array, axis)[keep] for axis in axes])
    lost = ~np.isfinite(positions).all(axis=1)
    if lost.any():
        raise CoordinateError(
            f"{lost.sum()} of the {len(lost)} values of {name!r} have a coordinate that is not "
            "finite. Drop them with `dropna` or `where`."
        )
    found = [_along(array, f.reset_coords(drop=True))[keep] for f in beside]
    fields = tuple(f.learnt_from(c, system) for f, c in zip(fields, found, strict=True))
    columns = [f.encode(c) for f, c in zip(fields, found, strict=True)]
    for field, column in zip(fields, columns, strict=True):
        _refuse_missing(name, field, array, np.flatnonzero(keep)[~np.isfinite(column)])
        strange = _out_of_range(column)
        if strange:
            raise FieldError(f"The field {field.name!r} of {name!r} has {strange}")
    covariates = np.column_stack(columns) if columns else np.empty((keep.sum(), 0))
    return _Rows(positions, values[keep], covariates, fields)


def _along(array: xr.DataArray, other: xr.DataArray) -> npt.NDArray[Any]:
    """Return a coordinate at every entry of a variable, in the order of its values."""
    _, whole = xr.broadcast(array.reset_coords(drop=True), other)
    return np.asarray(whole.transpose(*array.dims).values).reshape(-1)


def _refuse_missing(
    name: str, field: Field, array: xr.DataArray, places: npt.NDArray[np.int64]
) -> None:
    """Refuse values whose field is missing, by count and by the names of the first."""
    if not places.size:
        return
    shown = []
    for place in places[:_SHOWN]:
        index = dict(zip(array.dims, np.unravel_index(place, array.shape), strict=True))
        entry = array.isel(index)
        shown.append(
            ", ".join(
                f"{d}={entry[d].values if d in entry.coords else k}" for d, k in index.items()
            )
        )
    raise FieldError(
        f"The field {field.name!r} is missing at {places.size} sites where {name!r} is known "
        f"(first: {'; '.join(shown)}). Fill it in, or drop these sites."
    )


def _check_values(name: str, values: FloatArray) -> None:
    infinite = np.isinf(values)
    if infinite.any():
        raise ValueError(
            f"Variable {name!r} has {infinite.sum()} infinite values (first at position "
            f"{int(np.flatnonzero(infinite)[0])}). Set them to NaN to leave them out."
        )
    finite = values[~np.isnan(values)]
    if finite.size < _FEWEST:
        raise ValueError(
            f"Variable {name!r} has {finite.size} finite values of {values.size}; a task needs at "
            f"least {_FEWEST}. Leave it out, or give more data."
        )
    if np.ptp(finite) == 0.0:
        raise ValueError(
            f"Variable {name!r} is constant: all {finite.size} values are {finite[0]:g}. "
            "Leave it out."
        )
    strange = _out_of_range(finite)
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
