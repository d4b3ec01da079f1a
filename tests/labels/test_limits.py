"""The limits of values, from labels to the sample."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from strategies import count_computes

from xcopula.labels.censoring import rules_of
from xcopula.labels.limits import settle_values
from xcopula.labels.observations import Observations, observe
from xcopula.labels.sites import sites_within

NAMES = ["a", "b"]
INF = np.inf


@pytest.fixture
def data() -> xr.Dataset:
    """Two variables at ten sites; `b` lacks one value."""
    values = np.array([0.1, 0.2, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 9.0])
    other = values[::-1].copy()
    other[3] = np.nan
    return xr.Dataset(
        {
            "a": ("site", values, {"units": "mg", "standard_name": "mass_of_a"}),
            "b": ("site", other),
            "low": ("site", values <= 0.2),
            "lower": ("site", values - 0.05),
            "upper": ("site", np.where(values < 1.0, values + 0.05, np.nan)),
        },
        coords={"x": ("site", np.arange(10.0)), "y": ("site", np.arange(10.0) % 3)},
    )


def seen(data, censored, **options) -> Observations:
    """Read both variables."""
    return observe(data, NAMES, censored=rules_of(censored, NAMES), **options)


def ends(found: Observations, task: int = 0):
    """Return the limits of a variable, those of exact values left out."""
    lower, upper = found.sample.limits_of(task)
    at = np.flatnonzero(lower < upper)
    return {int(k): (float(lower[k]), float(upper[k])) for k in at}


class TestWays:
    def test_a_flag(self, data):
        """By name or as an array, the stored value is the upper limit."""
        expected = {0: (-INF, 0.1), 1: (-INF, 0.2), 2: (-INF, 0.2)}
        for flag in ("low", data["low"], data["low"].drop_vars(["x", "y"]).rename(None)):
            found = seen(data, {"a": flag})
            assert ends(found) == expected
            assert ends(found, 1) == {}
            np.testing.assert_array_equal(found.sample.values[:10], data["a"])

    def test_a_number(self, data):
        """Values at or below it are below it, also in single precision."""
        expected = dict.fromkeys(range(3), (-INF, 0.2))
        assert ends(seen(data, {"a": 0.2})) == expected
        single = data.assign(a=data["a"].astype(np.float32))
        found = seen(single, {"a": 0.2})
        assert ends(found) == expected
        assert (found.sample.values[:3] <= 0.2).all()

    def test_saturated(self, data):
        """At or above a number; or above a variable where that is given."""
        assert ends(seen(data, {"a": (8, None)})) == {8: (8.0, INF), 9: (8.0, INF)}
        full = data.assign(full=data["a"].where(data["a"] > 8.5))
        assert ends(seen(full, {"a": ("full", None)})) == {9: (9.0, INF)}

    def test_rounded(self, data):
        """Between two arrays, all of them."""
        a = data["a"].drop_attrs()
        found = ends(seen(data, {"a": (a - 0.05, a + 0.05)}))
        np.testing.assert_allclose([found[k] for k in range(10)], np.c_[a - 0.05, a + 0.05])

    def test_an_open_side(self, data):
        """NaN or infinity leaves it open; open on both sides the value is exact."""
        found = ends(seen(data, {"a": (None, "upper")}))
        assert list(found) == [0, 1, 2, 3]
        assert found[3] == (-INF, 0.55)
        infinite = data.assign(upper=data["upper"].fillna(INF))
        assert ends(seen(infinite, {"a": (None, "upper")})) == found
        assert ends(seen(data, {"a": (0.0, "upper")}))[3] == (0.0, 0.55)

    def test_equal_limits_are_a_value(self, data):
        """Also where no value is stored."""
        exact = data.assign(a=data["a"].where(data["a"] < 9.0), end=data["a"])
        found = seen(exact, {"a": ("end", "end")})
        assert found.sample.limits is None
        np.testing.assert_array_equal(found.sample.values[:10], data["a"])

    def test_a_missing_value_that_is_limited_counts(self, data):
        """A number within stands for it."""
        gaps = data.assign(a=data["a"].where(data["a"] > 1.0))
        found = seen(gaps, {"a": (None, "upper")})
        assert found.sample.sizes[0] == 9  # 1.0 has no limit, and no value
        assert ends(found) == {k: (-INF, data["upper"].values[k]) for k in range(4)}
        assert (found.sample.values[:4] <= found.sample.limits[1, :4]).all()
        two = seen(gaps, {"a": (data["a"].drop_attrs() - 0.2, "upper")})
        np.testing.assert_allclose(two.sample.values[3], 0.5 * (0.3 + 0.55))

    def test_what_stands_for_zero(self, data):
        """Half the limit: laws of positive values can start there."""
        zeros = data.assign(a=data["a"].where(data["a"] > 0.2, 0.0))
        found = seen(zeros, {"a": (None, xr.where(zeros["a"] > 0, np.nan, 0.3).drop_attrs())})
        np.testing.assert_allclose(found.sample.values[:3], 0.15)

    def test_limits_of_a_dim(self, data):
        """A limit of each year stands for all stations."""
        grid = xr.Dataset(
            {"a": (("time", "x"), np.arange(12.0).reshape(3, 4)), "dl": ("time", [2.0, 4.5, 0.0])},
            coords={"time": [0.0, 1.0, 2.0], "x": np.arange(4.0)},
        )
        rules = rules_of({"a": (None, grid["dl"].where(grid["a"] <= grid["dl"]))}, ["a"])
        found = observe(grid, ["a"], ["time", "x"], censored=rules)
        assert ends(found) == {0: (-INF, 2), 1: (-INF, 2), 2: (-INF, 2), 4: (-INF, 4.5)}


class TestConventions:
    @pytest.fixture
    def told(self, data) -> xr.Dataset:
        """A detection limit that changed, listed as ancillary."""
        data["a"].attrs["ancillary_variables"] = "dl q"
        name = "mass_of_a detection_minimum"
        limits = [0.1, 0.1, 0.2, 0.6, 0.6, 0.1, 0.1, 0.1, 0.1, np.nan]
        attrs = {"standard_name": name, "units": "mg"}
        return data.assign(dl=("site", np.float32(limits), attrs))

    def test_a_detection_limit(self, told):
        """It is found, and said where; None takes values as they are."""
        found = seen(told, "auto")
        assert list(ends(found)) == [0, 2, 3]  # 0.1 in single precision is 0.1
        np.testing.assert_allclose(ends(found)[3], (-INF, 0.6), rtol=1e-6)
        assert found.variables[0].censored.parts == ("dl",)
        assert found.variables[0].attrs["units"] == "mg"
        assert seen(told, None).sample.limits is None
        assert seen(told, {"a": None}).sample.limits is None
        assert ends(seen(told, {"b": 1.0})) == ends(found)

    def test_a_flag_says_which(self, told):
        """Its limit is the detection limit, or the value where that is larger or alone."""
        marks = np.array([0, 1, 0, 1, 0, 1, 2, 0, 0, 1], np.int8)
        attrs = {"flag_values": [0, 1, 2], "flag_meanings": "ok below_detection_limit saturated"}
        found = ends(seen(told.assign(q=("site", marks, attrs)), "auto"))
        assert list(found) == [1, 3, 5, 6, 9]
        np.testing.assert_allclose(found[3], (-INF, 0.6), rtol=1e-6)
        assert found[1] == (-INF, 0.2)
        assert found[5] == (-INF, 2.0)
        assert found[6] == (3.0, INF)
        assert found[9] == (-INF, 9.0)

    def test_a_flagged_gap_with_a_limit_counts(self, told):
        """Without a limit it says nothing."""
        marks = np.array([1] * 2 + [0] * 7 + [1], np.int8)
        attrs = {"flag_values": [0, 1], "flag_meanings": "ok not_detected"}
        gaps = told.assign(q=("site", marks, attrs))
        gaps["a"] = gaps["a"].where(marks == 0)
        found = seen(gaps, "auto")
        assert found.sample.sizes[0] == 9
        np.testing.assert_allclose([found[1] for found in ends(found).values()], 0.1, rtol=1e-6)


class TestReading:
    @pytest.mark.parametrize("censored", [{"a": "low"}, {"a": 0.2, "b": ("lower", "upper")}])
    def test_chunks_are_read_once(self, data, censored):
        """Values and limits that are backed by dask are those in memory, computed together."""
        wide = data.assign(b=data["a"] * 1.0)
        expected = seen(wide, censored)
        with count_computes() as scheduler:
            found = seen(wide.chunk(site=3), censored)
        assert scheduler.computes == 1
        for name in ("values", "limits", "sites"):
            left, right = getattr(found.sample, name), getattr(expected.sample, name)
            np.testing.assert_array_equal(left, right)
        # A limit may be lazy where the values are not.
        mixed = wide.assign(upper=wide["upper"].chunk(site=4), lower=wide["lower"].chunk(site=4))
        found = seen(mixed, censored)
        np.testing.assert_array_equal(found.sample.limits, expected.sample.limits)

    def test_rows_make_the_same_sample(self, data):
        """Limits and values go into rows and come back, bit by bit."""
        first = seen(data, {"a": 0.2})
        rows = first.rows()
        assert rows[1].limits is None
        found = sites_within(first.coordinates, [r.positions for r in rows], first.sites.tolerance)
        again = Observations.of(first.variables, first.coordinates, rows, *found)
        np.testing.assert_array_equal(again.sample.limits, first.sample.limits)
        both = rows[0].take(np.array([0, 5])).followed_by(rows[1].take(np.array([1])))
        np.testing.assert_array_equal(both.limits[0], [-INF, 2.0, 8.0])
        np.testing.assert_array_equal(both.limits[1], [0.2, 2.0, 8.0])

    def test_other_homes(self, data):
        """Variables of a mapping look for their limits in it."""
        apart = {n: data[n] for n in ("a", "b", "low")}
        assert ends(seen(apart, {"a": "low"})) == ends(seen(data, {"a": "low"}))

    def test_limits_are_no_coordinates(self, data):
        """Nothing of them is left in labels, origins or attributes."""
        found = seen(data, {"a": 0.2})
        names = {label.name for label in found.origins[0][0].labels}
        assert names == {"x", "y"}
        assert found.coordinates.names == ("x", "y")
        assert found.variables[0].attrs == data["a"].attrs


class TestErrors:
    @pytest.mark.parametrize(
        ("change", "censored", "error", "message"),
        [
            ({}, {"a": "nothing"}, KeyError, r"names 'nothing', which is not in the data"),
            ({}, {"a": "a"}, ValueError, "names 'a' itself"),
            ({}, {"a": "upper"}, TypeError, r"`censored` of 'a': 'upper' has dtype float64"),
            ({}, {"a": (None, "low")}, TypeError, r"'low' has dtype bool; a limit must be a n"),
            ({}, {"a": ("upper", "lower")}, ValueError, r"4 lower limits are above.*0\.15 > 0\.05"),
            ({"low": ("k", [True] * 10)}, {"a": "low"}, ValueError, r"'low' has dims \['k'\]"),
            ({}, {"a": (None, xr.DataArray(np.ones(4), dims="site"))}, ValueError,
             r"an? .* lies at other places \(\['site'\] differ\)"),
            ({}, {"a": (None, xr.DataArray(np.ones(10), {"x": ("site", np.ones(10))}, "site"))},
             ValueError, r"\(\['x'\] differ\)\. Align it"),
            ({}, {"a": (None, xr.DataArray(np.ones(10), dims="site", attrs={"units": "kg"}))},
             ValueError, r"is in 'kg', but 'a' is in 'mg'\. Convert the limits"),
            ({"four": ("site", np.full(10, 4.0))}, {"a": (None, "four")}, ValueError,
             r"3 values lie outside their limits \(first: 5, not between -inf and 4\)"),
            ({}, {"a": 9.0}, ValueError, r"All 10 values of variable 'a' are censored"),
        ],
    )  # fmt: skip
    def test_what_is_refused(self, data, change, censored, error, message):
        """Before any work, by name."""
        with pytest.raises(error, match=message):
            seen(data.assign(change), censored)

    def test_units_that_can_be_converted(self, data):
        """As those of fields are."""
        metres = data.assign(a=data["a"].assign_attrs(units="m"))
        limit = xr.DataArray(np.full(10, 20.0), dims="site", attrs={"units": "cm"})
        limit = limit.where(data["low"].drop_vars(["x", "y"]))
        assert ends(seen(metres, {"a": (None, limit)})) == dict.fromkeys(range(3), (-INF, 0.2))


def test_what_stands_for_an_interval():
    """The stored value if it can, a finite number in any case."""
    values = np.array([0.2, 0.0, -3.0, np.inf, 1.0, np.inf])
    limits = np.array([[-INF, -INF, -INF, 5.0, -INF, -INF], [0.2, 0.2, -2.0, INF, INF, INF]])
    found, both = settle_values("a", values, limits)
    np.testing.assert_array_equal(found, [0.2, 0.1, -3.0, 5.0, 1.0, INF])
    np.testing.assert_array_equal(both[0] < both[1], [True] * 4 + [False] * 2)
