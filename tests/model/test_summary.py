"""A model in a few lines of text."""

from __future__ import annotations

import dataclasses

import pytest
from conftest import METHODS


class TestDescription:
    def test_repr_and_summary(self, model):
        """The repr tells the tasks, the laws, the likelihood and the data, and no address."""
        text = repr(model)
        assert text == f"<xcopula.CopulaModel>\n{model.summary()}"
        for part in (
            "'metal' with 'proxy'",
            "method 'full', solver 'exact', coupling 'convolution', 1 structure, correlated nugget",
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
        head, row = (line.split() for line in model.summary().splitlines()[-2:])
        assert head == ["correlation", "with", "metal", "signal", "nugget"]
        assert row == ["proxy", f"{signal:+.2f}", f"{nugget:+.2f}"]

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

    @pytest.mark.parametrize("method", METHODS)
    def test_names_what_was_maximised_and_the_solver(self, fit_by, method):
        """Pairs maximise a composite likelihood; sparse methods do not use the solver."""
        model = fit_by(method)
        first, second, third = model.summary().splitlines()[:3]
        assert first == "Multi-task Gaussian copula process of 'metal' with 'proxy'"
        solver = "" if method in ("dtc", "fitc", "pitc") else ", solver 'exact'"
        assert second.startswith(f"  method {method!r}{solver}, coupling ")
        what = "composite log-likelihood" if method == "transductive" else "log-likelihood"
        assert third.startswith(f"  {what} {model.log_likelihood:.2f} with ")

    @pytest.mark.parametrize("method", METHODS)
    def test_has_no_blank_line_at_its_end(self, fit_by, method):
        """Whether a method has something to add or not."""
        assert fit_by(method).summary() == fit_by(method).summary().rstrip()

    def test_a_law_that_varies_has_its_slope_with_units(self, fit_by):
        """The slope is per unit of the field."""
        slope = fit_by("full").marginals[1].parameters["height"]
        assert f"height {slope:.4g} per km" in fit_by("full").summary()

    def test_the_laws_that_competed(self, model):
        """Trials of the primary's laws are listed with their scores, the best first."""
        from xcopula.model.candidates import LawTrial

        assert "leave-one-out CRPS by law" not in model.summary()
        trials = (LawTrial("gev", -3.0, 0.125), LawTrial("gamma", -2.0, 0.25))
        text = dataclasses.replace(model, law_trials=trials).summary()
        assert text.endswith("\n\n  leave-one-out CRPS by law of metal: gev 0.125, gamma 0.25")
