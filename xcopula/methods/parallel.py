"""Map a function over sub-models in threads, where BLAS does not thread itself."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

__all__ = ["in_parallel"]


def in_parallel(function: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> list[Any]:
    """Call the function with each tuple: factorisations and compiled loops release the GIL.

    Threads of ours on top of threads of BLAS would fight for the cores, and limits hold for the
    whole process: whoever runs a computation sets them around it, and only then are there threads.
    """
    workers = min(len(arguments), os.cpu_count() or 1)
    if workers <= 1 or not _blas_is_single():
        return [function(*a) for a in arguments]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda a: function(*a), arguments))


def _blas_is_single() -> bool:
    controllers = _controller().select(user_api="blas").lib_controllers
    return all(library.num_threads == 1 for library in controllers)


@functools.cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
