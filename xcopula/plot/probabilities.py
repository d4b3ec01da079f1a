"""Maps of the probability that a variable exceeds a threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from xcopula.plot.fields import Limits, find_dots
from xcopula.plot.maps import field_maps
from xcopula.plot.panels import PROBABILITY, amount, name_of
from xcopula.plot.places import find_place, squeezed
from xcopula.warn import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["exceedance_map", "probability_maps"]

_ENDING = "_exceedance"


def exceedance_map(
    prediction: xr.Dataset,
    variable: str | None = None,
    *,
    sites: xr.Dataset | None = None,
    coastlines: bool | None = None,
    axes: Any = None,
) -> Figure:
    """Map probabilities of more than a threshold that were computed before, as from a file.

    Parameters
    ----------
    prediction : Dataset
        Has results of :meth:`Posterior.exceedance`, under the names that they have there.
    variable : str, optional
        The variable that exceeds; may be left out if there is only one.
    sites, coastlines, axes
        As in :meth:`~xcopula.plot.of_posterior.PosteriorPlots.exceedance`.

    Raises
    ------
    TypeError, ValueError
        If there is no such result, or several and none is chosen.
    """
    if not isinstance(prediction, xr.Dataset):
        raise TypeError(f"`prediction` must be a Dataset, found {shown(prediction)}.")
    ends = [str(n) for n in prediction.data_vars if str(n).endswith(_ENDING)]
    names = [name.removesuffix(_ENDING) for name in ends]
    if not names:
        raise ValueError(
            f"No variable is called after another with {_ENDING!r}: the prediction has "
            f"{list(map(str, prediction.data_vars))}. Predict exceedances first."
        )
    if variable is None and len(names) > 1:
        raise ValueError(f"There are several variables to draw. Pass `variable=`, one of {names}.")
    if variable is not None and variable not in names:
        raise ValueError(f"No exceedance of {variable!r} is predicted. Choose from {names}.")
    name = names[0] if variable is None else variable
    found = prediction[f"{name}{_ENDING}"]
    units = found.coords["threshold"].attrs if "threshold" in found.coords else {}
    attrs = prediction[name].attrs if name in prediction else units
    values = xr.DataArray(name=name, attrs=attrs)
    return probability_maps(found, values, sites=sites, coastlines=coastlines, axes=axes)


def probability_maps(
    found: xr.DataArray,
    variable: xr.DataArray,
    *,
    sites: xr.Dataset | None,
    coastlines: bool | None,
    axes: Any,
) -> Figure:
    """Map probabilities of more than a threshold: pale where low, dark where high.

    Parameters
    ----------
    found : DataArray
        Probabilities, with a coordinate or a dim ``threshold``; a dim gives a panel for each.
    variable : DataArray
        Name and attributes of what exceeds.
    sites, coastlines, axes
        As in :meth:`~xcopula.plot.of_posterior.PosteriorPlots.exceedance`.
    """
    fields = [squeezed(f) for f in (found if "threshold" in found.dims else [found])]
    units = variable.attrs.get("units", "")
    titles, dots = [], []
    for field in fields:
        # A limit that differs from cell to cell has no number, and sites none of their own.
        limit = field.coords.get("threshold")
        number = None if limit is None or limit.ndim else float(limit)
        text = "the threshold" if number is None else amount(number, units)
        titles.append(f"{name_of(variable)} above {text}")
        if sites is not None and number is not None:
            marks = find_dots(sites, str(variable.name), field, find_place(field))
            dots.append(marks._replace(values=(marks.values > number).astype(np.float64)))
    return field_maps(
        fields,
        titles,
        label="probability",
        cmap=PROBABILITY,
        limits=Limits(0.0, 1.0, "neither"),
        dots=dots,
        coastlines=coastlines,
        axes=axes,
    )
