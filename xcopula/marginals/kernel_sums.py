"""Sums of Gaussian kernels over a sample: term by term for a small one, by cells for a large one.

The sums by cells are the fast Gauss transform (Greengard and Strain, 1991) on a line. The cost
grows with n + m for n values and m points, in place of n m, however far apart the values lie.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gamma, ndtr

from xcopula.marginals.tails import Array, log_phi

__all__ = ["kernel_sums", "sums_by_cells", "sums_by_terms"]

_SMALL = 500
_BATCH = 2_000_000
# Half a bandwidth of a kernel is a polynomial of degree 15 to 1e-15, and a kernel ten bandwidths
# away is 0 to 1e-22: the rest is rounding.
_CELLS_PER_BANDWIDTH = 2
_TERMS = 16
_REACH = 10 * _CELLS_PER_BANDWIDTH


def kernel_sums(x: Array, sample: Array, bandwidth: float) -> tuple[Array, Array]:
    r"""Evaluate the sums of the kernels' distribution functions and of their densities.

    .. math:: \sum_i \Phi\left(\frac{x - s_i}{h}\right), \qquad
        \sum_i \phi\left(\frac{x - s_i}{h}\right)

    Parameters
    ----------
    x : ndarray (m,)
        Points to evaluate at, in any order.
    sample : ndarray (n,)
        Centres of the kernels, in any order.
    bandwidth : float

    Returns
    -------
    cdf, density : ndarray (m,)
        Up to 500 values are summed term by term. For more, the error of each sum is below 1e-12
        of n, while the values lie within 1000 bandwidths of their median; it grows with that
        distance, as the rounding of the values does.
    """
    if sample.size <= _SMALL:
        return sums_by_terms(x, sample, bandwidth)
    return sums_by_cells(x, sample, bandwidth)


def sums_by_terms(x: Array, sample: Array, bandwidth: float) -> tuple[Array, Array]:
    """Evaluate :func:`kernel_sums` from all pairs of a point and a value."""
    cdf, density = np.empty_like(x), np.empty_like(x)
    rows = max(1, _BATCH // sample.size)
    for start in range(0, x.size, rows):
        block = slice(start, start + rows)
        u = (x[block, None] - sample) / bandwidth
        cdf[block] = ndtr(u).sum(axis=1)
        density[block] = np.exp(log_phi(u)).sum(axis=1)
    return cdf, density


def sums_by_cells(x: Array, sample: Array, bandwidth: float) -> tuple[Array, Array]:
    """Evaluate :func:`kernel_sums` from moments of cells half a bandwidth wide.

    The sum of the distribution functions is a polynomial within each cell, and the sum of the
    densities is its derivative.
    """
    origin = np.median(sample)  # most values are near it, and their positions exact
    sources, moments = _moments(np.sort((sample - origin) / bandwidth))
    cell, offset = _locate((x - origin) / bandwidth)
    targets = np.unique(cell)
    polynomials = _polynomials(targets, sources, moments)
    own = np.searchsorted(targets, cell)
    cdf, density = np.zeros_like(x), np.zeros_like(x)
    for coefficients in polynomials[::-1]:  # Horner's rule and its derivative
        density *= offset
        density += cdf
        cdf *= offset
        cdf += coefficients[own]
    return cdf, density


def _locate(u: Array) -> tuple[Array, Array]:
    """Return the number of each position's cell, and its offset from the centre of the cell."""
    cell = np.floor(_CELLS_PER_BANDWIDTH * u)
    return cell, u - (cell + 0.5) / _CELLS_PER_BANDWIDTH


def _moments(u: Array) -> tuple[Array, Array]:
    """Return the cells that hold sorted positions, and sum (-b)^k / k! of their offsets b."""
    cell, offset = _locate(u)
    starts = np.flatnonzero(np.diff(cell, prepend=-np.inf))
    moments, power = np.empty((_TERMS, starts.size)), np.ones_like(u)
    for k in range(_TERMS):
        moments[k] = np.add.reduceat(power, starts)
        power *= offset
        power /= -(k + 1.0)
    return cell[starts], moments


def _polynomials(targets: Array, sources: Array, moments: Array) -> Array:
    """Return the coefficients (terms, targets) of the sum of Phi about the centre of each cell."""
    out = np.zeros((_TERMS, targets.size))
    count = np.concatenate([[0.0], np.cumsum(moments[0])])
    out[0] = count[np.searchsorted(sources, targets - _REACH)]  # kernels far below are full
    factorial = gamma(np.arange(1.0, _TERMS + 1.0))
    order = np.arange(_TERMS)
    for step in range(-_REACH, _REACH + 1):
        at = np.minimum(np.searchsorted(sources, targets + step), sources.size - 1)
        met = sources[at] == targets + step
        if met.any():
            derivatives = _derivatives(-step / _CELLS_PER_BANDWIDTH)
            shift = derivatives[order[:, None] + order] / factorial[:, None]
            out[:, met] += shift @ moments[:, at[met]]
    return out


def _derivatives(t: float) -> Array:
    """Evaluate Phi and its derivatives at t, by the recurrence of Hermite polynomials."""
    out = np.empty(2 * _TERMS - 1)
    out[0], out[1] = ndtr(t), np.exp(log_phi(t))
    out[2] = -t * out[1]
    for k in range(3, out.size):
        out[k] = -t * out[k - 1] - (k - 2.0) * out[k - 2]
    return out
