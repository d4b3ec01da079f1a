"""Keep dask's graphs alive in forked processes."""

from __future__ import annotations

import functools
import os
import sys
import threading
from typing import Any

__all__ = ["survive_forks"]


@functools.cache
def survive_forks() -> None:
    """Give a forked process a thread pool of its own; called when the package is imported.

    A child inherits dask's default pool without its threads, and would wait for them for ever. The
    pool may be anyone's work, so that it does not matter who built the graph.
    """
    if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
        os.register_at_fork(after_in_child=_forget_pools)


def _forget_pools() -> None:
    threaded: Any = sys.modules.get("dask.threaded")
    if threaded is not None:
        threaded.default_pool = None
        threaded.pools = type(threaded.pools)(dict)
        threaded.pools_lock = threading.Lock()
