"""The embedded Colorado climate: stations, months and the elevation grid."""

from __future__ import annotations

import csv
import gzip
import subprocess
import sys
import warnings
from importlib.resources import files
from pathlib import Path

import cf_xarray  # noqa: F401 - registers .cf
import numpy as np
import pytest
import xarray as xr

from xcopula import datasets

NAMES = ["ppt", "tmin", "tmax"]
SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "data" / "make_colorado.py"
TABLES = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_tables = pytest.mark.skipif(
    not (TABLES / "colorado_stations.csv").exists(),
    reason="the folder of the original Colorado tables does not exist",
)


@pytest.fixture(scope="module")
def climate() -> xr.Dataset:
    return datasets.colorado()


@pytest.fixture(scope="module")
def grid() -> xr.Dataset:
    return datasets.colorado_grid()


class TestColorado:
    def test_has_314_stations_and_120_months(self, climate):
        assert dict(climate.sizes) == {"station": 314, "time": 120}
        assert list(climate.data_vars) == NAMES
        assert set(climate.coords) == {"station", "time", "lon", "lat", "elevation"}
        months = np.arange("1980-01", "1990-01", dtype="datetime64[M]")
        np.testing.assert_array_equal(climate["time"], months.astype("datetime64[ns]"))

    def test_counts_of_values(self, climate):
        counts = {name: int(climate[name].count()) for name in NAMES}
        assert counts == {"ppt": 31892, "tmin": 27808, "tmax": 27849}

    def test_830_totals_are_zero(self, climate):
        zeros = (climate["ppt"] == 0).sum("station")
        assert zeros.sum() == 830
        assert (zeros == 0).sum() == 45

    def test_every_station_has_a_value(self, climate):
        found = climate.to_array().notnull().any(["variable", "time"])
        assert found.all()

    def test_station_identifiers_are_strings(self, climate):
        assert climate["station"].dtype.kind == "U"
        assert climate.indexes["station"].is_unique
        assert climate["station"][0].item() == "028468"
        assert climate["station"].attrs["cf_role"] == "timeseries_id"

    def test_no_two_stations_have_one_place(self, climate):
        places = np.stack([climate["lon"], climate["lat"]], axis=1)
        assert len(np.unique(places, axis=0)) == 314

    def test_units_and_standard_names(self, climate):
        found = {
            name: (climate[name].attrs["units"], climate[name].attrs["standard_name"])
            for name in [*NAMES, "lon", "lat", "elevation"]
        }
        assert found == {
            "ppt": ("mm", "lwe_thickness_of_precipitation_amount"),
            "tmin": ("degree_Celsius", "air_temperature"),
            "tmax": ("degree_Celsius", "air_temperature"),
            "lon": ("degrees_east", "longitude"),
            "lat": ("degrees_north", "latitude"),
            "elevation": ("m", "surface_altitude"),
        }
        methods = [climate[name].attrs["cell_methods"] for name in NAMES]
        assert methods == ["time: sum", "time: mean", "time: mean"]
        assert "daily minima" in climate["tmin"].attrs["comment"]
        assert "daily maxima" in climate["tmax"].attrs["comment"]

    def test_cf_roles(self, climate):
        roles = climate.cf.coordinates
        assert roles == {"longitude": ["lon"], "latitude": ["lat"], "time": ["time"]}
        assert climate.cf.axes == {"T": ["time"]}
        assert climate.cf.cf_roles == {"timeseries_id": ["station"]}

    def test_elevation_travels_with_each_variable(self, climate):
        for name in NAMES:
            assert climate[name].coords["elevation"].dims == ("station",)

    def test_values_are_plausible_and_whole_steps(self, climate):
        for name, decimals in (("ppt", 0), ("tmin", 1), ("tmax", 1)):
            values = climate[name].values
            assert values.dtype == np.float64
            np.testing.assert_array_equal(values, np.round(values, decimals))
        assert (climate["ppt"].min(), climate["ppt"].max()) == (0.0, 485.0)
        assert (climate["tmin"].min(), climate["tmax"].max()) == (-34.1, 39.6)
        both = climate["tmin"].notnull() & climate["tmax"].notnull()
        assert (climate["tmin"] < climate["tmax"]).where(both, other=True).all()

    def test_known_values(self, climate):
        first = climate.sel(station="028468", time="1980-01-01")
        assert [first[name].item() for name in NAMES] == [21.0, -2.5, 9.1]
        assert [first[name].item() for name in ("lon", "lat", "elevation")] == [-109.1, 36.9, 1580]

    def test_precipitation_is_in_millimetres(self, climate):
        # Alamosa, June to August, inches: https://www.weather.gov/pub/climateAlsSummerPrecipitation
        inches = [0.75, 4.32, 1.31, 2.60, 2.36, 3.06, 1.87, 1.23, 2.57, 1.95]
        alamosa = climate["ppt"].sel(station="050130")
        summer = alamosa.where(alamosa["time.season"] == "JJA").groupby("time.year").sum()
        np.testing.assert_allclose(summer, 25.4 * np.array(inches), rtol=0, atol=1)
        assert climate["ppt"].attrs["units"] == "mm"
        assert "centimetres" in climate["ppt"].attrs["comment"]

    def test_a_month_is_a_selection(self, climate):
        may = climate.sel(time="1985-05")
        assert dict(may.sizes) == {"station": 314, "time": 1}
        assert (may["ppt"] == 0).sum() == 0

    def test_attributes_give_credit(self, climate, grid):
        for dataset in (climate, grid):
            assert dataset.attrs["Conventions"].startswith("CF-")
            assert "Colorado" in dataset.attrs["title"]
            assert "COmonthlyMet" in dataset.attrs["source"]
            assert "NCAR" in dataset.attrs["source"]
            assert "Nychka" in dataset.attrs["references"]

    def test_each_call_returns_its_own_memory(self, climate):
        other = datasets.colorado()
        other["ppt"][0, 0] = -1.0
        other["elevation"][0] = -1.0
        assert climate["ppt"][0, 0] == 21.0
        xr.testing.assert_identical(datasets.colorado(), climate)

    @needs_tables
    def test_equals_the_original_tables(self, climate):
        places = {row["CO.id"]: row for row in _read(TABLES / "colorado_stations.csv")}
        rows = _read(TABLES / "colorado_monthly_1980s.csv.gz")
        assert set(climate["station"].values) == {row["station_id"] for row in rows}
        for name, column in (("lon", "lon"), ("lat", "lat"), ("elevation", "CO.elev")):
            expected = [float(places[key][column]) for key in climate["station"].values]
            np.testing.assert_array_equal(climate[name], expected)
        index = {key: i for i, key in enumerate(climate["station"].values)}
        stations = [index[row["station_id"]] for row in rows]
        months = [12 * (int(row["year"]) - 1980) + int(row["month"]) - 1 for row in rows]
        for name, factor in (("ppt", 10), ("tmin", 1), ("tmax", 1)):
            expected = np.full((314, 120), np.nan)
            expected[stations, months] = [factor * _number(row[name]) for row in rows]
            np.testing.assert_array_equal(climate[name], expected)


class TestColoradoGrid:
    def test_is_a_regular_raster_in_degrees(self, grid):
        assert dict(grid.sizes) == {"lat": 119, "lon": 205}
        assert list(grid.data_vars) == ["elevation"]
        for name in ("lat", "lon"):
            np.testing.assert_allclose(np.diff(grid[name]), 1 / 24, rtol=1e-6)

    def test_elevation_is_known_everywhere(self, grid):
        elevation = grid["elevation"]
        assert elevation.dims == ("lat", "lon")
        assert elevation.dtype == np.float64
        assert elevation.notnull().all()
        assert (elevation.min(), elevation.max()) == (810.1584, 4005.072)

    def test_has_the_attributes_of_the_stations(self, climate, grid):
        assert grid["elevation"].attrs == climate["elevation"].attrs
        for name, axis in (("lon", "X"), ("lat", "Y")):
            assert grid[name].attrs == {**climate[name].attrs, "axis": axis}

    def test_cf_roles(self, grid):
        assert grid.cf.coordinates == {"longitude": ["lon"], "latitude": ["lat"]}

    def test_covers_the_stations(self, climate, grid):
        near = grid["elevation"].sel(
            lat=climate["lat"], lon=climate["lon"], method="nearest", tolerance=1 / 24
        )
        assert xr.corr(near, climate["elevation"]) > 0.98

    def test_each_call_returns_its_own_memory(self, grid):
        datasets.colorado_grid()["elevation"][0, 0] = -1.0
        xr.testing.assert_identical(datasets.colorado_grid(), grid)

    @needs_tables
    def test_equals_the_original_table(self, grid):
        rows = _read(TABLES / "colorado_elevation_grid.csv.gz")
        assert len(rows) == grid["elevation"].size
        lon, lat, elevation = (
            np.array([float(row[key]) for row in rows]) for key in ("lon", "lat", "elev")
        )
        cells = grid.sel(lat=xr.DataArray(lat, dims="cell"), lon=xr.DataArray(lon, dims="cell"))
        np.testing.assert_array_equal(cells["elevation"], elevation)


@pytest.mark.parametrize("load", [datasets.colorado, datasets.colorado_grid])
def test_loading_is_silent_and_can_be_written_again(load, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset = load()
    assert not dataset.chunks
    assert dataset.encoding == {}
    assert all(array.encoding == {} for array in dataset.variables.values())
    dataset.to_netcdf(tmp_path / "copy.nc")
    with xr.open_dataset(tmp_path / "copy.nc") as copy:
        xr.testing.assert_identical(copy.load(), dataset)


def test_the_files_are_small():
    folder = files("xcopula.datasets")
    sizes = [len((folder / name).read_bytes()) for name in ("colorado.nc", "colorado_grid.nc")]
    assert sizes[0] < 250_000
    assert sum(sizes) < 300_000


@needs_tables
def test_the_script_makes_the_embedded_files(tmp_path, climate, grid):
    subprocess.run([sys.executable, SCRIPT, TABLES, "--output", tmp_path], check=True)
    for name in ("colorado.nc", "colorado_grid.nc"):
        with (
            xr.open_dataset(tmp_path / name) as made,
            xr.open_dataset(str(files("xcopula.datasets") / name)) as embedded,
        ):
            xr.testing.assert_identical(made, embedded)


def _read(path: Path) -> list[dict[str, str]]:
    """Read a CSV table, compressed or not, as rows of strings."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as file:
        return list(csv.DictReader(file))


def _number(text: str) -> float:
    """Return a number; NaN if the cell is empty."""
    return np.nan if text in {"", "NA"} else float(text)
