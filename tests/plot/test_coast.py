"""Coastlines come from cartopy where it is at hand, and from nowhere else."""

from __future__ import annotations

import importlib.machinery
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from xcopula.plot.coast import check_coast, draw_coast

NORWAY = np.array([[4.0, 58.0], [5.0, 61.0], [5.5, 62.0]])
CHILE = np.array([[-72.0, -40.0], [-73.0, -42.0]])


@pytest.fixture
def ax():
    ax = Figure().add_subplot()
    ax.set(xlim=(3, 6), ylim=(57, 63))
    return ax


@pytest.fixture
def cartopy(monkeypatch, tmp_path):
    """A stand-in for cartopy with outlines of Norway and Chile; returns the folder of its data."""
    asked = []
    reader = SimpleNamespace(
        geometries=lambda: [
            SimpleNamespace(geoms=[SimpleNamespace(coords=NORWAY)]),
            SimpleNamespace(coords=CHILE),
        ]
    )
    package, io, shapes = (ModuleType(f"cartopy{n}") for n in ("", ".io", ".io.shapereader"))
    package.__spec__ = importlib.machinery.ModuleSpec("cartopy", None)
    package.config = {"data_dir": tmp_path, "pre_existing_data_dir": ""}
    package.io, io.shapereader = io, shapes
    shapes.Reader = lambda path: reader
    shapes.natural_earth = lambda **how: asked.append(how) or "downloaded.shp"
    package.asked = asked
    for module in (package, io, shapes):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return package


def on_disk(cartopy, scale):
    folder = cartopy.config["data_dir"] / "shapefiles" / "natural_earth" / "physical"
    folder.mkdir(parents=True)
    (folder / f"ne_{scale}_coastline.shp").touch()


def test_nothing_is_drawn_without_cartopy(ax, monkeypatch):
    monkeypatch.setitem(sys.modules, "cartopy", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    draw_coast(ax, None)
    assert not ax.collections
    with pytest.raises(ImportError, match="`coastlines=True` needs cartopy"):
        check_coast(True)


def test_outlines_on_disk_are_drawn_within_the_limits(ax, cartopy):
    on_disk(cartopy, "50m")
    draw_coast(ax, None)
    (lines,) = ax.collections
    (drawn,) = lines.get_segments()
    np.testing.assert_array_equal(drawn, NORWAY)
    assert (ax.get_xlim(), ax.get_ylim()) == ((3, 6), (57, 63))
    assert not cartopy.asked


def test_longitudes_may_count_from_zero(ax, cartopy):
    on_disk(cartopy, "110m")
    ax.set(xlim=(280, 300), ylim=(-50, -30))
    draw_coast(ax, None)
    np.testing.assert_array_equal(
        ax.collections[0].get_segments()[0], CHILE + np.array([360.0, 0.0])
    )


def test_nothing_is_downloaded_unless_asked_for(ax, cartopy):
    draw_coast(ax, None)
    draw_coast(ax, False)
    assert not ax.collections
    assert not cartopy.asked
    draw_coast(ax, True)
    assert cartopy.asked == [{"resolution": "10m", "category": "physical", "name": "coastline"}]
    assert len(ax.collections) == 1


def test_it_is_a_flag():
    with pytest.raises(TypeError, match="`coastlines` must be True, False or None, found 'yes'"):
        check_coast("yes")
