"""The date of a model that has no time among its inputs: all its observations are of one date."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Literal

import numpy as np
import xarray as xr

from xcopula.errors import CoordinateError
from xcopula.labels.coordinates import Axis
from xcopula.labels.coordinates.times import is_time

__all__ = ["check_dates", "common_dates", "date_of"]

# Dates nearer than this are the same, in days: a millisecond.
_SAME = 1.0 / 86_400e3

# What has another date, and what to do about it.
_ADVICE = {
    "The target has": "Drop it with `target.drop_vars({!r})` to predict for the date of the model",
    "The new data have": "Use `with_only` to put the new date in place of the old one",
}


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
