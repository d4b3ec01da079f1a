"""Choose places to measure, one after the other, by what each would tell about many cells.

Conditional variances of a Gaussian process do not depend on the values that will be measured. So a
choice is made before any of them is known: each one takes a matrix of rank one off the covariances
of all that is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from xcopula.arrays import FloatArray, IntArray

__all__ = ["Chosen", "choose"]

# The loss of some cells, given what is taken off their variances (..., b).
Loss = Callable[[FloatArray, slice], FloatArray]

# A measurement of which no more variance is left than this is known already.
_KNOWN = 1e-10
# Numbers of a batch of cells.
_BATCH = 2**21


class Chosen(NamedTuple):
    """Which candidates were chosen, and what they tell.

    Attributes
    ----------
    order : ndarray (k,), int64
        Their numbers, the first one first.
    criterion : ndarray (k + 1,)
        The mean loss before any of them, and after each.
    reduction : ndarray (m,)
        What all of them together take off the variance of each cell.
    """

    order: IntArray
    criterion: FloatArray
    reduction: FloatArray


def choose(
    shared: FloatArray, among: FloatArray, weights: FloatArray, count: int, loss: Loss
) -> Chosen:
    """Choose candidates greedily: each time the one that leaves the least mean loss.

    Parameters
    ----------
    shared : ndarray (c, m)
        Covariances of what a candidate would measure with the cells. They are overwritten.
    among : ndarray (c, c)
        Covariances of what the candidates would measure. They are overwritten.
    weights : ndarray (m,)
        Of the cells; they add up to one. Where it is zero the loss does not count.
    count : int
        How many are chosen.
    loss : callable
        ``loss(reduction, part)`` returns the loss (..., b) of some cells, a slice of all, if so
        much (..., b) is taken off their variances.
    """
    size = shared.shape[1]
    reduction, free = np.zeros(size), np.ones(len(shared), np.bool_)
    order: list[int] = []
    criterion = [_mean_loss(reduction, weights, loss)]
    for _ in range(count):
        own = np.diagonal(among).copy()
        precision = np.where(own > _KNOWN, 1.0 / np.maximum(own, _KNOWN), 0.0)
        after = np.zeros(len(shared))
        for part in _batches(size, len(shared)):
            less = reduction[part] + precision[:, None] * shared[:, part] ** 2
            after += _weighted(loss(less, part), weights[part])
        best = int(np.argmin(np.where(free, after, np.inf)))
        free[best] = False
        order.append(best)
        told, beside = shared[best].copy(), precision[best] * among[best]
        reduction += precision[best] * told**2
        for part in _batches(size, len(shared)):
            shared[:, part] -= beside[:, None] * told[part]
        among -= beside[:, None] * among[best].copy()
        criterion.append(_mean_loss(reduction, weights, loss))
    return Chosen(np.array(order, np.int64), np.array(criterion), reduction)


def _mean_loss(reduction: FloatArray, weights: FloatArray, loss: Loss) -> float:
    parts = _batches(reduction.size, 1)
    return float(sum(_weighted(loss(reduction[p], p), weights[p]) for p in parts))


def _weighted(losses: FloatArray, weights: FloatArray) -> FloatArray:
    counts = weights > 0.0  # the loss of others may be NaN
    return np.asarray(losses[..., counts] @ weights[counts])


def _batches(size: int, width: int) -> Iterator[slice]:
    step = max(1, _BATCH // max(width, 1))
    return (slice(start, min(start + step, size)) for start in range(0, size, step))
