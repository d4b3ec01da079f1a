"""Predict the primary variable of a model on any labelled target."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import xarray as xr

from xcopula.prediction import blocks
from xcopula.labels.coordinates import CoordinateSystem, find_projection
from xcopula.errors import FieldError, PerformanceWarning, warn_user
from xcopula.labels.fields import Field, find_fields
from xcopula.prediction.posterior import Posterior
from xcopula.prediction.predictor import Predictor

__all__ = ["Chunks", "Predicts", "Target", "posterior", "predict"]

Chunks = int | str | Mapping[str, Any] | None
Target = xr.Dataset | xr.DataArray

_OF = ("observation", "signal")

# Beyond these a lazy request is warned of: schedulers take about a millisecond for a block, and
# a worker holds a few blocks at a time.
_MOST_BLOCKS = 10_000
_LARGEST_BLOCK_BYTES = 2**30
# A block of so many cells takes seconds, and some tens of megabytes.
_GOOD_CELLS = 2**20


class Predicts(Protocol):
    """What prediction asks of a model, fitted or still to be computed."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """Variables, the primary first."""

    @property
    def coordinates(self) -> CoordinateSystem:
        """The inputs; their scale may still be unknown."""

    @property
    def primary_attrs(self) -> dict[str, Any]:
        """Attributes of the primary variable."""

    @property
    def primary_fields(self) -> tuple[Field, ...]:
        """What the primary's law varies with."""

    @property
    def predictor(self) -> Predictor | None:
        """What predicts, or None if it is still to be computed."""

    def predictor_node(self) -> Any:
        """Return what predicts as a delayed object."""


def predict(
    model: Predicts,
    target: Target,
    quantiles: float | Sequence[float] = (0.05, 0.5, 0.95),
    *,
    chunks: Chunks = None,
    of: str = "observation",
    mask: str | xr.DataArray | None = None,
) -> xr.Dataset:
    """Predict quantiles of the primary variable.

    Parameters
    ----------
    model : CopulaModel or LazyModel
    target : Dataset or DataArray
        Carries the model's coordinates, by CF role or by name: dims of a grid, 2-D coordinates of a
        curvilinear one, coordinates of scattered points, or scalars; and the fields that the
        primary's law varies with, if any. Cells with a NaN coordinate or field come back as NaN.
    quantiles : float or sequence of float
        Levels strictly between 0 and 1.
    chunks : int, str or mapping, optional
        Chunks of the result, which is then lazy. None follows the target: lazy where it is
        chunked, in memory where it is not.
    of : {"observation", "signal"}
        What is predicted: a value as it would be observed, or the signal without the nugget. At a
        site where the primary was observed the former is that very value.
    mask : str or DataArray, optional
        Boolean, or the name of a variable of the target: False cells are NaN and cost nothing.

    Returns
    -------
    Dataset
        A variable of the primary's name with a first dim ``quantile`` (a scalar coordinate for one
        number), the target's dims and coordinates, and the primary's attributes.

    Raises
    ------
    CoordinateError
        If the target lacks a coordinate, or has other units, another calendar or projection.
    FieldError
        If it lacks a field of the law, or has a group that the training data never had.
    ValueError
        If a level, ``of`` or the mask is not valid.
    """
    result = _posterior(model, target, chunks, of, mask, results=np.size(quantiles))
    return result.quantile(quantiles).to_dataset()


def posterior(
    model: Predicts,
    target: Target,
    *,
    chunks: Chunks = None,
    of: str = "observation",
    mask: str | xr.DataArray | None = None,
) -> Posterior:
    """Return the full posterior of the primary variable on a target; see :func:`predict`."""
    return _posterior(model, target, chunks, of, mask, results=1)


def _posterior(
    model: Predicts,
    target: Target,
    chunks: Chunks,
    of: str,
    mask: str | xr.DataArray | None,
    results: int,
) -> Posterior:
    if of not in _OF:
        raise ValueError(f"`of` is one of {_OF}, found {of!r}.")
    if not isinstance(target, xr.Dataset | xr.DataArray):
        raise TypeError(f"The target is a Dataset or DataArray, found {type(target).__name__}.")
    found = find_projection(target)
    model.coordinates.check_projection(found, "The target")
    query, predictor = _query(model, target, chunks, of, _mask(target, mask), results)
    attrs, coords = dict(model.primary_attrs), _kept(target, query.dims, model.tasks[0])
    # The result is on the target's grid; without a word of its own it is on the training data's.
    if attrs.pop("grid_mapping", None) and found is None:
        found = model.coordinates.grid_mapping
    if found is not None:
        attrs["grid_mapping"] = found.name
        coords[found.name] = found.to_coordinate()
    return Posterior(
        tasks=model.tasks,
        query=query,
        predictor=predictor,
        moments=query.evaluate(predictor, "latent", 2),
        coords=coords,
        attrs=attrs,
    )


def _query(
    model: Predicts, target: Target, chunks: Chunks, of: str, mask: xr.DataArray, results: int
) -> tuple[blocks.Query, Any]:
    """Find the cells of a target and how they are chunked, and what predicts on them."""
    fields = find_fields(model.primary_fields, target, model.coordinates, model.tasks[0])
    sources = [field.source for field in model.primary_fields]
    arrays = [*model.coordinates.find_in(target, ignore=sources), mask]
    dims = _dims(target, arrays, fields)
    # Of other labels or sizes, a mask or a field is an error.
    xr.align(*arrays, *fields, join="exact", copy=False)
    arrays, fields = (
        [a.transpose(*(d for d in dims if d in a.dims)) for a in each] for each in (arrays, fields)
    )
    if not mask.dims:
        _check_groups(model.primary_fields, fields)
    sizes = {d: a.sizes[d] for a in arrays for d in a.dims}
    # What a block holds of a cell: its coordinates, the latent mean and deviation, the results.
    cell_bytes = 8 * (len(arrays) - 1 + 2 + len(fields) + results)
    layout = _chunks(_own_chunks(target, [*arrays, *fields]), dims, sizes, chunks, cell_bytes)
    predictor: Any
    if layout is None and model.predictor is not None:
        predictor = model.predictor
        _warn_of_lost_cells(arrays[:-1])
    else:
        # One node for the model and what is conditioned on it: blocks refer to it.
        predictor = model.predictor_node()
        layout = layout or {d: (sizes[d],) for d in dims}
        _check_layout(layout, cell_bytes)
    query = blocks.Query(
        arrays=[a.data for a in arrays],
        index=[a.dims for a in arrays],
        dims=dims,
        chunks=layout,
        nugget=of == "observation",
        fields=[f.data for f in fields],
        field_index=[f.dims for f in fields],
    )
    return query, predictor


def _check_groups(fields: Sequence[Field], found: Sequence[xr.DataArray]) -> None:
    """Say at once, not in a block, that a group was never seen; a mask may hide it."""
    for field, values in zip(fields, found, strict=True):
        if field.groups and values.ndim < 2 and values.chunks is None:
            field.encode(values.values)


def _kept(target: Target, dims: tuple[Hashable, ...], primary: str) -> dict[Hashable, xr.DataArray]:
    """Return the coordinates of the target that the result keeps."""
    return {n: c for n, c in target.coords.items() if set(c.dims) <= set(dims) and n != primary}


def _warn_of_lost_cells(coordinates: Sequence[xr.DataArray]) -> None:
    """Warn of curvilinear coordinates with gaps: their cells will be NaN."""
    for coordinate in coordinates:
        if coordinate.ndim < 2 or coordinate.chunks is not None:
            continue
        lost = int(np.isnan(coordinate.values).sum())
        if lost:
            warn_user(
                f"{lost} of {coordinate.size} cells of the target have a coordinate "
                f"{coordinate.name!r} that is NaN; their predictions will be NaN too."
            )
            return


def _mask(target: Target, mask: str | xr.DataArray | None) -> xr.DataArray:
    if mask is None:
        return xr.DataArray(True)
    if isinstance(mask, str):
        if mask not in target.coords and mask not in getattr(target, "data_vars", ()):
            raise ValueError(f"The target has no variable {mask!r} to use as a mask.")
        mask = target[mask]
    if not isinstance(mask, xr.DataArray):
        raise TypeError(
            f"A mask is a DataArray or the name of a variable, found {type(mask).__name__}."
        )
    if mask.dtype != bool:
        raise ValueError(
            f"A mask is boolean, found dtype {mask.dtype}. Use `mask.astype(bool)` or a comparison."
        )
    return mask


def _dims(
    target: Target, arrays: Sequence[xr.DataArray], fields: Sequence[xr.DataArray]
) -> tuple[Hashable, ...]:
    """Return the dims of the result, in the order that the target shows them."""
    needed = {d for a in arrays[:-1] for d in a.dims}
    strange = [d for f in fields for d in f.dims if d not in needed]
    if strange:
        raise FieldError(
            f"A field of the law has dims {strange} that the target's coordinates lack. Select one "
            "entry along them."
        )
    foreign = [d for d in arrays[-1].dims if d not in needed]
    if foreign:
        raise ValueError(f"The mask has dims {foreign} that the target's coordinates lack.")
    shown = list(target.dims)
    for variable in getattr(target, "data_vars", {}).values():
        if needed <= set(variable.dims):
            shown = list(variable.dims)
            break
    return tuple(d for d in shown if d in needed)


def _own_chunks(target: Target, used: Sequence[xr.DataArray]) -> dict[Hashable, tuple[int, ...]]:
    """Return the chunks of each dim: of what the prediction reads, else of any variable."""
    found: dict[Hashable, tuple[int, ...]] = {}
    others = [target] if isinstance(target, xr.DataArray) else target.variables.values()
    for array in [*used, *others]:
        for dim, chunks in array.chunksizes.items():
            found.setdefault(dim, chunks)
    return found


def _chunks(
    own: Mapping[Hashable, tuple[int, ...]],
    dims: tuple[Hashable, ...],
    sizes: Mapping[Hashable, int],
    chunks: Chunks,
    cell_bytes: int,
) -> dict[Hashable, tuple[int, ...]] | None:
    """Return the chunks of each dim, or None for a result in memory."""
    if not dims or (chunks is None and not any(d in own for d in dims)):
        return None
    from dask.array.core import normalize_chunks

    if isinstance(chunks, Mapping):
        unknown = [d for d in chunks if d not in dims]
        if unknown:
            raise ValueError(f"`chunks` names {unknown}; the dims of the result are {list(dims)}.")
        wanted = tuple(chunks.get(str(d), own.get(d, -1)) for d in dims)
    elif chunks is None:
        wanted = tuple(own.get(d, -1) for d in dims)
    else:
        wanted = (chunks,) * len(dims)
    shape = tuple(sizes[d] for d in dims)
    # "auto" counts all that a block holds, so that it stays within dask's ``array.chunk-size``.
    found = normalize_chunks(wanted, shape, dtype=np.dtype(f"V{cell_bytes}"))
    return dict(zip(dims, found, strict=True))


def _check_layout(layout: Mapping[Hashable, tuple[int, ...]], cell_bytes: int) -> None:
    """Warn of far too many blocks, or far too large ones, and name better chunks."""
    count = math.prod(len(c) for c in layout.values())
    largest = math.prod(max(c, default=0) for c in layout.values())
    if count > _MOST_BLOCKS:
        found = (
            f"{count:,} blocks; more than {_MOST_BLOCKS:,} keep the scheduler busier than the work"
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
