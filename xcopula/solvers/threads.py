"""Threads for loops that release the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["in_threads", "thread_count"]

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def thread_count() -> int:
    """Return how many threads one computation may use.

    ``OMP_NUM_THREADS`` says it, as it does for BLAS: a worker of a cluster is started with 1. Else
    it is the number of cores that the process may run on.
    """
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def in_threads(function: Callable[[Piece], Result], pieces: Sequence[Piece]) -> list[Result]:
    """Call a function with each piece, at once; one piece needs no thread."""
    if len(pieces) == 1:
        return [function(pieces[0])]
    with ThreadPoolExecutor(len(pieces)) as pool:
        return list(pool.map(function, pieces))
