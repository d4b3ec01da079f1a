"""Which coordinates become inputs."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from sources import DATES, EAST, NORTH, TEN, dataset

from xcopula.errors import CoordinateError
from xcopula.labels.coordinates import Cycle, Globe, cycle, find_coordinates

METRES = {"units": "m"}


def groups(system) -> dict[str, list[str]]:
    """Return the names of each group."""
    return {g.name: [a.name for a in g.axes] for g in system.groups}


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
        """Axis attributes decide, whatever the names; a height is a group of its own."""
        attrs = {"north": {"axis": "Y"}, "east": {"axis": "X"}, "h": {"axis": "Z"}}
        system = find_coordinates(dataset(attrs, north=TEN, east=TEN, other=TEN, h=TEN))
        assert groups(system) == {"space": ["east", "north"], "height": ["h"]}

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
        """A flag, a name or names choose the groups with a scale for each coordinate."""
        data = dataset(e=TEN, n=TEN, t=TEN)
        system = find_coordinates(data, {"plane": ["e", "n"], "time": "t"}, ard=ard)
        assert [g.ard for g in system.groups] == expected

    def test_units_of_a_group_are_those_its_axes_agree_on(self):
        """A length scale has units only if all axes of the group have the same."""
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
            (dataset(a=TEN), {"coords": ["a", "z"]}, r"No coordinate 'z'.*have coords \['a'\]"),
            (dataset(a=TEN), {"coords": []}, "names no coordinate"),
            (dataset(a=TEN), {"coords": {"space": []}}, "names no coordinate"),
            (dataset(a=TEN), {"coords": ["a", "a"]}, "names a coordinate twice"),
            (dataset(a=TEN), {"coords": "a", "ard": "time"}, r"`ard` names groups \['time'\]"),
            (dataset(a=TEN, b=TEN), {}, r"Cannot tell which.*\['a', 'b'\].*Pass `coords="),
            (dataset(), {}, "Cannot tell which.*no coords"),
            (
                dataset({"a": NORTH}, a=TEN, b=TEN),
                {"coords": ["a", "b"]},
                r"\['a'\] of the group 'space' are in degrees, which are not a distance.*name both",
            ),
            (
                dataset({"a": EAST}, a=TEN),
                {},
                "'a' is a longitude, in degrees, .* no latitude to go with it. Add a latitude",
            ),
            (
                dataset({"x": EAST, "y": {"units": "km", "axis": "Y"}}, x=TEN, y=TEN),
                {},
                "'x' is a longitude, in degrees, .* no latitude",
            ),
            (dataset(lat=TEN, time=DATES), {}, "'lat' is a latitude, .* no longitude"),
            (
                dataset({"x": {"units": "deg"}, "y": {"units": "deg"}}, x=TEN, y=TEN),
                {"coords": ["x", "y"]},
                r"\['x', 'y'\] of the group 'space' are in degrees",
            ),
            (
                dataset(lon=TEN, lat=TEN, h=TEN),
                {"coords": {"space": ["lon", "lat", "h"]}},
                r"\['lon', 'lat'\] of the group 'space' are in degrees.*a group of its own",
            ),
            (
                dataset({"a": {"axis": "X"}, "b": {"axis": "X"}}, a=TEN, b=TEN),
                {},
                r"\['a', 'b'\] all claim to be 'x'. Name the inputs in `coords=`",
            ),
            (
                dataset({"a": NORTH, "b": NORTH, "lon": EAST}, a=TEN, b=TEN, lon=TEN),
                {},
                r"\['a', 'b'\] all claim to be 'latitude'",
            ),
            (
                dataset(x=TEN, time=DATES),
                {"coords": {"g": ["x", "time"]}},
                r"\['x', 'time'\] of the group 'g' include dates, .*'time': 'time'",
            ),
            (
                dataset(lon=TEN, lat=TEN),
                {"ard": "space"},
                r"`ard` names groups \['space'\]; the groups .* are \[\]",
            ),
            (
                dataset(x=TEN),
                {"coords": cycle("x")},
                r"cycle\('x', 'year'\): 'x' holds no dates. Give the period as a number",
            ),
            (
                dataset(x=TEN),
                {"coords": {"g": ["x", cycle("x", 3.0)]}},
                "'g' holds a cycle and other coordinates. Give the cycle",
            ),
            (dataset(a=TEN), {"coords": cycle("b", 2.0)}, "No coordinate 'b'"),
            (
                dataset(a=TEN, b=TEN),
                {"coords": {"longitude": "a"}},
                "one for latitude; 'latitude' is None",
            ),
            (
                dataset(a=TEN, b=TEN),
                {"coords": {"longitude": "a", "latitude": "c"}},
                "No coordinate 'c'",
            ),
            (
                dataset(a=TEN, b=TEN, c=TEN),
                {"coords": {"longitude": "a", "latitude": "b", "space": "c"}},
                "another group 'space'. Rename",
            ),
            (dataset(a=list("abcdefghij")), {"coords": "a"}, "'a' has dtype <U1"),
            (dataset(a=TEN > 3), {"coords": "a"}, "'a' has dtype bool"),
        ],
    )
    def test_errors_say_what_and_what_to_do(self, data, options, match):
        """Each unusable choice of coordinates has its own error."""
        with pytest.raises(CoordinateError, match=match):
            find_coordinates(data, **options)

    @pytest.mark.parametrize("coords", [3, 3.5, [1, 2], {"space": [None]}])
    def test_coords_of_a_wrong_type(self, coords):
        """Coordinates are named by strings."""
        with pytest.raises(
            TypeError, match=r"`coords` must (be a name|name coordinates by strings)"
        ):
            find_coordinates(dataset(a=TEN), coords)


class TestGeographic:
    def test_attributes_make_a_globe(self):
        """Longitude comes first, whatever the names and their order."""
        system = find_coordinates(dataset({"u": NORTH, "w": EAST}, u=TEN, w=TEN))
        (group,) = system.groups
        assert isinstance(group, Globe)
        assert [(a.name, a.role) for a in group.axes] == [("w", "longitude"), ("u", "latitude")]

    @pytest.mark.parametrize("names", [("lat", "lon"), ("latitude", "longitude"), ("LAT", "LON")])
    def test_bare_names_make_a_globe(self, names):
        """Names suffice where there are no attributes."""
        system = find_coordinates(dataset(**dict.fromkeys(names, TEN)))
        assert isinstance(system.groups[0], Globe)
        assert system.names == names[::-1]

    @pytest.mark.parametrize("coords", [["lat", "lon"], ["lon", "lat"], {"where": ["lat", "lon"]}])
    def test_names_in_any_order(self, coords):
        """A list or a group of both is a globe."""
        system = find_coordinates(dataset({"lat": NORTH, "lon": EAST}, lat=TEN, lon=TEN), coords)
        assert isinstance(system.groups[0], Globe)
        assert system.names == ("lon", "lat")

    def test_told_which_is_which(self):
        """A mapping with longitude and latitude makes a globe of any names."""
        data = dataset(a=TEN, b=TEN, time=DATES)
        system = find_coordinates(data, {"latitude": "a", "longitude": "b", "when": "time"})
        assert isinstance(system.groups[0], Globe)
        assert groups(system) == {"space": ["b", "a"], "when": ["time"]}
        assert [a.role for a in system.axes] == ["longitude", "latitude", "time"]

    def test_told_against_the_attributes(self):
        """The user's choice of longitude and latitude overrides attributes."""
        data = dataset({"a": NORTH, "b": EAST}, a=TEN, b=TEN)
        system = find_coordinates(data, {"longitude": "a", "latitude": "b"})
        assert system.names == ("a", "b")
        assert isinstance(system.groups[0], Globe)

    def test_beside_other_coordinates(self):
        """In a list, everything beside longitude and latitude is a group of its own."""
        data = dataset(
            {"lat": NORTH, "lon": EAST, "z": {"positive": "up", "units": "m"}},
            lat=TEN,
            lon=TEN,
            z=TEN,
            time=DATES,
            ph=TEN,
        )
        system = find_coordinates(data, ["lat", "z", "ph", "lon", "time"])
        assert groups(system) == {
            "space": ["lon", "lat"],
            "ph": ["ph"],
            "height": ["z"],
            "time": ["time"],
        }

    def test_index_dims_do_not_compete_with_two_dimensional_coordinates(self):
        """Bare x and y beside lat(y, x) and lon(y, x) are indices."""
        both = np.add.outer(TEN, TEN)
        data = xr.Dataset(
            coords={
                "x": ("x", np.arange(10), {"axis": "X"}),
                "y": ("y", np.arange(10), {"axis": "Y"}),
                "lat": (("y", "x"), both, NORTH),
                "lon": (("y", "x"), both, EAST),
            }
        )
        assert find_coordinates(data).names == ("lon", "lat")
        assert find_coordinates(data.drop_vars(["x", "y"])).names == ("lon", "lat")

    def test_rotated_degrees_do_not_compete(self):
        """Degrees of a rotated pole are not a plane: the true longitude and latitude are used."""
        both = np.add.outer(TEN, TEN)
        degrees = {"units": "degrees"}
        data = xr.Dataset(
            coords={
                "rlon": ("rlon", TEN, degrees | {"axis": "X", "standard_name": "grid_longitude"}),
                "rlat": ("rlat", TEN, degrees | {"axis": "Y", "standard_name": "grid_latitude"}),
                "lat": (("rlat", "rlon"), both, NORTH),
                "lon": (("rlat", "rlon"), both, EAST),
            }
        )
        assert find_coordinates(data).names == ("lon", "lat")

    def test_a_plane_in_metres_comes_before_two_dimensional_degrees(self):
        """Projected axes in units of length are the inputs."""
        both = np.add.outer(TEN, TEN)
        data = xr.Dataset(
            coords={
                "x": ("x", 1e3 * TEN, METRES | {"standard_name": "projection_x_coordinate"}),
                "y": ("y", 1e3 * TEN, METRES | {"standard_name": "projection_y_coordinate"}),
                "lat": (("y", "x"), both, NORTH),
                "lon": (("y", "x"), both, EAST),
            }
        )
        system = find_coordinates(data)
        assert system.names == ("x", "y")
        assert [a.units for a in system.axes] == ["km", "km"]

    def test_ard_leaves_the_globe_alone(self):
        """ard=True means all groups that can have it."""
        system = find_coordinates(dataset(lon=TEN, lat=TEN, time=DATES), ard=True)
        assert [g.ard for g in system.groups] == [False, True]


class TestTime:
    def test_found_by_attribute_and_by_name(self):
        """A time is a group of its own."""
        for attrs in ({}, {"time": {"standard_name": "time", "axis": "T"}}):
            system = find_coordinates(dataset(attrs, lon=TEN, lat=TEN, time=DATES))
            assert groups(system) == {"space": ["lon", "lat"], "time": ["time"]}
            assert system.groups[1].units == "days"

    @pytest.mark.parametrize("when", [DATES[3], DATES[3:4]], ids=["scalar", "size one"])
    def test_one_time_is_no_input(self, when):
        """A time that does not vary is left out."""
        data = dataset(lon=TEN, lat=TEN)
        scalar = np.ndim(when) == 0
        data = data.assign_coords(time=when) if scalar else data.expand_dims(time=when)
        assert find_coordinates(data).names == ("lon", "lat")

    def test_a_time_that_is_the_same_everywhere_is_no_input(self):
        """The same date at all stations says nothing."""
        assert find_coordinates(dataset(x=TEN, y=TEN, time=DATES[[0] * 10])).names == ("x", "y")

    def test_scalars_are_ignored(self):
        """Scalar coordinates are not inputs, whatever their roles."""
        data = dataset(x=TEN, y=TEN).assign_coords(
            height=xr.DataArray(2.0, attrs={"axis": "Z", "units": "m"}),
            time=DATES[0],
            lat=xr.DataArray(40.0, attrs=NORTH),
            lon=xr.DataArray(7.0, attrs=EAST),
        )
        assert find_coordinates(data).names == ("x", "y")

    def test_a_time_series_at_one_place(self):
        """If the place is given by scalars, time alone is the input."""
        data = dataset(time=DATES).assign_coords(lat=40.0, lon=7.0)
        assert groups(find_coordinates(data)) == {"time": ["time"]}

    @pytest.mark.parametrize("stated", [True, False])
    def test_two_times_are_ambiguous(self, stated):
        """If a forecast has two times, the user has to choose."""
        attrs = {n: {"standard_name": "time"} for n in ("time", "valid_time")} if stated else {}
        data = dataset(attrs, x=TEN, y=TEN, time=DATES, valid_time=DATES)
        with pytest.raises(
            CoordinateError, match=r"\['time', 'valid_time'\] all claim to be 'time'.*`coords="
        ):
            find_coordinates(data)
        chosen = find_coordinates(data, ["x", "y", "valid_time"])
        assert groups(chosen) == {"space": ["x", "y"], "time": ["valid_time"]}

    def test_the_dim_among_two_times_is_taken(self):
        """A time that is a dim comes before an auxiliary one."""
        data = xr.Dataset(coords={"x": TEN, "time": DATES, "day_start": ("time", DATES)})
        assert find_coordinates(data).names == ("x", "time")

    @pytest.mark.parametrize("place", [0, 5])
    def test_a_missing_cftime_does_not_hide_the_time(self, place):
        """A coordinate of dates with a gap is refused, not overlooked."""
        import cftime

        dates = np.asarray(cftime.num2date(np.arange(10), "days since 2001-01-01", "noleap"))
        dates[place] = np.nan
        with pytest.raises(CoordinateError, match=r"'time' has no date \(NaT\) at 1 of 10"):
            find_coordinates(dataset(x=TEN, y=TEN, time=dates))

    def test_mixed_calendars(self):
        """Dates of two calendars in one coordinate are refused by name."""
        import cftime

        dates = np.asarray(cftime.num2date(np.arange(10), "days since 2001-01-01", "noleap"))
        dates[3] = cftime.datetime(2001, 1, 4, calendar="360_day")
        with pytest.raises(CoordinateError, match=r"calendars \['360_day', 'noleap'\]"):
            find_coordinates(dataset(x=TEN, y=TEN, time=dates))


class TestCycle:
    def test_beside_the_time(self):
        """A cycle is a group of its own, beside the time itself."""
        attrs = {"lon": {"units": "degrees_east"}, "lat": {"units": "degrees_north"}}
        data = dataset(attrs, lon=TEN, lat=TEN, time=DATES)
        system = find_coordinates(data, ["lon", "lat", "time", cycle("time"), cycle("time", "day")])
        assert groups(system) == {
            "space": ["lon", "lat"],
            "time": ["time"],
            "season": ["time"],
            "cycle": ["time"],
        }
        year, day = system.groups[2:]
        assert isinstance(year, Cycle)
        assert (year.period, day.period) == (365.2425, 1.0)

    def test_alone_and_of_numbers(self):
        """Any number can repeat after a period in its own units."""
        (group,) = find_coordinates(dataset(angle=TEN), cycle("angle", 360)).groups
        assert group.period == 360.0

    def test_the_period_is_in_the_units_of_the_data(self):
        """A period of 500 m stays that, although the model counts x in km."""
        data = dataset({"x": METRES | {"axis": "X"}}, x=TEN)
        (group,) = find_coordinates(data, cycle("x", 500.0)).groups
        assert (group.units, group.period) == ("km", 0.5)

    def test_the_year_is_that_of_the_calendar(self):
        """A year has 360 days if the calendar says so."""
        import cftime

        dates = np.asarray(cftime.num2date(np.arange(10), "days since 2001-01-01", "360_day"))
        (group,) = find_coordinates(dataset(time=dates), {"season": cycle("time")}).groups
        assert group.period == 360.0

    @pytest.mark.parametrize("period", [0.0, -1, np.inf, np.nan, "month"])
    def test_periods_that_are_none(self, period):
        """A period is positive and finite, or has a known name."""
        with pytest.raises(ValueError, match="A period must be"):
            cycle("time", period)

    @pytest.mark.parametrize(("name", "period"), [(3, 1.0), ("time", None), ("time", True)])
    def test_of_a_wrong_type(self, name, period):
        """A cycle takes a name and a number."""
        with pytest.raises(TypeError, match=r"`cycle` takes the name|A period must be a number"):
            cycle(name, period)


class TestHeight:
    def test_reported_in_metres(self):
        """A height known by its attributes is a group of its own, in m."""
        attrs = {"alt": {"standard_name": "altitude", "units": "km"}}
        system = find_coordinates(dataset(attrs, lon=TEN, lat=TEN, alt=TEN))
        assert groups(system) == {"space": ["lon", "lat"], "height": ["alt"]}
        assert system.groups[1].units == "m"

    def test_elevation_of_the_ground_is_no_input(self):
        """Auxiliary coordinates without a role are left alone."""
        attrs = {"elevation": {"standard_name": "surface_altitude", "units": "m"}}
        data = dataset(attrs, lon=TEN, lat=TEN, elevation=TEN)
        assert find_coordinates(data).names == ("lon", "lat")


class TestAssumptions:
    def test_names_without_units_are_believed_aloud(self):
        """Names alone make longitude and latitude in ``coords``, with a warning."""
        with pytest.warns(
            UserWarning, match=r"\['lon', 'lat'\] have no units 'deg.*for degrees on the g"
        ):
            system = find_coordinates(dataset(lon=TEN, lat=TEN), ["lon", "lat"])
        assert isinstance(system.groups[0], Globe)

    @pytest.mark.parametrize("coords", [None, {"longitude": "lon", "latitude": "lat"}])
    def test_no_warning_where_nothing_was_assumed_unasked(self, coords, recwarn):
        """There is no warning if they are found by name, or named as longitude and latitude."""
        system = find_coordinates(dataset(lon=TEN, lat=TEN), coords)
        assert isinstance(system.groups[0], Globe)
        assert not recwarn

    def test_a_meridian(self):
        """A transect along a meridian has one longitude, as a scalar."""
        data = dataset({"lat": {"units": "degrees_north"}}, lat=TEN)
        data = data.assign_coords(lon=((), 7.0, {"units": "degrees_east"}))
        assert groups(find_coordinates(data)) == {"space": ["lon", "lat"]}
