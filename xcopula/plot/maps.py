"""Maps of a prediction: its median beside the width of its band, and single fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import xarray as xr

from xcopula.plot.coast import check_coast
from xcopula.plot.fields import (
    Dots,
    Limits,
    colour_limits,
    draw_band,
    draw_curve,
    draw_dots,
    draw_field,
    find_dots,
)
from xcopula.plot.panels import (
    VALUE,
    WIDTH,
    add_bar,
    entitle,
    lay_out,
    name_of,
    new_figure,
    panel,
    shown_units,
    tidy,
    with_units,
)
from xcopula.plot.places import Place, find_place, slice_of, squeezed
from xcopula.warn import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["field_maps", "prediction_map"]

_WIDTH = 4.6  # of a panel with its colour bar, in inches
_WIDE = 0.35  # height over width of a map that takes all of it


def prediction_map(
    prediction: xr.Dataset,
    variable: str | None = None,
    *,
    sites: xr.Dataset | None = None,
    mask: xr.DataArray | None = None,
    coastlines: bool | None = None,
    ax: Sequence[Axes] | Axes | None = None,
) -> Figure:
    """Map the median of a prediction and the width of its central band, side by side.

    A prediction at points is drawn as dots, one along a line as a line with its band.

    Parameters
    ----------
    prediction : Dataset
        Predicted quantiles: a variable with the dim ``quantile`` and two horizontal dims, or one
        dim of points or of a line. The quantiles must include 0.5 and at least one on each side
        of it. The date and the height of a slice are part of the title.
    variable : str, optional
        The variable to draw; may be left out if the prediction has only one.
    sites : Dataset, optional
        Observations of the variable, drawn as dots in the colours of the median. Its horizontal
        coordinates must have the same names as those of the grid. On the map of one date (or one
        height) only the observations of that date are drawn.
    mask : DataArray of bool, optional
        True on the cells to show.
    coastlines : bool, optional
        Whether to draw coastlines on longitude and latitude, with cartopy. None draws them if
        cartopy is installed and has them on disk; True may download them.
    ax : sequence of two Axes, or Axes, optional
        Where to draw, one Axes for a line; a new figure otherwise.

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
    check_coast(coastlines)
    _check_mask(mask, array)
    array = squeezed(array, ignore=("quantile",))
    if mask is not None:
        mask = mask.squeeze([dim for dim in mask.dims if dim not in array.dims], drop=True)
    place = find_place(array, ignore=("quantile",))
    array = array.transpose("quantile", *place.dims).compute()
    median, band, level = _median_and_band(array)
    if mask is not None:
        median, band, array = median.where(mask), band.where(mask), array.where(mask)
    dots = find_dots(sites, str(array.name), array, place)
    units = array.attrs.get("units", "")
    name = name_of(array)
    if place.kind == "line":
        figure, one = panel(cast("Axes | None", ax))
        levels = array["quantile"].values.tolist()
        draw_band(one, place, levels, array.values, shown_units(units) or name, dots)
        entitle(one, _dated(name, array))
        return figure
    shades = (
        _Shade(median, colour_limits(median.values, dots.values), VALUE, shown_units(units)),
        _Shade(band, colour_limits(band.values, np.empty(0)), WIDTH, with_units("width", units)),
    )
    figure, axes = _two_panels(ax, place)
    for each, shade in zip(axes, shades, strict=True):
        artist = draw_field(each, place, shade.values, shade.limits, shade.cmap, coastlines)
        each.label_outer()
        if shade.values is median and dots.values.size:
            draw_dots(each, dots, shade.limits, artist)
        add_bar(artist, [each], shade.limits.extend, shade.label or name)
    entitle(axes[0], _dated(f"{name}: median", array))
    entitle(axes[1], f"Width of the {100 * level:.3g} % band")
    return figure


class _Shade(NamedTuple):
    """What one panel of a map shows, and in which colours."""

    values: xr.DataArray
    limits: Limits
    cmap: str
    label: str


def field_maps(
    fields: Sequence[xr.DataArray],
    titles: Sequence[str],
    *,
    label: str,
    cmap: str,
    limits: Limits | None = None,
    dots: Sequence[Dots] = (),
    coastlines: bool | None = None,
    axes: Any = None,
) -> Figure:
    """Map fields that share one colour scale: a panel for each, one colour bar.

    Parameters
    ----------
    fields : sequence of DataArray
        On two horizontal dims, on points, or along a line; all on the same cells.
    titles : sequence of str
        Of the panels; the date of a slice is added.
    label : str
        What the colours are, with units.
    cmap : str
    limits : Limits, optional
        Of the colours; those of the values by default.
    dots : sequence of Dots, optional
        Observations to draw on each panel, in the same colours.
    coastlines : bool, optional
        As in :func:`prediction_map`.
    axes : Axes or sequence of Axes, optional
        Where to draw, one for each field; a new figure otherwise.
    """
    check_coast(coastlines)
    fields = [squeezed(field) for field in fields]
    place = find_place(fields[0])
    arrays = [f.transpose(*place.dims).compute() for f in fields]
    if limits is None:
        values = np.concatenate([a.values.ravel() for a in arrays])
        limits = colour_limits(values, np.empty(0))
    columns, width, height = _panel_size(place)
    if columns > 1:  # they share a colour bar
        columns, width = 3, width - 0.5 * (len(arrays) > 1)
    cells = [divmod(k, columns) for k in range(len(arrays))]
    figure, panels = lay_out(axes, cells, width, height)
    artist = None
    for k, (ax, array, title) in enumerate(zip(panels, arrays, titles, strict=True)):
        if place.kind == "line":
            draw_curve(panel(ax)[1], place, array.values, limits, label)
        else:
            artist = draw_field(ax, place, array, limits, cmap, coastlines)
            ax.label_outer()
            if dots:
                draw_dots(ax, dots[k], limits, artist)
        entitle(ax, _dated(title, array))
    if artist is not None:
        add_bar(artist, panels, limits.extend, label)
    return figure


def _dated(title: str, array: xr.DataArray) -> str:
    when = slice_of(array)
    return f"{title}, {when}" if when else title


def _panel_size(place: Place) -> tuple[int, float, float]:
    """Return how many panels stand side by side, and the width and height of one in inches.

    Wide maps stand one below the other.
    """
    if place.kind == "line":
        return 2, _WIDTH, 3.2
    columns, width = (1, 2 * _WIDTH) if place.ratio < _WIDE else (2, _WIDTH)
    return columns, width, float(np.clip((width - 1.3) * place.ratio + 0.8, 1.7, 8.0))


def _two_panels(ax: Any, place: Place) -> tuple[Figure, Sequence[Axes]]:
    """Return the figure and the two axes of a map, of the shape of the grid if they are new."""
    if ax is None:
        columns, width, height = _panel_size(place)
        rows = 2 // columns
        figure = new_figure(columns * width, rows * height)
        ax = list(np.ravel(figure.subplots(rows, columns, sharex=True, sharey=True)))
    elif not hasattr(ax, "__len__") or len(ax) != 2:
        found = len(ax) if hasattr(ax, "__len__") else shown(ax)
        raise ValueError(
            f"A prediction map needs two axes, found {found}. Pass `ax=(left, right)`."
        )
    for each in ax:
        tidy(each)
    return cast("Figure", ax[0].figure), ax


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
