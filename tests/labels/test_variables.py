"""The variables of a model, with the coordinates and fields they need; nothing is computed."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from sources import EAST, NORTH, TEN, dataset
from strategies import raise_if_dask_computes

from xcopula.labels.variables import (
    is_lazy,
    pick,
    wanted,
    with_fields,
    without_idle,
)
from xcopula.marginals import Gamma, Normal, by, regress


class TestPick:
    def test_variables_in_the_order_they_were_asked_for(self, sites):
        """From a Dataset and from a mapping."""
        for data in (sites, {n: sites[n] for n in ("metal", "proxy")}):
            found = pick(data, ["proxy", "metal"])
            assert list(found) == ["proxy", "metal"]
            xr.testing.assert_identical(found["metal"], sites["metal"])

    def test_a_table_has_its_coordinates_among_the_variables(self):
        """Columns known by name are attached, in pairs; others are not."""
        table = xr.Dataset(dict.fromkeys(("v", "lon", "lat", "latent_heat", "depth"), ("row", TEN)))
        assert set(pick(table, ["v"])["v"].coords) == {"lon", "lat"}
        assert set(pick(table.drop_vars("lat"), ["v"])["v"].coords) == set()

    def test_columns_that_were_asked_for(self):
        """Names in ``coords`` are attached, whatever they are."""
        table = xr.Dataset(dict.fromkeys(("v", "lon", "lat", "depth", "name"), ("row", TEN)))
        found = pick(table, ["v"], ["depth", "name"])["v"]
        assert set(found.coords) == {"depth", "name"}

    def test_what_the_coordinates_have_is_not_looked_for_among_variables(self):
        """A plane in units of length comes before columns of degrees."""
        data = dataset({"x": {"units": "km"}, "y": {"units": "km"}}, x=TEN, y=TEN[::-1])
        data = data.assign(lon=("site", TEN), lat=("site", TEN))
        assert set(pick(data, ["v"])["v"].coords) == {"x", "y"}

    def test_columns_on_other_dims_are_not_attached(self):
        """A grid's coordinates do not fit a table of stations."""
        table = xr.Dataset({"v": ("row", TEN), "lon": ("column", TEN), "lat": ("column", TEN)})
        assert not pick(table, ["v"])["v"].coords

    def test_the_grid_mapping_comes_along(self):
        """As a coordinate, also where decoding moved the reference to the encoding."""
        crs = {"grid_mapping_name": "transverse_mercator"}
        data = dataset(x=TEN, y=TEN).assign(crs=((), 0, crs))
        stated = data.assign(v=data["v"].assign_attrs(grid_mapping="crs"))
        moved = data.copy()
        moved["v"].encoding["grid_mapping"] = "crs"
        for source in (stated, moved):
            found = pick(source, ["v"])["v"]
            assert found["crs"].attrs == crs
            assert found.attrs["grid_mapping"] == "crs"
        assert "grid_mapping" not in moved["v"].attrs

    def test_a_grid_mapping_that_is_lost(self):
        """Is warned of where the caller stands."""
        data = dataset(x=TEN, y=TEN)
        data = data.assign(v=data["v"].assign_attrs(grid_mapping="crs"))
        with pytest.warns(UserWarning, match="refers to the grid mapping 'crs'") as seen:
            pick(data, ["v"])
        assert seen[0].filename == __file__

    def test_computes_nothing(self, sites):
        """Lazy variables stay lazy."""
        with raise_if_dask_computes():
            assert pick(sites.chunk(site=7), ["metal"])["metal"].chunks is not None


class TestFields:
    def test_what_a_law_wants(self):
        """Fields and keys of recipes; nothing of constant laws."""
        assert wanted(None) == wanted(Gamma) == wanted(Normal()) == ((), ())
        assert wanted(regress("gamma", on=["h", "s"])) == (("h", "s"), ())
        law = by("time.month", regress("normal", on="h"))
        assert wanted(law) == (("time.month", "h"), ("time.month",))

    def test_are_attached_to_the_variable_whose_law_varies(self, sites):
        """Others stay as they are."""
        data = sites.assign(h=("site", np.arange(60.0)))
        arrays = pick(data, ["metal", "proxy"])
        found = with_fields(arrays, [None, regress("normal", on="h")], data)
        assert "h" not in found["metal"].coords
        np.testing.assert_array_equal(found["proxy"]["h"], np.arange(60.0))


class TestLazy:
    def test_a_lazy_variable_or_coordinate(self, sites):
        """Either makes a variable lazy."""
        assert not is_lazy(sites["metal"])
        assert is_lazy(sites["metal"].chunk(site=7))
        assert is_lazy(sites["metal"].assign_coords(x=sites["x"].chunk(site=7)))

    def test_idle_coordinates_are_dropped(self):
        """A lazy coordinate that is neither input nor field is never computed."""
        data = dataset({"lon": EAST, "lat": NORTH}, lon=TEN, lat=TEN, quality=TEN, h=TEN).chunk()
        array = data["v"]
        assert set(without_idle(array, None, []).coords) == {"lon", "lat"}
        assert set(without_idle(array, None, ["h"]).coords) == {"lon", "lat", "h"}
        asked = without_idle(array, {"space": ["lon", "lat"], "q": "quality"}, [])
        assert {"lon", "lat", "quality"} <= set(asked.coords)
        assert "h" not in asked.coords

    def test_an_only_coordinate_may_be_the_input(self):
        """Where no role is known, nothing is dropped."""
        array = xr.DataArray(TEN, dims="p", coords={"s": ("p", TEN)}).chunk()
        assert set(without_idle(array, None, []).coords) == {"s"}
