"""The one decorator by which the package compiles its loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

__all__ = ["compiled", "vectorised"]

# Numba's cache does not see a change of this file: compiled functions keep the options that they
# were compiled with until their own file changes.
_OPTIONS = {"nogil": True, "error_model": "numpy"}


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile a function on its first call, and keep the result on disk where that is possible.

    The compiled function releases the GIL and follows numpy where a number is divided by zero.
    Where no cache directory is writable (read-only installs, containers) it is compiled anew in
    each process; the environment variable ``NUMBA_CACHE_DIR`` names another directory.
    """
    loop: Callable[..., Any]
    options = _OPTIONS | options
    try:
        loop = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # "cannot cache function: no locator available"
        loop = numba.njit(**options)(function)
    return loop


def vectorised(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function whose sums may be taken in any order.

    Only so can several terms be added at a time. Multiplications are fused with additions too.
    NaN and infinity are what they are elsewhere.
    """
    return compiled(function, fastmath={"contract", "reassoc"})
