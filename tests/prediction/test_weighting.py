"""Weights of cells, regions, and sums of both over space."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from xcopula.prediction.weighting import (
    Weighting,
    check_regions,
    check_weights,
    find_weighting,
)

SIZES = {"time": 2, "y": 3, "x": 4}
COORDS = xr.Coordinates(
    {
        "y": ("y", [0.0, 1.0, 2.0], {"units": "km"}),
        "x": ("x", [0.0, 1.0, 3.0, 4.0], {"units": "km"}),
    }
)
ALL = xr.DataArray(True)


@pytest.fixture
def values():
    """Five draws; one cell is outside the mask, another at the second time only."""
    values = np.random.default_rng(0).normal(size=(5, 2, 3, 4))
    values[:, :, 1, 2] = np.nan
    values[:, 1, 0, 0] = np.nan
    return xr.DataArray(values, dims=("realization", *SIZES), coords=COORDS)


@pytest.fixture
def weights():
    """Weights of each cell."""
    numbers = np.random.default_rng(1).uniform(size=(3, 4))
    return xr.DataArray(numbers, dims=("y", "x"), attrs={"units": "people"})


REGIONS = xr.DataArray([["b", "a", "b", "b"], ["c", "c", "a", "a"], ["b"] * 4], dims=("y", "x"))


class TestSums:
    def test_against_xarray(self, values, weights):
        """Without regions, also for weights that change in time."""
        for own in (weights, weights * xr.DataArray([1.0, 3.0], dims="time")):
            weighting = Weighting(("y", "x"), (own,))
            total, weight = weighting.sums(values)
            assert total.dims == ("realization", "time")
            expected = values.weighted(own)
            xr.testing.assert_allclose(total, expected.sum(("y", "x")))
            xr.testing.assert_allclose(weight, expected.sum_of_weights(("y", "x")))
            xr.testing.assert_allclose(weighting.mean(values), expected.mean(("y", "x")))

    def test_by_region(self, values, weights):
        """As if each region were the mask."""
        codes, labels = check_regions(REGIONS, SIZES, COORDS, ALL, ("y", "x"))
        found = Weighting(("y", "x"), (weights,), "", codes, labels).mean(values)
        assert found.dims == ("realization", "time", "region")
        assert found["region"].values.tolist() == ["a", "b", "c"]
        for label in "abc":
            expected = values.where(label == REGIONS).weighted(weights).mean(("y", "x"))
            xr.testing.assert_allclose(found.sel(region=label, drop=True), expected)

    @pytest.mark.parametrize("regions", [None, REGIONS])
    @pytest.mark.parametrize(
        "chunks", [{"x": 3, "realization": 2}, {"y": 1, "time": 1}, {"x": -1}], ids=str
    )
    def test_blocks_add_up(self, values, weights, regions, chunks):
        """Whatever the chunks; factors multiply."""
        found = (None, None)
        if regions is not None:
            found = check_regions(regions, SIZES, COORDS, ALL, ("y", "x"))
        beside = xr.DataArray([1.0, 2.0, 3.0], dims="y")
        weighting = Weighting(("y", "x"), (weights, beside), "", *found)
        lazy = weighting.sums(values.chunk(chunks))
        for one, other in zip(lazy, weighting.sums(values), strict=True):
            assert one.chunks is not None
            xr.testing.assert_allclose(one.compute(), other, rtol=1e-12)

    def test_no_cell_has_no_mean(self, values):
        """And nothing warns, also in blocks."""
        nowhere = values.where(values["x"] > 9.0)
        assert Weighting(("y", "x")).mean(nowhere).isnull().all()
        assert Weighting(("y", "x")).mean(nowhere.chunk(x=2)).compute().isnull().all()


class TestFinding:
    def test_areas_by_default(self):
        """Products of widths, in squared units; equal weights where there is no grid."""
        weighting = find_weighting(None, None, SIZES, COORDS, ALL)
        assert weighting.dims == ("y", "x")
        assert weighting.units == "km2"
        ones = xr.DataArray(np.ones((1, 2, 3, 4)), dims=("realization", *SIZES))
        assert float(weighting.sums(ones)[1][0, 0]) == pytest.approx(3.0 * 5.0)
        scattered = xr.Dataset(coords={"x": ("site", [0.0, 1.0]), "y": ("site", [0.0, 1.0])})
        weighting = find_weighting(None, None, {"site": 2}, scattered.coords, ALL)
        assert (weighting.dims, weighting.factors, weighting.units) == (("site",), (), "")

    def test_units_of_weights(self, weights):
        """Those that the weights say."""
        assert find_weighting(weights, None, SIZES, COORDS, ALL).units == "people"

    def test_no_space(self):
        """There must be something to add up over."""
        time = xr.Coordinates({"time": ("time", np.array(["2020-01-01"], "M8[ns]"))})
        with pytest.raises(ValueError, match=r"must have dims of space, found \['time'\]"):
            find_weighting(None, None, {"time": 1}, time, ALL)

    def test_a_dim_called_region(self):
        """It would be there twice."""
        with pytest.raises(ValueError, match="has a dim 'region', which results by region need"):
            find_weighting(None, REGIONS, {"region": 2, "y": 3, "x": 4}, COORDS, ALL)


class TestWeights:
    def test_outside_the_mask_anything_goes(self, weights):
        """Where nobody lives nobody was counted."""
        mask = xr.DataArray(np.arange(24).reshape(2, 3, 4) % 12 != 5, dims=tuple(SIZES))
        gaps = weights.copy()
        gaps[1, 1] = np.nan
        found = check_weights(gaps, SIZES, COORDS, mask)
        assert float(found[1, 1]) == 0.0
        xr.testing.assert_equal(found[0], weights[0].drop_attrs())

    @pytest.mark.parametrize(
        ("change", "error", "match"),
        [
            (lambda w: w.values, TypeError, "must be a DataArray of numbers .* found a ndarray"),
            (lambda w: w.astype(str), TypeError, "must be a DataArray of numbers .* found dtype"),
            (lambda w: w.rename(x="z"), ValueError, r"`weights` has dims \['z'\], the target has"),
            (lambda w: w[:, :2], ValueError, "along 'x' it has 2 entries, the target has 4"),
            (
                lambda w: w.assign_coords(y=[5.0, 6.0, 7.0]),
                ValueError,
                "`weights` is not on the cells .* other labels than the target",
            ),
            (lambda w: w - 0.5, ValueError, r"must be finite and not negative, found -0\."),
            (lambda w: w.where(w < 0.5), ValueError, "not negative, found nan in .* cells that"),
            (lambda w: 0.0 * w, ValueError, "must be positive somewhere, found zeros in all"),
        ],
    )
    def test_refused(self, weights, change, error, match):
        """Negative, missing, all zero, of another grid, no numbers."""
        with pytest.raises(error, match=match):
            check_weights(change(weights), SIZES, COORDS, ALL)

    def test_lazy_weights_are_checked_when_they_are_computed(self, weights):
        """Nothing is computed before."""
        good = check_weights(weights.chunk(x=2), SIZES, COORDS, ALL)
        xr.testing.assert_equal(good.compute(), weights.drop_attrs())
        bad = check_weights((weights - 0.5).chunk(x=2), SIZES, COORDS, ALL)
        with pytest.raises(ValueError, match="must be finite and not negative"):
            bad.compute()


class TestRegions:
    def test_labels_of_cells_that_count(self):
        """A label that is outside the mask only is none of the result's."""
        mask = REGIONS != "c"
        codes, labels = check_regions(REGIONS, SIZES, COORDS, mask, ("y", "x"))
        assert labels.values.tolist() == ["a", "b"]
        np.testing.assert_array_equal(labels.values[codes.values[0]], REGIONS.values[0])
        gaps = xr.DataArray(np.where(mask, 7.0, np.nan), dims=("y", "x"))
        assert check_regions(gaps, SIZES, COORDS, mask, ("y", "x"))[1].values.tolist() == [7.0]

    def test_along_one_dim(self):
        """Bands, and other labels than names."""
        bands = xr.DataArray([3, 1, 3], dims="y", attrs={"long_name": "band of latitude"})
        codes, labels = check_regions(bands, SIZES, COORDS, ALL, ("y", "x"))
        np.testing.assert_array_equal(codes, [[1] * 4, [0] * 4, [1] * 4])
        assert labels.values.tolist() == [1, 3]
        assert labels.attrs == {"long_name": "band of latitude"}

    @pytest.mark.parametrize(
        ("regions", "error", "match"),
        [
            ("rock", TypeError, "`regions` must be a DataArray of labels, .* found 'rock'"),
            (REGIONS.rename(x="z"), ValueError, r"`regions` has dims \['z'\], the target has"),
            (REGIONS[:, :3], ValueError, "`regions` is not on the cells of the target: along 'x'"),
            (REGIONS.chunk(), ValueError, "`regions` must be in memory"),
            (
                REGIONS.expand_dims(time=2),
                ValueError,
                r"must be on the dims \['y', 'x'\], found also \['time'\]",
            ),
            (
                xr.DataArray([1.0, np.nan, 2.0], dims="y"),
                ValueError,
                "must have a label in every cell that counts, found none in 4",
            ),
        ],
    )
    def test_refused(self, regions, error, match):
        """Missing labels, another grid, no labels."""
        with pytest.raises(error, match=match):
            check_regions(regions, SIZES, COORDS, ALL, ("y", "x"))

    def test_no_cell_counts(self):
        """Then there is no label."""
        with pytest.raises(ValueError, match="`regions` has no label in any cell that counts"):
            check_regions(REGIONS, SIZES, COORDS, xr.DataArray(False), ("y", "x"))
