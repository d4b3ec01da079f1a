"""The entries of a variable that are not NaN, with the labels that stand beside them.

A variable that is backed by dask is read chunk by chunk, and only its entries are kept: an array
with few entries, such as the swath of a satellite, never lies in memory as a whole. All variables
are read in one request, so that what they are made of is computed once.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.arrays import FloatArray, IntArray
from xcopula.labels.coordinates import Extent, Projection, coordinates_of, find_projection
from xcopula.labels.limits import LIMITS, settle_values, told_by, without_limits
from xcopula.labels.variables import is_lazy

__all__ = ["Entries", "Source", "Unread", "find_entries", "to_read", "with_known"]

# The dim of coordinates that are known at the entries only.
_ENTRY = "__entry__"


@dataclass(frozen=True)
class Entries:
    """The entries of a variable that are not NaN, in the order of the array.

    Attributes
    ----------
    name : str
    attrs : dict
    dims : tuple
    shape : tuple of int
        Of the whole array.
    labels : Dataset
        The coordinates: on their own dims, or, if they are as large as the array, at the entries
        only.
    projection : Projection, optional
    places : ndarray (n,), int64
        Where the entries stand in the array, counted in C order.
    values : ndarray (n,)
    extents : dict
        Of the coordinates that were never in memory as a whole.
    limits : ndarray (2, n), optional
        Between which numbers each value lies, where some are known as intervals.
    told : tuple of str
        Names of the variables in which limits were found.
    """

    name: str
    attrs: dict[str, Any]
    dims: tuple[Hashable, ...]
    shape: tuple[int, ...]
    labels: xr.Dataset
    projection: Projection | None
    places: IntArray
    values: FloatArray
    extents: dict[Any, Extent] = field(default_factory=dict)
    limits: FloatArray | None = None
    told: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, array: xr.DataArray) -> Entries:
        """Find the entries of a variable in memory."""
        flat = np.asarray(array.values).reshape(-1)
        places = np.flatnonzero(~np.isnan(flat)).astype(np.int64, copy=False)
        found = cls(
            **_described(name, array),
            labels=coordinates_of(without_limits(array)),
            places=places,
            values=flat[places].astype(np.float64),
        )
        beside = _beside(array)
        columns = [found.at(array.coords[n]) for n in beside]
        return found._with_beside(beside, columns)

    def _with_beside(
        self, beside: Mapping[Hashable, dict[str, Any]], columns: Sequence[npt.NDArray[Any]]
    ) -> Entries:
        """Return the entries with what stands beside them, and with limits that are checked."""
        named = dict(zip(beside, columns, strict=True))
        values, limits = self.values, None
        if LIMITS[0] in named:
            ends = np.stack([named.pop(n) for n in LIMITS])
            values, limits = settle_values(self.name, values, ends)
        labels = _with_columns(self.labels, {n: beside[n] for n in named}, list(named.values()))
        return replace(self, labels=labels, values=values, limits=limits)

    @property
    def sizes(self) -> dict[Hashable, int]:
        """Size of each dim of the whole array."""
        return dict(zip(self.dims, self.shape, strict=True))

    @cached_property
    def index(self) -> dict[Hashable, IntArray]:
        """Where the entries stand along each dim."""
        return dict(zip(self.dims, np.unravel_index(self.places, self.shape), strict=True))

    def covers(self, label: xr.DataArray) -> set[Hashable]:
        """Return the dims of the array that a coordinate, or what was made of one, describes."""
        return set(self.dims) if _ENTRY in label.dims else set(label.dims)

    def at(self, label: xr.DataArray) -> npt.NDArray[Any]:
        """Return a coordinate, or what was made of one, at the entries: (n,)."""
        values = np.asarray(label.values)
        if _ENTRY in label.dims:
            return values
        if not label.dims:
            return np.repeat(values.reshape(1), self.places.size)
        return np.asarray(values[tuple(self.index[d] for d in label.dims)])

    def take(self, rows: IntArray) -> Entries:
        """Return some of the entries."""
        beside = {_ENTRY: rows} if _ENTRY in self.labels.sizes else {}
        return replace(
            self,
            places=self.places[rows],
            values=self.values[rows],
            labels=self.labels.isel(beside),
            limits=None if self.limits is None else self.limits[:, rows],
        )

    def called(self, entry: int) -> str:
        """Name an entry by the labels of its dims, for a message."""
        numbers = {d: int(index[entry]) for d, index in self.index.items()}
        return ", ".join(
            f"{d}={self.labels[d][k].values if d in self.labels.coords else k}"
            for d, k in numbers.items()
        )


@dataclass(frozen=True)
class _Part:
    """The entries of one chunk, with what stands beside them."""

    places: IntArray
    values: FloatArray
    beside: tuple[npt.NDArray[Any], ...]
    extents: tuple[Extent | None, ...]


@dataclass(frozen=True)
class Unread:
    """A variable backed by dask, whose entries are still to be found.

    Dask replaces what is lazy in it by what was computed.

    Attributes
    ----------
    described : dict
        What is known of the entries before they are.
    labels : Dataset
        Coordinates to be kept whole.
    beside : dict of dict
        Attributes of the coordinates that are taken at the entries.
    parts : dask array of object
        The entries of each chunk.
    """

    described: dict[str, Any]
    labels: xr.Dataset
    beside: dict[Hashable, dict[str, Any]]
    parts: Any

    @classmethod
    def of(cls, name: str, array: xr.DataArray) -> Unread:
        """Record the reading of a variable; nothing is computed."""
        beside = _beside(array)
        return cls(
            described=_described(name, array),
            labels=coordinates_of(array.drop_vars(list(beside))),
            beside=beside,
            parts=_parts(array, list(beside)),
        )

    @property
    def waits(self) -> bool:
        """Whether something is still to be computed."""
        return not isinstance(self.parts, np.ndarray | _Part)

    def found(self) -> Entries:
        """Return the entries, once all that is lazy has been computed."""
        parts: list[_Part] = list(np.asarray(self.parts, object).flat)
        places = np.concatenate([p.places for p in parts])
        order = np.argsort(places, kind="stable")
        columns = [np.concatenate(c)[order] for c in zip(*(p.beside for p in parts), strict=True)]
        extents = map(Extent.joined, zip(*(p.extents for p in parts), strict=True))
        known = zip(self.beside, extents, strict=True)
        found = Entries(
            **self.described,
            labels=self.labels,
            places=places[order],
            values=np.concatenate([p.values for p in parts])[order],
            extents={n: e for n, e in known if e is not None and n not in LIMITS},
        )
        return found._with_beside(self.beside, columns)


Source = xr.DataArray | Unread | Entries


def to_read(sources: Mapping[str, Source]) -> dict[str, Unread | Entries]:
    """Return variables in memory with their entries, and others as what will find them."""
    return {
        name: source if isinstance(source, Unread | Entries) else _to_read(name, source)
        for name, source in sources.items()
    }


def _to_read(name: str, array: xr.DataArray) -> Unread | Entries:
    if not is_lazy(array):
        return Entries.of(name, array)
    if array.chunks is None:
        import dask.array as da

        beside = array.coords.values()
        chunks = {d: n for c in beside for d, n in c.variable.chunksizes.items()}
        pieces = tuple(chunks.get(d, (n,)) for d, n in array.sizes.items())
        array = array.copy(data=da.from_array(array.values, chunks=pieces))
    return Unread.of(name, array)


def find_entries(sources: Mapping[str, Source]) -> dict[str, Entries]:
    """Find the entries of all variables. Those backed by dask are computed together."""
    ready = to_read(sources)
    unread = {name: source for name, source in ready.items() if isinstance(source, Unread)}
    if any(source.waits for source in unread.values()):
        import dask

        (unread,) = dask.compute(unread)
    found = {name: source.found() for name, source in unread.items()}
    return {n: found[n] if isinstance(s, Unread) else s for n, s in ready.items()}


def with_known(array: xr.DataArray, entries: Entries) -> xr.DataArray:
    """Return a variable with those of its coordinates in memory that were kept whole."""
    known = {
        n: entries.labels.variables[n]
        for n, c in array.coords.items()
        if c.chunks is not None and _ENTRY not in entries.labels[n].dims
    }
    return array.assign_coords(known)


def _described(name: str, array: xr.DataArray) -> dict[str, Any]:
    return {
        "name": name,
        "attrs": dict(array.attrs),
        "dims": array.dims,
        "shape": array.shape,
        "projection": find_projection(array),
        "told": told_by(array),
    }


def _beside(array: xr.DataArray) -> dict[Hashable, dict[str, Any]]:
    """Return the coordinates as large as the array, by name, with their attributes."""
    return {
        n: dict(c.attrs)
        for n, c in array.coords.items()
        if n in LIMITS
        # Objects may be dates.
        or (c.ndim and c.size == array.size and c.dtype.kind != "O" and n not in array.xindexes)
    }


def _with_columns(
    labels: xr.Dataset,
    beside: Mapping[Hashable, dict[str, Any]],
    columns: Sequence[npt.NDArray[Any]],
) -> xr.Dataset:
    """Return labels with some coordinates as columns, their values at the entries."""
    taken = {
        n: xr.Variable((_ENTRY,), column, attrs)
        for (n, attrs), column in zip(beside.items(), columns, strict=True)
    }
    return labels.drop_vars([n for n in taken if n in labels.coords]).assign_coords(taken)


def _parts(array: xr.DataArray, beside: Sequence[Hashable]) -> Any:
    """Return the entries of each chunk, one object for each, as a lazy array."""
    import dask.array as da

    values = array.data
    axes = tuple(range(array.ndim))
    arguments: list[Any] = [values, axes]
    for name in beside:
        whole = array.coords[name].variable.set_dims(array.sizes).transpose(*array.dims)
        arguments += [da.asarray(whole.data).rechunk(values.chunks), axes]
    for axis, sizes in enumerate(values.chunks):
        starts = np.cumsum([0, *sizes[:-1]])
        arguments += [da.from_array(starts, chunks=1), (axis,)]
    return da.blockwise(
        _part,
        axes,
        *arguments,
        shape=array.shape,
        adjust_chunks={axis: (1,) * len(sizes) for axis, sizes in enumerate(values.chunks)},
        align_arrays=False,  # chunks are the same; starts have one number for each
        dtype=object,
        meta=np.empty((0,) * array.ndim, object),
    )


def _part(
    block: npt.NDArray[Any], *others: npt.NDArray[Any], shape: tuple[int, ...]
) -> npt.NDArray[Any]:
    """Find the entries of a chunk, given what stands beside it and where it starts."""
    beside, starts = others[: len(others) - block.ndim], others[len(others) - block.ndim :]
    keep = ~np.isnan(block)
    places = np.zeros(np.count_nonzero(keep), np.int64)
    index = np.nonzero(keep) if keep.ndim else ()
    for k, start, size in zip(index, starts, shape, strict=True):
        places = places * size + (k + start)
    out = np.empty((1,) * block.ndim, object)
    out[...] = _Part(
        places=places,
        values=block[keep].astype(np.float64),
        beside=tuple(b[keep] for b in beside),
        extents=tuple(map(Extent.of, beside)),
    )
    return out
