"""Coastlines on a map of longitude and latitude, where cartopy and its outlines are at hand."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from xcopula.plot.panels import INK
from xcopula.warn import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["check_coast", "draw_coast"]

_OUTLINES = "ne_{}_coastline"
_DETAILS = (("10m", 10.0), ("50m", 60.0), ("110m", 361.0))  # up to this extent, in degrees


def check_coast(coastlines: bool | None) -> None:
    """Refuse what is neither True, False nor None, and True where cartopy is not installed.

    Raises
    ------
    TypeError, ImportError
    """
    if coastlines is not None and not isinstance(coastlines, bool | np.bool_):
        raise TypeError(f"`coastlines` must be True, False or None, found {shown(coastlines)}.")
    if coastlines and importlib.util.find_spec("cartopy") is None:
        raise ImportError(
            "`coastlines=True` needs cartopy, which is not installed. Install it, or leave "
            "`coastlines` out."
        )


def draw_coast(ax: Axes, coastlines: bool | None) -> None:
    """Draw the coastlines within the limits of axes in degrees.

    Parameters
    ----------
    ax : Axes
        With longitude and latitude; its limits stay.
    coastlines : bool, optional
        None draws them if cartopy is installed and has the outlines on disk: a picture never
        waits for a download. True lets cartopy download them.
    """
    if coastlines is None and importlib.util.find_spec("cartopy") is None:
        return
    if coastlines is False:
        return
    (west, east), (south, north) = ax.get_xlim(), ax.get_ylim()
    path = _find_outlines(max(east - west, north - south), download=bool(coastlines))
    if path is None:
        return
    from cartopy.io import shapereader
    from matplotlib.collections import LineCollection
    from matplotlib.patheffects import withStroke

    lines = []
    for shape in shapereader.Reader(path).geometries():
        for part in getattr(shape, "geoms", [shape]):
            points = np.asarray(part.coords)[:, :2]
            for turn in (-360.0, 0.0, 360.0):  # a grid may count longitudes from 0 or from -180
                moved = points + np.array([turn, 0.0])
                low, high = moved.min(axis=0), moved.max(axis=0)
                if low[0] < east and high[0] > west and low[1] < north and high[1] > south:
                    lines.append(moved)
    # A pale seam keeps the line visible on any colour.
    seam = [withStroke(linewidth=1.8, foreground="white", alpha=0.7)]
    coast = LineCollection(lines, colors=INK, linewidths=0.7, path_effects=seam)
    ax.add_collection(coast, autolim=False)


def _find_outlines(extent: float, *, download: bool) -> Any:
    """Return the file of coastlines for a map of some degrees; None if there is none on disk."""
    import cartopy
    from cartopy.io import shapereader

    wanted = next(scale for scale, limit in _DETAILS if extent <= limit or scale == "110m")
    if download:
        return shapereader.natural_earth(resolution=wanted, category="physical", name="coastline")
    roots = [cartopy.config.get(key) for key in ("pre_existing_data_dir", "data_dir")]
    for scale in dict.fromkeys((wanted, "50m", "110m")):
        for root in filter(None, roots):
            folder = Path(root) / "shapefiles" / "natural_earth" / "physical"
            path = folder / f"{_OUTLINES.format(scale)}.shp"
            if path.is_file():
                return str(path)
    return None
