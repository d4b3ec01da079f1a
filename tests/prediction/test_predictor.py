"""What prediction needs of a model, on plain arrays."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
from conftest import METHODS

from xcopula.marginals.gev import GEV

X, Y = np.array([0.4, 1.7, 3.3]), np.array([0.9, 2.2, 0.3])


def law(model, task: int, values: list, count: int = 3):
    """Return the law of a variable at some cells."""
    return model.predictor.predictive(task, np.zeros((2, count)), values).law


class TestLaw:
    def test_a_constant_law_is_the_fitted_one(self, model):
        """Whatever the cells."""
        assert law(model, 0, []) == model.marginals[0]
        assert law(model, 1, []) == model.marginals[1]

    def test_a_law_that_varies_is_bound_to_the_cells(self, fit_by, sloped):
        """Each cell has the law at its own height."""
        model = fit_by("full")
        height = np.array([0.1, 1.0, 1.9])
        bound = law(model, 1, [height])
        p = model.marginals[1].parameters
        centre = p["location"] + p["height"] * (height - float(sloped["height"].mean()))
        np.testing.assert_allclose(bound.from_normal(np.zeros(3)), centre, rtol=1e-10)
        assert law(model, 0, []) == model.marginals[0]

    def test_every_field_is_asked_for(self, fit_by):
        """Too few or too many are an error."""
        for values in ([], [X, X]):
            with pytest.raises(ValueError, match="argument"):
                law(fit_by("full"), 1, values)


class TestLatent:
    @pytest.mark.parametrize("nugget", [True, False])
    @pytest.mark.parametrize("task", [0, 1])
    @pytest.mark.parametrize("method", METHODS)
    def test_is_the_conditioned_process_at_the_places(self, fit_by, method, task, nugget):
        """Numbers become scaled inputs and numbers of sites; variances become deviations."""
        model = fit_by(method)
        seen = model.observations
        x, y = (np.r_[a, seen.positions[[3, 70], k]] for k, a in enumerate((X, Y)))
        mean, std = model.predictor.latent([x, y], task, nugget)
        targets = seen.targets([x, y])
        np.testing.assert_array_equal(targets.sites[:3], -1)
        np.testing.assert_array_equal(targets.sites[3:], seen.sample.sites[[3, 70]])
        moments = model.conditioned.moments(targets, task=task, nugget=nugget)
        factor = model.uncertainty.factor(task)
        np.testing.assert_allclose(mean, moments.mean, rtol=1e-12)
        np.testing.assert_allclose(std**2, factor**2 * moments.variance, rtol=1e-9, atol=1e-12)

    def test_a_site_with_a_datum_is_known(self, model):
        """With the nugget the deviation is zero there, without it is not."""
        x, y = model.observations.positions[:3].T
        mean, std = model.predictor.latent([x, y], 0, True)
        values = model.observations.sample.values[:3]
        np.testing.assert_allclose(mean, model.marginals[0].to_normal(values), rtol=1e-9)
        np.testing.assert_allclose(std, 0.0, atol=1e-6)
        assert (model.predictor.latent([x, y], 0, False)[1] > 0.1).all()


def test_travels_and_predicts_the_same(model, triple):
    """A pickle of what predicts is all that a worker needs."""
    for fitted, quantity in ((model, "latent"), (triple, "latent"), (triple, "information")):
        there = pickle.loads(pickle.dumps(fitted.predictor))
        np.testing.assert_array_equal(
            getattr(there, quantity)([X, Y], 0, True),
            getattr(fitted.predictor, quantity)([X, Y], 0, True),
        )


def test_holds_no_values_of_step_one(model):
    """Candidates and messages of the fit stay behind."""
    assert set(vars(model.predictor)) == {
        "coordinates",
        "sites",
        "variables",
        "process",
    }


class TestEndless:
    def test_a_light_tail_always_has_a_mean(self, model, monkeypatch):
        """Nothing is evaluated to say so."""
        monkeypatch.setattr(type(model.predictor), "latent", lambda *a: pytest.fail("evaluated"))
        np.testing.assert_array_equal(model.predictor.endless([X, Y], 0, True), np.zeros((1, 3)))

    def test_a_heavy_tail_has_one_where_the_deviation_is_small(self, model):
        """The index times the latent variance must be below one."""
        predictor = model.predictor
        variance = predictor.latent([X, Y], 0, True)[1] ** 2
        for index in (0.9 / variance.min(), 1.1 / variance.min()):
            law = GEV(1.0, 1.0, index)
            process = dataclasses.replace(predictor.process, laws=(law, law))
            other = dataclasses.replace(predictor, process=process)
            found = other.endless([X, Y], 0, True)
            np.testing.assert_array_equal(found, [index * variance >= 1.0])
            assert found.any()
