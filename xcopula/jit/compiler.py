"""The one decorator by which the package compiles its loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

__all__ = ["compiled"]


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function on its first call, and keep the result on disk where that is possible.

    The compiled function releases the GIL and follows numpy where a number is divided by zero.
    Where no cache directory is writable (read-only installs, containers) it is compiled anew in
    each process; the environment variable ``NUMBA_CACHE_DIR`` names another directory.
    """
    options = {"nogil": True, "error_model": "numpy"}
    loop: Callable[..., Any]
    try:
        loop = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # "cannot cache function: no locator available"
        loop = numba.njit(**options)(function)
    return loop
