"""Questions about many cells at once, answered by draws."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import xarray as xr
from conftest import FIXED
from scipy.stats import norm
from strategies import raise_if_dask_computes

import xcopula
from xcopula.labels.observations import to_targets

DAYS = np.array(["2020-06-01", "2020-06-02", "2020-06-03", "2020-06-04"], "M8[ns]")


@pytest.fixture(scope="module")
def regions(grid):
    """Two regions: west and east."""
    return xr.where(grid["x"] < 2.0, "west", "east").drop_attrs()


@pytest.fixture(scope="module")
def mask(grid):
    """A corner is left out."""
    return (grid["x"] + grid["y"] > 1.0).drop_attrs()


@pytest.fixture(scope="module")
def posterior(alone, grid, mask):
    """The posterior of a log-normal variable, in memory."""
    return alone.posterior(grid, mask=mask)


@pytest.fixture(scope="module")
def lazy(alone, grid, mask):
    """The same in blocks."""
    return alone.posterior(grid, mask=mask, chunks={"x": 3, "y": 4})


@pytest.fixture(scope="module")
def draws(posterior):
    """Its draws."""
    return posterior.sample(20, 4)


@pytest.fixture(scope="module")
def daily(sites):
    """A model of space and time, and a grid of four days."""
    time = DAYS[np.arange(sites.sizes["site"]) % 4]
    data = sites[["metal"]].assign_coords(time=("site", time)).isel(site=slice(40))
    model = xcopula.fit(data, "metal", marginals="lognormal", **FIXED)
    coords = {"time": DAYS, "y": [0.5, 1.5, 2.5], "x": [1.0, 2.0, 3.5, 3.9]}
    target = xr.Dataset(coords=coords)
    for name in "xy":
        target[name].attrs["units"] = "km"
    return model.posterior(target), model.posterior(target, chunks={"time": 3, "x": 2})


ASKED = {"n": 20, "seed": 4}


class TestAgainstDraws:
    """Each is what its name says, of each draw."""

    def test_area_mean(self, posterior, draws, regions, mask):
        """Cells of this grid have equal areas; those outside the mask do not count."""
        found = posterior.area_mean(**ASKED)
        each = draws.mean(("y", "x"))
        assert float(found["mean"]) == pytest.approx(float(each.mean()), rel=1e-12)
        assert found["mean"].attrs["units"] == "mg kg-1"
        assert found["mean"].attrs["long_name"] == "mean of area mean of metal in topsoil"
        by = posterior.area_mean(regions=regions, **ASKED)
        west = draws.where(regions == "west").mean(("y", "x"))
        np.testing.assert_allclose(by["mean"].sel(region="west"), west.mean(), rtol=1e-12)
        assert by["quantiles"].dims == ("quantile", "region")

    def test_weights(self, posterior, draws, grid):
        """People count, not cells."""
        people = (grid["y"] * grid["x"]).assign_attrs(units="people").rename("people")
        found = posterior.area_mean(people, **ASKED)
        expected = draws.weighted(people).mean(("y", "x")).mean()
        np.testing.assert_allclose(found["mean"], expected, rtol=1e-12)
        above = posterior.area_above(1.5, people, **ASKED)
        expected = (people * (draws > 1.5)).sum(("y", "x")).mean()
        np.testing.assert_allclose(above["mean"], expected, rtol=1e-12)
        assert above["mean"].attrs["units"] == "people"
        assert "people above the threshold of metal" in above["mean"].attrs["long_name"]

    def test_area_and_fraction(self, posterior, draws, grid, mask):
        """An area is a share of all cells; its mean is the sum of the probabilities."""
        area, share = (getattr(posterior, f"{w}_above")(1.5, **ASKED) for w in ("area", "fraction"))
        cell = 0.56 * 0.6  # the spacings of the grid
        expected = cell * (draws > 1.5).sum(("y", "x"))
        np.testing.assert_allclose(area["mean"], expected.mean(), rtol=1e-12)
        assert area["mean"].attrs["units"] == "km2"
        total = cell * int(mask.sum())
        xr.testing.assert_allclose(share, area / total, rtol=1e-12)
        assert share["quantiles"].attrs["units"] == "1"
        assert float(area["threshold"]) == 1.5
        assert area["threshold"].attrs == {"units": "mg kg-1"}
        certain = float(cell * posterior.exceedance(1.5).sum())
        assert abs(float(area["mean"]) - certain) < 4.0 * float(area["mean_error"])

    def test_a_threshold_of_each_cell(self, posterior, draws, grid):
        """In its own dims and units; where there is none a cell does not count."""
        limit = xr.where(grid["x"] < 3.0, grid["x"], np.nan).assign_attrs(units="mg kg-1")
        found = posterior.fraction_above(limit, **ASKED)
        known = draws.notnull() & limit.notnull()
        expected = (draws > limit).where(known).mean(("y", "x")).mean()
        np.testing.assert_allclose(found["mean"], expected, rtol=1e-12)
        assert "threshold" not in found.coords

    def test_max_and_reduce(self, posterior, draws):
        """By name, and by a function; over all dims or some."""
        top = posterior.max(**ASKED)
        np.testing.assert_allclose(top["mean"], draws.max(("y", "x")).mean(), rtol=1e-12)
        rows = posterior.max("x", **ASKED)
        np.testing.assert_allclose(rows["mean"], draws.max("x").mean("realization"), rtol=1e-12)
        np.testing.assert_array_equal(rows["y"], draws["y"])
        xr.testing.assert_identical(posterior.reduce("max", ["x"], **ASKED), rows)
        spread = posterior.reduce(lambda d, dims: d.max(dims) - d.min(dims), ["y", "x"], **ASKED)
        apart = draws.max(("y", "x")) - draws.min(("y", "x"))
        np.testing.assert_allclose(spread["mean"], apart.mean(), rtol=1e-12)
        assert "units" not in posterior.reduce("var", **ASKED)["mean"].attrs
        assert posterior.reduce("sum", **ASKED)["mean"].attrs["units"] == "mg kg-1"

    def test_cells_outside_the_mask_stay_missing(self, alone, grid):
        """A sum of nothing is nothing, not zero."""
        found = alone.posterior(grid, mask=grid["x"] > 1.0).reduce("sum", "y", n=5)
        np.testing.assert_array_equal(found["mean"].isnull(), grid["x"] <= 1.0)

    def test_days_and_quantiles_of_days(self, daily):
        """For each cell, along time."""
        posterior, _ = daily
        draws = posterior.sample(15, 1)
        days = posterior.exceedance_days(1.5, n=15, seed=1)
        expected = (draws > 1.5).sum("time").mean("realization")
        np.testing.assert_allclose(days["mean"], expected, rtol=1e-12)
        assert days["mean"].dims == ("y", "x")
        assert days["mean"].attrs["units"] == "1"
        high = posterior.time_quantile(0.8, n=15, seed=1)
        expected = draws.quantile(0.8, "time").mean("realization")
        np.testing.assert_allclose(high["mean"], expected, rtol=1e-12)
        assert "80 % quantile along time of metal" in high["mean"].attrs["long_name"]
        assert high["mean"].attrs["units"] == "mg kg-1"

    def test_what_stays_on_the_grid_keeps_its_grid_mapping(self, daily):
        """A map lies where the target lies; a mean over places lies nowhere."""
        posterior = dataclasses.replace(daily[0], attrs={**daily[0].attrs, "grid_mapping": "crs"})
        assert posterior.exceedance_days(1.5, n=2)["mean"].attrs["grid_mapping"] == "crs"
        assert "grid_mapping" not in posterior.area_mean(n=2)["mean"].attrs

    def test_time_is_kept(self, daily):
        """A mean over places is one for each day; the cells of this grid have unequal areas."""
        posterior, _ = daily
        areas = xr.DataArray([1.0, 1.25, 0.95, 0.4], dims="x")
        found = posterior.area_mean(n=10)
        expected = posterior.sample(10).weighted(areas).mean(("y", "x")).mean("realization")
        np.testing.assert_allclose(found["mean"], expected, rtol=1e-12)
        np.testing.assert_array_equal(found["time"], DAYS)

    def test_scattered_places_count_the_same(self, alone, sites, posterior):
        """They have no areas: an area needs weights."""
        scattered = alone.posterior(sites[["x", "y"]].isel(site=slice(40, None)))
        draws = scattered.sample(8)
        found = scattered.area_mean(n=8)
        np.testing.assert_allclose(found["mean"], draws.mean(), rtol=1e-12)
        with pytest.raises(ValueError, match="`weights` must be given where cells have no known"):
            scattered.area_above(1.5)
        one = xr.ones_like(draws[0], dtype=float)
        above = scattered.area_above(1.5, one, n=8)["mean"]
        np.testing.assert_allclose(above, (draws > 1.5).sum() / 8, rtol=1e-12)


class TestLazy:
    @pytest.mark.parametrize(
        "ask",
        [
            lambda p, r: p.area_mean(regions=r, n=20),
            lambda p, r: p.area_above(1.5, regions=r, n=20),
            lambda p, r: p.fraction_above(p.coords["x"].assign_attrs(units="mg kg-1"), n=20),
            lambda p, r: p.max(n=20),
            lambda p, r: p.reduce("median", n=20),
            lambda p, r: p.reduce(lambda d, dims: d.max(dims) - d.min(dims), "x", n=20),
        ],
        ids=["mean", "area", "fraction", "max", "median", "own"],
    )
    def test_equals_eager(self, posterior, lazy, regions, ask):
        """Nothing is computed before it is asked for."""
        with raise_if_dask_computes():
            found = ask(lazy, regions)
        assert all(v.chunks is not None for v in found.data_vars.values())
        xr.testing.assert_allclose(found.compute(), ask(posterior, regions), rtol=1e-9)

    def test_a_model_that_is_not_fitted_yet(self, alone, sites, grid, regions):
        """All in one graph."""
        model = xcopula.fit(sites, "metal", marginals="lognormal", **FIXED, compute=False)
        with raise_if_dask_computes():
            found = model.posterior(grid).area_mean(regions=regions, n=5)
        expected = alone.posterior(grid).area_mean(regions=regions, n=5)
        xr.testing.assert_allclose(found.compute(), expected, rtol=1e-9)

    def test_along_time(self, daily):
        """Also where time is chunked."""
        for ask in (
            lambda p: p.exceedance_days(1.5, n=10),
            lambda p: p.time_quantile(0.8, n=10),
            lambda p: p.area_mean(n=10),
        ):
            eager, lazy = map(ask, daily)
            xr.testing.assert_allclose(lazy.compute(), eager, rtol=1e-9)


class TestClosedForm:
    def test_block_kriging(self, sites):
        """The mean over an area of a normal variable has a closed form: that of block kriging."""
        model = xcopula.fit(sites, "metal", marginals="normal", **FIXED)
        axis = np.linspace(1.0, 1.8, 5)
        grid = xr.Dataset(coords={d: (d, axis, {"units": "km"}) for d in ("y", "x")})
        areas = (1.0 + grid["y"] * grid["x"]).drop_attrs()
        found = model.posterior(grid).area_mean(areas, n=400, seed=7)
        y, x = (a.ravel() for a in np.meshgrid(axis, axis, indexing="ij"))
        cells = to_targets(model.predictor.coordinates, model.predictor.sites, [x, y])
        joint = model.predictor.process.joint
        mean, rows = joint.whiten(cells)
        covariance = joint.prior(cells, cells) - rows @ rows.T
        np.fill_diagonal(covariance, joint.moments(cells).variance)  # with a nugget of their own
        share = areas.values.ravel() / float(areas.sum())
        law = model.marginals[0]
        centre = law.location + law.scale * float(share @ mean)
        spread = law.scale * np.sqrt(share @ covariance @ share)
        assert abs(float(found["mean"]) - centre) < 4.0 * spread / np.sqrt(400)
        deviation = float(found["mean_error"]) * np.sqrt(400)
        assert deviation == pytest.approx(spread, rel=4.0 / np.sqrt(2 * 400))
        expected = norm.ppf([0.05, 0.5, 0.95], centre, spread)
        off = np.abs(found["quantiles"] - expected) / found["quantile_error"]
        assert (off < 4.0).all()
        # Errors that were independent would be surer than that: this test can tell.
        alone = law.scale * np.sqrt(share**2 @ np.diag(covariance))
        assert alone < 0.6 * spread


@pytest.fixture(scope="module")
def heavy(sites):
    """A model whose law, of values that are not sure to be normal scores, has a heavy tail."""
    extreme = sites.assign(metal=(sites["metal"] ** 8).assign_attrs(units="mg kg-1"))
    options = FIXED | {"uncertainty": "inflated"}
    model = xcopula.fit(extreme.isel(site=slice(0, 20)), "metal", marginals="gev", **options)
    theta = model.theta.copy()
    theta[0] -= 0.5  # a shorter range: more cells are far from all sites
    theta[-1] = 0.97  # the shape: where errors are inflated, the tail is too heavy
    return dataclasses.replace(model, theta=theta)


class TestNoMean:
    def test_mean_is_nan_and_quantiles_are_not(self, heavy, grid):
        """A warning says so; a law with a mean has none."""
        posterior = heavy.posterior(grid, of="signal")
        with pytest.warns(UserWarning, match=r"The mean of 'metal' does not exist in \d+ of 42 ce"):
            assert posterior.mean().isnull().any()
        with pytest.warns(UserWarning, match="too heavy for a mean to exist in some cells"):
            found = posterior.area_mean(n=5)
        assert found["mean"].isnull().all()
        assert found["mean_error"].isnull().all()
        assert found["quantiles"].notnull().all()
        with pytest.warns(UserWarning, match="of 'metal' is too heavy"):
            assert posterior.max(n=5)["mean"].isnull().all()

    def test_only_where_such_cells_count(self, heavy, grid):
        """A row of cells has a mean if each of them has."""
        posterior = heavy.posterior(grid, of="signal")
        with pytest.warns(UserWarning, match="does not exist in"):
            lacking = posterior.mean().isnull()
        assert 0 < int(lacking.sum()) < lacking.size
        with pytest.warns(UserWarning, match="too heavy"):
            found = posterior.reduce("mean", "x", n=5)
        np.testing.assert_array_equal(found["mean"].isnull(), lacking.any("x"))
        with pytest.warns(UserWarning, match="too heavy"):
            by = posterior.area_mean(regions=lacking, n=5)
        np.testing.assert_array_equal(by["mean"].isnull(), [False, True])
        assert posterior.area_mean((~lacking).astype(float), n=5)["mean"].notnull()

    def test_shares_have_one(self, heavy, grid):
        """They are between 0 and 1, whatever the tail."""
        assert heavy.posterior(grid, of="signal").fraction_above(2.0, n=5)["mean"].notnull()

    def test_lazily(self, heavy, grid):
        """NaN too; nothing warns of what is not known yet."""
        lazy = heavy.posterior(grid, of="signal", chunks={"x": 3})
        found = lazy.area_mean(n=5).compute()
        assert found["mean"].isnull()
        assert found["quantiles"].notnull().all()


class TestRefused:
    @pytest.mark.parametrize(
        ("ask", "error", "match"),
        [
            (lambda p: p.reduce("sort"), ValueError, r"`function` must be one of \['max', 'mean'"),
            (lambda p: p.reduce(3), ValueError, "or a function of draws and dims, found 3"),
            (lambda p: p.max("z"), ValueError, r"must be dims of the target, \['y', 'x'\], found"),
            (lambda p: p.max([]), ValueError, r"must be dims of the target, .* found \[\]"),
            (lambda p: p.exceedance_days(1.0), ValueError, "`dim` must be one of the dims"),
            (lambda p: p.time_quantile(0.9, ["x"]), ValueError, "`dim` must be one of the dims"),
            (lambda p: p.time_quantile([0.5, 0.9], "x"), ValueError, "`q` must be one level"),
            (lambda p: p.time_quantile(90, "x"), ValueError, "must lie strictly between 0 and 1"),
            (lambda p: p.area_above([1.0, 2.0]), ValueError, "`threshold` must be one number"),
            (lambda p: p.area_above("high"), ValueError, "A threshold must be a number"),
            (
                lambda p: p.area_above(xr.DataArray(1.0, attrs={"units": "m"})),
                ValueError,
                "The threshold is in 'm', 'metal' in 'mg kg-1'",
            ),
            (lambda p: p.area_mean(n=0), ValueError, "`n` must be at least 1, found 0"),
            (lambda p: p.area_mean(seed=0.5), TypeError, r"`seed` must be an integer, found 0\.5"),
            (
                lambda p: p.area_mean(xr.DataArray(np.ones(3), dims="x")),
                ValueError,
                "`weights` is not on the cells of the target",
            ),
            (
                lambda p: p.area_mean(-p.coords["x"]),
                ValueError,
                "`weights` must be finite and not negative",
            ),
            (
                lambda p: p.area_mean(regions=p.coords["x"].where(p.coords["x"] < 2.0)),
                ValueError,
                "`regions` must have a label in every cell that counts",
            ),
        ],
    )
    def test_before_anything_is_drawn(self, posterior, monkeypatch, ask, error, match):
        """The message says what must be."""
        monkeypatch.setattr(type(posterior), "sample", lambda *a, **k: pytest.fail("drawn"))
        with pytest.raises(error, match=match):
            ask(posterior)
