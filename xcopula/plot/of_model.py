"""The pictures of a fitted model: ``model.plot``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from xcopula.arguments import check_integer, check_methods
from xcopula.labels.buffer import Buffer
from xcopula.model import CopulaModel
from xcopula.model.leave_one_out import predict_left_out
from xcopula.plot.checks import loo_scatter, reliability_diagram
from xcopula.plot.correlations import correlation_panels
from xcopula.plot.diagnostics import pit_histogram
from xcopula.plot.laws import law_panels
from xcopula.plot.panels import amount, entitle, name_of, shown_units
from xcopula.warn import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ModelPlots"]


@check_methods
@dataclass(frozen=True)
class ModelPlots:
    """Pictures that show whether a model describes its data.

    Each method draws on the axes that it is given, or on a new figure, and returns the Figure.

    Attributes
    ----------
    model : CopulaModel
    """

    model: CopulaModel

    def __repr__(self) -> str:
        names = [f".{n}()" for n in sorted(vars(type(self))) if n[0] != "_"]
        return "model.plot: " + ", ".join(names)

    def correlations(
        self,
        variables: str | Sequence[str] | None = None,
        *,
        bins: int = 15,
        most: int = 1500,
        seed: int = 0,
        axes: Sequence[Axes] | Axes | None = None,
    ) -> Figure:
        """Draw empirical against fitted correlations of the normal scores, by distance.

        There is a row of panels for each group of coordinates: by distance in space among
        observations of the same time, by lag in time at the same site, and so on. Below the
        autocorrelation of a secondary stands its cross-correlation with the primary; there, the
        marks at distance zero are the correlation at the same site, nugget included.

        Parameters
        ----------
        variables : str or sequence of str, optional
            The variables to draw; all by default.
        bins : int
            Classes of distance, up to half the largest.
        most : int
            Of larger data, about so many observations are taken for each group of coordinates, at
            random by ``seed``.
        seed : int
            Of these, and of the draws from the model.
        axes : sequence of Axes, optional
            One for each panel: for each group, the variables in the order of the model, then the
            pairs with the primary.

        Returns
        -------
        Figure
            Dots in the band are what the model expects. The band is made of data drawn from the
            model at the same sites: it shows how uncertain correlations at a distance are.
        """
        return correlation_panels(self.model, variables, axes, bins=bins, most=most, seed=seed)

    def laws(
        self,
        variables: str | Sequence[str] | None = None,
        *,
        axes: Sequence[Axes] | Axes | None = None,
    ) -> Figure:
        """Draw the histogram and the fitted density of each variable, and its QQ plot.

        Where a law varies, the histogram is that of the normal scores.

        Parameters
        ----------
        variables : str or sequence of str, optional
            The variables to draw; all by default.
        axes : sequence of Axes, optional
            Two for each variable: all histograms, then all QQ plots.

        Returns
        -------
        Figure
            Dots on the diagonal if the law fits. A law that was fitted together with the
            correlations may leave the band for a good reason: values at crowded sites count less.
        """
        return law_panels(self.model, variables, axes)

    def loo(
        self,
        variable: str | None = None,
        *,
        buffer: Buffer | None = None,
        most: int | None = None,
        ax: Axes | None = None,
    ) -> Figure:
        """Draw each observation against what the others predict, with the 90 % band.

        Parameters
        ----------
        variable, buffer, most
            As in :meth:`CopulaModel.loo`.
        ax : Axes, optional
            Where to draw.

        Returns
        -------
        Figure
            Each dot is an observation, each bar its band. About 90 % of the dots should lie
            within their bars.
        """
        found = self.model.loo(variable, buffer=buffer, most=most)
        name, units = self._labels(variable)
        figure = loo_scatter(found, shown_units(units), ax)
        return _entitled(figure, ax, f"{name}: leave one out")

    def pit(
        self,
        variable: str | None = None,
        *,
        bins: int = 10,
        buffer: Buffer | None = None,
        most: int | None = None,
        ax: Axes | None = None,
    ) -> Figure:
        """Draw the histogram of the leave-one-out probability integral transforms.

        Parameters
        ----------
        variable, buffer, most
            As in :meth:`CopulaModel.loo`.
        bins, ax
            As in :func:`xcopula.plot.pit_histogram`.

        Returns
        -------
        Figure
            Flat if predictions are calibrated; a hump if bands are too wide, high ends if they
            are too narrow, a slope if predictions are biased.
        """
        found = self.model.loo(variable, buffer=buffer, most=most)
        figure = pit_histogram(found["pit"], ax, bins=bins)
        return _entitled(figure, ax, f"{self._labels(variable)[0]}: leave one out")

    def reliability(
        self,
        threshold: float,
        variable: str | None = None,
        *,
        bins: int = 10,
        ax: Axes | None = None,
    ) -> Figure:
        """Draw how often a threshold was exceeded against the leave-one-out probability of that.

        Parameters
        ----------
        threshold : float
            In the units of the variable.
        variable : str, optional
            The primary by default.
        bins : int
            Equal classes of probability.
        ax : Axes, optional
            Where to draw.

        Returns
        -------
        Figure
            Dots on the diagonal if probabilities are reliable. The inset counts the predictions
            in each class. Values that are known as intervals are left out if the threshold lies
            within them.
        """
        if isinstance(threshold, bool) or not np.isscalar(threshold) or isinstance(threshold, str):
            raise TypeError(f"`threshold` must be a number, found {shown(threshold)}.")
        if not np.isfinite(threshold):
            raise ValueError(f"`threshold` must be finite, found {threshold}.")
        check_integer("bins", bins, least=1)
        task = self.model.task(variable)
        sample = self.model.observations.sample
        own = sample.task(task)
        predicted = predict_left_out(self.model, task, np.arange(own.start, own.stop))
        probability = predicted.exceedance(float(threshold))
        lower, upper = sample.limits_of(task)
        number = lower == upper
        told = number | (lower >= threshold) | (upper <= threshold)
        happened = np.where(number, lower > threshold, lower >= threshold)
        figure = reliability_diagram(probability[told], happened[told], bins, ax)
        name, units = self._labels(variable)
        return _entitled(figure, ax, f"{name} above {amount(threshold, units)}")

    def _labels(self, variable: str | None) -> tuple[str, str]:
        """Return the name of a variable, for the eye, and its units."""
        found = self.model.variables[self.model.task(variable)]
        name = name_of(xr.DataArray(name=found.name, attrs=found.attrs))
        return name, str(found.attrs.get("units", ""))


def _entitled(figure: Figure, ax: Any, title: str) -> Figure:
    """Write the title of a figure of one panel."""
    entitle(figure.axes[0] if ax is None else ax, title)
    return figure
