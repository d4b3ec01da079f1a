"""Threads for loops that release the GIL: one budget for the whole process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

__all__ = ["in_threads", "thread_count"]

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def thread_count() -> int:
    """Return how many threads this process may use.

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
    """Call a function with each piece, in as many threads as the budget has left.

    Calls within these threads, and from other threads such as those of dask, share it: at the end
    of the budget pieces are handled where the call is made. What the pieces are must not depend on
    that, so that results do not either.
    """
    with _BUDGET.share(len(pieces)) as threads:
        if threads <= 1:
            return [function(piece) for piece in pieces]
        with ThreadPoolExecutor(threads, initializer=_BUDGET.enter) as pool:
            return list(pool.map(function, pieces))


class _Budget:
    """Count the threads at work in :func:`in_threads`."""

    def __init__(self) -> None:
        self._lock, self._busy, self._own = threading.Lock(), 0, threading.local()

    def enter(self) -> None:
        """Mark a thread as counted already, by the call that started it."""
        self._own.counted = True

    @contextmanager
    def share(self, wanted: int) -> Iterator[int]:
        """Yield how many threads a call may use, its own among them."""
        counted = getattr(self._own, "counted", False)
        with self._lock:
            left = thread_count() - self._busy + counted
            threads = max(1, min(wanted, left))
            taken = threads - counted
            self._busy += taken
        self._own.counted = True
        try:
            yield threads
        finally:
            self._own.counted = counted
            with self._lock:
                self._busy -= taken


_BUDGET = _Budget()


def _forget() -> None:
    """Begin anew: threads do not survive a fork."""
    global _BUDGET
    _BUDGET = _Budget()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_forget)
