"""Points, rectilinear grids and curvilinear grids: the same numbers at the same places."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from sources import EAST, NORTH, stations

import xcopula
from xcopula.errors import CoordinateError, FieldError
from xcopula.methods import Full, Sparse, Transductive

FIXED = {"method": "full", "kernels": "matern32", "restarts": 0}
LON, LAT = np.linspace(5.0, 11.0, 6), np.linspace(44.0, 49.0, 5)


def gridded() -> xr.Dataset:
    """A haze on a rectilinear grid, with a gap."""
    rng = np.random.default_rng(4)
    values = np.cos(0.8 * LAT)[:, None] + np.sin(LON) + rng.normal(scale=0.1, size=(5, 6))
    values[2, 3] = np.nan
    return xr.Dataset(
        {"haze": (("lat", "lon"), values, {"units": "1"})},
        coords={"lat": ("lat", LAT, NORTH), "lon": ("lon", LON, EAST)},
    )


def as_points(data: xr.Dataset) -> xr.Dataset:
    """Return a grid as scattered points."""
    flat = data.stack(p=("lat", "lon")).reset_index("p")
    return flat.assign_coords(
        lon=("p", flat["lon"].values, EAST), lat=("p", flat["lat"].values, NORTH)
    )


def as_curvilinear(data: xr.Dataset) -> xr.Dataset:
    """Return a grid with coordinates of two dims."""
    lat, lon = xr.broadcast(data["lat"], data["lon"])
    renamed = data.drop_vars(["lat", "lon"]).rename_dims(lat="j", lon="i")
    return renamed.assign_coords(
        lat=(("j", "i"), lat.values, NORTH), lon=(("j", "i"), lon.values, EAST)
    )


SHAPES = {"rectilinear": lambda d: d, "points": as_points, "curvilinear": as_curvilinear}


@pytest.fixture(scope="module")
def models():
    """The same field in three shapes."""
    return {
        name: xcopula.fit(shape(gridded()), "haze", marginals="normal", **FIXED)
        for name, shape in SHAPES.items()
    }


@pytest.fixture(scope="module")
def apart():
    """Rain at stations and haze on a grid."""
    return {"rain": stations()["rain"], "haze": gridded()["haze"]}


@pytest.fixture(scope="module")
def flat(apart):
    """The same as one Dataset of points: each variable is NaN at the places of the other."""
    haze = as_points(gridded())["haze"].dropna("p")
    rain = apart["rain"]
    nan = np.full
    lon, lat = (np.concatenate([rain[n].values, haze[n].values]) for n in ("lon", "lat"))
    return xr.Dataset(
        {
            "rain": ("p", np.r_[rain.values, nan(haze.size, np.nan)]),
            "haze": ("p", np.r_[nan(rain.size, np.nan), haze.values]),
        },
        coords={"lon": ("p", lon, EAST), "lat": ("p", lat, NORTH)},
    )


@pytest.fixture(scope="module")
def target():
    """A coarse grid."""
    return gridded().isel(lat=slice(0, 5, 2), lon=slice(0, 6, 2)).drop_vars("haze")


class TestShapes:
    def test_sources(self, models):
        """A source of any shape gives the same sample and the same fit."""
        first = models["rectilinear"]
        for other in models.values():
            np.testing.assert_array_equal(
                other.observations.sample.inputs, first.observations.sample.inputs
            )
            np.testing.assert_array_equal(other.theta, first.theta)

    @pytest.mark.parametrize("source", SHAPES)
    @pytest.mark.parametrize("chunks", [None, 2])
    def test_targets(self, models, source, chunks):
        """A target of any shape has the same numbers, in memory and lazily."""
        target = gridded().isel(lat=[0, 2, 3], lon=[1, 2, 4])
        target = target.assign_coords(lat=(target["lat"] + 0.3).assign_attrs(NORTH))
        expected = models["rectilinear"].predict(target)["haze"].values
        for shape in SHAPES.values():
            found = models[source].predict(shape(target), chunks=chunks)["haze"]
            np.testing.assert_allclose(found.values.reshape(expected.shape), expected, rtol=1e-12)

    def test_results_have_the_dims_and_coords_of_the_target(self, models):
        """A curvilinear target keeps its dims and its two-dimensional coordinates."""
        target = as_curvilinear(gridded()).assign_coords(label=("i", list("abcdef")), run=7)
        out = models["points"].predict(target)["haze"]
        assert out.dims == ("quantile", "j", "i")
        assert set(out.coords) == {"quantile", "lat", "lon", "label", "run"}
        assert out["lat"].attrs == NORTH

    def test_a_gap_in_curvilinear_training_coordinates(self):
        """Where the value is known it is an error, where it is not, nothing."""
        data = as_curvilinear(gridded())
        lat = data["lat"].values.copy()
        lat[2, 3] = np.nan
        harmless = data.assign_coords(lat=(("j", "i"), lat, NORTH))
        model = xcopula.fit(harmless, "haze", marginals="normal", **FIXED)
        assert model.observations.sample.size == 29
        lat[0, 0] = np.nan
        lost = data.assign_coords(lat=(("j", "i"), lat, NORTH))
        with pytest.raises(CoordinateError, match=r"1 of the 29 values of 'haze' .*not finite"):
            xcopula.fit(lost, "haze")

    def test_a_gap_in_a_curvilinear_target(self, models):
        """Cells without a place are NaN, and the user is told how many."""
        target = as_curvilinear(gridded())
        lat = target["lat"].values.copy()
        lat[:2, 1] = np.nan
        target = target.assign_coords(lat=(("j", "i"), lat, NORTH))
        with pytest.warns(UserWarning, match=r"2 of 30 cells .* coordinate 'lat' that is NaN"):
            out = models["points"].predict(target, 0.5)["haze"]
        np.testing.assert_array_equal(out.isnull(), np.isnan(lat))


class TestHomes:
    """Variables that live in different places."""

    options = FIXED | {"marginals": {"rain": "lognormal", "haze": "normal"}}

    @pytest.mark.parametrize(
        "method", [Full(), Transductive(), Sparse("fitc", inducing=20)], ids=lambda m: m.name
    )
    def test_a_mapping_equals_the_flat_dataset(self, apart, flat, target, method):
        """Fit and prediction agree to 1e-12."""
        options = self.options | {"method": method}
        left, right = (xcopula.fit(d, "rain", "haze", **options) for d in (apart, flat))
        assert left.log_likelihood == pytest.approx(right.log_likelihood, rel=1e-12)
        np.testing.assert_allclose(left.theta, right.theta, rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(
            left.predict(target)["rain"], right.predict(target)["rain"], rtol=1e-12
        )

    def test_a_dataset_with_variables_of_different_dims(self, apart, target):
        """Stations and a grid may share a Dataset, each with coordinates of its own names."""
        station = apart["rain"].rename(lon="station_lon", lat="station_lat")
        both = xr.Dataset({"rain": station, "haze": apart["haze"]})
        found = xcopula.fit(both, "rain", "haze", **self.options)
        expected = xcopula.fit(apart, "rain", "haze", **self.options)
        np.testing.assert_array_equal(found.theta, expected.theta)
        np.testing.assert_array_equal(
            found.predict(target)["rain"], expected.predict(target)["rain"]
        )

    @pytest.mark.parametrize("method", ["full", "transductive"])
    def test_dask_is_computed_once(self, apart, target, method):
        """A lazy grid is computed in one go, and gives the same model."""
        options = self.options | {"method": method}
        touched = []

        def touch(block):
            touched.append(block.shape)
            return block

        haze = apart["haze"].chunk(lat=2)
        blocks = haze.data.map_blocks(touch, meta=np.empty((0, 0)))
        found = xcopula.fit({**apart, "haze": haze.copy(data=blocks)}, "rain", "haze", **options)
        assert len(touched) == blocks.npartitions
        expected = xcopula.fit(apart, "rain", "haze", **options)
        np.testing.assert_array_equal(found.theta, expected.theta)

    def test_only_the_chosen_variables_are_computed(self, apart):
        """What the model does not use stays lazy."""
        import dask.array as da

        def fail(block):
            raise AssertionError("computed a variable that nobody asked for")

        poisoned = da.map_blocks(fail, da.zeros((5, 6), chunks=3), meta=np.empty((0, 0)))
        data = gridded().chunk(lat=2).assign(other=(("lat", "lon"), poisoned))
        everything = {"rain": apart["rain"], **data.data_vars}
        model = xcopula.fit(everything, "rain", "haze", **self.options)
        assert model.observations.sample.size == 40 + 29

    def test_roles_join_names(self, apart):
        """The primary's lon and the secondary's longitude are one axis."""
        renamed = {**apart, "haze": apart["haze"].rename(lon="longitude", lat="latitude")}
        models = [xcopula.fit(d, "rain", "haze", **self.options) for d in (apart, renamed)]
        np.testing.assert_array_equal(models[1].theta, models[0].theta)

    def test_fields_of_a_law_stand_beside_the_variables(self, apart):
        """A covariate may be a variable of the mapping, aligned by its labels."""
        elevation = stations()["elevation"]
        law = {"rain": xcopula.regress("lognormal", on="elevation"), "haze": "normal"}
        options = self.options | {"marginals": law}
        rain = apart["rain"].drop_vars("elevation")
        inside = xcopula.fit(apart, "rain", "haze", **options)
        shuffled = elevation.reset_coords(drop=True).isel(station=slice(None, None, -1))
        beside = xcopula.fit(
            {"rain": rain, "haze": apart["haze"], "elevation": shuffled}, "rain", "haze", **options
        )
        np.testing.assert_array_equal(beside.theta, inside.theta)
        with pytest.raises(FieldError, match=r"'rain' varies with 'elevation', which is neither"):
            xcopula.fit({"rain": rain, "haze": apart["haze"]}, "rain", "haze", **options)
        grid = xr.DataArray(np.zeros((5, 6)), coords=gridded().coords, name="elevation")
        with pytest.raises(
            FieldError, match=r"has dims \['lat', 'lon'\] that 'rain' lacks.*Interp"
        ):
            xcopula.fit(
                {"rain": rain, "haze": apart["haze"], "elevation": grid}, "rain", "haze", **options
            )
