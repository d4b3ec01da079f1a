"""Several variables together: their joint law, by closed forms and by draws."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from sources import daily

import xcopula
from xcopula.prediction.several import Posteriors
from xcopula.process import paths
from xcopula.solvers import Neighbours

FIXED = {"kernels": "matern32", "restarts": 0, "anisotropy": False}
LIMITS = {"metal": 1.4, "proxy": 10.5}
NAMES = ["metal", "proxy"]


@pytest.fixture(autouse=True)
def few_waves(monkeypatch):
    """Means over draws do not depend on their number."""
    monkeypatch.setattr(paths, "WAVES", 32)


@pytest.fixture
def both(model, grid) -> Posteriors:
    """The metal and the proxy on the grid."""
    return model.posterior(grid, variables=NAMES)


class TestMapping:
    def test_of_posteriors(self, both, model, grid):
        assert list(both) == NAMES
        assert len(both) == 2
        alone = model.posterior(grid, variable="proxy")
        xr.testing.assert_identical(both["proxy"].median(), alone.median())

    def test_repr(self, both):
        want = "<xcopula.Posteriors of ['metal', 'proxy'] on (y: 6, x: 7), in memory>"
        assert repr(both) == want

    @pytest.mark.parametrize("name", ["quantile", "median", "interval", "mean", "std", "sample"])
    def test_every_result_is_of_all(self, both, name):
        options = {"quantile": ([0.1, 0.9],)}.get(name, ())
        found = getattr(both, name)(*options)
        for posterior in both.values():
            own = getattr(posterior, name)(*options)
            xr.testing.assert_identical(found[own.name].drop_attrs(), own.drop_attrs())

    @pytest.mark.parametrize("name", ["cdf", "exceedance"])
    def test_probabilities_have_their_own_thresholds(self, both, name):
        found = getattr(both, name)(LIMITS)
        for variable, threshold in LIMITS.items():
            own = getattr(both[variable], name)(threshold)
            np.testing.assert_array_equal(found[f"{variable}_{name}"], own)
            assert found[f"{variable}_threshold"] == threshold


class TestJointExceedance:
    @pytest.mark.parametrize("how", ["all", "any"])
    def test_a_closed_form_and_draws_agree(self, both, how):
        found = both.joint_exceedance(LIMITS, how)
        assert "draws" not in found.attrs
        drawn = both.sample(4000)
        above = [drawn[v] > t for v, t in LIMITS.items()]
        want = (above[0] & above[1] if how == "all" else above[0] | above[1]).mean("realization")
        error = np.sqrt(0.25 / 4000)
        assert abs(found - want).max() < 4.0 * error

    def test_a_part_of_each(self, both):
        each = both.exceedance(LIMITS)
        every, some = (both.joint_exceedance(LIMITS, how) for how in ("all", "any"))
        single = each["metal_exceedance"], each["proxy_exceedance"]
        assert (every <= np.minimum(*single) + 1e-12).all()
        assert (some >= np.maximum(*single) - 1e-12).all()
        np.testing.assert_allclose(every + some, single[0] + single[1], atol=1e-12)

    def test_order_does_not_matter(self, both):
        other = dict(reversed(LIMITS.items()))
        np.testing.assert_allclose(
            both.joint_exceedance(LIMITS), both.joint_exceedance(other), atol=1e-12
        )

    def test_inflated_errors(self, sites, grid):
        few = sites.isel(site=slice(0, 22))
        laws = {"metal": "lognormal", "proxy": "normal"}
        options = FIXED | {"uncertainty": "inflated", "method": "full", "marginals": laws}
        both = xcopula.fit(few, "metal", "proxy", **options).posterior(grid, variables=NAMES)
        found = both.joint_exceedance(LIMITS)
        drawn = both.sample(4000)
        want = ((drawn["metal"] > 1.4) & (drawn["proxy"] > 10.5)).mean("realization")
        assert abs(found - want).max() < 4.0 * np.sqrt(0.25 / 4000)

    def test_a_threshold_for_each_cell(self, both, grid):
        field = (1.0 + 0.2 * grid["x"]).assign_attrs(units="mg kg-1")
        found = both.joint_exceedance({"metal": field, "proxy": 10.5})
        for k in (0, 4):
            number = both.joint_exceedance({"metal": float(field[k]), "proxy": 10.5})
            np.testing.assert_allclose(found.isel(x=k), number.isel(x=k), atol=1e-12)

    def test_three_by_draws(self, triple, grid):
        target = grid.isel(x=[1, 4])
        three = triple.posterior(target, variables=["metal", "proxy", "other"])
        limits = LIMITS | {"other": 10.0}
        found = three.joint_exceedance(limits, n=300, seed=4)
        assert found.attrs["draws"] == 300
        drawn = three.sample(300, seed=4)
        want = (drawn["metal"] > 1.4) & (drawn["proxy"] > 10.5) & (drawn["other"] > 10.0)
        np.testing.assert_allclose(found, want.mean("realization"), atol=1e-12)

    @pytest.mark.parametrize("how", ["all", "any"])
    def test_lazily_in_closed_form(self, both, model, grid, how):
        field = (1.0 + 0.2 * grid["x"]).assign_attrs(units="mg kg-1")
        lazy = model.posterior(grid, variables=NAMES, chunks=4)
        for limits in (LIMITS, {"metal": field, "proxy": 10.5}):
            found = lazy.joint_exceedance(limits, how)
            assert found.chunks is not None
            xr.testing.assert_allclose(found, both.joint_exceedance(limits, how), rtol=1e-12)
            assert "draws" not in found.attrs

    def test_lazily_by_draws(self, triple, grid):
        target, names = grid.isel(x=[1, 4]), [*NAMES, "other"]
        limits = LIMITS | {"other": 10.0}
        lazy = triple.posterior(target, variables=names, chunks=4)
        found = lazy.joint_exceedance(limits, n=30)
        want = triple.posterior(target, variables=names).joint_exceedance(limits, n=30)
        xr.testing.assert_allclose(found, want, atol=1e-12)
        assert found.attrs == want.attrs

    @pytest.mark.parametrize("chunks", [None, 4])
    def test_of_one_variable(self, both, model, grid, chunks):
        found = model.posterior(grid, variables=NAMES, chunks=chunks)
        found = found.joint_exceedance({"proxy": 10.5})
        want = both["proxy"].exceedance(10.5)
        np.testing.assert_allclose(found, want, rtol=1e-13)
        assert "draws" not in found.attrs

    def test_no_threshold(self, model, sites):
        """NaN where a threshold is NaN, at sites of the data too."""
        place = sites[["x", "y"]].isel(site=[0, 1, 50])
        field = xr.DataArray([1.0, np.nan, np.nan], dims="site", attrs={"units": "mg kg-1"})
        both = model.posterior(place, variables=NAMES)
        for how in ("all", "any"):
            found = both.joint_exceedance({"metal": field, "proxy": 10.5}, how)
            assert found.isnull().values.tolist() == [False, True, True]

    def test_by_neighbours(self, trio, grid):
        laws = {"metal": "lognormal", "proxy": "normal"}
        options = FIXED | {"uncertainty": "plugin", "marginals": laws}
        model = xcopula.fit(trio, "metal", "proxy", solver=Neighbours(), **options)
        both = model.posterior(grid, variables=NAMES)
        assert both.joint_exceedance(LIMITS, n=100).attrs["draws"] == 100
        with pytest.raises(ValueError, match=r"exact solver only\. Take it of draws: `xr\.corr`"):
            both.correlation()

    def test_cells_outside_the_mask(self, model, grid):
        mask = (grid["x"] + 0.0 * grid["y"]) > 2.0
        both = model.posterior(grid, variables=NAMES, mask=mask)
        lazy = model.posterior(grid, variables=NAMES, mask=mask, chunks=4)
        for found in (both.joint_exceedance(LIMITS), lazy.joint_exceedance(LIMITS, n=5)):
            assert (found.isnull() == ~mask).all()


class TestCorrelation:
    def test_against_draws(self, both):
        found = both.correlation()
        drawn = both.sample(4000)
        scores = [np.log(drawn["metal"]), drawn["proxy"]]  # normal scores, but for scale
        want = xr.corr(*scores, dim="realization")
        error = (1.0 - found**2) / np.sqrt(4000)
        assert (abs(found - want) < 4.2 * error).all()

    def test_a_datum_leaves_nothing_to_share(self, model, sites):
        place = sites.isel(site=[0, 3, 50])
        found = model.posterior(place, variables=NAMES).correlation()
        np.testing.assert_array_equal(found, 0.0)
        signal = model.posterior(place, variables=NAMES, of="signal").correlation()
        assert (signal > 0.05).all()

    def test_of_two_only(self, triple, grid):
        three = triple.posterior(grid, variables=["metal", "proxy", "other"])
        with pytest.raises(ValueError, match=r"A correlation is of two variables, found \['metal'"):
            three.correlation()


class TestFunctionals:
    def test_a_function_of_all(self, both):
        """The share of cells with too much of both is what draws say."""

        def share(draws, dims):
            return ((draws["metal"] > 1.4) & (draws["proxy"] > 10.5)).mean(dims)

        found = both.reduce(share, n=60, seed=2)
        drawn = both.sample(60, seed=2)
        want = share(drawn, ("y", "x"))
        assert found["mean"] == pytest.approx(float(want.mean()))
        want = both.joint_exceedance(LIMITS).mean()  # in closed form
        assert abs(found["mean"] - want) < 4.0 * found["mean_error"]

    def test_in_batches_and_lazily(self, both, model, grid, monkeypatch):
        def largest(draws, dims):
            return (draws["metal"] * draws["proxy"]).max(dims)

        whole = both.reduce(largest, "y", n=10)
        lazy = model.posterior(grid, variables=NAMES, chunks=4).reduce(largest, "y", n=10)
        assert lazy["mean"].chunks is not None
        xr.testing.assert_allclose(lazy.compute(), whole)
        monkeypatch.setattr("xcopula.prediction.ensembles.drawn_together", lambda *sizes: 3)
        xr.testing.assert_allclose(both.reduce(largest, "y", n=10), whole)

    @pytest.mark.parametrize(
        ("name", "arguments"), [("max", ("x",)), ("area_mean", ()), ("max", ())]
    )
    def test_by_name(self, both, name, arguments):
        found = getattr(both, name)(*arguments, n=8)
        assert found["variable"].values.tolist() == NAMES
        for variable, posterior in both.items():
            own = getattr(posterior, name)(*arguments, n=8)
            np.testing.assert_allclose(found["mean"].sel(variable=variable), own["mean"])
            np.testing.assert_allclose(found["quantiles"].sel(variable=variable), own["quantiles"])

    @pytest.mark.parametrize("name", ["area_above", "fraction_above"])
    def test_above_their_thresholds(self, both, name):
        found = getattr(both, name)(LIMITS, n=8)
        for variable, threshold in LIMITS.items():
            own = getattr(both[variable], name)(threshold, n=8)
            np.testing.assert_allclose(found["mean"].sel(variable=variable), own["mean"])
            assert found["threshold"].sel(variable=variable) == threshold

    def test_along_time(self):
        data = daily()
        noise = np.random.default_rng(0).normal(size=data["level"].shape)
        data = data.assign(other=data["level"] + noise)
        options = FIXED | {"uncertainty": "plugin", "marginals": "normal"}
        model = xcopula.fit(data, "level", "other", **options)
        both = model.posterior(data.isel(station=[0, 3]), variables=["level", "other"], of="signal")
        days = both.exceedance_days({"level": 0.5, "other": 0.0}, n=6)
        high = both.time_quantile(0.9, n=6)
        for found in (days, high):
            assert found["mean"].dims == ("variable", "station")
        own = both["other"].exceedance_days(0.0, n=6)
        np.testing.assert_allclose(days["mean"].sel(variable="other"), own["mean"])

    def test_no_function(self, both):
        with pytest.raises(TypeError, match=r"`function` must be a function of draws and dims, f"):
            both.reduce("max")


class TestBadInput:
    def test_both_ways(self, model, grid):
        with pytest.raises(ValueError, match="Give `variable` or `variables`, not both, found"):
            model.posterior(grid, variable="metal", variables=NAMES)

    @pytest.mark.parametrize("variables", ["metal", 3])
    def test_no_list(self, model, grid, variables):
        with pytest.raises(TypeError, match="`variables` must be a list of names, found"):
            model.posterior(grid, variables=variables)

    @pytest.mark.parametrize("variables", [[], ["metal", "metal"]])
    def test_names_must_differ(self, model, grid, variables):
        with pytest.raises(ValueError, match="`variables` must be different names, one at least"):
            model.posterior(grid, variables=variables)

    def test_a_variable_that_the_model_does_not_have(self, model, grid, both):
        with pytest.raises(KeyError, match="The model has no variable 'lead'"):
            model.posterior(grid, variables=["metal", "lead"])
        with pytest.raises(KeyError, match="There is no posterior of 'lead'; there are"):
            both.joint_exceedance({"metal": 1.0, "lead": 2.0})

    @pytest.mark.parametrize("thresholds", [1.0, {}, ["metal"]])
    def test_thresholds_need_names(self, both, thresholds):
        with pytest.raises(TypeError, match=r"`thresholds` must be a mapping of variables to num"):
            both.joint_exceedance(thresholds)

    def test_how(self, both):
        with pytest.raises(ValueError, match=r"`how` must be one of \('all', 'any'\), found 'or'"):
            both.joint_exceedance(LIMITS, "or")

    def test_other_units(self, both, grid):
        field = grid["x"].assign_attrs(units="K")
        with pytest.raises(ValueError, match=r"The threshold is in 'K', 'metal' in 'mg kg-1'"):
            both.joint_exceedance({"metal": field, "proxy": 1.0})

    def test_numbers(self, both):
        with pytest.raises(ValueError, match="`n` must be at least 1, found 0"):
            both.joint_exceedance(LIMITS, n=0)
        with pytest.raises(TypeError, match="`seed` must be an integer"):
            both.joint_exceedance(LIMITS, seed=1.5)
