"""Maps of a prediction: its median beside the width of its band."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from xcopula.plot.panels import (
    INK,
    LABEL,
    TICK,
    TITLE,
    label_axes,
    name_of,
    new_figure,
    shown_units,
    tidy,
)
from xcopula.warn import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

__all__ = ["prediction_map"]

FloatArray: TypeAlias = NDArray[np.float64]
Limits: TypeAlias = tuple[float, float, Literal["both", "min", "max", "neither"]]


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
        Predicted quantiles: a variable with the dim ``quantile`` and two horizontal dims. The
        quantiles must include 0.5 and at least one on each side of it.
    variable : str, optional
        The variable to draw; may be left out if the prediction has only one.
    sites : Dataset, optional
        Observations of the variable, drawn as dots in the colours of the median. Its horizontal
        coordinates must have the same names as those of the grid.
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
    TypeError, ValueError
        If the variable, its dims or its quantiles, the mask or the sites are not as described
        above.
    """
    array = _find_variable(prediction, variable)
    y_name, x_name = _find_horizontal(array)
    _check_mask(mask, array)
    array = array.transpose("quantile", y_name, x_name).compute()
    median, band, level = _median_and_band(array)
    if mask is not None:
        median, band = median.where(mask), band.where(mask)
    dots = _find_dots(sites, str(array.name), x_name, y_name)
    figure, axes = _panels(ax, median)
    name, units = name_of(array), shown_units(array)
    limits = _colour_limits(median.values, dots[2])
    mesh = _draw_map(axes[0], median, limits, "viridis", units or name)
    points = axes[0].scatter(dots[0], dots[1], s=15, ec="white", lw=0.45)
    points.set(array=dots[2], cmap=mesh.get_cmap(), clim=mesh.get_clim())
    limits = _colour_limits(band.values, np.empty(0))
    _draw_map(axes[1], band, limits, "magma", f"width, {units}" if units else "width")
    axes[0].set_title(f"{name}: median", fontsize=TITLE, color=INK, loc="left")
    axes[1].set_title(f"{100 * level:.3g} % band", fontsize=TITLE, color=INK, loc="left")
    return figure


def _panels(ax: Sequence[Axes] | None, grid: xr.DataArray) -> tuple[Figure, Sequence[Axes]]:
    """Return the figure and the two axes of a map, of the shape of the grid if they are new."""
    if ax is None:
        width = 4.6
        height = np.clip((width - 1.3) * _extent_ratio(grid) + 0.8, 2.2, 8.0)
        figure = new_figure(2 * width, float(height))
        ax = list(figure.subplots(1, 2, sharex=True, sharey=True))
    elif not hasattr(ax, "__len__") or len(ax) != 2:
        found = len(ax) if hasattr(ax, "__len__") else shown(ax)
        raise ValueError(
            f"A prediction map needs two axes, found {found}. Pass `ax=(left, right)`."
        )
    for each in ax:
        tidy(each)
    return cast("Figure", ax[0].figure), ax


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
    label_axes(ax, _axis_label(x), _axis_label(y))
    ax.label_outer()
    bar = ax.figure.colorbar(mesh, ax=ax, extend=extend, shrink=0.8, aspect=30, pad=0.02)
    bar.set_label(label, fontsize=LABEL, color=INK)
    bar.ax.tick_params(labelsize=TICK, colors=INK, length=3, width=0.6)
    bar.outline.set_visible(False)
    return mesh


def _find_variable(prediction: xr.Dataset, variable: str | None) -> xr.DataArray:
    if not isinstance(prediction, xr.Dataset):
        raise TypeError(f"Pass the Dataset that `predict` returned, found {shown(prediction)}.")
    names = [str(name) for name, array in prediction.items() if "quantile" in array.dims]
    if not names:
        raise ValueError("No variable has a dim 'quantile'. Predict several quantiles.")
    if variable is None and len(names) != 1:
        raise ValueError(f"There are several variables to draw. Pass `variable=`, one of {names}.")
    if variable is not None and variable not in names:
        raise ValueError(f"No variable {variable!r} with a dim 'quantile'. Choose from {names}.")
    return prediction[names[0] if variable is None else variable]


def _find_horizontal(array: xr.DataArray) -> tuple[str, str]:
    """Return the names of the vertical and the horizontal axis of the map."""
    dims = [str(dim) for dim in array.dims if dim != "quantile"]
    if len(dims) != 2:
        raise ValueError(
            f"A map needs the dim 'quantile' and two others, found {list(array.dims)}. Select one "
            "entry along the rest, e.g. `prediction.isel(time=0)`."
        )
    _check_numbers(array, *(array[name] for name in ("quantile", *dims)))
    first = array[dims[0]].attrs if dims[0] in array.coords else {}
    is_x = first.get("axis") == "X" or first.get("standard_name") == "longitude"
    return (dims[1], dims[0]) if is_x else (dims[0], dims[1])


def _check_numbers(*arrays: xr.DataArray) -> None:
    for array in arrays:
        if array.dtype.kind not in "iuf" or not array.size:
            raise ValueError(
                f"{array.name!r} has {array.size} entries of dtype {array.dtype}; a "
                "map needs numbers."
            )


def _check_mask(mask: xr.DataArray | None, array: xr.DataArray) -> None:
    """Refuse a mask that is not boolean or lies on other cells: it would be aligned in silence."""
    if mask is None:
        return
    if not isinstance(mask, xr.DataArray) or mask.dtype != bool:
        found = f"dtype {mask.dtype}" if isinstance(mask, xr.DataArray) else shown(mask)
        raise TypeError(f"A mask must be a boolean DataArray, found {found}. Use a comparison.")
    for dim in mask.dims:
        same = dim in array.dims and mask.sizes[dim] == array.sizes[dim]
        if not same or not mask[dim].equals(array[dim] if dim in mask.coords else mask[dim]):
            raise ValueError(
                f"The mask is not on the cells of the prediction: its {dim!r} differs. "
                "Select the same cells, or use `reindex_like`."
            )


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
    if not isinstance(sites, xr.Dataset):
        raise TypeError(f"`sites` must be a Dataset with {name!r}, found {shown(sites)}.")
    missing = [each for each in (name, x, y) if each not in sites.variables]
    if missing:
        raise ValueError(f"`sites` lacks {missing}; found {sorted(map(str, sites.variables))}.")
    _check_numbers(*(sites[each] for each in (name, x, y)))
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


def _aspect(y: xr.DataArray) -> float:
    """Return the stretch that makes distances equal on both axes, also in degrees."""
    if str(y.attrs.get("units", "")).startswith("degree"):
        return float(1 / np.cos(np.deg2rad(y.mean())))
    return 1.0


def _extent_ratio(grid: xr.DataArray) -> float:
    y, x = (grid[dim] for dim in grid.dims)
    spans = [float(np.ptp(axis.values)) or 1.0 for axis in (y, x)]
    return _aspect(y) * spans[0] / spans[1]


def _axis_label(axis: xr.DataArray) -> str:
    units = shown_units(axis)
    name = str(axis.attrs.get("long_name", axis.name))
    return f"{name}, {units}" if units else name
