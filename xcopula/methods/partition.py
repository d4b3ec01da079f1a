"""Partitions of a sample: clusters of sites, sites themselves, and points that stand for many."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xcopula.methods.anchors import spread
from xcopula.process.copula import Sample

__all__ = ["by_cluster", "by_site", "centres", "site_numbers"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def site_numbers(sample: Sample) -> IntArray:
    """Number the sites: observations of several tasks at one place have one number (n,)."""
    _, numbers = np.unique(np.round(sample.inputs, 9), axis=1, return_inverse=True)
    return np.asarray(numbers, np.int64).reshape(-1)


def by_site(sample: Sample) -> list[IntArray]:
    """Return blocks of observations at one site, gathered by their size: each (blocks, size)."""
    numbers = site_numbers(sample)
    order = np.argsort(numbers, kind="stable")
    sizes = np.bincount(numbers)
    starts = np.cumsum([0, *sizes[:-1]])
    return [
        order[starts[sizes == size][:, None] + np.arange(size)].astype(np.int64)
        for size in np.unique(sizes)
    ]


def by_cluster(sample: Sample, count: int) -> list[IntArray]:
    """Return ``count`` blocks of neighbouring sites, each (1, size): a site is never divided."""
    numbers = site_numbers(sample)
    _, first = np.unique(numbers, return_index=True)
    sites = sample.inputs[:, first]
    count = min(count, sites.shape[1])
    middle = centres(sites, count)
    distance = ((sites[:, :, None] - middle[:, None, :]) ** 2).sum(axis=0)
    label = np.argmin(distance, axis=1)[numbers]
    return [np.flatnonzero(label == k)[None].astype(np.int64) for k in np.unique(label)]


def centres(points: FloatArray, count: int) -> FloatArray:
    """Return the centres (d, count) of a k-means of points (d, n), from a spread-out start."""
    count = min(count, points.shape[1])
    if count == points.shape[1]:
        return points.copy()
    from scipy.cluster.vq import kmeans2

    start = points[:, spread(points, count)].T
    middle, _ = kmeans2(points.T, start, minit="matrix", missing="warn")
    return np.ascontiguousarray(np.asarray(middle, np.float64).T)
