"""Who is given whom: the order of the observations, and the neighbours that each one has.

Tasks come one after the other, the first one first. So its terms are those of the first task alone,
and the terms of the others are theirs given what comes before. Within a task the order is from
coarse to fine: early observations are spread out and know of long ranges.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from xcopula.arrays import FloatArray, IntArray
from xcopula.jit.choice import gather, pick, thin
from xcopula.jit.neighbours import Terms
from xcopula.kernels.assembly import floats, ints, ready
from xcopula.process import Process, Sample
from xcopula.solvers.near import Near, places, tree_of
from xcopula.solvers.threads import in_threads, thread_count

__all__ = [
    "Connected",
    "Graph",
    "choose",
    "connect",
    "link",
    "order",
]

# From one level of the order to the next the radius shrinks by this; when so many points have their
# place, the others stand too close for their order to matter.
_SHRINK = 2.0**-0.5
_ENOUGH = 0.6
# Points that are looked at for each that may be taken.
_LOOKED_AT = 15.0
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
    """

    rows: IntArray
    neighbours: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]
    weights: FloatArray

    @property
    def graph(self) -> Graph:
        """Itself: a part of the terms is chosen at once."""
        return self

    def take(self, which: npt.NDArray[np.bool_]) -> Graph:
        """Return some of the terms."""
        return Graph(*(getattr(self, f.name)[which] for f in fields(self)))

    def split(self, inside: npt.NDArray[np.bool_]) -> Split:
        """Divide terms into those of numbers and those that have intervals, ``inside`` (n,).

        Intervals are the same from one evaluation to the next: what was found last is kept.
        """
        last = self._kept.get("split")
        if last is None or not np.array_equal(last.inside, inside):
            there = np.arange(self.neighbours.shape[1]) < self.counts[:, None]
            mixed = inside[self.rows] | (inside[self.neighbours] & there).any(axis=1)
            last = self._kept["split"] = Split(inside, mixed, self.take(~mixed), self.take(mixed))
        return last

    @functools.cached_property
    def _kept(self) -> dict[str, Split]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        # What is kept is found again: it does not travel.
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def terms(self, part: slice = slice(None)) -> Terms:
        """Return some of the terms as the compiled loops read them."""
        # A copy where the arrays are closed: compiled code is for writeable ones.
        return Terms(
            np.require(self.rows[part], np.int64, ["C", "W"]),
            np.require(self.weights[part], np.float64, ["C", "W"]),
            np.require(self.neighbours[part], np.int32, ["C", "W"]),
            np.require(self.counts[part], np.int32, ["C", "W"]),
        )


class Split(NamedTuple):
    """The terms of a graph, divided.

    Attributes
    ----------
    inside : ndarray (n,), bool
        Which observations are intervals.
    mixed : ndarray (r,), bool
        Which terms have some, among their neighbours or as what is asked for.
    numbers, intervals : Graph
        The terms without and with intervals.
    """

    inside: npt.NDArray[np.bool_]
    mixed: npt.NDArray[np.bool_]
    numbers: Graph
    intervals: Graph


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

    @functools.cached_property
    def kept(self) -> dict[str, Any]:
        """What was found out about the sample on the way."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        # Neighbours are found again: they do not travel.
        return {f.name: getattr(self, f.name) for f in fields(self)}


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
    return link(near, rank, rows, np.ones(rows.size), most, workers)


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
    # One after the other in memory, as they are looked at.
    mixed, numbers = points[shuffled], np.arange(n)
    out, taken, away, filled = np.empty(n, np.int64), np.zeros(n, np.bool_), np.full(n, np.inf), 0
    radius = 0.5 * float(np.ptp(points, axis=0).max())
    least = 1e-9 * radius
    while filled < _ENOUGH * n and radius > least:
        # Where few can be taken not all need be looked at.
        some = int(_LOOKED_AT * max(filled, 10) * _SHRINK ** -points.shape[1])
        filled = thin(mixed, numbers[:some], radius, taken, away, out, filled)
        radius *= _SHRINK
    out[filled:] = np.flatnonzero(~taken)
    return shuffled[out]


def link(
    near: Near,
    rank: IntArray,
    rows: IntArray,
    weights: FloatArray,
    most: int,
    workers: int,
) -> Graph:
    """Find the neighbours of some observations."""
    sample = near.sample
    neighbours = np.zeros((rows.size, most), np.int32)
    counts = np.zeros(rows.size, np.int32)
    metrics = [places(near.inputs, lengths) for lengths in near.metrics]
    for i in range(sample.tasks):
        task = sample.task(i)
        mine = np.flatnonzero((rows >= task.start) & (rows < task.stop))
        if not mine.size:
            continue
        own = rows[mine]
        found = []
        for j, where in itertools.product(range(i + 1), metrics):
            other, wide = sample.task(j), near.candidates(most, own=i == j)
            before = _preceding(where[own], rank[own], where[other], rank[other], wide, workers)
            found.append(np.where(before >= 0, before + other.start, -1).astype(np.int32))
        candidates = np.concatenate(found, axis=1)
        if len(metrics) > 1:
            candidates = _once(candidates)
        points = np.ascontiguousarray(near.inputs[:, own])
        given = near, points, sample.sites[own], i, candidates, most
        if len(metrics) > 1:
            neighbours[mine], counts[mine] = _choose_by_gain(*given, workers)
        else:
            neighbours[mine], counts[mine] = choose(*given)
    return Graph(rows, neighbours, counts, weights)


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
    structures = len(near.metrics) - 1
    each = int(_BY_STRUCTURE * most / structures) if structures else 0
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


def _choose_by_gain(
    near: Near,
    points: FloatArray,
    sites: IntArray,
    task: int,
    candidates: npt.NDArray[np.int32],
    most: int,
    workers: int,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return neighbours (r, m) and their numbers: one after the other, each that tells most.

    Where structures measure nearness in different ways, covariances mislead: a value the same day
    tells of the day only with the history of its place.
    """
    sample, state = near.sample, ready(near.state)
    out = np.zeros((len(candidates), most), np.int32)
    counts = np.zeros(len(candidates), np.int32)
    points, sites = floats(points), ints(sites)

    def run(part: slice) -> None:
        gather(
            np.ascontiguousarray(points[:, part]),
            sites[part],
            task,
            candidates[part],
            near.inputs,
            ints(sample.sites),
            ints(sample.offsets),
            state,
            out[part],
            counts[part],
        )

    ends = np.linspace(0, len(candidates), max(workers, 1) + 1).astype(int)
    in_threads(run, [slice(a, b) for a, b in itertools.pairwise(ends)])
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
