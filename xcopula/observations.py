"""From labelled variables to the arrays of a sample: gaps dropped, bad input refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.coordinates import CoordinateSystem, Coords, find_coordinates
from xcopula.errors import CoordinateError, warn_user
from xcopula.process import Sample

__all__ = ["Data", "Observations", "inputs_of", "is_lazy", "observe", "pick"]

FloatArray = npt.NDArray[np.float64]
Data = xr.Dataset | Mapping[str, xr.DataArray]

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
    sites : ndarray (n, d)
        Raw coordinates of the observations, in the order of the sample.
    sample : Sample
    """

    names: tuple[str, ...]
    attrs: tuple[dict[str, Any], ...]
    coordinates: CoordinateSystem
    sites: FloatArray
    sample: Sample


def observe(
    data: Data, names: Sequence[str], coords: Coords = None, *, ard: bool | Sequence[str] = False
) -> Observations:
    """Read the finite values of some variables and where they stand.

    Dask-backed variables are computed once, and only the chosen ones.

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
    """
    arrays = _loaded(pick(data, names))
    system = inputs_of(arrays, coords, ard=ard)
    pairs = [_flatten(name, array, system) for name, array in arrays.items()]
    sites = np.concatenate([s for s, _ in pairs])
    system = system.scaled_to(sites)
    inputs = [system.to_columns(list(s.T)).T for s, _ in pairs]
    for name, columns, (raw, _) in zip(arrays, inputs, pairs, strict=True):
        _refuse_duplicates(name, columns, raw, system)
    _warn_of_strangers(list(arrays), inputs)
    return Observations(
        names=tuple(arrays),
        attrs=tuple(dict(a.attrs) for a in arrays.values()),
        coordinates=system,
        sites=sites,
        sample=Sample.of(inputs, [v for _, v in pairs]),
    )


def pick(data: Data, names: Sequence[str]) -> dict[str, xr.DataArray]:
    """Return the variables of a model, as they are, after checking that they are there."""
    if not isinstance(data, xr.Dataset | Mapping):
        raise TypeError(
            f"`data` is a Dataset or a mapping of DataArrays, found {type(data).__name__}. "
            "Use `array.to_dataset(name=...)` for a DataArray."
        )
    available = list(data.data_vars) if isinstance(data, xr.Dataset) else list(data)
    for name in names:
        if name not in available:
            raise KeyError(f"No variable {name!r} in the data; it has {available}.")
    lazy = {name: data[name] for name in names}
    for name, array in lazy.items():
        if not isinstance(array, xr.DataArray):
            raise TypeError(
                f"Variable {name!r} is a {type(array).__name__}; a mapping holds DataArrays, which "
                "carry their coordinates."
            )
    return lazy


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
    arrays: dict[str, xr.DataArray], coords: Coords = None, *, ard: bool | Sequence[str] = False
) -> CoordinateSystem:
    """Find the inputs of some variables from labels and attributes alone."""
    merged = xr.Dataset()
    for array in arrays.values():
        new = {n: c for n, c in array.coords.items() if n not in merged.coords}
        try:
            merged = merged.assign_coords(new)
        except ValueError:  # other sizes of the same dim: names and attributes are what counts
            merged = merged.assign_coords(
                {n: c.variable.isel(dict.fromkeys(c.dims, 0)) for n, c in new.items()}
            )
    return find_coordinates(merged, coords, ard=ard)


def _flatten(
    name: str, array: xr.DataArray, system: CoordinateSystem
) -> tuple[FloatArray, FloatArray]:
    """Return raw sites (n, d) and values (n,) of a variable's finite entries."""
    if array.dtype.kind not in "iuf":
        raise TypeError(
            f"Variable {name!r} has dtype {array.dtype}; a task needs numbers. "
            "Convert it with `.astype(float)` or leave it out."
        )
    missing = [n for n in system.names if n not in array.coords]
    if missing:
        raise CoordinateError(
            f"Variable {name!r} has no coordinate {missing[0]!r}; it has "
            f"coords {[str(c) for c in array.coords]}. Every variable needs all of {system.names}."
        )
    for axis in system.axes:
        units = str(array[axis.name].attrs.get("units", "")).strip()
        if units and axis.units and units != axis.units:
            raise CoordinateError(
                f"The coordinate {axis.name!r} of variable {name!r} is in {units!r}, that of "
                f"another variable in {axis.units!r}. Convert one and set its `units` attribute."
            )
    axes = [array[n].reset_coords(drop=True) for n in system.names]
    covered = {d for axis in axes for d in axis.dims}
    free = [str(d) for d in array.dims if d not in covered and array.sizes[d] > 1]
    if free:
        raise CoordinateError(
            f"Variable {name!r} varies along {free}, which the coordinates {list(system.names)} do "
            f"not describe. Select one entry, or add a coordinate of {free} to `coords`."
        )
    _, *columns = xr.broadcast(array.reset_coords(drop=True), *axes)
    dims = array.dims
    values = np.asarray(array.values, np.float64).reshape(-1)
    sites = np.column_stack(
        [np.asarray(c.transpose(*dims).values, np.float64).reshape(-1) for c in columns]
    )
    _check_values(name, values)
    keep = ~np.isnan(values)
    values, sites = values[keep], sites[keep]
    lost = ~np.isfinite(sites).all(axis=1)
    if lost.any():
        raise CoordinateError(
            f"{lost.sum()} of the {len(values)} values of {name!r} have a coordinate that is not "
            "finite. Drop them with `dropna` or `where`."
        )
    return sites, values


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
        shown = "; ".join(
            ", ".join(f"{n}={v:g}" for n, v in zip(system.names, raw[first[k]], strict=True))
            for k in repeated[:_SHOWN]
        )
        raise ValueError(
            f"Variable {name!r} has several values at {repeated.size} of its sites (first: "
            f"{shown}). A site has one value: average them, with `groupby(...).mean()` say, or "
            "keep one."
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
