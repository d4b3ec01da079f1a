r"""What draws of a quantity say about its law, and how sure that is.

Of n independent draws, the number below the quantile of level p is binomial, with mean n p and
variance n p (1 - p), whatever the law. So with a probability of 90 % the quantile lies between the
sample quantiles of the levels :math:`p \pm 1.645 \sqrt{p (1 - p) / n}`. Their distance is 3.29
standard errors, without an estimate of the density.
"""

from __future__ import annotations

import itertools

import numpy as np

from xcopula.arrays import FloatArray

__all__ = ["count_statistics", "draws_needed", "quantile_of_present", "summarise"]

_WIDE = 1.645  # standard errors on each side, for 90 %: nearer draws tell the error less well


def count_statistics(levels: int) -> int:
    """Return how many numbers :func:`summarise` has for so many levels."""
    return 2 + 2 * levels


def summarise(draws: FloatArray, levels: FloatArray) -> FloatArray:
    """Return mean and quantiles of draws, each with its Monte-Carlo standard error.

    Parameters
    ----------
    draws : ndarray (..., n)
        NaN where there is nothing: then all statistics are NaN.
    levels : ndarray (q,)
        Strictly between 0 and 1.

    Returns
    -------
    ndarray (..., 2 + 2 q)
        Mean, its error, the quantiles, their errors. An error is NaN where the draws are too few
        to tell: one draw for the mean, none beyond a quantile for that.
    """
    count = draws.shape[-1]
    ordered = np.sort(draws, axis=-1)  # NaN comes last
    ordered = np.where(np.isnan(ordered[..., -1:]), np.nan, ordered)
    out = np.full((*draws.shape[:-1], count_statistics(levels.size)), np.nan)
    with np.errstate(invalid="ignore", over="ignore"):  # draws may be infinite
        out[..., 0] = ordered.mean(axis=-1)
        if count > 1:
            out[..., 1] = ordered.std(axis=-1, ddof=1) / np.sqrt(count)
        for k, level in enumerate(levels.tolist()):
            low, high = _ranks_beside(level, count)
            out[..., 2 + k] = _between(ordered, np.clip(_rank(level, count), 0.0, count - 1.0))
            if low >= 0.0 and high <= count - 1.0:
                width = _between(ordered, high) - _between(ordered, low)
                out[..., 2 + levels.size + k] = width / (2.0 * _WIDE)
    return out


def draws_needed(level: float) -> int:
    """Return how many draws tell the error of a quantile.

    Examples
    --------
    >>> draws_needed(0.05), draws_needed(0.5)
    (76, 5)
    """
    for count in itertools.count(1):
        low, high = _ranks_beside(level, count)
        if low >= 0.0 and high <= count - 1.0:
            return count
    raise AssertionError


def _ranks_beside(level: float, count: int) -> tuple[float, float]:
    """Return the ranks between which the quantile lies with a probability of 90 %."""
    step = _WIDE * np.sqrt(level * (1.0 - level) / count)
    return _rank(level - step, count), _rank(level + step, count)


def _rank(level: float, count: int) -> float:
    """Return where in the order, from 0, the draw stands that has this level in the median."""
    return (count + 1.0 / 3.0) * level - 2.0 / 3.0


def _between(ordered: FloatArray, rank: float) -> FloatArray:
    """Return the value at a rank, interpolated between its neighbours."""
    below = int(rank)
    above = min(below + 1, ordered.shape[-1] - 1)
    low, high = ordered[..., below], ordered[..., above]
    return np.where(low == high, low, low + (rank - below) * (high - low))


def quantile_of_present(values: FloatArray, level: float) -> FloatArray:
    """Return the quantile along the last axis of what is not NaN, as :func:`numpy.quantile` does.

    NaN where nothing is there.
    """
    ordered = np.sort(values, axis=-1)
    count = np.count_nonzero(~np.isnan(ordered), axis=-1)
    rank = np.maximum(count - 1, 0) * level
    below = rank.astype(np.intp)
    above = np.minimum(below + 1, np.maximum(count - 1, 0))
    low, high = (np.take_along_axis(ordered, k[..., None], -1)[..., 0] for k in (below, above))
    with np.errstate(invalid="ignore"):
        return np.where(low == high, low, low + (rank - below) * (high - low))
