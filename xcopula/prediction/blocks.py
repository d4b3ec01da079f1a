"""What happens to one block of a target, and how blocks become a lazy array.

The block functions are plain numpy. The same function serves an in-memory target (one block) and
a chunked one, where dask calls it for each chunk; so lazy equals eager by construction. What they
need of the model enters the graph once, as a delayed
:class:`~xcopula.prediction.predictor.Predictor`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xcopula.arrays import FloatArray

__all__ = ["Query", "broadcast", "evaluate", "slices", "transform", "wanted_cells"]

Tell = Callable[[int, int], object]

# Index symbols of blockwise for the axes that are not dimensions of the target.
_ROW, _LEADING = "__row__", "__leading__"
# A coordinate beyond this, or none, is no place.
_NOWHERE = 1e150
# Cells of a block that are worked on at a time, so that what is only passing stays small.
_CELLS = 2**16


def slices(size: int, step: int | None = None) -> Iterator[slice]:
    """Cut cells into pieces that are worked on at a time."""
    step = step or _CELLS
    return (slice(k, min(k + step, size)) for k in range(0, size, step))


def broadcast(
    arrays: Sequence[npt.NDArray[Any]], missing: Sequence[tuple[int, ...]]
) -> tuple[npt.NDArray[Any], ...]:
    """Return arrays with all dims of the block, as views: a grid is never written out."""
    whole = [np.expand_dims(a, axes) for a, axes in zip(arrays, missing, strict=True)]
    return np.broadcast_arrays(*whole)


def wanted_cells(
    coordinates: Sequence[npt.NDArray[Any]], mask: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Return the numbers of the cells that are asked for and have a place."""
    wanted = mask.flatten()
    for part in slices(wanted.size):
        for c in coordinates:
            wanted[part] &= np.abs(c.flat[part]) < _NOWHERE
    return np.flatnonzero(wanted)


def evaluate(
    *arrays: npt.NDArray[Any],
    missing: Sequence[tuple[int, ...]],
    predictor: Any,
    quantity: str,
    rows: int | None,
    task: int,
    nugget: bool,
    tell: Tell | None = None,
) -> FloatArray:
    """Return a quantity of the latent process, stacked first, on a block.

    Parameters
    ----------
    *arrays : ndarray
        One coordinate for each axis of the system, then a boolean mask; each with the dims that
        it has, in the order of the block's.
    missing : sequence of tuple of int
        For each array, the dims of the block that it lacks.
    predictor : Predictor
    quantity : {"latent", "mean", "frame", "information"}
        Method of the predictor.
    rows : int, optional
        How many numbers a cell has; None for latent moments of which it was not known before the
        fit whether values are intervals.
    task : int
        Which variable.
    nugget : bool
    tell : callable, optional
        Called as ``tell(done, total)`` with numbers of cells.
    """
    *coordinates, mask = broadcast(arrays, missing)
    rows = predictor.rows(quantity, task, nugget) if rows is None else rows
    cells = wanted_cells(coordinates, mask)
    out = np.full((rows, mask.size), np.nan)
    for part in slices(cells.size):
        where = cells[part]
        numbers = [c.flat[where] for c in coordinates]
        out[:, where] = getattr(predictor, quantity)(numbers, task, nugget)
        if tell is not None:
            tell(part.stop, cells.size)
    return out.reshape(rows, *mask.shape)


@dataclass(frozen=True)
class Query:
    """The cells of a target: coordinates and mask, dims, and chunks where it is lazy.

    Attributes
    ----------
    arrays : sequence of array
        Coordinates and mask, each with dims in the order of ``dims``.
    index : sequence of tuple
        Their dims.
    dims : tuple
    chunks : mapping of dim to tuple of int, or None
        None for a result in memory.
    task : int
        Which variable is asked for.
    nugget : bool
    fields : sequence of array
        Fields of its law, each with dims in the order of ``dims``.
    field_index : sequence of tuple
        Their dims.
    """

    arrays: Sequence[Any]
    index: Sequence[tuple[Hashable, ...]]
    dims: tuple[Hashable, ...]
    chunks: Mapping[Hashable, tuple[int, ...]] | None
    task: int
    nugget: bool
    fields: Sequence[Any] = ()
    field_index: Sequence[tuple[Hashable, ...]] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of cells along each dim."""
        pairs = zip(self.arrays, self.index, strict=True)
        sizes = {d: n for a, names in pairs for d, n in zip(names, a.shape, strict=True)}
        return tuple(sizes[d] for d in self.dims)

    def places(self) -> tuple[npt.NDArray[np.int64], list[FloatArray]]:
        """Return the numbers (r,) of the cells that are asked for, in C order, and coordinates."""
        arrays = [np.asarray(a) for a in self.arrays]
        *coordinates, mask = broadcast(arrays, self.missing(self.index))
        cells = wanted_cells(coordinates, mask)
        return cells, [c.flat[cells] for c in coordinates]

    def evaluate(
        self,
        predictor: Any,
        quantity: str,
        rows: int | None,
        tell: Tell | None = None,
        *,
        tasks: tuple[int, int] | None = None,
    ) -> Any:
        """Evaluate a quantity on all cells, now or lazily; only now it tells of cells.

        None is a number of rows that is not known before the model is fitted. A quantity of two
        variables has ``tasks`` in place of its own.
        """
        options: dict[str, Any] = {
            "missing": self.missing(self.index),
            "predictor": predictor,
            "quantity": quantity,
            "rows": rows,
            "task": self.task if tasks is None else tasks,
            "nugget": self.nugget,
        }
        if self.chunks is None:
            return evaluate(*map(np.asarray, self.arrays), **options, tell=tell)
        import dask.array as da

        size = np.nan if rows is None else rows
        if not self.dims:
            import dask

            point = dask.delayed(evaluate, pure=True)(*self.arrays, **options)
            return da.from_delayed(point, shape=(size,), dtype=np.float64)
        return da.blockwise(
            evaluate,
            (_ROW, *self.dims),
            *self.pairs(self.arrays, self.index),
            new_axes={_ROW: size},
            align_arrays=False,  # they are; and an outer product is meant to have many blocks
            dtype=np.float64,
            meta=np.empty((0,) * (1 + len(self.dims))),
            **options,
        )

    def transform(
        self,
        moments: Any,
        function: Callable[..., FloatArray],
        predictor: Any,
        leading: FloatArray | None,
        given: tuple[Any, tuple[Hashable, ...]] | None = None,
        tell: Tell | None = None,
    ) -> Any:
        """Apply :func:`transform` to latent moments of all cells, now or lazily.

        What is ``given`` is a value for each cell, with its dims.
        """
        fields, index = list(self.fields), list(self.field_index)
        if given is not None:
            fields, index = [*fields, given[0]], [*index, given[1]]
        options: dict[str, Any] = {
            "missing": self.missing(index),
            "function": function,
            "predictor": predictor,
            "task": self.task,
            "leading": leading,
            "given": given is not None,
        }
        if isinstance(moments, np.ndarray):
            return transform(moments, *map(np.asarray, fields), **options, tell=tell)
        import dask.array as da

        outer = self.dims if leading is None else (_LEADING, *self.dims)
        return da.blockwise(
            transform,
            outer,
            moments,
            (_ROW, *self.dims),
            *self.pairs(fields, index),
            new_axes={} if leading is None else {_LEADING: len(leading)},
            concatenate=True,
            align_arrays=False,
            dtype=np.float64,
            meta=np.empty((0,) * len(outer)),
            **options,
        )

    def missing(self, index: Sequence[tuple[Hashable, ...]]) -> list[tuple[int, ...]]:
        """Return, for each array, the dims that it lacks."""
        return [tuple(k for k, d in enumerate(self.dims) if d not in names) for names in index]

    def pairs(self, arrays: Sequence[Any], index: Sequence[tuple[Hashable, ...]]) -> list[Any]:
        """Return arrays and their dims as blockwise takes them, in the chunks of the result."""
        import dask.array as da

        chunks = self.chunks or {}
        pairs: list[Any] = []
        for array, names in zip(arrays, index, strict=True):
            if not names:
                pairs += [np.asarray(array), None]
            elif isinstance(array, da.Array):
                pairs += [array.rechunk({k: chunks[n] for k, n in enumerate(names)}), names]
            else:
                pieces = tuple(chunks[n] for n in names)
                pairs += [da.from_array(np.asarray(array), chunks=pieces), names]
        return pairs


def transform(
    moments: FloatArray,
    *fields: npt.NDArray[Any],
    missing: Sequence[tuple[int, ...]],
    function: Callable[..., FloatArray],
    predictor: Any,
    task: int,
    leading: FloatArray | None,
    given: bool = False,
    tell: Tell | None = None,
) -> FloatArray:
    """Apply ``function(predictive[, value])``, stacked first over leading values.

    Moments are those of :meth:`Predictor.predictive`. Fields of the law have the dims that they
    have; ``missing`` says which they lack. If a value is ``given`` for each cell, it is the last of
    the fields. ``tell(done, total)`` hears how many cells are done.
    """
    shape = moments.shape[1:]
    flat = moments.reshape(len(moments), -1)
    whole = [
        np.broadcast_to(np.expand_dims(f, axes), shape)
        for f, axes in zip(fields, missing, strict=True)
    ]
    beside = whole.pop() if given else None
    values: Sequence[tuple[Any, ...]] = [()] if leading is None else [(v,) for v in leading]
    out = np.full((len(values), flat.shape[1]), np.nan)
    cells = np.flatnonzero(np.isfinite(flat[0]))  # what is masked asks nothing of the law
    for part in slices(cells.size):
        where = cells[part]
        law = predictor.predictive(task, flat[:, where], [f.flat[where] for f in whole])
        own = () if beside is None else (beside.flat[where],)
        for row, value in zip(out, values, strict=True):
            row[where] = function(law, *value, *own)
        if tell is not None:
            tell(part.stop, cells.size)
    return out.reshape(shape if leading is None else (len(values), *shape))
