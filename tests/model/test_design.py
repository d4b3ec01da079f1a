"""Where to measure next, against models that were given the sites one by one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import xarray as xr
from conftest import simulate_pair
from scipy.special import ndtr

import xcopula
from xcopula.errors import CoordinateError, CostError

K = 3


@pytest.fixture(scope="module")
def candidates() -> xr.Dataset:
    """30 sites without the metal: 20 where the proxy is known, and 10 new ones."""
    _, truth = simulate_pair(0)
    _, other = simulate_pair(7)
    return xr.concat([truth.isel(site=slice(40, 60)), other.isel(site=slice(10))], "site")


def brute_force(model, candidates, target, name, loss):
    """Try each site that is left by conditioning on it; return the order and the losses."""
    order, losses = [], []
    for _ in range(K):
        left = [j for j in range(candidates.sizes["site"]) if j not in order]
        tried = {}
        for j in left:
            data = candidates[[name]].isel(site=[j])
            tried[j] = model.condition(data)
        each = {j: loss(m) for j, m in tried.items()}
        best = min(each, key=each.get)
        order.append(best)
        losses.append(each[best])
        model = tried[best]
    return order, losses, model


class TestVariance:
    @pytest.mark.parametrize("of", ["observation", "signal"])
    def test_equals_brute_force(self, model, candidates, grid, of):
        """30 candidates: order, criterion and the map after."""

        def variance(m):
            return m.posterior(grid, of=of).latent["std"] ** 2

        found = model.design(candidates, K, grid, of=of)
        want = brute_force(model, candidates, grid, "metal", lambda m: float(variance(m).mean()))
        assert found["candidate"].values.tolist() == want[0]
        np.testing.assert_allclose(found["criterion"], want[1], rtol=1e-9)
        np.testing.assert_allclose(found["variance_after"], variance(want[2]), rtol=1e-8)
        np.testing.assert_allclose(found["variance_before"], variance(model), rtol=1e-12)
        before = float(found["criterion_before"])
        assert before == pytest.approx(float(variance(model).mean()))
        steps = -np.diff([before, *found["criterion"].values])
        np.testing.assert_allclose(found["gain"], steps, rtol=1e-12)

    def test_another_variable_is_measured(self, model, candidates, grid):
        """The proxy at ten new sites, for the map of the metal."""
        new = candidates.isel(site=slice(20, 30))
        found = model.design(new, K, grid, measure="proxy", of="signal")

        def loss(m):
            return float((m.posterior(grid, of="signal").latent["std"] ** 2).mean())

        order, losses, _ = brute_force(model, new, grid, "proxy", loss)
        assert found["candidate"].values.tolist() == order
        np.testing.assert_allclose(found["criterion"], losses, rtol=1e-9)
        assert found.attrs["measured"] == "proxy"

    def test_weights(self, model, candidates, grid):
        """What does not count has no say: the sites go to the other half."""
        weights = (grid["x"] < 1.5).astype(float)
        found = model.design(candidates, K, grid, weights=weights)

        def loss(m):
            variance = m.posterior(grid).latent["std"] ** 2
            return float(variance.weighted(weights).mean())

        order, losses, _ = brute_force(model, candidates, grid, "metal", loss)
        assert found["candidate"].values.tolist() == order
        np.testing.assert_allclose(found["criterion"], losses, rtol=1e-9)
        assert (found["site_x"] < 2.2).all()

    def test_a_cell_that_is_measured_is_known(self, model, grid):
        """The candidates are the target where it is left out; positions count row by row."""
        found = model.design(grid, 2)
        after = found["variance_after"].values.ravel()
        np.testing.assert_allclose(after[found["candidate"].values], 0.0, atol=1e-12)
        rows, columns = np.unravel_index(found["candidate"].values, (6, 7))
        np.testing.assert_array_equal(found["site_y"], grid["y"].values[rows])
        np.testing.assert_array_equal(found["site_x"], grid["x"].values[columns])

    def test_mask(self, model, grid):
        """Masked cells do not count, and are no candidates where the target is theirs."""
        mask = (grid["x"] > 2.0) & (grid["y"] > 0.0)
        found = model.design(grid, 2, mask=mask)
        assert (found["site_x"] > 2.0).all()
        assert np.isnan(found["variance_after"].where(~mask)).all()
        assert float(found["criterion"][-1]) == pytest.approx(float(found["variance_after"].mean()))

    def test_by_neighbours(self, sites, candidates, grid):
        """With all data as neighbours it is the exact solver's."""
        options = {"marginals": "normal", "kernels": "matern32", "restarts": 0}
        fitted = xcopula.fit(sites, "metal", "proxy", uncertainty="plugin", **options)
        local = dataclasses.replace(fitted, solver=xcopula.solvers.Neighbours(predict=200))
        want, found = (m.design(candidates, K, grid) for m in (fitted, local))
        xr.testing.assert_allclose(found, want, rtol=1e-6)

    @pytest.mark.parametrize("measure", ["metal", "proxy"])
    def test_inflated_errors(self, model, candidates, grid, measure):
        """Variances before and after are those of the plug-in model times the factor squared."""
        inflated = model.with_uncertainty("inflated")
        some = candidates if measure == "metal" else grid.isel(x=slice(1, 4))
        plain, found = (m.design(some, 3, grid, measure=measure) for m in (model, inflated))
        factor = inflated.uncertainty.factor(0) ** 2
        for name in ("variance_before", "variance_after", "criterion"):
            np.testing.assert_allclose(found[name], factor * plain[name], rtol=1e-9)
        want = inflated.posterior(grid).latent["std"] ** 2
        np.testing.assert_allclose(found["variance_before"], want, rtol=1e-10)
        np.testing.assert_array_equal(found["candidate"], plain["candidate"])

    def test_every_method(self, fit_by, candidates, sloped_grid):
        """The joint process is the same for all of them, but for their parameters."""
        for name in ("transductive", "fitc", "bcm", "cokriging"):
            found = fit_by(name).design(candidates, 2, sloped_grid)
            assert (found["gain"] > 0.0).all()

    def test_a_law_that_varies(self, fit_by, candidates, sloped_grid):
        """Candidates need no field; the threshold has a score in each cell."""
        full = fit_by("full")
        new = candidates.isel(site=slice(20, 30))
        found = full.design(new, 2, sloped_grid, variable="proxy", threshold=12.0)
        above = full.posterior(sloped_grid, variable="proxy").exceedance(12.0)
        want = np.minimum(above, 1.0 - above)
        np.testing.assert_allclose(found["misclassification_before"], want, rtol=1e-9)


class TestMisclassification:
    def test_equals_draws_of_what_may_be_found(self, model, candidates, grid):
        """Values of the first site are given to the model: the mean of what each leads to."""
        found = model.design(candidates, 1, grid, threshold=1.5)
        site = candidates.isel(site=found["candidate"].values)
        law = model.posterior(site)
        levels = (np.arange(40) + 0.5) / 40
        wrong = []
        for level in levels:
            data = xr.Dataset({"metal": law.quantile(level).drop_vars("quantile")})
            data["metal"].attrs = model.variables[0].attrs
            above = model.condition(data).posterior(grid).exceedance(1.5)
            wrong.append(np.minimum(above, 1.0 - above).values)
        np.testing.assert_allclose(
            found["misclassification_after"], np.mean(wrong, axis=0), atol=2e-3
        )
        assert float(found["criterion"][0]) == pytest.approx(np.mean(wrong), abs=2e-4)

    def test_before_is_that_of_the_posterior(self, model, candidates, grid):
        """Also of inflated errors, and where the threshold is a field with gaps."""
        unsure = model.with_uncertainty("inflated")
        limit = xr.where(grid["x"] < 1.0, np.nan, 1.0 + 0.2 * grid["x"]).assign_attrs(
            units="mg kg-1"
        )
        found = unsure.design(candidates, 2, grid, threshold=limit)
        posterior = unsure.posterior(grid)
        want = np.minimum(posterior.exceedance(limit), posterior.cdf(limit)).transpose("y", "x")
        np.testing.assert_allclose(found["misclassification_before"], want, rtol=1e-7)
        assert float(found["criterion_before"]) == pytest.approx(float(want.mean()))
        assert np.isfinite(found["variance_after"]).all()

    def test_all_is_decided(self, model, candidates, grid):
        """A threshold that nothing reaches leaves nothing to gain, and no NaN."""
        found = model.design(candidates, 2, grid, threshold=1e9)
        np.testing.assert_allclose(found["gain"], 0.0, atol=1e-12)

    def test_a_threshold_with_units(self, model, candidates, grid):
        """One number as a DataArray is that number."""
        limit = xr.DataArray(1.5, attrs={"units": "mg kg-1"})
        found = model.design(candidates, 2, grid, threshold=limit)
        xr.testing.assert_identical(found, model.design(candidates, 2, grid, threshold=1.5))


class TestLabels:
    def test_what_is_returned(self, model, candidates, grid):
        """Names, units, and coordinates that are not the model's."""
        named = candidates.assign_coords(name=("site", [f"s{i}" for i in range(30)]))
        found = model.design(named, 2, grid)
        assert found["site_name"].values.tolist() == [f"s{i}" for i in found["candidate"].values]
        assert found["choice"].values.tolist() == [1, 2]
        assert found["variance_before"].dims == ("y", "x")
        assert found["variance_before"].attrs["units"] == "1"
        assert found.attrs["criterion"] == "mean latent variance"

    def test_stacked_candidates(self, model, grid):
        """Levels of a MultiIndex stay; its tuples, which no file takes, do not."""
        stacked = grid.stack(cell=("y", "x"))
        found = model.design(stacked, 2, grid)
        assert {"site_x", "site_y"} <= set(found.coords)
        assert "site_cell" not in found.coords
        xr.testing.assert_equal(found["candidate"], model.design(grid, 2, grid)["candidate"])

    def test_one_candidate(self, model, grid):
        """A point with scalar coordinates."""
        point = xr.Dataset(coords={"x": 1.0, "y": 2.0})
        found = model.design(point, 1, grid)
        assert found["candidate"].values.tolist() == [0]
        assert float(found["site_x"]) == 1.0
        also = point.expand_dims("site")
        want = model.design(also, 1, grid)
        np.testing.assert_allclose(found["criterion"], want["criterion"], rtol=1e-12)

    def test_coordinates_that_are_called_like_results(self, model, candidates, grid):
        """The target keeps the others."""
        named = grid.assign_coords(gain=1.0, site_x=2.0, height=("x", np.arange(7.0)))
        found = model.design(candidates, 2, named)
        assert found["gain"].dims == ("choice",)
        assert found["site_x"].dims == ("choice",)
        assert found["height"].dims == ("x",)

    def test_chunked_target(self, model, candidates, grid):
        """It is read: a choice needs all of it."""
        lazy = grid.assign(field=(("y", "x"), np.zeros((6, 7)))).chunk({"y": 2})
        xr.testing.assert_equal(
            model.design(candidates, 2, lazy), model.design(candidates, 2, grid)
        )

    def test_an_interval_at_a_cell(self, sites, candidates, grid):
        """What is known as an interval can become better known."""
        below = sites["metal"].where(sites["metal"] > 1.0, 1.0)
        data = sites.assign(metal=below.where(sites["metal"].notnull()))
        options = {"marginals": "lognormal", "kernels": "matern32", "restarts": 0}
        fitted = xcopula.fit(
            data, "metal", censored={"metal": 1.0}, uncertainty="plugin", **options
        )
        known = data.isel(site=slice(40))
        found = fitted.design(candidates, 2, known)
        latent = fitted.posterior(known).latent["std"] ** 2
        np.testing.assert_allclose(found["variance_before"], latent, atol=1e-4)
        limited = known["metal"].values == 1.0
        assert (found["variance_before"].values[limited] > 0.01).all()
        np.testing.assert_allclose(found["variance_after"].values[~limited], 0.0, atol=1e-10)

    def test_replicates(self, candidates, grid):
        """Where a site may have several values, one more can be measured at a known site."""
        sites, _ = simulate_pair(0)
        again = sites.isel(site=slice(5))
        again["metal"] = 1.1 * again["metal"]
        twice = xr.concat([sites.isel(site=slice(40)), again], "site")
        options = {"marginals": "lognormal", "kernels": "matern32", "restarts": 0}
        fitted = xcopula.fit(twice, "metal", replicates=True, uncertainty="plugin", **options)
        found = fitted.design(sites.isel(site=slice(10)), 2, grid)
        assert (found["gain"] > 0.0).all()


BAD = {
    "k is zero": ({"k": 0}, ValueError, "`k` must be at least 1, found 0"),
    "k is no integer": ({"k": 2.0}, TypeError, "`k` must be an integer"),
    "too many": ({"k": 31}, ValueError, "`k` must be at most the number of candidates, 30"),
    "variable": ({"variable": "lead"}, KeyError, "no variable 'lead'"),
    "measured": ({"measure": "lead"}, KeyError, "no variable 'lead'"),
    "of": ({"of": "both"}, ValueError, "`of` must be one of"),
    "no candidates": ({"candidates": 3}, TypeError, "`candidates` must be a Dataset"),
    "a list": ({"threshold": [1.0, 2.0]}, ValueError, "`threshold` must be one number"),
    "a dim of them": (
        {"threshold": xr.DataArray([1.0, 2.0], dims="threshold")},
        ValueError,
        r"The threshold has dims \['threshold'\], the target has",
    ),
    "text": ({"threshold": "high"}, ValueError, "A threshold must be a number"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments(case, model, candidates, grid):
    """Each is refused with what was found."""
    given, error, message = BAD[case]
    options = {"candidates": candidates, "k": 2, "target": grid} | given
    with pytest.raises(error, match=message):
        model.design(**options)


class TestBadData:
    def test_where_the_variable_is_known(self, model, sites, grid):
        """How many, and the first of them."""
        with pytest.raises(ValueError, match=r"'metal' is not known yet, found 3 where it is \(f"):
            model.design(sites.isel(site=slice(37, 50)), 2, grid)
        with pytest.raises(ValueError, match="'proxy' is not known yet, found 13"):
            model.design(sites.isel(site=slice(37, 50)), 2, grid, measure="proxy")

    def test_the_same_site_twice(self, model, candidates, grid):
        """It is measured once."""
        twice = candidates.isel(site=[0, 1, 1, 2])
        with pytest.raises(ValueError, match="different sites, found 1 at the site of another"):
            model.design(twice, 2, grid)

    def test_without_coordinates(self, model, candidates, grid):
        """How many."""
        lost = candidates.assign_coords(x=candidates["x"].where(candidates["x"] > 1.0))
        count = int(np.isnan(lost["x"]).sum())
        with pytest.raises(CoordinateError, match=f"found {count} with one that is NaN"):
            model.design(lost, 2, grid)

    def test_a_dim_that_the_result_needs(self, model, candidates, grid):
        with pytest.raises(ValueError, match="has a dim 'choice', which the result needs"):
            model.design(candidates, 2, candidates.rename(site="choice"))

    def test_units_of_the_threshold(self, model, candidates, grid):
        limit = xr.DataArray(1.5, attrs={"units": "K"})
        with pytest.raises(ValueError, match="The threshold is in 'K', 'metal' in 'mg kg-1'"):
            model.design(candidates, 2, grid, threshold=limit)

    def test_a_threshold_that_is_known_nowhere(self, model, candidates, grid):
        limit = xr.full_like(grid["x"], np.nan).assign_attrs(units="mg kg-1")
        with pytest.raises(ValueError, match="`threshold` is NaN in every cell"):
            model.design(candidates, 2, grid, threshold=limit)

    def test_no_cells(self, model, candidates, grid):
        with pytest.raises(ValueError, match="The target has no cell"):
            model.design(candidates, 2, grid, mask=grid["x"] > 99.0)

    def test_more_than_memory(self, model, candidates, grid, monkeypatch):
        monkeypatch.setattr("xcopula.model.design.machine_memory", lambda: 1e4)
        with pytest.raises(CostError, match="30 candidates with 42 cells need about"):
            model.design(candidates, 2, grid)

    @pytest.mark.parametrize(
        ("weights", "error", "message"),
        [
            (lambda g: 1.0, TypeError, "`weights` must be a DataArray"),
            (lambda g: g["x"].astype(str), TypeError, "found dtype"),
            (lambda g: g["x"] - 1.0, ValueError, "finite and not negative, found -0.8"),
            (lambda g: g["x"].where(g["x"] > 1.0), ValueError, "finite and not negative"),
            (lambda g: 0.0 * g["x"], ValueError, "found zeros in all cells that count"),
            (lambda g: g["x"].rename(x="lon"), ValueError, r"dims \['lon'\], the target has"),
            (lambda g: g["x"].isel(x=slice(3)), ValueError, "along 'x' it has 3 entries"),
            (lambda g: g["x"].assign_coords(x=g["x"] + 1.0), ValueError, "other labels"),
        ],
    )
    def test_weights(self, model, candidates, grid, weights, error, message):
        with pytest.raises(error, match=message):
            model.design(candidates, 2, grid, weights=weights(grid))


def test_the_share_of_wrong_decisions_is_a_probability(model, candidates, grid):
    """At most a half; the closed form at no measurement is that of the distance."""
    found = model.design(candidates, 1, grid, threshold=1.2)
    assert (found["misclassification_before"] <= 0.5).all()
    latent = model.posterior(grid).latent
    score = model.marginals[0].to_normal(1.2)
    want = ndtr(-np.abs(latent["mean"] - score) / latent["std"])
    np.testing.assert_allclose(found["misclassification_before"], want, rtol=1e-10)
