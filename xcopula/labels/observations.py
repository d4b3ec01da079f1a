"""From labelled variables to the arrays of a sample: gaps dropped, bad input refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.labels.coordinates import CoordinateSystem, Coords, find_coordinates, find_projection
from xcopula.errors import CoordinateError, FieldError, warn_user
from xcopula.labels.fields import Field, fields_of, find_fields, source_of
from xcopula.marginals import Law
from xcopula.process.copula import Sample
from xcopula.labels.variables import Data, Laws, loaded, pick, wanted, with_fields, without_idle

__all__ = ["Observations", "gather", "observe", "primary_fields", "read"]

FloatArray = npt.NDArray[np.float64]

_FEWEST = 5
_SHOWN = 3
# Extents this far from each other, in units of the whole, do not overlap.
_APART = 1e-3


@dataclass(frozen=True)
class Observations:
    """What a model was fitted on.

    Attributes
    ----------
    names : tuple of str
        Variables, the primary first.
    attrs : tuple of dict
        Their attributes.
    dims : tuple of str
        Dims of the primary.
    coordinates : CoordinateSystem
    sites : ndarray (n, axes)
        Coordinates of the observations as numbers, in the order of the sample.
    sample : Sample
    fields : tuple of tuple of Field
        What each variable's law varies with.
    """

    names: tuple[str, ...]
    attrs: tuple[dict[str, Any], ...]
    dims: tuple[str, ...]
    coordinates: CoordinateSystem
    sites: FloatArray
    sample: Sample
    fields: tuple[tuple[Field, ...], ...]

    def labels(self, task: int) -> dict[str, tuple[str, ...]]:
        """Return the names of the groups of each key of a variable's law."""
        return {field.name: field.labels for field in self.fields[task] if field.key}


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
    sites = np.concatenate([r.sites for r in rows])
    _warn_of_degrees(system, sites)
    system = system.scaled_to(sites)
    inputs = [system.to_columns(list(r.sites.T)).T for r in rows]
    for name, columns, r in zip(arrays, inputs, rows, strict=True):
        _refuse_duplicates(name, columns, r.sites, system)
    _warn_of_strangers(list(arrays), inputs)
    return Observations(
        names=tuple(arrays),
        attrs=tuple(dict(a.attrs) for a in arrays.values()),
        dims=tuple(str(d) for d in next(iter(arrays.values())).dims),
        coordinates=system,
        sites=sites,
        sample=Sample.of(inputs, [r.values for r in rows], [r.covariates for r in rows]),
        fields=tuple(r.fields for r in rows),
    )


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


def primary_fields(
    arrays: dict[str, xr.DataArray], laws: Laws, system: CoordinateSystem
) -> tuple[Field, ...]:
    """Describe what the primary's law varies with, from labels alone."""
    name, array = next(iter(arrays.items()))
    return _fields(name, array, laws[0], system)[0]


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

    sites: FloatArray
    values: FloatArray
    covariates: FloatArray
    fields: tuple[Field, ...]


def _read(
    name: str, array: xr.DataArray, law: Law | None, system: CoordinateSystem, *, own: bool
) -> _Rows:
    """Return the finite entries of a variable, their sites and the fields of its law.

    The system was found in the primary's ``own`` coordinates; those of others are looked for.
    """
    if array.dtype.kind not in "iuf":
        raise TypeError(
            f"Variable {name!r} has dtype {array.dtype}; a task needs numbers. "
            "Convert it with `.astype(float)` or leave it out."
        )
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
    sites = np.column_stack([_along(array, axis)[keep] for axis in axes])
    lost = ~np.isfinite(sites).all(axis=1)
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
    covariates = np.column_stack(columns) if columns else np.empty((keep.sum(), 0))
    return _Rows(sites, values[keep], covariates, fields)


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


def _refuse_duplicates(
    name: str, columns: FloatArray, raw: FloatArray, system: CoordinateSystem
) -> None:
    # The compiled loops take points within 1e-9 of the extent for one site.
    _, first, counts = np.unique(
        np.round(columns, 9), axis=0, return_index=True, return_counts=True
    )
    repeated = np.flatnonzero(counts > 1)
    if repeated.size:
        shown = "; ".join(", ".join(_labels(system, raw[first[k]])) for k in repeated[:_SHOWN])
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
