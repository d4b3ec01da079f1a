"""One coordinate of a model: its name, its CF role, and how to read it as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.arrays import FloatArray
from xcopula.errors import CoordinateError
from xcopula.labels.coordinates import times
from xcopula.labels.coordinates.units import conversion, is_length, units_of
from xcopula.warn import warn_user

__all__ = ["Axis"]

# The units of length scales, by role, where a coordinate is a length.
_LENGTHS = {"x": "km", "y": "km", "z": "m"}
# What CF calls a coordinate of a role, and the axis that it is along.
_STANDARD = {
    "longitude": {"standard_name": "longitude", "units": "degrees_east"},
    "latitude": {"standard_name": "latitude", "units": "degrees_north"},
    "time": {"standard_name": "time"},
}
_LETTERS = {"longitude": "X", "latitude": "Y", "x": "X", "y": "Y", "z": "Z", "time": "T"}


@dataclass(frozen=True)
class Axis:
    """A coordinate of the training data.

    Attributes
    ----------
    name : str
        Its name in the training data.
    role : str
        "longitude", "latitude", "x", "y", "z", "time", or "" for none. Other data are searched
        for this role, or for the name if there is no role.
    units : str
        Units of the numbers that :meth:`read` returns: km for lengths along x and y, m for
        lengths along z, degrees for longitude and latitude, days for times, and otherwise the
        units of the training data; '' if there were none.
    given : str
        Units in the training data. Other data without units are assumed to have the same.
    stated : bool
        Whether attributes stated the role in the training data. If so, attributes come before
        names in other data too.
    calendar, epoch : str
        Calendar of a time, and the date that its days are counted from.
    positive : {"", "up", "down"}
        Direction in which a vertical coordinate increases, if its attributes say so.
    """

    name: str
    role: str = ""
    units: str = ""
    calendar: str = ""
    epoch: str = ""
    positive: str = ""
    given: str = ""
    stated: bool = False

    @classmethod
    def of(cls, coordinate: xr.DataArray, role: str, *, stated: bool = False) -> Axis:
        """Describe a coordinate of the training data.

        Raises
        ------
        CoordinateError
            If the coordinate holds neither numbers nor dates.
        """
        name = str(coordinate.name)
        if times.is_time(coordinate):
            calendar = times.calendar_of(coordinate)
            first = times.first_time(coordinate)
            return cls(name, "time", "days", calendar, first, stated=stated)
        _check_numeric(coordinate)
        units = given = units_of(coordinate)
        if role in ("longitude", "latitude"):
            units = "degrees"
        elif coordinate.dtype.kind == "m":
            units = "days"
        elif is_length(units):
            units = _LENGTHS.get(role, units)
        positive = _direction(coordinate) if role == "z" else ""
        return cls(name, role, units, positive=positive, given=given, stated=stated)

    def read(self, coordinate: xr.DataArray) -> xr.DataArray:
        """Return a coordinate of any data as numbers in the units of this axis.

        A lazy coordinate stays lazy.

        Raises
        ------
        CoordinateError
            If one holds dates and the other numbers, or the units, the calendar or the values do
            not fit.
        """
        if self.epoch:
            if not times.is_time(coordinate):
                raise CoordinateError(
                    f"Coordinate {coordinate.name!r} has dtype {coordinate.dtype}, but the model "
                    f"has dates along {self.name!r}. Decode it with `xr.decode_cf`, or convert it "
                    "to dates."
                )
            return times.to_days(coordinate, self.epoch, self.calendar)
        _check_numeric(coordinate)
        units = units_of(coordinate) or self.given
        factor = conversion(units, self.units)
        if coordinate.dtype.kind == "m":
            coordinate, units = coordinate / np.timedelta64(1, "D"), "days"
            factor = conversion(units, self.units) if self.units else None
        if factor is None:
            known = self.units if self.given == units else self.given or self.units
            raise CoordinateError(
                f"Coordinate {coordinate.name!r} is in {units!r}, the training data had "
                f"{self.name!r} in {known or 'no units'!r}. Convert it, or correct the `units` "
                "attribute."
            )
        if units and not self.units:
            warn_user(
                f"Coordinate {coordinate.name!r} is in {units!r}, but {self.name!r} had no "
                "units in the training data. The units were assumed to be the same. Set `units` "
                "on the training data."
            )
        numbers = coordinate.astype(np.float64, copy=False)
        if self.role == "latitude":
            numbers = xr.apply_ufunc(
                _checked_latitude, numbers, dask="parallelized", output_dtypes=[np.float64]
            )
        if {self.positive, _direction(coordinate)} == {"up", "down"}:
            factor = -factor  # a depth of ten metres is a height of minus ten
        return numbers if factor == 1.0 else numbers * factor

    def attributes(self, coordinate: xr.DataArray) -> dict[str, str]:
        """Return the CF attributes of a coordinate that was read as this axis, where it has none.

        Numbers without units were taken to have those of the training data.
        """
        known: dict[str, str] = {}
        if self.role in _STANDARD:
            known = dict(_STANDARD[self.role])
        elif self.role in ("x", "y") and is_length(self.given):
            known = {"standard_name": f"projection_{self.role}_coordinate"}
        if self.given and not self.epoch:
            known.setdefault("units", self.given)
        if self.positive:
            known["positive"] = self.positive
        if self.role in _LETTERS and coordinate.dims == (coordinate.name,):
            known["axis"] = _LETTERS[self.role]
        return {k: v for k, v in known.items() if k not in coordinate.attrs}

    def decode(self, numbers: FloatArray) -> npt.NDArray[Any]:
        """Return numbers of this axis as dates if it is a time, and unchanged if not."""
        return times.from_days(numbers, self.epoch, self.calendar) if self.epoch else numbers


def _direction(coordinate: xr.DataArray) -> str:
    """Return the direction in which a vertical coordinate increases; '' if it does not say."""
    stated = str(coordinate.attrs.get("positive", "")).lower()
    if stated in ("up", "down"):
        return stated
    name = str(coordinate.attrs.get("standard_name", ""))
    if name == "depth" or name.startswith("depth_below"):
        return "down"
    return "up" if name.startswith(("height", "altitude")) else ""


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
    if " since " in units_of(coordinate):
        raise CoordinateError(
            f"Coordinate {coordinate.name!r} has the units {units_of(coordinate)!r} of a time that "
            "was not decoded. Use `xr.decode_cf(ds)`, or open the file with `decode_times=True`."
        )
    if coordinate.dtype.kind not in "iufm":
        raise CoordinateError(
            f"Coordinate {coordinate.name!r} has dtype {coordinate.dtype}; inputs must be numbers "
            "or dates. Convert it, or leave it out of `coords`."
        )
