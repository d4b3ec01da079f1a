"""The cells of a labelled target: coordinates, mask and fields of a law, found and aligned."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from xcopula.errors import CoordinateError, FieldError
from xcopula.labels import names
from xcopula.labels.coordinates import Axis, CoordinateSystem, coordinates_of
from xcopula.labels.dates import check_dates
from xcopula.labels.fields import Field, find_fields
from xcopula.labels.georeference import locate
from xcopula.labels.observations import Variable
from xcopula.prediction.blocks import Query
from xcopula.prediction.layout import Layout, Target
from xcopula.warn import warn_user

__all__ = ["Cells", "check_cells", "find_cells", "warn_of_lost_cells"]


@dataclass(frozen=True)
class Cells:
    """Where a variable is asked for on a target.

    Attributes
    ----------
    coordinates : list of DataArray
        Numbers along each axis of the model, with dims in the order of ``dims``.
    mask : DataArray
        False where nothing is wanted.
    fields : list of DataArray
        What the variable's law varies with.
    dims : tuple
        Dims of the result.
    kept : Dataset
        Coordinates of the target that the result keeps, with their indexes and the CF attributes
        of what the model took them for; and the date of the model, if the target has none.
    """

    coordinates: list[xr.DataArray]
    mask: xr.DataArray
    fields: list[xr.DataArray]
    dims: tuple[Hashable, ...]
    kept: xr.Dataset

    @property
    def sizes(self) -> dict[Hashable, int]:
        """Size of each dim."""
        return {d: a.sizes[d] for a in (*self.coordinates, self.mask) for d in a.dims}

    def query(self, chunks: Layout | None, task: int, *, nugget: bool) -> Query:
        """Return what blocks compute with."""
        arrays = [*self.coordinates, self.mask]
        return Query(
            arrays=[a.data for a in arrays],
            index=[a.dims for a in arrays],
            dims=self.dims,
            chunks=chunks,
            task=task,
            nugget=nugget,
            fields=[f.data for f in self.fields],
            field_index=[f.dims for f in self.fields],
        )


def find_cells(
    target: Target,
    variable: Variable,
    coordinates: CoordinateSystem,
    mask: str | xr.DataArray | None = None,
) -> Cells:
    """Find the coordinates and fields that a variable needs on a target.

    Raises
    ------
    CoordinateError, FieldError
        If some are missing or cannot be used.
    ValueError, TypeError
        If the mask is not valid.
    """
    wanted = _mask(target, mask)
    located: Target = locate(target)
    fields = find_fields(variable.fields, located, coordinates, variable.name)
    sources = [field.source for field in variable.fields]
    sought = coordinates.search(located, ignore=sources)
    axes = coordinates.read_all(sought)
    needed = {d for a in axes for d in a.dims}
    single = _single_dims(target, needed, variable.name)
    dims = _dims(target, needed | set(single), wanted, fields)
    check_cells("The mask", wanted, target.sizes, target.coords)
    for field, found in zip(variable.fields, fields, strict=True):
        check_cells(f"The field {field.name!r}", found, target.sizes, target.coords)
    if not wanted.dims:
        _check_groups(variable.fields, fields)
    wanted = wanted.expand_dims([d for d in single if d not in wanted.dims])
    pairs = zip(coordinates.axes, sought, strict=True)
    used = {*sources, *(c.name for c in sought)}
    lacking = check_dates(variable.dates, located, variable.name, used)
    return Cells(
        coordinates=[_ordered(a, dims) for a in axes],
        mask=_ordered(wanted, dims),
        fields=[_ordered(f, dims) for f in fields],
        dims=dims,
        kept=_kept(target, dims, variable.name, pairs).assign_coords(_dates(lacking, single, dims)),
    )


def _dates(
    lacking: Mapping[Hashable, xr.DataArray],
    single: Sequence[Hashable],
    dims: tuple[Hashable, ...],
) -> dict[Hashable, xr.DataArray]:
    """Return dates as coordinates of a result: along the dim of that name, if its length is one.

    A longer dim of that name counts the cells, and one date is no label of them.
    """
    return {
        name: date.expand_dims(name) if name in single else date
        for name, date in lacking.items()
        if name in single or name not in dims
    }


def _kept(
    target: Target,
    dims: tuple[Hashable, ...],
    variable: str,
    sought: Iterable[tuple[Axis, xr.DataArray]],
) -> xr.Dataset:
    """Return the coordinates of a target that a result has, with attributes as CF has them."""
    whole = coordinates_of(target)
    left = [
        n
        for n, c in whole.coords.items()
        if not set(c.dims) <= set(dims) or n in (variable, *names.DIMS)
    ]
    kept = whole.drop_vars(left).copy()  # the target keeps the attributes that it has
    for axis, found in sought:
        if found.name in kept.coords:
            kept[found.name].attrs = {**axis.attributes(found), **found.attrs}
        elif found.name in getattr(target, "data_vars", ()) and found.name != variable:
            kept = kept.assign_coords({found.name: found.variable})  # a column of a table
    return kept


def check_cells(
    what: str,
    array: xr.DataArray,
    sizes: Mapping[Hashable, int],
    labels: Mapping[Hashable, Any],
) -> None:
    """Refuse a mask or a field of other sizes or labels than the cells of a target."""
    for dim in array.dims:
        if array.sizes[dim] != sizes.get(dim, array.sizes[dim]):
            found = f"{array.sizes[dim]} entries, the target has {sizes[dim]}"
        elif (
            dim in array.coords
            and dim in labels
            and not labels[dim].variable.equals(array[dim].variable)
        ):
            found = "other labels than the target"
        else:
            continue
        raise ValueError(
            f"{what} is not on the cells of the target: along {dim!r} it has {found}. "
            "Select the same cells, or use `reindex_like`."
        )


def _single_dims(target: Target, needed: Set[Hashable], variable: str) -> list[Hashable]:
    """Return the dims of length one that the model does not need, and refuse longer ones.

    Dims that only belong to other variables of a Dataset are not dims of the target.

    Raises
    ------
    CoordinateError
        With the dims and what to do.
    """
    own: Any = target
    if isinstance(target, xr.Dataset):
        own = target.data_vars.get(variable)
        if own is not None and not needed <= set(own.dims):
            own = None
    if own is not None:
        beyond = [d for d in own.dims if d not in needed]
    else:
        holders = {d: [v for v in target.data_vars.values() if d in v.dims] for d in target.dims}
        beyond = [
            d
            for d, those in holders.items()
            if d in target.coords and d not in needed
            if not those or any(needed <= set(v.dims) for v in those)
        ]
    beyond = [d for d in beyond if d not in names.DIMS]
    several = [str(d) for d in beyond if target.sizes[d] != 1]
    if several:
        raise CoordinateError(
            f"The target has the dims {several}, which are no inputs of the model: it predicts the "
            f"same all along. Select one entry, as in `target.isel({several[0]}=0, drop=True)`, or "
            f"fit with a coordinate of {several[0]!r} in `coords`."
        )
    return beyond


def _ordered(array: xr.DataArray, dims: tuple[Hashable, ...]) -> xr.DataArray:
    return array.transpose(*(d for d in dims if d in array.dims))


def _check_groups(fields: Sequence[Field], found: Sequence[xr.DataArray]) -> None:
    """Say at once, not in a block, that a group was never seen; a mask may hide it."""
    for field, values in zip(fields, found, strict=True):
        if field.groups and values.ndim < 2 and values.chunks is None:
            field.encode(values.values)


def warn_of_lost_cells(coordinates: Sequence[xr.DataArray]) -> None:
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
            there = [str(n) for n in (*target.coords, *getattr(target, "data_vars", ()))]
            raise ValueError(
                f"The target has no variable {mask!r} to use as a mask; it has {there}."
            )
        mask = target[mask]
    if not isinstance(mask, xr.DataArray):
        raise TypeError(
            f"A mask must be a DataArray or the name of a variable, found {type(mask).__name__}."
        )
    if mask.dtype != bool:
        raise ValueError(
            f"A mask must be boolean, found dtype {mask.dtype}. Use `mask.astype(bool)` or a "
            "comparison."
        )
    return mask


def _dims(
    target: Target,
    needed: Set[Hashable],
    mask: xr.DataArray,
    fields: Sequence[xr.DataArray],
) -> tuple[Hashable, ...]:
    """Return the dims of the result, in the order that the target shows them."""
    strange = [d for f in fields for d in f.dims if d not in needed]
    if strange:
        raise FieldError(
            f"A field of the law has dims {strange} that the coordinates of the target do not "
            "have. Select one entry along them."
        )
    foreign = [d for d in mask.dims if d not in needed]
    if foreign:
        raise ValueError(
            f"The mask has dims {foreign} that the coordinates of the target do not have. Select "
            "one entry along them."
        )
    shown = list(target.dims)
    for variable in getattr(target, "data_vars", {}).values():
        if needed <= set(variable.dims):
            shown = list(variable.dims)
            break
    taken = [d for d in names.DIMS if d in needed]
    if taken:
        raise ValueError(
            f"The target has dims {taken}, which are reserved for results. Rename them, as in "
            f"`target.rename({taken[0]}='{taken[0]}_axis')`."
        )
    return tuple(dict.fromkeys(d for d in shown if d in needed))
