"""Fields and group keys of laws: found by name or role, read as columns."""

from __future__ import annotations

import cftime
import numpy as np
import pytest
import xarray as xr
from sources import DATES, EAST, NORTH, TEN, dataset

import xcopula
from xcopula.errors import FieldError
from xcopula.labels.coordinates import find_coordinates
from xcopula.labels.fields import Field, attach_fields, fields_of, find_fields

SYSTEM = find_coordinates(dataset({"lon": EAST, "lat": NORTH}, lon=TEN, lat=TEN, time=DATES))


def look_up(field: Field, target) -> xr.DataArray:
    """Find one field in a target."""
    (one,) = find_fields([field], target, SYSTEM, "v")
    return one


def months(values) -> xr.Dataset:
    """A target with dates only."""
    return xr.Dataset(coords={"time": ("time", np.asarray(values))})


class TestFind:
    def test_coordinate_or_variable(self):
        """A field may be either, on its own dims."""
        target = xr.Dataset({"h": ("y", [1, 2])}, coords={"k": 3.0})
        assert look_up(Field("h"), target).dtype == np.float64
        assert float(look_up(Field("k"), target)) == 3.0

    def test_an_axis_is_found_by_role(self):
        """A field that is an input of the model is found by its role, and read as its numbers."""
        target = dataset({"w": EAST}, w=TEN, latitude=TEN, time=DATES)
        np.testing.assert_array_equal(look_up(Field("lon"), target), TEN)
        np.testing.assert_array_equal(look_up(Field("lat"), target), TEN)
        np.testing.assert_array_equal(look_up(Field("time"), target), np.arange(10.0))

    @pytest.mark.parametrize("part", ["month", "season", "dayofyear", "year"])
    def test_parts_of_dates(self, part):
        """A part of a date is the same as in xarray, for datetime64 and cftime."""
        key = Field(f"time.{part}", key=True)
        dates = np.asarray(cftime.num2date(np.arange(10), "days since 2000-01-01", "standard"))
        expected = getattr(months(DATES)["time"].dt, part).values
        for values in (DATES, dates):
            np.testing.assert_array_equal(look_up(key, months(values)), expected)

    def test_no_such_part(self):
        """The error for an unknown part of a date names some known ones."""
        with pytest.raises(FieldError, match=r"no part 'moon' \('time.moon'\). Use 'month'"):
            look_up(Field("time.moon", key=True), months(DATES))

    def test_a_part_of_no_date(self):
        """Numbers have no month."""
        with pytest.raises(FieldError, match=r"part of a date, but 'h' has dtype float64.*Decode"):
            look_up(Field("h.month", key=True), dataset(h=TEN))

    def test_a_regression_needs_numbers(self):
        """A string is a key, not a covariate."""
        with pytest.raises(FieldError, match=r"'soil' has dtype <U1; .*use `by\('soil', ...\)`"):
            look_up(Field("soil"), dataset(soil=list("abcdefghij")))

    @pytest.mark.parametrize(("trained", "found"), [("m", "metres"), ("m", ""), ("K", "K")])
    def test_units_that_agree(self, trained, found):
        """Other spellings of one unit, and missing units, are accepted."""
        target = dataset({"h": {"units": found}}, h=TEN)
        np.testing.assert_array_equal(look_up(Field("h", units=trained), target), TEN)

    def test_lengths_are_converted(self):
        """Feet become the metres of the training data."""
        target = dataset({"h": {"units": "ft"}}, h=TEN)
        np.testing.assert_allclose(look_up(Field("h", units="m"), target), 0.3048 * TEN)

    @pytest.mark.parametrize(("trained", "found"), [("m", "hPa"), ("K", "degC")])
    def test_units_that_do_not(self, trained, found):
        """Other units are refused, and the error names both."""
        target = dataset({"h": {"units": found}}, h=TEN)
        with pytest.raises(
            FieldError, match=f"'h' is in '{found}', but in the training data it was in '{trained}'"
        ):
            look_up(Field("h", units=trained), target)

    def test_all_missing_fields_are_named(self):
        """One error names all that the target lacks, and what it has."""
        with pytest.raises(
            FieldError, match=r"'rain' varies with \['h', 'soil.month'\].*it has \['lon', 'v'\]"
        ):
            find_fields([Field("h"), Field("soil.month")], dataset(lon=TEN), SYSTEM, "rain")


class TestEncode:
    def test_numbers_are_themselves(self):
        """Numbers, with gaps, and booleans as 0 and 1."""
        np.testing.assert_array_equal(Field("h").encode(np.array([1, 2])), [1.0, 2.0])
        np.testing.assert_array_equal(Field("h").encode(np.array([True, False])), [1.0, 0.0])
        assert np.isnan(Field("h").encode(np.array([np.nan]))).all()

    @pytest.mark.parametrize(
        "values",
        [
            np.array([3, 1, 1, 12]),
            np.array([3.0, 1.0, 1.0, 12.0]),
            np.array(["loam", "clay", "clay", "sand"]),
            np.array(["loam", "clay", "clay", "sand"], object),
            np.array(["2000-02-01", "2000-01-01", "2000-01-01", "2000-03-01"], "M8[ns]"),
            np.array(["2000-02-01", "2000-01-01", "2000-01-01", "2000-03-01"], "M8[s]"),
        ],
        ids=["int", "float", "str", "object", "ns", "s"],
    )
    def test_groups_are_sorted_codes(self, values):
        """Keys of every kind become numbers of sorted groups."""
        field = Field("k", key=True).learnt_from(values, SYSTEM)
        assert len(field.groups) == len(field.labels) == 3
        np.testing.assert_array_equal(field.encode(values), [1.0, 0.0, 0.0, 2.0])

    def test_booleans_are_groups(self):
        """False comes first."""
        field = Field("k", key=True).learnt_from(np.array([True, False]), SYSTEM)
        assert field.labels == ("False", "True")
        np.testing.assert_array_equal(field.encode(np.array([True, True])), [1.0, 1.0])

    def test_dates_of_any_kind_are_the_same_groups(self):
        """Nanoseconds, seconds and cftime name the same date."""
        field = Field("time", key=True).learnt_from(DATES, SYSTEM)
        assert field.labels[0] == "2000-01-01 00:00:00"
        dates = np.asarray(cftime.num2date([4.0, 0.0], "days since 2000-01-01", "standard"))
        for values in (DATES[[4, 0]], DATES[[4, 0]].astype("M8[s]"), dates):
            np.testing.assert_array_equal(field.encode(values), [4.0, 0.0])

    @pytest.mark.parametrize(
        "values", [np.array([1.0, np.nan]), np.array(["a", None], object), DATES[:2].copy()]
    )
    def test_gaps_stay_gaps(self, values):
        """A missing key has no code, and is not a group."""
        if values.dtype.kind == "M":
            values[1] = "NaT"
        field = Field("k", key=True).learnt_from(values, SYSTEM)
        assert len(field.groups) == 1
        np.testing.assert_array_equal(field.encode(values), [0.0, np.nan])

    @pytest.mark.parametrize(
        ("known", "asked", "match"),
        [
            ([1, 2], [2, 3, 7], "k 3, 7 never occurs in the training data, which have 1, 2"),
            ([1, 3], [0, 1, 2], "k 0, 2 never occurs in the training data, which have 1, 3"),
            (["a"], ["b"], "k b never occurs in the training data, which have a"),
            ([1, 2], ["a"], "'k' has dtype <U1, but its groups in the training data were 1, 2"),
        ],
    )
    def test_groups_never_seen(self, known, asked, match):
        """A new group is named, together with those of the training data."""
        field = Field("k", key=True).learnt_from(np.array(known), SYSTEM)
        with pytest.raises(FieldError, match=match):
            field.encode(np.array(asked))

    @pytest.mark.parametrize("middle", [0.0, 100.0, 179.0, -179.0])
    def test_longitudes_are_taken_about_the_training_data(self, middle):
        """Any convention gives the same numbers, without a jump within the data."""
        lon = middle + np.array([-5.0, 0.0, 5.0])
        field = Field("lon").learnt_from((lon + 180.0) % 360.0 - 180.0, SYSTEM)
        found = [field.encode(lon), field.encode(lon % 360.0), field.encode(lon - 360.0)]
        for other in found:
            np.testing.assert_allclose(other, found[0], atol=1e-9)
            np.testing.assert_allclose(np.diff(other), 5.0, atol=1e-9)


class TestSource:
    def test_units_and_keys_are_remembered(self):
        """A field keeps the units of the training data."""
        array = dataset({"h": {"units": "m"}}, h=TEN, k=TEN)["v"]
        height, key = fields_of(array, ["h", "k"], ["k"], SYSTEM)
        assert (height.units, height.key, key.key) == ("m", False, True)

    def test_an_axis_has_the_units_it_is_read_in(self):
        """A slope on a coordinate is per unit of the axis: per km if x is in metres."""
        data = dataset({"x": {"units": "m"}, "y": {"units": "m"}}, x=1e3 * TEN, y=TEN)
        system = find_coordinates(data, ["x", "y"])
        (field,) = fields_of(data["v"], ["x"], [], system)
        assert field.units == "km"
        np.testing.assert_allclose(find_fields([field], data, system, "v")[0], TEN)

    def test_a_field_beside_the_variable_becomes_a_coordinate(self):
        """It is aligned by labels, and the variable is not changed."""
        data = dataset(x=TEN).assign(h=("site", TEN))
        found = attach_fields("v", data["v"], ["h", "x"], data)
        np.testing.assert_array_equal(found["h"], TEN)
        assert "h" not in data["v"].coords


def test_a_dataarray_of_the_field_is_a_target():
    """A target may be the field itself, with its coordinates."""
    grid = xcopula.datasets.colorado_grid().thin(lat=40, lon=60)
    stations = xcopula.datasets.colorado().sel(time="1985-05").squeeze("time", drop=True)
    model = stations.thin(station=6).mtcopula.fit(
        "tmax", marginals=xcopula.regress("normal", on="elevation"), kernels="matern32"
    )
    xr.testing.assert_identical(model.predict(grid["elevation"]), model.predict(grid))


def test_a_longitude_beside_planar_inputs_is_wrapped():
    """Degrees east as a field mean the same in both conventions."""
    field = Field("lon", units="degrees_east").learnt_from(np.array([-3.0, 5.0]), SYSTEM)
    np.testing.assert_allclose(field.encode(np.array([358.0, 2.0])), [-2.0, 2.0])


def test_many_new_groups_are_abridged():
    """More new groups than fit in a message end in dots."""
    field = Field("k", key=True).learnt_from(np.arange(3), SYSTEM)
    with pytest.raises(FieldError, match=r"k 3, 4, 5, 6, 7, \.\.\. never occurs"):
        field.encode(np.arange(20))


def test_a_law_does_not_vary_with_its_own_variable():
    """A variable cannot be regressed on itself."""
    with pytest.raises(FieldError, match="The law of 'v' cannot vary with 'v' itself"):
        xcopula.fit(dataset(x=TEN, y=TEN), "v", marginals=xcopula.regress("normal", on="v"))


@pytest.mark.parametrize("part", ["floor", "moon"])
def test_methods_of_dates_are_no_parts(part):
    """Only what gives a value for each date is a part of it."""
    with pytest.raises(FieldError, match=f"A date has no part '{part}'"):
        look_up(Field(f"time.{part}"), months(DATES))


def test_a_season_is_no_number():
    """A part that is a name makes groups, and is not a number."""
    with pytest.raises(FieldError, match=r"'time.season' has dtype .*`by\('time.season'"):
        look_up(Field("time.season"), months(DATES))


def test_units_that_were_not_there_are_warned_of():
    """Metres in the target may be wrong if the training data had no units."""
    with pytest.warns(UserWarning, match="'h' is in 'm', but in the training data it had no units"):
        look_up(Field("h"), dataset({"h": {"units": "m"}}, h=TEN))


def test_a_field_at_other_places():
    """Variables of a mapping are not matched by position."""
    here, there = dataset(x=TEN, y=TEN)["v"], dataset(x=TEN + 1.0, y=TEN)["v"].rename("h")
    with pytest.raises(FieldError, match=r"'h', which lies at other places \(\['x'\] differ"):
        attach_fields("v", here, ["h"], {"v": here, "h": there})
    with pytest.raises(FieldError, match=r"lies at other places \(\['site'\] differ"):
        attach_fields("v", here, ["h"], {"v": here, "h": there[:5].drop_vars(["x", "y"])})
