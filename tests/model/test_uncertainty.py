"""How parameter uncertainty enters predictions."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import xcopula
from xcopula.marginals import LogNormal
from xcopula.model.uncertainty import Uncertainty

QUICK = {"marginals": "lognormal", "kernels": "matern32", "method": "full", "anisotropy": False}


@pytest.fixture(scope="module")
def inflated(model):
    """The two-task model with inflated errors."""
    return model.with_uncertainty("inflated")


class TestFactor:
    def test_formula(self):
        """The root of n / (n - k), for each variable."""
        found = Uncertainty("inflated", (40.0, 60.0), (6.0, 5.5))
        assert found.factor(0) == np.sqrt(40.0 / 34.0)
        assert found.factors == (np.sqrt(40.0 / 34.0), np.sqrt(60.0 / 54.5))
        assert dataclasses.replace(found, kind="plugin").factors == (1.0, 1.0)

    @pytest.mark.parametrize(("values", "factor"), [(8.0, 2.0), (6.0, 2.0), (3.0, 2.0), (0.0, 1.0)])
    def test_few_values(self, values, factor):
        """It is at most two, and never fails."""
        assert Uncertainty("inflated", (values,), (6.0,)).factor(0) == factor

    def test_counts(self, model):
        """Values, and parameters of a variable with its correlations."""
        found = model.uncertainty
        assert (found.kind, found.values) == ("plugin", (40.0, 60.0))
        # Range, share, two correlations and two of the marginal; weak priors have a part in them.
        assert all(4.5 < count < 6.0 for count in found.parameters)
        plain = Uncertainty.of(
            "plugin", model.process, model.theta, model.observations.sample, model.method
        )
        assert plain.parameters == (6.0, 6.0)

    def test_secondaries_of_pairs_meet_the_primary_only(self, triple):
        """The primary has a correlation with each, a secondary with one."""
        first, second, third = (2 + law.dof for law in triple.process.marginals)
        found = Uncertainty.of(
            "plugin", triple.process, triple.theta, triple.observations.sample, triple.method
        )
        assert found.parameters == (first + 4, second + 2, third + 2)

    def test_censored_values(self, sites):
        """Narrow intervals count as exact values, half a law as less, as the summary says."""
        first = sites["metal"].notnull() & (np.arange(60) < 20)
        given = QUICK | {"marginals": LogNormal(0.0, 1.0)}
        values = sites["metal"]

        def count(lower, upper):
            data = sites.assign(
                low=values.where(~first, lower(values)), high=values.where(~first, upper(values))
            )
            return xcopula.fit(data, "metal", censored={"metal": ("low", "high")}, **given)

        whole = count(lambda v: v * (1 - 1e-6), lambda v: v * (1 + 1e-6))
        assert whole.uncertainty.values[0] == pytest.approx(40.0, abs=1e-9)
        half = count(lambda v: 0.0 * v, lambda v: v)
        found, number = half.uncertainty.values[0], int(first.sum())
        limits = half.marginals["metal"].to_normal(values.values[first.values])
        content = [1.0 - stats.truncnorm.var(-np.inf, z) for z in limits]
        assert found == pytest.approx(40.0 - number + sum(content), rel=1e-9)
        shown = f"{found:.1f}".removesuffix(".0")
        assert f"({shown} effective values, " in half.summary()


class TestPredictions:
    @pytest.mark.parametrize("variable", ["metal", "proxy"])
    @pytest.mark.parametrize("of", ["observation", "signal"])
    def test_plugin_times_the_factor(self, model, inflated, grid, variable, of):
        """Of every variable, as an observation and as a signal."""
        plain, found = (m.posterior(grid, variable=variable, of=of) for m in (model, inflated))
        factor = inflated.uncertainty.factor(model.task(variable))
        assert factor > 1.04
        latent = plain.latent
        np.testing.assert_allclose(found.latent["std"], factor * latent["std"], rtol=1e-12)
        np.testing.assert_array_equal(found.median(), plain.median())
        law = model.marginals[variable]
        for level in (0.05, 0.95):
            score = latent["mean"] + factor * latent["std"] * stats.norm.ppf(level)
            np.testing.assert_allclose(found.quantile(level), law.from_normal(score), rtol=1e-12)

    def test_a_datum_is_known(self, inflated, sites):
        """At a site with an exact value nothing is inflated."""
        known = sites.where(sites["metal"].notnull(), drop=True)
        posterior = inflated.posterior(known)
        np.testing.assert_array_equal(posterior.latent["std"], 0.0)
        np.testing.assert_allclose(posterior.quantile(0.95), known["metal"], rtol=1e-9)

    def test_closed_forms_to_the_last_bit(self, model, grid):
        """Quantiles of a plug-in model are the law's of the latent ones."""
        posterior = model.posterior(grid)
        law, latent = model.marginals[0], posterior.latent
        for level in (0.05, 0.5, 0.95):
            score = latent["mean"].values + latent["std"].values * stats.norm.ppf(level)
            np.testing.assert_array_equal(posterior.quantile(level), law.from_normal(score))

    @pytest.mark.parametrize("options", [{}, {"buffer": 0.5}])
    def test_leave_one_out(self, model, inflated, options):
        """The same factor, with and without a buffer."""
        plain, found = model.loo(**options), inflated.loo(**options)
        factor = inflated.uncertainty.factor(0)
        np.testing.assert_allclose(found["std"], factor * plain["std"], rtol=1e-12)
        np.testing.assert_array_equal(found["mean"], plain["mean"])
        error = (found["score"] - found["mean"]) / found["std"]
        np.testing.assert_allclose(found["pit"], stats.norm.cdf(error), rtol=1e-10)

    def test_intervals_are_truncated_afterwards(self, sites):
        """At a censored site the deviation without its limits is inflated."""
        options = QUICK | {"censored": {"metal": 1.2}}
        fitted = xcopula.fit(sites, "metal", **options)
        place = sites.where(sites["metal"] <= 1.2, drop=True).isel(site=[0])
        plain, found = (fitted.with_uncertainty(k).posterior(place) for k in ("plugin", "inflated"))
        (mean, std), limits = plain.moments[:2, 0], plain.moments[2:, 0]
        a, b = (limits - mean) / (std * fitted.uncertainty.factor(0))
        expected = stats.truncnorm.std(a, b) * std * fitted.uncertainty.factor(0)
        assert float(found.latent["std"][0]) == pytest.approx(expected, rel=1e-8)

    def test_cross_validation(self, sites):
        """With parameters fitted anew and once."""
        for refit in (True, False):
            options = QUICK | {"folds": 2, "refit": refit}
            found = [
                xcopula.cross_validate(sites, "metal", uncertainty=kind, **options)["quantiles"]
                for kind in ("plugin", "inflated")
            ]
            width = [float((q.sel(quantile=0.95) - q.sel(quantile=0.05)).sum()) for q in found]
            assert width[1] > 1.02 * width[0]


class TestOfTheFit:
    def test_other_data_keep_it(self, inflated, sites):
        """The parameters were estimated from the data of the fit."""
        more = inflated.condition(sites[["metal"]].isel(site=[41, 45]).fillna(1.3))
        half = inflated.with_only(sites.isel(site=slice(0, 30)))
        assert more.uncertainty == half.uncertainty == inflated.uncertainty
        back = half.with_uncertainty("plugin").with_uncertainty("inflated")
        assert back.uncertainty == inflated.uncertainty

    def test_other_parameters(self, model, inflated, grid):
        """A copy at other parameters predicts by them."""
        moved = dataclasses.replace(inflated, theta=model.theta + 0.1)
        plain = dataclasses.replace(model, theta=model.theta + 0.1)
        xr.testing.assert_identical(
            moved.with_uncertainty("plugin").predict(grid), plain.predict(grid)
        )

    def test_a_file_keeps_it(self, inflated, grid, tmp_path):
        """Read again, it predicts the same to the last bit."""
        again = xcopula.load(inflated.save(tmp_path / "model.nc"))
        assert again.uncertainty == inflated.uncertainty
        xr.testing.assert_identical(again.predict(grid), inflated.predict(grid))

    def test_another_kind_has_another_token(self, model, inflated):
        """What is cached of one is not taken for the other."""
        from dask.base import tokenize

        assert tokenize(model) != tokenize(inflated)
        assert tokenize(inflated) == tokenize(model.with_uncertainty("inflated"))

    def test_the_default(self, sites):
        """Errors are inflated, and the summary says by how much."""
        fitted = xcopula.fit(sites, "metal", **QUICK)
        assert (fitted.uncertainty.kind, fitted.uncertainty.values) == ("inflated", (40.0,))
        (count,) = fitted.uncertainty.parameters
        assert 3.0 < count < 4.0
        expected = f"errors: normal, latent deviation times 1.05 (40 values, {count:.3g} effective"
        assert expected in fitted.summary()
        plain = fitted.with_uncertainty("plugin")
        assert "errors: normal, parameters taken for certain" in plain.summary()


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ("laplace", ValueError, "Unknown uncertainty 'laplace'. Choose 'inflated' or 'plugin'."),
        (True, TypeError, "`uncertainty` must be 'inflated' or 'plugin'; found True"),
    ],
)
def test_unknown(sites, model, given, kind, message):
    """Before any work."""
    with pytest.raises(kind, match=message):
        xcopula.fit(sites, "metal", uncertainty=given, **QUICK)
    with pytest.raises(kind, match=message):
        model.with_uncertainty(given)
