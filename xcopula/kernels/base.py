"""The contract of a kernel family."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["FloatArray", "IntArray", "Kernel"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class Kernel(Protocol):
    """A stationary correlation function of the scaled distance x = r / l, one at x = 0.

    ``reach`` is the x beyond which the correlation counts as zero (below 1e-17). ``smoothness`` is
    the Matern nu, infinite for the squared exponential; it is what the convolution coupling needs
    to know of a family.
    """

    @property
    def name(self) -> str:
        """Name by which users ask for the kernel."""

    @property
    def smoothness(self) -> float:
        """Matern smoothness nu."""

    @property
    def reach(self) -> float:
        """Scaled distance beyond which the correlation is zero."""

    def __hash__(self) -> int: ...

    def profile(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the correlation and its first two derivatives by x."""
