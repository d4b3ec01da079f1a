"""Which dims of a target are space, and how large the cells of a rectilinear grid are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.arrays import FloatArray
from xcopula.labels.coordinates.groups import EARTH_RADIUS
from xcopula.labels.coordinates.roles import Roles, guessed_roles
from xcopula.labels.coordinates.units import conversion, is_degrees, units_of

__all__ = ["cell_widths", "space_dims"]

_GLOBE, _PLANE = ("longitude", "latitude"), ("x", "y")
# Longitudes go once around where their widest gap is at most so many times the next one.
_CLOSED = 1.5


def space_dims(coords: xr.Coordinates, dims: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """Return the dims along which places lie side by side: of longitude and latitude, of x and y.

    Where no coordinate has such a role, all dims but those of time.
    """
    known = coords.to_dataset()
    roles = guessed_roles(known)
    space = {d for role in _GLOBE + _PLANE for name in roles[role] for d in known[name].dims}
    if not space & set(dims):
        space = set(dims) - {d for name in roles["time"] for d in known[name].dims}
    return tuple(d for d in dims if d in space)


def cell_widths(
    coords: xr.Coordinates, dims: Sequence[Hashable]
) -> tuple[xr.DataArray, xr.DataArray] | None:
    r"""Return how wide cells are along the two dims of a rectilinear grid: areas are products.

    A cell ends halfway to its neighbours, and an outer one as far out as in. In a plane widths have
    the units of x. On the globe they are :math:`R\,\Delta\lambda` and :math:`R\,\Delta\sin\varphi`,
    in km.

    Returns
    -------
    tuple of DataArray, or None
        Along x, then along y. None where places are scattered, the grid is curvilinear, or it has
        one cell only along a dim.
    """
    known = coords.to_dataset()
    roles = guessed_roles(known)
    for pair in (_GLOBE, _PLANE):
        found = [_along_a_dim(known, roles, role, dims) for role in pair]
        across, up = found
        if across is None or up is None or across.dims == up.dims:
            continue
        units = [units_of(c) for c in (across, up)]
        if pair == _GLOBE or all(map(is_degrees, units)):  # a rotated pole keeps areas
            widths = EARTH_RADIUS * _of_longitudes(across), EARTH_RADIUS * _of_latitudes(up)
            own = "km"
        else:
            factor = conversion(units[1], units[0])
            if factor is None:
                return None
            widths = _of_numbers(across), factor * _of_numbers(up)
            own = units[0] or units[1]
        attrs = {"units": own} if own else {}
        along, upward = (
            xr.DataArray(w, dims=c.dims, attrs=attrs)
            for w, c in zip(widths, (across, up), strict=True)
        )
        return along, upward
    return None


def _along_a_dim(
    known: xr.Dataset, roles: Roles, role: str, dims: Sequence[Hashable]
) -> xr.DataArray | None:
    """Return the one coordinate of a role that runs along a dim with two cells or more."""
    found = [known[n] for n in roles[role] if known[n].ndim == 1 and known[n].dims[0] in dims]
    if len(found) > 1:  # of several, the one that labels the dim
        found = [c for c in found if c.name == c.dims[0]]
    usable = len(found) == 1 and found[0].size > 1 and bool(np.isfinite(found[0].values).all())
    return found[0] if usable else None


def _of_numbers(coordinate: xr.DataArray) -> FloatArray:
    values = coordinate.values.astype(np.float64)
    return _between_edges(values, np.argsort(values, kind="stable"), np.positive)


def _of_latitudes(coordinate: xr.DataArray) -> FloatArray:
    values = coordinate.values.astype(np.float64)
    return _between_edges(values, np.argsort(values, kind="stable"), _sine)


def _sine(degrees: FloatArray) -> FloatArray:
    return np.asarray(np.sin(np.deg2rad(np.clip(degrees, -90.0, 90.0))))


def _of_longitudes(coordinate: xr.DataArray) -> FloatArray:
    """Return widths in radians; the widest gap of the circle is where the grid ends."""
    values = coordinate.values.astype(np.float64) % 360.0
    order = np.argsort(values, kind="stable")
    gaps = np.diff(values[order], append=values[order[0]] + 360.0)
    order = np.roll(order, -1 - int(gaps.argmax()))
    unrolled = np.where(values < values[order[0]], values + 360.0, values)
    return _between_edges(unrolled, order, np.deg2rad, gap=float(gaps.max()))


def _between_edges(
    values: FloatArray,
    order: npt.NDArray[np.intp],
    measure: Callable[[FloatArray], FloatArray],
    gap: float = np.inf,
) -> FloatArray:
    """Return what lies between the edges of cells, whose values may come in any order.

    Where the ``gap`` from the last value around a circle to the first is hardly wider than those
    between the others, these two share it.
    """
    ordered = values[order]
    half = 0.5 * np.diff(ordered)
    around = 0.5 * gap <= _CLOSED * half.max()
    first, last = (0.5 * gap, 0.5 * gap) if around else (half[0], half[-1])
    edges = np.concatenate([[ordered[0] - first], ordered[:-1] + half, [ordered[-1] + last]])
    widths = np.empty_like(values)
    widths[order] = np.diff(measure(edges))
    return widths
