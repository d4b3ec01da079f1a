"""The compiled loops: blocks agree, contractions are derivatives, caching is optional."""

from __future__ import annotations

import numba
import numpy as np
import pytest
import reference

from xcopula import jit
from xcopula.kernels import KERNELS
from xcopula.kernels.assembly import contract_lower, lower, scaled_inputs
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.kernels.hermite import quintic
from xcopula.process.copula import Sample

COVARIANCE = Covariance(
    (KERNELS["matern32"], KERNELS["se"], KERNELS["matern12"]),
    (InputGroup(2, ard=True), InputGroup(1)),
    structures=2,
)


@pytest.fixture
def setting():
    """Three tasks, partly co-located, with random parameters."""
    rng = np.random.default_rng(0)
    theta = reference.random_theta(COVARIANCE, rng)
    inputs = reference.random_inputs(COVARIANCE, rng, [9, 7, 8], together=4)
    sample = Sample.of(inputs, [np.zeros(len(x)) for x in inputs])
    return sample, theta, COVARIANCE.state(theta)


def cross(targets, task, sample, state, nugget):
    out = np.empty((targets.shape[1], sample.size))
    jit.fill_cross(
        np.require(targets, float, "CW"),
        task,
        scaled_inputs(sample.inputs, state),
        sample.offsets,
        state.amplitudes,
        nugget,
        state.tables,
        state.groups,
        state.coefficients,
        state.ranges,
        out,
    )
    return out


@pytest.mark.parametrize("task", [0, 1, 2])
def test_cross_equals_the_block_of_the_full_matrix(setting, task):
    """The covariance of a task's own sites with all is a row block of the whole, to 1e-15."""
    sample, _, state = setting
    matrix = lower(state, scaled_inputs(sample.inputs, state), sample.offsets)
    matrix = np.tril(matrix) + np.tril(matrix, -1).T
    targets = scaled_inputs(sample.inputs, state)[:, sample.task(task)]
    np.testing.assert_allclose(
        cross(targets, task, sample, state, state.nugget),
        matrix[sample.task(task)],
        rtol=0,
        atol=1e-15,
    )


def test_cross_without_nugget_is_the_signal(setting):
    """With a zero nugget the covariance at common sites is lower by the nugget, to 1e-15."""
    sample, _, state = setting
    targets = scaled_inputs(sample.inputs, state)[:, sample.task(0)]
    whole = cross(targets, 0, sample, state, state.nugget)
    signal = cross(targets, 0, sample, state, np.zeros_like(state.nugget))
    expected = np.zeros_like(whole)
    for j in range(3):
        common = range(9) if j == 0 else range(4)
        for k in common:
            expected[k, sample.offsets[j] + k] = state.nugget[0, j]
    np.testing.assert_allclose(whole - signal, expected, rtol=0, atol=1e-15)


def test_fill_leaves_the_upper_triangle_alone(setting):
    """Only the lower triangle is written, with ones on the diagonal."""
    sample, _, state = setting
    out = np.full((sample.size, sample.size), np.nan)
    jit.fill_lower(
        scaled_inputs(sample.inputs, state),
        sample.offsets,
        state.amplitudes,
        state.nugget,
        state.tables,
        state.groups,
        state.coefficients,
        state.ranges,
        out,
    )
    assert np.isnan(out[np.triu_indices(sample.size, 1)]).all()
    assert np.isfinite(out[np.tril_indices(sample.size)]).all()
    assert (np.diagonal(out) == 1.0).all()


def test_contraction_is_the_derivative(setting):
    """The fused contraction pulled back equals differences of sum G_ab K_ab over a > b, to 1e-6.

    G is an arbitrary symmetric matrix less an outer product, as in the likelihood.
    """
    sample, theta, state = setting
    rng = np.random.default_rng(1)
    inverse = rng.normal(size=(sample.size, sample.size))
    alpha = rng.normal(size=sample.size)
    weights = np.tril(inverse - np.outer(alpha, alpha), -1)

    def weighted(theta):
        state = COVARIANCE.state(theta)
        filled = np.tril(lower(state, scaled_inputs(sample.inputs, state), sample.offsets), -1)
        return float((weights * filled).sum())

    by = contract_lower(state, inverse, alpha, scaled_inputs(sample.inputs, state), sample.offsets)
    expected = reference.differences(weighted, theta)
    np.testing.assert_allclose(
        COVARIANCE.pullback(theta, by), expected, rtol=0, atol=1e-6 * np.abs(expected).max()
    )


def test_contraction_by_amplitude_and_nugget(setting):
    """The covariance is linear in its task matrices: contractions rebuild the sum, to 1e-12."""
    sample, _, state = setting
    rng = np.random.default_rng(2)
    inverse, alpha = rng.normal(size=(sample.size, sample.size)), np.zeros(sample.size)
    inputs = scaled_inputs(sample.inputs, state)
    by = contract_lower(state._replace(scaled=False), inverse, alpha, inputs, sample.offsets)
    total = (by.amplitudes * state.amplitudes).sum() + (by.nugget * state.nugget).sum()
    filled = np.tril(lower(state, inputs, sample.offsets), -1)
    assert total == pytest.approx(float((np.tril(inverse, -1) * filled).sum()), abs=1e-12)
    assert (by.scaling == 0.0).all()


def test_interpolate_reads_the_fourth_root_of_the_distance():
    """A table of s = (r / R)^(1/4) that holds s itself returns it, and zero past R."""
    s = np.linspace(0.0, 1.0, 17)
    table = quintic(s, np.ones_like(s), np.zeros_like(s))
    r = np.array([0.0, 0.1, 1.0, 2.99, 3.0, 10.0])
    out = np.empty(r.size)
    jit.interpolate(r**2, 1.0 / 3.0, table, out)
    np.testing.assert_allclose(out[:4], (r[:4] / 3.0) ** 0.25, rtol=0, atol=1e-14)
    assert (out[4:] == 0.0).all()


def test_compiles_without_a_cache_directory(monkeypatch):
    """Where numba finds no place for its cache the function is compiled all the same."""
    plain = numba.njit
    asked = []

    def njit(**options):
        asked.append(options.get("cache", False))
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return plain(**options)

    monkeypatch.setattr(numba, "njit", njit)

    def double(x):
        return 2.0 * x

    assert jit._compiler(double)(3.0) == 6.0
    assert asked == [True, False]
