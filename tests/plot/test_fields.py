"""Fields, lines and dots, looked at through their artists."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

pytest.importorskip("matplotlib")

from looks import check_looks
from matplotlib.figure import Figure

from xcopula.plot.fields import (
    NO_DOTS,
    Dots,
    Limits,
    colour_limits,
    draw_band,
    draw_curve,
    draw_dots,
    draw_field,
    find_dots,
)
from xcopula.plot.places import find_place

TIMES = np.array(["2020-01-01", "2020-02-01", "2020-03-01"], "M8[ns]")


@pytest.fixture
def ax():
    return Figure().add_subplot()


def sites() -> xr.Dataset:
    """Two stations, three months; one value is missing."""
    values = np.arange(6.0).reshape(2, 3)
    values[1, 1] = np.nan
    return xr.Dataset(
        {"v": (("station", "time"), values)},
        coords={"x": ("station", [1.0, 2.0]), "y": ("station", [3.0, 4.0]), "time": TIMES},
    )


def cells(**scalars) -> xr.DataArray:
    x, y = np.linspace(0.0, 3.0, 4), np.linspace(0.0, 5.0, 6)
    values = np.add.outer(y, x)
    return xr.DataArray(values, coords={"y": y, "x": x}, name="v").assign_coords(scalars)


class TestDots:
    def find(self, array):
        return find_dots(sites(), "v", array, find_place(array))

    def test_a_map_of_one_date_has_the_sites_of_that_date(self):
        found = self.find(cells(time=TIMES[2]))
        np.testing.assert_array_equal(found.values, [2.0, 5.0])
        np.testing.assert_array_equal(found.x, [1.0, 2.0])

    def test_what_was_not_observed_then_has_no_dot(self):
        found = self.find(cells(time=TIMES[1]))
        np.testing.assert_array_equal(found.values, [1.0])
        assert self.find(cells(time=np.datetime64("2021-01-01", "ns"))).values.size == 0

    def test_a_map_without_a_date_has_all(self):
        assert self.find(cells()).values.size == 5

    def test_scalars_that_sites_lack_or_have_as_scalars_are_ignored(self):
        assert self.find(cells(height=2.0)).values.size == 5
        array = cells(time=TIMES[0])
        found = find_dots(sites().isel(time=2), "v", array, find_place(array))
        assert found.values.size == 2

    def test_numbers_agree_up_to_single_precision(self):
        data = sites().assign_coords(time=[0.1, 0.2, 0.3])
        array = cells(time=np.float32(0.1))
        assert find_dots(data, "v", array, find_place(array)).values.size == 2


class TestColours:
    def test_probabilities_have_their_own_limits(self):
        assert colour_limits(np.full(3, 2.0), np.empty(0)) == Limits(1.5, 2.5, "neither")

    def test_extremes_are_left_out_and_said(self):
        low, high, extend = colour_limits(np.r_[-100.0, np.linspace(0, 1, 999)], np.empty(0))
        assert low >= 0.0
        assert high < 1.0
        assert extend == "both"


class TestFields:
    def test_cells_are_drawn_where_they_are(self, ax):
        array = cells()
        mesh = draw_field(ax, find_place(array), array.transpose(), Limits(0, 8, "max"), "magma")
        np.testing.assert_array_equal(mesh.get_array().reshape(6, 4), array.values)
        assert mesh.get_clim() == (0, 8)
        assert mesh.get_cmap().name == "magma"

    def test_points_are_drawn_with_their_values(self, ax):
        array = sites()["v"].isel(time=1)
        dots = draw_field(ax, find_place(array), array, Limits(0, 8, "max"), "magma")
        np.testing.assert_array_equal(dots.get_offsets(), [[1.0, 3.0]])
        np.testing.assert_array_equal(dots.get_array(), [1.0])

    def test_degrees_without_units_are_labelled(self, ax):
        array = cells().rename(y="lat", x="lon")
        draw_field(ax, find_place(array), array, Limits(0, 8, "max"), "magma")
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("lon, °", "lat, °")

    def test_what_has_no_logarithm_has_the_lowest_colour(self, ax):
        """A width of zero, at a site without noise, is not left white."""
        array, limits = cells() * 1000.0, Limits(10.0, 8000.0, "min")
        mesh = draw_field(ax, find_place(array), array, limits, "magma")
        draw_dots(ax, Dots(np.ones(1), np.ones(1), np.zeros(1)), limits, mesh)
        for drawn in ax.collections:
            assert drawn.norm.vmin == drawn.get_array().min() == 10.0

    @pytest.mark.parametrize("count", [5, 300, 5000, 100_000])
    def test_dots_leave_most_of_a_map_free(self, ax, count):
        array = cells()
        limits = Limits(0, 8, "max")
        mesh = draw_field(ax, find_place(array), array, limits, "magma")
        draw_dots(ax, Dots(*np.random.default_rng(0).uniform(size=(3, count))), limits, mesh)
        drawn = ax.collections[1]
        (size,), (ring,) = drawn.get_sizes(), drawn.get_linewidths()
        assert 1.0 <= size <= 15.0
        assert size * min(count, 5500) <= 5501.0
        assert (ring == 0.0) == (size <= 4.0)


class TestLines:
    def test_a_band_is_sorted_and_has_its_median(self, ax):
        array = xr.DataArray(
            [[1.0, 0.0], [2.0, 1.0], [4.0, 3.0]],
            dims=("quantile", "x"),
            coords={"x": ("x", [2.0, 1.0], {"units": "km"})},
        )
        place = find_place(array, ignore=("quantile",))
        dots = Dots(np.array([1.5]), np.empty(0), np.array([2.0]))
        draw_band(ax, place, [0.1, 0.5, 0.9], array.values, "v, K", dots)
        median, observed = ax.lines
        np.testing.assert_array_equal(median.get_xydata(), [[1.0, 1.0], [2.0, 2.0]])
        np.testing.assert_array_equal(observed.get_xydata(), [[1.5, 2.0]])
        labels = [text.get_text() for text in ax.get_legend().get_texts()]
        assert labels == ["80 % band", "median", "observed"]
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("x, km", "v, K")

    def test_dates_have_room(self, ax):
        times = np.arange("2020-01-01", "2020-04-01", dtype="M8[D]").astype("M8[ns]")
        array = xr.DataArray(np.zeros(91), dims="time", coords={"time": times})
        draw_curve(ax, find_place(array), array.values, Limits(0.0, 1.0, "neither"), "p")
        check_looks(ax.figure)

    def test_a_curve_shares_its_limits(self, ax):
        array = xr.DataArray([0.2, 0.1], dims="x", coords={"x": [2.0, 1.0]})
        draw_curve(ax, find_place(array), array.values, Limits(0.0, 1.0, "neither"), "p")
        np.testing.assert_array_equal(ax.lines[0].get_ydata(), [0.1, 0.2])
        assert ax.get_ylim() == pytest.approx((-0.03, 1.03))


def test_no_dots_are_empty():
    assert all(part.size == 0 for part in NO_DOTS)
