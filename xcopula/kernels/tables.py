"""Piecewise polynomial tables of correlation functions, as the compiled loops read them.

A correlation is tabulated in s = (r / R)^(1/4) on a uniform grid of cells over [0, 1]: dense near
the origin, where a short length scale shows (and where r^2 log r, of rough kernels, becomes
smooth), and sparse in the tail. Quintic Hermite pieces then keep the error near 1e-11 up to length
ratios of 50, below what positive definiteness of a matrix of unit diagonal feels.
"""

from __future__ import annotations

import functools

import numpy as np

from xcopula.arrays import FloatArray
from xcopula.kernels.base import Kernel
from xcopula.kernels.convolution import cross_profile
from xcopula.kernels.hermite import cubic, quintic

__all__ = ["CELLS", "cross_tables", "same_table"]

CELLS = 512

# Nodes s and what derivatives by r / R = s^4 become by the chain rule: powers are slow to take.
_NODES = np.linspace(0.0, 1.0, CELLS + 1)
_NODES_4 = _NODES**4
_FIRST, _FIRST_SQUARED, _SECOND = 4.0 * _NODES**3, 16.0 * _NODES**6, 12.0 * _NODES**2


@functools.lru_cache(maxsize=64)  # by equality: see Kernel
def same_table(kernel: Kernel) -> FloatArray:
    """Tabulate a kernel over its reach, for unit length scale: (cells + 1, 6)."""
    value, slope, curvature = kernel.profile(_distances(kernel.reach))
    return _by_root(value, kernel.reach * slope, kernel.reach**2 * curvature)


def cross_tables(
    first: Kernel, second: Kernel, length1: float, length2: float, dimension: int, span: float
) -> tuple[FloatArray, FloatArray]:
    """Tabulate a convolution cross-correlation, and its derivative by the first log length.

    Parameters
    ----------
    span : float
        The range R of the table.

    Returns
    -------
    ndarray (cells + 1, 6), ndarray (cells + 1, 4)
    """
    p = cross_profile(first, second, length1, length2, dimension, _distances(span))
    return (
        _by_root(p.value, span * p.slope, span**2 * p.curvature),
        cubic(p.by_first, span * _FIRST * p.by_first_slope),
    )


def _distances(span: float) -> FloatArray:
    """Return the distances of the nodes; the last is a hair short of the range.

    A kernel that ends at its reach has the derivatives of its inner side there.
    """
    r = span * _NODES_4
    r[-1] = np.nextafter(span, 0.0)
    return r


def _by_root(value: FloatArray, slope: FloatArray, curvature: FloatArray) -> FloatArray:
    """Turn derivatives by r / R into those by its fourth root and make the quintic table."""
    return quintic(value, _FIRST * slope, _SECOND * slope + _FIRST_SQUARED * curvature)
