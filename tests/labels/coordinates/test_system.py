"""The inputs of a model: scaled columns, found in any data by role."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from sources import DATES, EAST, NORTH, TEN, dataset

from xcopula.errors import CoordinateError
from xcopula.labels.coordinates import CoordinateSystem, find_coordinates


class TestScaling:
    def system(self, coords, ard=False) -> CoordinateSystem:
        """Find the coordinates of three columns."""
        return find_coordinates(dataset(a=TEN, b=TEN, t=TEN), coords, ard=ard)

    sites = np.array([[0.0, 10.0, 5.0], [8.0, 12.0, 6.0], [4.0, 14.0, 7.0]])

    def test_a_group_shares_its_widest_extent(self):
        """One scale for a group keeps the shape of distances; columns are centred."""
        system = self.system({"plane": ["a", "b"], "time": "t"}).scaled_to(self.sites)
        assert system.centre == (4.0, 12.0, 6.0)
        assert system.scale == (8.0, 8.0, 2.0)
        columns = system.to_columns(list(self.sites.T))
        assert columns.shape == (3, 3)
        np.testing.assert_allclose(columns[0], [-0.5, 0.5, 0.0])
        np.testing.assert_allclose(columns[1], [-0.25, 0.0, 0.25])

    def test_ard_scales_each_column(self):
        """With a scale for each coordinate every column has unit extent."""
        system = self.system({"plane": ["a", "b"], "time": "t"}, "plane").scaled_to(self.sites)
        assert system.scale == (8.0, 4.0, 2.0)

    def test_sites_on_a_line_are_fine_without_ard(self):
        """A flat coordinate in a plane is fine, unless it needs its own scale."""
        flat = self.sites * [1.0, 0.0, 1.0]
        assert self.system(["a", "b", "t"]).scaled_to(flat).scale == (8.0, 8.0, 8.0)
        with pytest.raises(CoordinateError, match=r"\['b'\] have one value at all 3 observations"):
            self.system(["a", "b", "t"], True).scaled_to(flat)

    def test_a_group_without_extent_is_refused(self):
        """A group in which all sites coincide cannot have a distance."""
        with pytest.raises(CoordinateError, match=r"\['t'\] have one value.*Leave them out"):
            self.system({"plane": ["a", "b"], "time": "t"}).scaled_to(self.sites * [1.0, 1.0, 0.0])


class TestFindIn:
    @pytest.fixture
    def system(self):
        """A system fitted in km."""
        attrs = {"x": {"units": "km"}}
        return find_coordinates(dataset(attrs, x=TEN, y=TEN), ["x", "y"])

    def test_dims_data_variables_and_dataarrays(self, system):
        """Coordinates are found as dims, as data variables, and on a DataArray."""
        grid = xr.Dataset({"y": ("p", [1.0])}, coords={"x": ("p", [2.0])})
        assert [float(a[0]) for a in system.find_in(grid)] == [2.0, 1.0]
        array = xr.DataArray(0.0, coords={"x": 2, "y": 1.0})
        assert [float(a) for a in system.find_in(array)] == [2.0, 1.0]

    def test_missing_units_are_taken_for_the_same(self, system):
        """A target without units is accepted; one with the same units too."""
        for attrs in ({}, {"units": "km "}):
            target = xr.Dataset(coords={"x": ("x", [1.0], attrs), "y": [2.0]})
            assert len(system.find_in(target)) == 2

    @pytest.mark.parametrize(
        ("coords", "match"),
        [
            ({"x": [1.0]}, r"lacks the coordinate 'y'.*it has coords \['x'\]"),
            ({}, "lacks the coordinate 'x'.*it has no coords"),
            (
                {"x": ("x", [1.0], {"units": "hPa"}), "y": [1.0]},
                "'x' is in 'hPa', the training data had 'x' in 'km'",
            ),
            ({"x": ["a"], "y": [1.0]}, "'x' has dtype <U1"),
            ({"x": np.array(["2020-01-01"], "M8[ns]"), "y": [1.0]}, "'x' has dtype datetime64"),
        ],
    )
    def test_errors(self, system, coords, match):
        """A target that cannot be read says which coordinate is at fault."""
        with pytest.raises(CoordinateError, match=match):
            system.find_in(xr.Dataset(coords=coords))

    def test_lengths_are_converted(self, system):
        """A target in metres is read in the kilometres of the model."""
        target = xr.Dataset(coords={"x": ("x", [1000.0], {"units": "m"}), "y": [2.0]})
        assert [float(a[0]) for a in system.find_in(target)] == [1.0, 2.0]

    def test_the_error_says_whose_coordinates(self, system):
        """The message begins with the variable or the target that was read."""
        with pytest.raises(CoordinateError, match=r"^Variable 'v' lacks the coordinate 'x'"):
            system.find_in(xr.Dataset(), "Variable 'v'")


class TestRoles:
    @pytest.fixture
    def globe(self):
        """A system of bare lon, lat and time."""
        return find_coordinates(dataset(lon=TEN, lat=TEN + 1.0, time=DATES))

    @pytest.mark.parametrize("stated", [True, False])
    def test_names_may_change(self, globe, stated):
        """Longitude, latitude and time are found under other names, by attributes or by guess."""
        names = ("w", "n", "when") if stated else ("longitude", "latitude", "TIME")
        attrs = [EAST, NORTH, {"axis": "T"}] if stated else [{}, {}, {}]
        values = [TEN, TEN + 1.0, DATES]
        target = xr.Dataset(
            coords={n: ("p", v, a) for n, v, a in zip(names, values, attrs, strict=True)}
        )
        lon, lat, time = globe.find_in(target)
        np.testing.assert_array_equal(lon, TEN)
        np.testing.assert_array_equal(lat, TEN + 1.0)
        np.testing.assert_array_equal(time, np.arange(10.0))

    def test_planar_axes_too(self):
        """An x may be called easting if an attribute says that it is the axis X."""
        system = find_coordinates(dataset({"x": {"units": "km"}}, x=TEN, y=TEN))
        target = xr.Dataset(
            coords={
                "easting": ("p", [5.0], {"axis": "X"}),
                "northing": ("p", [6.0], {"standard_name": "projection_y_coordinate"}),
            }
        )
        assert [float(a[0]) for a in system.find_in(target)] == [5.0, 6.0]

    def test_attributes_count_more_than_names(self):
        """A stated role comes before a name if the training data stated it too."""
        stated = find_coordinates(
            dataset({"lon": EAST, "lat": NORTH}, lon=TEN, lat=TEN, time=DATES)
        )
        bare = find_coordinates(dataset(lon=TEN, lat=TEN, time=DATES))
        target = xr.Dataset(
            coords={
                "lat": ("p", [9.0]),
                "nav_lat": ("p", [2.0], NORTH),
                "lon": ("p", [1.0]),
                "time": DATES[0],
            }
        )
        assert float(stated.find_in(target)[1][0]) == 2.0
        assert float(bare.find_in(target)[1][0]) == 9.0

    def test_the_name_decides_among_several(self, globe):
        """If several claim a role, the one with the model's name is taken."""
        both = {"lat": ("p", [2.0], NORTH), "lat_bounds_centre": ("p", [3.0], NORTH)}
        target = xr.Dataset(coords={**both, "lon": ("p", [1.0]), "time": DATES[0]})
        assert float(globe.find_in(target)[1][0]) == 2.0
        with pytest.raises(
            CoordinateError, match=r"all claim to be the coordinate 'lat' \(latitud"
        ):
            globe.find_in(target.rename(lat="a"))

    def test_without_a_role_the_name_counts(self):
        """A coordinate without a role is found by its name alone."""
        system = find_coordinates(dataset(ph=TEN, temp=TEN), ["ph", "temp"])
        with pytest.raises(CoordinateError, match=r"lacks the coordinate 'ph' of the model"):
            system.find_in(dataset(acidity=TEN, temp=TEN))

    def test_the_missing_role_is_named(self, globe):
        """The message gives the name and the role."""
        with pytest.raises(CoordinateError, match=r"lacks the coordinate 'lon' \(longitude\)"):
            globe.find_in(dataset(lat=TEN, time=DATES))


class TestDegrees:
    @pytest.mark.parametrize(
        ("x", "y", "suspicious"),
        [
            ((100.0, 110.0), (40.0, 50.0), True),
            ((-180.0, 180.0), (-90.0, 90.0), True),
            ((0.0, 4.0), (0.0, 3.0), False),
            ((0.0, 100.0), (0.0, 100.0), False),
            ((500.0, 510.0), (40.0, 50.0), False),
            # the ends of what degrees can be
            ((350.0, 360.0), (80.0, 90.0), True),
            ((350.0, 360.1), (80.0, 90.0), False),
            ((350.0, 360.0), (80.0, 90.1), False),
            ((-180.0, -170.0), (-90.0, -80.0), True),
            ((-180.1, -170.0), (-90.0, -80.0), False),
            ((-180.0, -170.0), (-90.1, -80.0), False),
            # farther from the origin than they are wide, along both
            ((11.0, 30.0), (11.0, 30.0), True),
            ((9.0, 30.0), (11.0, 30.0), False),
            ((11.0, 30.0), (9.0, 30.0), False),
            # more than 300 by 120 degrees
            ((-151.0, 151.0), (-61.0, 61.0), True),
            ((-149.0, 149.0), (-61.0, 61.0), False),
            ((-151.0, 151.0), (-59.0, 59.0), False),
        ],
    )
    def test_only_what_could_be_degrees(self, x, y, suspicious):
        """Numbers far from the origin, or all over the globe, could be degrees."""
        system = find_coordinates(dataset(x=TEN, y=TEN))
        sites = np.column_stack([np.linspace(*x, 10), np.linspace(*y, 10)])
        assert system.looks_like_degrees(sites) == (["x", "y"] if suspicious else [])

    def test_units_settle_it(self):
        """With units there is nothing to suspect."""
        system = find_coordinates(dataset({"x": {"units": "km"}}, x=TEN, y=TEN))
        assert system.looks_like_degrees(np.full((2, 2), [[100.0, 40.0]])) == []

    def test_any_pair_of_names(self):
        """Coordinates without a role are suspected in the order in which they were given."""
        system = find_coordinates(dataset(a=TEN, b=TEN), ["a", "b"])
        sites = np.array([[-109.0, 37.0], [-102.0, 41.0]])
        assert system.looks_like_degrees(sites) == ["a", "b"]
        assert system.looks_like_degrees(sites[:, ::-1]) == []


class TestKinds:
    def test_a_duration_is_not_taken_for_a_date(self):
        """A model of lead times finds them beside dates that also claim to be the time."""
        steps = np.arange(10).astype("m8[h]").astype("m8[ns]")
        system = find_coordinates(dataset(x=TEN, y=TEN, step=steps), ["x", "y", "step"])
        target = xr.Dataset(
            coords={
                "x": [1.0],
                "y": [2.0],
                "step": ("step", steps[:3]),
                "time": ("step", DATES[:3], {"standard_name": "time"}),
            }
        )
        found = system.find_in(target)[-1]
        np.testing.assert_allclose(found.values, np.arange(3) / 24.0)
