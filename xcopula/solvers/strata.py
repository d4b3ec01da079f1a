"""Terms that stand for all: a part of a likelihood that knows of short and of long ranges."""

from __future__ import annotations

import itertools

import numpy as np

from xcopula.arrays import FloatArray, IntArray
from xcopula.process import Sample
from xcopula.solvers.graph import Graph, link, order
from xcopula.solvers.near import Near, tree_of

__all__ = ["connect_some"]

# Terms of a part of the likelihood: of the first of the order all, of the others clusters.
_EARLY = 0.1
_CLUSTER = 16


def connect_some(
    near: Near, most: int, terms: int, *, given: int, workers: int
) -> tuple[Sample, Graph]:
    """Choose some terms that stand for all, and return the sample that they need with them.

    The earliest of each task count once, and so do its smallest and its largest value, which its
    law must admit. Of each later level of the order, clusters of near ones are taken at even steps
    along a curve through space: their neighbours are few, and no region is left out.
    """
    rank, sample = order(near), near.sample
    rows, weights = _choose(near, rank, terms, given)
    graph = link(near, rank, rows, weights, most, workers)
    used = np.zeros(sample.size, bool)
    used[rows] = True
    used[graph.neighbours[np.arange(most) < graph.counts[:, None]]] = True
    index = np.flatnonzero(used)
    number = np.cumsum(used) - 1
    small = Graph(
        number[rows],
        number[graph.neighbours].astype(np.int32),
        graph.counts,
        weights,
    )
    return sample.take(index), small


def _choose(near: Near, rank: IntArray, terms: int, given: int) -> tuple[IntArray, FloatArray]:
    """Return rows and weights of a subsample of terms."""
    sample = near.sample
    parts = []
    sizes = sample.sizes[given:]
    for i in range(given, sample.tasks):
        own = np.arange(sample.size)[sample.task(i)]
        share = max(terms * len(own) // sum(sizes), min(len(own), 2 * _CLUSTER))
        # The extremes come first.
        place = rank[own] - own[0]
        values = sample.values[own]
        place[[np.argmin(values), np.argmax(values)]] = -1
        parts.append(_strata(near.places[own], place, share, own[0]))
    rows, weights = map(np.concatenate, zip(*parts, strict=True))
    return rows, weights


def _strata(
    points: FloatArray, rank: IntArray, terms: int, start: int
) -> tuple[IntArray, FloatArray]:
    """Return rows and weights of one task's terms.

    The earliest are all there. Then each level of the order, twice as many as all before it, has a
    share: half of the terms go by the levels' sizes, half are the same for all.
    """
    near = tree_of(points).indices.astype(np.int64)
    edges = [-1, min(max(int(_EARLY * terms), 1), len(points))]
    while edges[-1] < len(points):
        edges.append(min(2 * edges[-1], len(points)))
    left, levels = terms - edges[1], len(edges) - 2
    parts = []
    for k, (low, high) in enumerate(itertools.pairwise(edges)):
        own = near[(rank[near] >= low) & (rank[near] < high)]
        share = own.size
        if k:
            share = int(0.5 * left * (own.size / (len(points) - edges[1]) + 1.0 / levels))
        rows = _draw(own, share)
        parts.append((rows + start, np.full(rows.size, own.size / max(rows.size, 1))))
    rows, weights = map(np.concatenate, zip(*parts, strict=True))
    return rows, weights


def _draw(own: IntArray, share: int) -> IntArray:
    """Return clusters of observations at even steps, or all where they are no more."""
    count = max(1, share // _CLUSTER)
    if share >= own.size or count * _CLUSTER >= own.size:
        return own
    starts = np.linspace(0, own.size, count, endpoint=False).astype(np.int64)
    which = (starts[:, None] + np.arange(_CLUSTER)).ravel()
    return np.asarray(own[which[which < own.size]])
