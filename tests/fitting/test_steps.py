"""The steps of a fit: laws, single tasks, pairs that hold the primary, and the polish."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import replace

import numpy as np
import pytest
import reference
import xarray as xr
from conftest import METHODS
from scipy.optimize import minimize
from xcopula.fitting.rivals import name_of
from xcopula.fitting.selection import kernels_to_try, laws_to_try

import xcopula
from xcopula.errors import CostError, SupportError
from xcopula.fitting import alone as alone_module
from xcopula.fitting import steps, together
from xcopula.fitting.request import Request
from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.labels.observations import observe
from xcopula.marginals import Exponential, LogNormal, Normal, fit_law
from xcopula.methods import Full, Transductive
from xcopula.model import CopulaModel
from xcopula.process import Process, Targets, scores
from xcopula.solvers import Exact, Neighbours
from xcopula.solvers import graph as graph_module
from xcopula.solvers.neighbours import Local

QUICK = {"marginals": "lognormal", "kernels": "matern32", "restarts": 0, "uncertainty": "plugin"}
# The function of the same name hides the module.
FIT = importlib.import_module("xcopula.fitting.fit")
SECONDARIES = ["Ni", "Zn"]


@pytest.fixture(scope="module")
def metals() -> xr.Dataset:
    """36 sites of the Jura; cadmium is unknown at the validation sites."""
    data = xcopula.datasets.jura().isel(site=slice(None, None, 10))
    return data.assign(Cd=data["Cd"].where(data["split"] == "prediction"))


def asked(data, primary="Cd", secondary=SECONDARIES, **options):
    """Return the observations and the request that a fit starts from."""
    taken = inspect.signature(Request.of).parameters
    usual = inspect.signature(xcopula.fit).parameters.values()
    defaults = {p.name: p.default for p in usual if p.name in taken}
    names = [primary, *secondary]
    request = Request.of(names, **defaults | QUICK | options)
    observations = observe(data, names, laws=request.laws)
    return observations, steps.begin(observations, request)


def tables_of(observations, request):
    """Run step one for every task."""
    tasks = range(len(observations.names))
    return steps.choose([alone_of(observations, request, i) for i in tasks], request)


def alone_of(observations, request, task):
    """Run step one for one task."""
    given = observations, request, task, steps.survey(observations, request, task)
    first = steps.try_law(*given, 0)
    laws = [first]
    for k in range(1, len(laws_to_try(request.laws[task]))):
        laws.append(steps.try_law(*given, k, first))
    kernels = range(1, len(kernels_to_try(request.kernels[task])))
    return steps.rank(*given, [*laws, *(steps.try_kernel(*given, k, laws) for k in kernels)])


def alone(candidate):
    """Return the parameters of a single-task fit: its covariance's, then its law's."""
    law = candidate.marginal.theta
    return np.concatenate([candidate.theta[: candidate.theta.size - law.size], law])


@pytest.fixture(scope="module")
def start(metals):
    """Observations, request and step one."""
    observations, request = asked(metals)
    return observations, request, tables_of(observations, request)


@pytest.fixture(scope="module")
def pairs(start):
    """Both pairs, fitted."""
    observations, request, tables = start
    return [steps.fit_pair(observations, request, tables, i) for i in (1, 2)]


@pytest.fixture(scope="module")
def joined(start, pairs):
    """The pairs put together without a polish."""
    observations, request, tables = start
    return steps.fit_together(
        observations, replace(request, method=Transductive(polish=False)), tables, pairs
    )


@pytest.fixture(scope="module")
def polished(start, pairs):
    """The pairs polished together."""
    observations, request, tables = start
    return steps.fit_together(observations, request, tables, pairs)


class TestStartingLaws:
    def test_named_laws_are_fitted_and_given_ones_kept(self, metals):
        """A name becomes a law at its own fit; an instance is taken as it is; auto stays open."""
        given = LogNormal(3.0, 0.5)
        options = {"marginals": {"Cd": "lognormal", "Ni": given}}
        observations, request = asked(metals, **options)
        values = observations.sample.values[observations.sample.task(0)]
        np.testing.assert_allclose(request.laws[0].theta, LogNormal.fit(values).theta)
        assert request.laws[1] == given
        assert request.laws[2] is None

    def test_a_value_without_a_score_ends_it(self, metals):
        """Zeros under an exponential law are refused by name."""
        zeros = metals.assign(Zn=metals["Zn"].where(np.arange(36) > 1, 0.0))
        with pytest.raises(SupportError, match=r"'Zn'.*2 of 36"):
            asked(zeros, marginals={"Zn": Exponential(50.0)})


class TestChoose:
    def test_shared_kernels_agree(self, metals):
        """With one kernel for all tasks, the same one stands first in every table."""
        observations, request = asked(metals, kernels="auto", coupling="icm")
        tables = tables_of(observations, request)
        assert len({table[0].kernel for table in tables}) == 1
        assert all(len(table) == len(KERNELS) for table in tables)

    def test_convolution_leaves_each_task_its_best(self, start):
        """Tables stay as step one left them."""
        _, request, tables = start
        again = [list(table) for table in tables]
        assert steps.choose(again, request) == tables


class TestPairs:
    @pytest.mark.parametrize("options", [{}, {"coupling": "lmc", "structures": 2}], ids=str)
    @pytest.mark.parametrize("restarts", [0, 1])
    def test_hold_the_primary_s_parameters_exactly(self, metals, options, restarts):
        """Kernel, nugget and law of the primary are those of step one, to the last bit."""
        observations, request = asked(metals, secondary=["Ni"], restarts=restarts, **options)
        tables = tables_of(observations, request)
        pair = steps.fit_pair(observations, request, tables, 1)
        covariance = request.covariance(
            [t[0].kernel for t in tables], tables[0][0].groups, tables[0][0].structures
        )
        process = Process(covariance, tuple(t[0].marginal for t in tables))
        _, own = process.with_tasks((0,))
        np.testing.assert_array_equal(pair.theta[own], alone(tables[0][0]))
        assert pair.theta.size == process.size
        low, high = process.bounds().T
        assert ((pair.theta >= low) & (pair.theta <= high)).all()

    def test_are_better_than_two_tasks_apart(self, start, pairs):
        """Fitting what a pair adds raises the likelihood above that of independent tasks."""
        observations, request, tables = start
        for i, pair in enumerate(pairs, start=1):
            kernels = [tables[0][0].kernel, tables[i][0].kernel]
            process = Process(
                request.covariance(kernels, tables[0][0].groups, 1),
                (tables[0][0].marginal, tables[i][0].marginal),
            )
            nll, _ = Exact().objective(
                process, observations.sample.select([0, i]), None, pair.theta
            )
            apart = tables[0][0].log_likelihood + tables[i][0].log_likelihood
            assert -nll > apart - 0.5

    def test_restarts_never_end_lower(self, start, pairs):
        """The best of several starts is at least as good as the one suggested, within 0.1 nats."""
        observations, request, tables = start
        again = steps.fit_pair(observations, replace(request, restarts=1), tables, 1)
        assert again.value <= pairs[0].value + 0.1
        assert again.evaluations > pairs[0].evaluations


class TestTogether:
    def test_without_polish_the_pairs_are_kept(self, start, pairs, joined):
        """Every pair stands in theta as it was fitted, and so does the primary of step one."""
        _, _, tables = start
        for i, pair in enumerate(pairs, start=1):
            _, index = joined.process.with_tasks((0, i))
            np.testing.assert_array_equal(joined.theta[index], pair.theta)
        _, own = joined.process.with_tasks((0,))
        np.testing.assert_array_equal(joined.theta[own], alone(tables[0][0]))
        assert joined.optimum.converged == all(p.converged for p in pairs)
        assert joined.optimum.evaluations == sum(p.evaluations for p in pairs)
        prior, _ = joined.process.log_prior(joined.theta)
        assert joined.optimum.value == pytest.approx(-joined.log_likelihood - prior)

    def test_the_polish_raises_the_composite_likelihood(self, joined, polished):
        """With its weak priors, which it maximises, and here without them too."""

        def posterior(fitted):
            return fitted.log_likelihood + fitted.process.log_prior(fitted.theta)[0]

        assert posterior(polished) >= posterior(joined)
        assert polished.log_likelihood >= joined.log_likelihood - 0.5
        assert not np.array_equal(polished.theta, joined.theta)

    @pytest.mark.parametrize("which", ["joined", "polished"])
    def test_the_likelihood_is_the_composite_one(self, request, start, which):
        """Pairs add up, less the primary as often as it was counted too often."""
        observations, _, _ = start
        fitted = request.getfixturevalue(which)

        def likelihood(tasks):
            process, index = fitted.process.with_tasks(tasks)
            sample = observations.sample.select(tasks)
            return -Exact().objective(process, sample, None, fitted.theta[index])[0]

        expected = likelihood((0, 1)) + likelihood((0, 2)) - likelihood((0,))
        assert fitted.log_likelihood == pytest.approx(expected, rel=0, abs=1e-9)

    def test_sub_models_stay_coherent_after_the_polish(self, start, polished):
        """All sub-models share the primary's parameters, so no secondary takes precision away."""
        observations, request, tables = start
        model = FIT._record(observations, request, tables, polished)
        targets = np.random.default_rng(0).uniform(-0.5, 0.5, size=(2, 60))
        assert (model.conditioned.information(Targets.nowhere(targets)) >= 0.0).all()

    @pytest.mark.parametrize("polish", [True, False])
    def test_fit_is_the_chain_of_the_steps(self, metals, polish, joined, polished):
        """`fit` gives the model that the steps give, to the last bit."""
        method = Transductive(polish=polish)
        model = xcopula.fit(metals, "Cd", SECONDARIES, method=method, **QUICK)
        np.testing.assert_array_equal(model.theta, (polished if polish else joined).theta)

    def test_the_same_seed_gives_the_same_model(self, metals):
        """Restarts are seeded: identical with one seed, elsewhere with another or as good."""
        method = Transductive(polish=False)
        options = QUICK | {"restarts": 1, "coupling": "icm", "method": method}
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
        names = [trial.name.split(",")[0] for trial in model.trials]
        if names:
            assert model.marginals[0].name == names[0]
            weights = [t.weight for t in model.trials]
            assert weights == sorted(weights, reverse=True)
            assert sum(weights) == pytest.approx(1.0)
        assert np.isfinite(model.log_likelihood)

    @pytest.mark.parametrize("method", ["transductive", "full", "fitc", "cokriging"])
    def test_what_is_fitted_is_what_the_model_has(self, metals, method):
        """The record repeats the process, its likelihood and how the optimiser ended."""
        options = QUICK | {"marginals": "normal", "coupling": "icm", "method": METHODS[method]}
        observations, request = asked(metals, **options)
        tables = tables_of(observations, request)
        pairs = []
        if request.method.pairwise:
            pairs = [steps.fit_pair(observations, request, tables, i) for i in (1, 2)]
        fitted = steps.fit_together(observations, request, tables, pairs)
        model = xcopula.fit(metals, "Cd", SECONDARIES, **options)
        np.testing.assert_array_equal(model.theta, fitted.theta)
        assert model.log_likelihood == fitted.log_likelihood
        assert model.converged == fitted.optimum.converged
        assert model.message == fitted.optimum.message
        assert model.evaluations == fitted.optimum.evaluations
        assert model.method.name == method
        assert model.solver == Exact()

    def test_laws_compete_by_the_score_of_the_model(self, metals):
        """What a trial reports is the leave-one-out score of that law in the whole model."""
        options = QUICK | {"marginals": {"Ni": "lognormal", "Zn": "lognormal"}, "method": "full"}
        observations, request = asked(metals, **options)
        tables = tables_of(observations, request)
        fitted = steps.fit_together(observations, request, tables)
        assert len(fitted.trials) > 1, "one candidate: the test proves nothing"
        assert name_of(fitted.process) == fitted.trials[0].name
        model = FIT._record(observations, request, tables, fitted)
        model = model.with_uncertainty("plugin")
        found = together.Together(observations.sample, request, settled=True)
        where = found.to_leave_out(fitted)
        crps = [float(model.loo()["crps"].mean())]
        few = found.method.condition(
            fitted.process,
            observations.sample,
            found._prepare(fitted.process, fitted.prepared),
            fitted.theta,
        ).left_out(where.few, where.gaps)
        law = model.marginals[0]
        crps.append(float(scores(few, law, observations.sample.values[where.few]).crps.mean()))
        # The winner is fitted to the end after the trials, which were short.
        assert np.mean(crps) == pytest.approx(fitted.trials[0].crps, rel=0.05)


class TestNothingLabelled:
    """Steps work on arrays: labels are read before them and written after them."""

    @pytest.fixture
    def made(self, monkeypatch) -> dict[str, int]:
        """Count what is made of each class."""
        counts: dict[str, int] = {}

        def counting(kind, name):
            original = getattr(kind, name)

            def count(self, *args, **kwargs):
                counts[kind.__name__] = counts.get(kind.__name__, 0) + 1
                return original(self, *args, **kwargs)

            monkeypatch.setattr(kind, name, count)

        for kind in (xr.Dataset, xr.DataArray, xr.Variable):
            counting(kind, "__init__")
        counting(CopulaModel, "__post_init__")
        return counts

    @pytest.mark.parametrize("method", METHODS)
    def test_steps_make_no_labelled_object_and_no_model(self, metals, made, method):
        """From the observations to what is fitted, laws that compete included."""
        options = {"method": METHODS[method], "coupling": "icm"}
        if method != "cokriging":
            options["marginals"] = {"Ni": "lognormal", "Zn": "lognormal"}
        else:
            options["marginals"] = "normal"
        observations, request = asked(metals, **options)
        assert made.pop("DataArray") > 0  # the counter counts: reading makes some
        made.clear()
        tables = tables_of(observations, request)
        pairs = []
        if request.method.pairwise:
            pairs = [steps.fit_pair(observations, request, tables, i) for i in (1, 2)]
        fitted = steps.fit_together(observations, request, tables, pairs)
        assert made == {}
        FIT._record(observations, request, tables, fitted)
        assert set(made) == {"CopulaModel"}

    @pytest.mark.parametrize("method", ["transductive", "full"])
    def test_a_fit_makes_one_model(self, metals, made, method):
        """Laws that are tried and passed over are no models."""
        options = {"marginals": {"Ni": "lognormal", "Zn": "lognormal"}, "coupling": "icm"}
        model = xcopula.fit(metals, "Cd", SECONDARIES, method=method, **QUICK | options)
        assert len(model.trials) > 1
        assert made["CopulaModel"] == 1


def test_a_fit_that_is_too_large_ends_at_the_beginning(metals):
    """The cost is looked at before any law is fitted."""
    with pytest.raises(CostError, match="method='transductive' with solver='exact' on"):
        asked(metals, max_hours=1e-9)


def test_points_of_a_method_are_located(metals):
    """Labelled anchors become inputs of the process: scaled, and with the numbers of sites."""
    points = metals[["x", "y"]].isel(site=[0, 3]).drop_vars("split")
    observations, request = asked(metals, method=Transductive(anchors=points))
    anchors = request.method.anchors
    assert isinstance(anchors, Targets)
    sample = observations.sample
    nickel = sample.task(1).start  # known at all sites
    np.testing.assert_array_equal(anchors.sites, sample.sites[[nickel, nickel + 3]])
    np.testing.assert_allclose(anchors.inputs, sample.inputs[:, [nickel, nickel + 3]], rtol=1e-12)


@pytest.mark.parametrize("method", [Transductive, Full])
def test_laws_are_judged_by_the_default_number_for_predictions(metals, monkeypatch, method):
    """More observations for each cell make maps smoother: a fit does not pay for them."""
    monkeypatch.setattr(together, "_MOST_LEFT_OUT", 20)
    monkeypatch.setattr(together, "_MOST_IN_GAPS", 5)
    asked = []
    original = Local.left_out

    def left_out(self, *arguments):
        asked.append(self.solver)
        return original(self, *arguments)

    monkeypatch.setattr(Local, "left_out", left_out)
    given = {"kernels": "matern32", "restarts": 0, "method": method()}
    given["uncertainty"] = "plugin"
    given["marginals"] = {"Ni": "lognormal"}
    fits = {
        many: xcopula.fit(metals, "Cd", "Ni", solver=Neighbours(12, many, False), **given)
        for many in (30, 250)
    }
    assert len(fits[30].trials) > 1, "one law: the test proves nothing"
    assert set(asked) == {Neighbours(12, None, False)}
    assert fits[30].trials == fits[250].trials
    for many, model in fits.items():
        assert model.solver == Neighbours(12, many, False)  # as it was asked for
        (gaussian, *_) = getattr(model.conditioned, "models", (model.conditioned,))
        assert f"predicted from {many}" in gaussian.describe()[0]


@pytest.mark.parametrize("method", [Transductive, Full])
def test_the_sample_is_prepared_once(metals, monkeypatch, method):
    """Laws are tried, judged and chosen with what the method made of the sample at first."""
    calls = []
    original = method.prepare

    def prepare(self, *arguments, **options):
        calls.append(arguments)
        return original(self, *arguments, **options)

    monkeypatch.setattr(method, "prepare", prepare)
    options = {"kernels": "matern32", "structures": 1, "anisotropy": False}
    model = xcopula.fit(
        metals, "Cd", ["Ni", "Zn"], method=method(), uncertainty="plugin", **options
    )
    assert len(model.trials) > 1
    assert len(calls) == 1
    model.loo()
    model.objective(model.theta)
    # The model makes its own once.
    assert len(calls) == 2


@pytest.fixture(scope="module")
def many():
    """400 values of one variable."""
    covariance = Covariance((KERNELS["matern32"],), (InputGroup(2),))
    process = Process(covariance, (LogNormal(0.0, 0.5),))
    theta = process.join(np.array([np.log(0.2), 2.0]))
    sites = np.random.default_rng(0).uniform(size=(400, 2))
    sample = reference.simulate(process, theta, [sites], 0)
    x, y = sites.T
    return xr.Dataset({"v": ("site", sample.values)}, {"x": ("site", x), "y": ("site", y)})


class TestAtScale:
    """Where some terms stand for all, these decide, and all terms are for what is picked."""

    @pytest.fixture
    def seen(self, monkeypatch):
        """Note what is made of the sample, and what is evaluated, of so many terms or of all."""
        monkeypatch.setattr(alone_module, "TERMS_ALONE", 60)
        monkeypatch.setattr(together, "_TERMS", 80)
        monkeypatch.setattr(together, "_MOST_LEFT_OUT", 40)
        monkeypatch.setattr(together, "_MOST_IN_GAPS", 5)
        seen = {"prepared": [], "graphs": 0, "left out": []}
        prepare, connect = Full.prepare, graph_module.connect
        left_out = together.Together.left_out

        def noted(self, *arguments, terms=None):
            seen["prepared"].append(terms)
            return prepare(self, *arguments, terms=terms)

        def connected(*arguments, **options):
            seen["graphs"] += 1
            return connect(*arguments, **options)

        def judged(self, fitted, where):
            seen["left out"].append((seen["graphs"], fitted, left_out(self, fitted, where)))
            return seen["left out"][-1][-1]

        monkeypatch.setattr(Full, "prepare", noted)
        monkeypatch.setattr(graph_module, "connect", connected)
        monkeypatch.setattr(together.Together, "left_out", judged)
        return seen

    OPTIONS = QUICK | {
        "kernels": "auto",
        "method": "full",
        "solver": Neighbours(8),
        "structures": 1,
        "anisotropy": False,
    }

    def test_all_terms_come_once_and_last(self, many, seen):
        model = xcopula.fit(many, "v", **self.OPTIONS)
        assert len(model.trials) > 1, "one candidate: the test proves nothing"
        # One choice of terms serves all kernels; that of all values is made before it is needed.
        assert seen["prepared"] == [80, None]
        # Values are left out without it.
        assert [graphs for graphs, *_ in seen["left out"]] == [0] * len(model.trials)
        assert seen["graphs"] == 1
        # What is picked is at the optimum of all terms.
        value, _ = model.objective(model.theta)
        assert value == pytest.approx(-model.log_likelihood)
        lowest = minimize(model.objective, model.theta, jac=True, method="BFGS")
        assert value - lowest.fun < 0.3
        begun = next(f for *_, f, _ in seen["left out"] if f.process == model.process)
        assert model.objective(begun.theta)[0] >= value - 0.1
        assert model.log_likelihood != begun.log_likelihood

    def test_values_are_left_out_as_cells_are_predicted(self, many, seen):
        """Each from those around it; all others say nearly the same."""
        xcopula.fit(many, "v", **self.OPTIONS)
        for _, fitted, found in seen["left out"]:
            sample = observe(many, ["v"], laws=[None]).sample
            exact = Exact().condition(fitted.process, sample, None, fitted.theta)
            rows = np.linspace(0, 400, 40, endpoint=False).astype(int)
            moments = type(exact.leave_one_out())(*(p[rows] for p in exact.leave_one_out()))
            law = fitted.process.split(fitted.theta)[1][0]
            expected = scores(moments, law, sample.values[rows]).crps
            assert np.corrcoef(found.parts[0].crps, expected)[0, 1] > 0.99
            assert found.parts[0].crps.mean() == pytest.approx(expected.mean(), rel=0.01)

    def test_a_law_with_an_atom_has_a_preparation_of_its_own(self, many):
        """Its zeros are intervals. Other laws share one, and so do kernels."""
        options = {k: v for k, v in self.OPTIONS.items() if k != "anisotropy"}
        options["marginals"] = "normal"
        zeros = many.assign(v=many["v"].where(np.arange(400) % 9 > 0, 0.0))
        observations, request = asked(zeros, "v", [], **options)
        whole = together.Together(observations.sample, request, settled=True)
        values = observations.sample.values

        def prepared(law, kernel="matern32"):
            process = Process(Covariance((KERNELS[kernel],), (InputGroup(2),)), (law,))
            return whole._prepare(process, process.join(np.zeros(2)), 80)

        first = prepared(Normal.fit(values))
        assert prepared(Normal(0.0, 1.0), "se") is first
        assert prepared(fit_law(xcopula.zero_inflated("gamma"), values)) is not first
