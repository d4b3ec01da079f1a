"""Small systems: terms against dense algebra, predictions from neighbours, tiles, jitter."""

from __future__ import annotations

import numpy as np
import pytest
import reference

from xcopula.jit import neighbours as loops
from xcopula.jit.neighbours import Terms, terms, tile_moments
from xcopula.kernels.assembly import no_contraction, ready, scaled_inputs
from xcopula.process import Moments
from xcopula.process.intervals import truncate

RNG = np.random.default_rng


def setting(name="shared", sizes=(14, 11, 9), seed=0):
    """Return a state, inputs, sites, offsets and scores of three tasks."""
    process, sample, theta, rng = reference.example(name=name, sizes=sizes, seed=seed)
    state = ready(process.state(theta))
    return (
        process,
        theta,
        state,
        scaled_inputs(sample.inputs, state),
        sample,
        rng.normal(size=sample.size),
    )


def random_terms(n, most, rng):
    """Return every observation given some others, whatever their order."""
    counts = rng.integers(0, most + 1, n).astype(np.int32)
    neighbours = np.zeros((n, most), np.int32)
    for i, count in enumerate(counts):
        others = np.setdiff1d(np.arange(n), [i])
        neighbours[i, :count] = np.sort(rng.permutation(others)[:count])
    return Terms(np.arange(n), rng.uniform(0.5, 2.0, n), neighbours, counts)


def dense(process, theta, sample):
    """Return the covariance of all observations, by the reference."""
    inputs, _ = reference.parts(sample)
    return reference.covariance_matrix(process.covariance, theta, inputs)


def run(which, state, inputs, sample, w, gradient=True, extra=None):
    """Run the compiled loop; return each term, Q w, the diagonal of Q, and the derivatives."""
    errors = np.zeros(w.size) if extra is None else extra
    each, alpha, precision = np.empty((which.rows.size, 2)), np.zeros(w.size), np.zeros(w.size)
    by = no_contraction(state)
    jittered, failed = terms(
        which, inputs, sample.sites, sample.offsets, w, errors, state, gradient, each, alpha,
        precision, by,
    )  # fmt: skip
    assert failed == -1
    return each, alpha, precision, by, jittered


def test_errors_stand_on_the_diagonal():
    """Extra variances of scores count as in dense algebra, and so do their predictions."""
    process, theta, state, inputs, sample, w = setting()
    which, rng = random_terms(sample.size, 7, RNG(1)), RNG(4)
    extra = np.where(rng.uniform(size=w.size) < 0.4, rng.uniform(0.1, 9.0, w.size), 0.0)
    each, *_ = run(which, state, inputs, sample, w, extra=extra)
    matrix = dense(process, theta, sample) + np.diag(extra)
    for r, (neighbours, count) in enumerate(zip(which.neighbours, which.counts, strict=True)):
        own = neighbours[:count]
        gains = np.linalg.solve(matrix[np.ix_(own, own)], matrix[own, r])
        v = matrix[r, r] - gains @ matrix[own, r]
        expected = [(w[r] - gains @ w[own]) ** 2 / v, np.log(v)]
        np.testing.assert_allclose(each[r], expected, atol=1e-9)
    mean, variance, gone = np.empty((1, 1)), np.empty(1), np.array([-1])
    data = (inputs, sample.sites, sample.offsets, w[None], extra, state)
    first = Terms(*(part[5:6] for part in which))
    at = (inputs[:, :1] + 0.01, gone, np.array([0, 1]))
    tile_moments(*at, 0, True, first, *data, mean, variance)
    own = first.neighbours[0, : first.counts[0]]
    moved = reference.targets(sample, sample.inputs[:, :1])
    moved = type(moved)(inputs[:, :1] + 0.01, gone)
    _, cross, _ = reference.joint(process, theta, sample, moved, 0)
    expected = cross[0, own] @ np.linalg.solve(matrix[np.ix_(own, own)], w[own])
    assert mean[0, 0] == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("name", reference.EXAMPLES)
def test_terms_are_conditional_densities(name):
    """u^2 and log v, Q w and diag Q, of any neighbours, equal dense algebra to 1e-9."""
    process, theta, state, inputs, sample, w = setting(name)
    which = random_terms(sample.size, 7, RNG(1))
    each, alpha, precision, _, jittered = run(which, state, inputs, sample, w)
    covariance = dense(process, theta, sample)
    q = np.zeros_like(covariance)
    for r, i in enumerate(which.rows):
        own = which.neighbours[r, : which.counts[r]]
        weights = np.linalg.solve(covariance[np.ix_(own, own)], covariance[own, i])
        v = covariance[i, i] - weights @ covariance[own, i]
        b = np.zeros(sample.size)
        b[own], b[i] = -weights, 1.0
        b /= np.sqrt(v)
        assert each[r, 0] == pytest.approx((b @ w) ** 2, rel=1e-8, abs=1e-10)
        assert each[r, 1] == pytest.approx(np.log(v), abs=1e-9)
        q += which.weights[r] * np.outer(b, b)
    np.testing.assert_allclose(alpha, q @ w, atol=1e-8)
    np.testing.assert_allclose(precision, np.diag(q), rtol=1e-8)
    assert jittered == 0


@pytest.mark.parametrize("name", reference.EXAMPLES)
def test_derivatives_are_those_of_the_terms(name):
    """Pulled back to theta, against central differences of the sum of terms."""
    process, theta, state, inputs, sample, w = setting(name)
    which = random_terms(sample.size, 6, RNG(2))
    covariance = process.covariance
    own = theta[: covariance.size]
    *_, by, _ = run(which, state, inputs, sample, w)
    found = covariance.pullback(own, by)

    def value(point):
        at = ready(covariance.state(point))
        each, *_ = run(which, at, scaled_inputs(sample.inputs, at), sample, w, gradient=False)
        return 0.5 * which.weights @ each.sum(axis=1)

    expected = reference.differences(value, own)
    np.testing.assert_allclose(found, expected, atol=2e-6 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("nugget", [True, False])
@pytest.mark.parametrize("task", [0, 1, 2])
def test_predictions_from_neighbours(task, nugget):
    """Each target from its own neighbours, and tiles from shared ones, equal dense algebra."""
    process, theta, state, inputs, sample, _ = setting()
    rng = RNG(3)
    w = rng.normal(size=(2, sample.size))
    points = rng.uniform(-0.5, 0.5, (inputs.shape[0], 6))
    points[:, :2] = sample.inputs[:, [0, -1]]  # two of them are sites of the data
    sites = np.full(6, -1)
    sites[:2] = sample.sites[[0, -1]]
    targets = scaled_inputs(points, state)
    which = random_terms(sample.size, 8, rng)
    first = Terms(*(part[:6] for part in which))
    mean, variance = np.empty((2, 6)), np.empty(6)
    data = (inputs, sample.sites, sample.offsets, w, np.zeros(w.shape[-1]), state)
    assert (
        tile_moments(targets, sites, np.arange(7), task, nugget, first, *data, mean, variance) == -1
    )
    tiled, tile_variance = np.empty((2, 6)), np.empty(6)
    one = Terms(*(part[:1] for part in which))
    starts = np.array([0, 6])
    assert (
        tile_moments(targets, sites, starts, task, nugget, one, *data, tiled, tile_variance) == -1
    )
    only = np.empty((2, 6))
    tile_moments(targets, sites, starts, task, nugget, one, *data, only, np.empty(0))
    np.testing.assert_array_equal(only, tiled)
    from xcopula.process import Targets
    from xcopula.solvers import Exact

    for k in range(6):
        for row, found in ((k, (mean[:, k], variance[k])), (0, (tiled[:, k], tile_variance[k]))):
            own = which.neighbours[row, : which.counts[row]].astype(np.int64)
            if not own.size:
                continue
            some = sample.take(own)
            exact = Exact().condition(process, some, None, theta)
            at = Targets(points[:, [k]], sites[[k]])
            expected = exact.means(at, w[:, own], task=task, nugget=nugget)[:, 0]
            np.testing.assert_allclose(found[0], expected, atol=1e-8)
            prior = exact.prior_variance(task=task, nugget=nugget)
            _, white = exact.whiten(at, task=task, nugget=nugget)
            assert found[1] == pytest.approx(max(prior - float((white**2).sum()), 0.0), abs=1e-8)


def test_no_neighbours_are_the_prior():
    """A target without neighbours has mean zero and the prior variance."""
    _, _, state, inputs, sample, w = setting()
    none = Terms(
        np.zeros(1, np.int64), np.ones(1), np.zeros((1, 3), np.int32), np.zeros(1, np.int32)
    )
    data = (inputs, sample.sites, sample.offsets, w[None], np.zeros(w.size), state)
    mean, variance = np.full((1, 1), 9.0), np.full(1, 9.0)
    at = (inputs[:, :1].copy(), np.array([-1]))
    tile_moments(*at, np.array([0, 1]), 0, True, none, *data, mean, variance)
    assert mean[0, 0] == 0.0
    assert variance[0] == pytest.approx(1.0)


def test_a_singular_matrix_gets_a_jitter_and_counts():
    """Two neighbours at one place without a nugget cannot be factorised; a jitter is enough."""
    _, _, state, inputs, sample, w = setting()
    state = state._replace(
        nugget=np.zeros_like(state.nugget), amplitudes=np.ones_like(state.amplitudes)
    )
    inputs = inputs.copy()
    inputs[:, 1] = inputs[:, 0]  # of one task, and no site is told from the other
    neighbours = np.array([[0, 1, 3]], np.int32)
    which = Terms(np.array([5]), np.ones(1), neighbours, np.array([3], np.int32))
    each, *_, jittered = run(which, state, inputs, sample, w)
    assert jittered == 1
    assert np.isfinite(each).all()
    alone = Terms(np.array([5]), np.ones(1), np.array([[0, 3]], np.int32), np.array([2], np.int32))
    w[1] = w[0]
    each, *_ = run(which, state, inputs, sample, w)
    expected, *_ = run(alone, state, inputs, sample, w)
    np.testing.assert_allclose(each, expected, atol=1e-4)


def test_what_no_jitter_helps_is_told():
    """A matrix that is far from positive definite is given up, by its number."""
    _, _, state, inputs, sample, w = setting()
    state = state._replace(amplitudes=3.0 * state.amplitudes)
    which = random_terms(sample.size, 6, RNG(1))
    each, by = np.empty((sample.size, 2)), no_contraction(state)
    sums = np.zeros(w.size), np.zeros(w.size)
    data = (inputs, sample.sites, sample.offsets, w, np.zeros(w.size), state)
    _, failed = terms(which, *data, True, each, *sums, by)
    assert failed >= 0
    data = (inputs, sample.sites, sample.offsets, w[None], np.zeros(w.size), state)
    mean, variance = np.empty((1, sample.size)), np.empty(sample.size)
    starts = np.arange(sample.size + 1)
    assert tile_moments(inputs, sample.sites, starts, 0, True, which, *data, mean, variance) >= 0


def test_a_law_between_limits():
    """Of one interval: log mass, shift, variance and gain are those of the arrays' rule."""
    rng = RNG(8)
    mean, variance = rng.normal(size=300), rng.uniform(0.01, 2.0, 300)
    middle, width = rng.normal(0.0, 4.0, 300), 10.0 ** rng.uniform(-5.0, 1.5, 300)
    low, high = middle - width, middle + width
    low[:80], high[60:140] = -np.inf, np.inf
    expected = truncate(Moments(mean, variance), low, high)
    given = zip(mean, variance, low, high, strict=True)
    found = np.array([loops._truncate(*each) for each in given]).T
    np.testing.assert_allclose(found[0], expected.log_mass, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(found[1], expected.shift, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(found[2], expected.variance, rtol=1e-9)
    np.testing.assert_allclose(found[3], expected.gain, rtol=1e-7, atol=1e-12)
