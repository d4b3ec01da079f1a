"""Candidates of the whole model compete by left-out values."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import FIXED

import xcopula
from xcopula.errors import NotPositiveDefiniteError
from xcopula.fitting import competition
from xcopula.fitting.competition import compete
from xcopula.fitting.optimiser import Optimum
from xcopula.fitting.rivals import name_of
from xcopula.fitting.stacking import akaike_weights, stack
from xcopula.fitting.together import Fitted, LeftOut, Together
from xcopula.process import scores
from xcopula.progress.run import UNHEARD
from xcopula.solvers import Neighbours

OPEN = {k: v for k, v in FIXED.items() if k not in ("kernels", "marginals")} | {
    "marginals": "lognormal",
    "uncertainty": "plugin",
}


@pytest.fixture(scope="module")
def model(sites):
    return xcopula.fit(sites, "metal", **OPEN)


def test_weights_are_those_of_left_out_values(model, monkeypatch):
    """Stacked log densities of each value alone, and in a gap, towards Akaike's weights."""
    seen = {}

    def spy(log_densities, beforehand):
        seen["densities"], seen["beforehand"] = log_densities, beforehand
        seen["weights"] = stack(log_densities, beforehand)
        return seen["weights"]

    monkeypatch.setattr(competition, "stack", spy)
    data = model.observations
    again = xcopula.fit(_dataset(model), "metal", **OPEN)
    kept = np.where(seen["weights"] < 0.05, 0.0, seen["weights"])
    kept /= kept.sum()
    found = sorted((t.weight for t in again.trials), reverse=True)
    np.testing.assert_allclose(found, sorted(kept, reverse=True))
    n = data.sample.sizes[0]
    assert seen["densities"].shape[0] == 2 * n
    # The first candidate's leave-one-out densities are those that the model reports.
    if again.trials[0].name == f"lognormal, {again.candidates[0][0].kernel.name}":
        alone = again.with_uncertainty("plugin")
        loo = scores(alone.conditioned.leave_one_out(), alone.marginals[0], data.sample.values)
        np.testing.assert_allclose(seen["densities"][:n, 0], loo.log_score, atol=1e-8)


def _dataset(model):
    sample = model.observations.sample
    import xarray as xr

    x, y = sample.inputs
    return xr.Dataset({"metal": ("site", sample.values)}, {"x": ("site", x), "y": ("site", y)})


def test_with_neighbours_one_is_picked(sites):
    """By the score of left-out values."""
    model = xcopula.fit(sites, "metal", **OPEN | {"marginals": "auto", "solver": "neighbours"})
    assert len(model.trials) > 1, "one candidate: the test proves nothing"
    assert [t.weight for t in model.trials] == [1.0] + [0.0] * (len(model.trials) - 1)
    assert name_of(model.process) == model.trials[0].name


class TestPicked:
    """What step one chose stays, unless another has a CRPS that is less by more than chance."""

    def picked(self, gains, parts=1):
        """Return who is picked of candidates whose CRPS is less than the first's by some gains."""
        rng = np.random.default_rng(0)
        tried = []
        for gain in gains:
            noise = rng.normal(size=400)
            crps = 3.0 - gain + (noise - noise.mean()) / noise.std()
            scored = SimpleNamespace(crps=crps, log_score=-crps)
            tried.append(competition._Tried(None, LeftOut((scored,) * parts)))
        return competition._picked(tried)

    @pytest.mark.parametrize("parts", [1, 2])
    def test_another_must_gain_more_than_chance(self, parts):
        """Two standard errors of the paired difference: here 0.14 for one part."""
        error = np.sqrt(2.0 / 400 / parts)
        assert self.picked([0.0, 1.8 * error], parts) == 0
        assert self.picked([0.0, 2.3 * error], parts) == 1

    def test_the_best_of_those_that_do(self):
        assert self.picked([0.0, 0.3, 0.31, 0.1]) == 2

    def test_nobody_does(self):
        assert self.picked([0.0, -1.0, -0.1]) == 0


def test_a_rival_that_cannot_be_fitted_is_none(sites, monkeypatch):
    original = Together.fit

    def fit(self, process, start, *, scout=False, **options):
        if scout:
            raise NotPositiveDefiniteError("too smooth")
        return original(self, process, start, scout=scout, **options)

    monkeypatch.setattr(Together, "fit", fit)
    model = xcopula.fit(sites, "metal", **OPEN)
    assert model.trials == ()


def test_without_rivals_nothing_is_done(monkeypatch):
    first = SimpleNamespace(process=None)
    together = SimpleNamespace(
        request=SimpleNamespace(ticket=0), end=lambda fitted, *, watch: (fitted, "ended")
    )
    assert compete(together, first, []) == (first, "ended")


class TestGoingOn:
    """Rivals of several structures that were cut short and are close are fitted to the end."""

    def went_on(self, monkeypatch, aics, converged, structures=2, solver=None):
        """Return which of some fits are fitted again."""
        covariance = SimpleNamespace(structures=structures, size=0)
        process = SimpleNamespace(
            covariance=covariance, marginals=(SimpleNamespace(dof=0, name=""),)
        )
        fits = [
            Fitted(process, Optimum(np.full(1, k), 0.0, done, "", 7), np.zeros(1), -0.5 * aic)
            for k, (aic, done) in enumerate(zip(aics, converged, strict=True))
        ]
        asked = []

        def fit(process, theta, *, restart, watch):
            assert not restart
            asked.append(int(theta[0]))
            return replace(fits[asked[-1]], optimum=Optimum(theta, 0.0, True, "", 5))

        monkeypatch.setattr(competition, "name_of", lambda process: "")
        together = SimpleNamespace(fit=fit, request=SimpleNamespace(solver=solver))
        found = competition._gone_on(together, fits, UNHEARD)
        counts = [12 if k in asked else 7 for k in range(len(fits))]
        assert [f.optimum.evaluations for f in found] == counts
        return asked

    def test_those_that_are_close(self, monkeypatch):
        aics, ended = [100.0, 103.0, 104.5, 101.0], [True, False, False, True]
        assert self.went_on(monkeypatch, aics, ended) == [1]

    def test_the_best_itself(self, monkeypatch):
        assert self.went_on(monkeypatch, [100.0, 90.0], [True, False]) == [1]

    def test_not_with_one_structure(self, monkeypatch):
        """Few parameters have arrived after a few iterations."""
        assert self.went_on(monkeypatch, [100.0, 99.0], [True, False], structures=1) == []

    def test_not_with_neighbours(self, monkeypatch):
        """One is picked, by its scores."""
        solver = Neighbours()
        assert self.went_on(monkeypatch, [100.0, 99.0], [True, False], solver=solver) == []


def test_the_aic_counts_all_parameters(sites, monkeypatch):
    seen = []
    monkeypatch.setattr(
        competition, "akaike_weights", lambda aic: seen.append(aic) or akaike_weights(aic)
    )
    model = xcopula.fit(sites, "metal", **OPEN)
    best = min(model.trials, key=lambda t: -t.weight)
    sizes = {
        t.name: 2.0 * (model.theta.size + 2 * ("2 structures" in t.name) - t.log_likelihood)
        for t in model.trials
    }
    np.testing.assert_allclose(sorted(seen[0]), sorted(sizes.values()))
    assert best.weight == model.trials[0].weight
