"""What all figures share: panels, their looks, and names with units for the eye."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
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
    "PROBABILITY",
    "TICK",
    "TITLE",
    "VALUE",
    "WARM",
    "WIDTH",
    "add_bar",
    "add_legend",
    "add_note",
    "add_shared_legend",
    "amount",
    "entitle",
    "label_axes",
    "lay_out",
    "name_of",
    "new_figure",
    "panel",
    "shown_units",
    "tidy",
    "with_units",
]

INK = "#222222"
FAINT = "#8a8a8a"
ACCENT = "#31688e"
LIGHT = "#9db8cc"
WARM = "#d55e00"  # everyone can tell it from the blue
TITLE, LABEL, TICK = 10.0, 9.0, 8.0  # font sizes in points
# Colour maps that grow lighter or darker all the way. What is unlikely stays pale.
VALUE, WIDTH, PROBABILITY = "viridis", "magma", "YlGnBu"

Cell = tuple[int, int]

_POWER = re.compile(r"(?<=[\w)])(?:\*\*|\^)([-+]?\d+(?:\.\d+)?)\b|(?<=[A-Za-z])(-?\d+)\b")


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of some inches."""
    try:
        from xcopula.plot.figure import Figure
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


def lay_out(
    axes: Any, cells: Sequence[Cell], width: float, height: float
) -> tuple[Figure, list[Axes]]:
    """Return the figure and the axes of several panels.

    Parameters
    ----------
    axes : Axes, sequence of Axes, or None
        Where to draw; a new figure if None.
    cells : sequence of (row, column)
        Where each panel stands in a new figure.
    width, height : float
        Of one panel of a new figure, in inches.

    Raises
    ------
    ValueError
        If there are more or fewer axes than panels.
    """
    if axes is None:
        rows, columns = (max(c) + 1 for c in zip(*cells, strict=True))
        figure = new_figure(width * columns, height * rows)
        grid = figure.add_gridspec(rows, columns)
        axes = [figure.add_subplot(grid[cell]) for cell in cells]
    found = np.ravel(np.asarray(axes, dtype=object)).tolist()
    if len(found) != len(cells):
        raise ValueError(
            f"`axes` must be {len(cells)} axes, one for each panel, found {len(found)}. "
            "Leave it out for a new figure."
        )
    for ax in found:
        tidy(ax)
    return cast("Figure", found[0].figure), found


def tidy(ax: Axes) -> None:
    """Give axes the looks of all figures."""
    if not hasattr(ax, "tick_params"):
        raise TypeError(f"`ax` must be Axes of matplotlib, found {shown(ax)}.")
    ax.tick_params(labelsize=TICK, colors=INK, length=3, width=0.6)
    for spine in ax.spines.values():
        spine.set(linewidth=0.6, color=FAINT)


def label_axes(ax: Axes, x: str, y: str) -> None:
    """Name both axes."""
    ax.set_xlabel(_in_lines(ax, x, LABEL), fontsize=LABEL, color=INK)
    ax.set_ylabel(y, fontsize=LABEL, color=INK)


def entitle(ax: Axes, text: str) -> None:
    """Write a title at the left of a panel."""
    ax.set_title(_in_lines(ax, text, TITLE), fontsize=TITLE, color=INK, loc="left")


def _in_lines(ax: Axes, text: str, size: float) -> str:
    """Return a text in several lines if it is longer than the panel is wide."""
    inches = ax.get_window_extent().width / ax.figure.dpi
    letters = max(int(inches * 72.0 / (0.47 * size)), 20)
    return textwrap.fill(text, letters, break_long_words=False, break_on_hyphens=False)


def add_legend(ax: Axes, loc: str) -> None:
    """Say what the marks of a panel are."""
    legend = ax.legend(frameon=True, fontsize=TICK, loc=loc, labelcolor=INK, borderpad=0.3)
    legend.get_frame().set(facecolor="white", edgecolor="none", alpha=0.8)


def add_shared_legend(figure: Figure, ax: Axes) -> None:
    """Say above a new figure what the marks of all its panels are, as they are in one of them."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper left",
        ncols=len(labels) if figure.get_figwidth() > 6.0 else 2,
        frameon=False,
        fontsize=TICK,
        labelcolor=INK,
    )


def add_note(ax: Axes, text: str, loc: str = "lower right") -> None:
    """Write a remark in a corner of a panel."""
    low, right = loc.startswith("lower"), loc.endswith("right")
    ax.text(
        0.98 if right else 0.02,
        0.02 if low else 0.98,
        text,
        transform=ax.transAxes,
        ha="right" if right else "left",
        va="bottom" if low else "top",
        fontsize=TICK - 0.5,
        color=INK,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5},
    )


def add_bar(artist: Any, axes: Sequence[Axes], extend: str, label: str) -> None:
    """Draw the colour bar of an artist beside its panel, or beside several."""
    figure, boxes = axes[0].figure, [ax.get_window_extent() for ax in axes]
    inches = (max(box.y1 for box in boxes) - min(box.y0 for box in boxes)) / figure.dpi
    shrink, aspect = (0.8, 30) if inches > 2.0 else (1.0, 10)
    bar = figure.colorbar(artist, ax=axes, extend=extend, shrink=shrink, aspect=aspect, pad=0.02)
    bar.set_label(label, fontsize=LABEL, color=INK)
    bar.ax.tick_params(labelsize=TICK, colors=INK, length=3, width=0.6)
    bar.ax.tick_params(which="minor", length=1.5, width=0.4)
    bar.outline.set_visible(False)


def name_of(array: xr.DataArray) -> str:
    """Return the long name of a variable with a capital, or its name as it is."""
    text = str(array.attrs.get("long_name", ""))
    return text[:1].upper() + text[1:] or str(array.name or "")


def shown_units(units: object) -> str:
    """Return units for the eye: the -1 of ``m s-1`` and ``m s**-1`` raised, degrees as a circle."""
    text = str(units)
    if re.fullmatch(r"deg(ree)?s?[_ ]?(c|celsius)", text.lower()):
        return "°C"
    if text.startswith("degree"):
        return "°"
    return "" if text == "1" else _POWER.sub(lambda m: f"$^{{{m[1] or m[2]}}}$", text)


def amount(number: float, units: object) -> str:
    """Return a number with its units, which no line break takes apart."""
    return f"{number:g} {shown_units(units)}".rstrip().replace(" ", "\u00a0")


def with_units(name: str, units: object) -> str:
    """Return a name with its units, where there are any."""
    text = shown_units(units)
    return f"{name}, {text}" if text else name
