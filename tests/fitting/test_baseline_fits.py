"""Every inference method, and every optimiser, through the public fit."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import xcopula

FIXED = {"kernels": "matern32", "marginals": "normal", "restarts": 0}
METHODS = ["transductive", "full", "dtc", "fitc", "pitc", "bcm", "cokriging"]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_fits_and_predicts(sites, method):
    """A method converges, says what it is, predicts with intervals, lazily as eagerly."""
    model = xcopula.fit(sites, "metal", "proxy", method=method, inducing=40, blocks=2, **FIXED)
    assert model.converged
    assert f"method {method!r}" in model.summary()
    target = sites.isel(site=slice(40, None))
    eager = model.predict(target)
    assert np.isfinite(eager["metal"]).all()
    assert (eager["metal"].diff("quantile") >= 0).all()
    xr.testing.assert_allclose(model.predict(target, chunks=7).compute(), eager, rtol=1e-9)
    loo = model.loo()
    assert np.isfinite(loo["crps"]).all()


def test_baselines_agree_with_the_full_model(sites):
    """With an inducing point at every site, and one block, baselines predict as the full model."""
    full = xcopula.fit(sites, "metal", "proxy", method="full", **FIXED)
    reference = full.predict(sites)["metal"]
    for options in (
        {"method": "fitc", "inducing": {"metal": 40, "proxy": 60}},
        {"method": "bcm", "blocks": 1},
    ):
        ours = xcopula.fit(sites, "metal", "proxy", **options, **FIXED)
        np.testing.assert_allclose(ours.predict(sites)["metal"], reference, rtol=2e-3)


def test_inducing_points_with_labels(sites):
    """Inducing points may be given for all variables or for each."""
    points = sites.isel(site=slice(0, 25))
    one = xcopula.fit(sites, "metal", "proxy", method="dtc", inducing=points, **FIXED)
    each = {"metal": points, "proxy": points}
    two = xcopula.fit(sites, "metal", "proxy", method="dtc", inducing=each, **FIXED)
    assert one.log_likelihood == pytest.approx(two.log_likelihood, abs=1e-9)
    assert "DTC with 50 inducing points" in one.summary()


def test_points_outside_the_domain_warn(sites):
    """Inducing points far away are told of."""
    far = sites.isel(site=slice(0, 25)).assign_coords(x=sites["x"][:25] + 100.0)
    with pytest.warns(UserWarning, match="25 of 25 inducing points lie outside"):
        xcopula.fit(sites, "metal", "proxy", method="dtc", inducing=far, **FIXED)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"method": "cokriging", "marginals": "gamma"}, ValueError, "has normal marginals, found"),
        ({"method": "fitc", "inducing": 0}, ValueError, "`inducing` is at least 1"),
        ({"method": "fitc", "inducing": 2.5}, TypeError, "`inducing` is an integer"),
        ({"method": "fitc", "inducing": {"metal": 5}}, KeyError, "the variables are"),
        ({"method": "bcm", "blocks": 0}, ValueError, "`blocks` is at least 1"),
        ({"method": "bcm", "blocks": 30}, ValueError, "leaves a block of"),
        ({"optimizer": "magic"}, ValueError, "Unknown optimizer 'magic'"),
    ],
)
def test_bad_options(sites, options, error, match):
    """Options that cannot work are refused with what to do."""
    with pytest.raises(error, match=match):
        xcopula.fit(sites, "metal", "proxy", **{**FIXED, **options})


def test_optimisers_agree(sites):
    """Conjugate gradients and annealing end within a tenth of a nat of the default."""
    found = {
        name: xcopula.fit(sites, "metal", "proxy", method="full", optimizer=name, **FIXED)
        for name in ("l-bfgs", "cg", "annealing")
    }
    best = found["l-bfgs"].log_likelihood
    for model in found.values():
        assert model.log_likelihood == pytest.approx(best, abs=0.3)


class TestCompare:
    def test_table_of_kernels_and_laws(self, sites):
        """The table has every pair of kernel and law, with all measures finite."""
        table = xcopula.compare(
            sites, ["metal", "proxy"], kernels=["se", "matern32"], marginals=["normal", "lognormal"]
        )
        assert dict(table.sizes) == {"task": 2, "kernel": 2, "marginal": 2}
        assert set(table) >= {"log_likelihood", "aic", "loo_log_score", "loo_crps", "pit_pvalue"}
        assert all(np.isfinite(v).all() for v in table.values())
        assert ((table["pit_pvalue"] >= 0) & (table["pit_pvalue"] <= 1)).all()
        # the metal was drawn log-normal
        metal = table["aic"].sel(task="metal").min("kernel")
        assert metal.sel(marginal="lognormal") < metal.sel(marginal="normal")

    def test_agrees_with_a_single_task_fit(self, sites):
        """A cell of the table is the likelihood of a fit of that variable alone."""
        table = xcopula.compare(sites, "metal", kernels=["matern32"], marginals=["lognormal"])
        model = xcopula.fit(sites, "metal", kernels="matern32", marginals="lognormal")
        assert table["log_likelihood"].item() == pytest.approx(model.log_likelihood, abs=0.01)
        loo = model.loo()
        assert table["loo_log_score"].item() == pytest.approx(
            float(loo["log_score"].mean()), abs=1e-3
        )

    def test_laws_without_support_are_empty(self, sites):
        """A law that does not admit the values is NaN, and left out of the print."""
        shifted = sites.assign(metal=sites["metal"] - 5.0)
        table = xcopula.compare(shifted, "metal", kernels=["se"], marginals=["normal", "gamma"])
        assert np.isnan(table["aic"].sel(marginal="gamma")).all()
        text = xcopula.format_comparison(table)
        assert "normal" in text
        assert "gamma" not in text
