"""The contract of a kernel family."""

from __future__ import annotations

import functools
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from xcopula.arrays import FloatArray

__all__ = [
    "ConvolvedKernel",
    "CrossProfile",
    "Kernel",
    "SpectralKernel",
    "half_distance",
]


class Kernel(Protocol):
    """A stationary correlation function of the scaled distance x = r / l, one at x = 0.

    A kernel of your own is any object with these members. It is checked when it is given to a fit.
    It must not change, and two kernels that compare equal must be the same function, because
    tables are kept by equality. A frozen dataclass does both.

    In a model of several tasks, such a kernel needs ``coupling="icm"`` or ``"lmc"``, which share
    it. For ``coupling="convolution"`` it needs the method of :class:`ConvolvedKernel`.
    """

    @property
    def name(self) -> str:
        """Name by which users ask for the kernel, and which tables and plots show."""

    @property
    def smoothness(self) -> float:
        """Matern smoothness nu, infinite for the squared exponential."""

    @property
    def reach(self) -> float:
        """Scaled distance beyond which the correlation counts as zero; ``profile`` ends here."""

    def __hash__(self) -> int: ...

    def profile(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the correlation and its first two derivatives by x, each of the shape (m,) of x.

        All are finite. At x = 0 the derivatives may be any finite value where the limit is not.
        """


class CrossProfile(NamedTuple):
    """A cross-correlation on nodes of r: values, derivatives by r, and by the first log length."""

    value: FloatArray
    slope: FloatArray
    curvature: FloatArray
    by_first: FloatArray
    by_first_slope: FloatArray


class ConvolvedKernel(Kernel, Protocol):
    """A kernel of your own that knows its cross-correlation with others."""

    def cross(
        self, other: Kernel, length1: float, length2: float, dimension: int, r: FloatArray
    ) -> CrossProfile:
        """Return the cross-correlation with a kernel, ``NotImplemented`` if that is not known.

        Parameters
        ----------
        other : Kernel
            The kernel of the second task; it may be equal to this one.
        length1, length2 : float
            Length scales of this kernel and of the other.
        dimension : int
            Dimension D of the space in which r is a Euclidean distance. The joint covariance of
            both tasks has to be positive definite there.
        r : ndarray (m,)
            Distances, up to where the longer of both kernels ends.
        """


@runtime_checkable
class SpectralKernel(Kernel, Protocol):
    """A kernel that knows its spectrum, which draws need.

    The spectrum of a correlation is a probability density of frequencies: the correlation at a lag
    h is the mean of the cosine of frequency times h.
    """

    def frequencies(self, uniforms: FloatArray) -> FloatArray:
        """Turn even numbers (D + 1, m) in (0, 1) into frequencies (D, m), at a length of one."""

    def log_spectrum(self, squares: FloatArray, dimension: int) -> FloatArray:
        """Return the log density (m,) of frequencies in D dimensions, from their squared norms."""


@functools.lru_cache(maxsize=64)  # by equality: see Kernel
def half_distance(kernel: Kernel) -> float:
    """Return the scaled distance at which half of the correlation is left, to a percent."""
    x = kernel.reach * np.linspace(0.0, 1.0, 2001)[:-1] ** 4
    return float(x[np.argmax(kernel.profile(x)[0] < 0.5)])
