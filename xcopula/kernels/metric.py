r"""The metric of a group of inputs: how far apart two points are, by the direction between them.

The squared distance of two points is :math:`\delta' M \delta`. Inputs are mapped linearly, x to
L x with L'L = M, and distances of mapped inputs are Euclidean: a kernel that is valid in that space
stays valid. Three metrics there are:

* M = 1, where all directions are alike;
* a scale for each column (``ard``), M diagonal: :math:`M_{cc} = e^{-2 s_c}`;
* free in some directions, M = expm(S) in their span and one across it. S is symmetric and its trace
  is zero: the size of the metric is the length scale. A plane has two parameters, an angle and a
  ratio; k directions have k (k + 1) / 2 - 1.

S is a sum of parameters times matrices of equal norm that are orthogonal to each other. So a weak
prior on the parameters knows no direction.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from xcopula.arrays import FloatArray

__all__ = ["InputGroup"]

# Directions are always free, and shrink to none where the data say little: ranges that differ by a
# factor of two are one deviation of the prior. Scales of columns are asked for, and shrink less.
_DIRECTION_DEVIATION, _SCALE_DEVIATION = 0.35, 1.0


@dataclass(frozen=True)
class InputGroup:
    """Columns of the inputs that share one distance: space, time, height ...

    Attributes
    ----------
    size : int
        Number of columns, which is the dimension D of the convolution.
    ard : bool
        Whether each column has a scale of its own (automatic relevance determination).
    directions : tuple of tuple of float
        Orthonormal directions, each of ``size`` numbers, in whose span ranges may differ by
        direction; none where all directions are alike.
    """

    size: int
    ard: bool = False
    directions: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.directions and self.ard:
            raise ValueError(
                "A group has a scale for each column (`ard`) or free directions, not both."
            )
        shape = np.shape(self.directions)
        if self.directions and (len(shape) != 2 or shape[1] != self.size or shape[0] < 2):
            raise ValueError(
                f"`directions` must be at least two of {self.size} numbers each, found {shape}."
            )

    @property
    def parameters(self) -> int:
        """Number of parameters of the metric."""
        if self.ard:
            return self.size
        count = len(self.directions)
        return count * (count + 1) // 2 - 1 if count else 0

    @property
    def deviation(self) -> float:
        """Prior standard deviation of each parameter of the metric."""
        return _SCALE_DEVIATION if self.ard else _DIRECTION_DEVIATION

    @property
    def freedom(self) -> int:
        """What of the metric is free: 0 nothing, 1 its diagonal, 2 all of it."""
        return 1 if self.ard else 2 * bool(self.directions)

    def mapping(self, parameters: FloatArray) -> FloatArray:
        """Return what inputs are multiplied by, (size, size)."""
        if self.ard:
            return np.diag(np.exp(-parameters))
        if not self.directions:
            return np.eye(self.size)
        logs, turned = self.principal(parameters)
        axes = turned @ np.array(self.directions)
        return np.asarray(np.eye(self.size) + (axes.T * np.expm1(-logs)) @ axes)

    def principal(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log stretches (k,), the longest first, and unit vectors (k, k) along them.

        Along each of these ranges are its stretch times the length scale. Vectors are by their
        components in :attr:`directions`.
        """
        values, vectors = np.linalg.eigh(_symmetric(parameters, len(self.directions)))
        return -0.5 * values, vectors.T

    def pullback(self, parameters: FloatArray, moments: FloatArray) -> FloatArray:
        r"""Turn derivatives by log scales of mapped columns into those by the parameters.

        ``moments`` (size, size) are sums of :math:`-g \delta\delta' / r^2` over pairs, with g the
        derivative by a log distance and :math:`\delta` a difference of mapped inputs; only what is
        on and below the diagonal is read, and of ``ard`` only the diagonal. Several may be stacked
        along a first axis.
        """
        if self.ard:
            return np.diagonal(moments, axis1=-2, axis2=-1).copy()
        if not self.directions:
            return np.empty((*moments.shape[:-2], 0))
        count, span = len(self.directions), np.array(self.directions)
        whole = np.tril(moments) + np.swapaxes(np.tril(moments, -1), -1, -2)
        values, vectors = np.linalg.eigh(_symmetric(parameters, count))
        # expm(S) moves with S by divided differences of exp; between mapped inputs these are sinh.
        half = 0.5 * (values[:, None] - values[None, :])
        inner = _sinhc(half) * (vectors.T @ span @ whole @ span.T @ vectors)
        by_matrix = -0.5 * vectors @ inner @ vectors.T
        return np.asarray(np.einsum("pij,...ij->...p", _basis(count), by_matrix))


def _sinhc(x: FloatArray) -> FloatArray:
    """Return sinh(x) / x."""
    small = np.abs(x) < 1e-4
    safe = np.where(small, 1.0, x)
    return np.where(small, 1.0 + x * x / 6.0, np.sinh(safe) / safe)


@functools.cache
def _basis(count: int) -> FloatArray:
    """Return symmetric matrices (parameters, k, k) without trace, of squared norm two each."""
    found = []
    for k in range(1, count):  # diagonals, each orthogonal to those before
        diagonal = np.concatenate([np.ones(k), [-k], np.zeros(count - k - 1)])
        found.append(np.diag(diagonal * np.sqrt(2.0 / (k * (k + 1.0)))))
    for i in range(count):
        for j in range(i):
            found.append(np.zeros((count, count)))
            found[-1][i, j] = found[-1][j, i] = 1.0
    return np.stack(found)


def _symmetric(parameters: FloatArray, count: int) -> FloatArray:
    """Return S (k, k)."""
    return np.asarray(np.tensordot(parameters, _basis(count), 1))
