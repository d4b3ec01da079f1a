"""Kernels and laws compared for each variable alone."""

from __future__ import annotations

import numpy as np
import pytest

import xcopula
from xcopula.kernels import KERNELS
from xcopula.marginals import MARGINALS


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
        model = xcopula.fit(
            sites, "metal", kernels="matern32", marginals="lognormal", uncertainty="plugin"
        )
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

    def test_one_variable_and_one_of_each(self, sites):
        """Objects stand for themselves in the table, by name."""
        table = xcopula.compare(
            sites,
            "metal",
            kernels=[KERNELS["se"]],
            marginals=[xcopula.marginals.LogNormal],
            solver=xcopula.solvers.Exact(),
        )
        assert dict(table.sizes) == {"task": 1, "kernel": 1, "marginal": 1}
        assert table["kernel"].item() == "se"
        assert table["marginal"].item() == "lognormal"

    def test_all_there_are_by_default(self, sites):
        """Every kernel and every law has its place."""
        table = xcopula.compare(sites.isel(site=slice(0, 15)), "metal")
        assert table["kernel"].values.tolist() == list(KERNELS)
        assert table["marginal"].values.tolist() == list(MARGINALS)

    def test_uniform_probabilities_have_a_p_value(self, sites):
        """The p-value is that of scipy's exact Kolmogorov-Smirnov test, to a few percent."""
        from scipy import stats

        table = xcopula.compare(sites, "metal", kernels=["matern32"], marginals=["lognormal"])
        model = xcopula.fit(
            sites, "metal", kernels="matern32", marginals="lognormal", method="full"
        )
        expected = stats.kstest(model.loo()["pit"].values, "uniform").pvalue
        assert table["pit_pvalue"].item() == pytest.approx(expected, rel=0.05, abs=0.01)

    def test_a_kernel_for_each_structure(self, sites):
        """A list among the kernels; of the same kernel it is that one, to the last bit."""
        table = xcopula.compare(
            sites,
            "metal",
            kernels=["se", ["se", "se"], ["se", "matern12"]],
            marginals=["lognormal"],
            structures=2,
        )
        assert table["kernel"].values.tolist() == ["se", "se", "se + matern12"]
        value = table["log_likelihood"].values[0, :, 0]
        assert value[0] == value[1] != value[2]
        with pytest.raises(ValueError, match="`structures` must be the number of kernels in a li"):
            xcopula.compare(sites, "metal", kernels=[["se", "matern12"]])

    def test_directions(self, simulate):
        """Ranges may differ by direction, as in a fit, unless that is declined."""
        options = {"kernels": ["matern32"], "marginals": ["lognormal"]}
        stretched = simulate(1, 90, 90)[0]
        stretched = stretched.assign_coords(x=6.0 * stretched["x"])
        plain = xcopula.compare(stretched, "metal", anisotropy=False, **options)
        found = xcopula.compare(stretched, "metal", **options)
        model = xcopula.fit(
            stretched, "metal", kernels="matern32", marginals="lognormal", uncertainty="plugin"
        )
        assert found["log_likelihood"].item() == pytest.approx(model.log_likelihood, abs=0.01)
        assert found["loo_log_score"].item() == pytest.approx(
            float(model.loo()["log_score"].mean()), abs=1e-3
        )
        assert found["log_likelihood"] > plain["log_likelihood"] + 2.0
        xcopula.format_comparison(found)

    def test_directions_of_one_coordinate(self, sites):
        """As a fit refuses them."""
        with pytest.raises(ValueError, match="`anisotropy` needs at least two coordinates"):
            xcopula.compare(sites, "metal", coords="x", anisotropy="space")

    def test_wrong_names(self, sites):
        """Kernels, laws and solvers are checked before anything is fitted."""
        for options, match in (
            ({"kernels": ["cubic"]}, "Unknown kernel 'cubic'"),
            ({"marginals": ["beta"]}, "Unknown marginal 'beta'"),
            ({"solver": "magic"}, "Unknown solver 'magic'"),
        ):
            with pytest.raises(ValueError, match=match):
                xcopula.compare(sites, "metal", **options)
