"""Warnings stand at the line of the caller's own code."""

from __future__ import annotations

import inspect
import warnings

import pytest

import xcopula
from xcopula.errors import MarginalWarning, PerformanceWarning
from xcopula.warn import shown, warn_user


def line() -> int:
    """Return the line of the caller."""
    return inspect.currentframe().f_back.f_lineno


def test_at_the_line_that_calls():
    """Called from here, it points here."""
    here = line()
    with pytest.warns(UserWarning, match="look out") as seen:
        warn_user("look out")
    assert (seen[0].filename, seen[0].lineno) == (__file__, here + 2)


@pytest.mark.parametrize("category", [UserWarning, MarginalWarning, PerformanceWarning])
def test_of_a_category(category):
    """The category is the caller's choice."""
    with pytest.warns(category, match="look out") as seen:
        warn_user("look out", category)
    assert seen[0].category is category


def test_however_deep_in_the_package(sites, grid):
    """Frames of the package are passed over, on the way through every door."""
    model = xcopula.fit(
        sites, "metal", marginals="lognormal", method="full", kernels="matern32", restarts=0
    )
    many = grid.assign_coords(x=("x", [0.1 * k for k in range(7)]))
    doors = [
        lambda: model.predict(many, chunks=1),
        lambda: xcopula.predict(model, many, chunks=1),
        lambda: many.mtcopula.predict(model, chunks=1),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("xcopula.prediction.layout._MOST_BLOCKS", 3)
        for door in doors:
            with pytest.warns(PerformanceWarning, match="42 blocks") as seen:
                door()
            assert [w.filename for w in seen] == [__file__]


def test_said_once_for_a_line():
    """A loop is told once, as Python's own rule for a line has it."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for _ in range(3):
            warn_user("again and again")
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [(5, "5"), ("a", "'a'"), (None, "None"), ("x" * 99, "a str"), ("a\nb", r"'a\nb'")],
)
def test_what_a_message_shows(value, text):
    """Short values are shown as they are, of long ones their kind."""
    assert shown(value) == text


def test_a_table_is_not_shown():
    """What takes several lines is named by its kind."""
    assert shown(xcopula.datasets.toy()) == "a Dataset"
