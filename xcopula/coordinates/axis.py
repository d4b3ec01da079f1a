"""One coordinate of a model: its name, its CF role, and how to read it as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.coordinates import times
from xcopula.coordinates.units import conversion, is_length, units_of
from xcopula.errors import CoordinateError

__all__ = ["Axis"]

FloatArray = npt.NDArray[np.float64]

# What length scales of lengths are reported in.
_LENGTHS = {"x": "km", "y": "km", "z": "m"}


@dataclass(frozen=True)
class Axis:
    """A coordinate as the training data have it.

    Attributes
    ----------
    name : str
        Its name in the training data.
    role : str
        "longitude", "latitude", "x", "y", "z", "time", or "" for none: what it is looked for by
        in other data. Without a role, its name is.
    units : str
        Of the numbers it is read as: km along x and y and m along z where they are lengths,
        degrees on the globe, days for times, otherwise as they were; '' if there were none.
    calendar, epoch : str
        Of a time.
    """

    name: str
    role: str = ""
    units: str = ""
    calendar: str = ""
    epoch: str = ""

    @classmethod
    def of(cls, coordinate: xr.DataArray, role: str) -> Axis:
        """Describe a coordinate of the training data.

        Raises
        ------
        CoordinateError
            If it holds neither numbers nor dates.
        """
        name = str(coordinate.name)
        if times.is_time(coordinate):
            calendar = times.calendar_of(coordinate)
            return cls(name, "time", "days", calendar, times.first_time(coordinate))
        _check_numeric(coordinate)
        units = units_of(coordinate)
        if role in ("longitude", "latitude"):
            units = "degrees"
        elif coordinate.dtype.kind == "m":
            units = "days"
        elif is_length(units):
            units = _LENGTHS.get(role, units)
        return cls(name, role, units)

    def read(self, coordinate: xr.DataArray) -> xr.DataArray:
        """Return a coordinate of any data as numbers in this axis's units, lazily if it is lazy.

        Raises
        ------
        CoordinateError
            If it is of another kind, its units cannot be converted, or its values cannot be.
        """
        if self.epoch:
            if not times.is_time(coordinate):
                raise CoordinateError(
                    f"Coordinate {coordinate.name!r} has dtype {coordinate.dtype}, the model has "
                    f"dates along {self.name!r}. Decode it with `xr.decode_cf`, or convert it."
                )
            return times.to_days(coordinate, self.epoch, self.calendar)
        _check_numeric(coordinate)
        if coordinate.dtype.kind == "m":
            return coordinate / np.timedelta64(1, "D")
        units = units_of(coordinate)
        factor = conversion(units, self.units)
        if factor is None:
            raise CoordinateError(
                f"Coordinate {coordinate.name!r} is in {units!r}, the model has {self.name!r} in "
                f"{self.units!r}. Convert it and set its `units` attribute."
            )
        numbers = coordinate.astype(np.float64)
        if self.role == "latitude":
            numbers = xr.apply_ufunc(
                _checked_latitude, numbers, dask="parallelized", output_dtypes=[np.float64]
            )
        return numbers if factor == 1.0 else numbers * factor

    def decode(self, numbers: FloatArray) -> npt.NDArray[Any]:
        """Return numbers of this axis as values with labels: dates, for a time."""
        return times.from_days(numbers, self.epoch, self.calendar) if self.epoch else numbers


def _checked_latitude(values: FloatArray) -> FloatArray:
    beyond = np.abs(values) > 90.0
    if beyond.any():
        raise CoordinateError(
            f"{beyond.sum()} latitudes lie beyond 90 degrees (first: {values[beyond].flat[0]:g}). "
            "If they are not degrees, set their `units`; if longitude and latitude are swapped, "
            "pass `coords={'longitude': ..., 'latitude': ...}`."
        )
    return values


def _check_numeric(coordinate: xr.DataArray) -> None:
    if coordinate.dtype.kind not in "iufm":
        raise CoordinateError(
            f"Coordinate {coordinate.name!r} has dtype {coordinate.dtype}; inputs are numbers or "
            "dates. Convert it, or leave it out of `coords`."
        )
