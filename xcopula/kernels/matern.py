"""The Matern kernels of half-integer smoothness, and the Matern function they share."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from xcopula.arrays import FloatArray
from xcopula.jit.pairs import interpolate
from xcopula.kernels.hermite import quintic

__all__ = ["Matern", "matern_function"]

_BESSEL_RANGE = 44.0
_BESSEL_CELLS = 1024


def matern_function(nu: float, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Return the Matern function and its first derivative.

    .. math:: M_\nu(x) = \frac{2^{1-\nu}}{\Gamma(\nu)} x^\nu K_\nu(x)

    Implemented for nu = 1/2, 1, 3/2, 2, 5/2: all that pairs of the half-integer kernels need. The
    second derivative follows from Bessel's equation, M'' = M + (2 nu - 1) M' / x.
    """
    if nu in (1.0, 2.0):
        return _interpolated(nu, x)
    e = np.exp(-x)
    if nu == 0.5:
        return e, -e
    if nu == 1.5:
        xe = x * e
        return e + xe, -xe
    if nu == 2.5:
        return (1.0 + x * (1.0 + x / 3.0)) * e, -x * (1.0 + x) / 3.0 * e
    raise ValueError(f"No Matern function of smoothness {nu:g}. Choose 1/2, 1, 3/2, 2 or 5/2.")


def _bessel(nu: float, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the Matern function of smoothness 1 or 2 and its derivative, for x > 0."""
    x_k0, x_k1 = x * special.k0(x), x * special.k1(x)
    if nu == 1.0:
        return x_k1, -x_k0
    return 0.5 * x * x_k0 + x_k1, -0.5 * x * x_k1


@functools.cache
def _bessel_tables(nu: float) -> tuple[FloatArray, FloatArray]:
    """Tabulate the Matern function of smoothness 1 or 2 and its derivative.

    The nodes are uniform in the fourth root of x, which makes the x^2 log x at the origin smooth.
    """
    s = np.linspace(0.0, 1.0, _BESSEL_CELLS + 1)[1:]
    x = _BESSEL_RANGE * s**4
    by_s, by_ss = 4.0 * _BESSEL_RANGE * s**3, 12.0 * _BESSEL_RANGE * s**2
    m, d1 = _bessel(nu, x)
    d2 = m + (2.0 * nu - 1.0) * d1 / x
    d3 = d1 + (2.0 * nu - 1.0) * (d2 - d1 / x) / x

    def table(at_zero: float, f: FloatArray, f1: FloatArray, f2: FloatArray) -> FloatArray:
        nodes = (f, f1 * by_s, f2 * by_s**2 + f1 * by_ss)
        return quintic(*(np.insert(v, 0, z) for v, z in zip(nodes, (at_zero, 0, 0), strict=True)))

    return table(1.0, m, d1, d2), table(0.0, d1, d2, d3)


def _interpolated(nu: float, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Look the Bessel forms up: a hundred nanoseconds a value become five."""
    flat = np.square(x, dtype=np.float64).reshape(-1)
    out = np.empty((2, flat.size))
    for row, table in zip(out, _bessel_tables(nu), strict=True):
        interpolate(flat, 1.0 / _BESSEL_RANGE, table, row)
    return out[0].reshape(x.shape), out[1].reshape(x.shape)


@dataclass(frozen=True)
class Matern:
    r"""Matern correlation of smoothness nu.

    .. math:: k(x) = M_\nu(\sqrt{2\nu}\, x)
    """

    name: str
    smoothness: float

    def __post_init__(self) -> None:
        if self.smoothness not in (0.5, 1.5, 2.5):
            raise ValueError(
                f"The smoothness of a Matern kernel must be 0.5, 1.5 or 2.5, found "
                f"{self.smoothness!r}."
            )

    @property
    def reach(self) -> float:
        """Scaled distance beyond which the correlation is zero."""
        return 44.0 / math.sqrt(2.0 * self.smoothness)

    def profile(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the correlation and its first two derivatives by x."""
        nu = self.smoothness
        a = math.sqrt(2.0 * nu)
        value, slope = matern_function(nu, a * x)
        safe = np.where(x > 0.0, a * x, 1.0)
        # At x = 0: M''(0) is 1 for nu = 1/2 and -1 / (2 nu - 2) above.
        at_zero = 1.0 if nu == 0.5 else -1.0 / (2.0 * nu - 2.0)
        curvature = np.where(x > 0.0, value + (2.0 * nu - 1.0) * slope / safe, at_zero)
        return value, a * slope, a * a * curvature

    def frequencies(self, uniforms: FloatArray) -> FloatArray:
        """Turn even numbers (D + 1, m) into frequencies (D, m): Student's t, 2 nu degrees."""
        precision = special.gammaincinv(self.smoothness, uniforms[-1]) / self.smoothness
        return np.asarray(special.ndtri(uniforms[:-1]) / np.sqrt(precision))

    def log_spectrum(self, squares: FloatArray, dimension: int) -> FloatArray:
        """Return the log density of frequencies, from their squared norms."""
        nu, half = self.smoothness, 0.5 * dimension
        constant = special.gammaln(nu + half) - special.gammaln(nu)
        shape = (nu + half) * np.log1p(squares / (2.0 * nu))
        return np.asarray(constant - half * math.log(2.0 * math.pi * nu) - shape)
