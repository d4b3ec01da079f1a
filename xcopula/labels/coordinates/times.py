"""Times as days since an epoch, whatever their resolution or calendar."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.arrays import FloatArray
from xcopula.errors import CoordinateError

__all__ = [
    "calendar_of",
    "calendar_year",
    "epoch_of",
    "first_time",
    "from_days",
    "is_time",
    "to_days",
]

_DAY = np.timedelta64(1, "D")
_EPOCH = "1970-01-01 00:00:00.000000"
# Other names of a calendar. The first two agree with the standard one on every date since 1582.
_SAME = {
    "gregorian": "standard",
    "proleptic_gregorian": "standard",
    "365_day": "noleap",
    "366_day": "all_leap",
}
_YEARS = {
    "standard": 365.2425,
    "julian": 365.25,
    "noleap": 365.0,
    "all_leap": 366.0,
    "360_day": 360.0,
}


def is_time(coordinate: xr.DataArray) -> bool:
    """Tell whether a coordinate holds dates: datetime64, or cftime objects in memory."""
    if coordinate.dtype.kind != "O":
        return bool(coordinate.dtype.kind == "M")
    if coordinate.chunks is not None:
        return False
    return any(hasattr(value, "calendar") for value in coordinate.values.flat)


def calendar_of(coordinate: xr.DataArray) -> str:
    """Return the calendar of dates, by the same name where a calendar has several.

    Raises
    ------
    CoordinateError
        If a date is missing, or the dates belong to several calendars.
    """
    if coordinate.dtype.kind == "M":
        return "standard"
    found = {getattr(value, "calendar", None) for value in coordinate.values.flat}
    _refuse_missing(coordinate, None in found)
    names = sorted({_SAME.get(str(name), str(name)) for name in found})
    if len(names) > 1:
        raise CoordinateError(
            f"Coordinate {coordinate.name!r} mixes dates of the calendars {names}. Convert them "
            "to one with `convert_calendar`."
        )
    return names[0]


def calendar_year(calendar: str) -> float:
    """Return the mean length of a year in days."""
    return _YEARS[calendar]


def first_time(coordinate: xr.DataArray) -> str:
    """Return the earliest date in ISO format, or 1970 if there is none in memory."""
    if coordinate.chunks is not None:
        return _EPOCH
    values = coordinate.values
    if coordinate.dtype.kind == "M":
        return epoch_of(coordinate, np.fmin.reduce(values, axis=None)) if values.size else _EPOCH
    known = [v for v in values.flat if hasattr(v, "calendar")]
    return str(min(known).strftime("%Y-%m-%d %H:%M:%S.%f"))


def epoch_of(coordinate: xr.DataArray, first: np.datetime64) -> str:
    """Return the earliest date of a coordinate in ISO format.

    Raises
    ------
    CoordinateError
        If there is no date.
    """
    _refuse_missing(coordinate, bool(np.isnat(first)))
    return str(first.astype("M8[us]")).replace("T", " ")


def to_days(coordinate: xr.DataArray, epoch: str, calendar: str) -> xr.DataArray:
    """Return dates as days since an epoch. Lazy dates stay lazy.

    Raises
    ------
    CoordinateError
        If a date is missing, or belongs to another calendar.
    """
    found = calendar_of(coordinate)
    if found != calendar:
        raise CoordinateError(
            f"Coordinate {coordinate.name!r} has dates of the {found!r} calendar, but the model "
            f"uses {calendar!r}. Convert it with `convert_calendar({calendar!r})`."
        )

    def convert(values: npt.NDArray[Any]) -> FloatArray:
        if values.dtype.kind == "M":
            _refuse_missing(coordinate, bool(np.isnat(values).any()))
            # Nanoseconds only reach from 1678 to 2262, and overflow silently.
            since = values.astype("M8[us]") - np.datetime64(epoch, "us")
            return np.asarray(since / _DAY, np.float64)
        import cftime

        dates = cftime.date2num(values, f"days since {epoch}", calendar=calendar)
        return np.asarray(dates, np.float64)

    converted: xr.DataArray = xr.apply_ufunc(
        convert, coordinate, dask="parallelized", output_dtypes=[np.float64]
    )
    return converted


def from_days(days: FloatArray, epoch: str, calendar: str) -> npt.NDArray[Any]:
    """Return days since an epoch as dates: datetime64 for the standard calendar, else cftime."""
    if calendar == "standard":
        microseconds = np.round(np.asarray(days) * 86_400e6).astype("m8[us]")
        return np.asarray(np.datetime64(epoch, "us") + microseconds)
    import cftime

    return np.asarray(cftime.num2date(days, f"days since {epoch}", calendar=calendar))


def _refuse_missing(coordinate: xr.DataArray, missing: bool) -> None:
    if missing:
        count = ""
        if coordinate.chunks is None:
            count = f" at {int(coordinate.isnull().sum())} of {coordinate.size} places"
        raise CoordinateError(
            f"Coordinate {coordinate.name!r} has no date (NaT){count}. Drop these entries with "
            f"`ds.where(ds[{coordinate.name!r}].notnull(), drop=True)`."
        )
