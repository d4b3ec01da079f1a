"""Where observations stood in the data: their dims and coordinates, to label results again.

Coordinates are kept on the dims they had, or at the observations where these are fewer: never more
numbers than there are observations. What cannot be written to a file, such as the tuples of a
MultiIndex, is left out; its levels stay.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.arrays import IntArray
from xcopula.labels.coordinates import times
from xcopula.labels.coordinates.units import units_of
from xcopula.labels.entries import Entries

__all__ = ["OBSERVATION", "Columns", "Label", "Origin", "labels_of", "take_origins"]

Columns = dict[str, tuple[tuple[str, ...], npt.NDArray[Any], dict[str, Any]]]

# The dim of results whose observations stood on several dims, and of labels at the observations.
OBSERVATION = "observation"


@dataclass(frozen=True)
class Label:
    """A coordinate of the data.

    Attributes
    ----------
    name : str
    dims : tuple of str
        Of the data; where ``each`` is set, the dims that it had there.
    values : ndarray
        Numbers or text, which a file can hold. Dates are counts of their unit, dates that are
        objects are days since an epoch.
    attrs : dict
    each : bool
        Whether it is kept at the observations, (n,).
    dtype : str
        Of dates and durations.
    epoch, calendar : str
        Of dates that were objects.
    """

    name: str
    dims: tuple[str, ...]
    values: npt.NDArray[Any]
    attrs: dict[str, Any]
    each: bool = False
    dtype: str = ""
    epoch: str = ""
    calendar: str = ""


@dataclass(frozen=True)
class Origin:
    """Where observations of one variable stood in one piece of data.

    Attributes
    ----------
    dims : tuple of str
    shape : tuple of int
    places : ndarray (n,), int64
        Where they stood in the array, counted in C order.
    labels : tuple of Label
    """

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    places: IntArray
    labels: tuple[Label, ...]

    @classmethod
    def of(cls, entries: Entries) -> Origin:
        """Describe the entries of a variable; nothing is shared with the data."""
        found = (_label(entries, coordinate) for coordinate in entries.labels.coords.values())
        return cls(
            dims=tuple(str(d) for d in entries.dims),
            shape=entries.shape,
            places=entries.places.copy(),
            labels=tuple(label for label in found if label is not None),
        )

    @property
    def dim(self) -> str | None:
        """The one dim along which they stood; None if there are several."""
        long = [d for d, n in zip(self.dims, self.shape, strict=True) if n > 1]
        return long[0] if len(long) == 1 else None

    def take(self, rows: IntArray) -> Origin:
        """Return where some of them stood."""
        labels = [replace(k, values=k.values[rows]) if k.each else k for k in self.labels]
        return replace(self, places=self.places[rows], labels=tuple(labels))

    def at(self, dims: Sequence[str], values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return what lies on some dims of the data at each observation: (n,)."""
        if not dims:
            return np.repeat(values.reshape(1), self.places.size)
        index = dict(zip(self.dims, np.unravel_index(self.places, self.shape), strict=True))
        return np.asarray(values[tuple(index[d] for d in dims)])

    def column(self, label: Label) -> npt.NDArray[Any]:
        """Return a label at each observation, dates as dates: (n,)."""
        values = label.values if label.each else self.at(label.dims, label.values)
        if label.dtype:
            return values.astype(label.dtype)
        return times.from_days(values, label.epoch, label.calendar) if label.epoch else values


def _label(entries: Entries, coordinate: xr.DataArray) -> Label | None:
    """Return a coordinate as a label, or None if it cannot be kept."""
    values, dtype, epoch, calendar = np.asarray(coordinate.values), "", "", ""
    if values.dtype.kind == "O":
        kinds = {getattr(value, "calendar", None) for value in values.flat}
        if len(kinds) == 1 and None not in kinds:
            epoch, calendar = times.first_time(coordinate), times.calendar_of(coordinate)
            values = times.to_days(coordinate, epoch, calendar).values
        elif all(map(_is_name, values.flat)):
            texts = [value if isinstance(value, str) else "" for value in values.flat]
            values = np.array(texts, str).reshape(values.shape)
        else:
            return None
    elif values.dtype.kind in "mM":
        dtype, values = str(values.dtype), values.astype(np.int64)
    elif values.dtype.kind not in "biufU":
        return None
    attrs = copy.deepcopy(dict(coordinate.attrs))
    name = str(coordinate.name)
    label = Label(name, (), values, attrs, dtype=dtype, epoch=epoch, calendar=calendar)
    plain = coordinate.copy(data=values)
    if entries.covers(plain) and values.size >= entries.places.size:
        kept = tuple(str(d) for d in entries.dims if d in entries.covers(plain))
        return replace(label, dims=kept, values=entries.at(plain).copy(), each=True)
    return replace(label, dims=tuple(map(str, plain.dims)), values=values.copy())


def _is_name(value: object) -> bool:
    """Tell whether a value is text, or stands for text that is missing."""
    return value is None or isinstance(value, str) or (isinstance(value, float) and value != value)


def take_origins(origins: Sequence[Origin], rows: IntArray) -> tuple[Origin, ...]:
    """Return where some observations stood, by their increasing numbers over several pieces."""
    stops = np.cumsum([0, *(o.places.size for o in origins)])
    taken = []
    for origin, start, stop in zip(origins, stops[:-1], stops[1:], strict=True):
        own = rows[(rows >= start) & (rows < stop)] - start
        if own.size:
            taken.append(origin.take(own))
    return tuple(taken)


def labels_of(origins: Sequence[Origin], taken: Collection[str]) -> tuple[str, Columns]:
    """Return the dim and the coordinates of results at observations.

    The dim is that of the data where they had one, else ``observation``. Coordinates that all
    pieces have are kept, but for those whose name a result needs.

    Parameters
    ----------
    origins : sequence of Origin
        The pieces, one after the other in the order of the observations.
    taken : collection of str
        Names of the results.

    Returns
    -------
    dim : str
    coords : dict
        As :class:`xarray.Dataset` takes them.
    """
    found = {origin.dim for origin in origins}
    own = found.pop() if len(found) == 1 else None
    dim = OBSERVATION if own is None or own in taken else own
    every = [{label.name: label for label in origin.labels} for origin in origins]
    columns: Columns = {}
    for name, first in every[0].items():
        labels = [named[name] for named in every if name in named]
        if name in taken or len(labels) < len(every) or not _alike(labels):
            continue
        parts = [o.column(label) for o, label in zip(origins, labels, strict=True)]
        values = np.concatenate(parts)
        single = all(label.values.size == 1 and not label.each for label in labels)
        if single and name != dim and (len(parts) == 1 or bool((values == values[0]).all())):
            columns[name] = ((), values[:1].reshape(()), first.attrs)
        else:
            columns[name] = ((dim,), values, first.attrs)
    return dim, columns


def _alike(labels: Sequence[Label]) -> bool:
    """Tell whether labels of several pieces can stand in one column: of one kind and units."""
    kinds = {"f" if k.values.dtype.kind in "iuf" else k.values.dtype.kind for k in labels}
    ways = {(units_of(k), k.calendar, k.dtype[:1]) for k in labels}
    return len(kinds) == 1 and len(ways) == 1
