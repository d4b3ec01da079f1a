"""Observations predicted from all others, by mixtures too."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from sources import daily

import xcopula
from xcopula.model.leaving import predict_left_out


class TestMixture:
    def test_is_that_of_its_components(self, model):
        """Each leaves out at its own parameters."""
        drawn = model.with_uncertainty("laplace")
        (member,) = drawn.uncertainty.members
        each = [dataclasses.replace(model, theta=t).loo()["pit"].values for t in member.thetas]
        found = drawn.loo()
        np.testing.assert_allclose(found["pit"], member.weights @ np.stack(each), rtol=1e-10)
        inside = (found["observed"] > found["lower"]) & (found["observed"] < found["upper"])
        assert 0.7 < float(inside.mean()) <= 1.0
        assert (found["crps"] > 0.0).all()

    def test_with_a_buffer(self, model):
        """All that is near is left out of each component."""
        drawn = model.with_uncertainty("laplace")
        near, far = drawn.loo(most=6), drawn.loo(most=6, buffer=1.0)
        assert float(far["std"].mean()) > float(near["std"].mean())

    def test_student(self, model):
        """Wider, at the same medians."""
        plain, widened = model.loo("proxy"), model.with_uncertainty("t").loo("proxy")
        np.testing.assert_array_equal(plain["median"], widened["median"])
        assert (widened["upper"] > plain["upper"]).all()

    def test_some_rows(self, model):
        """By their numbers."""
        rows = np.array([3, 17])
        whole = predict_left_out(model, 0, np.arange(40)).quantile(0.9)
        np.testing.assert_array_equal(predict_left_out(model, 0, rows).quantile(0.9), whole[rows])


class TestNotes:
    def test_few_sites_flatter(self, model):
        """It is said, with their number."""
        note = model.loo().attrs["note"]
        assert "with 40 sites coverage and scores are a little too good" in note
        assert "station" not in note

    def test_several_times_at_a_place(self):
        """A whole station is harder to predict."""
        options = {"marginals": "normal", "kernels": "matern32", "restarts": 0}
        fitted = xcopula.fit(daily(), "level", **options)
        assert "cross_validate(folds='stations')" in fitted.loo().attrs["note"]

    def test_many_sites(self, model, monkeypatch):
        """Nothing is to be said."""
        monkeypatch.setattr("xcopula.model.leaving._FEW_SITES", 10)
        assert model.loo().attrs == {}


@pytest.mark.parametrize("method", ["bcm", "fitc"])
def test_a_neighbourhood_that_cannot_be_left_out(fit_by, method):
    """The method is named."""
    with pytest.raises(ValueError, match=f"{method!r} cannot leave out a neighbourhood"):
        fit_by(method).loo(buffer=0.5)
