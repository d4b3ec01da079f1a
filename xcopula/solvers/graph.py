"""Who is given whom: the order of the observations, and the neighbours that each one has.

Tasks come one after the other, the first one first. So its terms are those of the first task alone,
and the terms of the others are theirs given what comes before. Within a task the order is from
coarse to fine: early observations are spread out and know of long ranges.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from xcopula.jit.choice import pick, thin
from xcopula.jit.neighbours import Terms
from xcopula.kernels.assembly import floats, ints, ready, scaled_inputs
from xcopula.kernels.covariance import CovarianceState
from xcopula.process import Process, Sample
from xcopula.solvers.threads import thread_count

__all__ = [
    "WIDER",
    "Connected",
    "Graph",
    "Near",
    "choose",
    "connect",
    "link",
    "order",
    "places",
    "tree_of",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# From one level of the order to the next the radius shrinks by this; when so many points have their
# place, the others stand too close for their order to matter.
_SHRINK = 2.0**-0.5
_ENOUGH = 0.6
# Points that are looked at for each that may be taken.
_LOOKED_AT = 15.0
# Where distance alone does not tell who matters, so many times the neighbours are looked at.
WIDER = 1.5
# Where structures measure nearness in different ways, this part of the neighbours is theirs by
# equal shares, each the nearest in its own way.
_BY_STRUCTURE = 0.5
# A share of the observations that is few.
_FEW = 0.2
# Queries of a tree at a time, so that what is found of them stays small.
_BATCH = 2**16


@dataclass(frozen=True)
class Graph:
    """Terms of a likelihood: observations, each given its neighbours.

    Attributes
    ----------
    rows : ndarray (r,)
        The observations that have a term, near ones one after the other.
    neighbours : ndarray (r, m), int32
        Observations before each in the order, by increasing number.
    counts : ndarray (r,), int32
        How many there are.
    weights : ndarray (r,)
        How often each term counts: more than once where it stands for others.
    clusters : ndarray (r,), int32
        Which terms were drawn together; -1 for those that stand for themselves.
    """

    rows: IntArray
    neighbours: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]
    weights: FloatArray
    clusters: npt.NDArray[np.int32]

    @property
    def graph(self) -> Graph:
        """Itself: a part of the terms is chosen at once."""
        return self

    def terms(self, part: slice = slice(None)) -> Terms:
        """Return some of the terms as the compiled loops read them."""
        # A copy where the arrays are closed: compiled code is for writeable ones.
        return Terms(
            np.require(self.rows[part], np.int64, ["C", "W"]),
            np.require(self.weights[part], np.float64, ["C", "W"]),
            np.require(self.neighbours[part], np.int32, ["C", "W"]),
            np.require(self.counts[part], np.int32, ["C", "W"]),
        )


@dataclass(frozen=True)
class Near:
    """A sample in the metric in which neighbours are near.

    Attributes
    ----------
    sample : Sample
    state : CovarianceState
    inputs : ndarray (d, n)
        Scaled as the covariance wants them.
    places : ndarray (n, d)
        In units of the length scales.
    lengths : ndarray (d,)
        These, for each column: a mean over structures.
    metrics : ndarray (k, d)
        Lengths of each structure, where these measure nearness in different ways: what is the same
        at a place all year, and what is the same everywhere on a day. Else the mean alone.
    """

    sample: Sample
    state: CovarianceState
    inputs: FloatArray
    places: FloatArray
    lengths: FloatArray
    metrics: FloatArray

    @classmethod
    def of(cls, process: Process, theta: FloatArray, sample: Sample) -> Near:
        """Measure a sample by the covariance at theta."""
        state = process.state(theta)
        inputs = scaled_inputs(sample.inputs, state)
        lengths, metrics = _metrics(process, theta)
        return cls(sample, state, inputs, places(inputs, lengths), lengths, metrics)

    @property
    def distance_decides(self) -> bool:
        """Whether the nearest are those of largest covariance: one task, one group."""
        return self.sample.tasks == 1 and len(self.state.groups) == 2

    def candidates(self, most: int) -> int:
        """Return how many observations of a task are looked at, in each metric, for so many."""
        if self.distance_decides or len(self.metrics) > 1:
            return most
        return int(np.ceil(WIDER * most))


@dataclass(frozen=True)
class Connected:
    """A sample whose neighbours are chosen when they are first needed: a prediction needs none.

    Attributes
    ----------
    process : Process
    theta : ndarray
        Neighbours are those that suit these parameters.
    sample : Sample
    most : int
        How many neighbours an observation has.
    given : int
        So many tasks are given: they have no terms.
    """

    process: Process
    theta: FloatArray
    sample: Sample
    most: int
    given: int

    @functools.cached_property
    def graph(self) -> Graph:
        """The terms."""
        near = Near.of(self.process, self.theta, self.sample)
        return connect(near, self.most, given=self.given, workers=thread_count())

    def __getstate__(self) -> dict[str, Any]:
        # Neighbours are found again: they do not travel.
        return {f.name: getattr(self, f.name) for f in fields(self)}


def _metrics(process: Process, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a length (d,) for each column, that of its group, and lengths (k, d) by structure.

    The mean of logarithms, each task and structure counted by its share of the variance. In one
    group structures differ by a factor, which changes no order of distances.
    """
    covariance = process.covariance
    own = theta[: covariance.size]
    lengths = covariance.part(own, "length")  # (q, g, t or 1)
    shares = np.diagonal(covariance.matrices(own)[:-1], axis1=1, axis2=2)  # (q, t)
    logs = (lengths * shares[:, None, :]).sum(axis=2)  # (q, g)
    columns = [g.size for g in covariance.groups]
    mean = np.repeat(np.exp(logs.sum(axis=0) / shares.sum()), columns)
    if len(columns) == 1 or len(lengths) == 1:
        return mean, mean[None]
    each = np.exp(logs / shares.sum(axis=1, keepdims=True))
    return mean, np.repeat(each, columns, axis=1)


def places(inputs: FloatArray, lengths: FloatArray) -> FloatArray:
    """Return inputs (d, n) in units of lengths, as rows (n, d)."""
    return np.ascontiguousarray((inputs / lengths[:, None]).T)


def tree_of(points: FloatArray) -> Any:
    """Return a tree of points (n, d); sliding midpoints, which coordinates that repeat need."""
    from scipy.spatial import cKDTree

    return cKDTree(points, balanced_tree=False, compact_nodes=False)


def connect(near: Near, most: int, *, given: int, workers: int) -> Graph:
    """Choose the neighbours of all observations.

    Parameters
    ----------
    near : Near
    most : int
        How many neighbours an observation has.
    given : int
        So many tasks are given: they have no terms.
    workers : int
        Threads of the search.
    """
    rank = order(near)
    first = int(near.sample.offsets[given])
    rows = first + tree_of(near.places[first:]).indices.astype(np.int64)
    none = np.full(rows.size, -1, np.int32)
    return link(near, rank, rows, np.ones(rows.size), none, most, workers)


def order(near: Near) -> IntArray:
    """Return the place (n,) of each observation in the order."""
    rank = np.empty(near.sample.size, np.int64)
    for i in range(near.sample.tasks):
        own = near.sample.task(i)
        points = np.ascontiguousarray(near.places[own])
        rank[own.start + _coarse_to_fine(points)] = np.arange(own.start, own.stop)
    return rank


def _coarse_to_fine(points: FloatArray) -> IntArray:
    """Return an order of points (n, d): each level leaves half the distance of the one before."""
    n = len(points)
    # Sorted, then shuffled: the order in which the data came does not matter.
    shuffled = np.lexsort(points.T)[np.random.default_rng(0).permutation(n)]
    out, taken, filled = np.empty(n, np.int64), np.zeros(n, np.bool_), 0
    radius = 0.5 * float(np.ptp(points, axis=0).max())
    least = 1e-9 * radius
    while filled < _ENOUGH * n and radius > least:
        # Where few can be taken not all need be looked at.
        some = int(_LOOKED_AT * max(filled, 10) * _SHRINK ** -points.shape[1])
        filled = thin(points, shuffled[:some], radius, taken, out, filled)
        radius *= _SHRINK
    out[filled:] = shuffled[~taken[shuffled]]
    return out


def link(
    near: Near,
    rank: IntArray,
    rows: IntArray,
    weights: FloatArray,
    clusters: npt.NDArray[np.int32],
    most: int,
    workers: int,
) -> Graph:
    """Find the neighbours of some observations."""
    sample = near.sample
    neighbours = np.zeros((rows.size, most), np.int32)
    counts = np.zeros(rows.size, np.int32)
    wide = near.candidates(most)
    metrics = [places(near.inputs, lengths) for lengths in near.metrics]
    for i in range(sample.tasks):
        task = sample.task(i)
        mine = np.flatnonzero((rows >= task.start) & (rows < task.stop))
        if not mine.size:
            continue
        own = rows[mine]
        found = []
        for j, where in itertools.product(range(i + 1), metrics):
            other = sample.task(j)
            before = _preceding(where[own], rank[own], where[other], rank[other], wide, workers)
            found.append(np.where(before >= 0, before + other.start, -1).astype(np.int32))
        candidates = np.concatenate(found, axis=1)
        if len(metrics) > 1:
            candidates = _once(candidates)
        points = np.ascontiguousarray(near.inputs[:, own])
        neighbours[mine], counts[mine] = choose(
            near, points, sample.sites[own], i, candidates, most
        )
    return Graph(rows, neighbours, counts, weights, clusters)


def _once(candidates: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return candidates (r, c) without those that were found before: each again is -1."""
    ordered = np.sort(candidates, axis=1)
    ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = -1
    return ordered


def choose(
    near: Near,
    points: FloatArray,
    sites: IntArray,
    task: int,
    candidates: npt.NDArray[np.int32],
    most: int,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the neighbours (r, m) of points (d, r) among candidates (r, c), and their numbers.

    Those of largest covariance, but some of every task, and some of each structure where these
    measure nearness in different ways. Candidates below zero are none.
    """
    sample = near.sample
    out = np.zeros((len(candidates), most), np.int32)
    counts = np.zeros(len(candidates), np.int32)
    if near.distance_decides:
        kept = candidates[:, :most]
        counts[:] = (kept >= 0).sum(axis=1)
        # What is none goes last.
        ordered = np.sort(kept.view(np.uint32), axis=1).view(np.int32)
        out[:, : kept.shape[1]] = np.maximum(ordered, 0)
        return out, counts
    least = max(1, most // (3 * sample.tasks)) if sample.tasks > 1 else 0
    several = len(near.metrics)
    each = int(_BY_STRUCTURE * most / several) if several > 1 else 0
    pick(
        floats(points),
        ints(sites),
        task,
        candidates,
        near.inputs,
        ints(sample.sites),
        ints(sample.offsets),
        ready(near.state),
        least,
        each,
        out,
        counts,
    )
    return out, counts


def _preceding(
    query: FloatArray,
    query_rank: IntArray,
    points: FloatArray,
    point_rank: IntArray,
    count: int,
    workers: int,
) -> npt.NDArray[np.int32]:
    """Return the nearest points of lower rank, (queries, count), -1 where there are fewer.

    Trees of growing parts of the order: in a tree of half as many points again as precede a query,
    somewhat more neighbours than are wanted hold enough that do.
    """
    out = np.full((len(query), count), -1, np.int32)
    by_rank = np.argsort(point_rank)
    ordered = points[by_rank]
    queue = np.argsort(query_rank)
    before = np.searchsorted(point_rank[by_rank], query_rank[queue])
    low = int(np.searchsorted(before, 1))
    # Trees take longer than a few queries do: these share a tree of more points.
    growth = 1.5 if len(query) > _FEW * len(points) else 4.0
    while low < len(queue):
        least = int(before[low])
        high = int(np.searchsorted(before, max(growth * least, 64), side="right"))
        size = int(before[high - 1])
        tree = tree_of(ordered[:size])
        wanted = count if least == size else int(count * (0.2 + 0.8 * size / least)) + 6
        for start in range(low, high, _BATCH):
            todo = np.arange(start, min(start + _BATCH, high))
            k = wanted
            while todo.size:
                k = min(k, size)
                _, found = tree.query(query[queue[todo]], k=np.arange(1, k + 1), workers=workers)
                precedes = found < before[todo][:, None]
                place = np.cumsum(precedes, axis=1, dtype=np.int32) - 1
                done = (place[:, -1] + 1 >= np.minimum(count, before[todo])) | (k == size)
                r, c = np.nonzero(precedes & (place < count) & done[:, None])
                out[queue[todo[r]], place[r, c]] = by_rank[found[r, c]]
                todo = todo[~done]
                k *= 3
        low = high
    return out
