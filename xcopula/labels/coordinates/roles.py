"""The CF roles of coordinates: stated by attributes, or guessed from names."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import Any

import xarray as xr

from xcopula.labels.coordinates.units import is_degrees, units_of

__all__ = ["ROLES", "Roles", "coordinates_of", "guessed_roles", "listed", "stated_roles"]

Roles = dict[str, list[str]]

ROLES = ("longitude", "latitude", "x", "y", "z", "time")

# A guess must match the whole name. cf_xarray only looks at how a name begins, and would take an
# index for an x, a latent heat for a latitude and a longwave flux for a longitude.
_GRID = r"(_?(rho|psi|[uvwtcf]|\d+d?))?"
_WHOLE = {
    "longitude": rf"x?(nav_lon|lon|glam)(g|gitude)?s?{_GRID}",
    "latitude": rf"y?(nav_lat|lat|gphi)(itude)?s?{_GRID}",
    "x": rf"(x|i|ni|nlon|rlon){_GRID}(_?(coord|coordinate|utm|k?m))?",
    "y": rf"(y|j|nj|nlat|rlat){_GRID}(_?(coord|coordinate|utm|k?m))?",
}
# Names that cf_xarray does not know.
_ALSO = {"xlat": "latitude", "easting": "x", "northing": "y"}


def coordinates_of(data: xr.Dataset | xr.DataArray) -> xr.Dataset:
    """Return the coordinates alone, as a Dataset without data variables."""
    return xr.Dataset(coords=data.coords)


def stated_roles(coordinates: xr.Dataset) -> Roles:
    """Return the coordinates that claim each role by their attributes."""
    import cf_xarray  # noqa: F401 - registers .cf

    return _roles(coordinates)


def guessed_roles(coordinates: xr.Dataset) -> Roles:
    """Return the coordinates that claim each role by their attributes or by their names.

    A name is only a guess: a ``lat`` in metres is not taken for a latitude.
    """
    stated = stated_roles(coordinates)  # which registers .cf
    roles = _roles(coordinates.cf.guess_coord_axis())
    for role, pattern in _WHOLE.items():
        roles[role] = [
            name
            for name in roles[role]
            if name in stated[role]
            or (re.fullmatch(pattern, name.lower()) and _may_be(role, units_of(coordinates[name])))
        ]
    taken = {n for names in roles.values() for n in names}
    for name in map(str, coordinates.coords):
        role = _ALSO.get(name.lower().rstrip("s"), "")
        numeric = coordinates[name].dtype.kind in "iuf"
        if role and numeric and name not in taken and _may_be(role, units_of(coordinates[name])):
            roles[role].append(name)
    return roles


def _may_be(role: str, units: str) -> bool:
    return role in ("x", "y") or not units or is_degrees(units)


def _roles(coordinates: xr.Dataset) -> Roles:
    axes, known = coordinates.cf.axes, coordinates.cf.coordinates
    roles = {role: _names(known.get(role)) for role in ("longitude", "latitude")}
    taken = roles["longitude"] + roles["latitude"]
    for role, axis in (("x", "X"), ("y", "Y")):
        roles[role] = [n for n in _names(axes.get(axis)) if n not in taken]
    roles["z"] = _union(axes.get("Z"), known.get("vertical"))
    roles["time"] = _union(axes.get("T"), known.get("time"))
    # A comparison such as ``lat > 45`` keeps the attributes, but is not a latitude.
    return {
        role: [n for n in names if coordinates[n].dtype.kind not in "bUS"]
        for role, names in roles.items()
    }


def _names(found: Any) -> list[str]:
    return [str(name) for name in found or []]


def _union(*found: Any) -> list[str]:
    return list(dict.fromkeys(name for names in found for name in _names(names)))


def listed(coords: Mapping[Hashable, object]) -> str:
    """Return the names of coordinates as text for a message."""
    return f"coords {[str(c) for c in coords]}" if coords else "no coords"
