"""Where the values of an array stand: on cells of a map, at points, or along a line."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from xcopula.labels.coordinates import coordinates_of
from xcopula.labels.coordinates.roles import Roles, guessed_roles
from xcopula.labels.coordinates.times import is_time
from xcopula.plot.panels import amount, name_of

__all__ = ["Place", "check_numbers", "find_place", "slice_of", "squeezed"]

Kind: TypeAlias = Literal["map", "points", "line"]

_PAIRS = (("longitude", "latitude"), ("x", "y"))


@dataclass(frozen=True)
class Place:
    """How an array is drawn.

    Attributes
    ----------
    kind : {"map", "points", "line"}
    dims : tuple
        Dims of the values to draw; (vertical, horizontal) on a map with two 1-D coordinates.
    x : DataArray
        What is drawn along the horizontal axis.
    y : DataArray, optional
        What is drawn along the vertical axis; a line has its values there.
    geographic : bool
        Whether the vertical axis is a latitude.
    """

    kind: Kind
    dims: tuple[Hashable, ...]
    x: xr.DataArray
    y: xr.DataArray | None = None
    geographic: bool = False

    @property
    def aspect(self) -> float:
        """The stretch that makes distances equal on both axes, also in degrees."""
        if self.y is not None and self.geographic:
            middle = float(np.nanmean(self.y.values))
            return float(1.0 / np.cos(np.deg2rad(min(abs(middle), 85.0))))
        return 1.0

    @property
    def ratio(self) -> float:
        """Height over width, as distances."""
        assert self.y is not None
        spans = [float(np.nanmax(a.values) - np.nanmin(a.values)) or 1.0 for a in (self.y, self.x)]
        return self.aspect * spans[0] / spans[1]


def find_place(array: xr.DataArray, *, ignore: tuple[str, ...] = ()) -> Place:
    """Find out how an array is drawn: by its dims, and the roles of its coordinates.

    Parameters
    ----------
    array : DataArray
    ignore : tuple of str
        Dims that are not drawn, such as ``quantile``.

    Raises
    ------
    ValueError
        If there are more than two dims, or the coordinates are no numbers.
    """
    dims = [dim for dim in array.dims if dim not in ignore]
    roles = guessed_roles(coordinates_of(array))
    if len(dims) == 1:
        found = _points(array, dims[0], roles) or _line(array, dims[0], roles)
    elif len(dims) == 2:
        found = _map(array, dims, roles)
    else:
        raise ValueError(
            f"A picture needs one or two dims beside {list(ignore) or 'none'}, found "
            f"{list(array.dims)}. {_select((_others(array, dims, roles) or dims)[0])}"
        )
    return found


def squeezed(array: xr.DataArray, *, ignore: tuple[str, ...] = ()) -> xr.DataArray:
    """Return the array without dims of one entry, such as a date, but for those of a map."""
    dims = [dim for dim in array.dims if dim not in ignore]
    others = _others(array, dims, guessed_roles(coordinates_of(array)))
    single = [dim for dim in others if array.sizes[dim] == 1]
    return array.squeeze(single[: len(dims) - 1])


def _others(array: xr.DataArray, dims: list[Hashable], roles: Roles) -> list[Hashable]:
    """Return the dims along which a picture has no axis, where horizontal coordinates say so."""
    pair = _pair(array, roles)
    return [d for d in dims if pair is None or d not in (*pair[0].dims, *pair[1].dims)]


def _select(dim: Hashable) -> str:
    return (
        f"Select one entry along {dim!r}: `sel={{{dim!r}: ...}}` for a posterior, `isel({dim}=0)` "
        "for a Dataset, --select on the command line."
    )


def _pair(array: xr.DataArray, roles: Roles) -> tuple[xr.DataArray, xr.DataArray, bool] | None:
    """Return the horizontal coordinates that spread, and whether the second is a latitude."""
    for x_role, y_role in (*_PAIRS, ("x", "latitude"), ("longitude", "y")):
        x, y = ([n for n in roles[role] if array[n].ndim] for role in (x_role, y_role))
        if len(x) == 1 and len(y) == 1:
            return array[x[0]], array[y[0]], y_role == "latitude"
    return None


def _points(array: xr.DataArray, dim: Hashable, roles: Roles) -> Place | None:
    pair = _pair(array, roles)
    if pair is None or any(each.dims != (dim,) for each in pair[:2]):
        return None
    check_numbers(array, *pair[:2])
    return Place("points", (dim,), *pair)


def _line(array: xr.DataArray, dim: Hashable, roles: Roles) -> Place:
    names = [dim, *(n for role in (*_PAIRS[1], *_PAIRS[0], "z", "time") for n in roles[role])]
    for name in names:
        known = name in array.coords and array[name].dims == (dim,)
        if known and (array[name].dtype.kind in "iuf" or is_time(array[name])):
            check_numbers(array)
            return Place("line", (dim,), array[name])
    raise ValueError(
        f"Along {dim!r} there are neither numbers nor dates to draw {array.name!r} against, found "
        f"coords {[str(c) for c in array.coords]}. Add the coordinates of the target."
    )


def _map(array: xr.DataArray, dims: list[Hashable], roles: Roles) -> Place:
    pair = _pair(array, roles)
    if pair is not None:
        x, y, geographic = pair
        if x.ndim == 1 and y.ndim == 1 and {*x.dims, *y.dims} == set(dims):
            check_numbers(array, x, y)
            return Place("map", (*y.dims, *x.dims), x, y, geographic)
        if set(x.dims) == set(y.dims) == set(dims):
            check_numbers(array, x, y)
            order = tuple(dims)
            return Place("map", order, x.transpose(*order), y.transpose(*order), geographic)
        if x.dims == y.dims and x.ndim == 1:
            (rest,) = set(dims) - set(x.dims)
            raise ValueError(
                f"The points along {x.dims[0]!r} have several entries along {rest!r}. "
                f"{_select(rest)}"
            )
    vertical, horizontal = dims
    first = array[vertical].attrs if vertical in array.coords else {}
    if first.get("axis") == "X" or first.get("standard_name") == "longitude":
        vertical, horizontal = horizontal, vertical
    check_numbers(array, array[vertical], array[horizontal])
    return Place("map", (vertical, horizontal), array[horizontal], array[vertical])


def check_numbers(*arrays: xr.DataArray) -> None:
    """Refuse what is no number, or has no entry.

    Raises
    ------
    ValueError
        It names the array.
    """
    for array in arrays:
        if array.dtype.kind not in "iuf" or not array.size:
            raise ValueError(
                f"{array.name!r} has {array.size} entries of dtype {array.dtype}; a "
                "map needs numbers."
            )


def slice_of(array: xr.DataArray) -> str:
    r"""Return the date and the height of a slice as text; '' if it has none.

    Examples
    --------
    >>> may = np.datetime64("1985-05-01")
    >>> slice_of(xr.DataArray(0.0, coords={"time": may, "z": ((), 2.0, {"units": "m"})}))
    '1985-05-01, z 2\xa0m'
    """
    roles = guessed_roles(coordinates_of(array))
    scalars = [n for n, c in array.coords.items() if c.ndim == 0]
    dates = [_date(array[n].values) for n in scalars if is_time(array[n])]
    levels = [array[n] for n in scalars if n in roles["z"] and array[n].dtype.kind in "iuf"]
    heights = [f"{name_of(z).lower()} {amount(float(z), z.attrs.get('units', ''))}" for z in levels]
    return ", ".join(dates + heights)


def _date(value: NDArray[Any]) -> str:
    """Return a date, with its time of day unless that is midnight."""
    if value.dtype.kind == "M":
        text = str(np.datetime_as_string(value.astype("M8[m]")))
    else:
        text = f"{value.item():%Y-%m-%dT%H:%M}"
    day, _, hour = text.partition("T")
    return day if hour == "00:00" else f"{day} {hour}"
