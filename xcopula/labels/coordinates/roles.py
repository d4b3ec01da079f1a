"""The CF roles of coordinates: stated by attributes, or guessed from names."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from xcopula.errors import CoordinateError
from xcopula.labels.coordinates.times import is_time
from xcopula.labels.coordinates.units import is_degrees, units_of

__all__ = [
    "ROLES",
    "Roles",
    "column_role",
    "coordinates_of",
    "counts_rows",
    "guessed_roles",
    "is_time_name",
    "listed",
    "look_alikes",
    "refuse_text_dates",
    "stated_roles",
]

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
# Names of columns, in small letters and digits alone. A whole name must match: a latent heat is not
# a latitude.
_BEFORE, _BEHIND = r"(utm|coords?|point)?", r"(coords?|coordinates?|utm|m|km)?"
_COLUMNS = {
    "longitude": r"(decimal)?(lon|lng|long|longitude)s?(dd|deg|degrees|wgs84)?",
    "latitude": r"(decimal|x)?(lat|latitude)s?(dd|deg|degrees|wgs84)?",
    "x": rf"{_BEFORE}(x|east|eastings?){_BEHIND}|utme",
    "y": rf"{_BEFORE}(y|north|northings?){_BEHIND}|utmn",
}
_TIMES = r"(date|time|datetime|timestamp|validtime)s?(utc)?"
# Names that are too short or too vague to be taken for coordinates, but not for a hint.
_ALIKE = r"east|north|longit|latit|utm|coord|(^|_)(lon|long|lng|lat|[xyen])\d?($|_)"


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
        role = column_role(name)
        numeric = coordinates[name].dtype.kind in "iuf"
        if role and numeric and name not in taken and _may_be(role, units_of(coordinates[name])):
            roles[role].append(name)
    if not any(is_time(coordinates[n]) for n in roles["time"]):
        roles["time"] += [str(n) for n, c in coordinates.coords.items() if is_time(c)]
    return roles


def column_role(name: str) -> str:
    """Return the horizontal role that the name of a column claims; '' for none."""
    plain = _plain(name)
    return next((r for r, pattern in _COLUMNS.items() if re.fullmatch(pattern, plain)), "")


def is_time_name(name: str) -> bool:
    """Tell whether a column is by its name a date, whatever it holds."""
    return re.fullmatch(_TIMES, _plain(name)) is not None


def look_alikes(names: Iterable[str]) -> list[str]:
    """Return the names that remind of horizontal coordinates, for a message."""
    return [n for n in names if column_role(n) or re.search(_ALIKE, n.lower())]


def counts_rows(coordinates: xr.Dataset, name: str) -> bool:
    """Tell whether a coordinate is an index without meaning."""
    coordinate = coordinates[name]
    if coordinate.dtype.kind not in "iu" or name not in coordinates.dims or coordinate.attrs:
        return False
    values = coordinate.values
    return name == "index" or np.array_equal(values, np.arange(values.size) + values[:1])


def refuse_text_dates(coordinates: xr.Dataset) -> None:
    """Refuse text that is a date by its name, but in no format that can be read.

    Raises
    ------
    CoordinateError
        With the name, an example, and what to do.
    """
    for name, coordinate in coordinates.coords.items():
        text = coordinate.dtype.kind in "OUT" and coordinate.chunks is None
        if not text or not is_time_name(str(name)) or is_time(coordinate):
            continue
        known = [str(v) for v in coordinate.values.flat if isinstance(v, str)]
        if len(set(known)) > 1:
            raise CoordinateError(
                f"Coordinate {str(name)!r} is a date by its name, but holds text such as "
                f"{known[0]!r}, which is not in ISO format. Convert it with "
                "`pd.to_datetime(..., format=...)`, or name the inputs in `coords=`."
            )


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


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
