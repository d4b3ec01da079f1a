"""The squared exponential kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from xcopula.arrays import FloatArray

__all__ = ["SquaredExponential"]


@dataclass(frozen=True)
class SquaredExponential:
    r"""Squared exponential correlation.

    .. math:: k(x) = \exp(-x^2 / 2)
    """

    name: str = "se"
    smoothness: float = math.inf
    reach: float = 8.9

    def profile(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the correlation and its first two derivatives by x."""
        value = np.exp(-0.5 * x * x)
        return value, -x * value, (x * x - 1.0) * value

    def frequencies(self, uniforms: FloatArray) -> FloatArray:
        """Turn even numbers (D + 1, m) into frequencies (D, m): normal ones."""
        return np.asarray(ndtri(uniforms[:-1]))

    def log_spectrum(self, squares: FloatArray, dimension: int) -> FloatArray:
        """Return the log density of frequencies, from their squared norms."""
        return -0.5 * (squares + dimension * math.log(2.0 * math.pi))
