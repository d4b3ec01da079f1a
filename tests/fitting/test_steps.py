"""The steps of a fit: laws, single tasks, pairs that hold the primary, and the polish."""

from __future__ import annotations

import functools
import importlib
import inspect
from dataclasses import replace

import numpy as np
import pytest
import reference
import xarray as xr
from conftest import METHODS
from scipy.optimize import minimize

import xcopula
from xcopula.errors import CostError, SupportError
from xcopula.fitting import alone as alone_module
from xcopula.fitting import steps, together
from xcopula.fitting.directions import free_groups
from xcopula.fitting.request import Request
from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.labels.observations import observe
from xcopula.marginals import Exponential, LogNormal, Normal
from xcopula.methods import Full, Transductive
from xcopula.model import CopulaModel
from xcopula.process import Process, Targets
from xcopula.solvers import Exact, Neighbours

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
    observations = observe(data, names, laws=request.named_laws)
    request = replace(request, anisotropy=free_groups(True, observations.coordinates))
    return observations, steps.begin(observations, request)


def agreed_of(observations, request):
    """Run step one for every task."""
    tasks = range(len(observations.names))
    tables = [steps.fit_alone(observations, request, i) for i in tasks]
    return steps.bring_together(observations, request, tables)


def alone(single):
    """Return the parameters of a single-task fit: its covariance's, then its law's."""
    law = single.marginal.theta
    return np.concatenate([single.theta[: single.theta.size - law.size], law])


@pytest.fixture(scope="module")
def start(metals):
    """Observations, request and step one."""
    observations, request = asked(metals)
    return observations, request, agreed_of(observations, request)


@pytest.fixture(scope="module")
def pairs(start):
    """Both pairs, fitted."""
    observations, request, agreed = start
    return [steps.fit_pair(observations, request, agreed, i) for i in (1, 2)]


@pytest.fixture(scope="module")
def joined(start, pairs):
    """The pairs put together without a polish."""
    observations, request, agreed = start
    return steps.fit_together(
        observations, replace(request, method=Transductive(polish=False)), agreed, pairs
    )


@pytest.fixture(scope="module")
def polished(start, pairs):
    """The pairs polished together."""
    observations, request, agreed = start
    return steps.fit_together(observations, request, agreed, pairs)


class TestStartingLaws:
    def test_named_laws_are_fitted_and_given_ones_kept(self, metals):
        """A name becomes a law at its own fit, "auto" the default one; an instance is kept."""
        given = LogNormal(3.0, 0.5)
        options = {"marginals": {"Cd": "lognormal", "Ni": given}}
        observations, request = asked(metals, **options)
        values = observations.sample.values[observations.sample.task(0)]
        np.testing.assert_allclose(request.laws[0].theta, LogNormal.fit(values).theta)
        assert request.laws[1] == given
        assert request.laws[2].name == "flexible above 0"
        assert request.support == (None, None, (0.0, np.inf))
        assert request.structures == 1

    def test_a_value_without_a_score_ends_it(self, metals):
        """Zeros under an exponential law are refused by name."""
        zeros = metals.assign(Zn=metals["Zn"].where(np.arange(36) > 1, 0.0))
        with pytest.raises(SupportError, match=r"'Zn'.*2 of 36"):
            asked(zeros, marginals={"Zn": Exponential(50.0)})


class TestBringTogether:
    def test_shared_kernels_agree(self, metals):
        """With one kernel for all tasks, the same one is taken for every task."""
        observations, request = asked(metals, kernels={"se", "matern12"}, coupling="icm")
        singles, rows = agreed_of(observations, request)
        assert len({single.kernel for single in singles}) == 1
        assert len(rows) == 3 * 2
        assert sum(row.selected for row in rows) == 3

    def test_convolution_leaves_each_task_its_own(self, start):
        """And nothing is listed where nothing was selected."""
        observations, request, agreed = start
        tables = [(single,) for single in agreed[0]]
        assert steps.bring_together(observations, request, tables) == agreed
        assert agreed[1] == ()


class TestPairs:
    @pytest.mark.parametrize("options", [{}, {"coupling": "lmc", "structures": 2}], ids=str)
    @pytest.mark.parametrize("restarts", [0, 1])
    def test_hold_the_primary_s_parameters_exactly(self, metals, options, restarts):
        """Kernel, nugget and law of the primary are those of step one, to the last bit."""
        observations, request = asked(metals, secondary=["Ni"], restarts=restarts, **options)
        agreed = agreed_of(observations, request)
        pair = steps.fit_pair(observations, request, agreed, 1)
        singles, _ = agreed
        covariance = request.covariance(
            [s.kernel for s in singles], singles[0].covariance.groups, request.structures
        )
        process = Process(covariance, tuple(s.marginal for s in singles))
        _, own = process.with_tasks((0,))
        np.testing.assert_array_equal(pair.theta[own], alone(singles[0]))
        assert pair.theta.size == process.size
        low, high = process.bounds().T
        assert ((pair.theta >= low) & (pair.theta <= high)).all()

    def test_are_better_than_two_tasks_apart(self, start, pairs):
        """Fitting what a pair adds raises the likelihood above that of independent tasks."""
        observations, request, agreed = start
        for i, pair in enumerate(pairs, start=1):
            two = [agreed[0][0], agreed[0][i]]
            process = Process(
                request.covariance([s.kernel for s in two], two[0].covariance.groups, 1),
                tuple(s.marginal for s in two),
            )
            nll, _ = Exact().objective(
                process, observations.sample.select([0, i]), None, pair.theta
            )
            apart = sum(s.log_likelihood for s in two)
            assert -nll > apart - 0.5

    def test_restarts_never_end_lower(self, start, pairs):
        """The best of several starts is at least as good as the one suggested, within 0.1 nats."""
        observations, request, agreed = start
        again = steps.fit_pair(observations, replace(request, restarts=1), agreed, 1)
        assert again.optimum.value <= pairs[0].optimum.value + 0.1
        assert again.optimum.evaluations > pairs[0].optimum.evaluations


class TestTogether:
    def test_without_polish_the_pairs_are_kept(self, start, pairs, joined):
        """Every pair stands in theta as it was fitted, and so does the primary of step one."""
        _, _, (singles, _) = start
        for i, pair in enumerate(pairs, start=1):
            _, index = joined.process.with_tasks((0, i))
            np.testing.assert_array_equal(joined.theta[index], pair.theta)
        _, own = joined.process.with_tasks((0,))
        np.testing.assert_array_equal(joined.theta[own], alone(singles[0]))
        assert joined.optimum.converged == all(p.optimum.converged for p in pairs)
        assert joined.optimum.evaluations == sum(p.optimum.evaluations for p in pairs)
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
        observations, request, agreed = start
        model = FIT._record(observations, request, agreed[1], polished)
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

    @pytest.mark.parametrize("method", ["transductive", "full", "fitc", "cokriging"])
    def test_what_is_fitted_is_what_the_model_has(self, metals, method):
        """The record repeats the process, its likelihood and how the optimiser ended."""
        options = QUICK | {"marginals": "normal", "coupling": "icm", "method": METHODS[method]}
        observations, request = asked(metals, **options)
        agreed = agreed_of(observations, request)
        pairs = []
        if request.method.pairwise:
            pairs = [steps.fit_pair(observations, request, agreed, i) for i in (1, 2)]
        fitted = steps.fit_together(observations, request, agreed, pairs)
        model = xcopula.fit(metals, "Cd", SECONDARIES, **options)
        np.testing.assert_array_equal(model.theta, fitted.theta)
        assert model.log_likelihood == fitted.log_likelihood
        assert model.converged == fitted.optimum.converged
        assert model.message == fitted.optimum.message
        assert model.evaluations == fitted.optimum.evaluations
        assert model.method.name == method
        assert model.solver == Exact()


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
        """From the observations to what is fitted, laws that are compared included."""
        options = {"method": METHODS[method], "coupling": "icm"}
        if method != "cokriging":
            options["marginals"] = {"Ni": ["lognormal", "gamma"], "Zn": "lognormal"}
        else:
            options["marginals"] = "normal"
        observations, request = asked(metals, **options)
        assert made.pop("DataArray") > 0  # the counter counts: reading makes some
        made.clear()
        agreed = agreed_of(observations, request)
        pairs = []
        if request.method.pairwise:
            pairs = [steps.fit_pair(observations, request, agreed, i) for i in (1, 2)]
        fitted = steps.fit_together(observations, request, agreed, pairs)
        assert made == {}
        FIT._record(observations, request, agreed[1], fitted)
        assert set(made) == {"CopulaModel"}

    @pytest.mark.parametrize("method", ["transductive", "full"])
    def test_a_fit_makes_one_model(self, metals, made, method):
        """Laws that are compared and passed over are no models."""
        options = {"marginals": {"Ni": ["lognormal", "gamma"], "Zn": "lognormal"}}
        options["coupling"] = "icm"
        model = xcopula.fit(metals, "Cd", SECONDARIES, method=method, **QUICK | options)
        assert model.selection.sizes == {"alternative": 2}
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
def test_the_sample_is_prepared_once(metals, monkeypatch, method):
    """A fit makes it, and so does a model, when it is asked for what it takes."""
    calls = []
    original = method.prepare

    def prepare(self, *arguments, **options):
        calls.append(arguments)
        return original(self, *arguments, **options)

    monkeypatch.setattr(method, "prepare", prepare)
    options = {"kernels": "matern32", "marginals": "lognormal", "anisotropy": False}
    model = xcopula.fit(
        metals, "Cd", ["Ni", "Zn"], method=method(), uncertainty="plugin", **options
    )
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
    """Where some terms stand for all, they come first, and all terms once and last."""

    OPTIONS = QUICK | {"method": "full", "solver": Neighbours(8), "anisotropy": False}

    def test_all_terms_come_once_and_last(self, many, monkeypatch):
        monkeypatch.setattr(alone_module, "TERMS_ALONE", 60)
        monkeypatch.setattr(together, "_TERMS", 80)
        prepared, prepare = [], Full.prepare

        def noted(self, *arguments, terms=None):
            prepared.append(terms)
            return prepare(self, *arguments, terms=terms)

        monkeypatch.setattr(Full, "prepare", noted)
        model = xcopula.fit(many, "v", **self.OPTIONS)
        assert prepared == [80, None]
        assert model.objective(model.theta)[0] == pytest.approx(-model.log_likelihood)
        # It is near the optimum of all terms, priors included: steps of small promise are left.
        value, _ = model.objective(model.theta, prior=True)
        posterior = functools.partial(model.objective, prior=True)
        lowest = minimize(posterior, model.theta, jac=True, method="BFGS")
        assert value - lowest.fun < 1.0

    def test_a_preparation_serves_all_laws_and_kernels(self, many):
        """It depends on who is near whom."""
        observations, request = asked(
            many, "v", [], **QUICK | {"method": "full", "solver": Neighbours(8)}
        )
        whole = together.Together(observations.sample, request, settled=True)

        def prepared(law, kernel="matern32"):
            process = Process(Covariance((KERNELS[kernel],), (InputGroup(2),)), (law,))
            return whole._prepare(process, process.join(np.zeros(2)), 80)

        first = prepared(Normal.fit(observations.sample.values))
        assert prepared(Normal(0.0, 1.0), "se") is first
