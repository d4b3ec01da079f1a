"""The fitted model: what it says of itself, and that it does not change."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest
import xarray as xr

import xcopula
from xcopula.methods import resolve_method
from xcopula.process.copula import Sample


class TestDescription:
    def test_repr_and_summary(self, model):
        """The repr tells the tasks, the laws, the likelihood and the data, and no address."""
        text = repr(model)
        assert text == f"<xcopula.CopulaModel>\n{model.summary()}"
        for part in (
            "'metal' with 'proxy'",
            "method 'full', coupling 'convolution', 1 structure, correlated nugget",
            f"log-likelihood {model.log_likelihood:.2f} with {model.theta.size} parameters",
            f"after {model.evaluations} evaluations",
            "100 observations, inputs space(x, y)",
            "lognormal",
            "matern32",
            "correlation with metal",
        ):
            assert part in text
        assert " at 0x" not in text
        assert " km" in text

    def test_summary_of_a_single_task(self, alone):
        """A model of one variable has no table of correlations."""
        assert "correlation with" not in alone.summary()
        assert alone.summary().startswith("Multi-task Gaussian copula process of 'metal'\n")

    def test_failure_to_converge_is_said(self, model):
        """The summary passes on why the optimiser stopped."""
        stopped = dataclasses.replace(model, converged=False, message="LIMIT REACHED")
        assert "NOT converged (LIMIT REACHED)" in stopped.summary()

    def test_html_is_the_summary_and_the_parameters(self, model):
        """The HTML repr names the tasks, escapes what it must, and embeds the parameters."""
        text = model._repr_html_()
        assert "&#x27;metal&#x27; with &#x27;proxy&#x27;" in text
        assert "length_scale" in text
        assert " at 0x" not in text


class TestParameters:
    def test_dims_units_and_unit_variance(self, model):
        """Parameters are labelled, in the units of the data, and the variance is one."""
        p = model.parameters
        assert p["length_scale"].dims == ("structure", "group", "task")
        assert p["length_scale"].attrs["units"] == "km"
        assert list(p["task"].values) == ["metal", "proxy"]
        assert list(p["group"].values) == ["space"]
        assert list(p["axis"].values) == ["x", "y"]
        np.testing.assert_allclose(p["variance"].sum("structure") + p["nugget"], 1.0, rtol=1e-12)
        assert p["correlation"].dims == ("structure", "task", "other")
        np.testing.assert_allclose(np.diagonal(p["correlation"][0]), 1.0)
        assert list(p["marginal"].values) == ["lognormal", "normal"]
        assert (p["length_scale"] > 0.05).all()
        assert (p["length_scale"] < 10.0).all()

    def test_marginal_parameters_are_those_of_the_laws(self, model):
        """The table of parameters agrees with the laws themselves."""
        table = model.parameters["marginal_parameter"]
        for name, law in zip(model.tasks, model.marginals, strict=True):
            for key, value in law.parameters.items():
                assert float(table.sel(task=name, parameter=key)) == value

    def test_laws_without_a_parameter_have_nan(self, sites):
        """Laws of different parameters share a table, with NaN where there is none."""
        fitted = xcopula.fit(
            sites,
            "metal",
            "proxy",
            marginals={"metal": "gamma", "proxy": "normal"},
            method="full",
            kernels="matern32",
            coupling="icm",
            restarts=0,
        )
        table = fitted.parameters["marginal_parameter"]
        assert set(table["parameter"].values) > {"location"}
        assert np.isnan(table.sel(task="metal", parameter="location"))

    def test_several_structures(self, sites):
        """Nested structures share the variance with the nugget."""
        fitted = xcopula.fit(
            sites,
            "metal",
            marginals="lognormal",
            method="full",
            kernels="matern32",
            structures=2,
            restarts=0,
        )
        p = fitted.parameters
        assert p.sizes["structure"] == 2
        np.testing.assert_allclose(p["variance"].sum("structure") + p["nugget"], 1.0)
        assert "2 structures" in fitted.summary()

    def test_can_be_written(self, model, tmp_path):
        """Parameters and selection are plain netCDF."""
        for name in ("parameters", "selection"):
            getattr(model, name).to_netcdf(tmp_path / f"{name}.nc")

    def test_length_scales_do_not_depend_on_units(self, sites, alone):
        """The same data in metres have the same lengths, in km; without units, their own."""
        metres = sites.assign_coords(
            {n: ("site", 1000.0 * sites[n].values, {"units": "m"}) for n in "xy"}
        )
        bare = metres.assign_coords({n: ("site", metres[n].values) for n in "xy"})
        for data, units, factor in ((metres, "km", 1.0), (bare, "", 1000.0)):
            fitted = xcopula.fit(
                data, "metal", marginals="lognormal", method="full", kernels="matern32", restarts=0
            )
            lengths = fitted.parameters["length_scale"]
            np.testing.assert_allclose(
                lengths, factor * alone.parameters["length_scale"], rtol=1e-4
            )
            assert lengths.attrs["units"] == units
            assert fitted.log_likelihood == pytest.approx(alone.log_likelihood, abs=1e-6)


class TestSelection:
    def test_lists_the_candidates_best_first(self):
        """Step one reports every candidate it compared, ranked within each task."""
        fitted = xcopula.fit(
            xcopula.datasets.toy(0), "primary", method="full", kernels="matern32", restarts=0
        )
        table = fitted.selection
        assert table["rank"].values.tolist() == list(range(table.sizes["candidate"]))
        assert set(table["marginal"].values) >= {"normal", "gev", "t", "parzen", "lognormal"}
        assert set(table["kernel"].values) == {"matern32"}
        believable = table.where(table["largest_score"] <= 5.0, drop=True)
        assert (np.diff(believable["aic"]) >= 0).all()
        assert fitted.marginals[0].name == str(table["marginal"].values[0])

    def test_of_given_laws_and_kernels(self, model):
        """What was given is the only candidate."""
        assert model.selection.sizes["candidate"] == 2
        assert model.selection["task"].values.tolist() == ["metal", "proxy"]
        assert model.selection["rank"].values.tolist() == [0, 0]


class TestLeaveOneOut:
    def test_is_a_labelled_table_of_the_primary(self, model, sites):
        """Every observation of the primary has its place, its quantiles and its scores."""
        loo = model.loo()
        assert loo.sizes == {"observation": 40}
        np.testing.assert_array_equal(loo["observed"], sites["metal"].values[:40])
        np.testing.assert_array_equal(loo["x"], sites["x"].values[:40])
        assert ((loo["pit"] > 0) & (loo["pit"] < 1)).all()
        assert (loo["lower"] < loo["median"]).all()
        assert (loo["median"] < loo["upper"]).all()
        assert (loo["std"] <= 1.0 + 1e-9).all()

    @pytest.mark.parametrize("k", [0, 17, 39])
    def test_equals_a_model_without_the_observation(self, model, k):
        """Closed form and honest deletion agree, at the same parameters."""
        sample = model.observations.sample
        inputs = [np.delete(sample.inputs[:, :40], k, axis=1).T, sample.inputs[:, 40:].T]
        values = [np.delete(sample.values[:40], k), sample.values[40:]]
        method = resolve_method(model.method)
        without = method.condition(model.process, Sample.of(inputs, values), model.theta)
        moments = without.moments(sample.inputs[:, [k]].copy())
        loo = model.loo().isel(observation=k)
        law = model.marginals[0]
        np.testing.assert_allclose(loo["median"], law.from_normal(moments.mean[0]), rtol=1e-8)
        np.testing.assert_allclose(loo["std"], np.sqrt(moments.variance[0]), rtol=1e-8)

    def test_equals_prediction_by_a_reduced_model(self, model, sites):
        """The same through the labelled side: a model with the datum removed predicts it."""
        seen, sample = model.observations, model.observations.sample
        fewer = Sample.of(
            [np.delete(sample.inputs[:, :40], 5, axis=1).T, sample.inputs[:, 40:].T],
            [np.delete(sample.values[:40], 5), sample.values[40:]],
        )
        without = dataclasses.replace(seen, sample=fewer, sites=np.delete(seen.sites, 5, axis=0))
        reduced = dataclasses.replace(model, observations=without)
        at = reduced.predict(sites.isel(site=[5]), [0.05, 0.5, 0.95])["metal"].values[:, 0]
        loo = model.loo().isel(observation=5)
        np.testing.assert_allclose(
            at, [float(loo[n]) for n in ("lower", "median", "upper")], rtol=1e-8
        )

    def test_log_score_is_a_log_density(self, model):
        """The score is the derivative of the predictive distribution function at the datum."""
        from scipy.special import ndtr

        loo, law, step = model.loo(), model.marginals[0], 1e-5
        y, mean, std = loo["observed"].values, loo["mean"].values, loo["std"].values
        above, below = (ndtr((law.to_normal(v) - mean) / std) for v in (y + step, y - step))
        np.testing.assert_allclose(
            np.exp(loo["log_score"]), (above - below) / (2 * step), rtol=1e-4, atol=1e-9
        )


class TestImmutability:
    @pytest.mark.parametrize("name", ["theta", "method", "log_likelihood", "anything"])
    def test_attributes_cannot_be_set(self, model, name):
        """A fitted model is frozen."""
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(model, name, 1)

    def test_predicting_changes_nothing_visible(self, model, grid):
        """Predictions before and after each other are the same."""
        theta = model.theta.copy()
        first = model.predict(grid)
        model.predict(grid, 0.9, of="signal")
        model.loo()
        xr.testing.assert_identical(model.predict(grid), first)
        np.testing.assert_array_equal(model.theta, theta)


class TestPickle:
    def test_the_factor_does_not_travel(self, model, grid):
        """A pickle is small, and predicts the same to the last bit."""
        before = model.predict(grid)
        data = pickle.dumps(model)
        assert len(data) < model.conditioned.factor.nbytes
        loaded = pickle.loads(data)
        assert not {"conditioned", "predictor"} & set(loaded.__dict__)
        xr.testing.assert_identical(loaded.predict(grid), before)
        assert loaded.summary() == model.summary()

    def test_copy(self, model, grid):
        """A deep copy predicts the same."""
        xr.testing.assert_identical(copy.deepcopy(model).predict(grid), model.predict(grid))

    def test_the_token_tells_models_apart(self, model, alone):
        """Dask gives equal models one name and different models two."""
        from dask.base import tokenize

        assert tokenize(model) == tokenize(pickle.loads(pickle.dumps(model)))
        moved = dataclasses.replace(model, theta=model.theta + 1e-9)
        assert len({tokenize(m) for m in (model, alone, moved)}) == 3
