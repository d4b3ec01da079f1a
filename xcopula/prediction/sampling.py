"""Realizations of a posterior on all cells, in memory or lazy.

Realizations are drawn some at a time, so that what is held does not grow with their number: prior
draws at the data are made once for all blocks, and blocks of cells are conditioned on them.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from xcopula.prediction.blocks import Query, Tell
from xcopula.prediction.simulation import realize, simulate
from xcopula.solvers.threads import in_threads, thread_count

__all__ = ["draw", "drawn_together"]

# So many numbers are worked on at a time, of cells or of data; and so many realizations.
_NUMBERS, _TOGETHER = 2**24, 256
# Index symbols of blockwise for the axes that are not dimensions of the target.
_ROW, _REALIZATION = "__row__", "__realization__"


def drawn_together(cells: int, data: int) -> int:
    """Return how many realizations are drawn together, on so many cells, of so many values."""
    return max(1, min(_TOGETHER, _NUMBERS // max(cells, data, 1)))


def draw(
    query: Query,
    predictor: Any,
    frame: Any,
    data: int,
    n: int,
    *,
    seed: int,
    start: int,
    tell: Tell | None = None,
) -> Any:
    """Return n realizations (n, ...) on the cells of a query, now or lazily.

    Parameters
    ----------
    query : Query
    predictor : Predictor, or delayed
    frame : array (2, ...)
        What :meth:`Predictor.frame` says of all cells.
    data : int
        Number of observations, as far as it is known.
    n, seed, start : int
        Realizations of a seed, from this number on.
    tell : callable, optional
        Called as ``tell(done, total)`` with numbers of realizations, if the result is in memory.
    """
    if query.chunks is not None:
        return _lazy(query, predictor, frame, data, n, seed, start)
    arrays = [np.asarray(a) for a in (*query.arrays, *query.fields)]
    values = np.empty((n, *query.shape))

    def fill(part: tuple[int, int]) -> None:
        first, stop = part
        drawn = realize(predictor, seed, start + first, stop - first)
        values[first:stop] = simulate(
            frame, *arrays, predictor=predictor, realizations=drawn, **_options(query)
        )

    for shared in ("prior", "joint"):  # made once, by all threads of BLAS
        getattr(predictor.process, shared)
    step = drawn_together(math.prod(query.shape), data)
    for first in range(0, n, step):
        stop = min(first + step, n)
        pieces = min(thread_count(), stop - first)
        edges = np.linspace(first, stop, pieces + 1).astype(np.int64).tolist()
        # The products of one realization are too small for threads of BLAS.
        with threadpool_limits(1, user_api="blas"):
            in_threads(fill, list(itertools.pairwise(edges)))
        if tell is not None:
            tell(stop, n)
    return values


def _options(query: Query) -> dict[str, Any]:
    index = [*query.index, *query.field_index]
    return {"missing": query.missing(index), "task": query.task, "nugget": query.nugget}


def _lazy(
    query: Query, predictor: Any, frame: Any, data: int, n: int, seed: int, start: int
) -> Any:
    import dask
    import dask.array as da

    arrays, index = [*query.arrays, *query.fields], [*query.index, *query.field_index]
    chunks = query.chunks or {}
    step = drawn_together(math.prod(max(chunks[d], default=1) for d in query.dims), data)
    parts = []
    for first in range(0, n, step):
        count = min(step, n - first)
        drawn = dask.delayed(realize, pure=True)(predictor, seed, start + first, count)
        options = {"predictor": predictor, "realizations": drawn, **_options(query)}
        if query.dims:
            part = da.blockwise(
                simulate,
                (_REALIZATION, *query.dims),
                frame,
                (_ROW, *query.dims),
                *query.pairs(arrays, index),
                new_axes={_REALIZATION: count},
                align_arrays=False,
                dtype=np.float64,
                meta=np.empty((0,) * (1 + len(query.dims))),
                **options,
            )
        else:
            point = dask.delayed(simulate, pure=True)(frame, *arrays, **options)
            part = da.from_delayed(point, shape=(count,), dtype=np.float64)
        parts.append(part)
    return da.concatenate(parts)
