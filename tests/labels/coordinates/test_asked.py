"""What ``coords=`` asks for, whatever its form."""

from __future__ import annotations

import numpy as np
import pytest

from xcopula.labels.coordinates.asked import check_group, check_members, coordinates_asked
from xcopula.labels.coordinates.cycles import cycle

SEASON = cycle("time")


@pytest.mark.parametrize(
    ("coords", "names"),
    [
        (None, []),
        ("x", ["x"]),
        (("x", "y"), ["x", "y"]),
        (["x", SEASON], ["x", "time"]),
        ({"space": ["x", "y"], "season": SEASON}, ["x", "y", "time"]),
    ],
)
def test_names(coords, names):
    """Names and cycles, in groups or not."""
    assert coordinates_asked(coords) == names


@pytest.mark.parametrize("given", [5, None, {"x"}, b"x", np.array(["x"]), True])
def test_no_sequence(given):
    """A set has no order; an array is no sequence."""
    with pytest.raises(TypeError, match="must be a name, a sequence of names, or a mapping"):
        check_members(given)


@pytest.mark.parametrize("given", [[5], ["x", None], [["x"]]])
def test_no_names(given):
    """Every member is a string."""
    with pytest.raises(TypeError, match="must name coordinates by strings, found"):
        check_members(given)


@pytest.mark.parametrize("name", [5, None, (), ""])
def test_groups(name):
    """A group has a name."""
    assert check_group("space") == "space"
    with pytest.raises(TypeError, match="must name its groups by strings, found"):
        check_group(name)
