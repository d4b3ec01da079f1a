"""Choose neighbours: an order from coarse to fine, and candidates by covariance or by gain."""

from __future__ import annotations

import math

import numpy as np

from xcopula.jit.compiler import compiled, vectorised

__all__ = ["gather", "pick", "thin"]

# A candidate that the chosen ones explain to this part of its variance tells nothing more.
_EXPLAINED = 1e-9


@vectorised
def _correlation(squared, inverse_range, coefficients):
    """Return a tabulated correlation at a squared distance."""
    cells = coefficients.shape[0] - 1
    position = cells * math.sqrt(math.sqrt(math.sqrt(squared) * inverse_range))
    position = position if position < cells else float(cells)
    cell = np.uint32(position)
    u, c = position - cell, coefficients[cell]
    return c[0] + u * (c[1] + u * (c[2] + u * (c[3] + u * (c[4] + u * c[5]))))


@vectorised
def _covariance(point, task, other, other_task, state, parts):
    """Return the signal's covariance of two points of two tasks; write what each structure has."""
    total = 0.0
    for q in range(state.amplitudes.shape[0]):
        product = state.amplitudes[q, task, other_task]
        for g in range(state.groups.shape[0] - 1):
            squared = 0.0
            for c in range(state.groups[g], state.groups[g + 1]):
                squared += (point[c] - other[c]) ** 2
            t = state.tables[q, g, task, other_task]
            product *= _correlation(squared, state.ranges[t], state.coefficients[t])
        parts[q] = product
        total += product
    return total


@vectorised
def pick(
    points,
    point_sites,
    task,
    candidates,
    inputs,
    sites,
    offsets,
    state,
    least,
    each,
    out,
    counts,
):
    """Keep the candidates whose covariance with each point is largest, in increasing order.

    Parameters
    ----------
    points : ndarray (d, r)
        Scaled, of one task.
    point_sites : ndarray (r,), int64
    task : int
    candidates : ndarray (r, c), int32
        Observations; negative for none.
    inputs, sites, offsets, state
        As in :func:`terms`.
    least : int
        How many of each task are kept before covariances decide, where there are as many.
    each : int
        How many are then kept for each structure, by its own part of the covariance.
    out : ndarray (r, m), int32
        Filled.
    counts : ndarray (r,), int32
        Filled.
    """
    width, most = candidates.shape[1], out.shape[1]
    n_tasks = offsets.shape[0] - 1
    key, owner = np.empty(width), np.empty(width, np.int64)
    taken = np.zeros(n_tasks, np.int64)
    parts = np.zeros((width, state.amplitudes.shape[0]))
    for r in range(points.shape[1]):
        for c in range(width):
            j = candidates[r, c]
            key[c] = 1.0
            if j < 0:
                continue
            other = 0
            while j >= offsets[other + 1]:
                other += 1
            owner[c] = other
            total = _covariance(points[:, r], task, inputs[:, j], other, state, parts[c])
            if point_sites[r] >= 0 and sites[j] == point_sites[r]:
                total += state.nugget[task, other]
            key[c] = -abs(total)
        order = np.argsort(key)
        number = 0
        taken[:] = 0
        for c in order:
            if key[c] <= 0.0 and taken[owner[c]] < least and number < most:
                taken[owner[c]] += 1
                out[r, number] = candidates[r, c]
                number += 1
                key[c] = 2.0
        if each > 0:
            for q in range(parts.shape[1]):
                last = min(number + each, most)
                for c in np.argsort(-np.abs(parts[:, q])):
                    if key[c] <= 0.0 and number < last:
                        out[r, number] = candidates[r, c]
                        number += 1
                        key[c] = 2.0
        for c in order:
            if key[c] <= 0.0 and number < most:
                out[r, number] = candidates[r, c]
                number += 1
        out[r, :number] = np.sort(out[r, :number])
        counts[r] = number


@vectorised
def gather(points, point_sites, task, candidates, inputs, sites, offsets, state, out, counts):
    """Take candidates one after the other, each the one that then tells most of the point.

    The variance of a point given its neighbours is what a term loses to the whole: each candidate
    in turn is the one that lowers it most. What others have told already does not count twice, and
    what becomes telling through others does. Parameters as in :func:`pick`, which ranks candidates
    by covariance alone at a tenth of the cost.
    """
    (d, n_points), width, most = points.shape, candidates.shape[1], out.shape[1]
    key, variance, row = np.empty(width + 1), np.empty(width), np.empty(width + 1)
    # The candidates of a point, and last the point itself.
    x, owner = np.empty((d, width + 1)), np.empty(width + 1, np.int64)
    number, place = np.empty(width, np.int64), np.empty(width + 1, np.int64)
    roots = np.empty((state.groups.shape[0] - 1, width + 1))
    factor = np.empty((most, width))
    stretch = (state.coefficients.shape[1] - 1) * np.sqrt(np.sqrt(state.ranges))
    for r in range(n_points):
        n = 0
        for c in range(width):
            j = candidates[r, c]
            if j < 0:
                continue
            other = 0
            while j >= offsets[other + 1]:
                other += 1
            owner[n], number[n], place[n], variance[n] = other, j, sites[j], 1.0
            for k in range(d):
                x[k, n] = inputs[k, j]
            n += 1
        owner[n], place[n] = task, point_sites[r]
        for k in range(d):
            x[k, n] = points[k, r]
        _covariances(x, owner, place, n, n, state, stretch, roots, key)
        count = 0
        while count < most:
            best = _most_telling(key, variance, n)
            if best < 0:
                break
            out[r, count] = number[best]
            _covariances(x, owner, place, n, best, state, stretch, roots, row)
            _explain(key, variance, n, best, row, factor, count)
            count += 1
        out[r, :count] = np.sort(out[r, :count])
        counts[r] = count


@vectorised
def _covariances(x, owner, place, n, best, state, stretch, roots, out):
    """Write the covariance of one of the places (d, width) with the first n of them."""
    groups, cells = state.groups, state.coefficients.shape[1] - 1
    for g in range(groups.shape[0] - 1):
        own = roots[g]
        for k in range(groups[g], groups[g + 1]):
            at, column = x[k, best], x[k]
            if k == groups[g]:
                for c in range(n):
                    own[c] = (at - column[c]) * (at - column[c])
            else:
                for c in range(n):
                    own[c] += (at - column[c]) * (at - column[c])
        for c in range(n):
            own[c] = math.sqrt(math.sqrt(math.sqrt(own[c])))
    task = owner[best]
    for c in range(n):
        other, total = owner[c], 0.0
        for q in range(state.amplitudes.shape[0]):
            product = state.amplitudes[q, task, other]
            for g in range(groups.shape[0] - 1):
                t = state.tables[q, g, task, other]
                position = min(roots[g, c] * stretch[t], float(cells))
                cell = np.uint32(position)
                u, v = position - cell, state.coefficients[t, cell]
                product *= v[0] + u * (v[1] + u * (v[2] + u * (v[3] + u * (v[4] + u * v[5]))))
            total += product
        if place[best] >= 0 and place[c] == place[best]:
            total += state.nugget[task, other]
        out[c] = total


@vectorised
def _most_telling(key, variance, n):
    """Return the candidate that lowers the variance most, -1 where none is left."""
    best, most = -1, -1.0
    for c in range(n):
        if variance[c] > _EXPLAINED:
            gain = key[c] * key[c] / variance[c]
            if gain > most:
                best, most = c, gain
    return best


@vectorised
def _explain(key, variance, n, best, row, factor, step):
    """Take one candidate as given: what is left of the others' variance and covariance."""
    for k in range(step):
        known, other = factor[k, best], factor[k]
        for c in range(n):
            row[c] -= known * other[c]
    root = 1.0 / math.sqrt(variance[best])
    own, out = key[best] * root, factor[step]
    for c in range(n):
        out[c] = row[c] * root
        key[c] -= own * out[c]
        variance[c] -= out[c] * out[c]
    variance[best] = 0.0


@compiled
def _slot(point, low, radius, shift, size):
    """Return where in a hash of cells the points near a point are, a shift of cells away.

    Cells side by side along the last axis are so in memory: they are looked at together.
    """
    code = np.uint64(1469598103934665603)
    last = point.shape[0] - 1
    for c in range(last + 1):
        step = shift % 3 - 1
        shift //= 3
        cell = np.uint64(np.int64((point[c] - low[c]) / radius) + step + 1)
        if c < last:
            code = (code ^ cell) * np.uint64(1099511628211)
        else:
            code += cell
    return code & np.uint64(size - 1)


@compiled
def _blocked(points, i, low, radius, head, link):
    """Return the squared distance of a point in the hash within the radius of point i, or inf.

    Its own cell comes first: most that are blocked are so from there.
    """
    shifts = 3 ** points.shape[1]
    for k in range(shifts):
        shift = (k + shifts // 2) % shifts
        j = head[_slot(points[i], low, radius, shift, head.shape[0])]
        while j >= 0:
            squared = 0.0
            for c in range(points.shape[1]):
                squared += (points[i, c] - points[j, c]) ** 2
            if squared < radius * radius:
                return squared
            j = link[j]
    return np.inf


@compiled
def thin(points, order, radius, taken, away, out, filled):
    """Take points (n, d), in an order, that are farther than a radius from all that are taken.

    One level of an order from coarse to fine. ``taken`` (n,) is marked, ``out`` (n,) filled from
    ``filled`` on; returns how many are filled then. ``away`` (n,) is the squared distance of some
    point that was taken, infinite at first: it saves later levels the search.
    """
    n, d = points.shape
    size = 2
    while size < 2 * order.shape[0]:
        size *= 2
    head, link = np.full(size, -1, np.int64), np.empty(n, np.int64)
    low, middle = np.empty(d), (3**d - 1) // 2
    for c in range(d):
        low[c] = points[:, c].min()
    for k in range(filled):
        slot = _slot(points[out[k]], low, radius, middle, size)
        link[out[k]] = head[slot]
        head[slot] = out[k]
    for i in order:
        if taken[i] or away[i] < radius * radius:
            continue
        away[i] = _blocked(points, i, low, radius, head, link)
        if away[i] == np.inf:
            taken[i] = True
            out[filled] = i
            filled += 1
            slot = _slot(points[i], low, radius, middle, size)
            link[i] = head[slot]
            head[slot] = i
    return filled
