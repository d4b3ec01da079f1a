"""The variables of a model, each with the coordinates and fields it needs. Nothing is computed.

A Dataset may hold longitude and latitude, or the fields of a law, as data variables. Those that a
variable needs are attached to it as coordinates. After that, each variable is a complete DataArray.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import xarray as xr

from xcopula.errors import CoordinateError
from xcopula.labels.coordinates import Coords, coordinates_asked, find_projection
from xcopula.labels.coordinates.projection import reference
from xcopula.labels.coordinates.roles import (
    column_role,
    coordinates_of,
    guessed_roles,
    is_time_name,
)
from xcopula.labels.coordinates.times import is_time
from xcopula.labels.coordinates.units import is_length, units_of
from xcopula.labels.fields import attach_fields
from xcopula.labels.fill import without_fill
from xcopula.marginals import Law
from xcopula.warn import warn_user

__all__ = [
    "Data",
    "Laws",
    "columns_beside",
    "is_lazy",
    "names_in",
    "pick",
    "wanted",
    "with_fields",
    "without_idle",
]

Data = xr.Dataset | Mapping[str, xr.DataArray]
Laws = Sequence[Law | None]

# Roles that columns of a table fill together; a plane in units of length leaves the first ones out.
_TOGETHER = (("longitude", "latitude"), ("x", "y"), ("time",))


def pick(data: Data, names: Sequence[str], coords: Coords = None) -> dict[str, xr.DataArray]:
    """Return the variables of a model with their coordinates and grid mapping.

    Parameters
    ----------
    coords : optional
        The inputs of the model; variables of a Dataset may be among them.

    Raises
    ------
    KeyError
        If a variable is not in the data.
    TypeError
        If the data are of another type.
    """
    available = names_in(data)
    for name in names:
        if name not in available:
            here = name in getattr(data, "coords", ())
            advice = f" It is a coordinate: use `ds.reset_coords({name!r})`." if here else ""
            raise KeyError(f"No variable {name!r} in the data, which have {available}.{advice}")
    arrays = {name: data[name] for name in names}
    for name, array in arrays.items():
        if not isinstance(array, xr.DataArray):
            raise TypeError(
                f"Variable {name!r} is a {type(array).__name__}; a mapping holds DataArrays, with "
                "their coordinates. Convert it."
            )
        _check_array(name, array)
        array = without_fill(array)
        if isinstance(data, xr.Dataset):
            array = _with_inputs(array, data.drop_vars(list(names)), coords)
        arrays[name] = _with_projection(array, data)
    return arrays


def names_in(data: Data) -> list[str]:
    """Return the names of the variables in the data.

    Raises
    ------
    TypeError
        If the data are of another type.
    """
    _check_type(data)
    return [str(n) for n in (data.data_vars if isinstance(data, xr.Dataset) else data)]


def _check_type(data: object) -> None:
    if isinstance(data, xr.Dataset | Mapping):
        return
    advice = "Use `array.to_dataset(name=...)` for a DataArray."
    if isinstance(data, str | os.PathLike):
        advice = "Open the file with `xr.open_dataset(...)`."
    found = type(data).__name__
    raise TypeError(
        f"`data` must be a Dataset, a DataFrame or a mapping of DataArrays, found {found}. {advice}"
    )


def _check_array(name: str, array: xr.DataArray) -> None:
    """Refuse a variable by its dtype and dims, which are known before it is computed."""
    kind = array.dtype.kind
    if kind not in "iuf":
        advice = {
            "c": "Take its `.real` part, its `.imag` part or its `abs`",
            "M": "Subtract a date and divide by `np.timedelta64(1, 'D')`",
            "m": "Divide it by `np.timedelta64(1, 'D')`",
        }.get(kind, "Convert it with `.astype(float)`")
        raise TypeError(
            f"Variable {name!r} has dtype {array.dtype}; a task needs numbers. {advice}, or leave "
            "it out."
        )
    if len(set(array.dims)) < array.ndim:
        raise ValueError(
            f"Variable {name!r} has a dim twice: {list(array.dims)}. Give its dims different names."
        )


def _with_inputs(array: xr.DataArray, others: xr.Dataset, coords: Coords) -> xr.DataArray:
    """Attach the variables that are inputs: those in ``coords``, or those known by name."""
    fitting = {
        str(n): v
        for n, v in others.data_vars.items()
        if set(v.dims) <= set(array.dims) and v.dims and v.dtype.kind in "iufmMOUT"
    }
    if coords is not None:
        chosen = [n for n in coordinates_asked(coords) if n in fitting and n not in array.coords]
    else:
        chosen = _columns(array, fitting)
    return array.assign_coords({n: fitting[n].reset_coords(drop=True) for n in chosen})


def _columns(array: xr.DataArray, columns: Mapping[str, xr.DataArray]) -> list[str]:
    """Return the columns that fill roles which the coordinates of the variable leave open."""
    claims: dict[str, list[str]] = {}
    for name, column in columns.items():
        role = "time" if is_time(column) or is_time_name(name) else column_role(name)
        claims.setdefault(role, []).append(name)
    times = claims.get("time", [])
    claims["time"] = [n for n in times if is_time(columns[n])] or times
    if len(claims["time"]) > 1:
        claims["time"] = [n for n in claims["time"] if is_time_name(n)] or claims["time"]
    taken = guessed_roles(coordinates_of(array))
    plane = any(is_length(units_of(array[n])) for n in taken["x"] + taken["y"])
    chosen = []
    for roles in _TOGETHER[plane:]:
        if any(array[n].ndim for role in roles for n in taken[role]):
            continue
        if all(len(claims.get(role, [])) == 1 for role in roles):
            chosen += [claims[role][0] for role in roles]
        elif roles == ("time",) and claims["time"]:
            raise CoordinateError(
                f"Columns {claims['time']} hold dates. Name the inputs, as in "
                f"`coords=['x', 'y', {claims['time'][0]!r}]`, or drop all but one with `drop_vars`."
            )
    return chosen


def columns_beside(array: xr.DataArray, data: Data, names: Sequence[str]) -> list[str]:
    """Return the variables of the data, but some, that could be coordinates of one of them."""
    parts = data.data_vars if isinstance(data, xr.Dataset) else data
    return [
        str(n)
        for n, part in parts.items()
        if isinstance(part, xr.DataArray)
        and n not in (*names, *array.coords)
        and part.dtype.kind in "iuf"
        and part.dims
        and set(part.dims) <= set(array.dims)
    ]


def _with_projection(array: xr.DataArray, data: Data) -> xr.DataArray:
    projection = find_projection(array, data)
    if projection is None:
        named = reference(array)
        if named:
            warn_user(
                f"Variable {array.name!r} refers to the grid mapping {named!r}, which is not "
                "there. Targets in another projection will not be noticed. Make it a coordinate "
                f"with `set_coords({named!r})` on the Dataset."
            )
        return array
    if "grid_mapping" in array.encoding:  # decoding may have put it there
        array = array.assign_attrs(grid_mapping=projection.name)
    return array.assign_coords({projection.name: projection.to_coordinate()})


def wanted(law: Law | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the fields that a law varies with, and which of them are keys."""
    if law is None or isinstance(law, type):
        return (), ()
    return law.fields, getattr(law, "keys", ())


def with_fields(
    arrays: Mapping[str, xr.DataArray], laws: Laws, data: Data
) -> dict[str, xr.DataArray]:
    """Return the variables with the fields of their laws as coordinates."""
    return {
        name: attach_fields(name, array, wanted(law)[0], data)
        for (name, array), law in zip(arrays.items(), laws, strict=True)
    }


def without_idle(array: xr.DataArray, coords: Coords, fields: Sequence[str]) -> xr.DataArray:
    """Return a variable without the lazy coordinates that are neither inputs nor fields."""
    used = {*fields, *coordinates_asked(coords)}
    lazy = [n for n, c in array.coords.items() if c.chunks is not None and n not in used]
    if not lazy:
        return array
    roles = guessed_roles(coordinates_of(array))
    if coords is None and not any(roles.values()):
        return array  # the only numeric coordinate may be the input
    playing = {n for names in roles.values() for n in names}
    return array.drop_vars([n for n in lazy if n not in playing])


def is_lazy(array: xr.DataArray) -> bool:
    """Tell whether a variable or one of its coordinates is backed by dask."""
    return array.chunks is not None or any(c.chunks is not None for c in array.coords.values())
