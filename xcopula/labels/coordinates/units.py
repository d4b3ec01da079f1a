"""Units of coordinates: which are lengths, which are degrees, and how to convert."""

from __future__ import annotations

from typing import Any

__all__ = ["conversion", "is_degrees", "is_length", "is_longitude", "units_of"]

_METRES = {
    **dict.fromkeys(("m", "metre", "metres", "meter", "meters"), 1.0),
    **dict.fromkeys(("km", "kilometre", "kilometres", "kilometer", "kilometers"), 1000.0),
    **dict.fromkeys(("cm", "centimetre", "centimetres", "centimeter", "centimeters"), 0.01),
    **dict.fromkeys(("mm", "millimetre", "millimetres", "millimeter", "millimeters"), 0.001),
    **dict.fromkeys(("ft", "foot", "feet"), 0.3048),
}
_SECONDS = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
_EAST, _NORTH = (
    frozenset(f"{d}{w}" for d in ("degree", "degrees") for w in (f"_{way}", f"_{way[0]}", way[0]))
    for way in ("east", "north")
)
_DEGREES = frozenset(["°", "deg", "degree", "degrees"]) | _EAST | _NORTH


def units_of(coordinate: Any) -> str:
    """Return the units attribute of a DataArray, trimmed; '' if there is none."""
    return str(coordinate.attrs.get("units", "")).strip()


def is_length(units: str) -> bool:
    """Tell whether units measure a length."""
    return units.lower() in _METRES


def is_degrees(units: str) -> bool:
    """Tell whether units are degrees of an angle, as CF or common usage spell them."""
    return units.lower() in _DEGREES


def is_longitude(units: str) -> bool:
    """Tell whether units are degrees east."""
    return units.lower() in _EAST


def conversion(found: str, wanted: str) -> float | None:
    """Return the factor that takes numbers from one unit to another, None if there is none.

    Units that are not given are taken for those that are wanted.

    Examples
    --------
    >>> conversion("m", "km"), conversion("", "km"), conversion("hPa", "km")
    (0.001, 1.0, None)
    """
    if not found or not wanted or found == wanted:
        return 1.0
    if is_degrees(found) and is_degrees(wanted):
        return 1.0
    for table in (_METRES, _SECONDS):
        if found.lower() in table and wanted.lower() in table:
            return table[found.lower()] / table[wanted.lower()]
    return None
