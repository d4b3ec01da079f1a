"""Units of coordinates."""

from __future__ import annotations

import pytest
import xarray as xr

from xcopula.labels.coordinates.units import (
    conversion,
    is_degrees,
    is_length,
    is_longitude,
    units_of,
)


@pytest.mark.parametrize("units", ["degrees_north", "degrees_east", "degree_N", "degreesE", "deg"])
def test_degrees_in_every_spelling(units):
    """CF's spellings and common ones are degrees, and no lengths."""
    assert is_degrees(units)
    assert not is_length(units)


@pytest.mark.parametrize("units", ["degree_Celsius", "degC", "K", "1", ""])
def test_temperatures_are_no_degrees(units):
    """What only looks like an angle is none."""
    assert not is_degrees(units)


@pytest.mark.parametrize(
    ("found", "wanted", "factor"),
    [
        ("m", "km", 0.001),
        ("km", "m", 1000.0),
        ("kilometres", "km", 1.0),
        ("ft", "m", 0.3048),
        ("degrees_east", "degrees", 1.0),
        ("", "km", 1.0),
        ("K", "", 1.0),
        ("hPa", "hPa", 1.0),
        ("hPa", "m", None),
        ("degrees", "m", None),
        ("radian", "degrees", None),
        ("hours", "days", 1.0 / 24.0),
        ("hours", "m", None),
    ],
)
def test_conversion(found, wanted, factor):
    """Lengths and times convert, equal units are themselves, and all else has no factor."""
    assert conversion(found, wanted) == (None if factor is None else pytest.approx(factor))


def test_units_are_trimmed_and_may_be_missing():
    """Blanks around units mean nothing; no units are an empty string."""
    assert units_of(xr.DataArray(0.0, attrs={"units": " km "})) == "km"
    assert units_of(xr.DataArray(0.0)) == ""
    assert units_of(xr.DataArray(0.0, attrs={"units": 1})) == "1"


def test_only_degrees_east_are_a_longitude():
    """Degrees of no direction, or north, are not."""
    assert [is_longitude(u) for u in ("degrees_east", "degreeE", "degrees_E")] == [True] * 3
    assert [is_longitude(u) for u in ("degrees", "degree", "degrees_north", "")] == [False] * 4
