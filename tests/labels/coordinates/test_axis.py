"""One coordinate of a model."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from sources import DATES, TEN

from xcopula.errors import CoordinateError
from xcopula.labels.coordinates import Axis


def array(values, **attrs) -> xr.DataArray:
    """A coordinate called ``c``."""
    return xr.DataArray(np.asarray(values), dims="p", name="c", attrs=attrs)


class TestOf:
    @pytest.mark.parametrize(
        ("role", "units", "expected"),
        [
            ("x", "m", "km"),
            ("y", "kilometer", "km"),
            ("x", "US_survey_foot", "km"),
            ("x", "M", "M"),
            ("z", "km", "m"),
            ("z", "hPa", "hPa"),
            ("x", "1", "1"),
            ("", "m", "m"),
            ("latitude", "degrees_north", "degrees"),
            ("longitude", "", "degrees"),
        ],
    )
    def test_units_of_the_model(self, role, units, expected):
        """Horizontal lengths are in km, heights in m, angles in degrees, and the rest unchanged."""
        assert Axis.of(array(TEN, units=units), role).units == expected

    def test_dates_have_a_calendar_and_an_epoch(self):
        """A time is known by its values: its epoch is the first date."""
        axis = Axis.of(array(DATES[::-1]), "")
        assert (axis.role, axis.units, axis.calendar) == ("time", "days", "standard")
        assert axis.epoch.startswith("2000-01-01")

    def test_spans_are_days(self):
        """A timedelta is a number of days."""
        axis = Axis.of(array(np.array([12, 24], "m8[h]").astype("m8[ns]")), "")
        assert axis.units == "days"
        np.testing.assert_array_equal(axis.read(array(np.array([12, 36], "m8[h]"))), [0.5, 1.5])

    @pytest.mark.parametrize("values", [["a", "b"], [True, False], [1j, 2j]])
    def test_neither_numbers_nor_dates(self, values):
        """Strings, booleans and complex numbers cannot be inputs."""
        with pytest.raises(CoordinateError, match=r"'c' has dtype .*numbers or dates"):
            Axis.of(array(values), "x")


class TestRead:
    def test_a_depth_is_a_height_below_zero(self):
        """Where both sides say in which direction they increase."""
        height = Axis.of(array([10.0], units="m", positive="up"), "z")
        depth = Axis.of(array([10.0], units="m", standard_name="depth"), "z")
        down = array([2.0], units="m", positive="down")
        up = array([2.0], units="m", standard_name="height")
        np.testing.assert_array_equal(height.read(down), [-2.0])
        np.testing.assert_array_equal(depth.read(up), [-2.0])
        np.testing.assert_array_equal(height.read(up), [2.0])
        np.testing.assert_array_equal(depth.read(down), [2.0])
        np.testing.assert_array_equal(depth.read(array([2.0], units="m")), [2.0])

    def test_lengths_are_converted(self):
        """Metres become the kilometres of the model; numbers without units stay as they are."""
        axis = Axis("x", "x", "km")
        np.testing.assert_allclose(axis.read(array([1000.0], units="m")), [1.0])
        np.testing.assert_allclose(axis.read(array([3.0])), [3.0])
        np.testing.assert_allclose(axis.read(array([3.0], units="Mm")), [3000.0])
        np.testing.assert_allclose(axis.read(array([3.0], units="mm")), [3e-6])

    @pytest.mark.parametrize("units", ["degrees_east", "hPa", "M", "KM"])
    def test_units_that_cannot_be_converted(self, units):
        """The message has both units and both names."""
        with pytest.raises(
            CoordinateError, match=f"'c' is in '{units}', the training data had 'x' in 'km"
        ):
            Axis("x", "x", "km").read(array(TEN, units=units))

    def test_latitudes_beyond_the_pole(self):
        """They are counted, and the first is shown."""
        axis = Axis("lat", "latitude", "degrees")
        with pytest.raises(
            CoordinateError, match=r"2 latitudes lie beyond 90.*first: -91.*swapped"
        ):
            axis.read(array([0.0, -91.0, 100.0, np.nan]))

    def test_lazy_latitudes_beyond_the_pole(self):
        """In lazy data, they are found when they are computed."""
        lazy = Axis("lat", "latitude", "degrees").read(array([0.0, 95.0]).chunk(p=1))
        with pytest.raises(CoordinateError, match="beyond 90 degrees"):
            lazy.compute()

    def test_numbers_for_dates_and_dates_for_numbers(self):
        """A model of dates refuses numbers, and the reverse."""
        with pytest.raises(CoordinateError, match="'c' has dtype float64, but the model has dates"):
            Axis.of(array(DATES), "").read(array(TEN))
        with pytest.raises(CoordinateError, match="'c' has dtype datetime64"):
            Axis.of(array(TEN), "x").read(array(DATES))

    def test_decode(self):
        """Numbers of a time become dates; other numbers stay as they are."""
        axis = Axis.of(array(DATES), "")
        np.testing.assert_array_equal(axis.decode(np.arange(10.0)), DATES)
        np.testing.assert_array_equal(Axis("x").decode(TEN), TEN)
