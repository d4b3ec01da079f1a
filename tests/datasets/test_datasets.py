"""The embedded data sets and the toy simulations."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from xcopula import datasets

METALS = ["Cd", "Co", "Cr", "Cu", "Ni", "Pb", "Zn"]
TABLES = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_tables = pytest.mark.skipif(
    not (TABLES / "jura_prediction.csv").exists(),
    reason="the folder of the original Jura tables does not exist",
)


@pytest.fixture(scope="module")
def sites() -> xr.Dataset:
    return datasets.jura()


@pytest.fixture(scope="module")
def grid() -> xr.Dataset:
    return datasets.jura_grid()


class TestJura:
    def test_has_259_prediction_then_100_validation_sites(self, sites):
        assert dict(sites.sizes) == {"site": 359}
        assert set(sites.coords) == {"x", "y", "split"}
        assert (sites["split"][:259] == "prediction").all()
        assert (sites["split"][259:] == "validation").all()

    def test_metals_are_complete_and_labelled(self, sites):
        for name in METALS:
            assert sites[name].dtype == np.float64
            assert sites[name].attrs["units"] == "mg kg-1"
            assert sites[name].notnull().all()
            assert (sites[name] > 0).all()
        assert sites["Cd"].attrs["long_name"] == "cadmium concentration in topsoil"

    def test_coordinates_have_units_and_axes(self, sites):
        assert sites["x"].attrs == {"units": "km", "long_name": "easting", "axis": "X"}
        assert sites["y"].attrs == {"units": "km", "long_name": "northing", "axis": "Y"}

    def test_known_values(self, sites):
        first, last = sites.isel(site=0), sites.isel(site=259)
        assert (first["x"], first["y"], first["Cd"], first["Zn"]) == (2.386, 3.077, 1.74, 92.56)
        assert (last["x"], last["y"], last["Cd"], last["Cu"]) == (2.672, 3.558, 1.57, 18.6)
        assert first["landuse"].item() == "Meadow"
        assert first["rock"].item() == "Sequanian"

    def test_categories_are_names(self, sites):
        assert set(np.unique(sites["landuse"])) == {"Forest", "Meadow", "Pasture", "Tillage"}
        assert (sites["rock"] == "Portlandian").sum() == 6
        assert "flag_values" not in sites["rock"].attrs

    def test_attributes_give_credit(self, sites):
        assert sites.attrs["Conventions"].startswith("CF-")
        assert "Jura" in sites.attrs["title"]
        assert "gstat" in sites.attrs["source"]
        assert "Goovaerts" in sites.attrs["references"]
        assert "Atteia" in sites.attrs["references"]

    def test_each_call_returns_its_own_memory(self, sites):
        other = datasets.jura()
        other["Cd"][0] = -1.0
        assert sites["Cd"][0] == 1.74
        xr.testing.assert_identical(datasets.jura(), sites)

    @pytest.mark.parametrize("hide", ["Cd", ["Cd"], ("Cd", "Zn")])
    def test_hide_removes_only_validation_values(self, sites, hide):
        hidden = datasets.jura(hide=hide)
        names = [hide] if isinstance(hide, str) else list(hide)
        for name in METALS:
            assert hidden[name].count() == (259 if name in names else 359)
            assert hidden[name].attrs == sites[name].attrs
        xr.testing.assert_identical(hidden.isel(site=slice(259)), sites.isel(site=slice(259)))

    @pytest.mark.parametrize("name", ["Hg", "landuse", "x"])
    def test_hide_rejects_what_is_not_a_metal(self, name):
        with pytest.raises(KeyError, match=rf"{name}.*Choose from \['Cd', 'Co'"):
            datasets.jura(hide=name)

    @needs_tables
    def test_equals_the_original_tables(self, sites):
        names = ["prediction", "validation"]
        rows = [_read(TABLES / f"jura_{name}.csv") for name in names]
        table = {key: np.concatenate([part[key] for part in rows]) for key in rows[0]}
        np.testing.assert_array_equal(sites["x"], table["Xloc"].astype(float))
        np.testing.assert_array_equal(sites["y"], table["Yloc"].astype(float))
        for name in METALS:
            np.testing.assert_array_equal(sites[name], table[name].astype(float))

    def test_category_names_agree_with_the_grid_nearby(self, sites, grid):
        cells = grid.sel(x=sites["x"], y=sites["y"], method="nearest")
        for name in ("landuse", "rock"):
            agreement = (cells[name] == sites[name]).where(cells["inside"]).mean()
            assert agreement > 0.8


class TestJuraGrid:
    def test_is_a_regular_raster_in_km(self, grid):
        assert dict(grid.sizes) == {"y": 117, "x": 97}
        assert grid["inside"].dims == ("y", "x")
        for name, axis in (("x", "X"), ("y", "Y")):
            assert grid[name].attrs["units"] == "km"
            assert grid[name].attrs["axis"] == axis
            np.testing.assert_allclose(np.diff(grid[name]), 0.05, rtol=1e-12)

    def test_coordinates_are_clean_floats(self, grid):
        assert grid["x"].values[:3].tolist() == [0.3, 0.35, 0.4]
        assert grid["y"].values[-3:].tolist() == [5.8, 5.85, 5.9]

    def test_5957_cells_are_inside_and_have_categories(self, grid):
        assert grid["inside"].dtype == bool
        assert grid["inside"].sum() == 5957
        for name in ("landuse", "rock"):
            xr.testing.assert_equal(grid[name] != "", grid["inside"])
        assert (grid["landuse"] == "Forest").sum() == 986

    @needs_tables
    def test_equals_the_original_table(self, grid):
        table = _read(TABLES / "jura_grid.csv")
        x, y = (xr.DataArray(table[key].astype(float), dims="cell") for key in ("Xloc", "Yloc"))
        cells = grid.sel(x=x, y=y, method="nearest", tolerance=1e-9)
        assert cells["inside"].all()
        np.testing.assert_array_equal(cells["landuse"], table["Landuse"])
        np.testing.assert_array_equal(cells["rock"], table["Rock"])


@pytest.mark.parametrize("load", [datasets.jura, datasets.jura_grid, datasets.toy])
def test_loading_is_silent_and_can_be_written_again(load, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset = load()
    assert not dataset.chunks
    assert dataset.encoding == {}
    dataset.to_netcdf(tmp_path / "copy.nc")
    with xr.open_dataset(tmp_path / "copy.nc") as copy:
        xr.testing.assert_equal(copy.load(), dataset)


def test_import_needs_neither_netcdf4_nor_scipy():
    code = (
        "import sys, xarray; before = set(sys.modules); import xcopula.datasets._jura;"
        "print(sorted({'netCDF4', 'scipy.stats', 'numba'} & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class TestToy:
    @pytest.mark.parametrize(
        ("kind", "counts"),
        [
            ("pair", {"primary": 14, "cotask": 30}),
            ("triple", {"primary": 14, "upper": 30, "lower": 30}),
        ],
    )
    def test_each_task_has_its_own_sites(self, kind, counts):
        ds = datasets.toy(seed=3, kind=kind)
        assert {name: int(ds[name].count()) for name in ds} == counts
        assert dict(ds.sizes) == {"site": sum(counts.values())}
        assert (ds.to_array().notnull().sum("variable") == 1).all()
        assert ds["x"].dims == ("site",)
        assert np.all(np.diff(ds["x"]) > 0)
        assert ds["x"].min() >= 0
        assert ds["x"].max() <= 1

    @pytest.mark.parametrize("kind", ["pair", "triple"])
    def test_primary_has_a_gap_and_cotasks_fill_it(self, kind):
        ds = datasets.toy(seed=1, kind=kind)
        gap = ds.where((ds["x"] > 0.4) & (ds["x"] < 0.65), drop=True)
        assert gap["primary"].count() == 0
        assert all(gap[name].count() > 0 for name in set(ds) - {"primary"})

    @pytest.mark.parametrize("kind", ["pair", "triple"])
    def test_seed_decides(self, kind):
        xr.testing.assert_identical(datasets.toy(seed=5, kind=kind), datasets.toy(5, kind))
        assert not datasets.toy(seed=5, kind=kind).equals(datasets.toy(seed=6, kind=kind))
        xr.testing.assert_identical(datasets.toy(np.int64(5), kind), datasets.toy(5, kind))

    @pytest.mark.parametrize("kind", ["pair", "triple"])
    def test_noise_has_median_zero_about_the_truth(self, kind):
        noise = []
        for seed in range(60):
            ds = datasets.toy(seed, kind)
            noise.append(ds - datasets.toy_truth(ds["x"], kind))
        pooled = xr.concat(noise, "run").stack(all=("run", "site"))
        for name in pooled:
            values = pooled[name].dropna("all")
            below = float((values < 0).mean())
            assert abs(below - 0.5) < 4 * 0.5 / np.sqrt(values.size)

    def test_attributes_say_what_was_simulated(self):
        ds = datasets.toy()
        assert ds["primary"].attrs["true_function"] == "-sin(16 x) + sin(8 x) + 2"
        assert "extreme value" in ds["primary"].attrs["noise"]
        assert "normal" in ds["cotask"].attrs["noise"]

    @pytest.mark.parametrize("seed", [None, 1.5, "1", True])
    def test_seed_of_a_wrong_type(self, seed):
        with pytest.raises(TypeError, match="must be an integer"):
            datasets.toy(seed)

    def test_negative_seed(self):
        with pytest.raises(ValueError, match="must not be negative"):
            datasets.toy(-1)

    @pytest.mark.parametrize(
        "call", [lambda: datasets.toy(0, "x"), lambda: datasets.toy_truth(0, "x")]
    )
    def test_unknown_kind(self, call):
        with pytest.raises(ValueError, match=r"'x'.*Choose from \['pair', 'triple'\]"):
            call()


class TestToyTruth:
    def test_pair(self):
        x = np.linspace(0, 1, 7)
        truth = datasets.toy_truth(x)
        np.testing.assert_allclose(truth["primary"], -np.sin(16 * x) + np.sin(8 * x) + 2)
        np.testing.assert_allclose(truth["primary"] + truth["cotask"], 9.0)
        np.testing.assert_array_equal(truth["x"], x)

    def test_triple(self):
        truth = datasets.toy_truth(0.1, kind="triple")
        assert {name: truth[name].item() for name in truth} == pytest.approx(
            {"primary": -1.0, "upper": 4.0, "lower": -2.0}
        )

    def test_keeps_the_dims_of_a_dataarray(self):
        ds = datasets.toy()
        truth = datasets.toy_truth(ds["x"])
        assert truth["primary"].dims == ("site",)
        xr.testing.assert_identical(truth["x"], ds["x"])


def _read(path: Path) -> dict[str, np.ndarray]:
    """Read a CSV table as columns of strings, quotes removed."""
    header, *lines = path.read_text().replace('"', "").splitlines()
    return dict(
        zip(header.split(","), np.array([line.split(",") for line in lines]).T, strict=True)
    )
