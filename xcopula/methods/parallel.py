"""Map a function over sub-models in threads, where BLAS does not thread itself."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xcopula.solvers.threads import in_threads

__all__ = ["in_parallel"]


def in_parallel(function: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> list[Any]:
    """Call the function with each tuple: factorisations and compiled loops release the GIL.

    Threads of ours on top of threads of BLAS would fight for the cores, and limits hold for the
    whole process: whoever runs a computation sets them around it, and only then are there threads.
    """
    if len(arguments) <= 1 or not _blas_is_single():
        return [function(*a) for a in arguments]
    return in_threads(lambda a: function(*a), arguments)


def _blas_is_single() -> bool:
    controllers = _controller().select(user_api="blas").lib_controllers
    return all(library.num_threads == 1 for library in controllers)


@functools.cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
