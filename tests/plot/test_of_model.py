"""``model.plot``: each picture is that of the model's own numbers."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from looks import check_looks
from matplotlib.figure import Figure
from scipy.stats import norm

import xcopula


@pytest.fixture
def ax():
    return Figure().add_subplot()


def known(loo, *names):
    """Return columns of what ``loo`` found, whatever its dims, without gaps."""
    columns = [np.ravel(loo[name].values) for name in names]
    return [column[np.isfinite(columns[0])] for column in columns]


def test_it_lists_its_pictures(model):
    found = repr(model.plot)
    assert found == "model.plot: .correlations(), .laws(), .loo(), .pit(), .reliability()"


def test_correlations_and_laws_have_panels_for_all(model):
    assert len(model.plot.correlations(bins=4).axes) == 3
    assert len(model.plot.laws().axes) == 4
    assert len(model.plot.correlations("proxy", most=30, seed=3).axes) == 1


class TestLoo:
    def test_values_are_those_of_loo(self, model):
        figure = model.plot.loo()
        (ax,) = figure.axes
        drawn = np.concatenate([line.get_xydata() for line in ax.lines[:2]])
        expected = np.column_stack(known(model.loo(), "median", "observed"))
        np.testing.assert_allclose(np.sort(drawn, axis=0), np.sort(expected, axis=0))
        assert ax.get_title("left") == "Metal in topsoil: leave one out"
        assert ax.get_xlabel() == "predicted without it (median), mg kg$^{-1}$"
        check_looks(figure)

    def test_options_go_to_loo(self, model, ax):
        assert model.plot.loo("proxy", buffer=0.5, most=10, ax=ax) is ax.figure
        assert len(ax.collections[0].get_segments()) == 10

    def test_pit(self, model, ax):
        model.plot.pit("proxy", bins=5, ax=ax)
        counts = np.histogram(known(model.loo("proxy"), "pit")[0], 5, (0, 1))[0]
        np.testing.assert_allclose([bar.get_height() for bar in ax.patches], counts / 12)
        assert ax.get_title("left") == "proxy: leave one out"


class TestReliability:
    def test_probabilities_leave_the_observation_out(self, model):
        figure = model.plot.reliability(1.4, bins=4)
        mean, std, observed = known(model.loo(), "mean", "std", "observed")
        # The latent prediction of each value, and the threshold as a normal score.
        z = float(model.marginals["metal"].to_normal(1.4))
        p = norm.sf((z - mean) / std)
        number = np.minimum((4 * p).astype(int), 3)
        dots = next(line for line in figure.axes[0].lines if line.get_label() == "observed")
        classes = np.unique(number)
        np.testing.assert_allclose(dots.get_xdata(), [p[number == k].mean() for k in classes])
        above = observed > 1.4
        np.testing.assert_allclose(dots.get_ydata(), [above[number == k].mean() for k in classes])
        title = figure.axes[0].get_title("left").replace("\n", " ")
        assert title == "Metal in topsoil above 1.4\u00a0mg\u00a0kg$^{-1}$"
        check_looks(figure)

    def test_laws_that_vary_have_a_threshold_of_each_row(self, fit_by, ax):
        model = fit_by("full")
        model.plot.reliability(12.0, "proxy", bins=3, ax=ax)
        mean, std = known(model.loo("proxy"), "mean", "std")
        rows = model.observations.sample.covariates_of(1)
        z = model.marginals["proxy"].at(rows).to_normal(np.full(60, 12.0))
        assert np.ptp(z) > 1.0
        counts = np.histogram(norm.sf((z - mean) / std), 3, (0, 1))[0]
        drawn = [bar.get_height() for bar in ax.child_axes[0].patches]
        np.testing.assert_array_equal(drawn, counts)

    def test_intervals_that_hold_the_threshold_are_left_out(self, sites):
        """The others are above or below, whatever number was stored for them."""
        limit = float(sites["metal"].quantile(0.3))
        options = {"marginals": "lognormal", "kernels": "matern32", "restarts": 0}
        model = xcopula.fit(sites, "metal", censored={"metal": limit}, **options)
        below = (sites["metal"] <= limit).sum()
        for threshold, count in ((limit / 2.0, 40 - below), (limit, 40), (2.0 * limit, 40)):
            axes = model.plot.reliability(threshold, bins=1).axes[0]
            dots = next(line for line in axes.lines if line.get_label() == "observed")
            known = sites["metal"].where(sites["metal"] > limit) if count < 40 else sites["metal"]
            share = (known.dropna("site") > threshold).mean()
            np.testing.assert_allclose(dots.get_ydata(), [share])
            assert axes.child_axes[0].patches[0].get_height() == count

    @pytest.mark.parametrize("threshold", ["x", None, [1.0], True])
    def test_a_threshold_is_a_number(self, model, threshold):
        with pytest.raises(TypeError, match="`threshold` must be a number, found"):
            model.plot.reliability(threshold)

    def test_a_threshold_is_finite_and_a_variable_known(self, model):
        with pytest.raises(ValueError, match="`threshold` must be finite, found nan"):
            model.plot.reliability(np.nan)
        with pytest.raises(KeyError, match="no variable 'zz'"):
            model.plot.reliability(1.0, "zz")


def test_a_graph_has_no_pictures(sites):
    lazy = xcopula.fit(sites, "metal", marginals="normal", kernels="se", compute=False)
    with pytest.raises(AttributeError, match="nothing has been fitted"):
        lazy.plot  # noqa: B018
