"""A model in a few lines of text."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
import xarray as xr
from conftest import FIXED, METHODS

import xcopula


class TestDescription:
    def test_repr_and_summary(self, model):
        """The repr tells the tasks, the laws, the likelihood and the data, and no address."""
        text = repr(model)
        assert text.startswith("<xcopula.CopulaModel>\nMulti-task")
        assert set(text.splitlines()[1:]) < set(model.summary().splitlines())
        for part in (
            "'metal' with 'proxy'",
            "method 'full', solver 'exact', 1 structure",
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

    def test_correlations_are_those_with_the_primary(self, model):
        """Of the signal and of the nugget, with their signs."""
        found = model.parameters
        signal = float(found["correlation"].sel(structure=0, task="metal", other="proxy"))
        nugget = float(found["nugget_correlation"].sel(task="metal", other="proxy"))
        lines = model.summary().splitlines()
        first = next(k for k, line in enumerate(lines) if "correlation with" in line)
        head, row = (line.split() for line in lines[first : first + 2])
        assert head == ["correlation", "with", "metal", "signal", "nugget"]
        errors = model.parameters["correlation_error"], model.parameters["nugget_correlation_error"]
        at = {"task": "metal", "other": "proxy"}
        first, second = float(errors[0].sel(structure=0, **at)), float(errors[1].sel(**at))
        expected = f"proxy {signal:+.2f} ± {first:.2f} {nugget:+.2f} ± {second:.2f}"
        assert row == expected.split()

    def test_summary_of_a_single_task(self, alone):
        """A model of one variable has no table of correlations."""
        assert "correlation with" not in alone.summary()
        assert alone.summary().startswith("Multi-task Gaussian copula process of 'metal'\n")

    def test_a_model_is_shown_without_being_conditioned(self, alone):
        """Not even in a notebook: that takes long for many data."""
        fresh = dataclasses.replace(alone)
        assert repr(fresh)
        assert fresh._repr_html_()
        assert "conditioned" not in vars(fresh)

    def test_of_one_variable_the_likelihood_is_not_composite(self, sites):
        """There is no pair, whatever the method; how values are left out is said."""
        days = xr.date_range("2020-01-01", periods=2)
        data = sites["metal"].drop_vars("time", errors="ignore").expand_dims(time=days)
        data = (data * xr.DataArray([1.0, 1.5], dims="time")).to_dataset(name="metal")
        model = xcopula.fit(data, "metal", marginals="lognormal", kernels="matern32")
        assert "\n  log-likelihood " in model.summary()
        assert "all others, other times too; param" in model.summary()

    def test_numbers_without_exponents(self, sites):
        """Lengths of thousands of kilometres are written out."""
        wide = {n: (1e4 * sites[n]).assign_attrs(sites[n].attrs) for n in ("x", "y")}
        options = {"marginals": "lognormal", "anisotropy": False, **FIXED}
        text = xcopula.fit(sites.assign_coords(wide), "metal", **options).summary()
        assert re.search(r" \d,\d{3} km", text)
        assert "e+0" not in text

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

    @pytest.mark.parametrize("method", METHODS)
    def test_names_what_was_maximised_and_the_solver(self, fit_by, method):
        """Pairs maximise a composite likelihood; sparse methods do not use the solver."""
        model = fit_by(method)
        lines = model.summary().splitlines()
        assert lines[0] == "Multi-task Gaussian copula process of 'metal' with 'proxy'"
        solver = "" if method in ("dtc", "fitc", "pitc") else ", solver 'exact'"
        begins = [f"  method {method!r}{solver}, 1 structure, coupling "]
        what = "composite log-likelihood" if method == "transductive" else "log-likelihood"
        begins.append(f"  {what} {model.log_likelihood:.2f} with ")
        place = next(k for k, line in enumerate(lines) if line.startswith("  method"))
        for line, begin in zip(lines[place : place + 2], begins, strict=True):
            assert line.startswith(begin)

    def test_what_a_user_wants_to_know_comes_first(self, model):
        """The data, then the variables; how it was fitted is at the end, and no costs."""
        lines = model.summary().splitlines()
        assert lines[1] == "  100 observations, inputs space(x, y)"
        assert lines[2].startswith("  metal, leave-one-out: CRPS ")
        assert lines[3] == "    each value predicted from all others; parameters not refitted"
        heads = [line.split()[:3] for line in lines if line.startswith("  variable ")]
        assert heads == [["variable", "values", "marginal"], ["variable", "kernel", "nugget"]]
        assert "an evaluation takes" not in model.summary()
        assert lines[-3].startswith("  method")
        assert lines[-1] == "  errors: normal, parameters taken for certain"

    def test_the_date_of_the_data(self, sites):
        """A model of one day says which."""
        options = {"marginals": "lognormal", **FIXED}
        for when, shown in (("2020-03-01", "2020-03-01"), ("2020-03-01T06", "2020-03-01 06:00")):
            data = sites.assign_coords(time=np.datetime64(when, "ns"))
            text = xcopula.fit(data, "metal", **options).summary()
            assert f"40 observations of {shown}, inputs" in text

    def test_ranges_of_each_axis_are_in_its_units(self, sites):
        """With ard, the length along an axis is where its own correlation has fallen so far."""
        options = {"marginals": "lognormal", **FIXED}
        stretched = sites.assign_coords(y=(10.0 * sites["y"]).assign_attrs(sites["y"].attrs))
        model = xcopula.fit(stretched, "metal", ard=True, **options)
        found = re.search(r"x ([\d.e+]+) km; y ([\d.e+]+) km", model.summary())
        system, process = model.coordinates, model.process
        state = process.state(model.theta)
        length = float(np.exp(process.covariance.part(model.theta, "length").item(0)))
        for k, text in enumerate(found.groups()):
            # A step of that many kilometres is one length scale of the kernel.
            step = float(text) / system.scale[k] * state.mapping[k, k]
            assert step == pytest.approx(length, rel=0.01)

    @pytest.mark.parametrize("method", METHODS)
    def test_has_no_blank_line_at_its_end(self, fit_by, method):
        """Whether a method has something to add or not."""
        assert fit_by(method).summary() == fit_by(method).summary().rstrip()

    def test_a_law_that_varies_has_its_slope_with_units(self, fit_by):
        """The slope is per unit of the field."""
        slope = fit_by("full").marginals[1].parameters["height"]
        lines = fit_by("full").summary().splitlines()
        assert any(line.endswith("height per km") for line in lines)
        assert any("normal ~ height" in line and line.endswith(f"{slope:.4g}") for line in lines)

    def test_what_zeros_are(self, sites):
        """How many there are, and that the marginal goes on below them."""
        data = sites.assign(metal=sites["metal"].where(sites["metal"] > 1.2, 0.0))
        data = data.assign(metal=data["metal"].where(np.arange(60) < 40))
        zeros = int((data["metal"] == 0.0).sum())
        text = xcopula.fit(data, "metal", **FIXED).summary()
        assert f"metal is 0 in {zeros} of 40 values: at or below it, of a marginal that" in text
        assert "flexible censored at 0" in text
        assert "metal is 0" not in xcopula.fit(sites, "metal", **FIXED).summary()

    def test_what_goes_below_zero(self, sites):
        """A law without an end under values that are hardly ever negative has a hint."""
        skewed = sites.assign(metal=np.exp(2.0 * sites["metal"]))
        text = xcopula.fit(skewed, "metal", marginals="normal", **FIXED).summary()
        assert "metal is negative in 0 of 40 values, but its 5 % quantile is -" in text
        assert "pass `support={'metal': (0, None)}`" in re.sub(r"\s+", " ", text)
        for law in ("flexible", "lognormal"):
            assert "`support=" not in xcopula.fit(skewed, "metal", marginals=law, **FIXED).summary()

    def test_which_method_to_take_with_neighbours(self, model):
        """There both predict alike; with the exact solver nothing is said."""
        from xcopula.solvers import Neighbours

        assert "would predict as well" not in model.summary()
        by = dataclasses.replace(model, solver=Neighbours(neighbours=10))
        assert "'transductive' would predict as well, and take about as long" in by.summary()


def test_a_secondary_that_does_not_pay(sites):
    """It is said where predictions of left-out values are no better with the secondaries."""
    noise = np.random.default_rng(5).gamma(3.0, size=sites.sizes["site"])
    data = sites.assign(proxy=("site", noise))
    model = xcopula.fit(data, "metal", "proxy", kernels="matern32", anisotropy=False)
    alone = xcopula.fit(data, "metal", kernels="matern32", anisotropy=False)
    assert "the secondaries do not pay: fit 'metal' alone, or choose others" in model.summary()
    with_it, without = (float(m.loo()["crps"].mean()) for m in (model, alone))
    assert with_it < 1.05 * without
