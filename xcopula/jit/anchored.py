"""The transductive combination: many small systems, one for each cell."""

from __future__ import annotations

import numpy as np

from xcopula.jit.compiler import compiled

__all__ = ["combine_conditionals"]

# Both functions stay in this file: numba's cache sees a change of this file only.


@compiled
def _solve_in_place(matrix, right):
    """Solve a small system by elimination with partial pivoting, overwriting both."""
    size = matrix.shape[0]
    for k in range(size):
        pivot = k
        for i in range(k + 1, size):
            if abs(matrix[i, k]) > abs(matrix[pivot, k]):
                pivot = i
        if pivot != k:
            for j in range(size):
                matrix[k, j], matrix[pivot, j] = matrix[pivot, j], matrix[k, j]
            for j in range(right.shape[1]):
                right[k, j], right[pivot, j] = right[pivot, j], right[k, j]
        for i in range(k + 1, size):
            factor = matrix[i, k] / matrix[k, k]
            for j in range(k, size):
                matrix[i, j] -= factor * matrix[k, j]
            for j in range(right.shape[1]):
                right[i, j] -= factor * right[k, j]
    for k in range(size - 1, -1, -1):
        for j in range(right.shape[1]):
            for i in range(k + 1, size):
                right[k, j] -= matrix[k, i] * right[i, j]
            right[k, j] /= matrix[k, k]


@compiled
def combine_conditionals(gains, intercepts, variances, coefficients, shift, mean, variance):
    r"""Combine laws :math:`N(a_k + B_k f_A, s_k)` of each cell, and marginalise the anchors.

    In coordinates where the anchors' base precision is the identity, so that ``gains`` are
    :math:`V_k = B_k L_0^{-T}`. The sum of precisions weighted by ``coefficients`` c is, given the
    anchors, a law with gain :math:`\bar V` and variance :math:`\bar s`; the anchors' precision
    grows by the spread of the gains around it. Nothing large is subtracted, so a cell at an anchor
    (all s zero) is as good as any other.

    Parameters
    ----------
    gains : ndarray (cells, k, m)
        Overwritten.
    intercepts, variances : ndarray (cells, k)
    coefficients : ndarray (k,)
        They add up to one; the first may be negative.
    shift : ndarray (m,)
        Mean of the anchors under the base precision, in the same coordinates.
    mean, variance : ndarray (cells,)
        Filled.
    """
    cells, models, anchors = gains.shape
    d = np.empty(models)
    middle = np.empty(anchors)
    matrix = np.empty((models, models))
    right = np.empty((models, 2))
    g = np.empty(models)
    for cell in range(cells):
        total = 0.0
        for k in range(models):
            d[k] = coefficients[k] / variances[cell, k]
            total += d[k]
        intercept = 0.0
        middle[:] = 0.0
        for k in range(models):
            intercept += d[k] / total * intercepts[cell, k]
            for a in range(anchors):
                middle[a] += d[k] / total * gains[cell, k, a]
        base_mean, base_variance = intercept, 1.0 / total
        for a in range(anchors):
            base_mean += middle[a] * shift[a]
            base_variance += middle[a] * middle[a]
        for k in range(models):
            g[k] = 0.0
            innovation = intercepts[cell, k] - intercept
            for a in range(anchors):
                gains[cell, k, a] -= middle[a]
                g[k] += gains[cell, k, a] * middle[a]
                innovation += gains[cell, k, a] * shift[a]
            right[k, 0] = d[k] * innovation
            right[k, 1] = d[k] * g[k]
        for k in range(models):
            for j in range(models):
                product = 0.0
                for a in range(anchors):
                    product += gains[cell, k, a] * gains[cell, j, a]
                matrix[k, j] = d[k] * product + (1.0 if k == j else 0.0)
        _solve_in_place(matrix, right)
        for k in range(models):
            base_mean -= g[k] * right[k, 0]
            base_variance -= g[k] * right[k, 1]
        mean[cell] = base_mean
        variance[cell] = base_variance
