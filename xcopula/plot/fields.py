"""Draw numbers where they stand: cells and points in colours, lines with a band, sites as dots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from xcopula.arrays import FloatArray
from xcopula.plot.coast import draw_coast
from xcopula.plot.panels import ACCENT, INK, LIGHT, WARM, add_legend, label_axes, with_units
from xcopula.plot.places import Place, check_numbers
from xcopula.warn import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "NO_DOTS",
    "Dots",
    "Limits",
    "colour_limits",
    "draw_band",
    "draw_curve",
    "draw_dots",
    "draw_field",
    "find_dots",
]

_DOT = 15.0  # area of a dot in square points
_SHARE = 0.1  # of the panel that dots may cover
_LARGEST_RATIO = 100.0  # of the limits of a linear scale of colours
_STRIP = 0.1  # one side over the other, where distances are no longer equal on both axes
_PANEL = 55e3  # area of a panel in square points, more or less


class Limits(NamedTuple):
    """Limits of a colour scale, and on which sides values lie beyond them."""

    low: float
    high: float
    extend: Literal["both", "min", "max", "neither"]

    @property
    def logarithmic(self) -> bool:
        """Whether colours are spread evenly over ratios: most would be the same otherwise."""
        return self.low > 0.0 and self.high > _LARGEST_RATIO * self.low

    def norm(self) -> Any:
        """Return the scale of matplotlib; what lies below it has the colour of its lower end."""
        from matplotlib.colors import LogNorm, Normalize

        return (LogNorm if self.logarithmic else Normalize)(self.low, self.high)

    def shown(self, values: FloatArray) -> FloatArray:
        """Return values without those that have no logarithm, where it is needed."""
        return np.maximum(values, self.low) if self.logarithmic else values


class Dots(NamedTuple):
    """Observations on a picture, each (n,); ``y`` is empty beside a line."""

    x: NDArray[Any]
    y: NDArray[Any]
    values: FloatArray


NO_DOTS = Dots(np.empty(0), np.empty(0), np.empty(0))


def find_dots(sites: xr.Dataset | None, name: str, array: xr.DataArray, place: Place) -> Dots:
    """Return where a variable was observed, on the slice that an array is of.

    Observations follow the scalar coordinates of the array: a map of one date shows the sites of
    that date.

    Raises
    ------
    TypeError, ValueError
        If the sites are no Dataset, or lack the variable or a coordinate.
    """
    if sites is None:
        return NO_DOTS
    if not isinstance(sites, xr.Dataset):
        raise TypeError(f"`sites` must be a Dataset with {name!r}, found {shown(sites)}.")
    axes = [str(axis.name) for axis in (place.x, place.y) if axis is not None]
    missing = [each for each in (name, *axes) if each not in sites.variables]
    if missing:
        raise ValueError(f"`sites` lacks {missing}; found {sorted(map(str, sites.variables))}.")
    check_numbers(*(sites[each] for each in (name, *(axes if place.y is not None else []))))
    slices = [
        n
        for n, c in array.coords.items()
        if c.ndim == 0 and n in sites.coords and sites[n].ndim and n not in axes
    ]
    wanted = [*axes, name, *slices]
    arrays = xr.broadcast(*(sites[each].reset_coords(drop=True) for each in wanted))
    columns = [np.ravel(each.values) for each in arrays]
    values = np.asarray(columns[len(axes)], np.float64)
    kept = np.isfinite(values)
    for column, coordinate in zip(columns[len(axes) + 1 :], slices, strict=True):
        kept &= _same(column, array[coordinate].values)
    x, *rest = (column[kept] for column in columns[: len(axes)])
    return Dots(x, rest[0] if rest else np.empty(0), values[kept])


def _same(column: NDArray[Any], value: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which entries are those of a slice: numbers up to single precision."""
    if column.dtype.kind in "iuf" and value.dtype.kind in "iuf":
        return np.asarray(np.isclose(column, float(value), rtol=2.0**-22, atol=0.0))
    return np.asarray(column == value[()], bool)


def colour_limits(cells: FloatArray, dots: FloatArray) -> Limits:
    """Return limits of a colour scale.

    Extremes are left out, more of the dots (which are noisier) than of the cells: they would
    flatten the colours of the rest.

    Raises
    ------
    ValueError
        If no cell has a value.
    """
    cells, dots = cells[np.isfinite(cells)], dots[np.isfinite(dots)]
    if not cells.size:
        raise ValueError("Nothing to draw: every cell is NaN or masked.")
    low, high = np.quantile(cells, [0.005, 0.995]).tolist()
    if dots.size:
        low = min(low, float(np.quantile(dots, 0.02)))
        high = max(high, float(np.quantile(dots, 0.95)))
    if not high > low:
        return Limits(low - 0.5, low + 0.5, "neither")
    values = np.concatenate([cells, dots])
    below, above = bool(values.min() < low), bool(values.max() > high)
    if below and above:
        return Limits(low, high, "both")
    return Limits(low, high, "min" if below else "max" if above else "neither")


def draw_field(
    ax: Axes,
    place: Place,
    values: xr.DataArray,
    limits: Limits,
    cmap: str,
    coastlines: bool | None = None,
) -> Any:
    """Draw one panel, cells or points in colours and axes in their units; return the artist."""
    assert place.y is not None
    x, y = place.x.values, place.y.values
    artist: Any
    if place.kind == "map":
        shown_cells = limits.shown(values.transpose(*place.dims).values)
        artist = ax.pcolormesh(x, y, shown_cells, shading="nearest", rasterized=True)
    else:
        known = np.isfinite(values.values)
        size = 2.0 * _dot_size(int(known.sum()))
        artist = ax.scatter(x[known], y[known], s=size, lw=_ring(size), ec=INK)
        artist.set_array(limits.shown(values.values[known]))
    artist.set(cmap=cmap, norm=limits.norm())
    # Of a strip nothing could be seen across.
    ax.set_aspect(place.aspect if _STRIP < place.ratio < 1.0 / _STRIP else "auto")
    ax.use_sticky_edges = False
    ax.margins(0.03 if place.kind == "map" else 0.06)
    assumed = "degrees" if place.geographic else ""
    label_axes(ax, _axis_label(place.x, assumed), _axis_label(place.y, assumed))
    if place.geographic:
        draw_coast(ax, coastlines)
    return artist


def draw_dots(ax: Axes, dots: Dots, limits: Limits, artist: Any) -> None:
    """Draw observations in the colours of an artist; many of them are small, and have no ring."""
    size = _dot_size(dots.values.size)
    points = ax.scatter(dots.x, dots.y, s=size, ec="white", lw=_ring(size))
    points.set(array=limits.shown(dots.values), cmap=artist.get_cmap(), norm=artist.norm)


def _dot_size(count: int) -> float:
    """Return the area of a dot, so that many together leave most of a panel free."""
    return float(np.clip(_SHARE * _PANEL / max(count, 1), 1.0, _DOT))


def _ring(size: float) -> float:
    """Return the width of the ring around a dot; it would hide a small one."""
    return 0.45 * min(size / _DOT, 1.0) if size > 4.0 else 0.0


def draw_band(
    ax: Axes, place: Place, levels: Sequence[float], quantiles: FloatArray, label: str, dots: Dots
) -> None:
    """Draw quantiles (levels, n) along a line: the outermost as a band, the median as a line."""
    order = np.argsort(place.x.values, kind="stable")
    x, ordered = place.x.values[order], quantiles[:, order]
    low, high = int(np.argmin(levels)), int(np.argmax(levels))
    middle = int(np.argmin(np.abs(np.subtract(levels, 0.5))))
    inside = f"{100 * (levels[high] - levels[low]):.3g} % band"
    ax.fill_between(x, ordered[low], ordered[high], color=LIGHT, alpha=0.5, lw=0, label=inside)
    ax.plot(x, ordered[middle], color=ACCENT, lw=1.2, label="median")
    if dots.values.size:
        ax.plot(dots.x, dots.values, "o", ms=3, mew=0, color=WARM, label="observed")
    _finish_line(ax, place, label)
    add_legend(ax, "best")


def draw_curve(ax: Axes, place: Place, values: FloatArray, limits: Limits, label: str) -> None:
    """Draw a field along a line as one curve, between the limits of all."""
    order = np.argsort(place.x.values, kind="stable")
    ax.plot(place.x.values[order], values[order], color=ACCENT, lw=1.2)
    room = 0.03 * (limits.high - limits.low)
    ax.set_ylim(limits.low - room, limits.high + room)
    _finish_line(ax, place, label)


def _finish_line(ax: Axes, place: Place, label: str) -> None:
    """Name the axes of a line; dates are written short."""
    ax.margins(x=0.02)
    if place.x.dtype.kind == "M":
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(maxticks=7)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    label_axes(ax, _axis_label(place.x), label)


def _axis_label(axis: xr.DataArray, assumed: str = "") -> str:
    """Return the name and the units of a coordinate, or units that it must have."""
    name = str(axis.attrs.get("long_name", axis.name))
    return with_units(name, axis.attrs.get("units", assumed))
