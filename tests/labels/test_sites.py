"""Which places are one site, with coordinates of every kind and of two precisions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import xarray as xr
from sources import EAST, NORTH

from xcopula.labels.coordinates import find_coordinates
from xcopula.labels.observations import observe
from xcopula.labels.sites import find_sites, tell_apart

UP = {"standard_name": "altitude", "units": "m"}
SIZE = 50


def plane(rng, units: str) -> dict:
    """Return places in the plane of a UTM zone, 4 km x 3 km around a northing of 4,500 km."""
    factor = {"km": 1.0, "m": 1000.0}[units]
    x, y = rng.uniform([432.0, 4500.0], [436.0, 4503.0], (SIZE, 2)).T
    return {
        "x": (factor * x, {"units": units, "axis": "X"}),
        "y": (factor * y, {"units": units, "axis": "Y"}),
    }


def globe(rng, west: float, east: float) -> dict:
    """Return places on the globe."""
    lon, lat = rng.uniform([west, -60.0], [east, 70.0], (SIZE, 2)).T
    return {"lon": (lon, EAST), "lat": (lat, NORTH)}


def tower(rng) -> dict:
    """Return places on the globe at heights, some above each other."""
    places = globe(rng, 5.0, 12.0)
    for name in ("lon", "lat"):
        places[name][0][SIZE // 2 :] = places[name][0][: SIZE // 2]
    return places | {"alt": (rng.uniform(0.0, 3000.0, SIZE), UP)}


KINDS = {
    "km": lambda rng: plane(rng, "km"),
    "m": lambda rng: plane(rng, "m"),
    "0..360": lambda rng: globe(rng, 0.0, 360.0),
    "-180..180": lambda rng: globe(rng, -180.0, 180.0),
    "heights": tower,
}
every = pytest.mark.parametrize("kind", KINDS)


def variable(places: dict, values, dtype="f8") -> xr.DataArray:
    """Return a variable at places, whose coordinates were stored in a precision."""
    coords = {n: ("site", v.astype(dtype), attrs) for n, (v, attrs) in places.items()}
    return xr.DataArray(values, dims="site", coords=coords)


def partition(numbers) -> np.ndarray:
    """Return which observations stand together, whatever their numbers are."""
    return numbers[:, None] == numbers[None]


class TestPrecision:
    """A variable whose coordinates were stored in single precision keeps its common sites."""

    @every
    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("which", ["primary", "secondary", "both"])
    def test_sites_stay_common(self, kind, seed, which):
        """The same observations share sites as in double precision."""
        rng = np.random.default_rng(seed)
        places = KINDS[kind](rng)
        values = rng.normal(size=(2, SIZE))
        first = "f4" if which in ("primary", "both") else "f8"
        second = "f4" if which in ("secondary", "both") else "f8"
        expected, found = (
            observe(
                {"a": variable(places, values[0], one), "b": variable(places, values[1], two)},
                ["a", "b"],
            ).sample.sites
            for one, two in (("f8", "f8"), (first, second))
        )
        np.testing.assert_array_equal(expected[:SIZE], expected[SIZE:])
        assert len(set(expected)) == SIZE
        np.testing.assert_array_equal(partition(found), partition(expected))

    @every
    def test_some_sites_common_and_some_not(self, kind):
        """Sites of one variable alone stay its own."""
        rng = np.random.default_rng(7)
        places = KINDS[kind](rng)
        part = {n: (v[10:40], attrs) for n, (v, attrs) in places.items()}
        few = {n: (v[:30], attrs) for n, (v, attrs) in places.items()}
        found = observe(
            {
                "a": variable(part, rng.normal(size=30)),
                "b": variable(few, rng.normal(size=30), "f4"),
            },
            ["a", "b"],
        ).sample.sites
        np.testing.assert_array_equal(found[:20], found[30 + 10 :])
        assert len(set(found)) == 40

    @every
    def test_targets_in_single_precision_are_found(self, kind):
        """And places a few roundings away are not."""
        rng = np.random.default_rng(3)
        places = KINDS[kind](rng)
        seen = observe({"a": variable(places, rng.normal(size=SIZE))}, ["a"])
        factor = [
            0.001 if attrs["units"] == "m" and "axis" in attrs else 1.0
            for _, attrs in places.values()
        ]
        numbers = [
            f * v.astype("f4").astype(float)
            for f, (v, _) in zip(factor, places.values(), strict=True)
        ]
        np.testing.assert_array_equal(seen.targets(numbers).sites, seen.sample.sites)
        first = numbers[0] + 1e-5 * np.abs(numbers[0]).max()
        assert (seen.targets([first, *numbers[1:]]).sites == -1).all()

    def test_longitudes_of_both_conventions(self):
        """The same places, a turn apart and in another precision."""
        rng = np.random.default_rng(1)
        places = globe(rng, -180.0, 180.0)
        turned = places | {"lon": (places["lon"][0] % 360.0, EAST)}
        a, b = rng.normal(size=(2, SIZE))
        found = observe({"a": variable(places, a), "b": variable(turned, b, "f4")}, ["a", "b"])
        np.testing.assert_array_equal(found.sample.sites[:SIZE], found.sample.sites[SIZE:])


class TestCloseSites:
    """Sites of one variable that lie closer than single precision can tell stay apart."""

    def line(self, northing) -> xr.DataArray:
        """Return a variable along a northing in metres."""
        x = np.linspace(4e5, 4.04e5, len(northing))
        x[-1] = x[-2]
        places = {
            "x": (x, {"units": "m", "axis": "X"}),
            "y": (np.asarray(northing), {"units": "m", "axis": "Y"}),
        }
        return variable(places, np.sin(np.arange(len(northing))))

    def test_a_decimetre_at_five_thousand_kilometres(self):
        """Single precision rounds to half a metre there."""
        northing = np.r_[5e6 + 700.0 * np.arange(9), 5e6 + 5600.1]
        assert np.float32(northing[-1]) == np.float32(northing[-2])
        seen = observe({"a": self.line(northing)}, ["a"])
        assert len(set(seen.sample.sites)) == 10
        x, y = seen.positions.T
        np.testing.assert_array_equal(seen.targets([x, y]).sites, seen.sample.sites)

    def test_the_other_variable_is_told_apart_too(self):
        """Just under half the smallest distance is the tolerance for all."""
        northing = np.r_[5e6 + 700.0 * np.arange(9), 5e6 + 5600.1]
        array = self.line(northing)
        few = array.isel(site=slice(0, 6))  # far from each other
        for shift, common in ((0.045, True), (0.055, False)):
            moved = few.assign_coords(y=(few["y"] + shift).assign_attrs(few["y"].attrs))
            found = observe({"a": array, "b": moved}, ["a", "b"]).sample.sites
            assert (set(found[10:]) <= set(found[:10])) == common
            assert len(set(found)) == (10 if common else 16)

    @pytest.mark.parametrize(
        "shifts", [[0.5], [0.5, 0.25], [1 / 3, 2 / 3], [0.25, 0.5, 0.75]], ids=str
    )
    def test_staggered_rasters(self, shifts):
        """A chain of sites of other variables does not join two sites of one."""

        def raster(shift):
            x, y = 432_000.0 + np.arange(5.0), 5_000_000.0 + np.arange(7.0) + shift
            coords = {"y": ("y", y, {"units": "m"}), "x": ("x", x, {"units": "m"})}
            values = np.sin(np.add.outer(y, x))
            return xr.DataArray(values, dims=("y", "x"), coords=coords)

        data = {f"v{k}": raster(shift) for k, shift in enumerate([0.0, *shifts])}
        sample = observe(data, list(data)).sample
        for i in range(sample.tasks):
            assert len(set(sample.sites[sample.task(i)])) == 35

    def test_of_one_variable_only(self):
        """It is each variable's own smallest distance that counts, not that between two."""
        northing = 5e6 + 700.0 * np.arange(10.0)
        array = self.line(northing)
        single = array.assign_coords(y=array["y"].astype("f4"), x=array["x"].astype("f4"))
        found = observe({"a": array, "b": single}, ["a", "b"]).sample.sites
        np.testing.assert_array_equal(found[:10], found[10:])


class TestDates:
    def times(self, extra) -> xr.DataArray:
        """Return a variable over forty years, with some more dates."""
        days = np.datetime64("1980-01-01", "ns") + np.arange(0, 40 * 365, 200) * np.timedelta64(
            1, "D"
        )
        when = np.concatenate([days, np.atleast_1d(extra)])
        return xr.DataArray(np.sin(np.arange(when.size)), dims="time", coords={"time": when})

    @pytest.mark.parametrize("where", ["1980-01-01", "2001-05-07", "2019-03-01"])
    def test_a_second_apart(self, where):
        """Dates are exact: a second in forty years tells two sites apart."""
        base = np.datetime64(where, "ns")
        array = self.times([base + np.timedelta64(36 * 3600 + k, "s") for k in (0, 1)])
        seen = observe({"a": array}, ["a"])
        assert len(set(seen.sample.sites)) == array.size
        numbers = seen.positions.T
        np.testing.assert_array_equal(seen.targets(numbers).sites, seen.sample.sites)

    def test_resolutions_agree(self):
        """Seconds and nanoseconds of the same date are one site."""
        array = self.times(np.datetime64("2001-05-07T03:04:05", "ns"))
        coarse = array.assign_coords(time=array["time"].values.astype("M8[s]"))
        found = observe({"a": array, "b": coarse}, ["a", "b"]).sample.sites
        np.testing.assert_array_equal(found[: array.size], found[array.size :])

    def test_the_same_date_twice(self):
        """Is refused by name."""
        when = np.datetime64("2001-05-07", "ns")
        with pytest.raises(ValueError, match=r"'a' has several values at 1 .*time=2001-05-07"):
            observe({"a": self.times([when, when])}, ["a"])


class TestAgainstAllPairs:
    @every
    def test_sites_of_two_variables(self, kind):
        """Two observations share a site if their places differ by a rounding, and no others do."""
        rng = np.random.default_rng(11)
        places = KINDS[kind](rng)
        data = variable(places, rng.normal(size=SIZE))
        system = find_coordinates(data)
        numbers = np.column_stack([c.values for c in system.find_in(data)])
        rounded = numbers[::2].astype("f4").astype(float)
        sites, found = find_sites(system.scaled_to(numbers), [numbers, rounded])
        assert [len(f) for f in found] == [SIZE, SIZE // 2]
        together = {
            (i, j)
            for i, j in itertools.product(range(SIZE), range(SIZE // 2))
            if found[0][i] == found[1][j]
        }
        assert together == {(2 * j, j) for j in range(SIZE // 2)}
        assert (sites.tolerance > 0.0).all()


class TestTellApart:
    def test_replicates_have_numbers_of_their_own(self):
        """So has what was measured with them; what was not keeps the site's."""
        sites = [np.array([0, 1, 1, 2]), np.array([1, 1, 2, 0])]
        measured = [np.array([0, 1, 2, 3]), np.array([2, 7, 3, 0])]
        first, second = tell_apart(sites, measured)
        assert first[[0, 3]].tolist() == [0, 2]
        assert second[[2, 3]].tolist() == [2, 0]
        assert first[2] == second[0]
        assert len({first[1], first[2], second[1], 0, 1, 2}) == 6

    def test_one_value_at_each_site(self):
        """Nothing changes, whatever was measured together."""
        sites = [np.array([0, 1]), np.array([1, 0])]
        for left, right in zip(tell_apart(sites, [np.arange(2)] * 2), sites, strict=True):
            np.testing.assert_array_equal(left, right)

    def test_another_variable_may_stand_at_the_site(self):
        """One value of another table keeps the number that targets there have."""
        sites = [np.array([4, 4]), np.array([4])]
        first, second = tell_apart(sites, [np.array([0, 1]), np.array([9])])
        assert second.tolist() == [4]
        assert 4 not in first
