"""Predictions on labelled targets: shapes, labels, values, and lazy equal to eager."""

from __future__ import annotations

import dataclasses

import cloudpickle
import dask
import numpy as np
import pytest
import reference
import xarray as xr
from conftest import METHODS
from hypothesis import given, settings
from scipy.special import ndtri
from strategies import chunked_grids, count_computes, raise_if_dask_computes

import xcopula
from xcopula.errors import CoordinateError, FieldError
from xcopula.methods import Full
from xcopula.process import Process

QUANTILES = (0.05, 0.5, 0.95)
FIXED = {"method": "full", "kernels": "matern32", "restarts": 0}


def values_at(model, x, y, quantiles=QUANTILES) -> np.ndarray:
    """Predict at bare points, as a plain array (quantile, point)."""
    target = xr.Dataset(coords={"x": ("point", np.ravel(x)), "y": ("point", np.ravel(y))})
    return model.predict(target, quantiles)["metal"].values


class TestTargets:
    def test_grid(self, model, grid):
        """A grid gives (quantile, y, x), cell by cell the same as scattered points."""
        out = model.predict(grid)
        assert list(out.data_vars) == ["metal"]
        assert out["metal"].dims == ("quantile", "y", "x")
        assert out["metal"].dtype == np.float64
        x, y = np.meshgrid(grid["x"], grid["y"])
        np.testing.assert_allclose(
            out["metal"].values.reshape(3, -1), values_at(model, x, y), rtol=1e-12
        )

    def test_the_order_of_dims_is_the_target_s(self, model, grid):
        """Dims come back in the order of the target's variables, or else of its coordinates."""
        turned = grid.assign(land=(("x", "y"), np.ones((7, 6))))
        assert model.predict(turned, 0.5)["metal"].dims == ("x", "y")
        assert model.predict(turned["land"], 0.5)["metal"].dims == ("x", "y")
        xr.testing.assert_allclose(
            model.predict(turned, 0.5)["metal"].transpose("y", "x"),
            model.predict(grid, 0.5)["metal"],
            rtol=1e-12,
        )

    def test_dims_without_part_in_the_coordinates_are_left_out(self, model, grid):
        """A time dimension of the target that the model does not know makes no difference."""
        longer = grid.assign(cover=(("time", "y", "x"), np.ones((3, 6, 7))))
        assert model.predict(longer, 0.5)["metal"].dims == ("y", "x")

    def test_scattered_points(self, model, sites):
        """Points on one dim give one dim."""
        assert model.predict(sites)["metal"].dims == ("quantile", "site")

    def test_single_point(self, model, grid):
        """Scalar coordinates give a scalar for each quantile."""
        point = grid.isel(x=2, y=3)
        out = model.predict(point)["metal"]
        assert out.dims == ("quantile",)
        assert model.predict(point, 0.5)["metal"].shape == ()
        np.testing.assert_allclose(out, model.predict(grid)["metal"].isel(x=2, y=3), rtol=1e-12)

    def test_a_section_mixes_scalar_and_vector_coordinates(self, model, grid):
        """A row of a grid is a target too."""
        row = model.predict(grid.isel(y=1))["metal"]
        assert row.dims == ("quantile", "x")
        assert float(row["y"]) == float(grid["y"][1])

    def test_curvilinear(self, model, grid):
        """Two-dimensional coordinates are read cell by cell."""
        x, y = np.meshgrid(grid["x"], grid["y"])
        x, y = x + 0.1 * y, y - 0.05 * x
        target = xr.Dataset(coords={"x": (("j", "i"), x), "y": (("j", "i"), y)})
        out = model.predict(target)["metal"]
        assert out.dims == ("quantile", "j", "i")
        np.testing.assert_allclose(out.values.reshape(3, -1), values_at(model, x, y), rtol=1e-12)

    def test_stacked(self, model, grid):
        """A stacked grid keeps its MultiIndex, so that it can be unstacked."""
        out = model.predict(grid.stack(cell=("y", "x")), 0.5)
        xr.testing.assert_allclose(
            out.unstack()["metal"].drop_attrs(), model.predict(grid, 0.5)["metal"].drop_attrs()
        )

    def test_empty(self, model, grid):
        """No cells give no values, and no error."""
        assert model.predict(grid.isel(x=slice(0)))["metal"].shape == (3, 6, 0)

    def test_nan_coordinates_are_nan(self, model):
        """A cell without a place has no prediction; its neighbours do."""
        target = xr.Dataset(
            coords={"x": ("p", [1.0, np.nan, 2.0, np.inf]), "y": ("p", [1.0, 1.0, np.nan, 1.0])}
        )
        found = np.isfinite(model.predict(target)["metal"].values)
        assert found.tolist() == [[True, False, False, False]] * 3

    @pytest.mark.parametrize("dtype", ["f4", ">f8", "i8"])
    def test_any_numeric_dtype_of_coordinates(self, model, dtype):
        """Coordinates of other dtypes are converted."""
        x = np.array([1, 2, 3], dtype)
        target = xr.Dataset(coords={"x": ("p", x), "y": ("p", x)})
        np.testing.assert_allclose(
            model.predict(target)["metal"], values_at(model, [1, 2, 3], [1, 2, 3]), rtol=1e-12
        )


class TestLabels:
    def test_attributes_of_the_primary_come_back(self, model, grid):
        """Units and names are carried over, the history of the data is not."""
        assert model.predict(grid)["metal"].attrs == {
            "units": "mg kg-1",
            "long_name": "metal in topsoil",
            "standard_name": "metal",
        }

    def test_coordinates_come_back_unchanged(self, model, grid):
        """Auxiliary and scalar coordinates and their attributes survive; inputs get CF's."""
        target = grid.assign_coords(
            zone=(("y", "x"), np.arange(42).reshape(6, 7), {"long_name": "zone"}),
            name=("y", list("abcdef")),
            height=2.0,
        )
        out = model.predict(target)["metal"]
        for name in ("zone", "name", "height"):
            xr.testing.assert_equal(out[name], target[name])
            assert out[name].attrs == target[name].attrs
        for name in ("x", "y"):
            xr.testing.assert_equal(out[name], target[name])
            assert out[name].attrs == {
                "units": "km",
                "standard_name": f"projection_{name}_coordinate",
                "axis": name.upper(),
            }

    def test_quantile_coordinate(self, model, grid):
        """A sequence gives a first dim, a number a scalar coordinate, with its attributes."""
        out = model.predict(grid, [0.9, 0.1])["metal"]
        assert out["quantile"].values.tolist() == [0.9, 0.1]
        assert out["quantile"].attrs == {"long_name": "quantile level", "units": "1"}
        one = model.predict(grid, 0.1)["metal"]
        assert one.dims == ("y", "x")
        assert float(one["quantile"]) == 0.1
        xr.testing.assert_identical(one, out.sel(quantile=0.1))

    def test_function_method_and_accessor_agree(self, model, grid):
        """Three doors, one result."""
        by_function = xcopula.predict(model, grid, 0.3, of="signal")
        xr.testing.assert_identical(by_function, model.predict(grid, 0.3, of="signal"))
        xr.testing.assert_identical(by_function, grid.mtcopula.predict(model, 0.3, of="signal"))

    def test_the_target_is_left_alone(self, model, grid):
        """Predicting does not change the target."""
        before = grid.copy(deep=True)
        model.predict(grid)
        xr.testing.assert_identical(grid, before)


class TestValues:
    def test_quantiles_do_not_cross(self, model, grid):
        """More probability, higher value, everywhere."""
        levels = np.concatenate([[1e-6, 1e-3], np.linspace(0.01, 0.99, 25), [1 - 1e-6]])
        assert (model.predict(grid, levels)["metal"].diff("quantile") > 0).all()

    def test_an_observed_site_returns_its_datum(self, model, sites):
        """What would be observed again at a site is what was observed."""
        out = model.predict(sites)["metal"].isel(site=slice(40))
        datum = sites["metal"].isel(site=slice(40))
        np.testing.assert_allclose(out.sel(quantile=0.5), datum, rtol=1e-8)
        np.testing.assert_allclose(out.sel(quantile=0.95), datum, rtol=1e-5)

    def test_the_signal_is_smoother_and_surer(self, model, sites, grid):
        """Without the nugget the data are smoothed, and the intervals narrower."""
        seen = sites.isel(site=slice(40))
        signal = np.log(model.predict(seen, 0.5, of="signal")["metal"])
        assert float(abs(signal - np.log(seen["metal"])).max()) > 0.01
        assert float(signal.std()) < float(np.log(seen["metal"]).std())
        observation, signal = (
            model.posterior(grid, of=of).latent for of in ("observation", "signal")
        )
        np.testing.assert_allclose(observation["mean"], signal["mean"], rtol=1e-10, atol=1e-12)
        nugget = float(model.parameters["nugget"][0])
        np.testing.assert_allclose(observation["std"] ** 2 - signal["std"] ** 2, nugget)

    def test_far_away_is_the_marginal_law(self, model):
        """Beyond the reach of the data the prediction is the law of the variable."""
        far = values_at(model, [4000.0], [3000.0])[:, 0]
        law = model.marginals[0]
        np.testing.assert_allclose(far, law.from_normal(np.array([-1, 0, 1]) * 1.6448536269514722))

    def test_the_secondary_informs(self, model, alone, sites):
        """Where the metal is unknown and the proxy known, the posterior is narrower."""
        hidden = sites.isel(site=slice(40, None))
        wide, narrow = (float(m.posterior(hidden).latent["std"].mean()) for m in (alone, model))
        assert narrow < wide


class TestMask:
    @pytest.fixture
    def inside(self, grid):
        """A checkerboard."""
        return (grid["x"].round(3) * 10 + grid["y"].round(3) * 10).astype(int) % 2 == 0

    @pytest.mark.parametrize("lazy", [False, True])
    def test_nan_outside_and_the_same_inside(self, model, grid, inside, lazy):
        """A mask, given or by name, blanks cells and changes no other."""
        chunks = {"x": 3, "y": 4} if lazy else None
        whole = model.predict(grid)["metal"].where(inside)
        assert inside.any()
        assert not inside.all()
        given = model.predict(grid, mask=inside, chunks=chunks)["metal"]
        xr.testing.assert_allclose(given, whole, rtol=1e-12)
        named = model.predict(grid.assign(inside=inside), mask="inside", chunks=chunks)["metal"]
        xr.testing.assert_allclose(named, whole.transpose(*named.dims), rtol=1e-12)

    def test_masked_cells_cost_nothing(self, model, grid, monkeypatch):
        """The conditioned model sees only the cells that are asked for."""
        seen = []
        moments = type(model.conditioned).moments

        def spy(self, targets, **options):
            seen.append(targets.size)
            return moments(self, targets, **options)

        monkeypatch.setattr(type(model.conditioned), "moments", spy)
        east = grid["x"] > 2.0
        model.predict(grid, mask=east)
        model.predict(grid, mask=east & False)
        assert seen == [6 * int(east.sum())]

    def test_errors(self, model, grid):
        """A mask is boolean, labelled, on the target's dims, and aligned with it."""
        with pytest.raises(ValueError, match="A mask must be boolean, found dtype int64"):
            model.predict(grid, mask=xr.ones_like(grid["x"], dtype=int))
        with pytest.raises(ValueError, match="no variable 'land' to use as a mask"):
            model.predict(grid, mask="land")
        with pytest.raises(
            TypeError, match=r"A mask must be a DataArray or the name .* found ndarray"
        ):
            model.predict(grid, mask=np.ones((6, 7), bool))
        with pytest.raises(ValueError, match=r"The mask has dims \['time'\]"):
            model.predict(grid, mask=xr.DataArray([True, False], dims="time"))
        with pytest.raises(ValueError, match=r"The mask is not on .* 'x' it has 4 entries"):
            model.predict(grid, mask=xr.DataArray([True] * 4, dims="x"))
        with pytest.raises(ValueError, match=r"The mask is not on .* 'x' it has other labels"):
            model.predict(grid, mask=(grid["x"] > 1.0).assign_coords(x=grid["x"] + 1.0))


class TestGaps:
    """A field with gaps is its own target."""

    @pytest.fixture(scope="class", params=["axes", "cells"])
    @classmethod
    def cloudy(cls, request):
        """A field of 3 days with clouds, on axes or on a swath with places of its own."""
        rng = np.random.default_rng(3)
        y, x = np.meshgrid(np.arange(7.0), np.arange(9.0), indexing="ij")
        days = np.arange(3) * np.timedelta64(1, "D") + np.datetime64("2001-07-01", "ns")
        level = np.sin(y / 3.0) + np.cos(x / 4.0) + rng.normal(scale=0.1, size=(3, 7, 9))
        level[np.hypot(y - 3.0, x - 4.0) < rng.uniform(1.0, 3.0, (3, 1, 1))] = np.nan
        dims = ("time", "y", "x")
        data = xr.Dataset({"level": (dims, level, {"units": "K"})}, coords={"time": days})
        if request.param == "axes":
            return data.assign_coords(
                y=("y", y[:, 0], {"units": "km"}), x=("x", x[0], {"units": "km"})
            )
        km = {"units": "km"}
        data = data.rename(y="line", x="pixel")
        return data.assign_coords(
            u=(("line", "pixel"), x + 0.1 * y, km | {"axis": "X"}),
            v=(("line", "pixel"), y - 0.1 * x, km | {"axis": "Y"}),
        )

    def test_are_filled_from_one_call(self, cloudy):
        """Chunk by chunk, nothing computed before it is asked; what was seen comes back."""
        rows, columns = cloudy["level"].dims[1:]
        lazy = cloudy.chunk({"time": 2, rows: 3, columns: 4})
        if "u" in lazy.coords:
            lazy["u"] = cloudy["u"].chunk({columns: 5})  # chunks need not agree
        model = xcopula.fit(lazy, "level", kernels="matern32", marginals="normal", restarts=0)
        with raise_if_dask_computes():
            filled = lazy.mtcopula.predict(model, 0.5)["level"]
            bounds = model.predict(lazy, [0.05, 0.95])["level"]
        assert filled.chunks is not None
        filled, seen = filled.compute(), cloudy["level"].notnull()
        assert 0.2 < float(seen.mean()) < 0.98
        assert filled.dims == cloudy["level"].dims
        assert filled.notnull().all()
        np.testing.assert_allclose(
            filled.where(seen), cloudy["level"].where(seen), rtol=0.0, atol=1e-12
        )
        width = bounds.compute().diff("quantile").squeeze("quantile", drop=True)
        np.testing.assert_allclose(width.where(seen, 0.0), 0.0, atol=1e-12)
        assert (width.where(~seen, 1.0) > 0.05).all()
        xr.testing.assert_allclose(filled, model.predict(cloudy, 0.5)["level"], rtol=1e-12)

    def test_the_whole_chain_is_lazy(self, cloudy):
        """Fit and filling are one graph."""
        lazy = cloudy.chunk({cloudy["level"].dims[1]: 3})
        options = {"kernels": "matern32", "marginals": "normal", "restarts": 0}
        with raise_if_dask_computes():
            model = xcopula.fit(lazy, "level", compute=False, **options)
            filled = model.predict(lazy, 0.5)["level"]
        expected = xcopula.fit(cloudy, "level", **options).predict(cloudy, 0.5)["level"]
        xr.testing.assert_allclose(filled.compute(), expected, rtol=1e-12)


class TestErrors:
    @pytest.mark.parametrize(
        "quantiles", [0.0, 1.0, -0.1, 95, [0.5, 1.0], [], np.nan, [[0.5]], True]
    )
    def test_quantiles(self, model, grid, quantiles):
        """Levels lie strictly between 0 and 1, and there is at least one."""
        with pytest.raises(ValueError, match=r"strictly between 0 and 1, found.*Give fractions"):
            model.predict(grid, quantiles)

    @pytest.mark.parametrize("of", ["signals", None, 3])
    def test_of(self, model, grid, of):
        """What is predicted is one of two."""
        with pytest.raises(ValueError, match=r"`of` must be one of \('observation', 'signal'\)"):
            model.predict(grid, of=of)

    @pytest.mark.parametrize("target", [None, [1.0], np.ones(3), {"x": [1.0]}])
    def test_target_of_a_wrong_type(self, model, target):
        """A target is labelled."""
        with pytest.raises(
            TypeError, match="The target must be a Dataset, DataArray or DataFrame, found"
        ):
            model.predict(target)

    def test_target_without_a_coordinate_or_in_other_units(self, model, grid):
        """The missing coordinate and the wrong units are named."""
        with pytest.raises(CoordinateError, match=r"lacks the coordinate 'y'.*coords \['x'\]"):
            model.predict(grid.drop_dims("y").drop_vars("y", errors="ignore"))
        pressure = grid.assign_coords(x=grid["x"].assign_attrs(units="hPa"))
        with pytest.raises(
            CoordinateError, match="'x' is in 'hPa', the training data had 'x' in 'km'"
        ):
            model.predict(pressure)

    def test_chunks_of_a_stranger(self, model, grid):
        """Chunks name dims of the result."""
        with pytest.raises(ValueError, match=r"`chunks` names \['time'\], but .*dims \['y', 'x'\]"):
            model.predict(grid, chunks={"time": 2})


class TestLazy:
    @given(drawn=chunked_grids())
    @settings(max_examples=40, deadline=None)
    @pytest.mark.filterwarnings("ignore:.* cells of the target have a coordinate:UserWarning")
    def test_any_chunking_equals_memory(self, model, drawn):
        """Grids, points and curvilinear targets, cut anywhere, equal the result in memory."""
        target, chunks = drawn
        eager = model.predict(target)
        lazy = model.predict(target, chunks=chunks)
        assert dict(lazy.chunksizes) == {"quantile": (3,), **chunks}
        xr.testing.assert_allclose(lazy.compute(), eager, rtol=1e-12, atol=0.0)
        assert lazy["metal"].dims == eager["metal"].dims
        assert lazy["metal"].attrs == eager["metal"].attrs

    def test_building_computes_nothing(self, model, grid):
        """Every result of a posterior can be described without computing a block."""
        lazy_mask = (grid["x"] + grid["y"] > 3.0).chunk(x=2)
        with raise_if_dask_computes():
            posterior = model.posterior(grid, chunks=3, mask=lazy_mask)
            results = [
                posterior.quantile([0.1, 0.9]),
                posterior.median(),
                posterior.mean(),
                posterior.std(),
                posterior.interval(),
                posterior.cdf([1.0, 2.0]),
                posterior.exceedance(2.0),
                *posterior.latent.values(),
            ]
            repr(posterior)
        assert all(r.chunks is not None for r in results)

    def test_building_does_not_factorise(self, sites, grid):
        """A model whose factor is not there yet stays so until something is computed."""
        fresh = xcopula.fit(sites, "metal", marginals="lognormal", **FIXED)
        for name in ("conditioned", "structure"):
            fresh.__dict__.pop(name, None)
        lazy = fresh.predict(grid, chunks=3)
        assert not {"conditioned", "structure"} & set(fresh.__dict__)
        lazy.compute(scheduler="sync")
        assert "conditioned" in fresh.__dict__

    def test_a_chunked_target_gives_a_lazy_result(self, model, grid):
        """The result follows the chunks of the target's variables without being asked."""
        target = grid.assign(land=(("y", "x"), np.ones((6, 7)))).chunk(y=2, x=4)
        with raise_if_dask_computes():
            out = model.predict(target)["metal"]
        assert out.chunksizes == {"quantile": (3,), "y": (2, 2, 2), "x": (4, 3)}
        xr.testing.assert_allclose(out.compute(), model.predict(grid)["metal"], rtol=1e-12)

    def test_a_target_of_lazy_coordinates(self, model):
        """Curvilinear coordinates may be dask arrays themselves."""
        rng = np.random.default_rng(0)
        target = xr.Dataset(coords={n: (("j", "i"), rng.uniform(0, 3, (5, 6))) for n in ("x", "y")})
        with raise_if_dask_computes():
            out = model.predict(target.chunk(j=2))["metal"]
        xr.testing.assert_allclose(out.compute(), model.predict(target)["metal"], rtol=1e-12)

    def test_chunks_override_the_target_s(self, model, grid):
        """Chunks that are given win; dims that they leave out follow the target."""
        target = grid.assign(land=(("y", "x"), np.ones((6, 7)))).chunk(y=2, x=4)
        out = model.predict(target, chunks={"y": 6})["metal"]
        assert out.chunksizes == {"quantile": (3,), "y": (6,), "x": (4, 3)}

    @pytest.mark.parametrize("chunks", [3, "auto", -1, {"x": 2}, {"x": "auto", "y": (5, 1)}])
    def test_every_form_of_chunks(self, model, grid, chunks):
        """Whatever dask takes for chunks is taken, and makes the result lazy."""
        out = model.predict(grid, chunks=chunks)["metal"]
        assert out.chunks is not None
        xr.testing.assert_allclose(out.compute(), model.predict(grid)["metal"], rtol=1e-12)

    def test_one_compute_for_one_result(self, model, grid):
        """Computing a result asks the scheduler once."""
        lazy = model.predict(grid, chunks=2)
        with count_computes() as scheduler:
            lazy.compute()
        assert scheduler.computes == 1

    @pytest.mark.parametrize("scheduler", ["threads", "processes"])
    def test_schedulers(self, model, grid, scheduler):
        """Threads and processes give the result in memory."""
        lazy = model.predict(grid, chunks={"x": 4, "y": 3})
        out = lazy.compute(scheduler=scheduler, num_workers=2)
        xr.testing.assert_allclose(out, model.predict(grid), rtol=1e-12)


class TestAnyVariable:
    """Every variable of a model can be asked for, by every method."""

    @pytest.mark.parametrize("method", METHODS)
    def test_name_units_and_attributes_are_its_own(self, fit_by, sloped_grid, method):
        """The result carries what the secondary had, but for its history."""
        out = fit_by(method).predict(sloped_grid, variable="proxy")
        assert list(out.data_vars) == ["proxy"]
        assert out["proxy"].dims == ("quantile", "y", "x")
        assert out["proxy"].attrs == {"units": "1", "long_name": "a proxy"}
        assert np.isfinite(out["proxy"]).all()
        assert (out["proxy"].diff("quantile") > 0).all()

    @pytest.mark.parametrize("method", METHODS)
    def test_the_primary_by_name_is_the_default(self, fit_by, grid, method):
        """To name the primary changes nothing."""
        model = fit_by(method)
        xr.testing.assert_identical(model.predict(grid, variable="metal"), model.predict(grid))

    @pytest.mark.parametrize("of", ["observation", "signal"])
    @pytest.mark.parametrize("method", METHODS)
    def test_values_are_those_of_its_own_law(self, fit_by, sloped, sloped_grid, method, of):
        """The secondary's law at each cell's height, around its own latent moments."""
        model = fit_by(method)
        posterior = model.posterior(sloped_grid, variable="proxy", of=of)
        latent = posterior.latent
        other = model.posterior(sloped_grid, of=of).latent
        assert float(abs(latent["mean"] - other["mean"]).max()) > 0.05
        p = model.marginals[1].parameters
        rise = sloped_grid["height"].transpose("y", "x") - float(sloped["height"].mean())
        centre = p["location"] + p["height"] * rise + p["scale"] * latent["mean"]
        width = p["scale"] * latent["std"]
        for q in (0.05, 0.5, 0.9):
            expected = centre + ndtri(q) * width
            np.testing.assert_allclose(posterior.quantile(q), expected, rtol=1e-9)
        np.testing.assert_allclose(posterior.mean(), centre, rtol=1e-8)
        np.testing.assert_allclose(posterior.std(), width, rtol=1e-5)

    @pytest.mark.parametrize("method", METHODS)
    def test_fields_are_needed_where_its_law_varies(self, fit_by, grid, sloped_grid, method):
        """The primary's law is constant: its target needs no height, the proxy's does."""
        model = fit_by(method)
        xr.testing.assert_identical(
            model.predict(grid)["metal"], model.predict(sloped_grid)["metal"]
        )
        with pytest.raises(FieldError, match=r"'proxy' varies with \['height'\], which the target"):
            model.predict(grid, variable="proxy")

    @pytest.mark.parametrize("method", METHODS)
    def test_lazy_equals_eager(self, fit_by, sloped_grid, method):
        """In blocks, with a lazy field or not, the same to 1e-10."""
        model = fit_by(method)
        eager = model.predict(sloped_grid, variable="proxy")
        with raise_if_dask_computes():
            cut = model.predict(sloped_grid, variable="proxy", chunks={"x": 3, "y": 4})
            follows = model.predict(sloped_grid.chunk(x=2), variable="proxy")
        for lazy in (cut, follows):
            assert lazy["proxy"].chunks is not None
            assert lazy["proxy"].attrs == eager["proxy"].attrs
            xr.testing.assert_allclose(lazy.compute(), eager, rtol=1e-10)

    @pytest.mark.parametrize("method", METHODS)
    def test_at_its_sites_it_is_the_datum(self, fit_by, sloped, method):
        """What was observed comes back, the signal is smoother."""
        model = fit_by(method)
        out = model.predict(sloped, variable="proxy")["proxy"]
        np.testing.assert_allclose(out.sel(quantile=0.5), sloped["proxy"], rtol=1e-6)
        np.testing.assert_allclose(out.sel(quantile=0.95), sloped["proxy"], rtol=1e-4)
        signal = model.predict(sloped, 0.5, variable="proxy", of="signal")["proxy"]
        assert float(abs(signal - sloped["proxy"]).max()) > 0.05

    @pytest.mark.parametrize("method", METHODS)
    def test_a_mask_and_every_door(self, fit_by, sloped_grid, method):
        """Function, method and accessor take the variable, and a mask with it."""
        model = fit_by(method)
        west = sloped_grid["x"] < 2.0
        out = xcopula.predict(model, sloped_grid, 0.5, variable="proxy", mask=west)
        np.testing.assert_array_equal(out["proxy"].isnull().all("y"), ~west)
        options = {"variable": "proxy", "mask": west}
        xr.testing.assert_identical(model.predict(sloped_grid, 0.5, **options), out)
        xr.testing.assert_identical(sloped_grid.mtcopula.predict(model, 0.5, **options), out)

    @pytest.mark.parametrize("variable", ["lead", "", 1, "height"])
    def test_an_unknown_one_is_an_error_that_lists_what_there_is(self, model, grid, variable):
        """Neither a stranger nor a field of a law is a variable."""
        for ask in (model.predict, model.posterior):
            with pytest.raises(
                KeyError, match=rf"no variable {variable!r}; it has \['metal', 'proxy'\]"
            ):
                ask(grid, variable=variable)

    @pytest.mark.parametrize("of", ["observation", "signal"])
    @pytest.mark.parametrize("task", [0, 1])
    @pytest.mark.parametrize("method", ["full", "transductive"])
    def test_is_the_conditional_of_the_definition(self, fit_by, sloped, grid, method, task, of):
        """Latent moments from the covariance written out entry by entry, at cells and sites."""
        model = fit_by(method)
        sample, covariance = model.observations.sample, model.process.covariance
        places = xr.Dataset(
            coords={
                "x": ("p", np.r_[grid["x"].values[:3], sloped["x"].values[45:48]]),
                "y": ("p", np.r_[grid["y"].values[:3], sloped["y"].values[45:48]]),
                "height": ("p", np.ones(6), {"units": "km"}),
            }
        )
        points = model.coordinates.to_columns([places["x"].values, places["y"].values]).T
        points[3:] = sample.inputs[:, 40 + 45 : 40 + 48].T  # to the last bit
        data = [sample.inputs[:, sample.task(i)].T for i in range(2)]
        theta = model.theta[: covariance.size]
        rows = [np.vstack([x, points]) if i == task else x for i, x in enumerate(data)]
        matrix = reference.covariance_matrix(covariance, theta, rows)
        new = np.arange(6) + len(np.concatenate(data[: task + 1]))
        old = np.setdiff1d(np.arange(len(matrix)), new)
        cross = matrix[np.ix_(old, new)].copy()
        prior = np.diagonal(matrix)[new].copy()
        *_, nugget = reference.task_matrices(covariance, theta)
        if of == "signal":
            task_of = np.repeat([0, 1], [len(x) for x in data])
            for k in (3, 4, 5):  # sites, where the data share the nugget
                at = np.flatnonzero((np.vstack(data) == points[k]).all(axis=1))
                cross[at, k] -= nugget[task_of[at], task]
            prior -= nugget[task, task]
        z = np.concatenate([model.loo(name)["score"] for name in model.tasks])
        weights = np.linalg.solve(matrix[np.ix_(old, old)], cross)
        variance = prior - (weights * cross).sum(axis=0)
        latent = model.posterior(places, variable=model.tasks[task], of=of).latent
        np.testing.assert_allclose(latent["mean"], z @ weights, atol=1e-6)
        np.testing.assert_allclose(latent["std"] ** 2, variance, atol=1e-6)

    @pytest.mark.parametrize("method", ["full", "dtc", "fitc", "pitc", "cokriging"])
    def test_roles_may_be_exchanged(self, fit_by, sloped_grid, method):
        """A symmetric method does not know which variable is the primary."""
        model = fit_by(method)
        covariance, seen = model.process.covariance, model.observations
        cut = seen.sample.offsets[1]
        swapped = dataclasses.replace(
            seen,
            variables=seen.variables[::-1],
            positions=np.concatenate([seen.positions[cut:], seen.positions[:cut]]),
            sample=seen.sample.select([1, 0]),
            origins=seen.origins[::-1],
        )
        theta = model.theta[: covariance.size].copy()
        logit = covariance.part(theta, "logit")
        logit[:] = logit[:, ::-1].copy()
        first, second = model.marginals
        process = Process(covariance, (second, first))
        other = dataclasses.replace(
            model, observations=swapped, process=process, theta=process.join(theta)
        )
        assert other.tasks == ("proxy", "metal")
        for variable in model.tasks:
            left, right = (m.predict(sloped_grid, variable=variable) for m in (model, other))
            xr.testing.assert_allclose(left, right, rtol=1e-6)
            ours, theirs = (m.loo(variable) for m in (model, other))
            np.testing.assert_allclose(ours["mean"], theirs["mean"], rtol=1e-5, atol=1e-7)

    @pytest.mark.parametrize("of", ["observation", "signal"])
    @pytest.mark.parametrize("variable", ["proxy", "other"])
    def test_in_a_transductive_model_it_comes_from_its_pair(self, triple, grid, variable, of):
        """As from a full model of the pair, at the same parameters."""
        i = triple.tasks.index(variable)
        seen = triple.observations
        process, index = triple.process.with_tasks((0, i))
        pair = dataclasses.replace(
            triple,
            observations=dataclasses.replace(
                seen,
                variables=(seen.variables[0], seen.variables[i]),
                sample=seen.sample.select([0, i]),
            ),
            process=process,
            theta=triple.theta[index],
            method=Full(),
        )
        xr.testing.assert_allclose(
            triple.predict(grid, variable=variable, of=of),
            pair.predict(grid, variable=variable, of=of),
            rtol=1e-10,
        )
        assert triple.predict(grid, variable="other")["other"].attrs == {"units": "K"}
        np.testing.assert_allclose(triple.loo(variable)["crps"], pair.loo(variable)["crps"], 1e-8)

    @pytest.mark.parametrize("method", METHODS)
    def test_information_is_of_the_primary(self, fit_by, sloped_grid, method):
        """A secondary, and a method that cannot tell, are refused by name."""
        model = fit_by(method)
        if method == "transductive":
            with pytest.raises(
                ValueError,
                match=r"inform only the primary, 'metal', found 'proxy'. Leave `variable`",
            ):
                model.posterior(sloped_grid, variable="proxy").information()
            assert (model.posterior(sloped_grid).information() >= 0.0).all()
        else:
            for variable in model.tasks:
                with pytest.raises(
                    ValueError, match=rf"method='{method}' cannot tell what each secondary adds"
                ):
                    model.posterior(sloped_grid, variable=variable).information()


class TestGraph:
    def sizes(self, model, blocks: int, optimised: bool) -> tuple[int, int]:
        """Count the tasks of a graph, and how many of them are heavy enough to hold the model."""
        target = xr.Dataset(coords={"x": np.linspace(0.1, 3.9, blocks), "y": [1.0]})
        out = model.predict(target, chunks={"x": 1})["metal"].data
        if optimised:
            (out,) = dask.optimize(out)
        graph = dict(out.__dask_graph__())
        heavy = len(cloudpickle.dumps(model.observations)) // 2
        return len(graph), sum(len(cloudpickle.dumps(t)) > heavy for t in graph.values())

    @pytest.mark.parametrize("optimised", [False, True])
    def test_grows_by_a_few_tasks_a_block_and_holds_the_model_once(self, model, optimised):
        """The graph is linear in blocks, and one task alone carries the model."""
        (small, first), (middle, second), (large, third) = (
            self.sizes(model, blocks, optimised) for blocks in (4, 8, 16)
        )
        assert first == second == third == 1
        assert large - middle == 2 * (middle - small)
        assert (large - middle) / 8 <= 4

    def test_equal_requests_share_their_tasks(self, model, grid):
        """Two results of one posterior condition the model once between them."""
        posterior = model.posterior(grid, chunks=3)
        median, std = posterior.median().data, posterior.std().data
        shared = set(median.__dask_graph__()) & set(std.__dask_graph__())
        assert len(shared) >= 6
