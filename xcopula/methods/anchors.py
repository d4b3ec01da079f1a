"""Anchors: query points that every cell of a transductive prediction shares.

The approximation depends on the query set. A set that is fixed once for the model makes it
independent of how a grid is cut into chunks. The best anchors are sites where a secondary is known
and the primary is not: given the primary's signal there, secondaries say nothing of each other.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xcopula.process.copula import Sample

__all__ = ["MOST_ANCHORS", "choose_anchors", "spread", "usable_anchors"]

FloatArray = npt.NDArray[np.float64]

MOST_ANCHORS = 300


def usable_anchors(points: FloatArray, sample: Sample) -> FloatArray:
    """Drop repeated points (d, m) and those where the primary is known, which add little."""
    _, first = np.unique(np.round(points, 9), axis=1, return_index=True)
    points = points[:, np.sort(first)]
    known = {tuple(x) for x in np.round(sample.inputs[:, sample.task(0)], 9).T}
    keep = [tuple(x) not in known for x in np.round(points, 9).T]
    return np.ascontiguousarray(points[:, keep])


def choose_anchors(sample: Sample, most: int = MOST_ANCHORS) -> FloatArray:
    """Return sites of secondaries without the primary, spread out where there are too many."""
    start = int(sample.offsets[1])
    points = usable_anchors(sample.inputs[:, start:], sample)
    return points if points.shape[1] <= most else points[:, spread(points, most)]


def spread(points: FloatArray, count: int) -> npt.NDArray[np.int64]:
    """Choose points one after the other, each the farthest from those before."""
    chosen = np.empty(count, np.int64)
    chosen[0] = int(np.argmin(((points - points.mean(axis=1, keepdims=True)) ** 2).sum(axis=0)))
    nearest = np.full(points.shape[1], np.inf)
    for k in range(1, count):
        last = points[:, chosen[k - 1], None]
        nearest = np.minimum(nearest, ((points - last) ** 2).sum(axis=0))
        chosen[k] = int(np.argmax(nearest))
    return np.sort(chosen)
