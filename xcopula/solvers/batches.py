"""Work on targets in batches of a fixed size in memory, whatever the size of a chunk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy.typing as npt

__all__ = ["batches", "batches_of_lists"]

_BATCH_BYTES = 64 * 2**20


def batches(size: int, width: int) -> Iterator[slice]:
    """Cut ``size`` targets so that rows of ``width`` numbers stay within the budget."""
    step = max(1, _BATCH_BYTES // (8 * max(width, 1)))
    return (slice(start, min(start + step, size)) for start in range(0, size, step))


def batches_of_lists(
    lists: Iterable[npt.NDArray[Any]], copies: int, width: int
) -> Iterator[tuple[slice, list[npt.NDArray[Any]]]]:
    """Gather lists, one for each target, as long as a batch of them stays within the budget.

    A target takes ``width`` numbers, and ``copies`` times as many as the longest list of its batch
    has. Lists are taken when they are needed: those of one batch are held, and the next one.
    """
    start, longest = 0, 0
    held: list[npt.NDArray[Any]] = []
    for own in lists:
        wider = max(longest, len(own))
        if held and 8 * (len(held) + 1) * (width + copies * wider) > _BATCH_BYTES:
            yield slice(start, start + len(held)), held
            start, wider, held = start + len(held), len(own), []
        held.append(own)
        longest = wider
    if held:
        yield slice(start, start + len(held)), held
