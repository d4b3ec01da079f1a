"""Marking a coordinate as periodic in ``coords=``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Recurring", "cycle"]


@dataclass(frozen=True)
class Recurring:
    """A coordinate that repeats after a period; see :func:`cycle`."""

    name: str
    period: float | str = "year"


def cycle(name: str, period: float | str = "year") -> Recurring:
    """Mark a coordinate as periodic, for ``coords=``.

    Together with the time itself, it describes a season that changes slowly from year to year.
    Alone, it describes a season that is the same every year.

    Parameters
    ----------
    name : str
        Name of a time, or of any numeric coordinate.
    period : float or {"year", "day"}
        Length of the period: in days for a time, and otherwise in the units of the coordinate.
        "year" is the mean year of the calendar.

    Examples
    --------
    >>> cycle("time")
    Recurring(name='time', period='year')

    Use it as ``coords=["lon", "lat", "time", cycle("time")]``.
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"`cycle` takes the name of a coordinate as a string, found {name!r}.")
    if isinstance(period, str):
        if period not in ("year", "day"):
            raise ValueError(f"A period must be a number, 'year' or 'day', found {period!r}.")
    elif isinstance(period, bool) or not isinstance(period, int | float | np.number):
        raise TypeError(f"A period must be a number, 'year' or 'day', found {period!r}.")
    elif not (np.isfinite(period) and period > 0.0):
        raise ValueError(f"A period must be positive and finite, found {period!r}.")
    return Recurring(name, period)
