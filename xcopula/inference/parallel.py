"""Map a function over sub-models in threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

__all__ = ["in_parallel"]


def in_parallel(function: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> list[Any]:
    """Call the function with each tuple: factorisations and compiled loops release the GIL."""
    workers = min(len(arguments), os.cpu_count() or 1)
    if workers <= 1:
        return [function(*a) for a in arguments]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda a: function(*a), arguments))
