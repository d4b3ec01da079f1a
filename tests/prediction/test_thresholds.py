"""Thresholds as users give them: numbers, or one for each cell, with units."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from xcopula.prediction.thresholds import Limit, check_field, check_on_cells, check_thresholds

SIZES = {"y": 2, "x": 3}
LABELS = {"x": xr.DataArray([0.0, 1.0, 2.0], dims="x")}


class TestNumbers:
    def test_units_are_converted(self):
        """A DataArray says in which units it is; a bare number has the variable's."""
        metres = xr.DataArray([1.0, 2.0], dims="threshold", attrs={"units": "m"})
        np.testing.assert_array_equal(check_thresholds(metres, "depth", "cm"), [100.0, 200.0])
        np.testing.assert_array_equal(check_thresholds(5, "depth", "cm"), 5.0)

    @pytest.mark.parametrize("value", ["high", [], [[1.0]], float("nan")])
    def test_no_numbers(self, value):
        """The message says what they must be."""
        with pytest.raises(ValueError, match=r"A threshold must be a number .* units of 'depth'"):
            check_thresholds(value, "depth", "cm")


class TestFields:
    def test_dims_and_units_are_those_of_the_variable(self):
        """Dims come in the order of the target, without coordinates that are not dims."""
        given = xr.DataArray(np.arange(6).reshape(3, 2), dims=("x", "y"), attrs={"units": "m"})
        found = check_field(given.assign_coords(run=1), "depth", "cm", SIZES, LABELS)
        assert found.dims == ("y", "x")
        assert not found.coords
        np.testing.assert_array_equal(found, 100.0 * given.values.T)

    def test_other_cells(self):
        """Dims, sizes and labels must be those of the target."""
        given = xr.DataArray(np.zeros((2, 3)), dims=("y", "x"))
        check_on_cells("`weights`", given, SIZES, LABELS)
        with pytest.raises(ValueError, match=r"`weights` has dims \['z'\], the target has \['y'"):
            check_on_cells("`weights`", given.rename(x="z"), SIZES, LABELS)
        with pytest.raises(ValueError, match="`weights` is not on the cells of the target: along"):
            check_on_cells("`weights`", given[:, :2], SIZES, LABELS)


class TestLimit:
    @pytest.fixture
    def draws(self):
        """Three draws on six cells, one of which is outside the mask."""
        values = np.random.default_rng(0).normal(size=(3, 2, 3))
        values[:, 1, 1] = np.nan
        return xr.DataArray(values, dims=("realization", "y", "x"))

    def test_a_number(self, draws):
        """Above is 1, at most is 0, missing is missing; the result says which limit it was."""
        limit = Limit.of(xr.DataArray(0.01, attrs={"units": "m"}), "depth", "cm", SIZES, LABELS)
        found = limit.above(draws)
        np.testing.assert_array_equal(found.isnull(), draws.isnull())
        np.testing.assert_array_equal(found == 1.0, draws > 1.0)
        labelled = limit.label(xr.Dataset({"mean": 1.0}))
        assert float(labelled["threshold"]) == 1.0
        assert labelled["threshold"].attrs == {"units": "cm"}

    def test_of_each_cell(self, draws):
        """Also in blocks."""
        field = xr.DataArray([0.0, np.nan, 0.5], dims="x")
        limit = Limit.of(field, "depth", "cm", SIZES, LABELS)
        found = limit.above(draws)
        assert found.isel(x=1).isnull().all()
        np.testing.assert_array_equal(found[..., 2] == 1.0, draws[..., 2] > 0.5)
        xr.testing.assert_equal(limit.above(draws.chunk(x=2)).compute(), found)
        assert "threshold" not in limit.label(xr.Dataset({"mean": 1.0})).coords

    def test_one_only(self):
        """Several are asked for one after the other."""
        with pytest.raises(ValueError, match="`threshold` must be one number, or a DataArray on"):
            Limit.of([1.0, 2.0], "depth", "cm", SIZES, LABELS)
