r"""Loops over pairs of sites: covariances are filled, and derivatives contracted.

The functions know nothing of kernel families. A stationary correlation reaches them as a table:
piecewise polynomials in :math:`p = k (r / R)^{1/4}` on ``k`` cells, zero beyond the
range ``R`` (see :mod:`xcopula.kernels.tables`). So an entry costs three square roots and a Horner
scheme, whatever special functions the kernel is made of.

Inputs come transposed, ``(d, n)``, float64, C-contiguous. Observations are sorted by task: block
``i`` stands in columns ``offsets[i]:offsets[i + 1]``. Each column has the number of its site, and
the nugget is shared where two numbers are equal. The caller owns every output.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xcopula.jit.compiler import compiled

__all__ = [
    "Contraction",
    "CovarianceState",
    "contract_cross",
    "contract_lower",
    "fill_cross",
    "fill_lower",
    "interpolate",
]

# Numba's disk cache is renewed when this file changes, and only then. So functions that call each
# other stay in this file, and so do the two named tuples: compiled code finds their fields by
# position.


class CovarianceState(NamedTuple):
    """A covariance at given parameters, in the arrays that the compiled loops read."""

    amplitudes: npt.NDArray[np.float64]  # (q, t, t): task matrices of the structures
    nugget: npt.NDArray[np.float64]  # (t, t)
    tables: npt.NDArray[np.int64]  # (q, g, t, t): which table serves which pair of tasks
    groups: npt.NDArray[np.int64]  # (g + 1,): where each group's rows of the inputs begin
    coefficients: npt.NDArray[np.float64]  # (tables, cells + 1, 6)
    sensitivities: npt.NDArray[np.float64]  # (tables, cells + 1, 4): by the first log length
    ranges: npt.NDArray[np.float64]  # (tables,), inverse
    scaling: npt.NDArray[np.float64]  # (d,): what inputs are divided by
    scaled: bool  # whether a column has a scale of its own


class Contraction(NamedTuple):
    """Derivatives of a scalar by what a :class:`CovarianceState` holds."""

    amplitudes: npt.NDArray[np.float64]  # (q, t, t), entry (i, j) with j <= i
    nugget: npt.NDArray[np.float64]  # (t, t), entry (i, j) with j <= i
    slope: npt.NDArray[np.float64]  # (tables,): by the log distance
    sensitivity: npt.NDArray[np.float64]  # (tables,): by the log length of the first task
    scaling: npt.NDArray[np.float64]  # (d,): by the log scale of each column


@compiled
def _square_distances(point, inputs, first, last, start, stop, out):
    for b in range(stop - start):
        delta = point[first] - inputs[first, start + b]
        out[b] = delta * delta
    for c in range(first + 1, last):
        for b in range(stop - start):
            delta = point[c] - inputs[c, start + b]
            out[b] += delta * delta


@compiled
def _positions(squared, count, inverse_range, cells, out):
    """Write where on a table of ``cells`` cells each squared distance stands."""
    for b in range(count):
        root = math.sqrt(math.sqrt(math.sqrt(squared[b]) * inverse_range))
        out[b] = min(root * cells, float(cells))


@compiled
def _correlations(squared, count, inverse_range, coefficients, out):
    """Write the tabulated correlation at each of ``count`` squared distances."""
    # The last row is zero: everything beyond the range.
    _positions(squared, count, inverse_range, coefficients.shape[0] - 1, out)
    for b in range(count):
        k = int(out[b])
        u = out[b] - k
        c = coefficients[k]
        out[b] = c[0] + u * (c[1] + u * (c[2] + u * (c[3] + u * (c[4] + u * c[5]))))


@compiled
def interpolate(squared, inverse_range, coefficients, out):
    """Write a tabulated function at each squared distance to ``out``."""
    _correlations(squared, squared.shape[0], inverse_range, coefficients, out)


@compiled
def _signal_row(point, inputs, start, stop, high, low, state, work, out):
    """Write the signal's covariance of one point with columns ``start:stop`` of one task."""
    count = stop - start
    n_groups = state.groups.shape[0] - 1
    for g in range(n_groups):
        first, last = state.groups[g], state.groups[g + 1]
        _square_distances(point, inputs, first, last, start, stop, work[2 + g])
    for b in range(count):
        out[b] = 0.0
    for q in range(state.amplitudes.shape[0]):
        amplitude = state.amplitudes[q, high, low]
        product, factor = work[0], work[1]
        for g in range(n_groups):
            t = state.tables[q, g, high, low]
            target = product if g == 0 else factor
            _correlations(work[2 + g], count, state.ranges[t], state.coefficients[t], target)
            if g > 0:
                for b in range(count):
                    product[b] *= factor[b]
        for b in range(count):
            out[b] += amplitude * product[b]


@compiled
def _add_nugget(nugget, site, sites, start, stop, out):
    for b in range(stop - start):
        if sites[start + b] == site:
            out[b] += nugget


@compiled
def fill_lower(inputs, sites, offsets, state, out):
    """Fill the lower triangle of the covariance of all observations; the diagonal is one.

    Parameters
    ----------
    inputs : ndarray (d, n)
    sites : ndarray (n,), int64
        Number of each observation's site.
    offsets : ndarray (t + 1,), int64
    state : CovarianceState
    out : ndarray (n, n)
    """
    point = np.empty(inputs.shape[0])
    work = np.empty((2 + state.groups.shape[0] - 1, inputs.shape[1]))
    for i in range(offsets.shape[0] - 1):
        for a in range(offsets[i], offsets[i + 1]):
            point[:] = inputs[:, a]
            for j in range(i + 1):
                start = offsets[j]
                stop = a if j == i else offsets[j + 1]
                row = out[a, start:stop]
                _signal_row(point, inputs, start, stop, i, j, state, work, row)
                _add_nugget(state.nugget[i, j], sites[a], sites, start, stop, row)
            out[a, a] = 1.0


@compiled
def fill_cross(targets, target_sites, task, inputs, sites, offsets, state, nugget, out):
    """Fill the covariance (m, n) of one task at the targets with all observations.

    Parameters
    ----------
    targets : ndarray (d, m)
    target_sites : ndarray (m,), int64
        Number of each target's site; -1 where it is no site of the data. It is read only where
        the nugget counts.
    task : int
    inputs, sites, offsets, state
        As in :func:`fill_lower`.
    nugget : bool
        Whether the nugget counts, where target and observation are at one site.
    out : ndarray (m, n)
    """
    point = np.empty(inputs.shape[0])
    work = np.empty((2 + state.groups.shape[0] - 1, inputs.shape[1]))
    for a in range(targets.shape[1]):
        point[:] = targets[:, a]
        for j in range(offsets.shape[0] - 1):
            start, stop = offsets[j], offsets[j + 1]
            row = out[a, start:stop]
            _signal_row(point, inputs, start, stop, max(task, j), min(task, j), state, work, row)
            if nugget and target_sites[a] >= 0:
                _add_nugget(state.nugget[task, j], target_sites[a], sites, start, stop, row)


@compiled
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


@compiled
def _weighted_sensitivity(positions, count, coefficients, weights):
    r"""Sum of weights times a cubic table of :math:`\partial\kappa / \partial\log l`."""
    total = 0.0
    for b in range(count):
        k = int(positions[b])
        u = positions[b] - k
        c = coefficients[k]
        total += weights[b] * (c[0] + u * (c[1] + u * (c[2] + u * c[3])))
    return total


@compiled
def _contract_scaling(weights, point, inputs, first, last, start, count, scaling):
    """Add the derivative by the log scale of each column of one group."""
    for c in range(first, last):
        total = 0.0
        for b in range(count):
            delta = point[c] - inputs[c, start + b]
            total += weights[b] * delta * delta
        scaling[c] += total


@compiled
def _contract_row(weights, point, inputs, start, count, low, high, state, by, work):
    """Contract the weights of one point against ``count`` columns of one task.

    The pair of tasks is (low, high), low <= high. The rows of ``work`` are one for the weights of
    a group, and four for each group.
    """
    n_groups = state.groups.shape[0] - 1
    cells = state.coefficients.shape[1] - 1
    others, work = work[0], work[1:]
    squared, positions = work[:n_groups], work[n_groups : 2 * n_groups]
    values, slopes = work[2 * n_groups : 3 * n_groups], work[3 * n_groups :]
    for g in range(n_groups):
        first, last = state.groups[g], state.groups[g + 1]
        _square_distances(point, inputs, first, last, start, start + count, squared[g])
    for q in range(state.amplitudes.shape[0]):
        amplitude = state.amplitudes[q, high, low]
        for g in range(n_groups):
            t = state.tables[q, g, high, low]
            _positions(squared[g], count, state.ranges[t], cells, positions[g])
            _correlations_and_slopes(
                positions[g], count, state.coefficients[t], values[g], slopes[g]
            )
        for g in range(n_groups):
            t = state.tables[q, g, high, low]
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
                by.amplitudes[q, high, low] += total
            total = 0.0
            for b in range(count):
                total += others[b] * slopes[g, b]
            by.slope[t] += amplitude * total
            if low != high:
                by.sensitivity[t] += amplitude * _weighted_sensitivity(
                    positions[g], count, state.sensitivities[t], others
                )
            if state.scaled:
                for b in range(count):
                    if squared[g, b] > 0.0:
                        others[b] *= -amplitude * slopes[g, b] / squared[g, b]
                    else:
                        others[b] = 0.0
                first, last = state.groups[g], state.groups[g + 1]
                _contract_scaling(others, point, inputs, first, last, start, count, by.scaling)


@compiled
def contract_lower(inverse, alpha, inputs, sites, offsets, state, by):
    r"""Contract :math:`K^{-1} - \alpha\alpha'` with every derivative of K in one pass over pairs.

    The diagonal is left out: it is one whatever the parameters are.

    Parameters
    ----------
    inverse : ndarray (n, n)
        :math:`K^{-1}`, of which only the strictly lower triangle is read.
    alpha : ndarray (n,)
    inputs, sites, offsets, state
        As in :func:`fill_lower`.
    by : Contraction
        What to add to.
    """
    n_groups = state.groups.shape[0] - 1
    n = inputs.shape[1]
    point = np.empty(inputs.shape[0])
    weights = np.empty(n)
    work = np.empty((1 + 4 * n_groups, n))
    for i in range(offsets.shape[0] - 1):
        for a in range(offsets[i], offsets[i + 1]):
            point[:] = inputs[:, a]
            for j in range(i + 1):
                start = offsets[j]
                count = (a if j == i else offsets[j + 1]) - start
                total = 0.0
                for b in range(count):
                    weights[b] = inverse[a, start + b] - alpha[a] * alpha[start + b]
                for b in range(count):
                    if sites[start + b] == sites[a]:
                        total += weights[b]
                by.nugget[i, j] += total
                _contract_row(weights, point, inputs, start, count, j, i, state, by, work)


@compiled
def contract_cross(weights, targets, target_offsets, inputs, offsets, state, by):
    """Contract weights (m, n) with every derivative of a signal covariance between two sets.

    Both sets are sorted by task. The covariance has no nugget; where both sets are the same, every
    pair is met twice and the diagonal counts. The other arguments are those of
    :func:`contract_lower`.
    """
    n_groups = state.groups.shape[0] - 1
    point = np.empty(inputs.shape[0])
    work = np.empty((1 + 4 * n_groups, inputs.shape[1]))
    for i in range(target_offsets.shape[0] - 1):
        for a in range(target_offsets[i], target_offsets[i + 1]):
            point[:] = targets[:, a]
            for j in range(offsets.shape[0] - 1):
                start, stop = offsets[j], offsets[j + 1]
                low, high, row = min(i, j), max(i, j), weights[a, start:stop]
                _contract_row(row, point, inputs, start, stop - start, low, high, state, by, work)
