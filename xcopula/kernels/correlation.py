r"""Correlation matrices between tasks, by unconstrained parameters.

Row i of the Cholesky factor is a point on the unit sphere in hyperspherical coordinates whose
cosines are :math:`z_{ij} = \tanh a_{ij}` (canonical partial correlations): every real vector gives
a valid correlation matrix, and zero gives the identity.
"""

from __future__ import annotations

import functools

import numpy as np

from xcopula.arrays import FloatArray, IntArray

__all__ = ["correlation", "correlation_pullback", "parameters_of"]


@functools.cache
def _below(tasks: int) -> tuple[IntArray, IntArray]:
    """Return the indices of the strictly lower entries; numpy takes longer than all the rest."""
    rows, columns = np.tril_indices(tasks, -1)
    return rows, columns


def _factor(a: FloatArray, tasks: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the Cholesky factor, the partial correlations and what is left of each row."""
    z = np.zeros((*a.shape[:-1], tasks, tasks))
    z[..., *_below(tasks)] = np.tanh(a)
    left = np.ones(z.shape)
    left[..., 1:] = np.cumprod(np.sqrt(1.0 - z**2), axis=-1)[..., :-1]
    factor = z * left
    diagonal = np.arange(tasks)
    factor[..., diagonal, diagonal] = left[..., diagonal, diagonal]
    return factor, z, left


def correlation(a: FloatArray, tasks: int) -> FloatArray:
    """Return the correlation matrix (t, t) of t (t - 1) / 2 unconstrained parameters."""
    factor, _, _ = _factor(a, tasks)
    matrix = factor @ factor.T
    matrix.flat[:: tasks + 1] = 1.0
    return matrix


def correlation_pullback(a: FloatArray, tasks: int, by_matrix: FloatArray) -> FloatArray:
    """Turn derivatives by the strictly lower entries of the matrix into those by ``a``.

    Of several matrices, and of several derivatives of each, at once: these stand along first axes.
    """
    factor, z, left = _factor(a, tasks)
    lower = np.tril(by_matrix, -1)
    by_factor = (lower + np.swapaxes(lower, -1, -2)) @ factor
    # A row's later entries all carry the factor sqrt(1 - z_ik^2): d/da gives -z_ik each.
    after = np.cumsum((by_factor * factor)[..., ::-1], axis=-1)[..., ::-1]
    gradient = (1.0 - z**2) * left * by_factor
    gradient[..., :-1] -= z[..., :-1] * after[..., 1:]
    return np.asarray(gradient[..., *_below(tasks)])


def parameters_of(matrix: FloatArray) -> FloatArray:
    """Return the parameters of a given positive definite correlation matrix."""
    factor = np.linalg.cholesky(matrix)
    tasks = len(matrix)
    squares = np.concatenate([np.zeros((tasks, 1)), np.cumsum(factor**2, axis=1)[:, :-1]], axis=1)
    left = np.sqrt(np.maximum(1.0 - squares, 1e-12))
    z = np.clip(factor / left, -0.999, 0.999)
    return np.arctanh(z[_below(tasks)])
