r"""Loops over small sets of neighbours: terms of a likelihood, and predictions from a few values.

A *term* is one observation given some before it. With K the covariance of these neighbours N and
then the observation, U its upper factor and w the normal scores,

.. math:: b = U^{-1} e, \qquad u = b' w, \qquad a = K_N^{-1} w_N

its negative log density is :math:`u^2 / 2 + \log U_{mm}`, and its derivative by the covariance of
a pair (h, j) is :math:`(1 - u^2) b_h b_j - u (b_h a_j + a_h b_j)`: of rank two, so that a gradient
costs one more pass over the pairs.

Neighbours come in increasing order, so those of one task stand together: a *segment*. The pairs of
two segments are a *block*. They share their tables and stand one after the other in flat arrays;
every loop over special functions is a loop over a whole block. What is asked for, be it an
observation or a cell, is a last segment of its own.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xcopula.jit.compiler import vectorised

__all__ = ["Terms", "terms", "tile_moments"]

# Numba's disk cache is renewed when this file changes, and only then: functions that call each
# other stay in this file.

# What is added to the unit diagonal of a small matrix, one after the other, before it is given up,
# as in xcopula.linalg. A pivot below the least one is rounding error.
_JITTERS = (0.0, 1e-10, 1e-8, 1e-6)
_LEAST_PIVOT = 1e-13
# Cells of a tile that are worked on together: what is known of them stays near the processor.
_PIECE = 128


class Terms(NamedTuple):
    """Which observations are given which others."""

    rows: npt.NDArray[np.int64]  # (r,): the observations
    weights: npt.NDArray[np.float64]  # (r,): how often each counts
    neighbours: npt.NDArray[np.int32]  # (r, m): in increasing order
    counts: npt.NDArray[np.int32]  # (r,): how many of them there are


class _Room(NamedTuple):
    """Where one small system is worked on."""

    x: npt.NDArray[np.float64]  # (d, size): inputs, what is asked for last
    sites: npt.NDArray[np.int64]  # (size,)
    extra: npt.NDArray[np.float64]  # (size,): variances beside the covariance's own
    starts: npt.NDArray[np.int64]  # (t + 2,): where each segment begins, and the end
    roots: npt.NDArray[np.float64]  # (g, pairs): fourth roots of distances
    values: npt.NDArray[np.float64]  # (q, g, pairs): correlations
    slopes: npt.NDArray[np.float64]  # (q, g, pairs): by the log distance
    covariance: npt.NDArray[np.float64]  # (pairs,)
    work: npt.NDArray[np.float64]  # (2, pairs)
    pull: npt.NDArray[np.float64]  # (g, pairs): what metrics need
    shared: npt.NDArray[np.int64]  # (pairs,): pairs at one site
    matrix: npt.NDArray[np.float64]  # (size, size): upper


@vectorised
def _room(most, inputs, state):
    """Make room for ``most`` neighbours and what is asked for."""
    size, groups, structures = most + 1, state.groups.shape[0] - 1, state.amplitudes.shape[0]
    pairs = max(size * (size - 1) // 2, 1)
    return _Room(
        np.empty((inputs.shape[0], size)),
        np.empty(size, np.int64),
        np.empty(size),
        np.empty(state.nugget.shape[0] + 2, np.int64),
        np.empty((groups, pairs)),
        np.empty((structures, groups, pairs)),
        np.empty((structures, groups, pairs)),
        np.empty(pairs),
        np.empty((2, pairs)),
        np.empty((groups, pairs)),
        np.empty(pairs, np.int64),
        np.empty((size, size)),
    )


@vectorised
def _gather(room, row, count, inputs, sites, offsets, extra):
    """Copy the neighbours of what is asked for, and find the segments."""
    for c in range(inputs.shape[0]):
        for b in range(count):
            room.x[c, b] = inputs[c, row[b]]
    task = 0
    room.starts[0] = 0
    for b in range(count):
        room.sites[b], room.extra[b] = sites[row[b]], extra[row[b]]
        while row[b] >= offsets[task + 1]:
            task += 1
            room.starts[task] = b
    for rest in range(task + 1, offsets.shape[0]):
        room.starts[rest] = count
    room.starts[offsets.shape[0]] = count + 1


@vectorised
def _block_size(room, high, low):
    rows = room.starts[high + 1] - room.starts[high]
    if high == low:
        return rows * (rows - 1) // 2
    return rows * (room.starts[low + 1] - room.starts[low])


@vectorised
def _squares(room, high, low, first, last, out):
    """Write the squared distances of a block's pairs, in one group of columns, to ``out``."""
    at = 0
    for h in range(room.starts[high], room.starts[high + 1]):
        start = room.starts[low]
        count = (h if high == low else room.starts[low + 1]) - start
        own = out[at : at + count]
        for c in range(first, last):
            x, column = room.x[c, h], room.x[c, start : start + count]
            if c == first:
                for j in range(count):
                    own[j] = (x - column[j]) * (x - column[j])
            else:
                for j in range(count):
                    own[j] += (x - column[j]) * (x - column[j])
        at += count


@vectorised
def _position(root, stretch, cells):
    """Return the position on a table, its cell, and where in the cell it is."""
    position = root * stretch
    position = position if position < cells else float(cells)
    cell = np.int32(position)
    return position, np.uint32(cell), position - cell


@vectorised
def _look_up(roots, stretch, coefficients, values):
    """Write the tabulated correlation of each pair of a block."""
    cells = coefficients.shape[0] - 1
    for p in range(roots.shape[0]):
        _, k, u = _position(roots[p], stretch, cells)
        c = coefficients[k]
        values[p] = c[0] + u * (c[1] + u * (c[2] + u * (c[3] + u * (c[4] + u * c[5]))))


@vectorised
def _look_up_slopes(roots, stretch, coefficients, values, slopes):
    """Write the tabulated correlation of each pair, and its slope by the log distance."""
    cells = coefficients.shape[0] - 1
    for p in range(roots.shape[0]):
        position, k, u = _position(roots[p], stretch, cells)
        c = coefficients[k]
        value = c[4] + u * c[5]
        slope = value + u * c[5]
        value = c[3] + u * value
        slope = value + u * slope
        value = c[2] + u * value
        slope = value + u * slope
        value = c[1] + u * value
        slope = value + u * slope
        values[p] = c[0] + u * value
        slopes[p] = 0.25 * position * slope


@vectorised
def _task(segment, own):
    """Return the task of a segment; the last is that of what is asked for."""
    return own[1] if segment == own[0] else segment


@vectorised
def _correlate(room, state, own, gradient):
    """Fill the signal's covariance of all pairs, and what derivatives need of it.

    ``own`` has the number of the last segment, and its task.
    """
    groups, cells = state.groups, state.coefficients.shape[1] - 1
    size = room.starts[own[0] + 1]
    count = size * (size - 1) // 2
    at = 0
    for high in range(own[0] + 1):
        for low in range(high + 1):
            end = at + _block_size(room, high, low)
            if end > at:
                for g in range(groups.shape[0] - 1):
                    _squares(room, high, low, groups[g], groups[g + 1], room.roots[g, at:end])
            at = end
    for g in range(groups.shape[0] - 1):
        for p in range(count):
            room.roots[g, p] = math.sqrt(math.sqrt(math.sqrt(room.roots[g, p])))
    at = 0
    for high in range(own[0] + 1):
        for low in range(high + 1):
            end = at + _block_size(room, high, low)
            if end > at:
                i, j = _task(high, own), _task(low, own)
                covariance = room.covariance[at:end]
                for q in range(state.amplitudes.shape[0]):
                    for g in range(groups.shape[0] - 1):
                        t = state.tables[q, g, i, j]
                        stretch = cells * math.sqrt(math.sqrt(state.ranges[t]))
                        roots, values = room.roots[g, at:end], room.values[q, g, at:end]
                        if gradient:
                            _look_up_slopes(
                                roots,
                                stretch,
                                state.coefficients[t],
                                values,
                                room.slopes[q, g, at:end],
                            )
                        else:
                            _look_up(roots, stretch, state.coefficients[t], values)
                    product = room.work[0, at:end]
                    amplitude = state.amplitudes[q, i, j]
                    for p in range(end - at):
                        product[p] = amplitude * room.values[q, 0, at + p]
                    for g in range(1, groups.shape[0] - 1):
                        values = room.values[q, g, at:end]
                        for p in range(end - at):
                            product[p] *= values[p]
                    if q == 0:
                        for p in range(end - at):
                            covariance[p] = product[p]
                    else:
                        for p in range(end - at):
                            covariance[p] += product[p]
            at = end


@vectorised
def _share(room, state, own, nugget):
    """Add the nugget to pairs at one site, and return how many there are.

    Neighbours of one task are at different sites.
    """
    found, at = 0, 0
    for high in range(own[0] + 1):
        for low in range(high + 1):
            if high == low or (high == own[0] and not nugget):
                at += _block_size(room, high, low)
                continue
            common = state.nugget[_task(high, own), _task(low, own)]
            for h in range(room.starts[high], room.starts[high + 1]):
                site = room.sites[h]
                for j in range(room.starts[low], room.starts[low + 1]):
                    if site >= 0 and room.sites[j] == site:
                        room.covariance[at] += common
                        room.shared[found] = at
                        found += 1
                    at += 1
    return found


@vectorised
def _fill(room, own, diagonal):
    """Write the covariance, with its extra variances, to the upper triangle of the matrix."""
    at = 0
    for high in range(own[0] + 1):
        for low in range(high + 1):
            for h in range(room.starts[high], room.starts[high + 1]):
                for j in range(room.starts[low], h if high == low else room.starts[low + 1]):
                    room.matrix[j, h] = room.covariance[at]
                    at += 1
    size = room.starts[own[0] + 1]
    for h in range(size):
        room.matrix[h, h] = diagonal + room.extra[h]


@vectorised
def _factorise(matrix, size, pivots):
    """Overwrite the first ``pivots`` rows by the upper factor's; tell whether that was possible.

    What is left below them is the covariance of the rest, given what they stand for.
    """
    for k in range(pivots):
        pivot = matrix[k, k]
        if not pivot > _LEAST_PIVOT:
            return False
        root = 1.0 / math.sqrt(pivot)
        row = matrix[k]
        for j in range(k, size):
            row[j] *= root
        for i in range(k + 1, size):
            factor, below = row[i], matrix[i]
            for j in range(i, size):
                below[j] -= factor * row[j]
    return True


@vectorised
def _factorise_with_jitter(room, own, pivots):
    """Factorise the covariance, with a small jitter if it must be; return which, -1 if none."""
    size = room.starts[own[0] + 1]
    for attempt in range(len(_JITTERS)):
        jitter = _JITTERS[attempt]
        _fill(room, own, 1.0 + jitter)
        if _factorise(room.matrix, size, pivots):
            return attempt
    return -1


@vectorised
def _solve_term(room, size, scores, b, a):
    """Write b and a of a term from its factor and scores, which are overwritten; return u."""
    matrix, m = room.matrix, size - 1
    last = 1.0 / matrix[m, m]
    for k in range(size):
        row = matrix[k]
        scores[k] /= row[k]
        score = scores[k]
        for j in range(k + 1, size):
            scores[j] -= row[j] * score
    b[m], a[m] = last, 0.0
    for k in range(m - 1, -1, -1):
        row = matrix[k]
        rest, rest_a = row[m] * last, 0.0
        for j in range(k + 1, m):
            rest += row[j] * b[j]
            rest_a += row[j] * a[j]
        b[k] = -rest / row[k]
        a[k] = (scores[k] - rest_a) / row[k]
    return scores[m]


@vectorised
def _weigh(room, own, weight, u, b, a):
    """Write the derivative by each pair's covariance to the second row of ``work``."""
    at, rank = 0, 1.0 - u * u
    for high in range(own[0] + 1):
        for low in range(high + 1):
            for h in range(room.starts[high], room.starts[high + 1]):
                start = room.starts[low]
                count = (h if high == low else room.starts[low + 1]) - start
                by_b, by_a = weight * (rank * b[h] - u * a[h]), -weight * u * b[h]
                out, b_row, a_row = room.work[1, at:], b[start:], a[start:]
                for j in range(count):
                    out[j] = by_b * b_row[j] + by_a * a_row[j]
                at += count


@vectorised
def _dot(weights, values):
    total = 0.0
    for p in range(weights.shape[0]):
        total += weights[p] * values[p]
    return total


@vectorised
def _sensitivity(weights, roots, stretch, coefficients):
    """Return the sum of weights times a cubic table of the derivative by a log length."""
    cells = coefficients.shape[0] - 1
    total = 0.0
    for p in range(weights.shape[0]):
        _, k, u = _position(roots[p], stretch, cells)
        c = coefficients[k]
        total += weights[p] * (c[0] + u * (c[1] + u * (c[2] + u * c[3])))
    return total


@vectorised
def _add_pull(weights, slopes, amplitude, begin, pull):
    """Take each pair's derivative by its log distance from ``pull``, or from zero."""
    for p in range(weights.shape[0]):
        part = amplitude * weights[p] * slopes[p]
        pull[p] = (0.0 if begin else pull[p]) - part


@vectorised
def _contract_moments(room, high, low, roots, first, last, whole, pull, moments):
    """Add products of differences in a group's columns, weighted by what is in ``pull``.

    Those of each column with itself, or with all before it too. A pair at one place has none.
    """
    for p in range(pull.shape[0]):
        squared = roots[p] ** 8
        pull[p] /= squared if squared > 0.0 else 1.0
    at = 0
    for h in range(room.starts[high], room.starts[high + 1]):
        start = room.starts[low]
        stop = h if high == low else room.starts[low + 1]
        weights = pull[at : at + stop - start]
        for c in range(first, last):
            x, column = room.x[c, h], room.x[c, start:stop]
            for e in range(first if whole else c, c + 1):
                y, other = room.x[e, h], room.x[e, start:stop]
                total = 0.0
                for j in range(weights.shape[0]):
                    total += weights[j] * (x - column[j]) * (y - other[j])
                moments[c, e] += total
        at += stop - start


@vectorised
def _contract(room, state, own, shared, by):
    """Add the contraction of the pairs' weights with every derivative of the covariance."""
    groups, cells = state.groups, state.coefficients.shape[1] - 1
    n_groups, at = groups.shape[0] - 1, 0
    next_shared = 0
    for high in range(own[0] + 1):
        for low in range(high + 1):
            end = at + _block_size(room, high, low)
            if end == at:
                continue
            i, j = max(_task(high, own), _task(low, own)), min(_task(high, own), _task(low, own))
            weights, others = room.work[1, at:end], room.work[0, at:end]
            while next_shared < shared and room.shared[next_shared] < end:
                by.nugget[i, j] += room.work[1, room.shared[next_shared]]
                next_shared += 1
            for q in range(state.amplitudes.shape[0]):
                amplitude = state.amplitudes[q, i, j]
                for g in range(n_groups):
                    for p in range(end - at):
                        others[p] = weights[p]
                    for h in range(n_groups):
                        if h != g:
                            values = room.values[q, h, at:end]
                            for p in range(end - at):
                                others[p] *= values[p]
                    if g == 0:
                        by.amplitudes[q, i, j] += _dot(others, room.values[q, 0, at:end])
                    t = state.tables[q, g, i, j]
                    slopes, roots = room.slopes[q, g, at:end], room.roots[g, at:end]
                    by.slope[t] += amplitude * _dot(others, slopes)
                    if i != j:
                        stretch = cells * math.sqrt(math.sqrt(state.ranges[t]))
                        by.sensitivity[t] += amplitude * _sensitivity(
                            others, roots, stretch, state.sensitivities[t]
                        )
                    if state.freedom[g] > 0:
                        _add_pull(others, slopes, amplitude, q == 0, room.pull[g, at:end])
            for g in range(n_groups):
                if state.freedom[g] > 0:
                    _contract_moments(
                        room,
                        high,
                        low,
                        room.roots[g, at:end],
                        groups[g],
                        groups[g + 1],
                        state.freedom[g] > 1,
                        room.pull[g, at:end],
                        by.moments,
                    )
            at = end


@vectorised
def terms(which, inputs, sites, offsets, w, extra, state, gradient, each, alpha, precision, by):
    r"""Evaluate terms of a likelihood, and add up what they leave.

    Parameters
    ----------
    which : Terms
    inputs : ndarray (d, n)
        Scaled, sorted by task.
    sites : ndarray (n,), int64
    offsets : ndarray (t + 1,), int64
    w : ndarray (n,)
        Normal scores.
    extra : ndarray (n,)
        Variances of their errors, which the covariance does not have.
    state : CovarianceState
    gradient : bool
        Whether to add to ``by``.
    each : ndarray (r, 2)
        Filled: :math:`u^2` and :math:`\log v` of each term.
    alpha : ndarray (n,)
        What is added is the sum of u b, which is Q w.
    precision : ndarray (n,)
        What is added is the sum of b squared: the diagonal of Q.
    by : Contraction

    Returns
    -------
    int, int
        How many matrices needed a jitter, and the first that no jitter helps, -1 as a rule.
    """
    most = which.neighbours.shape[1]
    room = _room(most, inputs, state)
    scores, b, a = np.empty(most + 1), np.empty(most + 1), np.empty(most + 1)
    n_tasks, jittered = offsets.shape[0] - 1, 0
    for r in range(which.rows.shape[0]):
        i, m, row, weight = which.rows[r], which.counts[r], which.neighbours[r], which.weights[r]
        _gather(room, row, m, inputs, sites, offsets, extra)
        task = 0
        while i >= offsets[task + 1]:
            task += 1
        own = (n_tasks, task)
        for c in range(inputs.shape[0]):
            room.x[c, m] = inputs[c, i]
        room.sites[m], room.extra[m] = sites[i], extra[i]
        _correlate(room, state, own, gradient)
        shared = _share(room, state, own, True) if n_tasks > 1 else 0
        attempt = _factorise_with_jitter(room, own, m + 1)
        if attempt < 0:
            return jittered, r
        jittered += 1 if attempt > 0 else 0
        for j in range(m):
            scores[j] = w[row[j]]
        scores[m] = w[i]
        u = _solve_term(room, m + 1, scores, b, a)
        each[r, 0], each[r, 1] = u * u, 2.0 * math.log(room.matrix[m, m])
        for j in range(m):
            alpha[row[j]] += weight * u * b[j]
            precision[row[j]] += weight * b[j] * b[j]
        alpha[i] += weight * u * b[m]
        precision[i] += weight * b[m] * b[m]
        if gradient:
            _weigh(room, own, weight, u, b, a)
            _contract(room, state, own, shared, by)
    return jittered, -1


@vectorised
def _cross(room, j, other, task, targets, common, state, out, work):
    """Write the covariance of a task at targets (d, cells) with neighbour j, of another task.

    ``common`` (cells,) is the nugget where they share it. ``work`` is (2, cells).
    """
    groups, cells = state.groups, state.coefficients.shape[1] - 1
    count = targets.shape[1]
    for q in range(state.amplitudes.shape[0]):
        amplitude = state.amplitudes[q, task, other]
        for p in range(count):
            work[1, p] = amplitude
        for g in range(groups.shape[0] - 1):
            roots = work[0, :count]
            for c in range(groups[g], groups[g + 1]):
                x, column = room.x[c, j], targets[c]
                if c == groups[g]:
                    for p in range(count):
                        roots[p] = (x - column[p]) * (x - column[p])
                else:
                    for p in range(count):
                        roots[p] += (x - column[p]) * (x - column[p])
            for p in range(count):
                roots[p] = math.sqrt(math.sqrt(math.sqrt(roots[p])))
            t = state.tables[q, g, task, other]
            stretch = cells * math.sqrt(math.sqrt(state.ranges[t]))
            _look_up(roots, stretch, state.coefficients[t], roots)
            for p in range(count):
                work[1, p] *= roots[p]
        for p in range(count):
            out[p] = (common[p] if q == 0 else out[p]) + work[1, p]


@vectorised
def _reduce(matrix, m, right, count, variance):
    """Overwrite columns by L^-1 times them, and take their squares from the variance."""
    for k in range(m):
        row, own = matrix[k], right[k]
        root = 1.0 / row[k]
        for p in range(count):
            own[p] *= root
            variance[p] -= own[p] * own[p]
        for j in range(k + 1, m):
            factor, other = row[j], right[j]
            for p in range(count):
                other[p] -= factor * own[p]


@vectorised
def _solve(matrix, m, right):
    """Overwrite a vector by the inverse of the factorised matrix times it."""
    for k in range(m):
        row = matrix[k]
        right[k] /= row[k]
        for j in range(k + 1, m):
            right[j] -= row[j] * right[k]
    for k in range(m - 1, -1, -1):
        row = matrix[k]
        rest = right[k]
        for j in range(k + 1, m):
            rest -= row[j] * right[j]
        right[k] = rest / row[k]


@vectorised
def tile_moments(
    targets,
    target_sites,
    starts,
    task,
    nugget,
    which,
    inputs,
    sites,
    offsets,
    w,
    extra,
    state,
    mean,
    variance,
):
    """Fill the moments of a task at targets that come in tiles: a tile shares its neighbours.

    Parameters
    ----------
    targets : ndarray (d, r)
        Scaled.
    target_sites : ndarray (r,), int64
    starts : ndarray (tiles + 1,), int64
        Where the targets of each tile begin.
    task : int
    nugget : bool
        Whether what is predicted has a nugget.
    which : Terms
        The neighbours of each tile.
    inputs, sites, offsets, state
        As in :func:`terms`.
    w : ndarray (k, n)
        Scores, of one sample or of several at the same sites.
    extra : ndarray (n,)
        As in :func:`terms`.
    mean : ndarray (k, r)
        Filled.
    variance : ndarray (r,)
        Filled, if it is not empty.

    Returns
    -------
    int
        The first tile whose matrix cannot be factorised, -1 as a rule.
    """
    most = which.neighbours.shape[1]
    room, right, work = _room(most, inputs, state), np.empty((most, _PIECE)), np.empty((2, _PIECE))
    alphas, common = np.empty((w.shape[0], most)), np.empty(_PIECE)
    n_tasks = offsets.shape[0] - 1
    own = (n_tasks, task)
    prior = state.nugget[task, task] if nugget else 0.0
    for q in range(state.amplitudes.shape[0]):
        prior += state.amplitudes[q, task, task]
    for tile in range(starts.shape[0] - 1):
        m, row = which.counts[tile], which.neighbours[tile]
        _gather(room, row, m, inputs, sites, offsets, extra)
        room.starts[n_tasks + 1] = m
        _correlate(room, state, own, False)
        _share(room, state, own, False)
        if m > 0 and _factorise_with_jitter(room, own, m) < 0:
            return tile
        for k in range(w.shape[0]):
            for j in range(m):
                alphas[k, j] = w[k, row[j]]
            _solve(room.matrix, m, alphas[k])
        for first in range(starts[tile], starts[tile + 1], _PIECE):
            last = min(first + _PIECE, starts[tile + 1])
            count = last - first
            mean[:, first:last] = 0.0
            for other in range(n_tasks):
                shared = state.nugget[task, other]
                for j in range(room.starts[other], room.starts[other + 1]):
                    for p in range(count):
                        same = nugget and target_sites[first + p] == room.sites[j]
                        common[p] = shared if same and room.sites[j] >= 0 else 0.0
                    _cross(
                        room, j, other, task, targets[:, first:last], common, state, right[j], work
                    )
                    for k in range(w.shape[0]):
                        for p in range(count):
                            mean[k, first + p] += alphas[k, j] * right[j, p]
            if variance.shape[0] > 0:
                own_variance = variance[first:last]
                own_variance[:] = prior
                _reduce(room.matrix, m, right, count, own_variance)
                for p in range(count):
                    own_variance[p] = max(own_variance[p], 0.0)
    return -1
