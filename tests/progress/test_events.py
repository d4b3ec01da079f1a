"""What is told, and how a line says it."""

from __future__ import annotations

import dataclasses

import pytest

from xcopula.progress import Event
from xcopula.progress.events import clock_time

STEPS = {"done": 2, "total": 9, "seconds": 5.0}

LINES = [
    (Event("fit", "begin", ("Cd",), total=9), "fit, 0 of 9 steps, 0:00"),
    (Event("fit", "end", ("Cd",), done=9, total=9, seconds=65.0), "fit done, 9 of 9 steps, 1:05"),
    (Event("fit", "stop", ("Cd",), **STEPS), "fit stopped, 2 of 9 steps, 0:05"),
    (Event("predict", "end", ("Cd",), seconds=1.0), "predict Cd done, 0:01"),
    (
        Event("alone", "begin", ("Cd",), **STEPS),
        "fit, 2 of 9 steps done: Cd alone, 0:05",
    ),
    (
        Event("alone", "go", ("Cd",), iteration=12, log_posterior=-1.234, **STEPS),
        "fit, 2 of 9 steps done: Cd alone, iteration 12, log posterior -1.23, 0:05",
    ),
    (
        Event("pair", "go", ("Cd", "Ni"), start=2, starts=3, iteration=4, done=2, seconds=5.0),
        "fit, 2 steps done: Cd with Ni, start 2 of 3, iteration 4, 0:05",
    ),
    (
        Event("together", "go", ("Cd", "Ni", "Zn"), **STEPS),
        "fit, 2 of 9 steps done: Cd, Ni, Zn together, 0:05",
    ),
    (Event("together", "go", ("Cd",), **STEPS), "fit, 2 of 9 steps done: Cd, 0:05"),
    (Event("condition", "begin", ("Cd",)), "predict Cd: condition on the data, 0:00"),
    (
        Event(
            "cells", "go", ("Cd",), "quantile", done=1000, total=4000, seconds=20.0, expected=60.0
        ),
        "predict Cd: quantile, 1,000 of 4,000 cells, 0:20, about 1:00 to go",
    ),
    (
        Event("cells", "go", ("Cd",), "quantile", done=4000, total=4000, seconds=20.0),
        "predict Cd: quantile, 4,000 of 4,000 cells, 0:20",
    ),
    (Event("compile", "begin", label="fill"), "compiling fill for its first use, 0:00"),
]


@pytest.mark.parametrize(("event", "line"), LINES, ids=[line for _, line in LINES])
def test_a_line_says_it(event, line):
    """Numbers that are not known are left out."""
    assert str(event) == line


def test_an_event_does_not_change():
    """Listeners may keep it."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        Event("fit", "begin").done = 3


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0:00"), (59.6, "1:00"), (600.0, "10:00"), (36610.0, "10:10:10")]
)
def test_times_are_rounded_to_seconds(seconds, text):
    """And have hours where there are any."""
    assert clock_time(seconds) == text
