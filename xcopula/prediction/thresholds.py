"""Values that users give to compare with: numbers, or one of each cell, in the variable's units."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import xarray as xr

from xcopula.arrays import FloatArray
from xcopula.labels.coordinates.units import conversion, units_of
from xcopula.prediction.levels import numbers_of
from xcopula.prediction.target import check_cells
from xcopula.warn import shown

__all__ = [
    "Limit",
    "Threshold",
    "check_field",
    "check_observed",
    "check_on_cells",
    "check_thresholds",
]

Threshold = float | Sequence[float] | FloatArray | xr.DataArray

_THRESHOLD = (
    "A threshold must be a number or a sequence of numbers, or a DataArray on dims of the target"
)


def check_thresholds(value: Any, variable: str, units: str) -> FloatArray:
    """Return numbers, one or several, in the variable's units.

    Raises
    ------
    ValueError
        If they are no numbers, or have other units.
    """
    thresholds = numbers_of(value)
    if thresholds.ndim > 1 or thresholds.size == 0 or np.isnan(thresholds).any():
        raise ValueError(
            f"{_THRESHOLD}, found {shown(value)}. Give it in the units of {variable!r}."
        )
    if isinstance(value, xr.DataArray):
        thresholds = thresholds * _factor("The threshold", value, variable, units)
    return thresholds


def check_field(
    threshold: xr.DataArray,
    variable: str,
    units: str,
    sizes: Mapping[Hashable, int],
    labels: Mapping[Hashable, Any],
) -> xr.DataArray:
    """Return a threshold of each cell in the variable's units, with the target's dims.

    Raises
    ------
    ValueError
        If it has other dims, sizes, labels or units.
    TypeError
        If it does not hold numbers.
    """
    if threshold.dtype.kind not in "iuf":
        raise TypeError(f"{_THRESHOLD}, found dtype {threshold.dtype}. Convert it to numbers.")
    return _in_cells("The threshold", threshold, variable, units, sizes, labels)


def check_observed(
    observed: Any,
    variable: str,
    units: str,
    sizes: Mapping[Hashable, int],
    labels: Mapping[Hashable, Any],
) -> xr.DataArray:
    """Return observed values in the variable's units, with the target's dims.

    Raises
    ------
    ValueError
        If they have other dims, sizes, labels or units.
    TypeError
        If they are no DataArray of numbers.
    """
    if not isinstance(observed, xr.DataArray) or observed.dtype.kind not in "iuf":
        found = f"dtype {observed.dtype}" if isinstance(observed, xr.DataArray) else shown(observed)
        raise TypeError(
            f"`observed` must be a DataArray of numbers on dims of the target, found {found}."
        )
    return _in_cells("`observed`", observed, variable, units, sizes, labels)


def _in_cells(
    what: str,
    array: xr.DataArray,
    variable: str,
    units: str,
    sizes: Mapping[Hashable, int],
    labels: Mapping[Hashable, Any],
) -> xr.DataArray:
    """Return an array of numbers in the variable's units, with the target's dims."""
    check_on_cells(what, array, sizes, labels)
    factor = _factor(what, array, variable, units)
    dims = [d for d in sizes if d in array.dims]
    bare = array.reset_coords(drop=True).transpose(*dims).astype(np.float64)
    return bare * factor


def check_on_cells(
    what: str,
    array: xr.DataArray,
    sizes: Mapping[Hashable, int],
    labels: Mapping[Hashable, Any],
) -> None:
    """Refuse an array that has other dims, sizes or labels than the cells of a target."""
    strange = [str(d) for d in array.dims if d not in sizes]
    if strange:
        raise ValueError(
            f"{what} has dims {strange}, the target has {[str(d) for d in sizes]}. "
            "Select one entry along them, or interpolate it to the target."
        )
    check_cells(what, array, sizes, labels)


def _factor(what: str, array: xr.DataArray, variable: str, own: str) -> float:
    """Return what turns the units of an array into the variable's."""
    given = units_of(array)
    factor = conversion(given or own, own)
    if factor is None:
        raise ValueError(
            f"{what} is in {given!r}, {variable!r} in {own or 'no units'!r}. Convert "
            "it, or correct its `units` attribute."
        )
    return factor


@dataclass(frozen=True, eq=False)
class Limit:
    """One threshold that draws are compared with, in the variable's units.

    Attributes
    ----------
    value : float or DataArray
        A number, or one for each cell; cells where that is NaN do not count.
    units : str
    """

    value: float | xr.DataArray
    units: str

    @classmethod
    def of(
        cls,
        threshold: Any,
        variable: str,
        units: str,
        sizes: Mapping[Hashable, int],
        labels: Mapping[Hashable, Any],
    ) -> Self:
        """Check a threshold.

        Raises
        ------
        TypeError, ValueError
            If it is no number, nor one of each cell, or has other units.
        """
        if isinstance(threshold, xr.DataArray) and threshold.dims:
            field = check_field(threshold, variable, units, sizes, labels)
            return cls(field.drop_vars(list(field.coords)), units)
        number = check_thresholds(threshold, variable, units)
        if number.ndim:
            raise ValueError(
                f"`threshold` must be one number, or a DataArray on dims of the target, found "
                f"{shown(threshold)}. Ask for one after the other; equal seeds have equal draws."
            )
        return cls(float(number), units)

    def above(self, draws: xr.DataArray) -> xr.DataArray:
        """Return 1 where draws are above the limit, else 0; NaN where either is not known."""
        if not isinstance(self.value, xr.DataArray):
            return (draws > self.value).where(draws.notnull())
        own = self.value
        if draws.chunks is not None:
            own = own.chunk({d: draws.chunksizes[d] for d in own.dims})
        return (draws > own).where(draws.notnull() & own.notnull())

    def label(self, result: xr.Dataset) -> xr.Dataset:
        """Return a result with the limit as a coordinate, if it is a number."""
        if isinstance(self.value, xr.DataArray):
            return result
        attrs = {"units": self.units} if self.units else {}
        return result.assign_coords(threshold=((), self.value, attrs))
