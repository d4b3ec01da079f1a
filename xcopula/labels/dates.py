"""Dates as datetime64, and the date of a model that has no time among its inputs."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Hashable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.errors import CoordinateError
from xcopula.labels.coordinates import Axis, coordinates_of
from xcopula.labels.coordinates.roles import is_time_name
from xcopula.labels.coordinates.times import is_time
from xcopula.warn import warn_user

__all__ = ["check_dates", "common_dates", "date_of", "with_dates"]

Part = xr.Dataset | xr.DataArray

# Dates nearer than this are the same, in days: a millisecond.
_SAME = 1.0 / 86_400e3

# Text that is a date under any name: 2301-07 may be a sample.
_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d(:?\d\d(:?\d\d([.,]\d+)?)?)?)?\s*(Z|[+-]\d\d:?\d\d)?")

# What has another date, and what to do about it.
_ADVICE = {
    "The target has": "Drop it with `target.drop_vars({!r})` to predict for the date of the model",
    "The new data have": "Use `with_only` to put the new date in place of the old one",
}


def with_dates(part: Part) -> Part:
    """Return data whose dates are datetime64: ISO text, and dates of Python or with a time zone.

    Those with a time zone become UTC, with a warning. Text of another format stays text.
    """
    decoded = {}
    variables = part.variables if isinstance(part, xr.Dataset) else coordinates_of(part).variables
    for name, column in variables.items():
        level = isinstance(part.xindexes.get(name), xr.indexes.PandasMultiIndex)
        of_pandas = not isinstance(column.dtype, np.dtype)  # dates with a time zone, say
        odd = column.dtype.kind in "OUT" or of_pandas
        if odd and column.chunks is None and not level:
            values = column.to_index() if of_pandas else column.values
            dates = _to_dates(str(name), np.asarray(values, object))
            if dates is not None:
                decoded[name] = (column.dims, dates, column.attrs)
    if not decoded:
        return part
    coords = {n: dates for n, dates in decoded.items() if n in part.coords}
    out = part.assign_coords(coords)
    others = {n: dates for n, dates in decoded.items() if n not in coords}
    return out.assign(others) if isinstance(out, xr.Dataset) else out


def _to_dates(name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """Return objects as datetime64, missing ones as NaT; None if they are no dates."""
    import pandas as pd

    flat = values.ravel()
    missing = pd.isna(flat) | np.fromiter((isinstance(v, str) and not v for v in flat), bool)
    known = flat[~missing]
    if not known.size or not _is_date(name, known[0]):
        return None
    dates = pd.to_datetime(pd.Series(known), format="ISO8601", utc=True, errors="coerce")
    if dates.isna().any():
        return None
    zone = pd.Timestamp(known[0]).tzinfo
    if zone is not None and str(zone) != "UTC":
        warn_user(f"Coordinate {name!r} has the time zone {zone}: it was converted to UTC.")
    times = dates.dt.tz_localize(None).to_numpy()
    out = np.full(values.size, np.datetime64("NaT"), times.dtype)
    out[~missing] = times
    return out.reshape(values.shape)


def _is_date(name: str, value: object) -> bool:
    if isinstance(value, str):
        return is_time_name(name) or _ISO.fullmatch(value.strip()) is not None
    return isinstance(value, datetime.date)  # of which datetime and Timestamp are made


def common_dates(labels: xr.Dataset | xr.DataArray, used: Collection[str]) -> tuple[Axis, ...]:
    """Return the dates that do not vary and that nothing uses, each as an axis that begins there.

    Parameters
    ----------
    labels : Dataset or DataArray
        Coordinates of a variable.
    used : collection of str
        Inputs of the model, and fields of the law.
    """
    return tuple(
        Axis.of(labels[name], "time")
        for name in _times(labels)
        if name not in used and _is_one(labels[name])
    )


def _times(labels: xr.Dataset | xr.DataArray) -> list[str]:
    """Return the coordinates that hold dates.

    What is not in memory is the time of each cell, such as that of a swath, and not a date of all.
    """
    return [str(n) for n, c in labels.coords.items() if c.chunks is None and is_time(c)]


def _is_one(times: xr.DataArray) -> bool:
    values = times.values.reshape(-1)
    return values.size > 0 and bool(times.notnull().all()) and bool((values == values[0]).all())


def date_of(axis: Axis) -> xr.DataArray:
    """Return the date where an axis begins, as a scalar coordinate."""
    (date,) = axis.decode(np.zeros(1))
    return xr.DataArray(date, name=axis.name, attrs={"standard_name": "time"})


def check_dates(
    dates: Sequence[Axis],
    labels: xr.Dataset | xr.DataArray,
    variable: str,
    used: Collection[Hashable] = (),
    what: Literal["The target has", "The new data have"] = "The target has",
) -> dict[Hashable, xr.DataArray]:
    """Refuse another date than that of the observations, and return the dates that are lacking.

    A date is looked for by its name; if each side has just one, the name does not matter.

    Parameters
    ----------
    dates : sequence of Axis
        Of the observations; see :func:`common_dates`.
    labels : Dataset or DataArray
        A target, or the coordinates of new data.
    variable : str
        Whose observations they are.
    used : collection of hashable
        Coordinates among the labels that are inputs of the model, or fields of the law.
    what : str
        How a message begins.

    Raises
    ------
    CoordinateError
        If there is another date, or several.
    """
    lacking: dict[Hashable, xr.DataArray] = {}
    times = [n for n in _times(labels) if n not in used] if dates else []
    for axis in dates:
        name = axis.name if axis.name in times else ""
        if not name and len(times) == len(dates) == 1:
            (name,) = times
        if not name:
            if axis.name not in labels.coords:
                lacking[axis.name] = date_of(axis)
            continue
        days = np.atleast_1d(axis.read(labels[name]).values).ravel()
        if days.size and np.abs(days).max() > _SAME:
            other = axis.decode(days[np.argmax(np.abs(days)), None])[0]
            raise CoordinateError(
                f"{what} the date {_shown(other)} ({name!r}), but all observations of "
                f"{variable!r} are of {_shown(axis.decode(np.zeros(1))[0])}, and the model has no "
                f"time. {_ADVICE[what].format(name)}, or fit on data of several dates."
            )
    return lacking


def _shown(date: object) -> str:
    return str(date).replace(" 00:00:00", "").replace("T00:00:00.000000", "")
