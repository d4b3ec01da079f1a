"""The labelled posterior."""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext

import dask
import numpy as np
import pytest
import xarray as xr
from conftest import METHODS
from scipy.special import ndtr
from strategies import raise_if_dask_computes

import xcopula
from xcopula.prediction.predictor import Predictor
from xcopula.solvers import Neighbours


@pytest.fixture(scope="module", params=["memory", "lazy"])
def posterior(request, model, grid):
    """The posterior on the grid, in memory and lazily."""
    return model.posterior(grid, chunks={"x": 3} if request.param == "lazy" else None)


class TestPosterior:
    def test_repr_says_where_and_how(self, posterior):
        """The repr names the variable, the sizes and whether it is lazy."""
        kind = "lazy" if posterior.lazy else "in memory"
        assert repr(posterior) == f"<xcopula.Posterior of 'metal' on (y: 6, x: 7), {kind}>"

    def test_lazy_follows_the_target(self, posterior):
        """Results are dask-backed exactly where the posterior is lazy."""
        for result in (posterior.median(), posterior.cdf(2.0), posterior.latent["std"]):
            assert (result.chunks is not None) == posterior.lazy

    def test_median_is_the_middle_quantile(self, posterior):
        """The median carries no quantile coordinate."""
        median = posterior.median()
        assert "quantile" not in median.coords
        assert median.name == "metal_median"
        xr.testing.assert_equal(median, posterior.quantile(0.5).drop_vars("quantile"))

    def test_interval(self, posterior):
        """The interval has bounds lower and upper, at the quantiles of its level."""
        interval = posterior.interval(0.8)
        assert interval.dims == ("bound", "y", "x")
        assert interval["bound"].values.tolist() == ["lower", "upper"]
        np.testing.assert_allclose(interval, posterior.quantile([0.1, 0.9]), rtol=1e-12)
        assert interval.attrs["units"] == "mg kg-1"

    @pytest.mark.parametrize("level", [0.0, 1.0, 90])
    def test_interval_of_a_wrong_level(self, posterior, level):
        """A level is a probability."""
        with pytest.raises(ValueError, match="strictly between 0 and 1"):
            posterior.interval(level)

    def test_cdf_of_a_number_and_of_a_sequence(self, posterior):
        """A number gives a scalar coordinate, a sequence a first dim threshold with units."""
        one = posterior.cdf(2.0)
        assert one.dims == ("y", "x")
        assert float(one["threshold"]) == 2.0
        several = posterior.cdf([1.0, 2.0, 5.0])
        assert several.dims == ("threshold", "y", "x")
        assert several["threshold"].attrs == {"units": "mg kg-1"}
        assert several.attrs["units"] == "1"
        xr.testing.assert_allclose(several.sel(threshold=2.0), one)
        assert (several.compute().diff("threshold") > 0).all()

    def test_cdf_inverts_quantile(self, posterior):
        """The probability of at most a quantile is its level."""
        cell = posterior.quantile([0.05, 0.3, 0.99]).isel(x=2, y=1).values
        probability = posterior.cdf(cell).isel(x=2, y=1)
        np.testing.assert_allclose(probability, [0.05, 0.3, 0.99], rtol=1e-9)

    def test_exceedance_is_the_rest(self, posterior):
        """P(Y > y) = 1 - P(Y <= y)."""
        for value in (0.5, [1.0, 2.0]):
            total = posterior.exceedance(value) + posterior.cdf(value)
            np.testing.assert_allclose(total, 1.0, rtol=1e-12)
        assert "more than" in posterior.exceedance(1.0).attrs["long_name"]

    def test_thresholds_outside_the_support_are_sure(self, posterior):
        """Below zero a log-normal variable is never, above infinity it is never either."""
        np.testing.assert_array_equal(posterior.exceedance([-1.0, 0.0]), 1.0)
        np.testing.assert_array_equal(posterior.exceedance(np.inf), 0.0)

    @pytest.mark.parametrize("value", [np.nan, [1.0, np.nan], [[1.0]]])
    def test_wrong_thresholds(self, posterior, value):
        """A threshold is a number or a sequence of numbers."""
        with pytest.raises(
            ValueError, match="A threshold must be a number or a sequence of numbers"
        ):
            posterior.cdf(value)

    def test_latent(self, posterior, model):
        """The latent moments explain every other result."""
        latent = posterior.latent
        assert set(latent) == {"mean", "std"}
        assert latent["mean"].dims == ("y", "x")
        assert latent["std"].attrs == {"long_name": "latent standard deviation", "units": "1"}
        assert ((latent["std"] > 0) & (latent["std"] <= 1 + 1e-12)).all()
        law = model.marginals[0]
        np.testing.assert_allclose(posterior.median(), law.from_normal(latent["mean"].values))
        expected = ndtr((float(law.to_normal(2.0)) - latent["mean"]) / latent["std"])
        np.testing.assert_allclose(posterior.cdf(2.0), expected, rtol=1e-12)

    def test_mean_and_std_of_a_lognormal_law(self, posterior, model):
        """Moments of a log-normal prediction have a closed form."""
        law, latent = model.marginals[0], posterior.latent
        m = law.location + law.scale * latent["mean"].values
        v = (law.scale * latent["std"].values) ** 2
        mean = np.exp(m + v / 2)
        np.testing.assert_allclose(posterior.mean(), mean, rtol=1e-10)
        np.testing.assert_allclose(posterior.std(), mean * np.sqrt(np.expm1(v)), rtol=1e-8)

    def test_std_has_a_name_of_its_own(self, posterior):
        """A standard deviation is not the variable: suffix, units, a modified standard name."""
        std = posterior.std()
        assert std.name == "metal_std"
        assert std.attrs == {
            "units": "mg kg-1",
            "standard_name": "metal standard_error",
            "long_name": "standard deviation of metal in topsoil",
        }
        assert posterior.mean().name == "metal_mean"
        assert posterior.mean().attrs["standard_name"] == "metal"
        assert posterior.mean().attrs["long_name"] == "mean of metal in topsoil"

    def test_results_can_be_merged(self, posterior):
        """Each has a name that says what it is, and none takes another's place."""
        merged = xr.merge(
            [
                posterior.quantile([0.05, 0.95]),
                posterior.median(),
                posterior.mean(),
                posterior.std(),
                posterior.interval(0.5),
                posterior.cdf(2.0),
                posterior.exceedance(2.0),
                posterior.latent,
            ],
            compat="no_conflicts",
        )
        assert set(merged) == {
            "metal",
            *(f"metal_{w}" for w in ("median", "mean", "std", "interval", "cdf", "exceedance")),
            *("mean", "std"),
        }
        assert merged["metal_exceedance"].attrs["units"] == "1"
        assert merged["metal_interval"].attrs["long_name"] == "50 % interval of metal in topsoil"

    def test_a_coordinate_of_a_result_s_name_gives_way(self, model, grid):
        """A target may carry an earlier result as a coordinate."""
        target = grid.assign_coords(metal_median=("x", np.zeros(7)), std=("y", np.zeros(6)))
        posterior = model.posterior(target)
        assert posterior.median().to_dataset()["metal_median"].dims == ("y", "x")
        assert "std" in posterior.median().coords
        assert set(posterior.latent) == {"mean", "std"}

    def test_can_be_compared_and_be_a_key(self, posterior):
        """Each is equal to itself alone, as a model is."""
        assert posterior == posterior
        assert posterior != dataclasses.replace(posterior)
        assert {posterior: 1}[posterior] == 1

    def test_is_frozen(self, posterior):
        """A posterior does not change."""
        with pytest.raises(dataclasses.FrozenInstanceError):
            posterior.attrs = {}

    def test_can_be_written(self, posterior, tmp_path):
        """Every result is plain netCDF."""
        xr.Dataset(
            {
                "quantiles": posterior.quantile([0.1, 0.9]),
                "interval": posterior.interval(),
                "risk": posterior.exceedance([1.0, 2.0]),
                "std": posterior.std(),
            }
        ).to_netcdf(tmp_path / "posterior.nc")


class TestThresholdsThatAreFields:
    """A limit that differs from cell to cell."""

    @pytest.fixture
    def limit(self, grid):
        """Two regions, along x."""
        return xr.where(grid["x"] < 2.0, 1.0, 3.0).assign_attrs(units="mg kg-1")

    @pytest.mark.parametrize("what", ["exceedance", "cdf"])
    def test_each_cell_has_its_own(self, posterior, limit, what):
        """As if each region were asked for alone; the limit is a coordinate of the result."""
        found = getattr(posterior, what)(limit)
        assert found.name == f"metal_{what}"
        assert found.dims == ("y", "x")
        assert (found.chunks is not None) == posterior.lazy
        xr.testing.assert_equal(found["threshold"].reset_coords(drop=True), limit)
        low, high = (getattr(posterior, what)(v).drop_vars("threshold") for v in (1.0, 3.0))
        expected = low.where(limit == 1.0, high)
        xr.testing.assert_equal(found.drop_vars("threshold"), expected)

    def test_in_any_order_of_dims_and_in_chunks(self, posterior, grid):
        """Labels count, not places; a lazy limit stays lazy where the posterior is."""
        limit = (1.0 + grid["x"] * grid["y"]).drop_attrs()  # on (x, y)
        expected = posterior.exceedance(limit.transpose("y", "x"))
        with raise_if_dask_computes() if posterior.lazy else nullcontext():
            found = posterior.exceedance(limit.chunk(x=2, y=5))
        xr.testing.assert_allclose(found, expected)

    def test_with_a_law_that_varies(self, fit_by, sloped_grid):
        """The law and the limit both have a value in each cell."""
        posterior = fit_by("full").posterior(sloped_grid, variable="proxy")
        limit = 8.0 + sloped_grid["height"].drop_attrs()
        found = posterior.exceedance(limit).isel(x=3, y=2)
        alone = posterior.exceedance(float(limit.isel(x=3, y=2))).isel(x=3, y=2)
        assert float(found) == pytest.approx(float(alone), rel=1e-12)

    def test_missing_limits_are_missing_results(self, posterior, limit):
        """NaN says that there is no limit."""
        found = posterior.exceedance(limit.where(limit < 2.0))
        assert (found.isnull() == (limit > 2.0)).all()

    def test_a_scalar_array_is_a_number(self, posterior, limit):
        """With its units."""
        xr.testing.assert_equal(posterior.cdf(limit[0]), posterior.cdf(1.0))

    @pytest.mark.parametrize(
        ("change", "error", "match"),
        [
            (lambda a: a.rename(x="z"), ValueError, r"threshold has dims \['z'\], the target has"),
            (lambda a: a.isel(x=slice(3)), ValueError, "along 'x' it has 3 entries"),
            (
                lambda a: a.assign_coords(x=a["x"] + 1.0),
                ValueError,
                "along 'x' it has other labels",
            ),
            (lambda a: a.assign_attrs(units="m"), ValueError, "is in 'm', 'metal' in 'mg kg-1'"),
            (lambda a: a[0].assign_attrs(units="m"), ValueError, "is in 'm', 'metal' in 'mg kg"),
            (lambda a: a.astype(str), TypeError, "found dtype <U"),
        ],
    )
    def test_refused(self, posterior, limit, change, error, match):
        """Other dims, cells, units or no numbers."""
        with pytest.raises(error, match=match):
            posterior.exceedance(change(limit))


class TestCrps:
    """The score of values on the cells of the target."""

    @pytest.fixture
    def observed(self, grid):
        """A value in each cell, in another order of dims; one is missing."""
        values = (1.0 + grid["x"] * grid["y"]).drop_attrs()
        return values.where(values != values[0, 0]).assign_attrs(units="mg kg-1")

    def test_against_the_integral(self, model, posterior, observed):
        """Of what the distribution function lacks, squared."""
        found = posterior.crps(observed)
        assert (found.name, found.dims) == ("metal_crps", ("y", "x"))
        assert (found.chunks is not None) == posterior.lazy
        assert found.attrs["units"] == "mg kg-1"
        assert found.attrs["long_name"].startswith("continuous ranked probability score of metal")
        assert "standard_name" not in found.attrs
        assert found.isnull().sum() == found.isnull()[0, 0] == 1
        latent = posterior.latent.isel(x=3, y=2)
        value = float(observed.isel(x=3, y=2))
        y = np.linspace(1e-6, 60.0, 400_001)
        z = (model.marginals["metal"].to_normal(y) - float(latent["mean"])) / float(latent["std"])
        expected = np.trapezoid((ndtr(z) - (y >= value)) ** 2, y)
        assert float(found.isel(x=3, y=2)) == pytest.approx(expected, rel=1e-3)

    def test_of_inflated_errors(self, model, grid, observed):
        """A value that is missing has no score, there either."""
        wide = model.with_uncertainty("inflated").posterior(grid).crps(observed)
        assert wide.isnull().sum() == wide.isnull()[0, 0] == 1
        assert not np.allclose(wide, model.posterior(grid).crps(observed), equal_nan=True)

    def test_nothing_is_computed(self, model, grid, observed):
        """On a lazy target, with lazy values."""
        with raise_if_dask_computes():
            found = model.posterior(grid, chunks={"x": 3}).crps(observed.chunk(x=2))
        xr.testing.assert_allclose(found, model.posterior(grid).crps(observed))

    @pytest.mark.parametrize(
        ("change", "error", "match"),
        [
            (lambda a: a.rename(x="z"), ValueError, r"`observed` has dims \['z'\], the target has"),
            (
                lambda a: a.isel(x=slice(3)),
                ValueError,
                "`observed` is not on the cells.*3 e",
            ),
            (lambda a: a.assign_attrs(units="m"), ValueError, "`observed` is in 'm', 'metal' in"),
            (lambda a: a.astype(str), TypeError, "`observed` must be a DataArray .* dtype <U"),
            (lambda a: 3.0, TypeError, r"`observed` must be a DataArray of numbers .* found 3\.0"),
        ],
    )
    def test_refused(self, posterior, observed, change, error, match):
        """Other dims, cells, units, or no numbers."""
        with pytest.raises(error, match=match):
            posterior.crps(change(observed))


def test_a_name_instead_of_quantiles(model, grid):
    """The second argument is not the variable."""
    with pytest.raises(TypeError, match=r"`quantiles` must be numbers.*pass `variable='proxy'`"):
        model.predict(grid, "proxy")


class TestMeanAlone:
    """The median needs the latent mean, and no variance where the method can do without."""

    @pytest.fixture
    def asked(self, monkeypatch):
        """What was asked of the predictor, block by block."""
        found = []
        for quantity in ("latent", "mean"):
            own = getattr(Predictor, quantity)

            def spy(self, *args, own=own, quantity=quantity):
                found.append(quantity)
                return own(self, *args)

            monkeypatch.setattr(Predictor, quantity, spy)
        return found

    @pytest.mark.parametrize("chunks", [None, {"x": 7, "y": 6}])
    @pytest.mark.parametrize("level", [0.5, [0.5], [0.5, 0.5]])
    def test_is_all_that_a_median_takes(self, model, grid, asked, level, chunks):
        """Also as a quantile, of one level or several; the values are those of both moments."""
        found = model.predict(grid, level, chunks=chunks)["metal"].compute()
        assert asked == ["mean"]
        both = model.predict(grid, [0.5, 0.9])["metal"]
        np.testing.assert_array_equal(found, both.sel(quantile=found["quantile"]))
        assert asked == ["mean", "latent"]

    def test_nothing_is_evaluated_before_it_is_needed(self, model, grid, asked):
        """Making a posterior costs nothing; repr, name and laziness neither."""
        posterior = model.posterior(grid)
        assert repr(posterior).endswith("(y: 6, x: 7), in memory>")
        assert not posterior.lazy
        assert asked == []

    def test_nothing_is_evaluated_twice_in_memory(self, model, grid, asked):
        """Moments that are known serve the median; so does a mean that is known."""
        posterior = model.posterior(grid)
        posterior.median()
        posterior.median()
        assert asked == ["mean"]
        posterior.interval()
        posterior.mean()
        posterior.median()
        assert asked == ["mean", "latent"]
        again = model.posterior(grid)
        again.latent.load()
        again.median()
        assert asked[2:] == ["latent"]

    def test_a_graph_does_not_depend_on_what_was_asked_before(self, model, grid, asked):
        """The keys of a lazy median are always the same."""
        first, second = (model.posterior(grid, chunks=3) for _ in range(2))
        second.interval()
        assert first.median().data.name == second.median().data.name
        second.median().compute()
        assert set(asked) == {"mean"}

    @pytest.mark.parametrize("chunks", [None, 3])
    def test_of_methods_whose_weights_need_variances(self, triple, grid, asked, chunks):
        """They evaluate both once, as before; their secondaries come from a pair."""
        posterior = triple.posterior(grid, chunks=chunks)
        posterior.median().compute()
        assert set(asked) == {"latent"}
        del asked[:]
        triple.posterior(grid, variable="proxy", chunks=chunks).median().compute()
        assert set(asked) == {"mean"}

    @pytest.mark.parametrize("tiles", [True, False])
    @pytest.mark.parametrize("chunks", [None, {"x": 7, "y": 6}])
    def test_of_neighbours_which_need_a_factor_for_either(self, model, grid, asked, tiles, chunks):
        """Both moments are evaluated once, whatever is asked for first."""
        local = dataclasses.replace(model, solver=Neighbours(predict=30, tiles=tiles))
        posterior = local.posterior(grid, chunks=chunks)
        median, interval = dask.compute(posterior.median(), posterior.interval(0.9))
        assert asked == ["latent"]
        both = local.predict(grid, [0.05, 0.5, 0.95])["metal"]
        np.testing.assert_array_equal(median, both.sel(quantile=0.5))
        np.testing.assert_array_equal(interval, both.sel(quantile=[0.05, 0.95]))

    @pytest.mark.parametrize(
        ("solver", "expected"), [("auto", "mean"), ("exact", "mean"), ("neighbours", "latent")]
    )
    def test_of_a_model_to_be(self, sites, grid, asked, solver, expected):
        """A graph asks for what its solver is best at; if none is known yet, for the mean."""
        fixed = {"marginals": "lognormal", "kernels": "matern32", "method": "full", "restarts": 0}
        fixed["uncertainty"] = "plugin"
        lazy = xcopula.fit(sites, "metal", solver=solver, compute=False, **fixed)
        assert (lazy.solver is None) == (solver == "auto")
        lazy.posterior(grid, chunks={"x": 7, "y": 6}).median().compute(scheduler="synchronous")
        assert asked == [expected]

    @pytest.mark.parametrize("method", list(METHODS))
    @pytest.mark.parametrize("variable", ["metal", "proxy"])
    @pytest.mark.parametrize("of", ["observation", "signal"])
    def test_equals_the_middle_of_both(self, fit_by, sloped, sloped_grid, method, variable, of):
        """For every method and variable, lazily and at the sites of the data, to 1e-12."""
        fitted = fit_by(method)
        for target, chunks in ((sloped_grid, {"x": 3, "y": 4}), (sloped, {"site": 11})):
            both = fitted.predict(target, [0.5, 0.7], variable=variable, of=of)[variable]
            expected = both.sel(quantile=0.5)
            for found in (
                fitted.predict(target, 0.5, variable=variable, of=of)[variable],
                fitted.predict(target, 0.5, variable=variable, of=of, chunks=chunks)[variable],
            ):
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


class TestSecondary:
    """A posterior of a variable that is not the primary."""

    @pytest.fixture(scope="class", params=["memory", "lazy"])
    @classmethod
    def proxy(cls, request, model, grid):
        """The posterior of the proxy, in memory and lazily."""
        chunks = {"x": 3} if request.param == "lazy" else None
        return model.posterior(grid, variable="proxy", chunks=chunks)

    def test_has_its_name(self, proxy):
        """In the repr and in every result."""
        assert proxy.name == "proxy"
        assert repr(proxy).startswith("<xcopula.Posterior of 'proxy' on (y: 6, x: 7)")
        assert proxy.quantile([0.1, 0.9]).name == "proxy"
        assert proxy.median().name == "proxy_median"
        assert proxy.cdf(9.0).name == "proxy_cdf"
        assert proxy.mean().name == "proxy_mean"
        assert proxy.std().name == "proxy_std"
        assert "of proxy" in proxy.exceedance(9.0).attrs["long_name"]

    def test_is_on_the_scale_of_its_own_law(self, proxy, model):
        """A normal law: all results have a closed form."""
        law, latent = model.marginals[1], proxy.latent.compute()
        centre = law.location + law.scale * latent["mean"].values
        width = law.scale * latent["std"].values
        np.testing.assert_allclose(proxy.median(), centre, rtol=1e-12)
        np.testing.assert_allclose(proxy.mean(), centre, rtol=1e-8)
        np.testing.assert_allclose(proxy.std(), width, rtol=1e-6)
        np.testing.assert_allclose(proxy.cdf(9.0), ndtr((9.0 - centre) / width), rtol=1e-9)
        np.testing.assert_allclose(proxy.exceedance(9.0), ndtr((centre - 9.0) / width), rtol=1e-9)
        lower, upper = proxy.interval(0.5).values
        np.testing.assert_allclose(upper - lower, 2.0 * 0.6744897501960817 * width, rtol=1e-9)


class TestInformation:
    def test_of_a_single_task(self, alone, grid):
        """A model without secondaries names its variable."""
        with pytest.raises(ValueError, match="The model of 'metal' has no secondaries"):
            alone.posterior(grid).information()

    def test_of_another_method(self, model, grid):
        """The method is named, and which can tell."""
        with pytest.raises(ValueError, match=r"method='full' cannot tell.*method='transductive'"):
            model.posterior(grid).information()

    @pytest.mark.parametrize("of", ["observation", "signal"])
    @pytest.mark.parametrize("chunks", [None, 3])
    def test_is_the_gain_of_each_pair(self, triple, grid, of, chunks):
        """Precision of the pair less that of the primary alone, times its weight."""
        found = triple.posterior(grid, of=of, chunks=chunks).information()
        assert found["secondary"].values.tolist() == ["proxy", "other"]
        assert found.dims == ("secondary", "y", "x")
        x, y = np.meshgrid(grid["x"], grid["y"])
        targets = triple.observations.targets([x.ravel(), y.ravel()])
        models = triple.conditioned.models
        precision = [1.0 / m.moments(targets, nugget=of == "observation").variance for m in models]
        for k, beta in enumerate(triple.conditioned.rule.beta):
            gain = beta * (precision[k + 1] - precision[0])
            np.testing.assert_allclose(found[k].values.ravel(), gain, rtol=1e-8)
