"""Labelled points that a method was given, as the inputs it computes with."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.errors import CoordinateError, warn_user
from xcopula.methods.partition import centres
from xcopula.labels.observations import Observations

__all__ = ["to_inducing", "to_inputs"]

FloatArray = npt.NDArray[np.float64]


def to_inducing(
    given: int | xr.Dataset | Mapping[str, int | xr.Dataset], observations: Observations
) -> int | tuple[FloatArray, ...]:
    """Return the number of inducing points, or the points of each task."""
    sample = observations.sample
    if isinstance(given, int):
        return given
    if isinstance(given, xr.Dataset):
        return (to_inputs("inducing points", given, observations),) * len(observations.names)
    points = []
    for i, name in enumerate(observations.names):
        own = given[name]
        if isinstance(own, int):
            points.append(centres(sample.inputs[:, sample.task(i)], own))
        else:
            points.append(to_inputs("inducing points", own, observations))
    return tuple(points)


def to_inputs(what: str, given: xr.Dataset, observations: Observations) -> FloatArray:
    """Turn labelled points into scaled inputs (d, m)."""
    system = observations.coordinates
    columns = [np.asarray(c.values) for c in xr.broadcast(*system.find_in(given))]
    points = system.to_columns([c.reshape(-1) for c in columns])
    lost = ~np.isfinite(points).all(axis=0)
    if lost.any():
        raise CoordinateError(
            f"{lost.sum()} of {lost.size} {what} have a coordinate that is not finite. Drop them."
        )
    low = observations.sample.inputs.min(axis=1, keepdims=True)
    high = observations.sample.inputs.max(axis=1, keepdims=True)
    slack = 1e-3  # of the extent: rounding, and the rise of a cycle
    outside = ((points < low - slack) | (points > high + slack)).any(axis=0)
    if outside.any():
        warn_user(
            f"{outside.sum()} of {outside.size} {what} lie outside the extent of the data, where "
            "they say nothing. The best are sites of the data, or near them."
        )
    return points
