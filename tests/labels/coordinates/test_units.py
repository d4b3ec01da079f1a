"""Units of coordinates."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import xarray as xr

from xcopula.labels.coordinates.units import (
    conversion,
    is_degrees,
    is_length,
    is_longitude,
    units_of,
)

US_FOOT = float(Fraction(1200, 3937))

FACTORS = [
    # Lengths, in symbols: case counts.
    ("m", "km", 0.001),
    ("km", "m", 1000.0),
    ("Mm", "mm", 1e9),
    ("Mm", "km", 1000.0),
    ("mm", "m", 0.001),
    ("cm", "mm", 10.0),
    ("dm", "cm", 10.0),
    ("dam", "m", 10.0),
    ("hm", "m", 100.0),
    ("um", "mm", 0.001),
    ("µm", "um", 1.0),  # the micro sign
    ("μm", "um", 1.0),  # the Greek letter
    ("nm", "um", 0.001),
    ("in", "mm", 25.4),
    ("ft", "m", 0.3048),
    ("yd", "ft", 3.0),
    ("mi", "km", 1.609344),
    ("nmi", "m", 1852.0),
    # Lengths, in words: in any case, singular or plural, as in Britain or as in the USA.
    ("kilometres", "km", 1.0),
    ("Kilometres", "kilometres", 1.0),
    ("KILOMETERS", "km", 1.0),
    ("metre", "meters", 1.0),
    ("millimetre", "megameter", 1e-9),
    ("micrometres", "micron", 1.0),
    ("centimeters", "decimetres", 0.1),
    ("dekameter", "decametres", 1.0),
    ("hectometre", "km", 0.1),
    ("nanometers", "nm", 1.0),
    ("inches", "foot", 1.0 / 12.0),
    ("Feet", "m", 0.3048),
    ("international_foot", "ft", 1.0),
    ("US_survey_foot", "m", US_FOOT),
    ("US_survey_feet", "us_survey_foot", 1.0),
    ("US survey foot", "ftUS", 1.0),
    ("Foot_US", "us-ft", 1.0),
    ("US_survey_foot", "ft", US_FOOT / 0.3048),
    ("mile", "ft", 5280.0),
    ("nautical_mile", "nmi", 1.0),
    ("nautical miles", "km", 1.852),
    ("0.3048 metre", "ft", 1.0),  # as pyproj writes units
    ("0.304800609601219 metre", "US_survey_foot", 1.0),
    ("1000 m", "km", 1.0),
    ("1e3 m", "km", 1.0),
    # Times.
    ("hours", "days", 1.0 / 24.0),
    ("hr", "h", 1.0),
    ("hrs", "min", 60.0),
    ("d", "day", 1.0),
    ("Days", "h", 24.0),
    ("weeks", "d", 7.0),
    ("min", "s", 60.0),
    ("minutes", "mins", 1.0),
    ("sec", "seconds", 1.0),
    ("ms", "s", 0.001),
    ("msec", "milliseconds", 1.0),
    ("us", "microsecond", 1.0),
    ("ns", "us", 0.001),
    # Angles and temperatures: other spellings only.
    ("degrees_east", "degrees", 1.0),
    ("degree_N", "degreesN", 1.0),
    ("°", "deg", 1.0),
    ("°N", "degrees north", 1.0),
    ("Degrees_East", "degE", 1.0),
    ("decimal degrees", "degree", 1.0),
    ("K", "kelvin", 1.0),
    ("degC", "degree_Celsius", 1.0),
    ("°C", "celsius", 1.0),
    # What is equal or missing needs no table.
    ("", "km", 1.0),
    ("K", "", 1.0),
    ("", "", 1.0),
    ("1", "1", 1.0),
    ("hPa", "hPa", 1.0),
    ("KM", "KM", 1.0),
    (" hPa", "hPa ", 1.0),
    ("m", "metre ", 1.0),
]
NO_FACTOR = [
    ("hPa", "m"),
    ("hPa", "Pa"),
    ("degrees", "m"),
    ("radian", "degrees"),
    ("degrees_west", "degrees_east"),  # counts the other way
    ("hours", "m"),
    ("min", "m"),
    ("K", "degC"),
    ("degC", "K"),
    ("degF", "degC"),
    ("K", "km"),
    ("degC", "degrees"),
    ("1", "m"),
    ("1", "%"),
    ("year", "days"),
    ("month", "days"),
    ("0 m", "m"),
    ("m2", "m"),
    ("m s-1", "m"),
    # Symbols in the wrong case.
    ("M", "m"),
    ("KM", "km"),
    ("MM", "mm"),
    ("FT", "ft"),
    ("NM", "nmi"),
    ("S", "s"),
    ("H", "h"),
    ("D", "d"),
    ("MS", "ms"),
    ("k", "K"),
]


@pytest.mark.parametrize(("found", "wanted", "factor"), FACTORS)
def test_conversion(found, wanted, factor):
    """Lengths and times are converted, and all spellings of a unit agree."""
    assert conversion(found, wanted) == pytest.approx(factor, rel=1e-14)


@pytest.mark.parametrize(("found", "wanted"), NO_FACTOR)
def test_no_conversion(found, wanted):
    """There is no factor between two kinds, between two zeros, or for an unknown unit."""
    assert conversion(found, wanted) is None
    assert conversion(wanted, found) is None


@pytest.mark.parametrize(("one", "other"), [(a, b) for a, b, _ in FACTORS])
def test_there_and_back(one, other):
    """A conversion and its reverse cancel."""
    assert conversion(one, other) * conversion(other, one) == pytest.approx(1.0, rel=1e-15)


def test_factors_are_rounded_once():
    """Factors are the nearest floats, not quotients of rounded numbers."""
    assert conversion("mm", "km") == 1e-6
    assert conversion("um", "mm") == 1e-3
    assert conversion("cm", "dm") == 0.1
    assert conversion("US_survey_foot", "m") == 1200.0 / 3937.0


@pytest.mark.parametrize(
    "units",
    [
        *("degrees_north", "degree_north", "degrees_N", "degree_N", "degreesN", "degreeN", "°N"),
        *("degrees_east", "degree_east", "degrees_E", "degree_E", "degreesE", "degreeE", "°E"),
        *("deg", "degree", "degrees", "°", "Degrees", "arc_degree", "degrees_true", "degrees N"),
    ],
)
def test_degrees_in_every_spelling(units):
    """The spellings of CF and common ones are degrees, and not lengths."""
    assert is_degrees(units)
    assert not is_length(units)


@pytest.mark.parametrize("units", ["degree_Celsius", "degC", "°C", "K", "1", "", "d", "deg C"])
def test_temperatures_are_no_degrees(units):
    """What only looks like an angle is not an angle."""
    assert not is_degrees(units)


@pytest.mark.parametrize("units", ["m", "Mm", "km", "US survey foot", "Metres", "0.3048 metre"])
def test_lengths(units):
    """Lengths are known in every spelling."""
    assert is_length(units)
    assert not is_degrees(units)


@pytest.mark.parametrize("units", ["M", "KM", "mol", "h", "", "1", "min", "3 hPa", "nm-1"])
def test_no_lengths(units):
    """Symbols in the wrong case, and other units, are not lengths."""
    assert not is_length(units)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (" km ", "km"),
        ("", ""),
        (None, ""),
        (1, "1"),
        (1.0, "1"),
        (np.float32(1.0), "1"),
        (np.str_("m"), "m"),
        (b"m ", "m"),
        (np.bytes_(b"km"), "km"),
        (np.array("m"), "m"),
    ],
)
def test_units_are_text_whatever_they_are_given_as(given, text):
    """Blanks mean nothing, and attributes that are not text become text."""
    assert units_of(xr.DataArray(0.0, attrs={"units": given})) == text


def test_units_may_be_missing():
    """Missing units are an empty string."""
    assert units_of(xr.DataArray(0.0)) == ""


def test_only_degrees_east_are_a_longitude():
    """Degrees of no direction, or north, are not."""
    assert all(is_longitude(u) for u in ("degrees_east", "degreeE", "degrees_E", "°E"))
    assert not any(is_longitude(u) for u in ("degrees", "degree", "degrees_north", "", "E"))


@pytest.mark.parametrize(
    "units", ["mg/kg", "mg kg-1", "mg.kg^-1", "mg kg**-1", "kg-1 mg", "mg*kg-1"]
)
def test_powers_in_every_spelling(units):
    assert conversion(units, "mg kg-1") == 1.0
    assert conversion("mg kg-1", units) == 1.0


@pytest.mark.parametrize("units", ["mg kg", "kg/mg", "mg/g", "ug/kg", "mg kg-2", "mg/kg day", "12"])
def test_other_powers_are_other_units(units):
    assert conversion(units, "mg kg-1") is None


def test_a_division_is_by_one_factor():
    assert conversion("mg/kg day", "mg day kg-1") == 1.0
    assert conversion("mg/kg/day", "mg kg-1 day-1") == 1.0
