"""Which coordinates become inputs, and how."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from xcopula.coordinates import CoordinateSystem, find_coordinates
from xcopula.errors import CoordinateError


def dataset(attrs: dict[str, dict[str, str]] | None = None, **coords) -> xr.Dataset:
    """Ten sites with the named coordinates, and a variable."""
    attrs = attrs or {}
    columns = {n: ("site", np.asarray(v), attrs.get(n, {})) for n, v in coords.items()}
    return xr.Dataset({"v": ("site", np.arange(10.0))}, coords=columns)


TEN = np.linspace(0.0, 9.0, 10)


class TestFindCoordinates:
    def test_explicit_list_is_one_group_in_that_order(self):
        """Names in a list make one group called space, columns in the order given."""
        system = find_coordinates(dataset(a=TEN, b=TEN, c=TEN), ["c", "a"])
        assert [g.name for g in system.groups] == ["space"]
        assert system.names == ("c", "a")

    def test_one_name_needs_no_list(self):
        """A string is one coordinate."""
        assert find_coordinates(dataset(a=TEN, b=TEN), "b").names == ("b",)

    def test_mapping_makes_a_product_of_groups(self):
        """A mapping keeps its groups and their order."""
        data = dataset(e=TEN, n=TEN, t=TEN)
        system = find_coordinates(data, {"plane": ["e", "n"], "time": "t"})
        assert [(g.name, len(g.axes)) for g in system.groups] == [("plane", 2), ("time", 1)]
        assert system.names == ("e", "n", "t")

    def test_cf_axis_attributes_come_first(self):
        """Axis attributes decide, in the order X, Y, Z, whatever the names."""
        attrs = {"north": {"axis": "Y"}, "east": {"axis": "X"}, "h": {"axis": "Z"}}
        system = find_coordinates(dataset(attrs, north=TEN, east=TEN, other=TEN, h=TEN))
        assert system.names == ("east", "north", "h")

    def test_x_and_y_are_known_by_name(self):
        """Bare names x and y are guessed."""
        assert find_coordinates(dataset(y=TEN, x=TEN, station=TEN)).names == ("x", "y")

    def test_the_only_numeric_coordinate_is_taken(self):
        """A single coordinate of any name needs no role; strings and scalars do not compete."""
        data = dataset(depth_of_core=TEN, label=list("abcdefghij")).assign_coords(run=3)
        assert find_coordinates(data).names == ("depth_of_core",)

    @pytest.mark.parametrize(
        ("ard", "expected"),
        [
            (False, [False, False]),
            (True, [True, True]),
            ("plane", [True, False]),
            (["time"], [False, True]),
        ],
    )
    def test_ard_marks_groups(self, ard, expected):
        """A flag, a name or names say which groups have a scale for each coordinate."""
        data = dataset(e=TEN, n=TEN, t=TEN)
        system = find_coordinates(data, {"plane": ["e", "n"], "time": "t"}, ard=ard)
        assert [g.ard for g in system.groups] == expected

    def test_units_of_a_group_are_those_its_axes_agree_on(self):
        """Length scales have units only where one length serves all axes."""
        attrs = {"e": {"units": " km "}, "n": {"units": "km"}, "t": {"units": "day"}}
        data = dataset(attrs, e=TEN, n=TEN, t=TEN)
        groups = find_coordinates(data, {"plane": ["e", "n"], "mix": ["t"]}).groups
        assert [g.units for g in groups] == ["km", "day"]
        assert find_coordinates(data, ["e", "t"]).groups[0].units == ""
        assert find_coordinates(data, ["e", "n"], ard=True).groups[0].units == ""

    def test_choice_is_logged(self, caplog):
        """The chosen names are logged at INFO."""
        with caplog.at_level("INFO", logger="xcopula"):
            find_coordinates(dataset(x=TEN, y=TEN))
        assert "'space': ['x', 'y']" in caplog.text

    @pytest.mark.parametrize(
        ("data", "options", "match"),
        [
            (dataset(a=TEN), {"coords": ["a", "z"]}, r"No coordinate 'z'.*has coords \['a'\]"),
            (dataset(a=TEN), {"coords": []}, "names no coordinate"),
            (dataset(a=TEN), {"coords": {"space": []}}, "names no coordinate"),
            (dataset(a=TEN), {"coords": ["a", "a"]}, "names a coordinate twice"),
            (dataset(a=TEN), {"coords": "a", "ard": "time"}, r"`ard` names groups \['time'\]"),
            (dataset(a=TEN, b=TEN), {}, r"Cannot tell which.*\['a', 'b'\].*Pass `coords="),
            (dataset(), {}, "Cannot tell which.*no coords"),
            (dataset(lat=TEN, lon=TEN), {}, r"\['lon', 'lat'\] are geographic.*Project them"),
            (
                dataset({"a": {"units": "degrees_north"}}, a=TEN, b=TEN),
                {"coords": ["a", "b"]},
                "'a' is in 'degrees_north'; degrees are not a distance",
            ),
            (
                dataset({"a": {"units": "degrees_east", "standard_name": "longitude"}}, a=TEN),
                {},
                r"\['a'\] are geographic",
            ),
            (
                dataset({"a": {"axis": "X"}, "b": {"axis": "X"}}, a=TEN, b=TEN),
                {},
                r"\['a', 'b'\] all claim axis 'X'",
            ),
            (
                dataset(time=np.arange(10).astype("M8[D]").astype("M8[ns]")),
                {"coords": "time"},
                r"'time' has dtype datetime64.*days since an epoch",
            ),
            (dataset(a=list("abcdefghij")), {"coords": "a"}, "'a' has dtype <U1"),
            (dataset(a=TEN > 3), {"coords": "a"}, "'a' has dtype bool"),
        ],
    )
    def test_errors_say_what_and_what_to_do(self, data, options, match):
        """Each unusable choice of coordinates has an error of its own."""
        with pytest.raises(CoordinateError, match=match):
            find_coordinates(data, **options)


class TestScaling:
    def system(self, coords, ard=False) -> CoordinateSystem:
        """Find the coordinates of three columns."""
        return find_coordinates(dataset(a=TEN, b=TEN, t=TEN), coords, ard=ard)

    sites = np.array([[0.0, 10.0, 5.0], [8.0, 12.0, 6.0], [4.0, 14.0, 7.0]])

    def test_a_group_shares_its_widest_extent(self):
        """Distances keep their shape: one scale for a group, centred columns."""
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
        """One flat coordinate in a plane is no error, unless it needs a scale of its own."""
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
                {"x": ("x", [1.0], {"units": "m"}), "y": [1.0]},
                "'x' is in 'm', the model was fitted in 'km'",
            ),
            ({"x": ["a"], "y": [1.0]}, "'x' has dtype <U1"),
            ({"x": np.array(["2020-01-01"], "M8[ns]"), "y": [1.0]}, "'x' has dtype datetime64"),
        ],
    )
    def test_errors(self, system, coords, match):
        """A target that cannot be read says which coordinate is at fault."""
        with pytest.raises(CoordinateError, match=match):
            system.find_in(xr.Dataset(coords=coords))
