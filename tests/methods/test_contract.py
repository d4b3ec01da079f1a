"""What every method fulfils with every solver, from one list, and how a method is asked for."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import pickle

import numpy as np
import pytest
import reference

from xcopula.arguments import check_integer
from xcopula.fitting.newton import minimise
from xcopula.marginals import LogNormal, Normal
from xcopula.methods import (
    METHODS,
    CoKriging,
    Committee,
    Full,
    Method,
    Sparse,
    Transductive,
    resolve_method,
)
from xcopula.methods import committee as committee_module
from xcopula.methods.nugget import unexplained
from xcopula.process import Moments, Process, Sample, Targets
from xcopula.solvers import SOLVERS, Conditioned, Cost, Exact, Neighbours, Sequential

RULES = ("calibrated", "report")

# Small versions of all methods, with every rule and every kind of query set of the transductive.
VARIANTS: dict[str, Method] = {
    "full": Full(),
    "cokriging": CoKriging(),
    "bcm": Committee(2),
    **{kind: Sparse(kind, 12) for kind in ("dtc", "fitc", "pitc")},
    **{
        f"transductive, {rule}, anchors {anchors}": Transductive(rule, anchors)
        for rule, anchors in itertools.product(RULES, ("auto", None, "block"))
    },
    "transductive": Transductive(),
}


# With as many neighbours as there are observations nothing is approximated.
SOLVING = [Exact(), Neighbours(neighbours=200, predict=200)]


def cases(names):
    """Mark a test to run for some of the list, with every solver that can do what it asks."""
    return pytest.mark.parametrize(
        ("method", "solver"),
        [
            pytest.param(VARIANTS[name], solver, id=f"{name}, {solver.name}")
            for name in names
            for solver in SOLVING
            if not (VARIANTS[name].needs_joint and isinstance(solver, Sequential))
        ],
    )


every = cases(VARIANTS)
likelihoods = cases(METHODS)  # the rules and query sets of transduction share one
noises = pytest.mark.parametrize("noise", ["independent", "correlated"])


def setting(seed=0, **options):
    """Draw three tasks, partly co-located, with sites of each alone; also give cells."""
    options = {"name": "shared", "sizes": (26, 22, 20)} | options
    process, sample, theta, rng = reference.example(seed=seed, **options)
    return process, sample, theta, reference.some_targets(sample, rng)


def first_tasks(count):
    """Draw three tasks and keep the first, or two, or all."""
    process, sample, theta, cells = setting()
    own = tuple(range(count))
    process, index = process.with_tasks(own)
    return process, sample.select(own), theta[index], cells


def test_every_name_is_in_the_list():
    """The list has all methods there are, by all names."""
    assert {method.name for method in VARIANTS.values()} == set(METHODS)
    assert {type(method) for method in VARIANTS.values()} == {type(m) for m in METHODS.values()}
    assert {solver.name for solver in SOLVING} == set(SOLVERS)


@every
class TestObjects:
    def test_are_frozen_values(self, method, solver):
        """Equal options make equal methods; they have a repr, travel, and cannot be changed."""
        assert dataclasses.replace(method) == method
        assert pickle.loads(pickle.dumps(method)) == method
        assert repr(method).startswith(type(method).__name__ + "(")
        with pytest.raises(AttributeError):
            method.polish = False

    def test_tell_what_they_are(self, method, solver):
        """What the fit and the messages ask of a method."""
        assert method.name in METHODS
        assert "log-likelihood" in method.likelihood
        assert isinstance(method.pairwise, bool)
        assert method.polish
        assert method.for_variables(["a", "b"]) is method

    def test_cost(self, method, solver):
        """Estimated from the sizes alone; more data cost more."""
        small, large = (method.cost(solver, [n, n, n]) for n in (1_000, 10_000))
        for cost in (small, large):
            assert isinstance(cost, Cost)
            assert cost.bytes > 0.0
            assert cost.flops > 0.0
        assert large.bytes > 5 * small.bytes
        assert large.flops > 5 * small.flops

    def test_information_is_told_by_those_that_can(self, method, solver):
        """Methods that join all data cannot tell secondaries apart, and say so."""
        process, sample, theta, cells = setting()
        conditioned = reference.condition(method, process, sample, theta, solver)
        assert method.informs == hasattr(conditioned, "information")
        assert method.informs == (method.name == "transductive")
        if method.informs:
            assert conditioned.information(cells).shape == (2, cells.size)


@likelihoods
class TestObjective:
    @pytest.mark.parametrize("name", ["single", "groups", "shared", "directions"])
    def test_gradient(self, method, solver, name):
        """The gradient equals central differences, to 1e-6 of its largest entry."""
        process, sample, theta, _ = reference.example(name, (26, 22, 20))
        structure = reference.prepare(method, process, sample, theta, solver)
        objective = functools.partial(method.objective, process, sample, structure)
        _, gradient = objective(theta)
        expected = reference.differences(lambda x: objective(x)[0], theta, step=1e-4)
        atol = 1e-6 * max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(gradient, expected, rtol=0, atol=atol)

    def test_infinite_outside_the_support(self, method, solver):
        """A value that its law does not allow: infinite, a zero gradient, and no exception."""
        process, sample, theta, _ = setting()
        for i in (3, 30, 60):
            values = sample.values.copy()
            values[i] = -1.0
            bad = dataclasses.replace(sample, values=values)
            value, gradient = reference.objective(method, process, bad, theta, solver)
            assert value == np.inf
            np.testing.assert_array_equal(gradient, np.zeros(process.size))

    def test_structure_serves_other_laws(self, method, solver):
        """What is made of a sample does not depend on the marginal laws."""
        process, sample, theta, _ = setting()
        structure = reference.prepare(method, process, sample, theta, solver)
        other = Process(process.covariance, (LogNormal(0.0, 1.1), LogNormal(0.5, 0.5), Normal()))
        moved = other.join(theta[: process.covariance.size])
        found = method.objective(other, sample, structure, moved)
        expected = reference.objective(method, other, sample, moved, solver)
        assert found[0] == expected[0]
        np.testing.assert_array_equal(found[1], expected[1])


@every
class TestConditioned:
    def test_order_of_observations_is_immaterial(self, method, solver):
        """Permuting each task leaves likelihood, gradient and prediction, to 1e-7."""
        process, sample, theta, cells = setting()
        rng = np.random.default_rng(7)
        order = np.concatenate(
            [rng.permutation(np.arange(sample.size)[sample.task(i)]) for i in range(3)]
        )
        shuffled = Sample(sample.inputs[:, order].copy(), sample.offsets, sample.values[order],
                          sample.sites[order])  # fmt: skip
        found = reference.objective(method, process, shuffled, theta, solver)
        expected = reference.objective(method, process, sample, theta, solver)
        assert found[0] == pytest.approx(expected[0], abs=1e-7)
        np.testing.assert_allclose(found[1], expected[1], rtol=0, atol=1e-7)
        found, expected = (
            reference.condition(method, process, s, theta, solver) for s in (shuffled, sample)
        )
        np.testing.assert_allclose(found.moments(cells), expected.moments(cells), rtol=0, atol=1e-7)
        loo = np.array(expected.leave_one_out())[:, order]
        np.testing.assert_allclose(found.leave_one_out(), loo, rtol=0, atol=1e-7)

    def test_has_the_parts_of_the_contract(self, method, solver):
        """Every name of the protocol is there, with the shapes that it says, for any task."""
        process, sample, theta, cells = setting()
        conditioned = reference.condition(method, process, sample, theta, solver)
        names = {n for c in Conditioned.__mro__ for n in vars(c) if not n.startswith("_")}
        assert {"moments", "mean", "means", "leave_one_out", "describe"} <= names
        assert all(hasattr(conditioned, name) for name in names)
        assert all(isinstance(line, str) for line in conditioned.describe())
        for task, nugget in itertools.product(range(3), (True, False)):
            found = conditioned.moments(cells, task=task, nugget=nugget)
            assert isinstance(found, Moments)
            assert found.mean.shape == found.variance.shape == (cells.size,)
            assert np.isfinite(found).all()
            assert (found.variance >= 0.0).all()
        loo = conditioned.leave_one_out()
        assert loo.mean.shape == loo.variance.shape == (sample.size,)
        assert np.isfinite(loo).all()
        assert (loo.variance > 0.0).all()

    def test_the_first_task_is_the_default(self, method, solver):
        """And so is the observation, with its nugget."""
        process, sample, theta, cells = setting()
        conditioned = reference.condition(method, process, sample, theta, solver)
        expected = conditioned.moments(cells, task=0, nugget=True)
        np.testing.assert_array_equal(conditioned.moments(cells), expected)

    def test_no_targets(self, method, solver):
        """An empty set of targets gives empty moments and means."""
        process, sample, theta, _ = setting()
        conditioned = reference.condition(method, process, sample, theta, solver)
        none = Targets.nowhere(np.empty((2, 0)))
        for task in range(3):
            found = conditioned.moments(none, task=task)
            assert found.mean.shape == found.variance.shape == (0,)
            assert conditioned.means(none, np.ones((2, sample.size)), task=task).shape == (2, 0)

    def test_travels(self, method, solver):
        """A pickled conditioned process predicts the same."""
        process, sample, theta, cells = setting()
        conditioned = reference.condition(method, process, sample, theta, solver)
        back = pickle.loads(pickle.dumps(conditioned))
        np.testing.assert_array_equal(back.moments(cells), conditioned.moments(cells))

    def test_asking_changes_nothing(self, method, solver):
        """Predictions, means and left-out values may be asked for in any order, any number."""
        process, sample, theta, cells = setting()
        conditioned = reference.condition(method, process, sample, theta, solver)
        first = conditioned.moments(cells)
        loo = conditioned.leave_one_out()
        conditioned.means(cells, np.ones((2, sample.size)))
        np.testing.assert_array_equal(conditioned.moments(cells), first)
        np.testing.assert_array_equal(conditioned.leave_one_out(), loo)

    @pytest.mark.parametrize("tasks", [1, 2, 3])
    def test_the_mean_alone_is_that_of_the_moments(self, method, solver, tasks):
        """For every task, with and without its nugget, at data and elsewhere, to 1e-12."""
        process, sample, theta, cells = first_tasks(tasks)
        conditioned = reference.condition(method, process, sample, theta, solver)
        none = Targets.nowhere(np.empty((len(cells.inputs), 0)))
        for task, nugget in itertools.product(range(tasks), (True, False)):
            found = conditioned.mean(cells, task=task, nugget=nugget)
            expected = conditioned.moments(cells, task=task, nugget=nugget).mean
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
            assert conditioned.mean(none, task=task, nugget=nugget).shape == (0,)
        np.testing.assert_array_equal(conditioned.mean(cells), conditioned.mean(cells, task=0))

    @pytest.mark.parametrize("tasks", [1, 2, 3])
    def test_a_mean_that_is_cheaper_asks_for_no_variance(self, method, solver, tasks, monkeypatch):
        """Where a method says so, nothing is whitened; the sparse ones solve half as much."""
        process, sample, theta, cells = first_tasks(tasks)
        conditioned = reference.condition(method, process, sample, theta, solver)

        def refuse(*args, **options):
            raise AssertionError("the variance was asked for")

        for kind in {type(c) for c in (conditioned, *getattr(conditioned, "models", ()))}:
            monkeypatch.setattr(kind, "moments", refuse)
        for task in range(tasks):
            if method.mean_is_cheaper(None, tasks, task):
                assert conditioned.mean(cells, task=task).shape == (cells.size,)
            else:
                assert method.name in ("bcm", "transductive")
                with pytest.raises(AssertionError, match="the variance was asked for"):
                    conditioned.mean(cells, task=task)

    @pytest.mark.parametrize("nugget", [True, False])
    def test_means_of_the_data_are_those_of_the_moments(self, method, solver, nugget):
        """The data's own scores give the mean of the moments, for any task, to 1e-10."""
        process, sample, theta, cells = setting()
        conditioned = reference.condition(method, process, sample, theta, solver)
        w = process.scores(theta, sample)
        for task in range(3):
            found = conditioned.means(cells, np.stack([w, -2.0 * w]), task=task, nugget=nugget)
            mean = conditioned.moments(cells, task=task, nugget=nugget).mean
            np.testing.assert_allclose(found, [mean, -2.0 * mean], rtol=0, atol=1e-10)

    @pytest.mark.parametrize("nugget", [True, False])
    def test_means_are_linear(self, method, solver, nugget):
        """A combination of scores has the combination of their means, to 1e-9."""
        process, sample, theta, cells = setting()
        conditioned = reference.condition(method, process, sample, theta, solver)
        rng = np.random.default_rng(1)
        scores, weights = rng.normal(size=(3, sample.size)), rng.normal(size=(4, 3))
        for task in range(3):
            means = conditioned.means(cells, scores, task=task, nugget=nugget)
            found = conditioned.means(cells, weights @ scores, task=task, nugget=nugget)
            np.testing.assert_allclose(found, weights @ means, rtol=0, atol=1e-9)

    def test_means_are_those_of_a_model_with_other_data(self, method, solver):
        """Other scores give what the same method, weights held, says of such data, to 1e-9."""
        process, sample, theta, cells = setting(law=Normal(0.0, 1.0))
        conditioned = reference.condition(method, process, sample, theta, solver)
        row = np.random.default_rng(2).normal(size=sample.size)
        other = dataclasses.replace(sample, values=row)
        again = reference.condition(method, process, other, theta, solver)
        again = held(method, conditioned, again)
        for task in range(3):
            found = conditioned.means(cells, row[None], task=task)[0]
            expected = again.moments(cells, task=task).mean
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def held(method, conditioned, again):
    """Give a model the weights that another has learnt."""
    if not isinstance(method, Transductive):
        return again
    fixed = Transductive("report", method.anchors)
    anchors = None
    if again.anchors is not None:
        anchors = fixed._anchor(again.models, conditioned.rule, again.sample)
    return dataclasses.replace(again, rule=conditioned.rule, anchors=anchors)


@every
@noises
class TestNugget:
    """No method promises more of an observation than its nugget allows."""

    @pytest.mark.parametrize("seed", range(3))
    def test_what_cannot_be_explained_stays(self, method, solver, noise, seed):
        """The variance is at least what co-located tasks leave of the nugget; but at a datum.

        There the prediction is the datum, with zero variance.
        """
        process, sample, theta, cells = setting(seed, noise=noise)
        theta = theta.copy()
        # From half of the variance nugget to most of it, and from short to long lengths.
        process.covariance.part(theta, "logit")[:] = 0.3 - 0.5 * seed
        process.covariance.part(theta, "length")[:] = np.log(0.1 * 4.0**seed)
        conditioned = reference.condition(method, process, sample, theta, solver)
        nugget = reference.task_matrices(process.covariance, theta)[-1]
        w = process.scores(theta, sample)
        for task in range(3):
            datum = sample.observed(task, cells.sites)
            known = datum >= 0
            elsewhere, others = cells.sites < 0, ~known & (cells.sites >= 0)
            assert known.any()
            assert elsewhere.any()
            assert others.any()
            found = conditioned.moments(cells, task=task)
            rest = unexplained(nugget, sample, cells.sites, task)
            np.testing.assert_allclose(rest[elsewhere], nugget[task, task])
            if noise == "correlated":
                assert (rest[others] < nugget[task, task]).all()
            assert (found.variance[~known] >= rest[~known] - 1e-10).all()
            np.testing.assert_allclose(found.mean[known], w[datum[known]], rtol=0, atol=1e-9)
            np.testing.assert_allclose(found.variance[known], 0.0, rtol=0, atol=1e-9)
            if not isinstance(method, Full) and (task == 0 or method.name != "transductive"):
                np.testing.assert_array_equal(found.mean[known], w[datum[known]])
                np.testing.assert_array_equal(found.variance[known], 0.0)

    def test_left_out_values_have_it(self, method, solver, noise):
        """So is the variance of a value that is left out."""
        process, sample, theta, _ = setting(noise=noise)
        theta = theta.copy()
        process.covariance.part(theta, "logit")[:] = -0.3
        loo = reference.condition(method, process, sample, theta, solver).leave_one_out()
        nugget = reference.task_matrices(process.covariance, theta)[-1]
        for task in range(3):
            own = sample.task(task)
            rest = unexplained(nugget, sample, sample.sites[own], task)
            assert (loo.variance[own] >= rest - 1e-10).all()

    def test_elsewhere_it_is_added_to_the_signal(self, method, solver, noise):
        """Away from data, means are the signal's, and variances differ by the nugget."""
        process, sample, theta, cells = setting(noise=noise)
        away = cells.take(cells.sites < 0)
        conditioned = reference.condition(method, process, sample, theta, solver)
        nugget = reference.task_matrices(process.covariance, theta)[-1]
        for task in range(3):
            found = conditioned.moments(away, task=task)
            signal = conditioned.moments(away, task=task, nugget=False)
            np.testing.assert_allclose(found.mean, signal.mean, rtol=0, atol=1e-8)
            expected = signal.variance + nugget[task, task]
            np.testing.assert_allclose(found.variance, expected, rtol=0, atol=1e-8)


def without(method, solver, conditioned, process, theta, i):
    """Condition without one observation, all else that was chosen or learnt being held."""
    sample = conditioned.sample if hasattr(conditioned, "sample") else conditioned.base.sample
    rest = reference.without(sample, i)
    if isinstance(method, Sparse):
        structure = reference.prepare(method, process, sample, theta, solver)
        return reference.condition(Sparse(method.kind, structure.points), process, rest, theta)
    if isinstance(method, Committee):
        index = [k[k != i] - (k[k != i] > i) for k in conditioned.index]
        parts = reference.prepare(method, process, sample, theta, solver).parts
        pairs = zip(parts, index, strict=True)
        made = [dataclasses.replace(part, sample=rest.take(own)) for part, own in pairs]
        blocks = committee_module.Blocks(tuple(index), tuple(made))
        return method.condition(process, rest, blocks, theta)
    again = reference.condition(method, process, rest, theta, solver)
    return held(method, conditioned, again)


@cases([n for n, m in VARIANTS.items() if n != "pitc" and getattr(m, "anchors", None) is None])
@noises
def test_leave_one_out_is_prediction_without_the_observation(method, solver, noise):
    """Every value of every task is what the method says of its site without it, to 1e-8.

    Blocks, inducing points and learnt weights are held. PITC knows its block (test_sparse); with
    anchors the sub-models' left-out values are combined point by point (test_transductive).
    """
    process, sample, theta, _ = setting(sizes=(17, 15, 14), noise=noise)
    conditioned = reference.condition(method, process, sample, theta, solver)
    loo = conditioned.leave_one_out()
    for i in range(sample.size):
        task = int(np.searchsorted(sample.offsets, i, side="right")) - 1
        again = without(method, solver, conditioned, process, theta, i)
        found = again.moments(sample.targets(np.array([i])), task=task)
        assert found.mean[0] == pytest.approx(loo.mean[i], abs=1e-8)
        assert found.variance[0] == pytest.approx(loo.variance[i], abs=1e-8)


class Counter:
    """Counts calls of methods of classes."""

    def __init__(self, patch):
        self.patch, self.calls = patch, {}

    def watch(self, owner, name):
        """Count the calls of one method from here on."""
        key, original = f"{owner.__name__}.{name}", getattr(owner, name)
        self.calls[key] = 0

        def counted(*arguments, **options):
            self.calls[key] += 1
            return original(*arguments, **options)

        self.patch.setattr(owner, name, counted)


@every
def test_what_is_made_of_a_sample_is_made_once(method, solver, monkeypatch):
    """Selections, sub-processes and structures do not grow with the evaluations of a fit."""
    process, sample, theta, _ = reference.example("shared", (16, 15, 15))
    counter = Counter(monkeypatch)
    for owner, name in [
        (Sample, "select"),
        (Sample, "take"),
        (Process, "_of"),
        (type(method), "prepare"),
        (type(solver), "prepare"),
    ]:
        counter.watch(owner, name)
    structure = reference.prepare(method, process, sample, theta, solver)
    objective = functools.partial(method.objective, process, sample, structure)
    objective(theta)
    made = dict(counter.calls)
    assert made[f"{type(method).__name__}.prepare"] == 1
    optimum = minimise(
        lambda x: (*objective(x), None), theta + 0.2, process.bounds(), gain=0.0, iterations=25
    )
    assert optimum.evaluations >= 20
    assert counter.calls == made
    parts = {"transductive": 3, "bcm": 1, "full": 1, "cokriging": 1}.get(method.name, 0)
    assert made["Process._of"] == parts
    assert made["Sample.select"] == parts + (method.name == "bcm")


@dataclasses.dataclass(frozen=True)
class Another:
    """A solver of one's own, which is the exact one under another name."""

    asked: list = dataclasses.field(default_factory=list)
    name = "another"
    mean_is_cheaper = True

    def prepare(self, process, theta, sample):
        self.asked.append("prepare")
        return "structure"

    def objective(self, process, sample, structure, theta):
        assert structure == "structure"
        self.asked.append("objective")
        return Exact().objective(process, sample, None, theta)

    def condition(self, process, sample, structure, theta):
        assert structure == "structure"
        self.asked.append("condition")
        return Exact().condition(process, sample, None, theta)

    def cost(self, sizes, correlations=1):
        return Exact().cost(sizes)


@pytest.mark.parametrize("name", [n for n, m in VARIANTS.items() if not isinstance(m, Sparse)])
def test_sub_models_are_the_given_solver_s(name):
    """Methods that have Gaussian sub-models take any solver, and no other."""
    method, another = VARIANTS[name], Another()
    process, sample, theta, cells = setting()
    count = {"transductive": 3, "bcm": 2}.get(method.name, 1)
    structure = reference.prepare(method, process, sample, theta, another)
    assert another.asked == ["prepare"] * count
    value, gradient = method.objective(process, sample, structure, theta)
    assert another.asked[count:] == ["objective"] * count
    conditioned = method.condition(process, sample, structure, theta)
    assert another.asked[2 * count :] == ["condition"] * count
    expected = reference.objective(method, process, sample, theta)
    assert value == expected[0]
    np.testing.assert_array_equal(gradient, expected[1])
    exact = reference.condition(method, process, sample, theta)
    np.testing.assert_array_equal(conditioned.moments(cells), exact.moments(cells))


class TestVaryingLaws:
    """Marginal laws that vary from observation to observation."""

    @pytest.mark.parametrize(
        ("tasks", "name"),
        [(1, "full"), (2, "full"), (2, "transductive"), (3, "transductive"), (2, "fitc"),
         (2, "bcm")],
    )  # fmt: skip
    def test_gradient(self, tasks, name):
        """The gradient of the objective equals central differences, to 1e-6."""
        process, sample, theta = reference.varying(tasks)
        method = VARIANTS[name]
        structure = reference.prepare(method, process, sample, theta)
        objective = functools.partial(method.objective, process, sample, structure)
        _, gradient = objective(theta)
        expected = reference.differences(lambda x: objective(x)[0], theta, step=1e-4)
        atol = 2e-6 * np.abs(gradient).max()
        np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=atol)

    @pytest.mark.parametrize("name", [n for n, m in VARIANTS.items() if m.law is None])
    def test_condition_uses_the_rows_laws(self, name):
        """Every method is conditioned on the scores of the bound laws."""
        method = VARIANTS[name]
        process, sample, theta = reference.varying(2)
        w = process.scores(theta, sample)
        plain = Process(process.covariance, (Normal(), Normal()))
        scored = Sample(sample.inputs, sample.offsets, w, sample.sites)
        theta_plain = plain.join(process.split(theta)[0])
        targets = Targets.nowhere(np.random.default_rng(0).uniform(size=(2, 7)))
        got, expected = (
            reference.condition(method, p, s, t).moments(targets)
            for p, s, t in [(process, sample, theta), (plain, scored, theta_plain)]
        )
        np.testing.assert_allclose(got.mean, expected.mean, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(got.variance, expected.variance, rtol=1e-8)


class TestResolve:
    def test_by_name(self):
        """Each method under its own name."""
        for name, method in METHODS.items():
            assert resolve_method(name) is method
            assert method.name == name
        assert set(METHODS) == {
            "transductive", "full", "dtc", "fitc", "pitc", "bcm", "cokriging"
        }  # fmt: skip

    def test_an_object_is_itself(self):
        """Options live in the object."""
        method = Transductive("report", None)
        assert resolve_method(method) is method

    def test_an_unknown_name(self):
        """The message names the choices."""
        with pytest.raises(ValueError, match=r"Unknown method 'magic'\. Choose one of .*'full'"):
            resolve_method("magic")

    @pytest.mark.parametrize("method", [Full, Sparse, Committee])
    def test_a_class(self, method):
        """A class in place of an object is told how to be made."""
        name = method.__name__
        with pytest.raises(
            TypeError, match=rf"`method` is a class\. Give an object instead: {name}\(\)"
        ):
            resolve_method(method)

    @pytest.mark.parametrize("bad", [None, 3, object(), ["full"], Exact()])
    def test_what_is_no_method(self, bad):
        """The message says what was found."""
        with pytest.raises(TypeError, match=f"`method` must be .*; found {type(bad).__name__}"):
            resolve_method(bad)


class TestHelpers:
    @pytest.mark.parametrize("value", [1, 7, np.int64(7), np.uint8(3)])
    def test_integers(self, value):
        """Numbers of any integer type come back as Python's."""
        found = check_integer("n", value, least=1)
        assert found == value
        assert type(found) is int

    @pytest.mark.parametrize("value", [True, False, np.True_, 1.0, np.float64(2), "3", None, [1]])
    def test_no_integers(self, value):
        """Truth values and fractions are no numbers of things."""
        with pytest.raises(TypeError, match="`n` must be an integer, found"):
            check_integer("n", value)

    def test_too_few(self):
        """The message has the bound."""
        assert check_integer("n", 0) == 0
        with pytest.raises(ValueError, match="`n` must be at least 2, found 1"):
            check_integer("n", 1, least=2)

    def test_a_method_needs_all_parts(self):
        """A method of one's own without a part of the contract cannot be made."""

        class Half(Method):
            name = "half"

            def cost(self, solver, sizes, correlations=1):
                return Cost(0.0, 0.0)

        with pytest.raises(TypeError, match="abstract"):
            Half()
