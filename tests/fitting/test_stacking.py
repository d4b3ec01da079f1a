"""Weights of candidates by left-out values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from xcopula.fitting import stacking
from xcopula.fitting.stacking import akaike_weights, stack


def densities(n=200, seed=0):
    y = np.random.default_rng(seed).normal(size=n)
    return np.stack([norm.logpdf(y, 0.3), norm.logpdf(y, -0.5, 1.2), norm.logpdf(y, 0.0, 3.0)], 1)


def test_they_maximise_what_they_claim(monkeypatch):
    found = densities()
    beforehand = np.array([0.2, 0.3, 0.5])

    def loss(free):
        w = np.append(free, 1.0 - free.sum())
        if (w <= 0.0).any():
            return np.inf
        prior = stacking._BEFOREHAND * len(found) * beforehand @ np.log(w)
        return -(np.log(np.exp(found) @ w).sum() + prior)

    best = minimize(loss, [0.3, 0.3], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10})
    np.testing.assert_allclose(stack(found, beforehand)[:2], best.x, atol=1e-3)


def test_candidates_that_are_alike_keep_their_weights():
    found = np.repeat(densities()[:, :1], 3, axis=1)
    beforehand = np.array([0.7, 0.2, 0.1])
    np.testing.assert_allclose(stack(found, beforehand), beforehand, rtol=1e-5)


def test_the_truth_has_most_weight():
    y = np.random.default_rng(1).normal(size=20_000)
    found = np.stack([norm.logpdf(y), norm.logpdf(y, 0.5), norm.logpdf(y, 0.0, 2.0)], 1)
    assert stack(found, np.full(3, 1.0 / 3.0))[0] > 0.6
    assert stack(found, akaike_weights(-2.0 * found.sum(axis=0)))[0] > 0.99


def test_a_value_that_no_candidate_allows_says_nothing():
    found = densities()
    with_one = np.vstack([found, np.full(3, -np.inf)])
    beforehand = np.full(3, 1.0 / 3.0)
    np.testing.assert_allclose(stack(with_one, beforehand), stack(found, beforehand), atol=2e-3)


def test_a_candidate_that_forbids_a_value_can_still_have_a_share():
    found = densities()
    found[0, 2] = -np.inf
    weights = stack(found, np.full(3, 1.0 / 3.0))
    assert weights.sum() == pytest.approx(1.0)
    assert np.isfinite(weights).all()


def test_weights_of_criteria():
    np.testing.assert_allclose(
        akaike_weights(np.array([10.0, 12.0])), [1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1))]
    )


def test_what_predicts_best_has_weight_whatever_was_expected():
    y = np.random.default_rng(3).normal(size=300)
    found = np.stack([norm.logpdf(y, 1.0), norm.logpdf(y)], 1)
    assert stack(found, np.array([1.0, 0.0]))[1] > 0.6
