"""Plain state as text and arrays: exact, safe names, nothing strange."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

from xcopula.errors import ModelFormatError
from xcopula.model.notation import Arrays, Place, checksum, dumps, is_safe, note, recall, safe_names


def place(path, ndim):
    """Keep every array in one group."""
    return Place("/g", "_".join(path) or "a", tuple(f"d{k}" for k in range(ndim)), {"of": "x"})


def there_and_back(plain):
    """Note something, write the text, read it, recall it."""
    arrays = Arrays()
    text = dumps(note(plain, arrays, place))
    assert text.isascii()

    def fetch(path):
        _, group, name = path.split("/")
        return arrays.groups[f"/{group}"][name].values

    return recall(json.loads(text), fetch), arrays


LONG = np.random.default_rng(0).normal(size=(10, 7))


class TestNote:
    @pytest.mark.parametrize(
        "array",
        [
            np.array([0.1, -0.0, np.nan, np.inf, -np.inf]),
            np.array([[1, 2], [3, 2**62]]),
            np.array([True, False]),
            np.array(["a", "bcé\x00d", ""]),
            np.array(["2001-02-03T04:05:06.789", "NaT"], "M8[ns]"),
            np.array([3, -4], "m8[D]"),
            np.array(2.5),
            np.empty((5, 0)),
            np.array([], "U3"),
            np.float32([0.1, 1e-42]),
            LONG,
            LONG.T,
            LONG > 0.0,
            LONG.astype("f4"),
            LONG.astype(">f8"),
            np.arange(100, dtype="u1"),
        ],
        ids=lambda a: f"{a.dtype}{a.shape}",
    )
    def test_arrays_are_exact(self, array):
        """Of every dtype that is written, short or long."""
        found, arrays = there_and_back({"class": "Box", "value": array})
        again = found["value"]
        assert again.dtype == array.dtype.newbyteorder("=") or array.dtype.kind == "U"
        assert again.shape == array.shape
        np.testing.assert_array_equal(again, array)
        if array.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(again), np.signbit(array))
        assert bool(arrays.groups) == (array.size > 16)
        for variable in arrays.groups.get("/g", {}).values():
            assert variable.dtype.kind in "iuf"
            assert variable.attrs == {"of": "x"}

    @pytest.mark.parametrize("value", [0.1, np.inf, -np.inf, 3, True, None, "é\ud800", [1, [2.5]]])
    def test_values_are_themselves(self, value):
        """Numbers that JSON has not are words."""
        found, _ = there_and_back({"class": "Box", "value": value})
        assert found["value"] == value
        assert type(found["value"]) is type(value)

    def test_nan(self):
        """It is no number, before and after."""
        assert np.isnan(there_and_back({"class": "Box", "value": np.nan})[0]["value"])

    @pytest.mark.parametrize("dtype", [complex, np.longdouble, "S3", "V4"])
    def test_other_arrays_are_refused(self, dtype):
        """Before anything is written."""
        for size in (3, 100):
            with pytest.raises(TypeError, match="is not written to files"):
                note({"class": "Box", "value": np.zeros(size, dtype)}, Arrays(), place)

    def test_what_is_the_same_is_kept_once(self):
        """Unless it is asked for; another array takes the next name."""
        arrays = Arrays()
        first = arrays.put(LONG, place(("v",), 2))
        assert arrays.put(LONG.copy(), place(("w",), 2)) == first
        assert arrays.put(LONG + 1.0, place(("V",), 2))["at"] == "/g/V_2"
        assert arrays.put(LONG, place(("w",), 2), once=False)["at"] == "/g/w"
        assert list(arrays.groups["/g"]) == ["v", "V_2", "w"]

    def test_a_dim_of_another_size_gets_another_name(self):
        """Arrays of one size share a dim, those of another do not."""
        arrays = Arrays()
        for k, size in enumerate((20, 30, 20, 30, 40)):
            arrays.put(np.arange(size) + k, Place("/g", "a", ("knot",), {}))
        arrays.put(np.zeros((30, 50)), Place("/g", "b", ("knot", "other"), {}))
        dims = [v.dims for v in arrays.groups["/g"].values()]
        one = [("knot",), ("knot_2",), ("knot",), ("knot_2",), ("knot_3",)]
        assert dims == [*one, ("knot_2", "other")]
        assert xr.Dataset(arrays.groups["/g"]).sizes["knot_3"] == 40


class TestRecall:
    def test_an_array_that_changed(self):
        """Its dtype, its shape, a bit of it."""
        arrays = Arrays()
        noted = arrays.put(LONG, place(("v",), 2))
        for found in (LONG.astype("f4"), LONG[:3], LONG.astype(object)):
            with pytest.raises(ModelFormatError, match=r"/g/v must be float64 of shape \[10, 7\]"):
                recall(noted, lambda _, found=found: found)
        changed = LONG.copy()
        changed[3, 3] = np.nextafter(changed[3, 3], 1.0)
        with pytest.raises(ModelFormatError, match="/g/v is not what was written"):
            recall(noted, lambda _: changed)

    @pytest.mark.parametrize(
        "noted",
        [
            {"dtype": "O", "shape": [1], "values": [1]},
            {"dtype": "f8", "shape": [10**12], "values": [1.0]},
            {"dtype": "f8", "shape": [-1], "values": [1.0]},
            {"dtype": "V8", "shape": [1], "values": [1]},
        ],
        ids=str,
    )
    def test_arrays_that_are_not_well_formed(self, noted):
        """Nothing is allocated for them."""
        with pytest.raises(ModelFormatError, match="is not well-formed"):
            recall({"class": "array", **noted}, None)

    def test_a_reference_to_objects(self):
        """Is not followed."""
        noted = {"class": "array", "at": "/a/b", "dtype": "O", "shape": [1], "checksum": ""}
        with pytest.raises(ModelFormatError, match="must hold numbers"):
            recall(noted, None)


class TestNames:
    @pytest.mark.parametrize("name", ["Cd", "pm2.5", "time.month", "a b", "Ж", "2m-T+1", "x@y"])
    def test_safe(self, name):
        """What a group, a variable and a folder may be called."""
        assert is_safe(name)
        assert safe_names([name], "v") == [name]

    @pytest.mark.parametrize(
        "name",
        [
            "",
            ".",
            "..",
            "a/b",
            "/",
            "a\\b",
            "_x",
            ".x",
            "a.",
            "a ",
            "a\n",
            "e\u0301",
            "x" * 81,
            "a:b",
        ],
    )
    def test_not_safe(self, name):
        """Such a name is replaced."""
        assert not is_safe(name)
        assert safe_names(["x", name], "v") == ["x", "v_1"]

    def test_all_differ(self):
        """On file systems that do not tell case apart, too."""
        assert safe_names(["Cd", "cd", "CD", "a/b", "variable_3"], "variable") == [
            *("Cd", "cd_2", "CD_3", "variable_3", "variable_3_2")
        ]


def test_checksum():
    """It knows the bits, not the numbers."""
    assert checksum(np.array([0.0])) != checksum(np.array([-0.0]))
    assert checksum(LONG) == checksum(LONG.copy())
    assert checksum("a") != checksum("b")
