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

__all__ = ["Terms", "interval_terms", "term_slopes", "terms", "tile_moments"]

# Numba's disk cache is renewed when this file changes, and only then: functions that call each
# other stay in this file.

# What is added to the unit diagonal of a small matrix, one after the other, before it is given up,
# as in xcopula.linalg. A pivot below the least one is rounding error.
_JITTERS = (0.0, 1e-10, 1e-8, 1e-6)
_LEAST_PIVOT = 1e-13
# Cells of a tile that are worked on together: what is known of them stays near the processor.
_PIECE = 128
# As in xcopula.process.intervals: where closed forms of truncated laws cancel and a Gauss rule
# serves, and the precisions of stand-ins. They are found by going round, until no cavity moves by
# so much of its deviation. A likelihood is near its value sooner than they are near theirs.
_FAR, _NARROW, _DECAY = 5.0, 0.5, 38.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_LEAST, _MOST, _TINY = 1e-8, 1e10, 1e-12
_SETTLED, _SWEEPS = 1e-5, 200
_LOG_ROOT, _ROOT_HALF = 0.5 * math.log(2.0 * math.pi), math.sqrt(0.5)


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
def _gather_term(room, row, count, i, inputs, sites, offsets, extra):
    """Copy neighbours and then an observation; return its segment's number, and its task."""
    _gather(room, row, count, inputs, sites, offsets, extra)
    task = 0
    while i >= offsets[task + 1]:
        task += 1
    for c in range(inputs.shape[0]):
        room.x[c, count] = inputs[c, i]
    room.sites[count], room.extra[count] = sites[i], extra[i]
    return offsets.shape[0] - 1, task


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
def _weigh(room, own, square, mixed, b, a):
    """Write weights of pairs, square b b' + mixed (a b' + b a'), to the second row of ``work``."""
    at = 0
    for high in range(own[0] + 1):
        for low in range(high + 1):
            for h in range(room.starts[high], room.starts[high + 1]):
                start = room.starts[low]
                count = (h if high == low else room.starts[low + 1]) - start
                by_b, by_a = square * b[h] + mixed * a[h], mixed * b[h]
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
        own = _gather_term(room, row, m, i, inputs, sites, offsets, extra)
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
            _weigh(room, own, weight * (1.0 - u * u), -weight * u, b, a)
            _contract(room, state, own, shared, by)
    return jittered, -1


@vectorised
def term_slopes(
    which,
    inputs,
    sites,
    offsets,
    w,
    extra,
    moves,
    state,
    by,
    flat,
    each,
    alpha,
    by_mean,
    by_variance,
    by_score,
):
    r"""Evaluate terms, and how the mean and the variance of each move with the covariance.

    Parameters
    ----------
    which, inputs, sites, offsets, w, extra, state
        As in :func:`terms`.
    moves : ndarray (n, p)
        Derivatives of the scores by parameters of the marginals.
    by : Contraction
        Views of ``flat``, where one term is worked on.
    flat : ndarray (s,)
    each : ndarray (r, 2)
        Filled: u and :math:`\log v` of each term.
    alpha : ndarray (n,)
        As in :func:`terms`.
    by_mean, by_variance : ndarray (r, s)
        Filled: derivatives by the state of :math:`\mu / \sqrt v` at fixed v, and of
        :math:`\tfrac12 \log v`.
    by_score : ndarray (r, p)
        Filled: derivatives of u by the parameters of the marginals.

    Returns
    -------
    int, int
        As in :func:`terms`.
    """
    most = which.neighbours.shape[1]
    room = _room(most, inputs, state)
    scores, b, a = np.empty(most + 1), np.empty(most + 1), np.empty(most + 1)
    n_tasks, columns, jittered = offsets.shape[0] - 1, moves.shape[1], 0
    for r in range(which.rows.shape[0]):
        i, m, row, weight = which.rows[r], which.counts[r], which.neighbours[r], which.weights[r]
        own = _gather_term(room, row, m, i, inputs, sites, offsets, extra)
        _correlate(room, state, own, True)
        shared = _share(room, state, own, True) if n_tasks > 1 else 0
        attempt = _factorise_with_jitter(room, own, m + 1)
        if attempt < 0:
            return jittered, r
        jittered += 1 if attempt > 0 else 0
        for j in range(m):
            scores[j] = w[row[j]]
        scores[m] = w[i]
        u = _solve_term(room, m + 1, scores, b, a)
        each[r, 0], each[r, 1] = u, 2.0 * math.log(room.matrix[m, m])
        for j in range(m):
            alpha[row[j]] += weight * u * b[j]
        alpha[i] += weight * u * b[m]
        for k in range(columns):
            by_score[r, k] = b[m] * moves[i, k]
        for j in range(m):
            for k in range(columns):
                by_score[r, k] += b[j] * moves[row[j], k]
        flat[:] = 0.0
        _weigh(room, own, 0.0, 1.0, b, a)
        _contract(room, state, own, shared, by)
        by_mean[r, :] = flat
        flat[:] = 0.0
        _weigh(room, own, 1.0, 0.0, b, a)
        _contract(room, state, own, shared, by)
        by_variance[r, :] = flat
    return jittered, -1


class _Sites(NamedTuple):
    """Intervals among the neighbours of one term, then what is asked for; all given the numbers."""

    place: npt.NDArray[np.int64]  # (size,): of each neighbour in the matrix, numbers first
    limits: npt.NDArray[np.float64]  # (2, size)
    mean: npt.NDArray[np.float64]  # (size,): what the numbers say
    score: npt.NDArray[np.float64]  # (size,): of stand-ins, or of a number that is asked for
    extra: npt.NDArray[np.float64]  # (size,): variances of their errors
    cavity: npt.NDArray[np.float64]  # (3, size): mean, variance, log mass they are for
    inverse: npt.NDArray[np.float64]  # (size, size): of the covariance with these errors
    alpha: npt.NDArray[np.float64]  # (size,): that times how far scores are from the mean
    before: npt.NDArray[np.float64]  # (size + 1, size): both without what is asked for
    by: npt.NDArray[np.float64]  # (2, size): derivatives by limits
    row: npt.NDArray[np.float64]  # (size,)
    gains: npt.NDArray[np.float64]  # (size, size): of numbers, by interval
    known: npt.NDArray[np.float64]  # (size,): the inverse covariance of numbers times them
    full: npt.NDArray[np.float64]  # (size + 2, size): derivatives by pairs, and alphas


@vectorised
def _sites(most):
    """Make room for the intervals of a term."""
    size = most + 1
    return _Sites(
        np.empty(size, np.int64),
        np.empty((2, size)),
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty((3, size)),
        np.empty((size, size)),
        np.empty(size),
        np.empty((size + 1, size)),
        np.empty((2, size)),
        np.empty(size),
        np.empty((size, size)),
        np.empty(size),
        np.empty((size + 2, size)),
    )


@vectorised
def _cut(a, b):
    """Return log mass, mean, variance and one minus it of a standard normal law in [a, b].

    As :func:`xcopula.process.intervals.truncate` does, where a is the limit nearer to the centre.
    """
    if a > _FAR or b - a < _NARROW:
        reach = 2.0 * _DECAY / (math.sqrt(a * a + 2.0 * _DECAY) + abs(a))
        half = 0.5 * (min(b - a, reach) if a > 0.0 else b - a)
        total, mean, square = 0.0, 0.0, 0.0
        for k in range(_NODES.shape[0]):
            t = half * (1.0 + _NODES[k])
            weight = _WEIGHTS[k] * math.exp(-t * (a + 0.5 * t))
            total += weight
            mean += weight * t
        mean /= total
        for k in range(_NODES.shape[0]):
            t = half * (1.0 + _NODES[k])
            square += _WEIGHTS[k] * math.exp(-t * (a + 0.5 * t)) * (t - mean) ** 2
        square /= total
        return math.log(half * total) - 0.5 * a * a - _LOG_ROOT, a + mean, square, 1.0 - square
    mass = 0.5 * math.erfc(a * _ROOT_HALF)
    at_a, at_b = math.exp(-0.5 * a * a - _LOG_ROOT), 0.0
    if not math.isinf(b):
        mass -= 0.5 * math.erfc(b * _ROOT_HALF)
        at_b = math.exp(-0.5 * b * b - _LOG_ROOT) / mass
    at_a /= mass
    mean = at_a - at_b
    gain = mean * mean
    if not math.isinf(b):
        gain += b * at_b
    if not math.isinf(a):
        gain -= a * at_a
    return math.log(mass), mean, 1.0 - gain, max(gain, 0.0)


@vectorised
def _truncate(mean, variance, low, high):
    """Return log mass, shift of the mean, variance and gain of a normal law between limits."""
    scale = math.sqrt(variance)
    a, b = (low - mean) / scale, (high - mean) / scale
    flip = b < -a
    log_mass, shift, left, gain = _cut(-b if flip else a, -a if flip else b)
    return log_mass, scale * (-shift if flip else shift), variance * left, gain


@vectorised
def _stand_in(mean, variance, low, high):
    """Return score and extra variance of what stands in for an interval, and its log mass."""
    log_mass, shift, left, gain = _truncate(mean, variance, low, high)
    extra = min(max(left / gain, 1.0 / _MOST), 1.0 / _LEAST)
    # Where an interval says next to nothing its pull is kept; where it is a number, its score.
    score = mean + shift / gain if gain > left else (mean * gain + shift) / left * extra
    return score, extra, log_mass


@vectorised
def _append(own, k, matrix, first, interval):
    """Add what comes after k others; return the log of its variance, with its error, given them.

    From ``first`` on the matrix has the covariance given the numbers. The first stand-in of an
    interval is what those before it say. NaN if there is no variance.
    """
    inverse, alpha, row = own.inverse, own.alpha, own.row
    mean, variance, column = own.mean[k], matrix[first + k, first + k], first + k
    for h in range(k):
        total = 0.0
        for j in range(k):
            total += inverse[h, j] * matrix[first + j, column]
        row[h] = total
        variance -= total * matrix[first + h, column]
        mean += alpha[h] * matrix[first + h, column]
    if not variance > _LEAST_PIVOT:
        return math.nan
    if interval:
        found = _stand_in(mean, variance, own.limits[0, k], own.limits[1, k])
        own.score[k], own.extra[k], own.cavity[2, k] = found
        own.cavity[0, k], own.cavity[1, k] = mean, variance
    pivot = 1.0 / (variance + own.extra[k])
    off = (own.score[k] - mean) * pivot
    for h in range(k):
        factor = row[h] * pivot
        for j in range(k):
            inverse[h, j] += factor * row[j]
        inverse[h, k] = inverse[k, h] = -factor
        alpha[h] -= row[h] * off
    inverse[k, k], alpha[k] = pivot, off
    return -math.log(pivot)


@vectorised
def _settle(own, intervals, count):
    """Renew stand-ins, one after the other, until no cavity moves.

    The cavity of an interval is what all others say of it: mean and variance. Return what the
    logarithm of the determinant gains, NaN if they do not settle.
    """
    inverse, alpha, row, limits = own.inverse, own.alpha, own.row, own.limits
    scores, extras, cavity, total = own.score, own.extra, own.cavity, 0.0
    for _ in range(_SWEEPS):
        moved = False
        for j in range(intervals):
            own_precision, old, old_score = inverse[j, j], extras[j], scores[j]
            variance = max(1.0 / own_precision - old, _TINY)
            mean = old_score - alpha[j] / own_precision
            off, wider = mean - cavity[0, j], abs(variance - cavity[1, j])
            if wider < _SETTLED * variance and off * off < _SETTLED * _SETTLED * variance:
                continue
            moved = True
            score, extra, log_mass = _stand_in(mean, variance, limits[0, j], limits[1, j])
            factor = (variance + extra) * own_precision
            share = (extra - old) / factor
            step = (score - old_score) / factor - share * alpha[j]
            for h in range(count):
                row[h] = inverse[j, h]
            for h in range(count):
                by = share * row[h]
                alpha[h] += step * row[h]
                for k in range(count):
                    inverse[h, k] -= by * row[k]
            scores[j], extras[j] = score, extra
            cavity[0, j], cavity[1, j], cavity[2, j] = mean, variance, log_mass
            total += math.log(factor)
        if not moved:
            return total
    return math.nan


@vectorised
def _log_probability(own, intervals, count, sign):
    """Return the log probability of what was added, without the determinant.

    Add its derivatives by limits as often as ``sign`` says.
    """
    total = 0.0
    for j in range(count):
        total -= 0.5 * own.alpha[j] * (own.score[j] - own.mean[j])
    for j in range(intervals):
        # By the cavity that its stand-in was made for a term does not change, so it is as good.
        mean, variance, log_mass = own.cavity[0, j], own.cavity[1, j], own.cavity[2, j]
        whole, off, scale = variance + own.extra[j], own.score[j] - mean, math.sqrt(variance)
        total += log_mass + 0.5 * (math.log(whole) + off * off / whole)
        for end in range(2):
            if not math.isinf(own.limits[end, j]):
                at = (own.limits[end, j] - mean) / scale
                slope = math.exp(-0.5 * at * at - _LOG_ROOT - log_mass) / scale
                own.by[end, j] += sign * slope if end == 1 else -sign * slope
    return total


@vectorised
def _log_density(own, matrix, first, count, interval):
    """Return the log density of what is asked for, or of an interval the log of its probability.

    Given all before it: the probability of all, less that without it. NaN if the covariance is
    singular, infinite if expectation propagation does not settle.
    """
    value, determinant, m = 0.0, 0.0, count - 1
    own.by[:, :count] = 0.0
    for size in range(m, count + 1):
        asked = size == count
        for k in range(m if asked else 0, size):
            determinant += _append(own, k, matrix, first, interval or k < m)
        intervals = count if asked and interval else m
        gained = _settle(own, intervals, size)
        if math.isnan(gained) and not math.isnan(determinant):
            return math.inf
        determinant += gained
        sign = 1.0 if asked else -1.0
        value += sign * (_log_probability(own, intervals, size, sign) - 0.5 * determinant)
        if not asked:
            for h in range(m):
                for j in range(m):
                    own.before[h, j] = own.inverse[h, j]
                own.before[h, m], own.before[m, h] = 0.0, 0.0
                own.before[count, h] = own.alpha[h]
            own.before[m, m], own.before[count, m] = 0.0, 0.0
    return value


@vectorised
def _arrange(own, row, count, i, inside, limits):
    """Give each neighbour its place in the matrix, numbers first; return how many these are."""
    numbers, number = 0, 0
    for b in range(count):
        numbers += 0 if inside[row[b]] else 1
    interval = numbers
    for b in range(count):
        if inside[row[b]]:
            own.place[b] = interval
            for end in range(2):
                own.limits[end, interval - numbers] = limits[end, row[b]]
            interval += 1
        else:
            own.place[b] = number
            number += 1
    own.place[count] = count
    for end in range(2):
        own.limits[end, count - numbers] = limits[end, i]
    return numbers


@vectorised
def _fill_arranged(room, place, own, diagonal):
    """Write the covariance to the upper triangle of the matrix, each neighbour at its place."""
    at = 0
    for high in range(own[0] + 1):
        for low in range(high + 1):
            for h in range(room.starts[high], room.starts[high + 1]):
                a = place[h]
                for j in range(room.starts[low], h if high == low else room.starts[low + 1]):
                    b = place[j]
                    room.matrix[min(a, b), max(a, b)] = room.covariance[at]
                    at += 1
    for h in range(room.starts[own[0] + 1]):
        room.matrix[h, h] = diagonal


@vectorised
def _regress(own, matrix, numbers, size):
    """Write what numbers, of which scores are in ``known``, tell of the others.

    Scores are overwritten by the inverse covariance of the numbers times them.
    """
    count, known, gains, mean = size - numbers, own.known, own.gains, own.mean
    mean[:count] = 0.0
    for k in range(numbers):
        row = matrix[k]
        known[k] /= row[k]
        for j in range(k + 1, numbers):
            known[j] -= row[j] * known[k]
        for j in range(count):
            mean[j] += row[numbers + j] * known[k]
    for k in range(numbers - 1, -1, -1):
        row, into = matrix[k], gains[k]
        for j in range(count):
            into[j] = row[numbers + j]
        for h in range(k + 1, numbers):
            factor, other = row[h], gains[h]
            known[k] -= factor * known[h]
            for j in range(count):
                into[j] -= factor * other[j]
        known[k] /= row[k]
        for j in range(count):
            into[j] /= row[k]


@vectorised
def _spread(own, numbers, size):
    """Write derivatives by the covariance of intervals, and then of numbers, to ``full``.

    Its last two rows are the inverse covariance times all scores, with what is asked for and
    without.
    """
    count, full, gains = size - numbers, own.full, own.gains
    after, before = full[size], full[size + 1]
    for h in range(count):
        after[numbers + h], before[numbers + h] = own.alpha[h], own.before[count, h]
        for j in range(count):
            full[numbers + h, numbers + j] = own.inverse[h, j] - own.before[h, j]
    for k in range(numbers):
        into, gain = full[k], gains[k]
        after[k], before[k] = own.known[k], own.known[k]
        for j in range(count):
            into[numbers + j] = 0.0
            after[k] -= gain[j] * own.alpha[j]
            before[k] -= gain[j] * own.before[count, j]
        for h in range(count):
            factor, source = gain[h], full[numbers + h]
            for j in range(count):
                into[numbers + j] -= factor * source[numbers + j]
        for h in range(k + 1):
            total, source = 0.0, gains[h]
            for j in range(count):
                total -= into[numbers + j] * source[j]
            full[h, k] = total


@vectorised
def _weigh_arranged(room, own, sites, weight):
    """Write the derivative by each pair's covariance to the second row of ``work``."""
    size, at = room.starts[own[0] + 1], 0
    after, before = sites.full[size], sites.full[size + 1]
    for high in range(own[0] + 1):
        for low in range(high + 1):
            for h in range(room.starts[high], room.starts[high + 1]):
                a = sites.place[h]
                for j in range(room.starts[low], h if high == low else room.starts[low + 1]):
                    b = sites.place[j]
                    part = sites.full[min(a, b), max(a, b)]
                    part += before[a] * before[b] - after[a] * after[b]
                    room.work[1, at] = weight * part
                    at += 1


@vectorised
def _add_slopes(own, row, count, i, inside, numbers, weight, alpha, ends):
    """Add the derivatives of a term by scores of numbers and by limits of intervals."""
    others = count + 1 - numbers
    for b in range(count + 1):
        at, place = (row[b] if b < count else i), own.place[b]
        if inside[at]:
            for end in range(2):
                ends[end, at] -= weight * own.by[end, place - numbers]
        elif b == count:
            alpha[at] += weight * own.alpha[others - 1]
        else:
            for j in range(others):
                change = own.alpha[j] - own.before[others, j]
                alpha[at] -= weight * own.gains[place, j] * change


@vectorised
def interval_terms(
    which, inputs, sites, offsets, w, inside, limits, state, gradient, each, alpha, ends, by
):
    r"""Evaluate terms of a likelihood that have intervals, and add up what they leave.

    The density of an observation given its neighbours is that of all, less that of the neighbours.
    Both by expectation propagation among them alone, see :mod:`xcopula.process.intervals`: so each
    term has a derivative of its own. With all that come before as neighbours the sum is exact.

    Parameters
    ----------
    which, inputs, sites, offsets, state
        As in :func:`terms`.
    w : ndarray (n,)
        Normal scores of numbers.
    inside : ndarray (n,), bool
        Which are intervals.
    limits : ndarray (2, n)
        Their limits as scores.
    gradient : bool
        Whether to add to ``by``.
    each : ndarray (r,)
        Filled: log densities; of a number without half the log of 2 pi.
    alpha : ndarray (n,)
        What is added is the derivative of the negative sum by scores of numbers.
    ends : ndarray (2, n)
        The same by limits.
    by : Contraction

    Returns
    -------
    int, int, bool
        How many matrices needed a jitter, the first term that no jitter helps, -1 as a rule, and
        whether expectation propagation did not settle there.
    """
    most = which.neighbours.shape[1]
    room, own_sites, none = _room(most, inputs, state), _sites(most), np.zeros(inputs.shape[1])
    n_tasks, jittered = offsets.shape[0] - 1, 0
    for r in range(which.rows.shape[0]):
        i, m, row, weight = which.rows[r], which.counts[r], which.neighbours[r], which.weights[r]
        own = _gather_term(room, row, m, i, inputs, sites, offsets, none)
        _correlate(room, state, own, gradient)
        shared = _share(room, state, own, True) if n_tasks > 1 else 0
        numbers = _arrange(own_sites, row, m, i, inside, limits)
        value, attempt = math.nan, 0
        while attempt < len(_JITTERS) and not math.isfinite(value):
            _fill_arranged(room, own_sites.place, own, 1.0 + _JITTERS[attempt])
            if _factorise(room.matrix, m + 1, numbers):
                for b in range(m):
                    if not inside[row[b]]:
                        own_sites.known[own_sites.place[b]] = w[row[b]]
                own_sites.score[m - numbers], own_sites.extra[m - numbers] = w[i], 0.0
                _regress(own_sites, room.matrix, numbers, m + 1)
                value = _log_density(own_sites, room.matrix, numbers, m + 1 - numbers, inside[i])
            attempt += 1
        if not math.isfinite(value):
            return jittered, r, math.isinf(value)
        jittered += 1 if attempt > 1 else 0
        each[r] = value
        _add_slopes(own_sites, row, m, i, inside, numbers, weight, alpha, ends)
        if gradient:
            _spread(own_sites, numbers, m + 1)
            _weigh_arranged(room, own, own_sites, weight)
            _contract(room, state, own, shared, by)
    return jittered, -1, False


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
