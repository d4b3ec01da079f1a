"""Values known as intervals, from arrays to the posterior: against quadrature and sampling."""

from __future__ import annotations

import importlib
from dataclasses import replace

import numpy as np
import pytest
import reference
import xarray as xr
from reference import Dry
from scipy import stats

import xcopula
from xcopula.fitting.newton import minimise
from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import Gamma, LogNormal, Normal, regress
from xcopula.marginals.censored import Censored
from xcopula.methods import CoKriging, Committee, Full, Sparse, Transductive
from xcopula.process import Process, Sample, Targets
from xcopula.process.intervals import truncate
from xcopula.solvers import Exact, Neighbours

fitting = importlib.import_module("xcopula.fitting.fit")  # in the package it is the function

LAWS = (LogNormal(0.2, 0.7), Gamma(2.5, 0.8), Normal(1.0, 2.0))


def setting(laws=LAWS[:1], sizes=(26, 22, 20), seed=0, together=8, kernels="matern32"):
    """Draw parameters and a partly co-located sample of numbers."""
    covariance = Covariance((KERNELS[kernels],) * len(laws), (InputGroup(2),))
    process, rng = Process(covariance, tuple(laws)), np.random.default_rng(seed)
    theta = process.join(reference.random_theta(covariance, rng))
    inputs = reference.random_inputs(covariance, rng, sizes[: len(laws)], together)
    return process, theta, reference.simulate(process, theta, inputs, seed)


def value_of(how, process, sample, solver=None):
    """Return the objective as a function of theta, each time from nothing."""
    return lambda theta: reference.objective(how, process, sample, theta, solver)[0]


def every(sample):
    """Return a solver that is given all that comes before, and predicts from all."""
    return Neighbours(neighbours=sample.size - 1, predict=sample.size, tiles=False)


SAMPLES = {
    "below a limit": lambda s: reference.censor(s),
    "rounded": lambda s: reference.censor(s, step=0.8),
}


class TestLikelihood:
    @pytest.mark.parametrize(("length", "nugget"), [(0.1, 0.2), (0.3, 0.1), (0.5, 0.02)])
    def test_genz(self, length, nugget):
        """18 of 60 values below a limit: the log-likelihood is that of quadrature to 0.03."""
        covariance = Covariance((KERNELS["matern12"],), (InputGroup(2),))
        process = Process(covariance, (Normal(0.0, 1.0),))
        own = np.zeros(covariance.size)
        covariance.part(own, "length")[:] = np.log(length)
        covariance.part(own, "logit")[:] = np.log(1.0 / nugget - 1.0)
        theta = process.join(own)
        inputs = [np.random.default_rng(1).uniform(size=(60, 2))]
        sample = reference.censor(reference.simulate(process, theta, inputs, 1))
        c, e = np.flatnonzero(sample.is_interval), np.flatnonzero(~sample.is_interval)
        assert c.size == 18
        matrix = reference.covariance_matrix(covariance, theta, inputs)
        inner, cross = matrix[np.ix_(e, e)], matrix[np.ix_(c, e)]
        gains = np.linalg.solve(inner, cross.T).T
        known = stats.multivariate_normal(cov=inner).logpdf(sample.values[e])
        rest = stats.multivariate_normal(
            gains @ sample.values[e],
            matrix[np.ix_(c, c)] - gains @ cross.T,
            maxpts=100_000,
            abseps=1e-12,
            releps=1e-3,
            seed=0,
        )
        expected = known + np.log(rest.cdf(sample.limits[1, c]))
        assert -value_of(Exact(), process, sample)(theta) == pytest.approx(expected, abs=0.03)

    @pytest.mark.parametrize("known", SAMPLES.values(), ids=SAMPLES.keys())
    @pytest.mark.parametrize("tasks", [1, 2])
    def test_gradient(self, known, tasks):
        """By covariance and laws it equals central differences to 1e-6."""
        process, theta, numbers = setting(LAWS[:tasks])
        sample = known(numbers)
        assert sample.is_interval.sum() > 5
        _, gradient = reference.objective(Exact(), process, sample, theta)
        expected = reference.differences(value_of(Exact(), process, sample), theta)
        np.testing.assert_allclose(gradient, expected, atol=1e-6)

    def test_gradient_of_an_atom(self):
        """Zeros of a law with an atom: gradient to 1e-6, also by the probability of zero."""
        process, theta, sample = setting((Dry(0.4, 2.0), LAWS[0]))
        assert 3 < (sample.values == 0.0).sum() < 20
        _, gradient = reference.objective(Exact(), process, sample, theta)
        expected = reference.differences(value_of(Exact(), process, sample), theta)
        np.testing.assert_allclose(gradient, expected, atol=1e-6)

    def test_gradient_of_a_law_that_varies(self):
        """A law that is bound to rows has its own limits in each: gradient to 1e-6."""
        rng = np.random.default_rng(2)
        x, inputs = rng.normal(size=24), rng.uniform(size=(24, 2))
        values = rng.gamma(3.0, np.exp(0.3 * x))
        law = regress("gamma", on="x").fit(values, x[:, None])
        process = Process(Covariance((KERNELS["se"],), (InputGroup(2),)), (law,))
        theta = process.join(reference.random_theta(process.covariance, rng))
        limits = np.stack([values, values])
        limits[0, :6], limits[1, :6], limits[1, 6:9] = -np.inf, values[:6] + 0.5, np.inf
        sample = Sample.of([inputs], [values], [x[:, None]], limits=[limits])
        _, gradient = reference.objective(Exact(), process, sample, theta)
        expected = reference.differences(value_of(Exact(), process, sample), theta)
        np.testing.assert_allclose(gradient, expected, atol=1e-6)

    def test_a_narrow_interval_is_its_number(self):
        """Per unit of width the mass of a narrow interval is the density of the number."""
        process, theta, numbers = setting()
        limits, width = np.stack([numbers.values] * 2), 1e-5
        limits[:, 3] += -0.5 * width, 0.5 * width
        sample = replace(numbers, limits=limits)
        value, gradient = reference.objective(Exact(), process, sample, theta)
        expected, slope = reference.objective(Exact(), process, numbers, theta)
        assert value + np.log(width) == pytest.approx(expected, abs=1e-7)
        np.testing.assert_allclose(gradient, slope, atol=1e-5)

    def test_an_open_interval_is_no_value(self):
        """Intervals of all numbers leave the likelihood that the other values have."""
        process, theta, numbers = setting(LAWS[:2])
        limits, gone = np.stack([numbers.values] * 2), [1, 7, 30]
        limits[:, gone] = [[-np.inf], [np.inf]]
        sample = replace(numbers, limits=limits)
        rest = numbers.take(np.delete(np.arange(numbers.size), gone))
        value, gradient = reference.objective(Exact(), process, sample, theta)
        expected, slope = reference.objective(Exact(), process, rest, theta)
        assert value == pytest.approx(expected, abs=1e-6)
        np.testing.assert_allclose(gradient, slope, atol=1e-5)

    def test_what_is_held_only_says_where_to_begin(self):
        """After other parameters, value and gradient are those of a cold start to 1e-8."""
        process, theta, numbers = setting(LAWS[:2])
        sample = reference.censor(numbers)
        held = Exact().prepare(process, theta, sample)
        Exact().objective(process, sample, held, theta + 0.2)
        value, gradient = Exact().objective(process, sample, held, theta)
        expected, slope = reference.objective(Exact(), process, sample, theta)
        assert value == pytest.approx(expected, abs=1e-9)
        np.testing.assert_allclose(gradient, slope, atol=1e-8)

    def test_an_interval_without_probability_is_impossible(self):
        """As a value without a density: infinite, with a zero gradient."""
        process, theta, numbers = setting()
        limits = np.stack([numbers.values] * 2)
        limits[:, 0] = -2.0, -1.0
        sample = replace(numbers, limits=limits)
        for solver in (Exact(), Neighbours(neighbours=5)):
            value, gradient = reference.objective(solver, process, sample, theta)
            assert value == np.inf
            assert not gradient.any()


class TestNeighbours:
    @pytest.mark.parametrize("known", SAMPLES.values(), ids=SAMPLES.keys())
    def test_with_all_before_as_neighbours_it_is_exact(self, known):
        """Value to 1e-6, gradient to 1e-3: stand-ins of a fit are rough. Posterior to 1e-8."""
        process, theta, numbers = setting(LAWS[:2])
        sample = known(numbers)
        solver = every(sample)
        value, gradient = reference.objective(solver, process, sample, theta)
        expected, slope = reference.objective(Exact(), process, sample, theta)
        assert value == pytest.approx(expected, abs=1e-6)
        np.testing.assert_allclose(gradient, slope, atol=1e-3)
        local = reference.condition(solver, process, sample, theta)
        exact = reference.condition(Exact(), process, sample, theta)
        targets = reference.some_targets(sample, np.random.default_rng(0))
        for task in (0, 1):
            for nugget in (True, False):
                np.testing.assert_allclose(
                    local.moments(targets, task=task, nugget=nugget),
                    exact.moments(targets, task=task, nugget=nugget),
                    atol=1e-8,
                )
        np.testing.assert_allclose(local.leave_one_out(), exact.leave_one_out(), atol=1e-8)
        rows, others = np.array([2, 9]), [np.array([5]), np.array([11, 12])]
        np.testing.assert_allclose(
            local.left_out(rows, others), exact.left_out(rows, others), atol=1e-8
        )

    def test_few_neighbours_are_near(self):
        """At 30 neighbours of 400: log-likelihood within 0.5, latent moments within 0.05."""
        process, theta, numbers = setting(sizes=(400,), seed=1)
        sample = reference.censor(numbers)
        solver = Neighbours(neighbours=30)
        value = value_of(solver, process, sample)(theta)
        assert value == pytest.approx(value_of(Exact(), process, sample)(theta), abs=0.5)
        points = Targets.nowhere(np.random.default_rng(0).uniform(size=(2, 40)))
        local = reference.condition(solver, process, sample, theta).moments(points)
        exact = reference.condition(Exact(), process, sample, theta).moments(points)
        np.testing.assert_allclose(local, exact, atol=0.05)

    def test_some_terms_stand_for_all(self):
        """600 of 1,500 terms estimate the log-likelihood of all to a tenth."""
        process, theta, numbers = setting(sizes=(1500,))
        sample = reference.censor(numbers)
        solver = Neighbours(neighbours=10)
        few, graph = solver.subset(process, theta, sample, 600)
        assert graph.rows.size < 620
        assert 0 < few.is_interval.sum() < few.size
        expected = value_of(solver, process, sample)(theta)
        value, _ = solver.objective(process, few, graph, theta)
        assert value == pytest.approx(expected, rel=0.1)

    def test_a_fit_is_near_that_of_numbers(self):
        """Limits below which 30 % lie leave laws and ranges where they were.

        They would not if the order of terms depended on values, such as numbers first.
        """
        process, theta, numbers = setting(sizes=(600,), seed=3)
        solver = Neighbours()

        def best(sample):
            structure = solver.prepare(process, theta, sample)
            return minimise(
                lambda point: (*solver.objective(process, sample, structure, point), None),
                theta,
                process.bounds(),
            ).theta

        np.testing.assert_allclose(best(reference.censor(numbers)), best(numbers), atol=0.3)


class TestMethods:
    @pytest.mark.parametrize("method", [Full(), Transductive(), Committee(2)], ids=lambda m: m.name)
    def test_gradient_and_solvers(self, method):
        """Each method's gradient equals differences; both solvers say the same."""
        process, theta, numbers = setting(LAWS)
        sample = reference.censor(numbers)
        value, gradient = reference.objective(method, process, sample, theta)
        expected = reference.differences(value_of(method, process, sample), theta)
        np.testing.assert_allclose(gradient, expected, atol=1e-5)
        again, _ = reference.objective(method, process, sample, theta, every(sample))
        assert again == pytest.approx(value, abs=1e-6)
        one = reference.condition(method, process, sample, theta)
        other = reference.condition(method, process, sample, theta, every(sample))
        targets = reference.some_targets(sample, np.random.default_rng(0))
        if method.name == "transductive":  # its anchors need the joint law
            one = reference.condition(Transductive(anchors=None), process, sample, theta)
        np.testing.assert_allclose(one.moments(targets), other.moments(targets), atol=1e-6)

    @pytest.mark.parametrize("method", [Full(), Transductive(), Committee(2)], ids=lambda m: m.name)
    def test_what_is_known_of_an_interval(self, method):
        """At its site, an observation has what all others say; a number is known."""
        process, theta, numbers = setting(LAWS)
        sample = reference.censor(numbers)
        conditioned = reference.condition(method, process, sample, theta)
        left = conditioned.leave_one_out()
        for task in range(3):
            own = sample.task(task)
            found = conditioned.moments(sample.targets(own), task=task)
            inside = sample.is_interval[own]
            assert inside.any()
            np.testing.assert_allclose(found.mean[inside], left.mean[own][inside])
            np.testing.assert_allclose(found.variance[inside], left.variance[own][inside])
            np.testing.assert_array_equal(found.variance[~inside], 0.0)
            mean = conditioned.mean(sample.targets(own), task=task)
            np.testing.assert_allclose(mean, found.mean)


def test_posterior_is_that_of_truncated_draws():
    """Moments at a new place, and of an interval at its site, are those of a rejection sampler."""
    process, theta, numbers = setting(sizes=(7,), together=0, seed=4)
    limits = np.stack([numbers.values] * 2)
    gone = np.array([0, 2, 5])
    limits[0, gone], limits[1, gone] = -np.inf, numbers.values[gone] + 0.3
    sample = replace(numbers, limits=limits)
    cells = Targets.nowhere(numbers.inputs[:, :1] + 0.05)
    inner, cross, own = reference.joint(process, theta, sample, cells, 0)
    matrix = np.block([[inner, cross.T], [cross, own]])
    unknown = np.append(gone, 7)
    known = np.setdiff1d(np.arange(7), gone)
    gains = np.linalg.solve(matrix[np.ix_(known, known)], matrix[np.ix_(known, unknown)]).T
    w = process.scores(theta, numbers)
    mean = gains @ w[known]
    rest = matrix[np.ix_(unknown, unknown)] - gains @ matrix[np.ix_(known, unknown)]
    draws = np.random.default_rng(0).multivariate_normal(mean, rest, 400_000)
    law = process.marginals[0]
    high = law.to_normal(limits[1, gone])
    kept = draws[(draws[:, :3] < high).all(axis=1)]
    assert len(kept) > 20_000
    conditioned = reference.condition(Exact(), process, sample, theta)
    found = conditioned.moments(cells)
    assert found.mean[0] == pytest.approx(kept[:, 3].mean(), abs=0.02)
    assert found.variance[0] == pytest.approx(kept[:, 3].var(), abs=0.02)
    cavity = conditioned.moments(sample.targets(gone))
    at_sites = truncate(cavity, np.full(3, -np.inf), high)
    np.testing.assert_allclose(at_sites.mean, kept[:, :3].mean(axis=0), atol=0.02)
    np.testing.assert_allclose(at_sites.variance, kept[:, :3].var(axis=0), atol=0.02)


@pytest.fixture(scope="module")
def data():
    """Return two variables at 40 sites, and a grid that meets some of them."""
    *_, numbers = setting(LAWS[:2], (40, 40), together=40)
    x, y = numbers.inputs[:, :40]
    values = {"a": numbers.values[:40], "b": numbers.values[40:]}
    return xr.Dataset(
        {name: ("site", own) for name, own in values.items()},
        {"x": ("site", x), "y": ("site", y)},
    )


@pytest.fixture(scope="module", params=["plugin", "inflated"])
def model(request, data):
    """Fit both with the smallest 30 % below a limit."""
    options = {"marginals": {"a": "lognormal", "b": "gamma"}, "kernels": "matern32"}
    read = fitting.read

    def censored(*given, **named):
        found = read(*given, **named)
        own = reference.censor(found.sample)
        return replace(found, sample=own)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "read", censored)
        return xcopula.fit(data, "a", "b", restarts=0, uncertainty=request.param, **options)


class TestModels:
    """Fitted models of samples with intervals, put together without labels of limits."""

    def test_interval_sites_lie_below_their_limit(self, model, data):
        """Quantiles of an observation there end at the limit; a number is itself."""
        sample = model.observations.sample
        inside, limit = sample.is_interval[:40], sample.limits[1, :40]
        found = model.predict(data[["x", "y"]], [0.05, 0.5, 0.999])["a"]
        assert (found.values[:, inside] <= limit[inside] + 1e-9).all()
        assert (found.values[0, inside] < found.values[2, inside]).all()
        np.testing.assert_allclose(
            found.values[:, ~inside], data["a"].values[~inside] + 0 * found.values[:, ~inside]
        )
        posterior = model.posterior(data[["x", "y"]])
        np.testing.assert_allclose(posterior.cdf(float(limit[inside][0])).values[inside], 1.0)
        mean, std = posterior.mean().values[inside], posterior.std().values[inside]
        assert ((mean > 0.0) & (mean < limit[inside])).all()
        assert ((std > 0.0) & (std < limit[inside])).all()
        latent = posterior.latent
        assert (latent["std"].values[inside] > 0.0).all()
        signal = model.predict(data[["x", "y"]], [0.999], of="signal")["a"]
        assert (signal.values[0, inside] > limit[inside]).any()

    def test_lazy_equals_eager(self, model, data):
        """In chunks of any size the same numbers come out, bit for bit."""
        points = data[["x", "y"]]
        eager = model.posterior(points)
        lazy = model.posterior(points, chunks={"site": 7})
        for name in ("mean", "std", "median"):
            np.testing.assert_array_equal(
                getattr(lazy, name)().compute().values, getattr(eager, name)().values
            )
        for name in ("mean", "std"):
            np.testing.assert_allclose(
                lazy.latent[name].compute().values, eager.latent[name].values, rtol=1e-13
            )
        other = model.predict(points, variable="b", chunks={"site": 9}).compute()
        xr.testing.assert_identical(other, model.predict(points, variable="b"))

    def test_left_out_values_are_scored_by_what_is_known(self, model):
        """The log score of an interval is the log of a probability; nothing is missing."""
        found = model.loo()
        inside = model.observations.sample.is_interval[:40]
        assert (found["log_score"].values[inside] < 0.0).all()
        for name in ("pit", "crps", "log_score", "score"):
            assert np.isfinite(found[name].values).all()
        assert ((found["pit"].values > 0.0) & (found["pit"].values < 1.0)).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("width", [1e-9, 1e-5, 1e-4])
def test_rounded_values_alone(sites, grid, width):
    """Where all values are narrow intervals, secondaries are weighed by the numbers in them."""
    metal, noise = sites["metal"], np.random.default_rng(0).normal(size=60)
    data = sites.assign(other=sites["proxy"] + noise, low=metal - width, high=metal + width)
    options = {"marginals": "normal", "kernels": "matern32", "anisotropy": False, "restarts": 0}
    limits = {"metal": ("low", "high")}
    rounded, exact = (
        xcopula.fit(data, "metal", ["proxy", "other"], censored=censored, **options)
        for censored in (limits, None)
    )
    found, want = (model.posterior(grid).median() for model in (rounded, exact))
    np.testing.assert_allclose(found, want, atol=0.02 * float(metal.std()))


def test_methods_without_intervals_refuse_them():
    """By name, with the variable, for limits and for an atom."""
    process, _, numbers = setting(LAWS[:2])
    sample = reference.censor(numbers)
    for method in (CoKriging(), Sparse("fitc")):
        with pytest.raises(
            ValueError, match=rf"method='{method.name}' takes numbers only, but 8 values of 'a'"
        ):
            method.check_intervals(sample, process.marginals, ["a", "b"])
        with pytest.raises(ValueError, match=r"the law of 'b' gives 0 a probability of its own"):
            method.check_intervals(numbers, [None, Dry()], ["a", "b"])
        method.check_intervals(numbers, process.marginals, ["a", "b"])
    Full().check_intervals(sample, [Dry(), None], ["a", "b"])


def test_a_fit_by_a_method_without_intervals_is_refused(data):
    """Before any work: a given law with an atom ends the fit."""
    dry = data.assign(a=np.maximum(data["a"] - 1.2, 0.0))
    with pytest.raises(ValueError, match=r"method='fitc' takes numbers only, but the law of 'a'"):
        xcopula.fit(
            dry,
            "a",
            marginals={"a": Censored(Normal(0.5, 1.0))},
            method="fitc",
            kernels="matern32",
        )


def test_zeros_of_a_fitted_law(data):
    """A law with an atom is fitted with its zeros, and predicts them exactly."""
    dry = data.assign(a=np.maximum(data["a"] - 1.2, 0.0))
    model = xcopula.fit(
        dry,
        "a",
        kernels="matern32",
        restarts=0,
        uncertainty="plugin",
    )
    assert model.converged
    dry_share = float(np.exp(model.marginals["a"].log_density(0.0)))
    assert dry_share == pytest.approx(float((dry["a"] == 0.0).mean()), abs=0.2)
    grid = xr.Dataset(coords={"x": np.linspace(0.0, 1.0, 8), "y": np.linspace(0.0, 1.0, 8)})
    posterior = model.posterior(grid)
    median, probability = posterior.median().values, posterior.cdf(0.0).values
    np.testing.assert_array_equal(median == 0.0, probability >= 0.5)
    assert (median == 0.0).any()
    np.testing.assert_allclose(posterior.exceedance(0.0).values, 1.0 - probability, atol=1e-12)
    at_sites = model.predict(dry[["x", "y"]], 0.95)["a"].values
    np.testing.assert_array_equal(at_sites == 0.0, dry["a"].values == 0.0)
    assert np.isfinite(model.loo()["crps"].values).all()
