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

from xcopula.jit.compiler import vectorised

__all__ = ["Contraction", "CovarianceState", "contract", "fill", "interpolate", "multiply"]

# Numba's disk cache is renewed when this file changes, and only then. So functions that call each
# other stay in this file, and so do the named tuples: compiled code finds their fields by
# position.

# Pairs are worked on some rows at a time: enough that calls cost nothing, few enough that what is
# known of them (8 kB for each distance) stays near the processor beside the table.
_TILE = 1024


class CovarianceState(NamedTuple):
    """A covariance at given parameters, in the arrays that the compiled loops read."""

    amplitudes: npt.NDArray[np.float64]  # (q, t, t): task matrices of the structures
    nugget: npt.NDArray[np.float64]  # (t, t)
    tables: npt.NDArray[np.int64]  # (q, g, t, t): which table serves which pair of tasks
    groups: npt.NDArray[np.int64]  # (g + 1,): where each group's rows of the inputs begin
    coefficients: npt.NDArray[np.float64]  # (tables, cells + 1, 6)
    sensitivities: npt.NDArray[np.float64]  # (tables, cells + 1, 4): by the first log length
    ranges: npt.NDArray[np.float64]  # (tables,), inverse
    mapping: npt.NDArray[np.float64]  # (d, d): what inputs are multiplied by, group by group
    freedom: npt.NDArray[np.int64]  # (g,): of a metric nothing is free, its diagonal, or all


class Contraction(NamedTuple):
    """Derivatives of a scalar by what a :class:`CovarianceState` holds."""

    amplitudes: npt.NDArray[np.float64]  # (q, t, t), entry (i, j) with j <= i
    nugget: npt.NDArray[np.float64]  # (t, t), entry (i, j) with j <= i
    slope: npt.NDArray[np.float64]  # (tables,): by the log distance
    sensitivity: npt.NDArray[np.float64]  # (tables,): by the log length of the first task
    moments: npt.NDArray[np.float64]  # (d, d), on and below the diagonal: by the metric


class _Block(NamedTuple):
    """Rows of one task against the columns of another.

    Where both are of one set, row ``a`` ends before column ``a``: what is below the diagonal.
    """

    points: npt.NDArray[np.float64]  # (d, m)
    inputs: npt.NDArray[np.float64]  # (d, n)
    start: int  # columns
    stop: int
    below: bool


@vectorised
def _length(block, a):
    return (min(a, block.stop) if block.below else block.stop) - block.start


@vectorised
def _capacity(offsets):
    """Return how many pairs are worked on together: one row of the longest task at least."""
    capacity = _TILE
    for j in range(offsets.shape[0] - 1):
        capacity = max(capacity, offsets[j + 1] - offsets[j])
    return capacity


@vectorised
def _square_distances(block, a, first, last, out):
    """Write the squared distances, in one group of columns, of a row of a block."""
    count = out.shape[0]
    for c in range(first, last):
        x = block.points[c, a]
        # A slice, because start + b, for all that numba knows, might count from the end.
        column = block.inputs[c, block.start : block.start + count]
        if c == first:
            for b in range(count):
                out[b] = (x - column[b]) * (x - column[b])
        else:
            for b in range(count):
                out[b] += (x - column[b]) * (x - column[b])


@vectorised
def _pack(block, head, end, groups, roots):
    """Write the fourth roots of the distances of whole rows from ``head`` on, one after another.

    Returns the row that did not fit any more, and the number of pairs.
    """
    a, size = head, 0
    while a < end and size + _length(block, a) <= roots.shape[1]:
        count = _length(block, a)
        for g in range(groups.shape[0] - 1):
            _square_distances(block, a, groups[g], groups[g + 1], roots[g, size : size + count])
        a, size = a + 1, size + count
    for g in range(groups.shape[0] - 1):
        _take_fourth_roots(roots[g], size)
    return a, size


@vectorised
def _take_fourth_roots(distances, size):
    """Replace distances, given squared, by their fourth roots."""
    for b in range(size):
        distances[b] = math.sqrt(math.sqrt(math.sqrt(distances[b])))


@vectorised
def _stretch(inverse_range, cells):
    """Return what turns the fourth root of a distance into a position on a table."""
    return cells * math.sqrt(math.sqrt(inverse_range))


@vectorised
def _position(root, stretch, cells):
    """Return the position on a table, its cell, and where in the cell it is.

    The row after the last cell is zero, for all that is beyond the range. Cells are unsigned,
    because a negative index would count from the end, and of 32 bits, which vectors have.
    """
    position = root * stretch
    position = position if position < cells else float(cells)
    cell = np.int32(position)
    return position, np.uint32(cell), position - cell


@vectorised
def _multiply(roots, size, stretch, coefficients, out):
    """Multiply ``out`` by the tabulated correlation of each pair."""
    cells = coefficients.shape[0] - 1
    for b in range(size):
        _, k, u = _position(roots[b], stretch, cells)
        c = coefficients[k]
        out[b] *= c[0] + u * (c[1] + u * (c[2] + u * (c[3] + u * (c[4] + u * c[5]))))


@vectorised
def interpolate(squared, inverse_range, coefficients, out):
    """Write a tabulated function at each squared distance to ``out``."""
    roots = squared.copy()
    _take_fourth_roots(roots, roots.shape[0])
    out[:] = 1.0
    stretch = _stretch(inverse_range, coefficients.shape[0] - 1)
    _multiply(roots, roots.shape[0], stretch, coefficients, out)


@vectorised
def _signal(roots, size, high, low, state, work):
    """Write the signal's covariance of each pair to the first row of ``work``, of two."""
    cells = state.coefficients.shape[1] - 1
    for q in range(state.amplitudes.shape[0]):
        product = work[min(q, 1)]
        amplitude = state.amplitudes[q, high, low]
        for b in range(size):
            product[b] = amplitude
        for g in range(state.groups.shape[0] - 1):
            t = state.tables[q, g, high, low]
            stretch = _stretch(state.ranges[t], cells)
            _multiply(roots[g], size, stretch, state.coefficients[t], product)
        if q > 0:
            for b in range(size):
                work[0, b] += work[1, b]


@vectorised
def _unpack(values, block, head, tail, nugget, row_sites, sites, out):
    """Write values of pairs to their rows of the matrix, and add the nugget at common sites."""
    at = 0
    for a in range(head, tail):
        count = _length(block, a)
        row = out[a, block.start : block.start + count]
        own = values[at : at + count]
        for b in range(count):
            row[b] = own[b]
        if nugget != 0.0 and row_sites[a] >= 0:
            site, others = row_sites[a], sites[block.start : block.start + count]
            for b in range(count):
                row[b] += nugget if others[b] == site else 0.0
        at += count


@vectorised
def fill(targets, target_sites, target_offsets, inputs, sites, offsets, below, nugget, state, out):
    """Fill the covariance of targets with inputs, both sorted by task.

    Parameters
    ----------
    targets : ndarray (d, m)
    target_sites : ndarray (m,), int64
        Number of each target's site; -1 where it is no site of the data.
    target_offsets : ndarray (t + 1,), int64
    inputs, sites, offsets
        The same for the n observations.
    below : bool
        Whether the targets are the inputs and only what is below the diagonal is filled.
    nugget : bool
        Whether the nugget counts, where two are at one site. If not, no site is read.
    state : CovarianceState
    out : ndarray (m, n)
    """
    capacity = _capacity(offsets)
    roots, work = np.empty((state.groups.shape[0] - 1, capacity)), np.empty((2, capacity))
    for i in range(offsets.shape[0] - 1):
        for j in range(i + 1 if below else offsets.shape[0] - 1):
            block = _Block(targets, inputs, offsets[j], offsets[j + 1], below)
            head, end = target_offsets[i], target_offsets[i + 1]
            while head < end:
                tail, size = _pack(block, head, end, state.groups, roots)
                _signal(roots, size, max(i, j), min(i, j), state, work)
                shared = state.nugget[i, j] if nugget else 0.0
                _unpack(work[0], block, head, tail, shared, target_sites, sites, out)
                head = tail


@vectorised
def _value_and_slope(c, u):
    """Return a polynomial and its derivative by Horner's scheme, both together."""
    value = c[4] + u * c[5]
    slope = value + u * c[5]
    value = c[3] + u * value
    slope = value + u * slope
    value = c[2] + u * value
    slope = value + u * slope
    value = c[1] + u * value
    slope = value + u * slope
    return c[0] + u * value, slope


@vectorised
def _weighted_sums(weights, roots, size, stretch, coefficients):
    r"""Return the sums of weights times correlation, and times its slope by log distance."""
    cells = coefficients.shape[0] - 1
    by_value, by_slope = 0.0, 0.0
    for b in range(size):
        position, k, u = _position(roots[b], stretch, cells)
        value, slope = _value_and_slope(coefficients[k], u)
        by_value += weights[b] * value
        by_slope += weights[b] * position * slope
    return by_value, 0.25 * by_slope


@vectorised
def _weighted_sensitivity(weights, roots, size, stretch, coefficients):
    r"""Return the sum of weights times a cubic table of the derivative by a log length."""
    cells = coefficients.shape[0] - 1
    total = 0.0
    for b in range(size):
        _, k, u = _position(roots[b], stretch, cells)
        c = coefficients[k]
        total += weights[b] * (c[0] + u * (c[1] + u * (c[2] + u * c[3])))
    return total


@vectorised
def _weighted_pulls(weights, roots, size, stretch, coefficients, amplitude, pull):
    """Return what :func:`_weighted_sums` does; take each pair's part of the slope from ``pull``."""
    cells = coefficients.shape[0] - 1
    by_value, by_slope = 0.0, 0.0
    for b in range(size):
        position, k, u = _position(roots[b], stretch, cells)
        value, slope = _value_and_slope(coefficients[k], u)
        part = 0.25 * weights[b] * position * slope
        by_value += weights[b] * value
        by_slope += part
        pull[b] -= amplitude * part
    return by_value, by_slope


@vectorised
def _contract_tile(roots, size, low, high, state, by, work, pull):
    """Contract the weights in the first row of ``work`` against the derivatives of the signal.

    The pair of tasks is (low, high), low <= high. What the metrics need is left in ``pull``, for
    each group.
    """
    n_groups, cells = state.groups.shape[0] - 1, state.coefficients.shape[1] - 1
    weights, others = work[0], work[1]
    for q in range(state.amplitudes.shape[0]):
        amplitude = state.amplitudes[q, high, low]
        for g in range(n_groups):
            for b in range(size):
                others[b] = weights[b]
            for h in range(n_groups):
                if h != g:
                    t = state.tables[q, h, high, low]
                    stretch = _stretch(state.ranges[t], cells)
                    _multiply(roots[h], size, stretch, state.coefficients[t], others)
            t = state.tables[q, g, high, low]
            stretch, table = _stretch(state.ranges[t], cells), state.coefficients[t]
            if state.freedom[g] > 0:
                total, slope = _weighted_pulls(
                    others, roots[g], size, stretch, table, amplitude, pull[g]
                )
            else:
                total, slope = _weighted_sums(others, roots[g], size, stretch, table)
            if g == 0:
                by.amplitudes[q, high, low] += total
            by.slope[t] += amplitude * slope
            if low != high:
                by.sensitivity[t] += amplitude * _weighted_sensitivity(
                    others, roots[g], size, stretch, state.sensitivities[t]
                )


@vectorised
def _contract_moments(block, head, tail, roots, first, last, whole, pull, moments):
    """Add products of differences in a group's columns, weighted; set ``pull`` to zero.

    Those of each column with itself, or with all before it too. A pair at one place has none.
    """
    at = 0
    for a in range(head, tail):
        count = _length(block, a)
        weights, own = pull[at : at + count], roots[at : at + count]
        for b in range(count):
            squared = own[b] ** 8
            weights[b] /= squared if squared > 0.0 else 1.0
        columns = slice(block.start, block.start + count)
        for c in range(first, last):
            x, column = block.points[c, a], block.inputs[c, columns]
            for e in range(first if whole else c, c + 1):
                y, other = block.points[e, a], block.inputs[e, columns]
                total = 0.0
                for b in range(count):
                    total += weights[b] * (x - column[b]) * (y - other[b])
                moments[c, e] += total
        for b in range(count):
            weights[b] = 0.0
        at += count


@vectorised
def _pack_weights(weights, alpha, sites, block, head, tail, out):
    """Write the weights of whole rows one after another; return their sum at common sites."""
    at, shared = 0, 0.0
    for a in range(head, tail):
        count = _length(block, a)
        columns = slice(block.start, block.start + count)
        row, own = weights[a, columns], out[at : at + count]
        for b in range(count):
            own[b] = row[b]
        if block.below:
            score, scores, site, others = alpha[a], alpha[columns], sites[a], sites[columns]
            for b in range(count):
                own[b] -= score * scores[b]
            for b in range(count):
                shared += own[b] if others[b] == site else 0.0
        at += count
    return shared


@vectorised
def contract(weights, alpha, targets, target_offsets, inputs, sites, offsets, below, state, by):
    r"""Contract weights with every derivative of a covariance, in one pass over pairs.

    Where the targets are the inputs the weights are :math:`W - \alpha\alpha'`, only what is below
    the diagonal counts (it is one whatever the parameters are), and the covariance has a nugget.
    Elsewhere the weights are W and the covariance is that of the signal.

    Parameters
    ----------
    weights : ndarray (m, n)
        W.
    alpha : ndarray (n,)
        It is read below the diagonal only, and so are ``sites``.
    targets, target_offsets, inputs, sites, offsets, below, state
        As in :func:`fill`.
    by : Contraction
        What to add to.
    """
    n_groups, capacity = state.groups.shape[0] - 1, _capacity(offsets)
    roots, pull = np.empty((n_groups, capacity)), np.zeros((n_groups, capacity))
    work = np.empty((2, capacity))
    for i in range(offsets.shape[0] - 1):
        for j in range(i + 1 if below else offsets.shape[0] - 1):
            block = _Block(targets, inputs, offsets[j], offsets[j + 1], below)
            head, end = target_offsets[i], target_offsets[i + 1]
            while head < end:
                tail, size = _pack(block, head, end, state.groups, roots)
                by.nugget[i, j] += _pack_weights(weights, alpha, sites, block, head, tail, work[0])
                _contract_tile(roots, size, min(i, j), max(i, j), state, by, work, pull)
                for g in range(n_groups):
                    if state.freedom[g] > 0:
                        _contract_moments(
                            block,
                            head,
                            tail,
                            roots[g],
                            state.groups[g],
                            state.groups[g + 1],
                            state.freedom[g] > 1,
                            pull[g],
                            by.moments,
                        )
                head = tail


@vectorised
def _slopes_of_pairs(roots, size, stretch, coefficients, weights, out):
    """Write weights times the slope of a table by the log distance."""
    cells = coefficients.shape[0] - 1
    for b in range(size):
        position, k, u = _position(roots[b], stretch, cells)
        _, slope = _value_and_slope(coefficients[k], u)
        out[b] = 0.25 * weights[b] * position * slope


@vectorised
def _sensitivities_of_pairs(roots, size, stretch, coefficients, weights, out):
    """Write weights times a cubic table of the derivative by a log length."""
    cells = coefficients.shape[0] - 1
    for b in range(size):
        _, k, u = _position(roots[b], stretch, cells)
        c = coefficients[k]
        out[b] = weights[b] * (c[0] + u * (c[1] + u * (c[2] + u * c[3])))


@vectorised
def _scatter(values, block, head, tail, alpha, out):
    """Add the product of a symmetric matrix, known by some rows below its diagonal, with alpha."""
    at = 0
    for a in range(head, tail):
        count = _length(block, a)
        columns = slice(block.start, block.start + count)
        own, scores, target = values[at : at + count], alpha[columns], out[columns]
        score, total = alpha[a], 0.0
        for b in range(count):
            total += own[b] * scores[b]
            target[b] += own[b] * score
        out[a] += total
        at += count


@vectorised
def _scatter_nugget(block, head, tail, sites, alpha, out):
    """The same for the matrix that is one at common sites."""
    for a in range(head, tail):
        count = _length(block, a)
        columns = slice(block.start, block.start + count)
        others, scores, target = sites[columns], alpha[columns], out[columns]
        site, score, total = sites[a], alpha[a], 0.0
        for b in range(count):
            if others[b] == site:
                total += scores[b]
                target[b] += score
        out[a] += total


@vectorised
def _scatter_moments(
    pull, roots, block, head, tail, first, last, whole, alpha, rows, dimension, work
):
    """The same for the derivatives by the metric of a group of columns; set ``pull`` to zero."""
    size, at = 0, 0
    for a in range(head, tail):
        count = _length(block, a)
        weights, own = pull[at : at + count], roots[at : at + count]
        for b in range(count):
            squared = own[b] ** 8
            weights[b] /= squared if squared > 0.0 else 1.0
        at += count
    size = at
    for c in range(first, last):
        for e in range(first if whole else c, c + 1):
            at = 0
            for a in range(head, tail):
                count = _length(block, a)
                columns = slice(block.start, block.start + count)
                x, column = block.points[c, a], block.inputs[c, columns]
                y, other = block.points[e, a], block.inputs[e, columns]
                out, weights = work[at : at + count], pull[at : at + count]
                for b in range(count):
                    out[b] = weights[b] * (x - column[b]) * (y - other[b])
                at += count
            _scatter(work, block, head, tail, alpha, rows[c * dimension + e])
    for b in range(size):
        pull[b] = 0.0


@vectorised
def multiply(alpha, inputs, sites, offsets, state, out):
    r"""Multiply every derivative of a covariance by a vector, in one pass over pairs.

    Parameters
    ----------
    alpha : ndarray (n,)
    inputs, sites, offsets, state
        As in :func:`fill`, where the targets are the inputs.
    out : ndarray (s, n)
        What to add to: for each number of a :class:`Contraction`, field by field, the product of
        alpha with the derivative of the covariance by it.
    """
    groups = state.groups
    n_groups, n_tasks = groups.shape[0] - 1, offsets.shape[0] - 1
    n_structures, cells = state.amplitudes.shape[0], state.coefficients.shape[1] - 1
    nugget = n_structures * n_tasks * n_tasks
    slope = nugget + n_tasks * n_tasks
    sensitivity = slope + state.ranges.shape[0]
    moments = sensitivity + state.ranges.shape[0]
    dimension, capacity = inputs.shape[0], _capacity(offsets)
    roots, pull = np.empty((n_groups, capacity)), np.zeros((n_groups, capacity))
    work = np.empty((2, capacity))
    for i in range(n_tasks):
        for j in range(i + 1):
            block = _Block(inputs, inputs, offsets[j], offsets[j + 1], True)
            head, end = offsets[i], offsets[i + 1]
            while head < end:
                tail, size = _pack(block, head, end, groups, roots)
                if i != j:
                    _scatter_nugget(block, head, tail, sites, alpha, out[nugget + i * n_tasks + j])
                for q in range(n_structures):
                    amplitude = state.amplitudes[q, i, j]
                    for g in range(n_groups):
                        others, values = work[0], work[1]
                        for b in range(size):
                            others[b] = 1.0
                        for h in range(n_groups):
                            if h != g:
                                t = state.tables[q, h, i, j]
                                stretch = _stretch(state.ranges[t], cells)
                                _multiply(roots[h], size, stretch, state.coefficients[t], others)
                        t = state.tables[q, g, i, j]
                        stretch, table = _stretch(state.ranges[t], cells), state.coefficients[t]
                        if g == 0:
                            for b in range(size):
                                values[b] = others[b]
                            _multiply(roots[0], size, stretch, table, values)
                            row = (q * n_tasks + i) * n_tasks + j
                            _scatter(values, block, head, tail, alpha, out[row])
                        for b in range(size):
                            others[b] *= amplitude
                        _slopes_of_pairs(roots[g], size, stretch, table, others, values)
                        _scatter(values, block, head, tail, alpha, out[slope + t])
                        if state.freedom[g] > 0:
                            for b in range(size):
                                pull[g, b] -= values[b]
                        if i != j:
                            _sensitivities_of_pairs(
                                roots[g], size, stretch, state.sensitivities[t], others, values
                            )
                            _scatter(values, block, head, tail, alpha, out[sensitivity + t])
                for g in range(n_groups):
                    if state.freedom[g] > 0:
                        _scatter_moments(
                            pull[g],
                            roots[g],
                            block,
                            head,
                            tail,
                            groups[g],
                            groups[g + 1],
                            state.freedom[g] > 1,
                            alpha,
                            out[moments:],
                            dimension,
                            work[0],
                        )
                head = tail
