"""What kind of picture an array makes, by its dims and coordinates."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from xcopula.plot.places import find_place, slice_of

LAT, LON = np.array([59.0, 60.0, 61.0]), np.array([4.0, 5.0])


def grid(**names) -> xr.DataArray:
    return xr.DataArray(np.zeros((3, 2)), coords={"lat": LAT, "lon": LON}, name="v").rename(names)


class TestKinds:
    def test_bare_names_of_degrees_are_known(self):
        place = find_place(grid())
        assert (place.kind, place.dims, place.geographic) == ("map", ("lat", "lon"), True)
        assert place.aspect == pytest.approx(2.0)
        assert place.ratio == pytest.approx(2.0 * 2.0 / 1.0)

    def test_the_order_of_dims_does_not_matter(self):
        assert find_place(grid().transpose()).dims == ("lat", "lon")

    def test_other_names_make_a_map_of_equal_scales(self):
        place = find_place(grid(lat="depth", lon="along"))
        assert (place.dims, place.aspect) == (("depth", "along"), 1.0)

    def test_a_first_dim_that_says_x_is_horizontal(self):
        array = grid(lat="a", lon="b")
        array["a"].attrs["axis"] = "X"
        assert find_place(array).dims == ("b", "a")

    def test_curvilinear_grids(self):
        lon, lat = np.meshgrid(LON, LAT)
        array = xr.DataArray(
            np.zeros((2, 3)),
            dims=("i", "j"),
            coords={"lon": (("j", "i"), lon), "lat": (("j", "i"), lat)},
        )
        place = find_place(array)
        assert (place.kind, place.dims, place.geographic) == ("map", ("i", "j"), True)
        np.testing.assert_array_equal(place.x, lon.T)

    def test_points_have_two_coordinates_along_one_dim(self):
        array = xr.DataArray([1.0, 2.0], dims="s", coords={"x": ("s", LON), "y": ("s", LON)})
        place = find_place(array)
        assert (place.kind, place.dims, place.geographic) == ("points", ("s",), False)

    @pytest.mark.parametrize(
        ("coords", "name"),
        [
            ({"x": ("x", LON)}, "x"),
            ({"x": ("x", LON), "lat": 40.0, "lon": 3.0}, "x"),
            ({"depth": ("x", LON, {"axis": "Z"}), "x": ["a", "b"]}, "depth"),
            ({"x": np.array(["2020-01-01", "2020-01-02"], "M8[ns]")}, "x"),
        ],
    )
    def test_lines_have_one(self, coords, name):
        place = find_place(xr.DataArray([1.0, 2.0], dims="x", coords=coords))
        assert (place.kind, place.x.name, place.y) == ("line", name, None)


class TestErrors:
    def test_more_than_two_dims(self):
        with pytest.raises(ValueError, match=r"Select one entry along 'time': `sel=.* posterior"):
            find_place(grid().expand_dims(time=2, quantile=3), ignore=("quantile",))

    def test_points_of_several_dates(self):
        array = xr.DataArray(
            np.zeros((2, 3)), dims=("s", "time"), coords={"x": ("s", LON), "y": ("s", LON)}
        )
        with pytest.raises(ValueError, match=r"'s' have several .*'time'.*isel\(time=0\)"):
            find_place(array)

    def test_a_line_of_names(self):
        with pytest.raises(ValueError, match="neither numbers nor dates"):
            find_place(xr.DataArray([1.0], dims="x", coords={"x": ["a"]}))


class TestSlices:
    @pytest.mark.parametrize(
        ("time", "text"),
        [("1985-05-01", "1985-05-01"), ("1985-05-01T06:30", "1985-05-01 06:30")],
    )
    def test_a_date_is_said_with_its_hour_unless_it_is_midnight(self, time, text):
        assert slice_of(grid().assign_coords(time=np.datetime64(time, "ns"))) == text

    def test_dates_of_other_calendars(self):
        cftime = pytest.importorskip("cftime")
        array = grid().assign_coords(time=cftime.DatetimeNoLeap(2001, 2, 28))
        assert slice_of(array) == "2001-02-28"

    def test_heights_have_units(self):
        level = ((), 10.0, {"units": "m", "axis": "Z", "long_name": "height"})
        assert slice_of(grid().assign_coords(h=level)) == "height 10\u00a0m"

    def test_other_scalars_are_silent(self):
        assert slice_of(grid().assign_coords(spatial_ref=0, run="a")) == ""
