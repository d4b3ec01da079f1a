"""The cells of a labelled target: coordinates, mask and fields, found and aligned."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from conftest import FIXED
from sources import stations
from strategies import raise_if_dask_computes

import xcopula
from xcopula.errors import CoordinateError, FieldError
from xcopula.prediction.target import find_cells, warn_of_lost_cells


@pytest.fixture(scope="module")
def metal(model):
    """The primary: its law is constant."""
    return model.variables[0], model.coordinates


@pytest.fixture(scope="module")
def proxy(fit_by):
    """A secondary whose law varies with height."""
    model = fit_by("full")
    return model.variables[1], model.coordinates


class TestCoordinates:
    def test_stand_in_the_order_of_the_axes_with_dims_of_the_result(self, grid, metal):
        """Each has the dims that it has; a grid is never written out."""
        cells = find_cells(grid, *metal)
        assert cells.dims == ("y", "x")
        assert cells.sizes == {"y": 6, "x": 7}
        x, y = cells.coordinates
        assert (x.dims, y.dims) == (("x",), ("y",))
        np.testing.assert_array_equal(x, grid["x"])
        np.testing.assert_array_equal(y, grid["y"])
        assert cells.mask.dims == ()
        assert bool(cells.mask)
        assert cells.fields == []

    def test_are_in_the_units_of_the_model(self, grid, metal):
        """Metres become the kilometres of the training data."""
        metres = grid.assign_coords(x=("x", 1000.0 * grid["x"].values, {"units": "m"}))
        np.testing.assert_allclose(find_cells(metres, *metal).coordinates[0], grid["x"])

    def test_curvilinear_ones_follow_the_order_of_dims(self, metal):
        """Two-dimensional coordinates in different orders are turned to one."""
        x, y = np.random.default_rng(0).uniform(0, 3, (2, 4, 5))
        target = xr.Dataset(
            {"land": (("i", "j"), np.ones((5, 4)))},
            coords={"x": (("j", "i"), x), "y": (("i", "j"), y.T)},
        )
        cells = find_cells(target, *metal)
        assert cells.dims == ("i", "j")
        np.testing.assert_array_equal(cells.coordinates[0], x.T)
        np.testing.assert_array_equal(cells.coordinates[1], y.T)

    def test_missing(self, grid, metal):
        """The coordinate that lacks is named."""
        with pytest.raises(CoordinateError, match="lacks the coordinate 'y'"):
            find_cells(grid.drop_vars("y"), *metal)

    def test_kept_are_those_on_the_dims_of_the_result(self, grid, metal):
        """Coordinates of other variables' dims go, and one of the variable's own name."""
        target = grid.assign_coords(zone=("y", np.arange(6)), run=("run", [1, 2]), metal=3.0)
        target = target.assign(other=("run", [0.0, 1.0]))
        assert set(find_cells(target, *metal).kept.coords) == {"x", "y", "zone"}

    def test_get_the_attributes_that_the_model_recognised(self, metal):
        """Bare coordinates have units and an axis in the result; the target stays bare."""
        bare = xr.Dataset(coords={"y": [0.5, 1.0], "x": [1.0, 2.0, 3.0]})
        kept = find_cells(bare, *metal).kept
        assert kept["x"].attrs == {
            "units": "km",
            "standard_name": "projection_x_coordinate",
            "axis": "X",
        }
        assert kept["y"].attrs["axis"] == "Y"
        assert bare["x"].attrs == bare["y"].attrs == {}

    def test_on_the_globe_too(self):
        """Longitude and latitude by their bare names; what a target states is not replaced."""
        model = xcopula.fit(stations(), "rain", marginals="lognormal", **FIXED)
        own = {"units": "degree_east", "long_name": "my longitude"}
        bare = xr.Dataset(coords={"lat": [45.0, 46.0], "lon": ("lon", [5.0, 6.0], own)})
        kept = find_cells(bare, model.variables[0], model.coordinates).kept
        assert kept["lat"].attrs == {
            "standard_name": "latitude",
            "units": "degrees_north",
            "axis": "Y",
        }
        assert kept["lon"].attrs == own | {"standard_name": "longitude", "axis": "X"}
        points = xr.Dataset(coords={"lat": ("p", [45.0]), "lon": ("p", [5.0])})
        assert "axis" not in model.predict(points)["lat"].attrs


class TestDimsBeyondTheModel:
    """A dim of the target is never dropped silently."""

    @pytest.mark.parametrize(
        "target",
        [
            pytest.param(lambda g: g.assign_coords(time=[1, 2]), id="a coordinate"),
            pytest.param(
                lambda g: g.assign_coords(time=[1, 2]).assign(
                    t2m=(("time", "y", "x"), np.zeros((2, 6, 7)))
                ),
                id="a field of all dims",
            ),
            pytest.param(
                lambda g: xr.DataArray(
                    np.zeros((2, 6, 7)), dims=("time", "y", "x"), coords=dict(g.coords)
                ),
                id="an array",
            ),
        ],
    )
    def test_several_entries_are_refused(self, grid, metal, target):
        """The dim is named, and what to do."""
        with pytest.raises(
            CoordinateError,
            match=r"dims \['time'\], which are no inputs.*isel\(time=0, drop=True\)",
        ):
            find_cells(target(grid), *metal)

    def test_the_variable_itself_says_which_dims_it_has(self, grid, metal):
        """Another variable of the data may have more."""
        both = grid.assign_coords(time=[1, 2]).assign(
            metal=(("y", "x"), np.zeros((6, 7))), t2m=(("time", "y", "x"), np.zeros((2, 6, 7)))
        )
        assert find_cells(both, *metal).dims == ("y", "x")

    def test_dims_of_bounds_and_of_earlier_results_are_none(self, model, grid, metal):
        """They have no coordinate, or one of the names that results have."""
        bounds = grid.assign(x_bounds=(("x", "nv"), np.zeros((7, 2))))
        assert find_cells(bounds, *metal).dims == ("y", "x")
        again = model.predict(model.predict(grid))
        xr.testing.assert_identical(again, model.predict(grid))

    @pytest.mark.parametrize("chunks", [None, 3])
    def test_one_entry_is_kept(self, model, grid, chunks):
        """A dim of length one stays a dim, with its coordinate, eagerly and lazily."""
        dated = grid.expand_dims(time=[7])
        array = xr.DataArray(np.zeros((1, 6, 7)), coords=dated.coords, dims=("time", "y", "x"))
        expected = model.predict(grid)["metal"]
        for target in (dated, array, dated.assign(f=array)):
            found = model.predict(target, chunks=chunks)["metal"]
            assert set(found.dims) == {"quantile", "time", "y", "x"}
            assert found["time"].values.tolist() == [7]
            flat = found.isel(time=0).transpose("quantile", "y", "x")
            np.testing.assert_allclose(flat, expected, rtol=1e-13)
        masked = model.predict(array, mask=grid["x"] > 1.0, chunks=chunks)["metal"]
        assert masked.dims == ("quantile", "time", "y", "x")
        assert int(masked.isnull().sum()) == 3 * 6 * int((grid["x"] <= 1.0).sum())

    def test_a_date_that_is_dropped_is_that_of_the_model(self):
        """Along its dim if it has one entry; a dim that counts cells has no labels."""
        when = np.datetime64("2020-03-01", "ns")
        x = np.arange(6.0)
        data = xr.Dataset({"v": (("time", "x"), np.sin(x)[None])}, {"time": [when], "x": x})
        model = xcopula.fit(data, "v", marginals="normal", **FIXED)
        found = model.predict(data.drop_vars("time"))["v"]
        assert found["time"].dims == ("time",)
        assert (found["time"].values == [when]).all()
        np.testing.assert_array_equal(found, model.predict(data)["v"])
        track = xr.Dataset(coords={"x": ("time", x)})
        assert "time" not in model.predict(track).coords


class TestMask:
    def test_by_name_or_given(self, grid, metal):
        """A mask has the order of dims of the result."""
        inside = grid["x"] + grid["y"] > 3.0  # (x, y)
        for cells in (
            find_cells(grid, *metal, mask=inside),
            find_cells(grid.assign_coords(inside=inside), *metal, mask="inside"),
        ):
            assert cells.mask.dims == ("y", "x")
            np.testing.assert_array_equal(cells.mask, inside.transpose("y", "x"))

    def test_may_be_lazy(self, grid, metal):
        """Nothing is computed to find it."""
        inside = (grid["x"] > 2.0).chunk(x=2)
        with raise_if_dask_computes():
            assert find_cells(grid, *metal, mask=inside).mask.chunks is not None

    @pytest.mark.parametrize(
        ("mask", "error", "match"),
        [
            ("land", ValueError, "no variable 'land' to use as a mask"),
            (
                np.ones(6, bool),
                TypeError,
                "A mask must be a DataArray or the name .* found ndarray",
            ),
            (xr.DataArray(1.0), ValueError, "A mask must be boolean, found dtype float64"),
            (xr.DataArray([True], dims="t"), ValueError, r"The mask has dims \['t'\]"),
        ],
    )
    def test_errors(self, grid, metal, mask, error, match):
        """A mask is boolean, labelled, and on dims of the target."""
        with pytest.raises(error, match=match):
            find_cells(grid, *metal, mask=mask)

    def test_at_other_places(self, grid, metal):
        """A mask that is not aligned with the target is an error, not a guess."""
        mask = xr.ones_like(grid["x"], dtype=bool)
        with pytest.raises(ValueError, match=r"The mask is not on .* 'x' it has other labels"):
            find_cells(grid, *metal, mask=mask.assign_coords(x=grid["x"] + 1.0))


class TestFields:
    def test_are_looked_for_only_where_the_law_varies(self, grid, sloped_grid, metal, proxy):
        """A constant law asks for none."""
        assert find_cells(sloped_grid, *metal).fields == []
        (height,) = find_cells(sloped_grid, *proxy).fields
        np.testing.assert_array_equal(height, sloped_grid["height"])
        with pytest.raises(FieldError, match=r"'proxy' varies with \['height'\], which the target"):
            find_cells(grid, *proxy)

    def test_in_other_units(self, sloped_grid, proxy):
        """Metres become the kilometres that the law knows."""
        metres = sloped_grid.assign(height=(1000.0 * sloped_grid["height"]).assign_attrs(units="m"))
        (height,) = find_cells(metres, *proxy).fields
        np.testing.assert_allclose(height, sloped_grid["height"])

    def test_of_more_dims_than_the_target(self, sloped_grid, proxy):
        """The dims that are too many are named."""
        many = sloped_grid.assign(height=sloped_grid["height"].expand_dims(run=2))
        with pytest.raises(
            FieldError, match=r"has dims \['run'\] that the coordinates of the target do not"
        ):
            find_cells(many, *proxy)


def test_a_query_has_the_arrays_with_their_dims(sloped_grid, proxy):
    """What blocks compute with: coordinates, then the mask; fields apart."""
    cells = find_cells(sloped_grid, *proxy, mask=sloped_grid["x"] > 1.0)
    query = cells.query(None, 1, nugget=False)
    assert query.dims == ("y", "x")
    assert query.index == [("x",), ("y",), ("x",)]
    assert query.field_index == [("y", "x")]
    assert (query.task, query.nugget) == (1, False)
    assert [np.shape(a) for a in query.arrays] == [(7,), (6,), (7,)]


class TestLostCells:
    def curvilinear(self, lost: int) -> list[xr.DataArray]:
        """Return two-dimensional coordinates with some NaN."""
        values = np.ones((3, 4))
        values.flat[:lost] = np.nan
        return [xr.DataArray(v, dims=("j", "i"), name=n) for n, v in (("x", values), ("y", values))]

    def test_are_counted_once(self):
        """The first coordinate with gaps is named, at the caller's line."""
        with pytest.warns(
            UserWarning, match=r"5 of 12 cells .* coordinate 'x' that is NaN"
        ) as seen:
            warn_of_lost_cells(self.curvilinear(5))
        assert len(seen) == 1
        assert seen[0].filename == __file__

    def test_nothing_is_said_where_nothing_is_lost_or_known(self, recwarn):
        """Whole coordinates, those of one dim, and lazy ones."""
        warn_of_lost_cells(self.curvilinear(0))
        warn_of_lost_cells([xr.DataArray([np.nan, 1.0], dims="p", name="x")])
        with raise_if_dask_computes():
            warn_of_lost_cells([c.chunk(i=2) for c in self.curvilinear(3)])
        assert not recwarn
