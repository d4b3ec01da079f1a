"""Which coordinate plays which CF role: by attributes, and by guess from names."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import xarray as xr

from xcopula.coordinates.units import is_degrees, units_of

__all__ = ["ROLES", "Roles", "coordinates_of", "guessed_roles", "listed", "stated_roles"]

Roles = dict[str, list[str]]

ROLES = ("longitude", "latitude", "x", "y", "z", "time")


def coordinates_of(data: xr.Dataset | xr.DataArray) -> xr.Dataset:
    """Return the coordinates alone, as a Dataset without variables."""
    return xr.Dataset(coords=data.coords)


def stated_roles(coordinates: xr.Dataset) -> Roles:
    """Return the names that claim each role by their attributes."""
    import cf_xarray  # noqa: F401 - registers .cf

    return _roles(coordinates)


def guessed_roles(coordinates: xr.Dataset) -> Roles:
    """Return the names that claim each role by their attributes or else by their names.

    A name is only a guess: one that says latitude of a coordinate in metres is not believed.
    """
    import cf_xarray  # noqa: F401 - registers .cf

    roles = _roles(coordinates.cf.guess_coord_axis())
    for role in ("longitude", "latitude"):
        roles[role] = [
            name
            for name in roles[role]
            if not units_of(coordinates[name]) or is_degrees(units_of(coordinates[name]))
        ]
    return roles


def _roles(coordinates: xr.Dataset) -> Roles:
    axes, known = coordinates.cf.axes, coordinates.cf.coordinates
    roles = {role: _names(known.get(role)) for role in ("longitude", "latitude")}
    taken = roles["longitude"] + roles["latitude"]
    for role, axis in (("x", "X"), ("y", "Y")):
        roles[role] = [n for n in _names(axes.get(axis)) if n not in taken]
    roles["z"] = _union(axes.get("Z"), known.get("vertical"))
    roles["time"] = _union(axes.get("T"), known.get("time"))
    # A comparison such as ``lat > 45`` keeps the attributes, but is no latitude.
    return {
        role: [n for n in names if coordinates[n].dtype.kind not in "bUS"]
        for role, names in roles.items()
    }


def _names(found: Any) -> list[str]:
    return [str(name) for name in found or []]


def _union(*found: Any) -> list[str]:
    return list(dict.fromkeys(name for names in found for name in _names(names)))


def listed(coords: Mapping[Hashable, object]) -> str:
    """Name the coordinates there are, for messages."""
    return f"coords {[str(c) for c in coords]}" if coords else "no coords"
