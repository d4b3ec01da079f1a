"""The combination of conditional laws against the joint precision of cell and anchors."""

from __future__ import annotations

import numpy as np
import pytest

from xcopula.jit.anchored import _solve_in_place, combine_conditionals


def draw(cells, models, anchors, seed=0):
    """Draw the arguments of ``combine_conditionals``; the coefficients add up to one."""
    rng = np.random.default_rng(seed)
    coefficients = np.ones(models)
    coefficients[0] = 2.0 - models
    spread = 0.1 * rng.normal(size=(cells, models, anchors))
    gains = rng.normal(size=(cells, 1, anchors)) + spread
    intercepts = rng.normal(size=(cells, models))
    # Each law knows what the first knows and more, so that no precision becomes negative.
    variances = np.sort(rng.uniform(0.5, 1.0, size=(cells, models)))[:, ::-1].copy()
    return gains, intercepts, variances, coefficients, rng.normal(size=anchors)


def combined(gains, intercepts, variances, coefficients, shift):
    mean, variance = np.empty(len(gains)), np.empty(len(gains))
    combine_conditionals(gains.copy(), intercepts, variances, coefficients, shift, mean, variance)
    return mean, variance


def by_joint_precision(gains, intercepts, variances, coefficients, shift):
    """Return mean and variance of one cell from the precision of (cell, anchors)."""
    rows = np.column_stack([np.ones(len(gains)), -gains])
    weights = coefficients / variances
    precision = (rows.T * weights) @ rows
    precision[1:, 1:] += np.eye(shift.size)
    pull = rows.T @ (weights * intercepts)
    pull[1:] += shift
    return np.linalg.solve(precision, pull)[0], np.linalg.inv(precision)[0, 0]


@pytest.mark.parametrize(("models", "anchors"), [(1, 3), (2, 1), (3, 5), (5, 40)])
def test_equals_the_joint_precision(models, anchors):
    """Mean and variance equal those of the joint law of cell and anchors, to 1e-11."""
    gains, intercepts, variances, coefficients, shift = draw(6, models, anchors)
    mean, variance = combined(gains, intercepts, variances, coefficients, shift)
    for k in range(6):
        expected = by_joint_precision(gains[k], intercepts[k], variances[k], coefficients, shift)
        np.testing.assert_allclose((mean[k], variance[k]), expected, rtol=1e-11)


def test_one_law_is_marginalised():
    """A single law gives its intercept and gain at the anchors' mean, to 1e-15."""
    gains, intercepts, variances, coefficients, shift = draw(4, 1, 3)
    mean, variance = combined(gains, intercepts, variances, coefficients, shift)
    np.testing.assert_allclose(mean, intercepts[:, 0] + gains[:, 0] @ shift, rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(variance, variances[:, 0] + (gains[:, 0] ** 2).sum(1), rtol=1e-15)


def test_equal_laws_change_nothing():
    """Laws that say the same, combined, say what one of them says, to 1e-14."""
    gains, intercepts, variances, _, shift = draw(4, 1, 3)
    alone = combined(gains, intercepts, variances, np.ones(1), shift)
    three = [np.repeat(x, 3, axis=1) for x in (gains, intercepts, variances)]
    together = combined(*three, np.array([-1.0, 1.0, 1.0]), shift)
    np.testing.assert_allclose(together, alone, rtol=1e-14)


@pytest.mark.parametrize("size", [1, 2, 6])
def test_small_solver(size):
    """Elimination with pivoting solves a system whose first pivot is zero, to 1e-12."""
    rng = np.random.default_rng(size)
    matrix, right = rng.normal(size=(size, size)), rng.normal(size=(size, 2))
    if size > 1:
        matrix[0, 0] = 0.0
    expected = np.linalg.solve(matrix, right)
    _solve_in_place(matrix.copy(), right)
    np.testing.assert_allclose(right, expected, rtol=1e-12, atol=1e-12)
