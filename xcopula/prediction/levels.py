"""Numbers that users ask for: levels of quantiles, thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np

from xcopula.arrays import FloatArray
from xcopula.warn import shown

__all__ = ["check_levels", "numbers_of"]


def numbers_of(given: Any) -> FloatArray:
    """Return numbers as an array, and NaN for what is none."""
    try:
        array = np.asarray(given)
        return array.astype(np.float64) if array.dtype.kind in "iufO" else np.full(1, np.nan)
    except (TypeError, ValueError):  # lists of different lengths, or objects that are no numbers
        return np.full(1, np.nan)


def check_levels(q: Any) -> FloatArray:
    """Return quantile levels as an array.

    Raises
    ------
    ValueError
        If a level is not strictly between 0 and 1.
    """
    levels = numbers_of(q)
    if levels.ndim > 1 or levels.size == 0 or not ((levels > 0.0) & (levels < 1.0)).all():
        raise ValueError(
            f"Quantile levels must lie strictly between 0 and 1, found {shown(q)}. "
            "Give fractions, such as 0.95 for the 95th percentile."
        )
    return levels
