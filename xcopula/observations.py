"""From labelled variables to the arrays of a sample: gaps dropped, bad input refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.coordinates import CoordinateSystem, Coords, find_coordinates, find_projection
from xcopula.errors import CoordinateError, FieldError, warn_user
from xcopula.fields import Field, attach_fields, fields_of
from xcopula.marginals import Law
from xcopula.process import Sample

__all__ = [
    "Data",
    "Observations",
    "Thin",
    "inputs_of",
    "is_lazy",
    "observe",
    "pick",
    "primary_fields",
]

FloatArray = npt.NDArray[np.float64]
Data = xr.Dataset | Mapping[str, xr.DataArray]
Laws = Sequence[Law | None]
Thin = int | Mapping[str, int] | None

_FEWEST = 5
_SHOWN = 3


@dataclass(frozen=True)
class Observations:
    """What a model was fitted on.

    Attributes
    ----------
    names : tuple of str
        Variables, the primary first.
    attrs : tuple of dict
        Their attributes.
    coordinates : CoordinateSystem
    sites : ndarray (n, axes)
        Coordinates of the observations as numbers, in the order of the sample.
    sample : Sample
    fields : tuple of tuple of Field
        What each variable's law varies with.
    """

    names: tuple[str, ...]
    attrs: tuple[dict[str, Any], ...]
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
    coords: Coords | CoordinateSystem = None,
    *,
    ard: bool | Sequence[str] = False,
    laws: Laws = (),
) -> Observations:
    """Read the finite values of some variables and where they stand.

    Dask-backed variables are computed once, and only the chosen ones.

    Parameters
    ----------
    coords : optional
        As in :func:`~xcopula.coordinates.find_coordinates`, or a system that was found before.
    laws : sequence, optional
        The law of each variable, if any: it may vary with fields of the data.

    Raises
    ------
    KeyError
        If a variable is not in the data.
    TypeError
        If the data or a variable's dtype cannot be used.
    ValueError
        If a variable has infinities, fewer than five finite values, one value only, or two values
        at one site.
    CoordinateError
        If coordinates cannot be found, or are NaN where a value is not.
    FieldError
        If a field of a law cannot be found, or is missing where a value is not.
    """
    laws = laws or [None] * len(names)
    arrays = _loaded(pick(data, names, laws))
    system = inputs_of(arrays, coords, ard=ard)
    rows = [
        _read(name, array, law, system)
        for (name, array), law in zip(arrays.items(), laws, strict=True)
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
        coordinates=system,
        sites=sites,
        sample=Sample.of(inputs, [r.values for r in rows], [r.covariates for r in rows]),
        fields=tuple(r.fields for r in rows),
    )


def pick(
    data: Data, names: Sequence[str], laws: Laws = (), thin: Thin = None
) -> dict[str, xr.DataArray]:
    """Return the variables of a model with all they need as coordinates; nothing is computed.

    Parameters
    ----------
    laws : sequence, optional
        The law of each variable: its fields become coordinates.
    thin : int or mapping of dim to int, optional
        Keep every so many entries along all dims, or along some.
    """
    if not isinstance(data, xr.Dataset | Mapping):
        raise TypeError(
            f"`data` is a Dataset or a mapping of DataArrays, found {type(data).__name__}. "
            "Use `array.to_dataset(name=...)` for a DataArray."
        )
    available = list(data.data_vars) if isinstance(data, xr.Dataset) else list(data)
    for name in names:
        if name not in available:
            raise KeyError(f"No variable {name!r} in the data; it has {available}.")
    arrays = {name: data[name] for name in names}
    for (name, array), law in zip(arrays.items(), laws or [None] * len(names), strict=True):
        if not isinstance(array, xr.DataArray):
            raise TypeError(
                f"Variable {name!r} is a {type(array).__name__}; a mapping holds DataArrays, which "
                "carry their coordinates."
            )
        array = attach_fields(name, array, _wanted(law)[0], data)
        projection = find_projection(array, data)
        if projection is not None:
            if "grid_mapping" in array.encoding:  # where decoding may have put it
                array = array.assign_attrs(grid_mapping=projection.name)
            array = array.assign_coords({projection.name: projection.to_coordinate()})
        arrays[name] = array.thin(_steps(thin, array, arrays)) if thin is not None else array
    return arrays


def _wanted(law: Law | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the fields that a law varies with, and those of them that are keys."""
    if law is None or isinstance(law, type):
        return (), ()
    return law.fields, getattr(law, "keys", ())


def _steps(thin: int | Mapping[str, int], array: xr.DataArray, arrays: Mapping[str, Any]) -> Any:
    if not isinstance(thin, Mapping):
        return dict.fromkeys(array.dims, thin)
    known = {d for other in arrays.values() for d in other.dims}
    unknown = [d for d in thin if d not in known]
    if unknown:
        raise ValueError(f"`thin` names dims {unknown}; the data have {sorted(map(str, known))}.")
    return {d: k for d, k in thin.items() if d in array.dims}


def is_lazy(array: xr.DataArray) -> bool:
    """Tell whether a variable or one of its coordinates is backed by dask."""
    return array.chunks is not None or any(c.chunks is not None for c in array.coords.values())


def _loaded(arrays: dict[str, xr.DataArray]) -> dict[str, xr.DataArray]:
    if not any(is_lazy(array) for array in arrays.values()):
        return arrays
    import dask

    computed: tuple[xr.DataArray, ...] = dask.compute(*arrays.values())
    return dict(zip(arrays, computed, strict=True))


def inputs_of(
    arrays: dict[str, xr.DataArray],
    coords: Coords | CoordinateSystem = None,
    *,
    ard: bool | Sequence[str] = False,
) -> CoordinateSystem:
    """Find the inputs from labels and attributes alone: those of the primary, the first array."""
    if isinstance(coords, CoordinateSystem):
        return coords
    return find_coordinates(next(iter(arrays.values())), coords, ard=ard)


def primary_fields(
    arrays: dict[str, xr.DataArray], laws: Laws, system: CoordinateSystem
) -> tuple[Field, ...]:
    """Describe what the primary's law varies with, from labels alone."""
    name, array = next(iter(arrays.items()))
    try:
        return fields_of(array, *_wanted(laws[0]), system)
    except FieldError as error:
        raise FieldError(f"Variable {name!r}: {error}") from None


@dataclass(frozen=True)
class _Rows:
    """The finite entries of one variable."""

    sites: FloatArray
    values: FloatArray
    covariates: FloatArray
    fields: tuple[Field, ...]


def _read(name: str, array: xr.DataArray, law: Law | None, system: CoordinateSystem) -> _Rows:
    """Return the finite entries of a variable, their sites and the fields of its law."""
    if array.dtype.kind not in "iuf":
        raise TypeError(
            f"Variable {name!r} has dtype {array.dtype}; a task needs numbers. "
            "Convert it with `.astype(float)` or leave it out."
        )
    axes = system.find_in(array, f"Variable {name!r}")
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
    try:
        fields = fields_of(array, *_wanted(law), system)
        found = [_along(array, f.find_in(array, system).reset_coords(drop=True)) for f in fields]
        fields = tuple(f.learnt_from(c[keep], system) for f, c in zip(fields, found, strict=True))
        columns = [f.encode(c[keep]) for f, c in zip(fields, found, strict=True)]
    except FieldError as error:
        raise FieldError(f"Variable {name!r}: {error}") from None
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
        if ((columns.max(axis=0) < low) | (columns.min(axis=0) > high)).any():
            warn_user(
                f"The sites of {name!r} do not overlap with those of {names[0]!r} in extent; it "
                "will hardly inform the prediction. Check the coordinates and their units."
            )
