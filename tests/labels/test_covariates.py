"""Covariates are read at the sites of a model, wherever they stand in their own data."""

from __future__ import annotations

import numpy as np
import pytest
import sources
import xarray as xr

from xcopula.errors import FieldError
from xcopula.labels.covariates import covariates_at
from xcopula.labels.observations import observe


@pytest.fixture(scope="module")
def data():
    """Stations with two variables, one with gaps, and elevation as a variable."""
    data = sources.stations().reset_coords("elevation")
    return data.assign(rain=data["rain"].where(np.arange(data.sizes["station"]) % 5 > 0))


@pytest.fixture(scope="module")
def observations(data):
    return observe(data, ["warmth", "rain"])


def test_the_data_themselves(data, observations):
    """Each variable has them where it was observed."""
    warmth, rain = covariates_at(data, observations)
    assert list(warmth) == list(rain) == ["elevation"]
    np.testing.assert_array_equal(warmth["elevation"], data["elevation"])
    kept = data["elevation"].values[data["rain"].notnull().values]
    np.testing.assert_array_equal(rain["elevation"], kept)


def test_covariates_alone(data, observations):
    """Their own coordinates tell the sites: in any order, with others among them."""
    order = np.random.default_rng(0).permutation(data.sizes["station"])
    alone = data[["elevation"]].isel(station=order)
    more = xr.concat([alone.assign_coords(lon=alone["lon"] + 20.0), alone], "station")
    for (name, found), (_, expected) in zip(
        covariates_at(more, observations)[1].items(),
        covariates_at(data, observations)[1].items(),
        strict=True,
    ):
        assert name == "elevation"
        np.testing.assert_array_equal(found, expected)


def test_fewer_dims_than_the_variable():
    """Elevation of stations beside values of stations and times."""
    rng = np.random.default_rng(0)
    times = np.datetime64("2001-01-01", "ns") + np.arange(3) * np.timedelta64(1, "D")
    data = xr.Dataset(
        {"v": (("station", "time"), rng.normal(size=(6, 3))), "h": ("station", np.arange(6.0))},
        {
            "x": ("station", rng.random(6), {"units": "km"}),
            "y": ("station", rng.random(6), {"units": "km"}),
            "time": times,
        },
    )
    observations = observe(data, ["v"])
    (found,) = covariates_at(data, observations)
    np.testing.assert_array_equal(found["h"], np.repeat(np.arange(6.0), 3))
    (lazy,) = covariates_at(data.chunk(station=2), observations)
    np.testing.assert_array_equal(lazy["h"], found["h"])


def test_one_that_is_missing(data, observations):
    """The message counts the observations, and names the first site."""
    gaps = data.assign(elevation=data["elevation"].where(data["elevation"] > 1000.0))
    with pytest.raises(FieldError, match=r"'elevation' is missing at \d+ of 40 .*'warmth' .*lon="):
        covariates_at(gaps, observations)
    nowhere = data[["elevation"]].assign_coords(lon=data["lon"] + 30.0)
    with pytest.raises(FieldError, match="missing at 40 of 40 observations"):
        covariates_at(nowhere, observations)
    with pytest.raises(FieldError, match="missing at 40 of 40 observations"):
        covariates_at(data.assign(elevation=np.nan * data["elevation"]), observations)


def test_none_that_is_known(data, observations):
    """Data of the model's variables alone have no covariate; a coordinate is made one."""
    with pytest.raises(KeyError, match=r"none beside those of the model.*`reset_coords\(name\)`"):
        covariates_at(data.set_coords("elevation"), observations)


def test_one_without_numbers(data, observations):
    """Groups are no covariate of a regression."""
    soil = np.where(data["elevation"] > 1000.0, "peat", "loam")
    with pytest.raises(FieldError, match=r"'soil' has dtype .*a regression needs numbers"):
        covariates_at(data.assign(soil=("station", soil)), observations)


def test_what_is_no_dataset(data, observations):
    """The message of a fit."""
    with pytest.raises(TypeError, match=r"found DataArray. Use `array.to_dataset"):
        covariates_at(data["elevation"], observations)
