"""The table of marginals and kernels that were compared for each variable alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import xarray as xr

__all__ = ["Alternative", "selection_table"]


@dataclass(frozen=True)
class Alternative:
    """A marginal and a kernel of one variable, fitted to it alone.

    Attributes
    ----------
    variable, kernel, marginal : str
    log_likelihood, aic : float
        Of the single-task process.
    selected : bool
        Whether the model has them.
    """

    variable: str
    kernel: str
    marginal: str
    log_likelihood: float
    aic: float
    selected: bool


def selection_table(alternatives: Sequence[Alternative]) -> xr.Dataset:
    """Return alternatives as a table on dim ``alternative``, the best of each variable first."""
    return xr.Dataset(
        {
            field.name: ("alternative", [getattr(a, field.name) for a in alternatives])
            for field in fields(Alternative)
        }
    )
