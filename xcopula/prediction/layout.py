"""How a result is cut into blocks: by what is asked, by the target's own chunks, or not at all."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from xcopula.errors import PerformanceWarning
from xcopula.warn import shown, warn_user

__all__ = ["Chunks", "Layout", "Target", "check_layout", "choose_chunks", "own_chunks"]

Chunks = int | str | Mapping[Any, Any] | None
Layout = Mapping[Hashable, tuple[int, ...]]
Target = xr.Dataset | xr.DataArray

_CHUNKS = (
    "`chunks` must be a number of cells (-1 for all), 'auto', a size such as '10 MB', or a mapping "
    "of dims to these"
)

# Beyond these a lazy request is warned of: schedulers take about a millisecond for a block, and
# a worker holds a few blocks at a time.
_MOST_BLOCKS = 10_000
_LARGEST_BLOCK_BYTES = 2**30
# A block of so many cells takes seconds, and some tens of megabytes.
_GOOD_CELLS = 2**20


def own_chunks(target: Target, used: Sequence[xr.DataArray]) -> dict[Hashable, tuple[int, ...]]:
    """Return the chunks of each dim: of what the prediction reads, else of any variable."""
    found: dict[Hashable, tuple[int, ...]] = {}
    others = [target.variable] if isinstance(target, xr.DataArray) else target.variables.values()
    for array in [*(u.variable for u in used), *others]:  # without coordinates in other chunks
        for dim, chunks in array.chunksizes.items():
            found.setdefault(dim, chunks)
    return found


def choose_chunks(
    own: Layout,
    dims: tuple[Hashable, ...],
    sizes: Mapping[Hashable, int],
    chunks: Chunks,
    cell_bytes: int,
) -> dict[Hashable, tuple[int, ...]] | None:
    """Return the chunks of each dim, or None for a result in memory.

    Raises
    ------
    TypeError, ValueError
        If ``chunks`` are not valid.
    """
    _check_chunks(chunks)
    if isinstance(chunks, Mapping):
        unknown = [d for d in chunks if d not in dims]
        if unknown:
            raise ValueError(f"`chunks` names {unknown}, but the result has dims {list(dims)}.")
        for dim, pieces in chunks.items():
            if isinstance(pieces, list | tuple) and sum(pieces) != sizes[dim]:
                raise ValueError(
                    f"The `chunks` of {dim!r} add up to {sum(pieces)} cells, but there are "
                    f"{sizes[dim]}. Give one size for all pieces."
                )
    if not dims or (chunks is None and not any(d in own for d in dims)):
        return None
    from dask.array.core import normalize_chunks

    if isinstance(chunks, Mapping):
        wanted = tuple(chunks.get(d, own.get(d, -1)) for d in dims)
    elif chunks is None:
        wanted = tuple(own.get(d, -1) for d in dims)
    else:
        wanted = (chunks,) * len(dims)
    shape = tuple(sizes[d] for d in dims)
    wanted = tuple(
        min(w, max(n, 1)) if isinstance(w, int) else w for w, n in zip(wanted, shape, strict=True)
    )
    # "auto" counts all that a block holds, so that it stays within dask's ``array.chunk-size``.
    found = normalize_chunks(wanted, shape, dtype=np.dtype(f"V{cell_bytes}"))
    return dict(zip(dims, found, strict=True))


def _check_chunks(chunks: Any) -> None:
    """Refuse anything but a number of cells, a size in bytes, or a mapping of dims to these."""
    for piece in chunks.values() if isinstance(chunks, Mapping) else [chunks]:
        if piece is None or (isinstance(piece, str) and _is_size(piece)):
            continue
        several = isinstance(chunks, Mapping) and isinstance(piece, list | tuple) and piece
        for number in piece if several else [piece]:
            if isinstance(number, bool) or not isinstance(number, int | np.integer):
                raise TypeError(f"{_CHUNKS}, found {shown(chunks)}.")
            if number < 1 and (several or number != -1):
                raise ValueError(f"{_CHUNKS}, found {shown(chunks)}.")


def _is_size(text: str) -> bool:
    from dask.utils import parse_bytes

    try:
        return text == "auto" or (bool(text.strip()) and parse_bytes(text) > 0)
    except ValueError:
        return False


def check_layout(layout: Layout, cell_bytes: int) -> None:
    """Warn of far too many blocks, or far too large ones, and name better chunks."""
    count = math.prod(len(c) for c in layout.values())
    largest = math.prod(max(c, default=0) for c in layout.values())
    if count > _MOST_BLOCKS:
        found = (
            f"{count:,} blocks; with more than {_MOST_BLOCKS:,} the scheduler has more to do than "
            "the work itself"
        )
    elif largest * cell_bytes > _LARGEST_BLOCK_BYTES:
        size = largest * cell_bytes / 2**30
        found = f"blocks of {largest:,} cells; each takes {size:.1f} GiB, and several run at a time"
    else:
        return
    from dask.array.core import normalize_chunks

    shape = tuple(sum(c) for c in layout.values())
    cells = max(_GOOD_CELLS, 2 * math.prod(shape) // _MOST_BLOCKS)
    limit = min(cells * cell_bytes, _LARGEST_BLOCK_BYTES)
    better = normalize_chunks("auto", shape, limit=limit, dtype=np.dtype(f"V{cell_bytes}"))
    chunks = {d: max(c) for d, c in zip(layout, better, strict=True)}
    warn_user(f"The prediction has {found}. Give `chunks={chunks}`.", PerformanceWarning)
