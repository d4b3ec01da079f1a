"""Figures: maps of a prediction and diagnostics of its calibration and of the marginal laws.

Results are Datasets, so ``.plot()`` works on them as it is; this module adds the few pictures that
take more than a line. It draws with the object-oriented interface of matplotlib: no global state,
no window, and every function returns the Figure, ready for ``savefig``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, cast

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

__all__ = ["marginal_qq", "pit_histogram", "prediction_map"]

FloatArray: TypeAlias = NDArray[np.float64]
Limits: TypeAlias = tuple[float, float, Literal["both", "min", "max", "neither"]]

INK = "#222222"
FAINT = "#8a8a8a"
ACCENT = "#31688e"
LIGHT = "#9db8cc"
TITLE, LABEL, TICK = 10.0, 9.0, 8.0  # font sizes in points


class SupportsScores(Protocol):
    """A marginal law that turns data into normal scores."""

    def to_normal(self, y: FloatArray, /) -> FloatArray:
        """Return the normal scores of the values."""


def prediction_map(
    prediction: xr.Dataset,
    variable: str | None = None,
    *,
    sites: xr.Dataset | None = None,
    mask: xr.DataArray | None = None,
    ax: Sequence[Axes] | None = None,
) -> Figure:
    """Map the median of a prediction and the width of its central band, side by side.

    Parameters
    ----------
    prediction : Dataset
        Predicted quantiles: a variable with dims ``quantile`` and two horizontal ones, among the
        quantiles 0.5 and at least one on each side of it.
    variable : str, optional
        The variable to draw; may be left out if the prediction has only one.
    sites : Dataset, optional
        Observations of the variable, drawn as dots in the colours of the median. Its horizontal
        coordinates have the names of the grid's.
    mask : DataArray of bool, optional
        True on the cells to show.
    ax : sequence of two Axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    Figure
        The median on the left; on the right the highest minus the lowest quantile.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If the variable, its dims or its quantiles are not as described above.
    """
    array = _find_variable(prediction, variable)
    y_name, x_name = _find_horizontal(array)
    array = array.transpose("quantile", y_name, x_name).compute()
    median, band, level = _median_and_band(array)
    if mask is not None:
        median, band = median.where(mask), band.where(mask)
    dots = _find_dots(sites, str(array.name), x_name, y_name)
    figure, axes = _panels(ax, median)
    name, units = _name(array), _units(array)
    limits = _colour_limits(median.values, dots[2])
    mesh = _draw_map(axes[0], median, limits, "viridis", units or name)
    points = axes[0].scatter(dots[0], dots[1], s=15, ec="white", lw=0.45)
    points.set(array=dots[2], cmap=mesh.get_cmap(), clim=mesh.get_clim())
    limits = _colour_limits(band.values, np.empty(0))
    _draw_map(axes[1], band, limits, "magma", f"width, {units}" if units else "width")
    axes[0].set_title(f"{name}: median", fontsize=TITLE, color=INK, loc="left")
    axes[1].set_title(f"{100 * level:.3g} % band", fontsize=TITLE, color=INK, loc="left")
    return figure


def pit_histogram(
    pit: ArrayLike | xr.DataArray, ax: Axes | None = None, *, bins: int = 10
) -> Figure:
    """Draw the histogram of probability integral transforms, flat for a calibrated prediction.

    Parameters
    ----------
    pit : array_like or DataArray
        Predictive distribution functions at the values that came true, in 0..1; NaN is left out.
    ax : Axes, optional
        Where to draw; a new figure otherwise.
    bins : int
        Number of bars.

    Returns
    -------
    Figure
        Bars of relative frequency (1 is uniform); 95 % of the bars of a calibrated prediction
        end between the dashed lines.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If no value is left, or one is outside 0..1.
    """
    values = _finite(pit, "probability integral transforms")
    if values.min() < 0 or values.max() > 1:
        found = f"{values.min():.4g} to {values.max():.4g}"
        raise ValueError(f"Probability integral transforms must lie in 0..1, found {found}.")
    figure, ax = _panel(ax)
    from scipy.special import bdtrik

    counts, edges = np.histogram(values, bins=bins, range=(0.0, 1.0))
    expected = values.size / bins
    low, high = (np.ceil(bdtrik(p, values.size, 1 / bins)) / expected for p in (0.025, 0.975))
    ax.bar(edges[:-1], counts / expected, 1 / bins, align="edge", color=LIGHT, ec="white", lw=0.8)
    ax.axhline(1.0, color=INK, lw=0.8)
    for edge, label in ((low, None), (high, "95 % of the bars, if calibrated")):
        ax.axhline(edge, color=INK, lw=0.8, ls=(0, (4, 3)), label=label)
    ax.set(xlim=(0, 1), ylim=(0, max(1.15 * counts.max() / expected, 1.25 * high)))
    _label(ax, "probability integral transform", "relative frequency")
    ax.legend(frameon=False, fontsize=TICK, loc="upper right", labelcolor=INK)
    return figure


def marginal_qq(
    marginal: SupportsScores, values: ArrayLike | xr.DataArray, ax: Axes | None = None
) -> Figure:
    """Draw the normal scores of data under a marginal law against standard normal quantiles.

    Parameters
    ----------
    marginal : Marginal
        The law, fitted.
    values : array_like or DataArray
        The data; NaN is left out.
    ax : Axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    Figure
        Points on the diagonal if the law fits, with its pointwise 95 % band for independent data.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If no value is left.
    """
    data = _finite(values, "values")
    figure, ax = _panel(ax)
    from scipy.special import betaincinv, ndtri

    scores = np.sort(marginal.to_normal(data))
    rank = np.arange(1, data.size + 1)
    theory = ndtri((rank - 0.5) / data.size)
    low, high = (ndtri(betaincinv(rank, data.size + 1 - rank, p)) for p in (0.025, 0.975))
    ax.fill_between(theory, low, high, color=FAINT, alpha=0.2, lw=0, label="95 % band")
    ax.axline((0, 0), slope=1, color=INK, lw=0.8)
    ax.plot(theory, scores, "o", ms=3, color=ACCENT, mew=0, alpha=0.8)
    _label(ax, "standard normal quantile", "normal score of the data")
    if isinstance(values, xr.DataArray):
        ax.set_title(_name(values), fontsize=TITLE, color=INK, loc="left")
    ax.legend(frameon=False, fontsize=TICK, loc="upper left", labelcolor=INK)
    return figure


def _new_figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "xcopula.plot needs matplotlib, which is not installed. "
            "Install it with `pip install xcopula[plot]`."
        ) from error
    return Figure(figsize=(width, height), layout="compressed")


def _panel(ax: Axes | None) -> tuple[Figure, Axes]:
    """Return the figure and the only axes to draw a diagnostic on."""
    if ax is None:
        ax = _new_figure(4.6, 3.6).add_subplot()
    _tidy(ax)
    ax.spines[["top", "right"]].set_visible(False)
    return cast("Figure", ax.figure), ax


def _panels(ax: Sequence[Axes] | None, grid: xr.DataArray) -> tuple[Figure, Sequence[Axes]]:
    """Return the figure and the two axes of a map, of the shape of the grid if they are new."""
    if ax is None:
        width = 4.6
        height = np.clip((width - 1.3) * _extent_ratio(grid) + 0.8, 2.2, 8.0)
        figure = _new_figure(2 * width, float(height))
        ax = list(figure.subplots(1, 2, sharex=True, sharey=True))
    elif len(ax) != 2:
        raise ValueError(
            f"A prediction map needs two axes, found {len(ax)}. Pass `ax=(left, right)`."
        )
    for each in ax:
        _tidy(each)
    return cast("Figure", ax[0].figure), ax


def _tidy(ax: Axes) -> None:
    ax.tick_params(labelsize=TICK, colors=INK, length=3, width=0.6)
    for spine in ax.spines.values():
        spine.set(linewidth=0.6, color=FAINT)


def _label(ax: Axes, x: str, y: str) -> None:
    ax.set_xlabel(x, fontsize=LABEL, color=INK)
    ax.set_ylabel(y, fontsize=LABEL, color=INK)


def _draw_map(
    ax: Axes,
    cells: xr.DataArray,
    limits: Limits,
    cmap: str,
    label: str,
) -> QuadMesh:
    """Draw one panel: coloured cells, axes in their units, a colour bar."""
    y, x = (cells[dim] for dim in cells.dims)
    low, high, extend = limits
    mesh = ax.pcolormesh(x.values, y.values, cells.values, shading="nearest", rasterized=True)
    mesh.set(cmap=cmap, clim=(low, high))
    ax.set_aspect(_aspect(y))
    ax.use_sticky_edges = False
    ax.margins(0.03)
    _label(ax, _axis_label(x), _axis_label(y))
    ax.label_outer()
    bar = ax.figure.colorbar(mesh, ax=ax, extend=extend, shrink=0.8, aspect=30, pad=0.02)
    bar.set_label(label, fontsize=LABEL, color=INK)
    bar.ax.tick_params(labelsize=TICK, colors=INK, length=3, width=0.6)
    bar.outline.set_visible(False)
    return mesh


def _find_variable(prediction: xr.Dataset, variable: str | None) -> xr.DataArray:
    names = [str(name) for name, array in prediction.items() if "quantile" in array.dims]
    if variable is None and len(names) != 1:
        raise ValueError(f"Which variable to draw? Pass `variable=`, one of {names}.")
    if variable is not None and variable not in names:
        raise ValueError(f"No variable {variable!r} with a dim 'quantile'. Choose from {names}.")
    return prediction[names[0] if variable is None else variable]


def _find_horizontal(array: xr.DataArray) -> tuple[str, str]:
    """Return the names of the vertical and the horizontal axis of the map."""
    dims = [str(dim) for dim in array.dims if dim != "quantile"]
    if len(dims) != 2:
        raise ValueError(
            f"A map needs dims quantile and two more, found {list(array.dims)}. Select the others "
            "first, e.g. `prediction.isel(time=0)`."
        )
    first = array[dims[0]].attrs if dims[0] in array.coords else {}
    is_x = first.get("axis") == "X" or first.get("standard_name") == "longitude"
    return (dims[1], dims[0]) if is_x else (dims[0], dims[1])


def _median_and_band(array: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray, float]:
    """Return the median, the width of the widest band, and the probability it holds."""
    levels = array["quantile"].values
    middle = int(np.argmin(np.abs(levels - 0.5)))
    low, high = int(np.argmin(levels)), int(np.argmax(levels))
    if abs(levels[middle] - 0.5) > 1e-9 or not levels[low] < 0.5 < levels[high]:
        raise ValueError(
            f"A map needs the quantile 0.5 and one on each side of it, found {levels.tolist()}. "
            "Predict e.g. `quantiles=(0.05, 0.5, 0.95)`."
        )
    band = array.isel(quantile=high, drop=True) - array.isel(quantile=low, drop=True)
    return array.isel(quantile=middle, drop=True), band, float(levels[high] - levels[low])


def _find_dots(sites: xr.Dataset | None, name: str, x: str, y: str) -> list[FloatArray]:
    """Return the coordinates and the values of the sites where the variable is known."""
    if sites is None:
        return [np.empty(0)] * 3
    missing = [each for each in (name, x, y) if each not in sites.variables]
    if missing:
        raise ValueError(f"The sites lack {missing}; found {sorted(map(str, sites.variables))}.")
    arrays = xr.broadcast(*(sites[each].reset_coords(drop=True) for each in (x, y, name)))
    columns = [np.asarray(array.values, np.float64).ravel() for array in arrays]
    known = np.isfinite(columns[2])
    return [column[known] for column in columns]


def _colour_limits(cells: FloatArray, dots: FloatArray) -> Limits:
    """Return limits of a colour scale, and on which sides values lie beyond them.

    Extremes are left out, more of the dots (which are noisier) than of the cells: they would
    flatten the colours of the rest.
    """
    cells, dots = cells[np.isfinite(cells)], dots[np.isfinite(dots)]
    if not cells.size:
        raise ValueError("Nothing to draw: every cell is NaN or masked.")
    low, high = np.quantile(cells, [0.005, 0.995]).tolist()
    if dots.size:
        low = min(low, float(np.quantile(dots, 0.02)))
        high = max(high, float(np.quantile(dots, 0.95)))
    if not high > low:
        return low - 0.5, low + 0.5, "neither"
    values = np.concatenate([cells, dots])
    below, above = bool(values.min() < low), bool(values.max() > high)
    if below and above:
        return low, high, "both"
    return low, high, "min" if below else "max" if above else "neither"


def _finite(values: ArrayLike | xr.DataArray, what: str) -> FloatArray:
    array = np.asarray(values, np.float64).ravel()
    array = array[np.isfinite(array)]
    if array.size == 0:
        raise ValueError(f"Nothing to draw: no finite {what}.")
    return array


def _aspect(y: xr.DataArray) -> float:
    """Return the stretch that makes distances equal on both axes, also in degrees."""
    if str(y.attrs.get("units", "")).startswith("degree"):
        return float(1 / np.cos(np.deg2rad(y.mean())))
    return 1.0


def _extent_ratio(grid: xr.DataArray) -> float:
    y, x = (grid[dim] for dim in grid.dims)
    spans = [float(np.ptp(axis.values)) or 1.0 for axis in (y, x)]
    return _aspect(y) * spans[0] / spans[1]


def _name(array: xr.DataArray) -> str:
    text = str(array.attrs.get("long_name", array.name or ""))
    return text[:1].upper() + text[1:]


def _axis_label(axis: xr.DataArray) -> str:
    units = _units(axis)
    name = str(axis.attrs.get("long_name", axis.name))
    return f"{name}, {units}" if units else name


def _units(array: xr.DataArray) -> str:
    """Return the units for the eye: ``mg kg-1`` as mg kg with a raised -1, degrees as a circle."""
    units = str(array.attrs.get("units", ""))
    if units.startswith("degree"):
        return "°"
    return "" if units == "1" else re.sub(r"(?<=[A-Za-z])(-?\d+)\b", r"$^{\1}$", units)
