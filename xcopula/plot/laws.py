"""The laws of a model beside the values that they describe: density and QQ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from xcopula.marginals.intervals import is_interval
from xcopula.model import CopulaModel
from xcopula.plot.diagnostics import marginal_qq
from xcopula.plot.panels import (
    INK,
    LIGHT,
    add_legend,
    entitle,
    label_axes,
    lay_out,
    name_of,
    panel,
    with_units,
)
from xcopula.plot.variables import chosen
from xcopula.process import drawn_scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["law_panels"]

_POINTS = 400  # of a density
_FEWEST, _MOST = 6, 40  # bars


def law_panels(
    model: CopulaModel, variables: str | Sequence[str] | None = None, axes: Any = None
) -> Figure:
    """Draw the histogram and the density of each variable, and its QQ plot below.

    A law that varies has no single density: there the histogram is that of the normal scores,
    which the law makes standard normal. Values that are known as intervals stand within them, where
    the law draws them.
    """
    tasks = chosen(model, variables)
    cells = [(row, column) for row in range(2) for column in range(len(tasks))]
    figure, found = lay_out(axes, cells, 3.3, 2.9)
    for k, task in enumerate(tasks):
        _draw_density(panel(found[k])[1], model, task)
        marginal_qq(model, model.tasks[task], found[len(tasks) + k])
        found[len(tasks) + k].set_title("", loc="left")
    return figure


def _draw_density(ax: Axes, model: CopulaModel, task: int) -> None:
    sample, law = model.observations.sample, model.marginals[task]
    values, limits = sample.values[sample.task(task)], sample.limits_of(task)
    scores = drawn_scores(law.at(sample.covariates_of(task)), values, limits)
    attrs = model.variables[task].attrs
    name = name_of(xr.DataArray(name=model.tasks[task], attrs=attrs))
    if law.fields:
        values = scores
        x = np.linspace(min(values.min(), -3.3), max(values.max(), 3.3), _POINTS)
        density = np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi)
        label, legend = "normal score", f"standard normal\n({law.name})"
    else:
        # somewhere within its limits, as the law has it
        values = np.where(is_interval(limits), law.from_normal(scores), values)
        x = np.linspace(*_range(values, law.from_normal([-3.0, 3.0]).tolist()), _POINTS)
        with np.errstate(over="ignore"):
            density = np.exp(law.log_density(x))
        label, legend = with_units("value", attrs.get("units", "")), law.name
    known = values[np.isfinite(values)]
    edges = np.histogram_bin_edges(known, "fd")
    if not _FEWEST <= edges.size - 1 <= _MOST:
        edges = np.histogram_bin_edges(known, np.clip(edges.size - 1, _FEWEST, _MOST))
    heights, _ = np.histogram(known, bins=edges, density=True)
    count = int(is_interval(limits).sum())
    drawn = f"{count} of {values.size} drawn\nwithin their limits" if count else "_"
    looks: dict[str, Any] = {"color": LIGHT, "ec": "white", "lw": 0.5, "label": drawn}
    ax.bar(edges[:-1], heights, np.diff(edges), align="edge", **looks)
    ax.plot(x, density, color=INK, lw=1.2, label=legend)
    # A density without bound at the end of its support would flatten the rest.
    ax.set_ylim(0.0, min(1.25 * max(heights.max(), density.max()), 2.5 * heights.max()))
    ax.set_xlim(x[0], x[-1])
    label_axes(ax, label, with_units("density", "" if law.fields else _inverse(attrs)))
    entitle(ax, name)
    add_legend(ax, "upper right")


def _inverse(attrs: dict[str, Any]) -> str:
    """Return the units of a density of values."""
    units = str(attrs.get("units", "1"))
    return "1" if units == "1" else f"1 / ({units})" if " " in units else f"1 / {units}"


def _range(values: Any, law: Sequence[float]) -> tuple[float, float]:
    """Return what to show: all values, and what is near them of the bulk of the law."""
    low, high = float(values.min()), float(values.max())
    room = 0.3 * (high - low)
    return max(min(low, law[0]), low - room), min(max(high, law[1]), high + room)
