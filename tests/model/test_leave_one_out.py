"""Observations predicted from all others."""

from __future__ import annotations

import numpy as np
import pytest
from sources import daily

import xcopula
from xcopula.model.leave_one_out import predict_left_out


class TestRows:
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
        monkeypatch.setattr("xcopula.model.leave_one_out._FEW_SITES", 10)
        assert model.loo().attrs == {}


@pytest.mark.parametrize("method", ["bcm", "fitc"])
def test_a_neighbourhood_that_cannot_be_left_out(fit_by, method):
    """The method is named."""
    with pytest.raises(ValueError, match=f"{method!r} cannot leave out a neighbourhood"):
        fit_by(method).loo(buffer=0.5)
