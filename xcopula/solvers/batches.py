"""Work on targets in batches of a fixed size in memory, whatever the size of a chunk."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["batches"]

_BATCH_BYTES = 64 * 2**20


def batches(size: int, width: int) -> Iterator[slice]:
    """Cut ``size`` targets so that rows of ``width`` numbers stay within the budget."""
    step = max(1, _BATCH_BYTES // (8 * max(width, 1)))
    return (slice(start, min(start + step, size)) for start in range(0, size, step))
