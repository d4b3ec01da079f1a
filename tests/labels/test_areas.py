"""Areas of cells from the coordinates of a grid, and the dims that are space."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from xcopula.labels.areas import cell_widths, space_dims
from xcopula.labels.coordinates.groups import EARTH_RADIUS

SPHERE = 4.0 * np.pi * EARTH_RADIUS**2


def plane(x, y, units=("km", "km")):
    pairs = zip(("x", "y"), (x, y), units, strict=True)
    return xr.Coordinates({name: (name, v, {"units": u}) for name, v, u in pairs})


def globe(longitude, latitude):
    return xr.Coordinates(
        {
            "lon": ("lon", longitude, {"units": "degrees_east"}),
            "lat": ("lat", latitude, {"units": "degrees_north"}),
        }
    )


def area(coords, dims):
    across, up = cell_widths(coords, dims)
    return up * across


class TestPlane:
    def test_cells_end_halfway(self):
        """Uneven and descending coordinates; outer cells reach as far out as in."""
        across, up = cell_widths(plane([0.0, 1.0, 3.0], [5.0, 4.0]), ("y", "x"))
        np.testing.assert_allclose(across, [1.0, 1.5, 2.0])
        np.testing.assert_allclose(up, [1.0, 1.0])
        assert across.attrs == up.attrs == {"units": "km"}

    def test_the_order_of_cells_does_not_count(self):
        """A permuted grid has the same cells."""
        x = np.array([0.0, 1.0, 3.0, 7.0])
        order = [2, 0, 3, 1]
        across, _ = cell_widths(plane(x, [0.0, 1.0]), ("y", "x"))
        permuted, _ = cell_widths(plane(x[order], [0.0, 1.0]), ("y", "x"))
        np.testing.assert_allclose(permuted, across.values[order])

    def test_units_of_both(self):
        """Widths are in the units of x; where no factor leads there, there is no area."""
        _, up = cell_widths(plane([0.0, 1.0], [0.0, 500.0], ("km", "m")), ("y", "x"))
        np.testing.assert_allclose(up, 0.5)
        assert cell_widths(plane([0.0, 1.0], [0.0, 1.0], ("km", "K")), ("y", "x")) is None
        _, up = cell_widths(plane([0.0, 1.0], [0.0, 1.0], ("", "")), ("y", "x"))
        assert up.attrs == {}


class TestGlobe:
    @pytest.mark.parametrize("step", [30.0, 7.5])
    @pytest.mark.parametrize("poles", [False, True])
    def test_all_cells_are_the_sphere(self, step, poles):
        """From pole to pole and once around, also where cells are centred at the poles."""
        latitude = np.arange(-90.0 if poles else -90.0 + step / 2, 90.1, step)
        found = area(globe(np.arange(-180.0, 180.0, step), latitude), ("lat", "lon"))
        assert float(found.sum()) == pytest.approx(SPHERE, rel=1e-12)
        assert cell_widths(globe([0.0, 1.0], [0.0, 1.0]), ("lat", "lon"))[0].units == "km"

    def test_a_cell_is_what_lies_between_its_edges(self):
        """R^2 times the width in radians times the difference of sines."""
        found = area(globe([10.0, 12.0, 14.0], [40.0, 50.0]), ("lat", "lon"))
        sines = np.diff(np.sin(np.deg2rad([35.0, 45.0, 55.0])))
        expected = EARTH_RADIUS**2 * np.deg2rad(2.0) * sines
        np.testing.assert_allclose(found, np.repeat(expected[:, None], 3, axis=1), rtol=1e-12)

    def test_the_date_line_is_no_edge(self):
        """Longitudes that wrap have the widths of those that do not."""
        plain, _ = cell_widths(globe([0.0, 1.0, 3.0, 4.0], [0.0, 1.0]), ("lat", "lon"))
        over, _ = cell_widths(globe([178.0, 179.0, -179.0, -178.0], [0.0, 1.0]), ("lat", "lon"))
        np.testing.assert_allclose(over, plain, rtol=1e-12)

    def test_uneven_longitudes_do_not_overlap(self):
        """Once around in uneven steps, or with a column that is there twice, is once around."""
        for longitude in ([0.0, 100.0, 200.0, 290.0], [0.0, 90.0, 180.0, 270.0, 360.0]):
            across, _ = cell_widths(globe(longitude, [0.0, 1.0]), ("lat", "lon"))
            assert float(across.sum()) == pytest.approx(2.0 * np.pi * EARTH_RADIUS, rel=1e-12)

    def test_a_rotated_grid_has_areas_of_the_sphere(self):
        """Degrees of a rotated pole are no plane."""
        axes = np.arange(0.0, 360.0, 30.0), np.arange(-75.0, 90.0, 30.0)
        rotated = plane(*axes, ("degrees", "degrees"))
        assert float(area(rotated, ("y", "x")).sum()) == pytest.approx(SPHERE, rel=1e-12)


class TestNoAreas:
    @pytest.mark.parametrize(
        "coords",
        [
            {"x": ("site", [0.0, 1.0]), "y": ("site", [0.0, 1.0])},
            {"lon": (("j", "i"), np.zeros((2, 2))), "lat": (("j", "i"), np.zeros((2, 2)))},
            {"x": ("x", [0.0]), "y": ("y", [0.0, 1.0])},
            {"x": ("x", [0.0, 1.0]), "y": 3.0},
            {"u": ("u", [0.0, 1.0]), "v": ("v", [0.0, 1.0])},
        ],
    )
    def test_scattered_curvilinear_or_one_cell(self, coords):
        """There is no telling where such cells end."""
        dataset = xr.Dataset(coords=coords)
        assert cell_widths(dataset.coords, tuple(dataset.dims)) is None


class TestSpace:
    @pytest.mark.parametrize(
        ("coords", "dims", "expected"),
        [
            (plane([0.0, 1.0], [0.0, 1.0]), ("time", "y", "x"), ("y", "x")),
            ({"x": ("site", [0.0, 1.0]), "y": ("site", [0.0, 1.0])}, ("site",), ("site",)),
            ({"x": ("x", [0.0, 1.0]), "y": 3.0}, ("x", "depth"), ("x",)),
            (
                {
                    "lon": (("j", "i"), np.zeros((2, 2))),
                    "lat": (("j", "i"), np.zeros((2, 2))),
                    "time": ("time", np.array(["2020-01-01", "2020-01-02"], "M8[ns]")),
                },
                ("i", "time", "j"),
                ("i", "j"),
            ),
            (
                {
                    "u": ("u", [0.0, 1.0]),
                    "time": ("time", np.array(["2020-01-01", "2020-01-02"], "M8[ns]")),
                },
                ("time", "u"),
                ("u",),
            ),
        ],
    )
    def test_dims_of_space(self, coords, dims, expected):
        """By role; where there is none, all but time."""
        assert space_dims(xr.Dataset(coords=coords).coords, dims) == expected
