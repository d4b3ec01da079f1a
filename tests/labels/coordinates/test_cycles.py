"""Marking a coordinate as periodic: what is kept, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import xcopula
from xcopula.labels.coordinates.cycles import Recurring, cycle


@pytest.mark.parametrize("period", ["year", "day", 12, 365.25, np.float32(7.0)])
def test_the_period_is_kept(period):
    """A mark holds the name and the period as they were given."""
    assert cycle("time", period) == Recurring("time", period)
    assert xcopula.cycle is cycle


def test_marks_are_values():
    """Equal marks are equal, hash alike, and cannot be changed."""
    assert cycle("time") == cycle("time", "year")
    assert len({cycle("time"), cycle("time"), cycle("hour", 24.0)}) == 2
    with pytest.raises(AttributeError):
        cycle("time").period = 3.0


@pytest.mark.parametrize("name", ["", None, 5, ["time"]])
def test_a_name_is_needed(name):
    """A coordinate is marked by its name."""
    with pytest.raises(TypeError, match="name of a coordinate"):
        cycle(name)


@pytest.mark.parametrize(
    ("period", "error"),
    [("month", ValueError), (True, TypeError), (None, TypeError), ([1.0], TypeError)]
    + [(p, ValueError) for p in (0.0, -1, np.nan, np.inf)],
)
def test_periods_that_are_none(period, error):
    """What was found is said."""
    with pytest.raises(error, match=r"[Pp]eriod .*found"):
        cycle("time", period)
