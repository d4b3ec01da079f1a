"""How much each cell of a target counts in a mean over all of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.arrays import FloatArray, IntArray
from xcopula.prediction.posterior import Posterior
from xcopula.prediction.predicting import Asked
from xcopula.prediction.thresholds import Limit, Threshold
from xcopula.prediction.weighting import check_weights as check_on_mask

__all__ = ["check_weights", "find_limit", "shares_of", "sides_of"]


def check_weights(weights: xr.DataArray | None, asked: Asked, cells: IntArray) -> FloatArray:
    """Return the weights (m,) of the cells that are asked for; they add up to one.

    Raises
    ------
    TypeError
        If they are no DataArray of numbers.
    ValueError
        If they are on other cells, if one is negative or not finite, or if all are zero.
    """
    if not cells.size:
        raise ValueError(
            "The target has no cell: all are masked, or have a coordinate that is NaN."
        )
    if weights is None:
        return np.full(cells.size, 1.0 / cells.size)
    dims, sizes = asked.cells.dims, asked.cells.sizes
    found = check_on_mask(weights, sizes, asked.cells.kept.coords, asked.cells.mask)
    whole = found.expand_dims({d: sizes[d] for d in dims if d not in found.dims}).transpose(*dims)
    values = whole.values.reshape(-1)[cells]
    return np.asarray(values / values.sum())


def shares_of(weights: FloatArray, known: npt.NDArray[np.bool_]) -> FloatArray:
    """Return the weights where a threshold is known, zero elsewhere; they add up to one.

    Raises
    ------
    ValueError
        If it is known nowhere.
    """
    counted = np.where(known, weights, 0.0)
    if not counted.any():
        raise ValueError("`threshold` is NaN in every cell that counts. Give it in one at least.")
    return np.asarray(counted / counted.sum())


def find_limit(threshold: Threshold | None, asked: Asked) -> Limit | None:
    """Return a threshold in the units of the variable; None if there is none.

    Raises
    ------
    TypeError, ValueError
        If it is no number, nor one of each cell, or has other units.
    """
    if threshold is None:
        return None
    variable = asked.variable
    units = str(variable.attrs.get("units", ""))
    sizes = {d: asked.cells.sizes[d] for d in asked.cells.dims}
    return Limit.of(threshold, variable.name, units, sizes, asked.cells.kept.coords)


def sides_of(found: Posterior, limit: Limit, cells: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities (m,) of more than a threshold, and of at most it."""
    above, below = found.exceedance(limit.value), found.cdf(limit.value)
    return above.values.reshape(-1)[cells], below.values.reshape(-1)[cells]
