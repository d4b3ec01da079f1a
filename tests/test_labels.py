"""Labels in and out: attributes that results carry, and input that is refused or warned of."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from sources import EAST, NORTH, TEN, dataset, stations

import xcopula
from xcopula.errors import CoordinateError
from xcopula.labels.observations import observe
from xcopula.storage import write_netcdf

FIXED = {"method": "full", "kernels": "matern32", "restarts": 0}
LAEA = {
    "grid_mapping_name": "lambert_azimuthal_equal_area",
    "longitude_of_projection_origin": 10.0,
    "latitude_of_projection_origin": 52.0,
    "standard_parallel": [40.0, 60.0],
}
X = {"units": "m", "standard_name": "projection_x_coordinate"}
Y = {"units": "m", "standard_name": "projection_y_coordinate"}


@pytest.fixture(scope="module")
def projected() -> xr.Dataset:
    """Stations in a projection, the grid mapping among the variables."""
    data = stations()
    x, y = 8e4 * (data["lon"].values - 8.0), 1.1e5 * (data["lat"].values - 47.0)
    data = data.drop_vars(["lon", "lat"]).assign_coords(x=("station", x, X), y=("station", y, Y))
    data["rain"].attrs["grid_mapping"] = "crs"
    return data.assign(crs=((), 0, LAEA))


@pytest.fixture(scope="module")
def model(projected):
    """A model in a projection."""
    return xcopula.fit(projected, "rain", marginals="lognormal", **FIXED)


@pytest.fixture(scope="module")
def target() -> xr.Dataset:
    """A grid in the plane, without a grid mapping."""
    return xr.Dataset(coords={"y": ("y", [-1e5, 0.0], Y), "x": ("x", [-1e5, 0.0, 1e5], X)})


class TestAttributes:
    def test_those_of_the_source(self, projected, model, target):
        """Units, names, cell methods and grid mapping travel; history does not."""
        out = model.predict(target)
        assert out["rain"].attrs == {
            "units": "mm",
            "standard_name": "precipitation_amount",
            "long_name": "precipitation",
            "cell_methods": "time: sum",
            "grid_mapping": "crs",
        }
        assert "history" not in out.attrs
        assert out["crs"].ndim == 0
        assert out["crs"].attrs == LAEA
        assert "crs" in out.coords

    def test_the_name_is_that_of_the_target_s_grid_mapping(self, model, target):
        """Where the target has the same projection under another name, that name counts."""
        named = target.assign_coords(spatial_ref=((), 0, LAEA))
        out = model.predict(named)["rain"]
        assert out.attrs["grid_mapping"] == "spatial_ref"
        assert out["spatial_ref"].attrs == LAEA
        assert "crs" not in out.coords

    def test_a_reference_that_decoding_moved(self, projected, target):
        """Files read with all coordinates decoded have it in their encoding."""
        data = projected.set_coords("crs").copy()
        data["rain"].encoding["grid_mapping"] = data["rain"].attrs["grid_mapping"]
        data["rain"].attrs = {"units": "mm"}
        model = xcopula.fit(data, "rain", marginals="lognormal", **FIXED)
        assert model.predict(target)["rain"].attrs["grid_mapping"] == "crs"
        assert "grid_mapping" not in data["rain"].attrs

    @pytest.mark.parametrize("kind", ["latitude_longitude", "rotated_latitude_longitude"])
    def test_on_the_globe_a_grid_keeps_its_own(self, kind):
        """The mapping of a rotated source says nothing of a target in longitude and latitude."""
        data = stations().assign_coords(crs=((), 0, {"grid_mapping_name": kind}))
        data["rain"].attrs["grid_mapping"] = "crs"
        model = xcopula.fit(data, "rain", marginals="lognormal", **FIXED)
        grid = xr.Dataset(coords={"lat": ("lat", [45.0], NORTH), "lon": ("lon", [5.0], EAST)})
        out = model.predict(grid)["rain"]
        carried = kind == "latitude_longitude"
        assert ("grid_mapping" in out.attrs) == carried
        assert ("crs" in out.coords) == carried

    def test_of_derived_quantities(self, model, target):
        """A deviation is the error of a precipitation; a probability has no unit."""
        posterior = model.posterior(target)
        assert posterior.std().attrs["standard_name"] == "precipitation_amount standard_error"
        assert posterior.std().attrs["units"] == "mm"
        assert posterior.exceedance(10.0).attrs["units"] == "1"
        assert posterior.exceedance(10.0)["threshold"].attrs["units"] == "mm"
        assert posterior.mean().attrs["standard_name"] == "precipitation_amount"

    def test_lazily_too(self, model, target):
        """Chunks change no attribute."""
        eager, lazy = model.predict(target), model.predict(target, chunks=1)
        assert lazy["rain"].attrs == eager["rain"].attrs
        xr.testing.assert_identical(lazy["crs"].compute(), eager["crs"])

    def test_through_a_file(self, model, target, tmp_path):
        """A file read with all coordinates decoded has the projection still."""
        path = write_netcdf(model.predict(target), tmp_path / "out.nc")
        with xr.open_dataset(path, decode_coords="all") as read:
            assert read["rain"].encoding["grid_mapping"] == "crs"
            assert read["crs"].attrs["grid_mapping_name"] == LAEA["grid_mapping_name"]
            again = model.predict(read[["rain"]].isel(quantile=0, drop=True))
        np.testing.assert_allclose(again["rain"], model.predict(target)["rain"], rtol=1e-12)

    def test_data_and_target_are_not_changed(self, projected, target, model):
        """Fitting and predicting leave both as they were."""
        before = projected.copy(deep=True), target.copy(deep=True)
        xcopula.fit(projected, "rain", marginals="lognormal", **FIXED).predict(target)
        xr.testing.assert_identical(projected, before[0])
        xr.testing.assert_identical(target, before[1])

    def test_coordinates_come_back_in_their_own_units(self, model, target):
        """The target's metres stay metres, though the model has kilometres."""
        out = model.predict(target)
        told = target["x"].assign_attrs(axis="X")
        told["x"].attrs["axis"] = "X"
        xr.testing.assert_identical(out["x"].drop_vars("crs"), told)


class TestProjection:
    def test_another_projection(self, model, target):
        """A target in another projection says in what they differ."""
        moved = target.assign_coords(crs=((), 0, LAEA | {"longitude_of_projection_origin": 9.0}))
        with pytest.raises(
            CoordinateError,
            match=r"The target is in another projection .*longitude_of_projection_origin: 10.0 / 9",
        ):
            model.predict(moved)

    def test_of_a_secondary(self, projected):
        """A secondary in another projection is named."""
        other = projected["warmth"].assign_coords(crs=((), 0, LAEA | {"standard_parallel": 1.0}))
        with pytest.raises(CoordinateError, match="Variable 'warmth' is in another projection"):
            observe(
                {
                    "rain": projected["rain"].assign_coords(crs=projected["crs"]),
                    "warmth": other.assign_attrs(grid_mapping="crs"),
                },
                ["rain", "warmth"],
            )


class TestBadInput:
    def test_latitude_beyond_the_pole(self):
        """In training and in a target, with a count."""
        data = stations()
        wrong = data.assign_coords(lat=("station", 2.0 * data["lat"].values, NORTH))
        with pytest.raises(CoordinateError, match=r"Variable 'rain': \d+ latitudes lie beyond 90"):
            xcopula.fit(wrong, "rain")
        model = xcopula.fit(data, "rain", marginals="lognormal", **FIXED)
        target = xr.Dataset(coords={"lat": [45.0, 95.0], "lon": [5.0]})
        with pytest.raises(CoordinateError, match=r"1 latitudes lie beyond 90 degrees \(first: 95"):
            model.predict(target)

    def test_swapped_longitude_and_latitude(self):
        """The message names the way to say which is which."""
        data = dataset(lon=TEN, lat=100.0 + TEN)
        with pytest.raises(
            CoordinateError, match=r"swapped, pass `coords=\{'longitude': ..., 'lat"
        ):
            observe(data, ["v"])
        told = observe(data, ["v"], {"longitude": "lat", "latitude": "lon"})
        assert told.coordinates.names == ("lat", "lon")

    def test_degrees_without_units(self):
        """Planar coordinates that could be degrees are warned of, with what was assumed."""
        data = stations()
        plane = data.assign_coords(
            x=("station", data["lon"].values + 10.0), y=("station", data["lat"].values)
        ).drop_vars(["lon", "lat"])
        with pytest.warns(
            UserWarning,
            match=r"\['x', 'y'\] have no units and their values could be degrees; they were taken "
            r"for distances in a plane.*`coords=\{'longitude': 'x', 'latitude': 'y'\}`",
        ):
            observe(plane, ["rain"])

    def test_units_that_cannot_be_converted(self, model, target):
        """A coordinate in another kind of unit is refused with both."""
        odd = target.assign_coords(x=target["x"].assign_attrs(units="degrees_east"))
        with pytest.raises(CoordinateError, match=r"'x'"):
            model.predict(odd)
        odd = target.assign_coords(x=target["x"].assign_attrs(units="hours"))
        with pytest.raises(
            CoordinateError, match="'x' is in 'hours', the training data had 'x' in '"
        ):
            model.predict(odd)

    def test_scales_of_their_own_on_the_globe(self):
        """Longitude and latitude share one scale."""
        with pytest.raises(CoordinateError, match=r"`ard` names groups \['space'\]"):
            xcopula.fit(stations(), "rain", ard=["space"])

    def test_a_season_of_numbers(self):
        """A year needs dates."""
        with pytest.raises(CoordinateError, match=r"cycle\('elevation', 'year'\).* holds no dates"):
            xcopula.fit(stations(), "rain", coords=["lon", "lat", xcopula.cycle("elevation")])

    def test_duplicates_on_the_globe(self):
        """Two longitudes a turn apart are one site."""
        data = stations()
        lon, lat = data["lon"].values.copy(), data["lat"].values.copy()
        lon[1], lat[1] = lon[0] - 360.0, lat[0]
        twice = data.assign_coords(lon=("station", lon, EAST), lat=("station", lat, NORTH))
        with pytest.raises(ValueError, match=r"'rain' has several values at 1 of its sites"):
            observe(twice, ["rain"])


class TestColorado:
    """The embedded data through the whole of the labels layer."""

    def test_a_map_of_one_month(self):
        """Stations with elevation, a grid with elevation, nothing but CF attributes."""
        may = xcopula.datasets.colorado().sel(time="1985-05").isel(station=slice(0, None, 5))
        grid = xcopula.datasets.colorado_grid().isel(lat=slice(0, None, 30), lon=slice(0, None, 50))
        law = xcopula.regress("normal", on="elevation")
        model = xcopula.fit(may, "tmax", marginals=law, **FIXED)
        assert [g.name for g in model.coordinates.groups] == ["space"]
        assert "km" in model.summary()
        out = model.predict(grid)["tmax"]
        assert out.dims == ("quantile", "lat", "lon")
        assert out.attrs["cell_methods"] == "time: mean"
        assert out.attrs["units"] == "degree_Celsius"
        cold = grid["elevation"] > 3000.0
        median = out.sel(quantile=0.5)
        assert float(median.where(cold).mean()) < float(median.where(~cold).mean()) - 5.0
