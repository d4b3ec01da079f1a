"""The steps of a fit: laws, single tasks, pairs that hold the primary, and the polish."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import xcopula
from xcopula import fitting, steps
from xcopula.errors import SupportError
from xcopula.methods import exact, transductive
from xcopula.kernels import KERNELS
from xcopula.marginals import Exponential, LogNormal

QUICK = {"marginals": "lognormal", "kernels": "matern32", "restarts": 0}
SECONDARIES = ["Ni", "Zn"]


@pytest.fixture(scope="module")
def metals() -> xr.Dataset:
    """36 sites of the Jura; cadmium is unknown at the validation sites."""
    data = xcopula.datasets.jura().isel(site=slice(None, None, 10))
    return data.assign(Cd=data["Cd"].where(data["split"] == "prediction"))


def asked(data, primary="Cd", secondary=SECONDARIES, **options):
    """Return the observations and the plan that a fit starts from."""
    seen = []

    def spy(observations, plan):
        started = steps.begin(observations, plan)
        seen.append((observations, started))
        return started

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "begin", spy)
        xcopula.fit(data, primary, secondary, compute=False, **QUICK | options)
    return seen[0]


def tables_of(observations, plan):
    """Run step one for every task."""
    tasks = range(len(observations.names))
    return steps.choose([steps.fit_alone(observations, plan, i) for i in tasks], plan)


def alone(candidate):
    """Return the parameters of a single-task fit: its covariance's, then its law's."""
    law = candidate.marginal.theta
    return np.concatenate([candidate.theta[: candidate.theta.size - law.size], law])


@pytest.fixture(scope="module")
def start(metals):
    """Observations, plan and step one."""
    observations, plan = asked(metals)
    return observations, plan, tables_of(observations, plan)


@pytest.fixture(scope="module")
def pairs(start):
    """Both pairs, fitted."""
    observations, plan, tables = start
    return [steps.fit_pair(observations, plan, tables, i) for i in (1, 2)]


@pytest.fixture(scope="module")
def joined(start, pairs):
    """The pairs put together without a polish."""
    observations, plan, tables = start
    return steps.fit_together(observations, replace(plan, polish=False), tables, pairs)


@pytest.fixture(scope="module")
def polished(start, pairs):
    """The pairs polished together."""
    observations, plan, tables = start
    return steps.fit_together(observations, plan, tables, pairs)


class TestStartingLaws:
    def test_named_laws_are_fitted_and_given_ones_kept(self, metals):
        """A name becomes a law at its own fit; an instance is taken as it is; auto stays open."""
        given = LogNormal(3.0, 0.5)
        options = {"marginals": {"Cd": "lognormal", "Ni": given}}
        observations, plan = asked(metals, **options)
        values = observations.sample.values[observations.sample.task(0)]
        np.testing.assert_allclose(plan.laws[0].theta, LogNormal.fit(values).theta)
        assert plan.laws[1] is given
        assert plan.laws[2] is None

    def test_a_value_without_a_score_ends_it(self, metals):
        """Zeros under an exponential law are refused by name."""
        zeros = metals.assign(Zn=metals["Zn"].where(np.arange(36) > 1, 0.0))
        with pytest.raises(SupportError, match=r"'Zn'.*2 of 36"):
            asked(zeros, marginals={"Zn": Exponential(50.0)})


class TestChoose:
    def test_shared_kernels_agree(self, metals):
        """With one kernel for all tasks, the same one stands first in every table."""
        observations, plan = asked(metals, kernels="auto", coupling="icm")
        tables = tables_of(observations, plan)
        assert len({table[0].kernel for table in tables}) == 1
        assert all(len(table) == len(KERNELS) for table in tables)

    def test_convolution_leaves_each_task_its_best(self, start):
        """Tables stay as step one left them."""
        _, plan, tables = start
        again = [list(table) for table in tables]
        assert steps.choose(again, plan) == tables


class TestPairs:
    @pytest.mark.parametrize("options", [{}, {"coupling": "lmc", "structures": 2}], ids=str)
    @pytest.mark.parametrize("restarts", [0, 1])
    def test_hold_the_primary_s_parameters_exactly(self, metals, options, restarts):
        """Kernel, nugget and law of the primary are those of step one, to the last bit."""
        observations, plan = asked(metals, secondary=["Ni"], restarts=restarts, **options)
        tables = tables_of(observations, plan)
        pair = steps.fit_pair(observations, plan, tables, 1)
        covariance = plan.covariance([t[0].kernel for t in tables], observations)
        process = steps.Process(covariance, tuple(t[0].marginal for t in tables))
        _, own = process.with_primary(None)
        np.testing.assert_array_equal(pair.theta[own], alone(tables[0][0]))
        assert pair.theta.size == process.size
        low, high = process.bounds().T
        assert ((pair.theta >= low) & (pair.theta <= high)).all()

    def test_are_better_than_two_tasks_apart(self, start, pairs):
        """Fitting what a pair adds raises the likelihood above that of independent tasks."""
        observations, plan, tables = start
        for i, pair in enumerate(pairs, start=1):
            kernels = [tables[0][0].kernel, tables[i][0].kernel]
            process = steps.Process(
                plan.covariance(kernels, observations),
                (tables[0][0].marginal, tables[i][0].marginal),
            )
            nll, _ = exact.objective(process, observations.sample.select([0, i]), pair.theta)
            apart = tables[0][0].log_likelihood + tables[i][0].log_likelihood
            assert -nll > apart - 0.5

    def test_restarts_never_end_lower(self, start, pairs):
        """The best of several starts is at least as good as the one suggested, within 0.1 nats."""
        observations, plan, tables = start
        again = steps.fit_pair(observations, replace(plan, restarts=1), tables, 1)
        assert again.value <= pairs[0].value + 0.1
        assert again.evaluations > pairs[0].evaluations


class TestTogether:
    def test_without_polish_the_pairs_are_kept(self, start, pairs, joined):
        """Every pair stands in theta as it was fitted, and so does the primary of step one."""
        _, _, tables = start
        for i, pair in enumerate(pairs, start=1):
            _, index = joined.process.with_primary(i)
            np.testing.assert_array_equal(joined.theta[index], pair.theta)
        _, own = joined.process.with_primary(None)
        np.testing.assert_array_equal(joined.theta[own], alone(tables[0][0]))
        assert joined.converged == all(p.converged for p in pairs)
        assert joined.evaluations == sum(p.evaluations for p in pairs)

    def test_the_polish_raises_the_composite_likelihood(self, joined, polished):
        """With its weak priors, which it maximises, and here without them too."""

        def posterior(model):
            return model.log_likelihood + model.process.log_prior(model.theta)[0]

        assert posterior(polished) >= posterior(joined)
        assert polished.log_likelihood >= joined.log_likelihood - 0.5
        assert not np.array_equal(polished.theta, joined.theta)

    @pytest.mark.parametrize("which", ["joined", "polished"])
    def test_the_likelihood_is_the_composite_one(self, request, which):
        """What the model reports is minus the objective at its theta."""
        model = request.getfixturevalue(which)
        value, _ = transductive.objective(model.process, model.observations.sample, model.theta)
        assert model.log_likelihood == pytest.approx(-value, rel=0, abs=1e-9)

    def test_sub_models_stay_coherent_after_the_polish(self, polished):
        """All sub-models share the primary's parameters, so no secondary takes precision away."""
        targets = np.random.default_rng(0).uniform(-0.5, 0.5, size=(2, 60))
        assert (polished.conditioned.information(targets) >= 0.0).all()

    @pytest.mark.parametrize("polish", [True, False])
    def test_fit_is_the_chain_of_the_steps(self, metals, polish, joined, polished):
        """`fit` gives the model that the steps give, to the last bit."""
        model = xcopula.fit(metals, "Cd", SECONDARIES, polish=polish, **QUICK)
        np.testing.assert_array_equal(model.theta, (polished if polish else joined).theta)

    def test_the_same_seed_gives_the_same_model(self, metals):
        """Restarts are seeded: identical with one seed, elsewhere with another or as good."""
        options = QUICK | {"restarts": 1, "coupling": "icm", "polish": False}
        first, again, other = (
            xcopula.fit(metals, "Cd", SECONDARIES, seed=seed, **options) for seed in (3, 3, 4)
        )
        np.testing.assert_array_equal(first.theta, again.theta)
        assert first.log_likelihood == again.log_likelihood
        assert other.log_likelihood == pytest.approx(first.log_likelihood, abs=3.0)

    def test_the_law_of_the_primary_may_change_in_the_polish(self, metals):
        """With the law left open, close ones compete by leave-one-out in the whole model."""
        options = QUICK | {"marginals": {"Ni": "lognormal", "Zn": "lognormal"}, "coupling": "icm"}
        model = xcopula.fit(metals, "Cd", SECONDARIES, **options)
        names = [trial.marginal for trial in model.law_trials]
        if names:
            assert model.marginals[0].name == names[0]
            assert [t.crps for t in model.law_trials] == sorted(t.crps for t in model.law_trials)
        assert np.isfinite(model.log_likelihood)
