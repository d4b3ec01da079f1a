"""Predictions of withheld values: laws at their places, and the climatology."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from scipy import stats

import xcopula
from xcopula.marginals import GEV, Normal, by, regress
from xcopula.validation.scoring import Withheld, climatology, predict

LEVELS = np.array([0.1, 0.5])


def fitted(data, law, **options):
    """Fit the proxy alone."""
    own = {"marginals": law, "kernels": "matern32", "restarts": 0}
    return xcopula.fit(data, "proxy", **(own | options))


class WithoutFit(Normal):
    """A law that cannot be fitted to values alone."""

    name: ClassVar[str] = "unfitted"
    fit = xcopula.marginals.Marginal.fit


@pytest.fixture(scope="module")
def sided(sloped):
    """The sloped sites with a side of their own."""
    return sloped.assign_coords(side=("site", np.where(sloped["y"] > 1.5, "north", "south")))


def test_groups_are_counted_as_the_model_does(sided):
    """A model of one side only has another number for it."""
    law = by("side", "normal")
    whole = fitted(sided, law)
    south = fitted(sided.isel(site=np.flatnonzero(sided["side"] == "south")), law)
    rows = np.flatnonzero(sided["side"].values == "south")[:4]
    withheld = Withheld.of(whole.observations, rows)
    assert withheld.fields[0].tolist() == ["south"] * 4
    assert withheld.covariates(whole.observations).tolist() == [[1.0]] * 4
    assert withheld.covariates(south.observations).tolist() == [[0.0]] * 4


def test_known_values_are_predicted_as_known(sided):
    """At its own sites a model knows the values: nothing was withheld."""
    model = fitted(sided, "normal")
    withheld = Withheld.of(model.observations, np.arange(5))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = predict(model, withheld, LEVELS)
    np.testing.assert_allclose(found.quantiles, np.tile(withheld.values, (2, 1)), rtol=1e-12)


@pytest.mark.parametrize("spec", [None, Normal, Normal(0.0, 1.0)])
def test_climatology_of_a_family(sided, spec):
    """The family's own fit to the values, whatever the model's parameters are."""
    model = fitted(sided, "normal")
    values = sided["proxy"].values
    withheld = Withheld.of(model.observations, np.arange(60))
    found = climatology(spec, model, withheld, LEVELS)
    law = stats.norm(values.mean(), values.std())
    np.testing.assert_allclose(found.pit, law.cdf(values), atol=1e-8)
    np.testing.assert_allclose(found.log_score, law.logpdf(values), rtol=1e-8)
    np.testing.assert_allclose(found.quantiles[0], law.ppf(0.1), rtol=1e-8)


def test_climatology_of_a_regression(sided):
    """Least squares on the field."""
    model = fitted(sided, regress("normal", on="height"))
    withheld = Withheld.of(model.observations, np.arange(60))
    found = climatology(regress("normal", on="height"), model, withheld, LEVELS)
    height, values = sided["height"].values, sided["proxy"].values
    np.testing.assert_allclose(
        found.median, np.polyval(np.polyfit(height, values, 1), height), rtol=1e-6
    )


@pytest.mark.parametrize("zeros", [False, True])
def test_climatology_ends_where_the_law_does(sided, zeros):
    """At zero, as the default law of positive values, or with an atom there."""
    values = sided["proxy"] - sided["proxy"].min() + 0.1
    data = sided.assign(proxy=values.where(np.arange(60) % 6 > 0, 0.0) if zeros else values)
    model = fitted(data, "auto")
    found = climatology(None, model, Withheld.of(model.observations, np.arange(60)), LEVELS)
    assert (found.quantiles >= 0.0).all()
    assert ((found.quantiles == 0.0).any(axis=1) == [zeros, False]).all()
    with np.errstate(divide="ignore"):
        assert np.isfinite(found.log_score).all()


def test_climatology_of_a_law_that_ends_by_itself(sided):
    """Its end is fitted anew, not taken from the model."""
    model = fitted(sided, GEV(10.0, 2.0, -0.2))
    assert np.isfinite(model.marginals[0].support[1])
    withheld = Withheld.of(model.observations, np.arange(60))
    found = climatology(None, model, withheld, LEVELS)
    law = GEV.fit(sided["proxy"].values)
    np.testing.assert_allclose(found.log_score, law.log_density(withheld.values), rtol=1e-9)


def test_climatology_of_a_law_without_fit(sided):
    """It is that of the model."""
    model = fitted(sided, WithoutFit(10.0, 2.0))
    withheld = Withheld.of(model.observations, np.arange(3))
    found = climatology(WithoutFit(10.0, 2.0), model, withheld, LEVELS)
    np.testing.assert_allclose(found.median, model.marginals[0].location, rtol=1e-12)
