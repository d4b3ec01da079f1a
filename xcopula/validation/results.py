"""The result of a cross-validation as a labelled Dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.arrays import FloatArray, IntArray
from xcopula.labels.observations import Observations
from xcopula.marginals.intervals import is_interval
from xcopula.validation.scoring import Predicted

__all__ = ["CLIMATOLOGY", "LEVELS", "MODEL", "NAMES", "SINGLE_TASK", "covered", "to_dataset"]

# Who predicts, as the names of results end.
MODEL, SINGLE_TASK, CLIMATOLOGY = "", "_single_task", "_climatology"
LEVELS = (0.5, 0.8, 0.9, 0.95)

_LONG_NAMES = {
    "median": "predicted median",
    "pit": "probability integral transform",
    "crps": "continuous ranked probability score",
    "log_score": "log predictive density",
}
_OF = {MODEL: "", SINGLE_TASK: " of a single-task model", CLIMATOLOGY: " of the climatology"}
# Between which values lie, where some are known as intervals.
_LIMITS = ("observed_lower", "observed_upper")
_FIRST = ("observed", "fold", "quantiles", *_LONG_NAMES, "covered")
# All that a result calls its own, dims too: no input may have one of these names.
NAMES = (
    *_FIRST,
    *(name + end for end in (SINGLE_TASK, CLIMATOLOGY) for name in _LONG_NAMES),
    *_LIMITS,
    "quantile",
    "coverage",
)


def covered(pit: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Tell whether values lie within the central intervals of each coverage: (coverages, m)."""
    return np.abs(2.0 * pit - 1.0) <= np.array(LEVELS)[:, None]


def to_dataset(
    observations: Observations,
    folds: npt.NDArray[Any],
    order: IntArray,
    results: Mapping[str, Sequence[Predicted]],
    levels: FloatArray,
    attrs: Mapping[str, str],
) -> xr.Dataset:
    """Put the folds' predictions together, in the order of the data and with its labels.

    Parameters
    ----------
    folds : ndarray (n,)
        Label of the fold of each value of the primary.
    order : ndarray (n,)
        The numbers of the values, in the order of the predictions.
    results : mapping
        What each forecaster says, fold by fold.
    """
    variable, sample = observations.variables[0], observations.sample
    units = {"units": variable.attrs["units"]} if "units" in variable.attrs else {}
    back = np.argsort(order)
    own = np.arange(sample.size)[sample.task(0)]
    columns: dict[str, tuple[Any, ...]] = {
        "observed": ((), sample.values[own].copy(), dict(variable.attrs)),
        "fold": ((), folds, {"long_name": "fold in which the value was withheld"}),
    }
    limits = sample.limits_of(0)
    if is_interval(limits).any():
        for name, ends in zip(_LIMITS, limits, strict=True):
            columns[name] = ((), ends.copy(), dict(variable.attrs))
    for end, found in results.items():
        parts = (np.concatenate(part, axis=-1) for part in zip(*found, strict=True))
        joined = Predicted(*(part[..., back] for part in parts))
        for name, long_name in _LONG_NAMES.items():
            about = {"long_name": long_name + _OF[end]}
            about |= units if name in ("median", "crps") else {}
            columns[name + end] = ((), getattr(joined, name), about)
        if end == MODEL:
            inside = {"long_name": "whether the central interval holds the value"}
            columns["quantiles"] = (("quantile",), joined.quantiles, dict(variable.attrs))
            columns["covered"] = (("coverage",), covered(joined.pit), inside)
    dim, coords = observations.labels(own, NAMES)
    names = [*_FIRST, *(n for n in columns if n not in _FIRST)]
    return xr.Dataset(
        {n: ((*columns[n][0], dim), columns[n][1], columns[n][2]) for n in names},
        coords={**coords, "quantile": levels, "coverage": list(LEVELS)},
        attrs=dict(attrs),
    )
