"""Densities and QQ plots of all variables of a model."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from looks import check_looks
from matplotlib.figure import Figure
from scipy.stats import norm

from xcopula.plot.laws import law_panels


def test_each_variable_has_a_density_and_a_qq_plot(model):
    figure = law_panels(model)
    first, second, below, _ = figure.axes
    assert first.get_title("left") == "Metal in topsoil"
    assert first.get_xlabel() == "value, mg kg$^{-1}$"
    assert first.get_ylabel() == "density, 1 / (mg kg$^{-1}$)"
    assert (second.get_xlabel(), second.get_ylabel()) == ("value", "density")
    x, density = first.lines[0].get_data()
    np.testing.assert_allclose(density, np.exp(model.marginals["metal"].log_density(x)))
    heights = [(bar.get_height(), bar.get_width()) for bar in first.patches]
    assert sum(h * w for h, w in heights) == pytest.approx(1.0)
    assert below.get_xlabel() == "standard normal quantile"
    check_looks(figure)


def test_a_law_that_varies_shows_its_scores(fit_by):
    model = fit_by("full")
    figure = law_panels(model, "proxy")
    top, below = figure.axes
    assert top.get_xlabel() == "normal score"
    x, density = top.lines[0].get_data()
    np.testing.assert_allclose(density, norm.pdf(x))
    sample = model.observations.sample
    law = model.marginals["proxy"].at(sample.covariates_of(1))
    scores = below.lines[-1].get_ydata()
    np.testing.assert_allclose(scores, np.sort(law.to_normal(sample.values[sample.task(1)])))
    check_looks(figure)


def test_axes_are_counted(model):
    axes = Figure().subplots(2, 2)
    assert law_panels(model, axes=axes) is axes[0, 0].figure
    with pytest.raises(ValueError, match="`axes` must be 4 axes"):
        law_panels(model, axes=axes[0])


def test_intervals_are_drawn_within_them(sites):
    """Neither a pile at the limit nor a law that seems not to fit."""
    import xcopula

    limit = float(sites["metal"].median())
    options = {"marginals": "lognormal", "kernels": "matern32", "restarts": 0}
    model = xcopula.fit(sites, "metal", censored={"metal": limit}, **options)
    top, below = law_panels(model).axes
    scores = below.lines[-1].get_ydata()
    assert np.unique(scores).size == 40
    z = float(model.marginals["metal"].to_normal(limit))
    assert (scores < z).sum() == 20
    counts = np.array([bar.get_height() * bar.get_width() for bar in top.patches])
    right = np.array([bar.get_x() + bar.get_width() for bar in top.patches])
    assert counts[right <= limit].sum() > 0.2
    labels = [text.get_text() for text in top.get_legend().get_texts()]
    assert labels == ["lognormal", "20 of 40 drawn\nwithin their limits"]
    check_looks(top.figure)
