"""Directions in words: bearings, angles between axes, components."""

from __future__ import annotations

import numpy as np
import pytest

from xcopula.model.directions import Directions, with_units


def plane(angle, ratio=4.0, *, compass=True, axes=("x", "y")):
    """Return directions whose longer one points so, clockwise from north or from the first axis."""
    a = np.deg2rad(angle)
    along = [np.sin(a), np.cos(a)] if compass else [np.cos(a), np.sin(a)]
    vectors = np.array([along, [-along[1], along[0]]])
    return Directions(np.array([ratio**0.5, ratio**-0.5]), vectors, axes, compass)


@pytest.mark.parametrize(
    ("angle", "words"),
    [
        (0.0, "N 0 E"),
        (52.2, "N 52 E"),
        (90.0, "N 90 E"),
        (90.6, "N 89 W"),
        (128.0, "N 52 W"),
        (179.8, "N 0 E"),
        (232.0, "N 52 E"),
    ],
)
def test_bearings(angle, words):
    """Either end of a line names it; the one in the north is taken."""
    found = plane(angle)
    assert found.describe([10.0], "km") == f"20 km along {words}, 5 km across"
    assert found.angle == pytest.approx(angle % 180.0)
    assert found.origin == "north, clockwise"
    assert found.ratio == pytest.approx(4.0)


def test_angles_between_axes():
    found = plane(142.0, compass=False, axes=("p", "q"))
    assert found.describe([1.0, 3.0], "") == "2, 6 along 142 degrees from p to q, 0.5, 1.5 across"
    assert found.angle == pytest.approx(142.0)
    assert found.origin == "p towards q"


def test_three_axes():
    """Each direction by its components, the largest positive; no one angle tells it."""
    vectors = np.array([[0.0, -0.6, -0.8], [1.0, 0.0, 0.0], [0.0, 0.8, -0.6]])
    found = Directions(np.array([4.0, 1.0, 0.25]), vectors, ("x", "y", "z"), False)
    assert found.describe([2.0], "m") == (
        "8 m along (-0.00 x, 0.60 y, 0.80 z), 2 m along (1.00 x, 0.00 y, 0.00 z), "
        "0.5 m along (0.00 x, 0.80 y, -0.60 z)"
    )
    assert np.isnan(found.angle)
    assert found.origin == ""
    assert found.ratio == 16.0


def test_lengths_with_units():
    assert with_units([1.2345, 10.0], "km") == "1.23, 10 km"
    assert with_units([2.0], "") == "2"
