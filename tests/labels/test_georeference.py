"""CRS of data, points of shapely and tables with geometry."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import xarray as xr
from conftest import FIXED

import xcopula
from xcopula.errors import CoordinateError
from xcopula.labels.georeference import from_table, georeferenced, locate

pyproj = pytest.importorskip("pyproj")

SWISS, ITALIAN = "EPSG:2056", "EPSG:32632"
OPTIONS = {"marginals": "lognormal", **FIXED}
SIZE = 25


def places() -> np.ndarray:
    """Draw sites near Berne, in metres of the Swiss grid: (2, n)."""
    rng = np.random.default_rng(3)
    return rng.uniform([2.59e6, 1.19e6], [2.61e6, 1.21e6], (SIZE, 2)).T


def values() -> np.ndarray:
    x, y = places() / 1e4
    return np.exp(np.sin(2.0 * x) + np.cos(3.0 * y))


def stations(**attrs: str) -> xr.Dataset:
    """Stations without a CRS, and without units unless they are given."""
    x, y = places()
    return xr.Dataset(
        {"zinc": ("site", values(), {"units": "mg kg-1"})},
        coords={"x": ("site", x, attrs), "y": ("site", y, attrs)},
    )


def raster(crs: str | None = SWISS) -> xr.Dataset:
    """A grid of the area."""
    grid = xr.Dataset(
        coords={"y": np.linspace(1.209e6, 1.191e6, 4), "x": np.linspace(2.591e6, 2.609e6, 5)}
    )
    return grid if crs is None else locate(grid, xcopula.labels.coordinates.Projection.of(crs))


@pytest.fixture(scope="module")
def model() -> xcopula.CopulaModel:
    return xcopula.fit(stations(), "zinc", crs=SWISS, **OPTIONS)


class TestArgument:
    def test_it_names_the_crs_and_so_the_units(self, model):
        """Metres of the CRS, kilometres of the length scales; results say where they are."""
        told = xcopula.fit(stations(units="m"), "zinc", **OPTIONS)
        assert model.coordinates.groups[0].units == "km"
        assert model.log_likelihood == pytest.approx(told.log_likelihood, rel=1e-12)
        out = model.predict(raster(None))
        assert out["zinc"].attrs["grid_mapping"] == "spatial_ref"
        assert pyproj.CRS.from_cf(out["spatial_ref"].attrs).to_epsg() == 2056
        assert out["x"].attrs["units"] == "m"

    def test_against_what_the_data_say(self):
        """A contradiction is refused, agreement is none."""
        data = georeferenced(stations(), SWISS)
        assert xcopula.fit(data, "zinc", crs=2056, **OPTIONS).coordinates.projection is not None
        with pytest.raises(
            CoordinateError, match=r"another CRS than `crs` \(crs: EPSG:2056.*32632"
        ):
            xcopula.fit(data, "zinc", crs=ITALIAN, **OPTIONS)

    def test_of_a_mapping(self):
        """Each variable gets it, or must have it."""
        data = stations()
        lead = georeferenced(data.rename(zinc="lead"), ITALIAN)["lead"]
        with pytest.raises(CoordinateError, match="Variable 'lead' has another CRS than `crs`"):
            xcopula.fit({"zinc": data["zinc"], "lead": lead}, "zinc", "lead", crs=SWISS, **OPTIONS)
        known = georeferenced(data, SWISS)["zinc"]
        with pytest.raises(CoordinateError, match="'lead' is in another projection than the model"):
            xcopula.fit({"zinc": known, "lead": lead}, "zinc", "lead", **OPTIONS)

    def test_is_left_to_others_to_refuse_the_data(self):
        """Odd data pass through."""
        assert georeferenced(3) == 3
        assert georeferenced({"a": 3}) == {"a": 3}


class TestSources:
    """Where a CRS is found."""

    def test_in_an_index(self, model):
        """xproj's; it stays in results, with attributes that others read."""
        pytest.importorskip("xproj")
        data = stations().proj.assign_crs(spatial_ref=SWISS)
        assert not data["spatial_ref"].attrs
        found = xcopula.fit(data, "zinc", **OPTIONS)
        assert found.log_likelihood == pytest.approx(model.log_likelihood, rel=1e-12)
        assert found.coordinates.projection.crs.to_epsg() == 2056
        out = found.predict(raster(None).proj.assign_crs(crs=SWISS))["zinc"]
        assert out.attrs["grid_mapping"] == "crs"
        assert out.proj("crs").crs.to_epsg() == 2056
        assert pyproj.CRS.from_cf(out["crs"].attrs).to_epsg() == 2056
        with pytest.raises(CoordinateError, match=r"another projection .*EPSG:2056.*EPSG:32632"):
            found.predict(raster(None).proj.assign_crs(crs=ITALIAN))

    def test_in_two_indexes_that_differ(self):
        """There is no telling which is right."""
        pytest.importorskip("xproj")
        both = stations().proj.assign_crs(one=SWISS, other=ITALIAN)
        with pytest.raises(CoordinateError, match="Indexes of the data have different"):
            xcopula.fit(both, "zinc", **OPTIONS)

    def test_in_what_rioxarray_writes(self, model):
        """A reference in the encoding, texts and parameters in ``spatial_ref``."""
        pytest.importorskip("rioxarray")
        data = stations().rio.write_crs(SWISS)
        data["zinc"] = data["zinc"].rio.write_grid_mapping()
        assert "grid_mapping" in data["zinc"].encoding
        found = xcopula.fit(data, "zinc", **OPTIONS)
        assert found.log_likelihood == pytest.approx(model.log_likelihood, rel=1e-12)
        grid = raster(None).rio.write_crs(ITALIAN)
        with pytest.raises(CoordinateError, match="another projection than the model"):
            found.predict(grid)

    @pytest.mark.parametrize("given", [SWISS, 2056, pyproj.CRS(SWISS)])
    def test_in_an_attribute(self, given):
        """Of the Dataset, if nothing else tells."""
        found = xcopula.fit(stations().assign_attrs(crs=given), "zinc", **OPTIONS)
        assert found.coordinates.projection.crs.to_epsg() == 2056

    def test_not_in_any_text(self):
        """An attribute of that name that is no CRS is left alone."""
        data = stations(units="m").assign_attrs(crs="the usual one")
        assert xcopula.fit(data, "zinc", **OPTIONS).coordinates.projection is None

    def test_as_text_without_pyproj(self, monkeypatch):
        """Then texts are compared."""
        monkeypatch.setitem(sys.modules, "pyproj", None)
        monkeypatch.setattr("xcopula.labels.coordinates.projection.find_spec", lambda name: None)
        model = xcopula.fit(stations(units="m").assign_attrs(crs=SWISS), "zinc", **OPTIONS)
        grid = raster(None)
        assert model.predict(grid.assign_attrs(crs=SWISS))["zinc"].notnull().all()
        with pytest.raises(CoordinateError, match=r"EPSG:2056 / EPSG:32632.*xcopula\[geo\]"):
            model.predict(grid.assign_attrs(crs=ITALIAN))


class TestGeographic:
    """The x and y of a geographic CRS are longitude and latitude."""

    @pytest.fixture(scope="class")
    @classmethod
    def degrees(cls) -> xr.Dataset:
        lon, lat = pyproj.Transformer.from_crs(SWISS, 4326, always_xy=True).transform(*places())
        return stations().assign_coords(x=("site", lon), y=("site", lat))

    def test_as_the_crs_says(self, degrees):
        """No plane of degrees, and no warning."""
        found = xcopula.fit(degrees, "zinc", crs=4326, **OPTIONS)
        assert [a.role for a in found.coordinates.axes] == ["longitude", "latitude"]
        same = degrees.rename(x="lon", y="lat")
        expected = xcopula.fit(same, "zinc", **OPTIONS)
        assert found.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-12)
        grid = xr.Dataset(coords={"y": [46.9, 47.0], "x": [7.4, 7.5]})
        out = expected.predict(locate(grid, found.coordinates.projection))
        assert out["x"].attrs["standard_name"] == "longitude"
        np.testing.assert_allclose(out["zinc"], found.predict(grid)["zinc"], rtol=1e-10)

    def test_indices_beside_true_coordinates_stay_indices(self):
        """The x and y of a curvilinear grid are not metres because there is a grid mapping."""
        grid = xr.Dataset(
            coords={"x": [0, 1], "y": [0, 1], "lon": ("x", [1.0, 2.0]), "lat": ("y", [3.0, 4.0])}
        )
        located = georeferenced(grid, SWISS)
        assert not located["x"].attrs

    def test_the_data_are_not_changed(self):
        """Attributes are added to a copy."""
        data = stations().assign_coords(spatial_ref=0)
        data["spatial_ref"].attrs = dict(raster()["spatial_ref"].attrs)
        before = data.copy(deep=True)
        assert georeferenced(data)["x"].attrs == {"units": "m"}
        xr.testing.assert_identical(data, before)


class TestPoints:
    """Stations as a coordinate of shapely points."""

    @pytest.fixture(scope="class")
    @classmethod
    def pointed(cls) -> xr.Dataset:
        shapely = pytest.importorskip("shapely")
        points = shapely.points(places().T)
        return xr.Dataset({"zinc": ("place", values())}, coords={"place": points})

    @pytest.mark.parametrize("form", ["argument", "attribute", "index"])
    def test_are_places(self, pointed, model, form):
        """A plain coordinate with a CRS, or one with xvec's index."""
        crs = SWISS if form == "argument" else None
        if form == "attribute":
            pointed = pointed.copy()
            pointed["place"].attrs["crs"] = SWISS
        if form == "index":
            pytest.importorskip("xvec")
            pointed = pointed.xvec.set_geom_indexes("place", crs=SWISS)
        found = xcopula.fit(pointed, "zinc", crs=crs, **OPTIONS)
        assert found.coordinates.names == ("x", "y")
        assert found.log_likelihood == pytest.approx(model.log_likelihood, rel=1e-12)

    def test_as_a_target(self, pointed, model):
        """The result has the points, and their index, and no other coordinates."""
        pytest.importorskip("xvec")
        target = pointed.xvec.set_geom_indexes("place", crs=SWISS).drop_vars("zinc")
        out = model.predict(target)["zinc"]
        assert out.dims == ("quantile", "place")
        assert set(out.coords) == {"quantile", "place", "spatial_ref"}
        assert out.xindexes["place"].crs.to_epsg() == 2056
        np.testing.assert_allclose(out.sel(quantile=0.5), values())
        with pytest.raises(CoordinateError, match="another projection"):
            model.predict(pointed.xvec.set_geom_indexes("place", crs=ITALIAN))

    def test_in_degrees(self, pointed):
        """Their coordinates are called what they are."""
        located = georeferenced(pointed, 4326)
        assert located["lon"].attrs["standard_name"] == "longitude"
        assert "x" not in located.coords

    def test_beside_numbers_count_nothing(self, pointed):
        """Coordinates that are there already are the user's."""
        numbered = pointed.assign_coords(x=("place", np.arange(SIZE)), y=("place", np.arange(SIZE)))
        assert georeferenced(numbered)["x"].values.tolist() == list(range(SIZE))

    def test_of_another_kind(self, pointed):
        """Areas have no place."""
        import shapely

        areas = pointed.assign_coords(place=shapely.buffer(pointed["place"].values, 10.0))
        with pytest.raises(CoordinateError, match=r"'place' holds \['Polygon'\].*centroid"):
            xcopula.fit(areas, "zinc", **OPTIONS)


class TestTables:
    """A GeoDataFrame as data, and as a target."""

    @pytest.fixture(scope="class")
    @classmethod
    def frame(cls):
        geopandas = pytest.importorskip("geopandas")
        x, y = places()
        return geopandas.GeoDataFrame(
            {"zinc": values(), "soil": ["clay"] * SIZE},
            geometry=geopandas.points_from_xy(x, y),
            crs=SWISS,
        )

    def test_is_data(self, frame, model):
        """Columns are variables, the geometry the place, its CRS the model's."""
        found = xcopula.fit(frame, "zinc", **OPTIONS)
        assert found.log_likelihood == pytest.approx(model.log_likelihood, rel=1e-12)
        assert found.coordinates.projection.crs.to_epsg() == 2056

    def test_is_a_target(self, frame, model):
        """The result is on the dim of its index."""
        out = model.predict(frame[["geometry"]], 0.5)["zinc"]
        assert out.dims == ("index",)
        np.testing.assert_allclose(out, values())
        with pytest.raises(CoordinateError, match="another projection"):
            model.predict(frame.to_crs(ITALIAN))

    def test_in_degrees_or_without_a_crs(self, frame):
        """Longitude and latitude are called so; without a CRS nothing is assumed."""
        globe = from_table(frame.to_crs(4326))
        assert {"lon", "lat", "spatial_ref"} <= set(globe.coords)
        assert set(globe) == {"zinc", "soil"}
        bare = from_table(frame.set_crs(None, allow_override=True))
        assert "spatial_ref" not in bare.coords
        assert bare["x"].attrs == {"axis": "X"}

    def test_of_several_levels(self, frame):
        """One row is one observation, and levels of an index are columns."""
        deep = frame.assign(day=1).set_index(["soil", "day"], append=True)
        table = from_table(deep)
        assert table.sizes == {"index": SIZE}
        assert {"soil", "day"} <= set(table.data_vars)

    @pytest.mark.parametrize(("name", "crs"), [("x", SWISS), ("y", SWISS), ("lat", 4326)])
    def test_an_index_with_the_name_of_a_coordinate(self, frame, name, crs):
        """It would hide the place; other names of the kind do not."""
        table = frame.to_crs(crs)
        with pytest.raises(CoordinateError, match=f"called '{name}'. Rename the index"):
            from_table(table.rename_axis(name))
        assert from_table(table.rename_axis("site")).sizes == {"site": SIZE}

    def test_anything_else_passes(self, monkeypatch):
        """Also where geopandas was never imported."""
        assert from_table(3) == 3
        monkeypatch.delitem(sys.modules, "geopandas", raising=False)
        assert from_table("table") == "table"


class TestGeoTiff:
    def test_through_rioxarray(self, model, tmp_path):
        """A map written to a GeoTIFF lies where it should, and is read as a target again."""
        rioxarray = pytest.importorskip("rioxarray")
        template = raster(None).rio.write_crs(SWISS).rio.write_transform()
        for target in (template, raster(None)):
            posterior = model.posterior(target)
            for result in (posterior.median(), posterior.exceedance(1.0)):
                path = tmp_path / f"{result.name}.tif"
                result.rio.to_raster(path)
                with rioxarray.open_rasterio(path) as read:
                    assert read.rio.crs.to_epsg() == 2056
                    np.testing.assert_allclose(read["x"], target["x"])
                    np.testing.assert_allclose(read["y"], target["y"])
                    np.testing.assert_allclose(read.squeeze("band"), result)
        with rioxarray.open_rasterio(path) as read:
            again = model.predict(read)["zinc"]
        assert again.dims == ("quantile", "band", "y", "x")
        np.testing.assert_allclose(again.isel(band=0), model.predict(target)["zinc"])

    def test_the_extent_of_the_data_is_not_that_of_the_map(self):
        """A field that was read from a GeoTIFF leaves its transform behind."""
        pytest.importorskip("rioxarray")
        field = raster(None).rio.write_crs(SWISS).rio.write_transform()
        field["zinc"] = (("y", "x"), np.exp(np.random.default_rng(0).normal(size=(4, 5))))
        assert "GeoTransform" in field["spatial_ref"].attrs
        model = xcopula.fit(field, "zinc", **OPTIONS)
        other = raster(None).isel(x=slice(1, 3))
        assert "GeoTransform" not in model.predict(other)["spatial_ref"].attrs
