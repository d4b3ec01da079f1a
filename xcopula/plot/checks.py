"""Predictions beside what was observed: leave-one-out, and the reliability of probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import xarray as xr
from numpy.typing import NDArray

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

FloatArray: TypeAlias = NDArray[np.float64]


def loo_scatter(loo: xr.Dataset, units: str, ax: Axes | None = None) -> Figure:
    """Draw observed values against their leave-one-out medians, with the 90 % band of each.

    Parameters
    ----------
    loo : Dataset
        What :meth:`CopulaModel.loo` returns.
    units : str
        Of the values, for the eye.
    ax : Axes, optional
    """
    names = ("observed", "median", "lower", "upper", "crps")
    columns = [np.ravel(each.values) for each in xr.broadcast(*(loo[name] for name in names))]
    known = np.isfinite(columns[0]) & np.isfinite(columns[1])
    observed, median, lower, upper, crps = (column[known] for column in columns)
    inside = (lower <= observed) & (observed <= upper)
    figure, ax = panel(ax)
    # Many bars together are a cloud: each grows fainter, and the dots smaller.
    many = np.clip(200.0 / observed.size, 0.03, 1.0)
    bars = ax.vlines(median, lower, upper, color=LIGHT, lw=0.6 + 0.6 * many, zorder=1)
    bars.set(alpha=0.15 + 0.6 * many, rasterized=True, label="90 % band")
    size = 1.2 + 2.3 * np.sqrt(many)
    for which, colour, label in ((inside, ACCENT, "within"), (~inside, WARM, "outside")):
        share = f"{label}: {100.0 * which.mean():.0f} %"
        ax.plot(median[which], observed[which], "o", ms=size, mew=0, color=colour, label=share)
    ax.axline((median[0], median[0]), slope=1, color=INK, lw=0.8)
    low = min(observed.min(), np.quantile(lower, 0.01), median.min())
    high = max(observed.max(), median.max())
    room = 0.04 * (high - low)
    ax.set(ylim=(low - room, high + room), xlim=(median.min() - room, median.max() + room))
    suffix = f", {units}" if units else ""
    label_axes(ax, f"predicted without it (median){suffix}", f"observed{suffix}")
    error = np.abs(observed - median).mean()
    add_note(ax, f"mean absolute error {error:.3g}\nCRPS {crps.mean():.3g}")
    add_legend(ax, "upper left")
    return figure


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
