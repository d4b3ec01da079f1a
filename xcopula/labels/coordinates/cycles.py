"""Mark a coordinate as periodic: what users write in ``coords=``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Recurring", "cycle"]


@dataclass(frozen=True)
class Recurring:
    """A coordinate that is to return after a period; see :func:`cycle`."""

    name: str
    period: float | str = "year"


def cycle(name: str, period: float | str = "year") -> Recurring:
    """Mark a coordinate as periodic, for ``coords=``.

    Beside the coordinate itself it makes a season that changes slowly from year to year; alone,
    one that is the same every year.

    Parameters
    ----------
    name : str
        A time, or any numeric coordinate.
    period : float or {"year", "day"}
        In days for a time ("year" is that of its calendar), in its own units for numbers.

    Examples
    --------
    >>> cycle("time")
    Recurring(name='time', period='year')

    Use it as ``coords=["lon", "lat", "time", cycle("time")]``.
    """
    if not isinstance(name, str):
        raise TypeError(f"`cycle` takes the name of a coordinate, found {name!r}.")
    if isinstance(period, str):
        if period not in ("year", "day"):
            raise ValueError(f"A period is a number, 'year' or 'day', found {period!r}.")
    elif isinstance(period, bool) or not isinstance(period, int | float | np.number):
        raise TypeError(f"A period is a number, 'year' or 'day', found {period!r}.")
    elif not (np.isfinite(period) and period > 0.0):
        raise ValueError(f"A period is positive, found {period!r}.")
    return Recurring(name, period)
