"""A sample in the metric in which neighbours are near: inputs in units of the length scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from xcopula.arrays import FloatArray
from xcopula.kernels.assembly import scaled_inputs
from xcopula.kernels.covariance import CovarianceState
from xcopula.process import Process, Sample

__all__ = ["WIDER", "Near", "places", "tree_of"]

# Where distance alone does not tell who matters, so many times the neighbours are looked at.
WIDER = 1.5


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
        The mean, and before it the lengths of each structure where these measure nearness in
        different ways: what is the same at a place all year, and what is the same everywhere on a
        day. By the mean the history of places nearby is near.
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

    def candidates(self, most: int, *, own: bool) -> int:
        """Return how many observations are looked at, in each metric, for so many neighbours.

        Of the ``own`` task, or of another: where several metrics find them, fewer are enough.
        """
        if self.distance_decides or (len(self.metrics) > 1 and not own):
            return most
        return int(np.ceil(WIDER * most))


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
    return mean, np.vstack([np.repeat(each, columns, axis=1), mean])


def places(inputs: FloatArray, lengths: FloatArray) -> FloatArray:
    """Return inputs (d, n) in units of lengths, as rows (n, d)."""
    return np.ascontiguousarray((inputs / lengths[:, None]).T)


def tree_of(points: FloatArray) -> Any:
    """Return a tree of points (n, d); sliding midpoints, which coordinates that repeat need."""
    from scipy.spatial import cKDTree

    return cKDTree(points, balanced_tree=False, compact_nodes=False)
