r"""How often a decision at a threshold will be wrong, before and after more is measured.

A cell is said to lie above a threshold if that is more likely than not. With :math:`\mu, v` the
latent mean and variance and :math:`\tau` the score of the threshold, this is wrong with probability
:math:`\Phi(-h)`, where :math:`h = |\mu - \tau| / \sqrt{v}`.

A measurement takes :math:`r` off the variance, whatever its value turns out to be, and moves the
mean by a normal number of variance :math:`r`. The truth and the mean to come are two normal numbers
of correlation :math:`\sqrt{r / v}`, and the decision will be wrong where they lie on different
sides of the threshold. With Owen's function T this has the probability

.. math:: 2\, T\left(h, \sqrt{(v - r) / r}\right)

which is :math:`\Phi(-h)` for :math:`r = 0` and zero for :math:`r = v`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri, owens_t

from xcopula.arrays import FloatArray

__all__ = ["Misclassification", "Variance", "distance_of", "expected_error"]

# What a measurement changes is less than exp(-h^2 v / 2 r): beyond this exponent it is nothing.
_MOVED = 30.0


def distance_of(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return how many deviations a normal mean lies from a threshold, given both probabilities."""
    return np.asarray(-ndtri(np.minimum(np.minimum(above, below), 0.5)))


def expected_error(distance: FloatArray, variance: FloatArray, reduction: FloatArray) -> FloatArray:
    """Return the probability that the decision of a cell will be wrong.

    Parameters
    ----------
    distance : ndarray (m,)
        Of the latent mean from the threshold, in deviations; infinite where nothing is in doubt.
    variance : ndarray (m,)
        Before anything more is measured.
    reduction : ndarray (..., m)
        What will be taken off it.
    """
    error = np.broadcast_to(ndtr(-distance), reduction.shape).copy()
    with np.errstate(invalid="ignore"):  # far from the threshold of a cell that is known
        moved = np.nonzero(reduction > distance**2 * variance / (2.0 * _MOVED))
    cell, less = moved[-1], reduction[moved]
    left = np.maximum(variance[cell] - less, 0.0)
    error[moved] = 2.0 * owens_t(distance[cell], np.sqrt(left / less))
    return error


@dataclass(frozen=True, eq=False)
class Variance:
    """The loss that is the variance of a cell.

    Attributes
    ----------
    variance : ndarray (m,)
        Before anything more is measured.
    """

    variance: FloatArray

    def __call__(self, reduction: FloatArray, part: slice = slice(None)) -> FloatArray:
        """Return the loss (..., b) of some cells, if so much is taken off their variances."""
        return np.asarray(np.maximum(self.variance[part] - reduction, 0.0))


@dataclass(frozen=True, eq=False)
class Misclassification:
    """The loss that is the probability of a wrong decision at a threshold.

    Attributes
    ----------
    distance, variance : ndarray (m,)
        As in :func:`expected_error`.
    """

    distance: FloatArray
    variance: FloatArray

    def __call__(self, reduction: FloatArray, part: slice = slice(None)) -> FloatArray:
        """Return the loss (..., b) of some cells, if so much is taken off their variances."""
        return expected_error(self.distance[part], self.variance[part], reduction)
