"""The squared exponential kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from xcopula.kernels.base import FloatArray

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
