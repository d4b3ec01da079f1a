r"""Every numba function of the package: covariance fills and the fused gradient contraction.

The functions know nothing of kernel families. A stationary correlation reaches them as a table:
piecewise polynomials in :math:`p = k (r / R)^{1/4}` on ``k`` cells, zero beyond the
range ``R`` (see :mod:`xcopula.kernels.tables`). So an entry costs three square roots and a Horner
scheme, whatever special functions the kernel is made of.

Inputs come transposed, ``(d, n)``, float64, C-contiguous, observations sorted by task with block
``i`` in columns ``offsets[i]:offsets[i + 1]``; the caller owns every output. All functions release
the GIL and none is parallel: threads belong to the scheduler above.
"""

from __future__ import annotations

import math

import numba
import numpy as np

__all__ = [
    "combine_conditionals",
    "contract_cross",
    "contract_gradient",
    "fill_cross",
    "fill_lower",
    "interpolate",
]

# Two points nearer than this (inputs are scaled to unit extent) are the same site.
_SAME_SITE = 1e-9**2


def _compiler(function):
    """Compile with a disk cache where a cache directory is writable, without one elsewhere."""
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba finds no place for a cache: read-only installs, containers
        return numba.njit(**options)(function)


kernel = _compiler


@kernel
def _square_distances(point, inputs, first, last, start, stop, out):
    for b in range(stop - start):
        delta = point[first] - inputs[first, start + b]
        out[b] = delta * delta
    for c in range(first + 1, last):
        for b in range(stop - start):
            delta = point[c] - inputs[c, start + b]
            out[b] += delta * delta


@kernel
def _positions(squared, count, inverse_range, cells, out):
    """Write where on a table of ``cells`` cells each squared distance stands."""
    for b in range(count):
        root = math.sqrt(math.sqrt(math.sqrt(squared[b]) * inverse_range))
        out[b] = min(root * cells, float(cells))


@kernel
def _correlations(squared, count, inverse_range, coefficients, out):
    """Write the tabulated correlation at each of ``count`` squared distances."""
    # The last row is zero: everything beyond the range.
    _positions(squared, count, inverse_range, coefficients.shape[0] - 1, out)
    for b in range(count):
        k = int(out[b])
        u = out[b] - k
        c = coefficients[k]
        out[b] = c[0] + u * (c[1] + u * (c[2] + u * (c[3] + u * (c[4] + u * c[5]))))


@kernel
def interpolate(squared, inverse_range, coefficients, out):
    """Write a tabulated function at each squared distance to ``out``."""
    _correlations(squared, squared.shape[0], inverse_range, coefficients, out)


@kernel
def _covariance_row(
    point, inputs, start, stop, amplitudes, nugget, tables, groups, coefficients, ranges, work, out
):
    """Write the covariance of one point with columns ``start:stop`` of one task to ``out``."""
    count = stop - start
    n_groups = groups.shape[0] - 1
    for g in range(n_groups):
        _square_distances(point, inputs, groups[g], groups[g + 1], start, stop, work[2 + g])
    for b in range(count):
        out[b] = 0.0
    for q in range(amplitudes.shape[0]):
        product, factor = work[0], work[1]
        for g in range(n_groups):
            t = tables[q, g]
            target = product if g == 0 else factor
            _correlations(work[2 + g], count, ranges[t], coefficients[t], target)
            if g > 0:
                for b in range(count):
                    product[b] *= factor[b]
        for b in range(count):
            out[b] += amplitudes[q] * product[b]
    if nugget != 0.0:
        for b in range(count):
            same = True
            for g in range(n_groups):
                same = same and work[2 + g, b] <= _SAME_SITE
            if same:
                out[b] += nugget


@kernel
def fill_lower(inputs, offsets, amplitudes, nugget, tables, groups, coefficients, ranges, out):
    """Fill the lower triangle of the covariance of all observations; the diagonal is one.

    Parameters
    ----------
    inputs : ndarray (d, n)
    offsets : ndarray (t + 1,), int64
    amplitudes : ndarray (q, t, t)
        Task matrices of the structures.
    nugget : ndarray (t, t)
    tables : ndarray (q, g, t, t), int64
        Which table serves which structure, group and pair of tasks.
    groups : ndarray (g + 1,), int64
        Rows of ``inputs`` that belong to each group.
    coefficients, ranges : ndarray (tables, cells + 1, 6) and (tables,)
        Tables and the inverse of their ranges.
    out : ndarray (n, n)
    """
    work = np.empty((2 + groups.shape[0] - 1, inputs.shape[1]))
    for i in range(offsets.shape[0] - 1):
        for a in range(offsets[i], offsets[i + 1]):
            point = inputs[:, a].copy()
            for j in range(i + 1):
                start = offsets[j]
                stop = a if j == i else offsets[j + 1]
                _covariance_row(
                    point,
                    inputs,
                    start,
                    stop,
                    amplitudes[:, i, j].copy(),
                    nugget[i, j],
                    tables[:, :, i, j].copy(),
                    groups,
                    coefficients,
                    ranges,
                    work,
                    out[a, start:stop],
                )
            out[a, a] = 1.0


@kernel
def fill_cross(
    targets, task, inputs, offsets, amplitudes, nugget, tables, groups, coefficients, ranges, out
):
    """Fill the covariance ``out`` (m, n) of ``task`` at the targets (d, m) with all observations.

    The other arguments are those of :func:`fill_lower`; a zero ``nugget`` gives the covariance of
    the signal alone.
    """
    work = np.empty((2 + groups.shape[0] - 1, inputs.shape[1]))
    for j in range(offsets.shape[0] - 1):
        start, stop = offsets[j], offsets[j + 1]
        pair_amplitudes = amplitudes[:, task, j].copy()
        pair_tables = tables[:, :, task, j].copy()
        for a in range(targets.shape[1]):
            _covariance_row(
                targets[:, a].copy(),
                inputs,
                start,
                stop,
                pair_amplitudes,
                nugget[task, j],
                pair_tables,
                groups,
                coefficients,
                ranges,
                work,
                out[a, start:stop],
            )


@kernel
def _correlations_and_slopes(positions, count, coefficients, value, slope):
    r"""Write the tabulated correlation and its logarithmic slope :math:`r \kappa'(r)`."""
    for b in range(count):
        position = positions[b]
        k = int(position)
        u = position - k
        c = coefficients[k]
        value[b] = c[0] + u * (c[1] + u * (c[2] + u * (c[3] + u * (c[4] + u * c[5]))))
        derivative = c[1] + u * (2 * c[2] + u * (3 * c[3] + u * (4 * c[4] + u * 5 * c[5])))
        slope[b] = 0.25 * position * derivative


@kernel
def _weighted_sensitivity(positions, count, coefficients, weights):
    r"""Sum of weights times a cubic table of :math:`\partial\kappa / \partial\log l`."""
    total = 0.0
    for b in range(count):
        k = int(positions[b])
        u = positions[b] - k
        c = coefficients[k]
        total += weights[b] * (c[0] + u * (c[1] + u * (c[2] + u * c[3])))
    return total


@kernel
def _contract_row(
    weights,
    count,
    point,
    inputs,
    start,
    low,
    high,
    amplitudes,
    tables,
    groups,
    coefficients,
    sensitivities,
    ranges,
    scaled,
    squared,
    positions,
    values,
    slopes,
    others,
    d_amplitudes,
    d_slope,
    d_sensitivity,
    d_scaling,
):
    """Contract the weights of one point against ``count`` columns of one task.

    The pair of tasks is (low, high), low <= high; ``squared`` holds the distances in each group.
    """
    n_groups = groups.shape[0] - 1
    for q in range(amplitudes.shape[0]):
        amplitude = amplitudes[q, high, low]
        for g in range(n_groups):
            t = tables[q, g, high, low]
            _positions(squared[g], count, ranges[t], coefficients.shape[1] - 1, positions[g])
            _correlations_and_slopes(positions[g], count, coefficients[t], values[g], slopes[g])
        for g in range(n_groups):
            t = tables[q, g, high, low]
            for b in range(count):
                others[b] = weights[b]
            for h in range(n_groups):
                if h != g:
                    for b in range(count):
                        others[b] *= values[h, b]
            if g == 0:
                total = 0.0
                for b in range(count):
                    total += others[b] * values[0, b]
                d_amplitudes[q, high, low] += total
            total = 0.0
            for b in range(count):
                total += others[b] * slopes[g, b]
            d_slope[t] += amplitude * total
            if low != high:
                d_sensitivity[t] += amplitude * _weighted_sensitivity(
                    positions[g], count, sensitivities[t], others
                )
            if scaled:
                for b in range(count):
                    if squared[g, b] > 0.0:
                        others[b] *= -amplitude * slopes[g, b] / squared[g, b]
                    else:
                        others[b] = 0.0
                for c in range(groups[g], groups[g + 1]):
                    total = 0.0
                    for b in range(count):
                        delta = point[c] - inputs[c, start + b]
                        total += others[b] * delta * delta
                    d_scaling[c] += total


@kernel
def contract_gradient(
    inverse,
    alpha,
    inputs,
    offsets,
    amplitudes,
    tables,
    groups,
    coefficients,
    sensitivities,
    ranges,
    scaled,
    d_amplitudes,
    d_nugget,
    d_slope,
    d_sensitivity,
    d_scaling,
):
    r"""Contract :math:`K^{-1} - \alpha\alpha'` with every derivative of K in one pass over pairs.

    The diagonal is left out: it is one whatever the parameters are.

    Parameters
    ----------
    inverse : ndarray (n, n)
        :math:`K^{-1}`, of which only the strictly lower triangle is read.
    alpha : ndarray (n,)
    inputs, offsets, amplitudes, tables, groups, coefficients, ranges
        As in :func:`fill_lower`.
    sensitivities : ndarray (tables, cells + 1, 4)
        Tables of the derivative by the log length scale of a pair's first (lower) task.
    scaled : bool
        Whether derivatives by the scale of each input column are wanted.
    d_amplitudes : ndarray (q, t, t)
        Adds to entry (i, j), j <= i, the derivative by the amplitude.
    d_nugget : ndarray (t, t)
    d_slope, d_sensitivity : ndarray (tables,)
        Adds the derivative by :math:`\log r`, and by the first log length scale, per table.
    d_scaling : ndarray (d,)
        Adds the derivative by the log scale of each column.
    """
    n_groups = groups.shape[0] - 1
    n = inputs.shape[1]
    squared = np.empty((n_groups, n))
    positions = np.empty((n_groups, n))
    values = np.empty((n_groups, n))
    slopes = np.empty((n_groups, n))
    weights = np.empty(n)
    others = np.empty(n)
    for i in range(offsets.shape[0] - 1):
        for a in range(offsets[i], offsets[i + 1]):
            point = inputs[:, a].copy()
            for j in range(i + 1):
                start = offsets[j]
                stop = a if j == i else offsets[j + 1]
                count = stop - start
                if count <= 0:
                    continue
                for b in range(count):
                    weights[b] = inverse[a, start + b] - alpha[a] * alpha[start + b]
                for g in range(n_groups):
                    _square_distances(
                        point, inputs, groups[g], groups[g + 1], start, stop, squared[g]
                    )
                for b in range(count):
                    same = True
                    for g in range(n_groups):
                        same = same and squared[g, b] <= _SAME_SITE
                    if same:
                        d_nugget[i, j] += weights[b]
                _contract_row(
                    weights,
                    count,
                    point,
                    inputs,
                    start,
                    j,
                    i,
                    amplitudes,
                    tables,
                    groups,
                    coefficients,
                    sensitivities,
                    ranges,
                    scaled,
                    squared,
                    positions,
                    values,
                    slopes,
                    others,
                    d_amplitudes,
                    d_slope,
                    d_sensitivity,
                    d_scaling,
                )


@kernel
def contract_cross(
    weights,
    targets,
    target_offsets,
    inputs,
    offsets,
    amplitudes,
    tables,
    groups,
    coefficients,
    sensitivities,
    ranges,
    scaled,
    d_amplitudes,
    d_slope,
    d_sensitivity,
    d_scaling,
):
    """Contract weights (m, n) with every derivative of a signal covariance between two sets.

    Both sets are sorted by task. The covariance has no nugget; where both sets are the same, every
    pair is met twice and the diagonal counts. The other arguments are those of
    :func:`contract_gradient`.
    """
    n_groups = groups.shape[0] - 1
    n = inputs.shape[1]
    squared = np.empty((n_groups, n))
    positions = np.empty((n_groups, n))
    values = np.empty((n_groups, n))
    slopes = np.empty((n_groups, n))
    others = np.empty(n)
    for i in range(target_offsets.shape[0] - 1):
        for a in range(target_offsets[i], target_offsets[i + 1]):
            point = targets[:, a].copy()
            for j in range(offsets.shape[0] - 1):
                start = offsets[j]
                stop = offsets[j + 1]
                if stop == start:
                    continue
                for g in range(n_groups):
                    _square_distances(
                        point, inputs, groups[g], groups[g + 1], start, stop, squared[g]
                    )
                _contract_row(
                    weights[a, start:stop],
                    stop - start,
                    point,
                    inputs,
                    start,
                    min(i, j),
                    max(i, j),
                    amplitudes,
                    tables,
                    groups,
                    coefficients,
                    sensitivities,
                    ranges,
                    scaled,
                    squared,
                    positions,
                    values,
                    slopes,
                    others,
                    d_amplitudes,
                    d_slope,
                    d_sensitivity,
                    d_scaling,
                )


@kernel
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


@kernel
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
