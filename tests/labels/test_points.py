"""Labelled points that a method was given."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from xcopula.errors import CoordinateError
from xcopula.labels.observations import observe
from xcopula.labels.points import locate_anchors, renumber_anchors, to_points
from xcopula.methods import Sparse, Transductive


@pytest.fixture(scope="module")
def seen(sites):
    """What a model was fitted on."""
    return observe(sites, ["metal", "proxy"])


def test_become_inputs_of_the_model(seen, sites):
    """Scaled like the data; a site of the data keeps its number, other points have none."""
    x = np.r_[sites["x"].values[[4, 55]], 2.0]
    y = np.r_[sites["y"].values[[4, 55]], 1.5]
    points = to_points(xr.Dataset(coords={"x": ("p", x), "y": ("p", y)}), seen)
    np.testing.assert_allclose(points.inputs, seen.coordinates.to_columns([x, y]), rtol=1e-12)
    np.testing.assert_array_equal(points.sites, [*seen.sample.sites[[4, 40 + 55]], -1])


def test_a_grid_is_written_out(seen, grid):
    """Every cell of a grid is a point."""
    points = to_points(grid, seen)
    assert points.size == 42
    cells = {tuple(np.round(c, 9)) for c in points.inputs.T}
    x, y = np.meshgrid(grid["x"], grid["y"])
    columns = seen.coordinates.to_columns([x.ravel(), y.ravel()])
    assert cells == {tuple(np.round(c, 9)) for c in columns.T}


def test_may_be_lazy_and_in_other_units(seen, sites):
    """Metres in chunks are read like kilometres in memory."""
    few = sites[["x", "y"]].isel(site=slice(0, 10))
    metres = xr.Dataset(
        coords={n: ("site", 1000.0 * few[n].values, {"units": "m"}) for n in ("x", "y")}
    )
    left, right = (to_points(p, seen) for p in (few, metres.chunk(site=3)))
    np.testing.assert_allclose(left.inputs, right.inputs, rtol=1e-12)
    np.testing.assert_array_equal(left.sites, right.sites)


def test_points_without_a_place(seen):
    """Are counted, and named as the user knows them."""
    lost = xr.Dataset(coords={"x": ("p", [1.0, np.nan, 2.0]), "y": ("p", [1.0, 1.0, np.inf])})
    with pytest.raises(CoordinateError, match=r"2 of 3 .*anchors.* not finite. Drop them"):
        to_points(lost, seen)


def test_points_outside_the_data(seen, recwarn):
    """Are warned of where the caller stands; those at the edge are not."""
    low, high = seen.positions.min(axis=0), seen.positions.max(axis=0)
    edge = xr.Dataset(coords={"x": ("p", [low[0], high[0]]), "y": ("p", [low[1], high[1]])})
    to_points(edge, seen)
    assert not recwarn
    far = xr.Dataset(coords={"x": ("p", [low[0], 90.0, 1.0]), "y": ("p", [low[1], 1.0, -9.0])})
    with pytest.warns(UserWarning, match="2 of 3 .*anchors.* lie outside the extent") as warned:
        to_points(far, seen)
    assert warned[0].filename == __file__


def test_points_without_a_coordinate(seen, grid):
    """The coordinate is named."""
    with pytest.raises(CoordinateError, match="lacks the coordinate 'y'"):
        to_points(grid.drop_vars("y"), seen)


def test_anchors_of_a_method(seen, sites):
    """Labels become inputs once; sites get the numbers of other data; other methods stay."""
    given = sites[["x", "y"]].isel(site=slice(0, 5))
    located = locate_anchors(Transductive(anchors=given), seen)
    expected = to_points(given, seen)
    np.testing.assert_array_equal(located.anchors.inputs, expected.inputs)
    assert locate_anchors(located, seen) is located
    few = seen.sample.take(np.arange(3, seen.sample.size))
    moved = renumber_anchors(located, few).anchors
    np.testing.assert_array_equal(moved.sites, few.sites_at(expected.inputs))
    for method in (Transductive(), Transductive(anchors=None), Sparse("dtc", 7)):
        assert locate_anchors(method, seen) is method
        assert renumber_anchors(method, few) is method
