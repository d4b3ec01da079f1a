"""The pictures of a posterior: ``posterior.plot``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from xcopula.arguments import check_methods
from xcopula.plot.fields import Limits, colour_limits
from xcopula.plot.maps import field_maps, prediction_map
from xcopula.plot.panels import VALUE
from xcopula.plot.probabilities import probability_maps
from xcopula.prediction import Posterior
from xcopula.warn import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PosteriorPlots"]


@check_methods
@dataclass(frozen=True)
class PosteriorPlots:
    """Pictures of what a model knows on a target.

    The target is a grid, points, or a line. Each method draws on the axes that it is given, or
    on a new figure, and returns the Figure.

    Attributes
    ----------
    posterior : Posterior
    """

    posterior: Posterior

    def __repr__(self) -> str:
        names = [f".{n}()" for n in sorted(vars(type(self))) if n[0] != "_"]
        return "posterior.plot: " + ", ".join(names)

    def map(
        self,
        level: float = 0.9,
        *,
        sites: xr.Dataset | None = None,
        sel: Mapping[str, Any] | None = None,
        coastlines: bool | None = None,
        ax: Sequence[Axes] | Axes | None = None,
    ) -> Figure:
        """Map the median and the width of a central band, side by side.

        Parameters
        ----------
        level : float
            Probability that the band holds.
        sites : Dataset, optional
            Observations of the variable, drawn as dots. They follow the date of the map.
        sel : mapping, optional
            Which slice to draw, as in ``DataArray.sel``: ``{"time": "1985-05-01"}``.
        coastlines, ax
            As in :func:`xcopula.plot.prediction_map`.

        Returns
        -------
        Figure
            Two panels; one, with the band itself, along a line.
        """
        if isinstance(level, bool) or not isinstance(level, int | float) or not 0.0 < level < 1.0:
            raise ValueError(
                f"`level` must be a number between 0 and 1, found {shown(level)}. "
                "0.9 is the 90 % band."
            )
        low = 0.5 * (1.0 - level)
        array = self.posterior.quantile([low, 0.5, 1.0 - low]).rename(self.posterior.name)
        found = _selected(array, sel).to_dataset()
        return prediction_map(found, sites=sites, coastlines=coastlines, ax=ax)

    def exceedance(
        self,
        threshold: Any,
        *,
        sites: xr.Dataset | None = None,
        sel: Mapping[str, Any] | None = None,
        coastlines: bool | None = None,
        axes: Sequence[Axes] | Axes | None = None,
    ) -> Figure:
        """Map the probability of more than a threshold: pale where it is low, dark where high.

        Parameters
        ----------
        threshold : float or sequence of float
            As in :meth:`Posterior.exceedance`; a sequence gives a panel for each.
        sites : Dataset, optional
            Observations of the variable: a dark dot was above the threshold, a pale one was not.
        sel, coastlines
            As in :meth:`map`.
        axes : Axes or sequence of Axes, optional
            Where to draw.
        """
        found = _selected(self.posterior.exceedance(threshold), sel)
        variable = xr.DataArray(name=self.posterior.name, attrs=self.posterior.attrs)
        return probability_maps(found, variable, sites=sites, coastlines=coastlines, axes=axes)

    def information(
        self,
        *,
        sel: Mapping[str, Any] | None = None,
        coastlines: bool | None = None,
        axes: Sequence[Axes] | Axes | None = None,
    ) -> Figure:
        """Map what each secondary adds to the primary: a panel for each, in the same colours.

        Parameters
        ----------
        sel, coastlines
            As in :meth:`map`.
        axes : sequence of Axes, optional
            Where to draw, one for each secondary.

        Returns
        -------
        Figure
            The latent precision (one over the variance) that each adds; zero where it says
            nothing.
        """
        found = _selected(self.posterior.information(), sel).compute()
        name = self.posterior.name
        titles = [f"What {each} adds to {name}" for each in found["secondary"].values]
        return field_maps(
            list(found),
            titles,
            label="added precision of the normal score",
            cmap=VALUE,
            limits=_from_zero(colour_limits(found.values.ravel(), np.empty(0)), found),
            coastlines=coastlines,
            axes=axes,
        )


def _from_zero(limits: Limits, values: xr.DataArray) -> Limits:
    """Let colours begin at zero, where nothing lies below."""
    if limits.low < 0.0:
        return limits
    return Limits(0.0, limits.high, "max" if float(values.max()) > limits.high else "neither")


def _selected(array: xr.DataArray, sel: Mapping[str, Any] | None) -> xr.DataArray:
    return array if sel is None else array.sel(dict(sel))
