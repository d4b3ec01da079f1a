"""Which coordinate plays which role."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from sources import EAST, NORTH, TEN, dataset

from xcopula.labels.coordinates.roles import coordinates_of, guessed_roles, stated_roles


@pytest.mark.parametrize(
    ("attrs", "role"),
    [
        ({"units": "degrees_east"}, "longitude"),
        ({"standard_name": "latitude"}, "latitude"),
        ({"axis": "X"}, "x"),
        ({"standard_name": "projection_y_coordinate"}, "y"),
        ({"axis": "Z"}, "z"),
        ({"positive": "up"}, "z"),
        ({"standard_name": "time"}, "time"),
        ({"axis": "T"}, "time"),
    ],
)
def test_attributes_state_roles(attrs, role):
    """Every CF way to state a role is understood, whatever the name."""
    roles = stated_roles(coordinates_of(dataset({"q": attrs}, q=TEN)))
    assert [r for r, names in roles.items() if names] == [role]


def test_longitude_with_an_axis_is_longitude():
    """A longitude that is also axis X counts as longitude alone."""
    data = xr.Dataset(coords={"lon": ("lon", TEN, EAST | {"axis": "X"})})
    roles = stated_roles(data)
    assert roles["longitude"] == ["lon"]
    assert roles["x"] == []


def test_names_state_nothing():
    """Bare names are only guessed."""
    data = dataset(lat=TEN, lon=TEN, time=TEN)
    assert not any(stated_roles(coordinates_of(data)).values())
    guessed = guessed_roles(coordinates_of(data))
    assert (guessed["latitude"], guessed["longitude"]) == (["lat"], ["lon"])
    assert guessed["time"] == ["time"]


def test_a_name_is_not_believed_against_units():
    """A ``lat`` in metres is not a latitude."""
    data = dataset({"lat": {"units": "m"}, "lon": {"units": "m"}}, lat=TEN, lon=TEN)
    guessed = guessed_roles(coordinates_of(data))
    assert guessed["latitude"] == []
    assert guessed["longitude"] == []


@pytest.mark.parametrize("units", [("°N", "°E"), ("degrees north", "degrees east"), ("deg",) * 2])
def test_a_name_is_believed_with_degrees_of_any_spelling(units):
    """Degrees that CF spells differently still make a latitude and a longitude."""
    data = dataset({"lat": {"units": units[0]}, "lon": {"units": units[1]}}, lat=TEN, lon=TEN)
    guessed = guessed_roles(coordinates_of(data))
    assert (guessed["latitude"], guessed["longitude"]) == (["lat"], ["lon"])


def test_what_is_no_number_has_no_role():
    """A flag made from the latitude keeps its attributes, but is not a latitude."""
    data = dataset({"lat": NORTH, "lon": EAST}, lat=TEN, lon=TEN)
    data = data.assign_coords(north=(data["lat"] > 5.0).assign_attrs(NORTH))
    for roles in (stated_roles, guessed_roles):
        assert roles(coordinates_of(data))["latitude"] == ["lat"]


def test_levels_of_a_stacked_index():
    """Levels of strings beside levels of numbers do no harm."""
    data = xr.Dataset(coords={"station": ["a", "b"], "lat": ("lat", TEN, NORTH)})
    stacked = data.stack(p=("station", "lat"))
    assert stated_roles(coordinates_of(stacked))["latitude"] == ["lat"]


def test_data_are_not_changed():
    """Guessing does not write attributes into the data."""
    data = dataset(lat=TEN, lon=TEN)
    guessed_roles(coordinates_of(data))
    assert data["lat"].attrs == {}


def test_a_surface_altitude_is_no_height():
    """The elevation of the ground is a field, not an input."""
    attrs = {"lat": NORTH, "lon": EAST, "elevation": {"standard_name": "surface_altitude"}}
    data = dataset(attrs, lat=TEN, lon=TEN, elevation=np.arange(10.0))
    assert stated_roles(coordinates_of(data))["z"] == []


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("lon", "longitude"),
        ("Longitude", "longitude"),
        ("nav_lat", "latitude"),
        ("lat_rho", "latitude"),
        ("lat2d", "latitude"),
        ("lats", "latitude"),
        ("x", "x"),
        ("x_km", "x"),
        ("y2", "y"),
        ("latent_heat", ""),
        ("longwave", ""),
        ("index", ""),
        ("id", ""),
        ("jday", ""),
        ("yield", ""),
    ],
)
def test_a_guess_takes_the_whole_name(name, role):
    """Names that only begin like that of a coordinate do not count."""
    found = guessed_roles(xr.Dataset(coords={name: ("site", TEN)}))
    assert [r for r in ("longitude", "latitude", "x", "y") if found[r]] == ([role] if role else [])
