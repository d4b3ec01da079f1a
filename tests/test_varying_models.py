"""Models whose marginal laws vary with fields and groups, from labels to labels."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy.special import ndtr, ndtri
from sources import EAST, NORTH, stations
from strategies import count_computes, raise_if_dask_computes

import xcopula
from xcopula.errors import FieldError
from xcopula.methods import Sparse, Transductive

FIXED = {"method": "full", "kernels": "matern32", "restarts": 0, "uncertainty": "plugin"}


@pytest.fixture(scope="module")
def sites() -> xr.Dataset:
    """Stations with elevation, a side and a flag."""
    data = stations()
    east = data["lon"] > 8.0
    return data.assign(side=xr.where(east, "east", "west"), wet=data["lat"] > 47.0)


@pytest.fixture(scope="module")
def grid() -> xr.Dataset:
    """A grid with all fields."""
    lon, lat = np.linspace(4.5, 11.5, 5), np.linspace(44.5, 49.5, 4)
    data = xr.Dataset(
        {"elevation": (("lat", "lon"), 200.0 + 100.0 * np.arange(20.0).reshape(4, 5))},
        coords={"lat": ("lat", lat, NORTH), "lon": ("lon", lon, EAST)},
    )
    data["elevation"].attrs["units"] = "m"
    side = ("lon", np.where(lon > 8.0, "east", "west"))
    return data.assign(side=side, wet=data["lat"] > 47.0)


@pytest.fixture(scope="module")
def sloping(sites):
    """Warmth that falls with elevation."""
    law = xcopula.regress("normal", on=["elevation"])
    return xcopula.fit(sites, "warmth", marginals=law, **FIXED)


@pytest.fixture(scope="module")
def climate() -> xr.Dataset:
    """Four months at a dozen stations of Colorado."""
    data = xcopula.datasets.colorado().sel(time=slice("1985-04", "1985-07"))
    return data.isel(station=slice(0, None, 20))


@pytest.fixture(scope="module")
def monthly(climate):
    """A law for each month."""
    data = climate.assign(ppt=climate["ppt"].where(climate["ppt"] > 0.0))
    return xcopula.fit(data, "ppt", marginals=xcopula.by("time.month", "gamma"), **FIXED)


class TestRegression:
    def test_closed_form_on_a_grid(self, sites, sloping, grid):
        """A normal law on a grid is its line of elevation, plus the latent process."""
        p = {k: float(v) for k, v in sloping.marginals[0].parameters.items()}
        assert -0.0075 < p["elevation"] < -0.0045
        posterior = sloping.posterior(grid)
        latent = posterior.latent
        rise = grid["elevation"].values - sites["elevation"].values.mean()
        centre = p["location"] + p["elevation"] * rise + p["scale"] * latent["mean"].values
        width = p["scale"] * latent["std"].values
        np.testing.assert_allclose(posterior.mean(), centre, rtol=1e-8)
        np.testing.assert_allclose(posterior.std(), width, rtol=1e-6)
        np.testing.assert_allclose(posterior.quantile(0.9), centre + ndtri(0.9) * width, rtol=1e-9)
        for threshold in (12.0, 20.0):
            below = ndtr((threshold - centre) / width)
            np.testing.assert_allclose(posterior.cdf(threshold), below, atol=1e-9)
            np.testing.assert_allclose(posterior.exceedance(threshold), 1.0 - below, atol=1e-9)

    @pytest.mark.parametrize(
        "method", [Transductive(), Sparse("fitc", inducing=60)], ids=lambda m: m.name
    )
    def test_other_methods(self, sites, grid, sloping, method):
        """Pairs and sparse methods take the same laws, near the exact result."""
        law = {"warmth": xcopula.regress("normal", on=["elevation"]), "rain": "lognormal"}
        options = FIXED | {"method": method}
        model = xcopula.fit(sites, "warmth", "rain", marginals=law, **options)
        slopes = [m.marginals[0].parameters["elevation"] for m in (model, sloping)]
        assert slopes[0] == pytest.approx(slopes[1], rel=0.15)
        found = model.predict(grid, 0.5)["warmth"]
        assert float(abs(found - sloping.predict(grid, 0.5)["warmth"]).mean()) < 1.0
        assert model.loo()["crps"].mean() < 0.8

    def test_a_target_needs_the_fields_of_the_variable_that_is_asked_for(self, sites, grid):
        """Those of the primary's law for the primary, those of a secondary's for that one."""
        law = {"rain": "lognormal", "warmth": xcopula.regress("normal", on=["elevation"])}
        model = xcopula.fit(sites, "rain", "warmth", marginals=law, **FIXED)
        bare = grid.drop_vars("elevation")
        assert bool(model.predict(bare)["rain"].notnull().all())
        with pytest.raises(FieldError, match=r"'warmth' varies with \['elevation'\], which the ta"):
            model.predict(bare, variable="warmth")
        out = model.predict(grid, 0.5, variable="warmth")["warmth"]
        assert bool(out.notnull().all())
        # It falls with elevation, 200 m to 2100 m, by some six degrees a kilometre.
        assert float(out.isel(lat=0).mean() - out.isel(lat=-1).mean()) > 4.0

    def test_polynomials_of_coordinates(self, sites, grid):
        """Longitude may be in another convention at prediction, and under another name."""
        law = xcopula.regress("normal", on=["lon", "lat"], degree=2)
        model = xcopula.fit(sites, "warmth", marginals=law, **FIXED)
        expected = model.predict(grid)["warmth"].values
        turned = grid.assign_coords(lon=("lon", grid["lon"].values - 360.0, EAST))
        renamed = grid.rename(lon="w", lat="n")
        for target in (turned, renamed):
            np.testing.assert_allclose(model.predict(target)["warmth"], expected, rtol=1e-9)
        moved = sites.assign_coords(lon=("station", sites["lon"].values + 360.0, EAST))
        again = xcopula.fit(moved, "warmth", marginals=law, **FIXED)
        np.testing.assert_allclose(again.predict(grid)["warmth"], expected, rtol=1e-4)

    def test_a_field_made_from_a_coordinate_is_no_input(self, sites):
        """A field may have kept the attributes of the latitude that it was computed from."""
        north = abs(sites["lat"] - 47.0).assign_attrs(NORTH)
        law = xcopula.regress("normal", on="north")
        model = xcopula.fit(sites.assign(north=north), "warmth", marginals=law, **FIXED)
        assert model.coordinates.names == ("lon", "lat")

    def test_the_summary_shows_the_slope(self, sloping):
        """The law and its slope are in the table."""
        lines = sloping.summary().splitlines()
        (row,) = (line for line in lines if "normal ~ elevation" in line)
        slope = sloping.marginals["warmth"].parameters["elevation"]
        assert row.endswith(f" {slope:.4g}")
        assert any("  elevation" in line for line in lines if line.startswith("  variable "))

    def test_a_gap_in_the_field_is_a_gap_in_the_result(self, sloping, grid):
        """Cells without elevation are NaN, the others as they were."""
        holes = grid.assign(elevation=grid["elevation"].where(grid["lat"] > 45.0))
        holes["elevation"].attrs["units"] = "m"
        out = sloping.predict(holes, 0.5)["warmth"]
        np.testing.assert_array_equal(out.isnull(), holes["elevation"].isnull())
        np.testing.assert_allclose(out[1:], sloping.predict(grid, 0.5)["warmth"][1:], rtol=1e-12)


class TestGroups:
    @pytest.mark.parametrize("key", ["side", "wet"])
    def test_by_a_variable(self, sites, grid, key):
        """A string or a flag names groups; the target carries it."""
        model = xcopula.fit(sites, "warmth", marginals=xcopula.by(key, "normal"), **FIXED)
        labels = sorted({str(v) for v in sites[key].values})
        assert all(f"location[{label}]" in model.summary() for label in labels)
        out = model.predict(grid)["warmth"]
        assert bool(out.notnull().all())
        with pytest.raises(FieldError, match=rf"'warmth' varies with \['{key}'\], which the targ"):
            model.predict(grid.drop_vars(key))

    def test_a_group_is_its_law(self, sites, grid):
        """Each cell has the law of its group."""
        model = xcopula.fit(sites, "warmth", marginals=xcopula.by("side", "normal"), **FIXED)
        posterior = model.posterior(grid)
        p = model.marginals[0].parameters
        side = grid["side"].values[None, :]
        location, scale = (
            np.where(side == "east", p[f"{k}[east]"], p[f"{k}[west]"])
            for k in ("location", "scale")
        )
        expected = location + scale * posterior.latent["mean"].values
        np.testing.assert_allclose(posterior.median(), expected, rtol=1e-9)

    def test_by_month(self, climate, monthly):
        """One law for each month, one dependence; every quantity by brute force."""
        assert "gamma by time.month" in monthly.summary()
        for month in ("4", "5", "6", "7"):
            assert f"\n  {month} " in monthly.summary()
        target = (
            climate[["ppt"]]
            .isel(station=slice(0, 5))
            .assign_coords(time=climate["time"].values + np.timedelta64(9, "D"))
        )
        posterior = monthly.posterior(target)
        (field,) = monthly.variables[0].fields
        z = ndtri((np.arange(20001) + 0.5) / 20001)
        thresholds = [20.0, 60.0]
        means, stds = posterior.mean(), posterior.std()
        cdf, exceedance = posterior.cdf(thresholds), posterior.exceedance(thresholds)
        for k, month in enumerate(target["time"].dt.month.values):
            code = field.encode(np.array([month]))
            for s in range(5):
                cell = {"station": s, "time": k}
                latent = posterior.latent.isel(cell)
                law = monthly.marginals[0].at(np.full((z.size, 1), code))
                y = law.from_normal(float(latent["mean"]) + float(latent["std"]) * z)
                assert float(means.isel(cell)) == pytest.approx(y.mean(), rel=1e-3)
                assert float(stds.isel(cell)) == pytest.approx(y.std(), rel=1e-2)
                for j, threshold in enumerate(thresholds):
                    below = (y <= threshold).mean()
                    assert float(cdf.isel(cell)[j]) == pytest.approx(below, abs=1e-4)
                    assert float(exceedance.isel(cell)[j]) == pytest.approx(1 - below, abs=1e-4)

    def test_by_the_date_itself(self, climate):
        """A law for each date, whatever the resolution of the target's."""
        model = xcopula.fit(climate, "tmax", marginals=xcopula.by("time", "normal"), **FIXED)
        assert "1985-05-01 00:00:00" in model.summary()
        coarse = climate.assign_coords(time=climate["time"].values.astype("M8[s]"))
        found = [model.predict(t[["tmax"]], 0.5)["tmax"].values for t in (climate, coarse)]
        np.testing.assert_array_equal(found[0], found[1])

    def test_a_month_never_seen(self, climate, monthly):
        """The new month is named at once, also where the target is chunked."""
        later = climate[["ppt"]].assign_coords(
            time=climate["time"].values + np.timedelta64(62, "D")
        )
        message = r"time.month 8, 9 never occurs in the training data, which have 4, 5, 6, 7"
        for target in (later, later.chunk(station=2)):
            with pytest.raises(FieldError, match=message):
                monthly.predict(target)

    def test_a_group_with_too_few_values(self, climate):
        """Each small group is named with its count."""
        few = climate["station"].isin(climate["station"][:3])
        hidden = climate.assign(tmax=climate["tmax"].where((climate["time"].dt.month != 5) | few))
        count = int(hidden["tmax"].isel(time=1).count())
        with pytest.raises(ValueError, match=rf"'tmax': .*at least 5 .*fewer: 5 \({count}\)"):
            xcopula.fit(hidden, "tmax", marginals=xcopula.by("time.month", "normal"))

    def test_regression_within_groups(self, sites, grid):
        """Groups and slopes combine, either way round."""
        within = xcopula.by("side", xcopula.regress("normal", on="elevation"))
        across = xcopula.regress(xcopula.by("side", "normal"), on="elevation")
        for law, slopes in ((within, 2), (across, 1)):
            model = xcopula.fit(sites, "warmth", marginals=law, **FIXED)
            names = model.marginals[0].parameters
            assert sum("elevation" in n for n in names) == slopes
            assert bool(model.predict(grid)["warmth"].notnull().all())


class TestLazy:
    def test_a_lazy_field(self, sloping, grid):
        """A field in chunks, also in other chunks than the result, changes nothing."""
        eager = sloping.predict(grid)
        lazy_field = grid.assign(elevation=grid["elevation"].chunk(lat=3, lon=2))
        with raise_if_dask_computes():
            results = [
                sloping.predict(lazy_field),
                sloping.predict(lazy_field, chunks={"lat": 2, "lon": 4}),
                sloping.predict(grid, chunks=3),
            ]
        for lazy in results:
            assert lazy["warmth"].chunks is not None
            with count_computes() as scheduler:
                found = lazy.compute()
            assert scheduler.computes == 1
            xr.testing.assert_allclose(found, eager, rtol=1e-12)

    def test_every_quantity(self, sloping, grid):
        """All results of a posterior with a varying law are the same in blocks."""
        eager, lazy = sloping.posterior(grid), sloping.posterior(grid, chunks=2)
        for ask in (
            lambda p: p.mean(),
            lambda p: p.std(),
            lambda p: p.cdf([10.0, 20.0]),
            lambda p: p.exceedance(15.0),
            lambda p: p.interval(0.8),
        ):
            xr.testing.assert_allclose(ask(lazy).compute(), ask(eager), rtol=1e-12)

    def test_a_model_still_to_be_computed(self, sites, sloping, grid):
        """The graph of a fit knows the fields of its law, and asks the target for them."""
        law = xcopula.regress("normal", on=["elevation"])
        with raise_if_dask_computes():
            model = xcopula.fit(sites, "warmth", marginals=law, compute=False, **FIXED)
            lazy = model.predict(grid)
        xr.testing.assert_allclose(lazy.compute(), sloping.predict(grid), rtol=1e-9)
        with pytest.raises(FieldError, match=r"varies with \['elevation'\]"):
            model.predict(grid.drop_vars("elevation"))

    def test_groups_still_to_be_learnt(self, sites, grid):
        """Groups are learnt in the graph; one never seen is said when it is computed."""
        law = xcopula.by("side", "normal")
        model = xcopula.fit(sites.chunk(), "warmth", marginals=law, compute=False, **FIXED)
        eager = xcopula.fit(sites, "warmth", marginals=law, **FIXED)
        xr.testing.assert_allclose(model.predict(grid).compute(), eager.predict(grid), rtol=1e-9)
        strange = model.predict(grid.assign(side=xr.full_like(grid["side"], "nord")))
        with pytest.raises(FieldError, match="side nord never occurs"):
            strange.compute()

    def test_lazy_training_data_and_fields(self, sites, sloping, grid):
        """Variables and fields in chunks are computed together, once."""
        with count_computes() as scheduler:
            model = xcopula.fit(
                sites.chunk(station=9),
                "warmth",
                marginals=xcopula.regress("normal", on=["elevation"]),
                **FIXED,
            )
        assert scheduler.computes == 1
        np.testing.assert_array_equal(model.theta, sloping.theta)


class TestErrors:
    def test_a_covariate_missing_at_some_sites(self, sites):
        """The sites are counted and the first are named by their labels."""
        elevation = sites["elevation"].where(~sites["station"].isin(["s03", "s07"]))
        with pytest.raises(
            FieldError,
            match=r"'elevation' is missing at 2 sites where 'warmth' is known "
            r"\(first: station=s03; station=s07\). Fill it in",
        ):
            xcopula.fit(
                sites.assign_coords(elevation=elevation),
                "warmth",
                marginals=xcopula.regress("normal", on="elevation"),
            )

    def test_a_covariate_missing_where_the_variable_is_too(self, sites, sloping):
        """A gap of the field under a gap of the variable is no error."""
        holes = sites.assign_coords(elevation=sites["elevation"].where(sites["station"] != "s03"))
        holes = holes.assign(warmth=holes["warmth"].where(sites["station"] != "s03"))
        law = xcopula.regress("normal", on="elevation")
        assert xcopula.fit(holes, "warmth", marginals=law, **FIXED).observations.sample.size == 39

    def test_a_missing_key(self, sites):
        """A site without a group is named."""
        side = sites["side"].astype(object).where(sites["station"] != "s05")
        with pytest.raises(FieldError, match=r"'side' is missing at 1 sites .*station=s05"):
            xcopula.fit(sites.assign(side=side), "warmth", marginals=xcopula.by("side", "normal"))

    def test_all_missing_fields_of_a_target(self, sites, grid):
        """One error names everything that the target lacks."""
        law = xcopula.by("side", xcopula.regress("normal", on="elevation"))
        model = xcopula.fit(sites, "warmth", marginals=law, **FIXED)
        with pytest.raises(FieldError, match=r"\['side', 'elevation'\], which the target lacks"):
            model.predict(grid[["wet"]])

    def test_units_of_a_field(self, sloping, grid):
        """Feet become metres, and a pressure is none."""
        feet = grid.assign(elevation=(grid["elevation"] / 0.3048).assign_attrs(units="ft"))
        xr.testing.assert_allclose(sloping.predict(feet), sloping.predict(grid))
        pressure = grid.assign(elevation=grid["elevation"].assign_attrs(units="hPa"))
        with pytest.raises(FieldError, match=r"'elevation' is in 'hPa', .* it was in 'm'"):
            sloping.predict(pressure)

    def test_a_field_of_other_dims(self, sloping, grid):
        """A field that varies along more than the target is refused."""
        many = grid.assign(elevation=grid["elevation"].expand_dims(member=2))
        with pytest.raises(
            FieldError, match=r"dims \['member'\] that the coordinates of the target do not"
        ):
            sloping.predict(many)

    def test_a_fitted_law_of_other_data(self, sites, sloping):
        """A law that was fitted to fields is no recipe."""
        with pytest.raises(TypeError, match=r"fitted to the fields of other data. Give the recipe"):
            xcopula.fit(sites, "warmth", marginals=sloping.marginals[0])

    def test_a_field_that_is_nowhere(self, sites):
        """The error names the field and how to add it."""
        with pytest.raises(FieldError, match=r"'warmth' varies with 'slope'.*`assign_coords`"):
            xcopula.fit(sites, "warmth", marginals=xcopula.regress("normal", on="slope"))
