"""Correlation matrices between tasks by unconstrained parameters."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from xcopula.kernels.correlation import correlation, correlation_pullback, parameters_of

several = pytest.mark.parametrize("tasks", [1, 2, 3, 5])


def draw(tasks, seed=0, scale=1.0):
    return np.random.default_rng(seed).normal(0.0, scale, size=tasks * (tasks - 1) // 2)


@given(
    st.integers(1, 6).flatmap(lambda t: arrays(float, t * (t - 1) // 2, elements=st.floats(-4, 4)))
)
def test_any_parameters_give_a_correlation_matrix(a):
    """Every real vector gives a unit diagonal, symmetry and no eigenvalue below -1e-12."""
    tasks = round((1 + np.sqrt(1 + 8 * a.size)) / 2)
    matrix = correlation(a, tasks)
    assert (np.diagonal(matrix) == 1.0).all()
    np.testing.assert_array_equal(matrix, matrix.T)
    assert np.linalg.eigvalsh(matrix).min() > -1e-12


@several
def test_matches_the_recursion(tasks):
    """The vectorised factor equals the row-by-row recursion, to 1e-14."""
    a = draw(tasks)
    np.testing.assert_allclose(correlation(a, tasks), reference.correlation(a, tasks), atol=1e-14)


@several
def test_zero_is_the_identity(tasks):
    """Zero parameters mean independent tasks."""
    np.testing.assert_array_equal(correlation(draw(tasks, scale=0.0), tasks), np.eye(tasks))


@several
def test_first_column_is_the_correlation_with_the_primary(tasks):
    """The parameters of column zero are the Fisher z of the correlations with the primary."""
    a = draw(tasks)
    lower = np.zeros((tasks, tasks))
    lower[np.tril_indices(tasks, -1)] = a
    np.testing.assert_allclose(
        correlation(a, tasks)[1:, 0], np.tanh(lower[1:, 0]), rtol=0, atol=1e-15
    )


@several
def test_parameters_of_inverts(tasks):
    """Parameters to matrix and back returns the parameters, to 1e-9."""
    a = draw(tasks)
    np.testing.assert_allclose(parameters_of(correlation(a, tasks)), a, rtol=0, atol=1e-9)


def test_parameters_of_stays_finite_near_singularity():
    """An almost perfect correlation is bounded at 0.999, not infinite."""
    matrix = np.array([[1.0, 1.0 - 1e-12], [1.0 - 1e-12, 1.0]])
    np.testing.assert_allclose(np.tanh(parameters_of(matrix)), 0.999)


@several
def test_pullback_matches_differences(tasks):
    """The pullback equals central differences of a weighted sum of the lower entries, to 1e-9."""
    a = draw(tasks)
    weights = np.random.default_rng(1).normal(size=(tasks, tasks))

    def weighted(a):
        return float((np.tril(weights, -1) * correlation(a, tasks)).sum())

    np.testing.assert_allclose(
        correlation_pullback(a, tasks, weights),
        reference.differences(weighted, a),
        rtol=0,
        atol=1e-9,
    )
