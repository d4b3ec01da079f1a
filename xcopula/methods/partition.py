"""Partitions of a sample: clusters of sites, sites themselves, and points that stand for many."""

from __future__ import annotations

import numpy as np

from xcopula.arrays import FloatArray, IntArray
from xcopula.process import Sample

__all__ = ["by_cluster", "by_site", "centres", "spread"]


def by_site(sample: Sample) -> list[IntArray]:
    """Return blocks of observations at one site, gathered by their size: each (blocks, size)."""
    _, numbers = np.unique(sample.sites, return_inverse=True)
    order = np.argsort(numbers, kind="stable")
    sizes = np.bincount(numbers)
    starts = np.cumsum([0, *sizes[:-1]])
    return [
        order[starts[sizes == size][:, None] + np.arange(size)].astype(np.int64)
        for size in np.unique(sizes)
    ]


def by_cluster(sample: Sample, count: int) -> list[IntArray]:
    """Return ``count`` blocks of neighbouring sites, each (1, size): a site is never divided."""
    from scipy.spatial import cKDTree

    _, first, numbers = np.unique(sample.sites, return_index=True, return_inverse=True)
    places = sample.inputs[:, first]
    middle = centres(places, min(count, places.shape[1]))
    _, nearest = cKDTree(middle.T).query(places.T)
    label = nearest[numbers]
    order = np.argsort(label, kind="stable").astype(np.int64)
    stops = np.cumsum(np.bincount(label, minlength=middle.shape[1]))
    return [np.sort(block)[None] for block in np.split(order, stops[:-1]) if block.size]


def centres(points: FloatArray, count: int) -> FloatArray:
    """Return the centres (d, count) of a k-means of points (d, n), from a spread-out start."""
    count = min(count, points.shape[1])
    if count == points.shape[1]:
        return points.copy()
    from scipy.cluster.vq import kmeans2

    start = points[:, spread(points, count)].T
    middle, _ = kmeans2(points.T, start, minit="matrix", missing="warn")
    return np.ascontiguousarray(np.asarray(middle, np.float64).T)


def spread(points: FloatArray, count: int) -> IntArray:
    """Choose points one after the other, each the farthest from those before."""
    chosen = np.empty(count, np.int64)
    chosen[0] = int(np.argmin(((points - points.mean(axis=1, keepdims=True)) ** 2).sum(axis=0)))
    nearest = np.full(points.shape[1], np.inf)
    for k in range(1, count):
        last = points[:, chosen[k - 1], None]
        nearest = np.minimum(nearest, ((points - last) ** 2).sum(axis=0))
        chosen[k] = int(np.argmax(nearest))
    return np.sort(chosen)
