"""What all figures share: panels, their looks, and names with units for the eye."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

import xarray as xr

from xcopula.warn import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "ACCENT",
    "FAINT",
    "INK",
    "LABEL",
    "LIGHT",
    "TICK",
    "TITLE",
    "label_axes",
    "name_of",
    "new_figure",
    "panel",
    "shown_units",
    "tidy",
]

INK = "#222222"
FAINT = "#8a8a8a"
ACCENT = "#31688e"
LIGHT = "#9db8cc"
TITLE, LABEL, TICK = 10.0, 9.0, 8.0  # font sizes in points


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of some inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "xcopula.plot needs matplotlib, which is not installed. "
            "Install it with `pip install xcopula[plot]`."
        ) from error
    return Figure(figsize=(width, height), layout="compressed")


def panel(ax: Axes | None) -> tuple[Figure, Axes]:
    """Return the figure and the only axes to draw a diagnostic on."""
    if ax is None:
        ax = new_figure(4.6, 3.6).add_subplot()
    tidy(ax)
    ax.spines[["top", "right"]].set_visible(False)
    return cast("Figure", ax.figure), ax


def tidy(ax: Axes) -> None:
    """Give axes the looks of all figures."""
    if not hasattr(ax, "tick_params"):
        raise TypeError(f"`ax` must be Axes of matplotlib, found {shown(ax)}.")
    ax.tick_params(labelsize=TICK, colors=INK, length=3, width=0.6)
    for spine in ax.spines.values():
        spine.set(linewidth=0.6, color=FAINT)


def label_axes(ax: Axes, x: str, y: str) -> None:
    """Name both axes."""
    ax.set_xlabel(x, fontsize=LABEL, color=INK)
    ax.set_ylabel(y, fontsize=LABEL, color=INK)


def name_of(array: xr.DataArray) -> str:
    """Return the long name of a variable, or its name, with a capital."""
    text = str(array.attrs.get("long_name", array.name or ""))
    return text[:1].upper() + text[1:]


def shown_units(array: xr.DataArray) -> str:
    """Return the units for the eye: ``mg kg-1`` as mg kg with a raised -1, degrees as a circle."""
    units = str(array.attrs.get("units", ""))
    if units.startswith("degree"):
        return "°"
    return "" if units == "1" else re.sub(r"(?<=[A-Za-z])(-?\d+)\b", r"$^{\1}$", units)
