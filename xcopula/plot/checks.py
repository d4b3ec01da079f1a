"""Predictions beside what was observed: leave-one-out, and the reliability of probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from xcopula.arrays import FloatArray
from xcopula.plot.panels import (
    ACCENT,
    INK,
    LABEL,
    LIGHT,
    TICK,
    WARM,
    add_legend,
    add_note,
    label_axes,
    panel,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["loo_scatter", "reliability_diagram"]


def loo_scatter(loo: xr.Dataset, units: str, ax: Axes | None = None) -> Figure:
    """Draw observed values against their leave-one-out medians, with the 90 % band of each.

    Parameters
    ----------
    loo : Dataset
        What :meth:`CopulaModel.loo` returns. Where an observation is known as an interval, all of
        it is drawn, and whether it lies within the band is told by its PIT.
    units : str
        Of the values, for the eye.
    ax : Axes, optional
    """
    names = ["observed", "median", "lower", "upper", "crps"]
    if "observed_lower" in loo:
        names += ["observed_lower", "observed_upper", "pit"]
    columns = [np.ravel(each.values) for each in xr.broadcast(*(loo[name] for name in names))]
    known = np.isfinite(columns[0]) & np.isfinite(columns[1])
    observed, median, lower, upper, crps, *ends = (column[known] for column in columns)
    inside = (lower <= observed) & (observed <= upper)
    number = np.ones(observed.size, bool)
    if ends:
        number = ends[0] == ends[1]
        inside = np.where(number, inside, np.abs(2.0 * ends[2] - 1.0) <= 0.9)
    figure, ax = panel(ax)
    # Many bars together are a cloud: each grows fainter, and the dots smaller.
    many = np.clip(200.0 / observed.size, 0.03, 1.0)
    bars = ax.vlines(median, lower, upper, color=LIGHT, lw=0.6 + 0.6 * many, zorder=1)
    bars.set(alpha=0.15 + 0.6 * many, rasterized=True, label="90 % band")
    size = 1.2 + 2.3 * np.sqrt(many)
    for which, colour, label in ((inside, ACCENT, "within"), (~inside, WARM, "outside")):
        share = f"{label}: {100.0 * which.mean():.0f} %"
        dots = which & number
        ax.plot(median[dots], observed[dots], "o", ms=size, mew=0, color=colour, label=share)
    ax.axline((median[0], median[0]), slope=1, color=INK, lw=0.8)
    shown = np.concatenate([observed[number], *(end[np.isfinite(end)] for end in ends[:2])])
    low = min(shown.min(), np.quantile(lower, 0.01), median.min())
    high = max(shown.max(), median.max())
    if ends:
        _draw_intervals(ax, median, ends, number, inside)
    room = 0.04 * (high - low)
    ax.set(ylim=(low - room, high + room), xlim=(median.min() - room, median.max() + room))
    suffix = f", {units}" if units else ""
    label_axes(ax, f"predicted without it (median){suffix}", f"observed{suffix}")
    what = "mean absolute error"
    if not number.all():
        what += f" of the {number.sum()} numbers"
    error = np.abs(observed - median)[number]
    note = f"{what} {error.mean():.3g}\n" if error.size else ""
    add_note(ax, f"{note}CRPS {crps.mean():.3g}")
    add_legend(ax, "upper left")
    return figure


def _draw_intervals(
    ax: Axes,
    median: FloatArray,
    ends: list[FloatArray],
    number: NDArray[np.bool_],
    inside: NDArray[np.bool_],
) -> None:
    """Draw observations that are known as intervals as lines; an open end leaves the panel."""
    finite = np.concatenate([median, *(end[np.isfinite(end)] for end in ends[:2])])
    far = 10.0 * np.abs(finite).max()
    low, high = (np.clip(end, -far, far) for end in ends[:2])
    for which, colour, label in ((inside, ACCENT, "an interval"), (~inside, WARM, "_")):
        own = which & ~number
        if own.any():
            ax.vlines(median[own], low[own], high[own], color=colour, lw=1.0, label=label)


def reliability_diagram(
    probability: FloatArray, happened: NDArray[np.bool_], bins: int, ax: Axes | None = None
) -> Figure:
    """Draw how often an event happened against the probability that was given for it.

    Parameters
    ----------
    probability : ndarray (n,)
    happened : ndarray (n,), bool
    bins : int
        Equal classes of probability; an empty one has no dot.
    ax : Axes, optional
    """
    from scipy.special import bdtrik

    number = np.minimum((probability * bins).astype(np.int64), bins - 1)
    counts = np.bincount(number, minlength=bins)
    full = counts > 0
    mean = np.bincount(number, probability, bins)[full] / counts[full]
    share = np.bincount(number, happened, bins)[full] / counts[full]
    # How often it happens in a class, if the mean probability of the class is right.
    p = np.clip(mean, 1e-12, 1.0 - 1e-12)
    low, high = (
        np.clip(np.ceil(bdtrik(level, counts[full], p)) / counts[full], 0.0, 1.0)
        for level in (0.05, 0.95)
    )
    figure, ax = panel(ax)
    ax.axline((0, 0), slope=1, color=INK, lw=0.8)
    ax.vlines(mean, low, high, color=LIGHT, lw=4, label="90 % of the dots, if reliable")
    ax.plot(mean, share, "o-", ms=5, lw=0.8, color=ACCENT, label="observed")
    base = happened.mean()
    ax.axhline(base, color=INK, lw=0.6, ls=(0, (1, 2)), label=f"share of all: {base:.2f}")
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    label_axes(ax, "predicted probability", "observed frequency")
    add_legend(ax, "upper left")
    inset = ax.inset_axes((0.63, 0.1, 0.35, 0.2))
    tidy(inset)
    inset.bar(
        np.arange(bins) / bins, counts, 1.0 / bins, align="edge", color=LIGHT, ec="white", lw=0.5
    )
    inset.set(xlim=(0, 1), xticks=[], yticks=[int(counts.max())])
    inset.spines[["top", "right"]].set_visible(False)
    inset.set_title("predictions", fontsize=TICK, color=INK, pad=2)
    inset.tick_params(labelsize=LABEL - 2)
    return figure
