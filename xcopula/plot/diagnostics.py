"""Diagnostics: whether predictions are calibrated, and whether a law fits its data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from xcopula.arrays import FloatArray
from xcopula.marginals import Marginal
from xcopula.model import CopulaModel
from xcopula.plot.panels import (
    ACCENT,
    FAINT,
    INK,
    LIGHT,
    add_legend,
    add_note,
    entitle,
    label_axes,
    name_of,
    panel,
)
from xcopula.process import drawn_scores
from xcopula.warn import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["marginal_qq", "pit_histogram"]

# Why a good law may lie off the band for independent values.
_JOINT = (
    "fitted with the correlations,\nnot to these values alone: it may\n"
    "leave the band for good reason"
)
_CORRELATED = "the values are correlated:\nthey may leave the band"


def pit_histogram(
    pit: ArrayLike | xr.DataArray, ax: Axes | None = None, *, bins: int = 10
) -> Figure:
    """Draw the histogram of probability integral transforms, flat for a calibrated prediction.

    Parameters
    ----------
    pit : array_like or DataArray
        The predictive distribution function at each observed value, between 0 and 1; NaN is left
        out.
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
        If no value is left, one is not between 0 and 1, or ``bins`` is not positive.
    """
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1:
        raise ValueError(f"`bins` must be a number of bars, at least 1, found {shown(bins)}.")
    values = _finite(pit, "probability integral transforms")
    if values.min() < 0 or values.max() > 1:
        found = f"{values.min():.4g} to {values.max():.4g}"
        raise ValueError(
            f"Probability integral transforms must lie between 0 and 1, found {found}."
        )
    figure, ax = panel(ax)
    from scipy.special import bdtrik

    counts, edges = np.histogram(values, bins=bins, range=(0.0, 1.0))
    expected = values.size / bins
    low, high = (np.ceil(bdtrik(p, values.size, 1 / bins)) / expected for p in (0.025, 0.975))
    ax.bar(edges[:-1], counts / expected, 1 / bins, align="edge", color=LIGHT, ec="white", lw=0.8)
    ax.axhline(1.0, color=INK, lw=0.8)
    for edge, label in ((low, None), (high, "95 % of the bars, if calibrated")):
        ax.axhline(edge, color=INK, lw=0.8, ls=(0, (4, 3)), label=label)
    ax.set(xlim=(0, 1), ylim=(0, max(1.25 * counts.max() / expected, 1.35 * high)))
    label_axes(ax, "probability integral transform", "relative frequency")
    add_legend(ax, "upper right")
    return figure


def marginal_qq(
    marginal: Marginal | CopulaModel,
    values: ArrayLike | xr.DataArray | str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the normal scores of data under a marginal law against standard normal quantiles.

    Parameters
    ----------
    marginal : Marginal or CopulaModel
        The fitted law, or the model of a variable. A law that varies needs the model, which
        knows what it varies with.
    values : array_like, DataArray or str, optional
        The data; NaN is left out. With a model, the name of a variable; the primary by default.
    ax : Axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    Figure
        Points on the diagonal if the law fits, with its pointwise 95 % band for independent data.
        Of a model's values that are known as intervals, and of zeros that have a probability of
        their own, the score is drawn evenly between the probabilities of both ends.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    KeyError
        If the model has no such variable.
    TypeError
        If it is not a fitted law, but its name or class, for example.
    ValueError
        If no value is left, or none has a finite score.
    """
    if isinstance(marginal, CopulaModel):
        return _qq_of_model(marginal, values, ax)
    if isinstance(marginal, type) or not callable(getattr(marginal, "to_normal", None)):
        raise TypeError(
            f"`marginal` must be a fitted law, found {shown(marginal)}. Fit one, as in "
            "`xcopula.marginals.Normal.fit(values)`, or take one of `model.marginals`."
        )
    data = _finite(values, "values")
    title = name_of(values) if isinstance(values, xr.DataArray) else ""
    return _draw_qq(marginal.to_normal(data), title, ax)


def _qq_of_model(model: CopulaModel, variable: Any, ax: Axes | None) -> Figure:
    if variable is not None and not isinstance(variable, str):
        raise TypeError(
            f"With a model, `values` must be the name of a variable, found {shown(variable)}. "
            f"Choose one of {list(model.tasks)}, or take one of `model.marginals` for other data."
        )
    task = model.task(variable)
    sample = model.observations.sample
    law = model.marginals[task].at(sample.covariates_of(task))
    name = name_of(xr.DataArray(name=model.tasks[task], attrs=model.variables[task].attrs))
    # what is known of intervals and zeros is where they lie, not at which end
    scores = drawn_scores(law, sample.values[sample.task(task)], sample.limits_of(task))
    figure = _draw_qq(scores, name, ax, law.name)
    axes = figure.axes[-1] if ax is None else ax
    add_note(axes, _JOINT if law.theta.size else _CORRELATED)
    return figure


def _draw_qq(found: FloatArray, title: str, ax: Axes | None, law: str = "") -> Figure:
    """Draw normal scores against standard normal quantiles."""
    scores = np.sort(found)
    if not np.isfinite(scores).any():
        raise ValueError("Nothing to draw: no value lies within the support of the law.")
    figure, ax = panel(ax)
    from scipy.special import betaincinv, ndtri

    rank = np.arange(1, scores.size + 1)
    theory = ndtri((rank - 0.5) / scores.size)
    low, high = (ndtri(betaincinv(rank, scores.size + 1 - rank, p)) for p in (0.025, 0.975))
    ax.fill_between(theory, low, high, color=FAINT, alpha=0.2, lw=0, label="95 % band")
    ax.axline((0, 0), slope=1, color=INK, lw=0.8)
    ax.plot(theory, scores, "o", ms=3, color=ACCENT, mew=0, alpha=0.8, label=law or None)
    label_axes(ax, "standard normal quantile", "normal score of the data")
    if title:
        entitle(ax, title)
    add_legend(ax, "upper left")
    return figure


def _finite(values: ArrayLike | xr.DataArray | None, what: str) -> FloatArray:
    found: NDArray[Any] = np.asarray("" if isinstance(values, xr.Dataset) else values)
    if found.dtype.kind not in "iuf" and found.size:
        raise TypeError(f"The {what} to draw must be numbers, found {shown(values)}.")
    array = found.astype(np.float64).ravel()
    array = array[np.isfinite(array)]
    if array.size == 0:
        raise ValueError(f"Nothing to draw: no finite {what}.")
    return array
