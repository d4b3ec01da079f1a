"""Units of coordinates and fields: which are lengths, which are degrees, and how to convert.

The spellings are those of UDUNITS, which CF prescribes, with a few that cftime, pyproj and GIS
software write. The rule is that of UDUNITS too: a word may be in any case, a symbol may not.
"Kilometres" are "kilometres", but "Mm" is a megametre and "mm" a millimetre.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from numbers import Real
from typing import Any, NamedTuple

__all__ = ["conversion", "is_degrees", "is_length", "is_longitude", "units_of"]


class _Unit(NamedTuple):
    """What a unit measures, and how large it is in the first unit of that kind."""

    kind: str
    size: Fraction  # ratios are exact, so each factor is rounded once only


def _table(kind: str, spellings: Mapping[str, str]) -> dict[str, _Unit]:
    return {
        spelling: _Unit(kind, Fraction(size))
        for size, several in spellings.items()
        for spelling in several.split()
    }


def _prefixed(kind: str, words: Iterable[str]) -> dict[str, _Unit]:
    return {
        f"{prefix}{word}": _Unit(kind, Fraction(size))
        for prefix, size in _PREFIXES.items()
        for word in words
    }


def _of_degrees(what: str) -> list[str]:
    """Return the spellings of degrees of a kind: degrees_north, degree_N, degreesN, °N."""
    return [
        f"{stem}{end}"
        for stem in ("degree", "degrees", "deg", "°")
        for end in (f"_{what}", f"_{what[0]}", what[0])
    ]


def _same(kind: str, words: str, *degrees: str) -> dict[str, _Unit]:
    """Return words for one unit, and the spellings of degrees that mean it too."""
    spellings = [*words.split(), *(s for what in degrees for s in _of_degrees(what))]
    return dict.fromkeys(spellings, _Unit(kind, Fraction(1)))


_PREFIXES = {
    "": "1",
    "nano": "1e-9",
    "micro": "1e-6",
    "milli": "1e-3",
    "centi": "0.01",
    "deci": "0.1",
    "deca": "10",
    "deka": "10",
    "hecto": "100",
    "kilo": "1000",
    "mega": "1e6",
}
_EAST = frozenset(_of_degrees("east"))

# Case counts here, without exceptions: "M" may be molar or mega, "H" is a henry, "S" a siemens, and
# "NM" may mean nautical miles or nanometres. "KM" can hardly be anything but kilometres, but one
# rule is easier to trust than a list of favours. A unit that is not known still equals itself.
_SYMBOLS = {
    **_table(
        "length",
        {
            "1e-9": "nm",  # never a nautical mile
            "1e-6": "um µm μm",  # the micro sign and the Greek letter look alike
            "1e-3": "mm",
            "0.01": "cm",
            "0.1": "dm",
            "1": "m",
            "10": "dam",
            "100": "hm",
            "1000": "km",
            "1e6": "Mm",
            "0.0254": "in",
            "0.3048": "ft",
            "1200/3937": "ftUS us-ft",  # as EPSG and PROJ write the US survey foot
            "0.9144": "yd",
            "1609.344": "mi",
            "1852": "nmi",
        },
    ),
    **_table(
        "time",
        {
            "1e-9": "ns",
            "1e-6": "us µs μs",
            "1e-3": "ms",
            "1": "s",
            "60": "min",
            "3600": "h",
            "86400": "d",
        },
    ),
    **_table("angle", {"1": "°"}),
    **_table("kelvin", {"1": "K"}),
    **_table("celsius", {"1": "℃"}),
}
# In lower case, with underscores between words. Months and years are missing on purpose: their
# length depends on the calendar.
_WORDS = {
    **_prefixed("length", ("metre", "metres", "meter", "meters")),
    **_table(
        "length",
        {
            "1e-6": "micron microns",
            "0.0254": "inch inches international_inch international_inches",
            "0.3048": "foot feet international_foot international_feet",
            "1200/3937": "us_survey_foot us_survey_feet foot_us feet_us",
            "0.9144": "yard yards international_yard international_yards",
            "1609.344": "mile miles international_mile international_miles",
            "1852": "nautical_mile nautical_miles nmile nmiles",
        },
    ),
    **_prefixed("time", ("second", "seconds", "sec", "secs")),
    **_table(
        "time",
        {
            "1e-3": "msec msecs",
            "60": "minute minutes mins",
            "3600": "hour hours hr hrs",
            "86400": "day days",
            "604800": "week weeks",
        },
    ),
    **_same(
        "angle",
        "deg degree degrees arcdeg arcdegs arc_degree arc_degrees angular_degree angular_degrees "
        "decimal_degree decimal_degrees",
        *("east", "north", "true"),
    ),
    # Two kinds, since no factor leads from one to the other: their zeros differ.
    **_same("kelvin", "kelvin kelvins", "kelvin"),
    **_same("celsius", "celsius", "celsius"),
}
_POWER = re.compile(r"([^\W\d]+|%|°)\^?([-+]?\d+)?")
_NUMBER = re.compile(r"(\d*\.?\d+(?:[eE][-+]?\d{1,2})?)\s+(\S.*)")


def units_of(coordinate: Any) -> str:
    """Return the units attribute of a DataArray as trimmed text; '' if there is none."""
    units = coordinate.attrs.get("units")
    if units is None:
        return ""
    if isinstance(units, bytes):  # as some HDF5 files have it
        return units.decode("utf-8", "replace").strip()
    if isinstance(units, Real):
        return f"{units:g}"  # a number 1 or 1.0 is the "1" of a pure number
    return str(units).strip()


def is_length(units: str) -> bool:
    """Tell whether units measure a length."""
    return _kind(units) == "length"


def is_degrees(units: str) -> bool:
    """Tell whether units are degrees of an angle, as CF or common usage spell them."""
    return _kind(units) == "angle"


def is_longitude(units: str) -> bool:
    """Tell whether units are degrees east."""
    return _word(units) in _EAST


def conversion(found: str, wanted: str) -> float | None:
    """Return the factor that takes numbers from one unit to another, None if there is none.

    A missing unit is taken to be the other one. A unit that is not in the tables can only be
    compared with itself, in whichever way its powers are written.

    Examples
    --------
    >>> conversion("m", "km"), conversion("", "km"), conversion("hPa", "km")
    (0.001, 1.0, None)
    >>> conversion("Mm", "mm"), conversion("K", "degC")
    (1000000000.0, None)
    >>> conversion("mg/kg", "mg kg-1"), conversion("ug m**-3", "mg m-3")
    (1.0, None)
    """
    found, wanted = found.strip(), wanted.strip()
    if not found or not wanted or found == wanted:
        return 1.0
    powers = _powers(found)
    if powers is not None and powers == _powers(wanted):
        return 1.0
    this, that = _unit(found), _unit(wanted)
    if this is None or that is None or this.kind != that.kind:
        return None
    return float(this.size / that.size)


def _unit(units: str) -> _Unit | None:
    units = units.strip()
    known = _SYMBOLS.get(units) or _WORDS.get(_word(units))
    if known is not None:
        return known
    # pyproj, and so rioxarray, writes feet as "0.304800609601219 metre".
    scaled = _NUMBER.fullmatch(units)
    if scaled is None:
        return None
    one, count = _unit(scaled[2]), Fraction(scaled[1])
    return one._replace(size=count * one.size) if one is not None and count > 0 else None


def _powers(units: str) -> dict[str, int] | None:
    """Return the powers of the factors of a unit: mg/kg and mg kg-1 have the same."""
    found: dict[str, int] = {}
    for k, part in enumerate(units.replace("**", "^").split("/")):
        for j, factor in enumerate(re.split(r"[\s.*·]+", part.strip())):
            power = _POWER.fullmatch(factor)
            if power is None:
                return None
            # As in UDUNITS a division is by what stands next to it, and by no more.
            sign = -1 if k and j == 0 else 1
            found[power[1]] = found.get(power[1], 0) + sign * int(power[2] or 1)
    return found


def _kind(units: str) -> str:
    known = _unit(units)
    return "" if known is None else known.kind


def _word(units: str) -> str:
    """Return a unit as the table of words has it: "US survey foot" as us_survey_foot."""
    return "_".join(units.lower().split())
