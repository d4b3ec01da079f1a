"""Cholesky factors, inverses and triangular solves, in place and without the GIL.

``scipy.linalg.lapack`` holds the GIL, so sub-models on a threaded scheduler would wait for each
other. The same LAPACK is reached here through scipy's exported C pointers: a ctypes call releases
the GIL. Matrices are C-contiguous and *lower*; LAPACK, which reads columns, sees the same memory
as upper, so nothing is copied or transposed.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from xcopula.arrays import FloatArray
from xcopula.errors import NotPositiveDefiniteError

__all__ = [
    "JITTERS",
    "cholesky",
    "inverse_from_cholesky",
    "log_determinant",
    "solve_lower",
    "symmetric_product",
]

# What is added to the unit diagonal, one after the other, before a matrix is given up.
JITTERS = (0.0, 1e-10, 1e-8, 1e-6)


@functools.cache
def _routine(library: str, name: str) -> Callable[..., None]:
    """Return a BLAS or LAPACK routine as a ctypes function, arguments passed by reference."""
    module: Any = importlib.import_module(f"scipy.linalg.cython_{library}")
    capsule = module.__pyx_capi__[name]
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.CFUNCTYPE(None)(get_pointer(capsule, get_name(capsule)))


def _int(value: int) -> Any:
    return ctypes.byref(ctypes.c_int(value))


def _data(array: FloatArray, *, overwrite: bool = True) -> ctypes.c_void_p:
    """Return where an array begins; factors of a fitted model are read-only, and only read."""
    if array.dtype != np.float64 or not array.flags.c_contiguous:
        raise TypeError("LAPACK needs a C-contiguous float64 array.")
    if overwrite and not array.flags.writeable:
        raise TypeError("LAPACK overwrites this array, and it is read-only. Pass a copy.")
    return ctypes.c_void_p(array.ctypes.data)


def cholesky(
    fill: Callable[[], FloatArray], describe: Callable[[], str]
) -> tuple[FloatArray, float]:
    """Factorise a covariance matrix of unit diagonal, with a small bounded jitter if it must be.

    Parameters
    ----------
    fill : callable
        Returns a fresh (n, n) matrix, lower triangle filled; called once for each attempt.
    describe : callable
        Names the parameters, for the error.

    Returns
    -------
    factor : ndarray (n, n)
        The lower factor; what stands above the diagonal is undefined.
    jitter : float
        What had to be added to the diagonal, zero as a rule.

    Raises
    ------
    NotPositiveDefiniteError
        If the largest jitter does not help.
    """
    potrf = _routine("lapack", "dpotrf")
    for jitter in JITTERS:
        matrix = fill()
        n = len(matrix)
        if jitter:
            matrix.flat[:: n + 1] += jitter
        info = ctypes.c_int(0)
        potrf(ctypes.c_char_p(b"U"), _int(n), _data(matrix), _int(n), ctypes.byref(info))
        if info.value == 0 and np.isfinite(matrix[-1, -1]):
            return matrix, jitter
    raise NotPositiveDefiniteError(
        f"The correlation matrix of {n} observations is not positive definite at {describe()} "
        f"(jitter tried up to {JITTERS[-1]:g}). The usual causes are sites that almost coincide "
        "and length scales far beyond the extent of the data: drop or average near-duplicate "
        "sites. Kernels smoother than 'matern12' fail sooner."
    )


def inverse_from_cholesky(factor: FloatArray) -> FloatArray:
    """Overwrite a lower factor by the lower triangle of the inverse, and return it."""
    n = len(factor)
    info = ctypes.c_int(0)
    _routine("lapack", "dpotri")(
        ctypes.c_char_p(b"U"), _int(n), _data(factor), _int(n), ctypes.byref(info)
    )
    if info.value:
        raise NotPositiveDefiniteError(f"dpotri found a zero pivot at row {info.value}.")
    return factor


def solve_lower(factor: FloatArray, right: FloatArray, *, transposed: bool = False) -> FloatArray:
    """Overwrite each row b of ``right`` (m, n) by the solution of L x = b (or L' x = b).

    Right-hand sides are rows, so that a batch of cells is one contiguous block.
    """
    n = len(factor)
    m = right.size // n if n else 0
    # In LAPACK's eyes: U' X = B with the right-hand sides as columns.
    _routine("blas", "dtrsm")(
        ctypes.c_char_p(b"L"),
        ctypes.c_char_p(b"U"),
        ctypes.c_char_p(b"N" if transposed else b"T"),
        ctypes.c_char_p(b"N"),
        _int(n),
        _int(m),
        ctypes.byref(ctypes.c_double(1.0)),
        _data(factor, overwrite=False),
        _int(n),
        _data(right),
        _int(n),
    )
    return right


def log_determinant(factor: FloatArray) -> float:
    """Return log|K| of K = L L'."""
    return 2.0 * float(np.log(np.diagonal(factor)).sum())


def symmetric_product(matrix: FloatArray, rows: FloatArray) -> FloatArray:
    """Return rows (k, n) times a symmetric matrix, of which the lower triangle is read."""
    n, rows = len(matrix), np.ascontiguousarray(rows)
    out = np.empty_like(rows)
    # In BLAS's eyes: C = A B with the rows as columns.
    _routine("blas", "dsymm")(
        ctypes.c_char_p(b"L"),
        ctypes.c_char_p(b"U"),
        _int(n),
        _int(len(rows)),
        ctypes.byref(ctypes.c_double(1.0)),
        _data(matrix, overwrite=False),
        _int(n),
        _data(rows, overwrite=False),
        _int(n),
        ctypes.byref(ctypes.c_double(0.0)),
        _data(out),
        _int(n),
    )
    return out
