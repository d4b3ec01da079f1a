"""How much each cell of a target counts in a mean over all of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.prediction.posterior import Posterior
from xcopula.prediction.predicting import Asked
from xcopula.prediction.target import check_cells
from xcopula.prediction.thresholds import Threshold
from xcopula.warn import shown

__all__ = ["check_threshold", "check_weights", "shares_of", "sides_of"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_WEIGHTS = "`weights` must be a DataArray of numbers on dims of the target"


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
    if not isinstance(weights, xr.DataArray):
        raise TypeError(f"{_WEIGHTS}, found {shown(weights)}.")
    if weights.dtype.kind not in "iuf":
        raise TypeError(f"{_WEIGHTS}, found dtype {weights.dtype}. Convert it to numbers.")
    dims, sizes = asked.cells.dims, asked.cells.sizes
    strange = [str(d) for d in weights.dims if d not in dims]
    if strange:
        raise ValueError(
            f"`weights` have dims {strange}, the target has {[str(d) for d in dims]}. Select one "
            "entry along them, or interpolate them to the target."
        )
    check_cells("`weights`", weights, sizes, asked.cells.kept.coords)
    bare = weights.reset_coords(drop=True).astype(np.float64)
    whole = bare.expand_dims({d: sizes[d] for d in dims if d not in bare.dims}).transpose(*dims)
    values = whole.values.reshape(-1)[cells]
    wrong = ~(np.isfinite(values) & (values >= 0.0))
    if wrong.any():
        raise ValueError(
            f"`weights` must be finite and not negative, found {values[wrong][0]:g} in one of "
            f"{int(wrong.sum())} such cells. Use `weights.fillna(0)` where nothing counts."
        )
    if not values.any():
        raise ValueError("`weights` are zero in every cell that is asked for. One must count.")
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


def check_threshold(threshold: object) -> None:
    """Refuse several thresholds at once.

    Raises
    ------
    ValueError
    """
    if isinstance(threshold, xr.DataArray):
        several = "threshold" in threshold.dims
    else:
        several = np.ndim(threshold) > 0  # type: ignore[arg-type]
    if several:
        raise ValueError(
            "`threshold` must be one number, or a DataArray on dims of the target, found "
            f"{shown(threshold)}. Ask for one after the other."
        )


def sides_of(
    found: Posterior, threshold: Threshold, cells: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities (m,) of more than a threshold, and of at most it.

    Raises
    ------
    ValueError
        If it is no number, is on other cells, or has other units than the variable.
    """
    above, below = found.exceedance(threshold), found.cdf(threshold)
    return above.values.reshape(-1)[cells], below.values.reshape(-1)[cells]
