"""Correlations of normal scores by distance: empirical against fitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xcopula.model import CopulaModel
from xcopula.model.correlations import Correlogram, correlograms
from xcopula.plot.panels import (
    ACCENT,
    FAINT,
    INK,
    LIGHT,
    add_legend,
    add_shared_legend,
    entitle,
    label_axes,
    lay_out,
    panel,
    with_units,
)
from xcopula.plot.variables import chosen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["correlation_panels"]

_AGAINST = {"space": "distance", "time": "lag in time", "height": "difference in height"}


def correlation_panels(
    model: CopulaModel,
    variables: str | Sequence[str] | None = None,
    axes: Any = None,
    **options: int,
) -> Figure:
    """Draw the correlograms of some variables: rows for each group of coordinates.

    The first row of a group has the autocorrelations; below each secondary stands its
    cross-correlation with the primary. Options go to :func:`correlograms`.
    """
    tasks = chosen(model, variables)
    found = correlograms(model, tasks, **options)
    groups = list(dict.fromkeys(each.group for each in found))
    rows = 2 if any(each.first != each.second for each in found) else 1
    cells = [
        (
            rows * groups.index(each.group) + (each.first != each.second),
            tasks.index(model.task(each.second)),
        )
        for each in found
    ]
    figure, panels = lay_out(axes, cells, 3.0 if len(tasks) > 1 else 4.4, 2.6)
    ends = [e for c in found for e in (c.empirical, c.lower, c.upper, c.curve[1])]
    lowest = min(0.0, *(float(e.min(initial=0.0)) for e in ends))
    highest = max(1.0, *(float(e.max(initial=1.0)) for e in ends))
    for ax, each in zip(panels, found, strict=True):
        _draw(panel(ax)[1], each)
        ax.set_ylim(lowest - 0.05, highest + 0.05)
    if axes is None:
        add_shared_legend(figure, panels[0])
    else:
        add_legend(panels[0], "best")
    return figure


def _draw(ax: Axes, found: Correlogram) -> None:
    """Draw one correlogram: averages as dots, the model as a curve with its band."""
    ax.axhline(0.0, color=FAINT, lw=0.6)
    band = ax.fill_between(found.distance, found.lower, found.upper, color=LIGHT, alpha=0.5, lw=0)
    band.set_label("90 % of draws from the model")
    ax.plot(*found.curve, color=INK, lw=1.2, label="fitted")
    ax.plot(found.distance, found.empirical, "o", ms=3.5, mew=0, color=ACCENT, label="empirical")
    if found.at_site is not None:
        empirical, fitted = found.at_site
        ax.plot(0.0, fitted, "s", ms=5, mfc="none", mec=INK, clip_on=False, zorder=4)
        ax.plot(0.0, empirical, "o", ms=3.5, mew=0, color=ACCENT, clip_on=False, zorder=5)
    ax.set_xlim(0.0, None)
    label_axes(ax, _distance_label(found), "correlation of scores")
    same = found.first == found.second
    entitle(ax, found.first if same else f"{found.first} and {found.second}")


def _distance_label(found: Correlogram) -> str:
    name = _AGAINST.get(found.group, f"distance in {found.group}")
    if found.ard:
        one = ", ".join(f"{scale:.3g} of {axis}" for axis, scale in found.ard.items())
    elif found.directions:
        one = found.directions
    else:
        return with_units(name, found.units)
    # Lines end at commas.
    return f"{name} (1 is {one})".replace(" ", "\u00a0").replace(",\u00a0", ", ")
