"""Covariances of a posterior, against dense matrices and against the solver's own variances."""

from __future__ import annotations

import numpy as np
import pytest

from xcopula.kernels import KERNELS
from xcopula.kernels.assembly import between, lower, scaled_inputs
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import MARGINALS
from xcopula.methods.posterior_covariance import Places, covariance_between, variance_at
from xcopula.process import Process, Sample, Targets
from xcopula.solvers import Exact, Neighbours

RNG = np.random.default_rng(0)
POINTS = RNG.uniform(-0.5, 0.5, (8, 2))  # the first three are places to measure at
NUMBERS = np.array([100, 101, 102, -1, -1, -1, 100, 3])


def world(limits=None):
    """Return a process of two variables, and a sample; the last target is a site of the first."""
    rng = np.random.default_rng(1)
    covariance = Covariance((KERNELS["matern32"], KERNELS["matern52"]), (InputGroup(2),))
    process = Process(covariance, (MARGINALS["normal"](0.0, 1.0),) * 2)
    inputs = [rng.uniform(-0.5, 0.5, (9, 2)), rng.uniform(-0.5, 0.5, (7, 2))]
    inputs[1][0] = POINTS[1]  # the second variable is known where the first may be measured
    values = [rng.normal(size=9), rng.normal(size=7)]
    sites = np.concatenate([np.arange(9), [101], np.arange(20, 26)])
    sample = Sample.of(inputs, values, sites=sites, limits=limits)
    theta = process.join(rng.normal(size=covariance.size) * 0.4 - 0.3)
    return process, sample, theta


def dense(process, sample, theta, points, numbers, tasks, nuggets):
    """Return the covariance of points given the data, with numpy from one large matrix."""
    state = process.state(theta)
    inputs, sites = [*sample.inputs.T, *points], [*sample.sites, *numbers]
    of = [0] * sample.sizes[0] + [1] * sample.sizes[1] + list(tasks)
    own = [True] * sample.size + list(nuggets)
    size = len(of)
    whole = np.empty((size, size))
    for i in range(size):
        for j in range(size):
            at = (np.asarray(inputs[k]).reshape(2, 1) for k in (i, j))
            a, b = at
            number = (np.array([sites[k]]) for k in (i, j))
            p, q = number
            whole[i, j] = between(state, a, p, of[i], b, q, of[j], nugget=own[i] and own[j])[0, 0]
    n = sample.size
    known, cross = whole[:n, :n], whole[n:, :n]
    return whole[n:, n:] - cross @ np.linalg.solve(known, cross.T)


@pytest.mark.parametrize("solver", [Exact(), Neighbours()], ids=["exact", "neighbours"])
@pytest.mark.parametrize("nugget", [True, False])
@pytest.mark.parametrize("measured", [0, 1])
def test_against_one_large_matrix(solver, nugget, measured):
    """Of either variable, with the nugget that cells and candidates share at one site."""
    process, sample, theta = world()
    if measured == 1:
        sample = sample.take(np.delete(np.arange(16), 9))  # else it would be known already
    gaussian = solver.condition(process, sample, solver.prepare(process, theta, sample), theta)
    sites = Targets(POINTS[:3].T.copy(), NUMBERS[:3])
    cells = Targets(POINTS[3:].T.copy(), NUMBERS[3:])
    tasks, nuggets = [measured] * 3 + [0] * 5, [True] * 3 + [nugget] * 5
    want = dense(process, sample, theta, POINTS, NUMBERS, tasks, nuggets)
    state = process.state(theta)
    found = covariance_between(gaussian, state, sites, measured, Places(cells, 0, nugget))
    np.testing.assert_allclose(found, want[:3, 3:], atol=1e-9)
    own = covariance_between(gaussian, state, sites, measured, Places(sites, measured, True))
    np.testing.assert_allclose(own, want[:3, :3], atol=1e-9)


def test_variance_is_the_solvers():
    """Also at a datum, of which nothing is left to know."""
    process, sample, theta = world()
    gaussian = Exact().condition(process, sample, Exact().prepare(process, theta, sample), theta)
    targets = sample.targets(slice(0, 12))
    found = variance_at(gaussian, Places(targets, 0, True))
    np.testing.assert_array_equal(found[:9], 0.0)
    assert (found[9:] > 0.0).all()


def test_variance_of_an_interval_is_that_of_what_stands_in():
    """The product of the cavity and the stand-in, from one matrix with the extra variances."""
    low = np.full(9, -np.inf)
    process, sample, theta = world()
    limits = [np.stack([np.where(np.arange(9) < 2, low, v), v]) for v in [sample.values[:9]]]
    limits.append(np.stack([sample.values[9:]] * 2))
    process, sample, theta = world(limits)
    gaussian = Exact().condition(process, sample, Exact().prepare(process, theta, sample), theta)
    places = Places(sample.targets(slice(0, 9)), 0, True)
    found = variance_at(gaussian, places)
    state = process.state(theta)
    matrix = lower(state, scaled_inputs(sample.inputs, state), sample.sites, sample.offsets)
    matrix = np.tril(matrix) + np.tril(matrix, -1).T
    given = matrix + np.diag(gaussian.extra)
    want = np.diagonal(matrix - matrix @ np.linalg.solve(given, matrix))[:9]
    np.testing.assert_allclose(found, want, atol=1e-9)
    assert (found[:2] > 0.01).all()
    # Without the nugget the solver says it by itself.
    signal = variance_at(gaussian, places._replace(nugget=False))
    moments = gaussian.moments(places.targets, task=0, nugget=False)
    np.testing.assert_array_equal(signal, moments.variance)
