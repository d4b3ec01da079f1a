"""Hermite interpolation on a uniform grid, as coefficients of one polynomial per cell."""

from __future__ import annotations

import numpy as np

from xcopula.arrays import FloatArray

__all__ = ["cubic", "quintic"]


def quintic(value: FloatArray, slope: FloatArray, curvature: FloatArray) -> FloatArray:
    """Return coefficients (cells + 1, 6) of the quintics through nodes uniform on [0, 1].

    Row k holds the powers of u, the position within cell k in [0, 1]. A last row of zeros serves
    every position past the grid.
    """
    h = 1.0 / (len(value) - 1)
    f0, f1 = value[:-1], value[1:]
    d0, d1 = h * slope[:-1], h * slope[1:]
    c0, c1 = 0.5 * h**2 * curvature[:-1], 0.5 * h**2 * curvature[1:]
    rise, tilt, bend = f1 - f0 - d0 - c0, d1 - d0 - 2.0 * c0, c1 - c0
    table = np.zeros((len(value), 6))
    table[:-1, 0], table[:-1, 1], table[:-1, 2] = f0, d0, c0
    table[:-1, 3] = 10.0 * rise - 4.0 * tilt + bend
    table[:-1, 4] = -15.0 * rise + 7.0 * tilt - 2.0 * bend
    table[:-1, 5] = 6.0 * rise - 3.0 * tilt + bend
    return table


def cubic(value: FloatArray, slope: FloatArray) -> FloatArray:
    """Return coefficients (cells + 1, 4) of the cubics through nodes uniform on [0, 1]."""
    h = 1.0 / (len(value) - 1)
    rise = value[1:] - value[:-1]
    d0, d1 = h * slope[:-1], h * slope[1:]
    table = np.zeros((len(value), 4))
    table[:-1, 0], table[:-1, 1] = value[:-1], d0
    table[:-1, 2] = 3.0 * rise - 2.0 * d0 - d1
    table[:-1, 3] = d0 + d1 - 2.0 * rise
    return table
