"""Terms with intervals: against the exact solver on the few values of each, and its gradient."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import reference

from xcopula.errors import NotPositiveDefiniteError
from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import Gamma, LogNormal
from xcopula.process import Evidence, Process
from xcopula.solvers import Exact, Neighbours, likelihood
from xcopula.solvers import terms as terms_module


def setting(sizes=(22, 18), seed=0, kernel="matern32"):
    """Return a process of two tasks, parameters and a partly co-located sample of numbers."""
    covariance = Covariance((KERNELS[kernel],) * 2, (InputGroup(2),))
    process = Process(covariance, (LogNormal(0.2, 0.7), Gamma(2.5, 0.8)))
    rng = np.random.default_rng(seed)
    theta = process.join(reference.random_theta(covariance, rng))
    inputs = reference.random_inputs(covariance, rng, sizes, 6)
    return process, theta, reference.simulate(process, theta, inputs, seed)


def odd_limits(numbers):
    """Return the sample with intervals of all kinds: below, above, between, narrow, open."""
    rng, values = np.random.default_rng(5), numbers.values
    limits, kind = np.stack([values, values]), rng.integers(0, 9, values.size)
    limits[0, kind == 0] = -np.inf
    limits[1, kind == 1] = np.inf
    limits[:, kind == 2] += np.array([[-0.4], [0.3]]) * values[kind == 2]
    limits[:, kind == 3] += [[-1e-4], [1e-4]]
    limits[:, kind == 4] = [[-np.inf], [np.inf]]
    assert np.bincount(kind)[:5].min() > 1
    return replace(numbers, limits=limits)


SAMPLES = {"below a limit": reference.censor, "all kinds": odd_limits}


def negative(process, sample, theta):
    """Return the exact negative log-likelihood; zero of nothing."""
    return reference.objective(Exact(), process, sample, theta)[0] if sample.size else 0.0


@pytest.mark.parametrize("known", SAMPLES.values(), ids=SAMPLES.keys())
def test_a_term_is_all_less_its_neighbours(known):
    """Each log density is the exact one of its values, less that of its neighbours, to 1e-6."""
    process, theta, numbers = setting()
    sample = known(numbers)
    graph = Neighbours(neighbours=7).prepare(process, theta, sample).graph
    found = likelihood.evaluate(Evidence.of(process, sample, theta), graph, gradient=False)
    for each, row, near, count in zip(
        found.each, graph.rows, graph.neighbours, graph.counts, strict=True
    ):
        given, whole = (sample.take(np.sort(own)) for own in (near[:count], [*near[:count], row]))
        expected = negative(process, given, theta) - negative(process, whole, theta)
        assert each == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("known", SAMPLES.values(), ids=SAMPLES.keys())
def test_the_gradient_is_that_of_the_value(known):
    """Of few neighbours, with weights, by covariance and laws: central differences to 1e-3."""
    process, theta, numbers = setting((100, 80))
    sample, solver = known(numbers), Neighbours(neighbours=6)
    few, graph = solver.subset(process, theta, sample, 64)
    assert graph.weights.max() > 1.2
    assert 2 < few.is_interval.sum() < few.size
    _, gradient = solver.objective(process, few, graph, theta)
    expected = reference.differences(
        lambda point: solver.objective(process, few, graph, point)[0], theta
    )
    np.testing.assert_allclose(gradient, expected, atol=1e-3)


def test_terms_add_up_to_the_objective():
    """The weighted sum of terms is the objective, with and without intervals."""
    process, theta, numbers = setting((60, 40))
    solver = Neighbours(neighbours=6)
    for sample in (numbers, reference.censor(numbers)):
        few, graph = solver.subset(process, theta, sample, 50)
        value, _ = solver.objective(process, few, graph, theta)
        single = np.eye(graph.rows.size, dtype=bool)
        terms = [solver.objective(process, few, graph.take(k), theta)[0] for k in single]
        assert sum(terms) == pytest.approx(value, rel=1e-12)


def test_a_task_given_the_first():
    """With all as neighbours it is the pair less the first alone, also of intervals."""
    process, theta, numbers = setting()
    sample = reference.censor(numbers)
    solver = Neighbours(neighbours=sample.size - 1)
    given = solver.prepare(process, theta, sample, 1)
    value, _ = solver.objective(process, sample, given, theta)
    first, index = process.with_tasks((0,))
    alone = negative(first, sample.select((0,)), theta[index])
    assert value == pytest.approx(negative(process, sample, theta) - alone, abs=1e-6)


def test_threads_do_not_matter(monkeypatch):
    """Terms in three pieces leave what they leave in one, to rounding."""
    process, theta, numbers = setting()
    sample, solver = reference.censor(numbers), Neighbours(neighbours=7)
    one = reference.objective(solver, process, sample, theta)
    monkeypatch.setattr(terms_module, "_FEWEST", 5)
    monkeypatch.setattr(terms_module, "thread_count", lambda: 3)
    assert len(terms_module.pieces(15)) == 3
    value, gradient = reference.objective(solver, process, sample, theta)
    assert value == pytest.approx(one[0], rel=1e-13)
    np.testing.assert_allclose(gradient, one[1], rtol=1e-10, atol=1e-10)


def test_what_was_asked_before_does_not_matter():
    """An evaluation at other parameters leaves nothing behind: the same bits come out."""
    process, theta, numbers = setting()
    sample, solver = reference.censor(numbers), Neighbours(neighbours=7)
    structure = solver.prepare(process, theta, sample)
    value, gradient = solver.objective(process, sample, structure, theta)
    solver.objective(process, sample, structure, theta + 0.3)
    again, slope = solver.objective(process, sample, structure, theta)
    assert again == value
    np.testing.assert_array_equal(slope, gradient)


def test_a_singular_matrix_is_told(monkeypatch):
    """What the loop gives up is an error that names the parameters."""
    process, theta, numbers = setting()
    sample, solver = reference.censor(numbers), Neighbours(neighbours=7)
    monkeypatch.setattr(likelihood, "interval_terms", lambda *given: (0, 2, False))
    with pytest.raises(NotPositiveDefiniteError, match=r"of 7 neighbours is not .* length_scale"):
        reference.objective(solver, process, sample, theta)


def test_intervals_that_do_not_settle(monkeypatch):
    """That is another error than a singular matrix: it counts the intervals of the term."""
    process, theta, numbers = setting()
    sample, solver = reference.censor(numbers), Neighbours(neighbours=7)
    monkeypatch.setattr(likelihood, "interval_terms", lambda *given: (0, 2, True))
    message = r"Expectation propagation of \d censored values does not settle at length_scale="
    with pytest.raises(NotPositiveDefiniteError, match=message):
        reference.objective(solver, process, sample, theta)


def test_sites_that_coincide_need_a_jitter(caplog):
    """Without a nugget, two intervals at one place: a jitter is logged, and the value finite."""
    process, theta, numbers = setting(kernel="se")
    covariance = process.covariance
    covariance.part(theta[: covariance.size], "logit")[:] = 40.0
    inputs = numbers.inputs.copy()
    inputs[:, 1:4] = inputs[:, :1] + 1e-9 * np.arange(3)
    sample = reference.censor(replace(numbers, inputs=inputs), share=0.8)
    with caplog.at_level("INFO", logger="xcopula"):
        value, gradient = reference.objective(Neighbours(neighbours=7), process, sample, theta)
    assert "needed a jitter" in caplog.text
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
