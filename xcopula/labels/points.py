"""Labelled points that a method was given, as the inputs it computes with."""

from __future__ import annotations

import numpy as np
import xarray as xr

from xcopula.errors import CoordinateError
from xcopula.labels.observations import Observations
from xcopula.process import Targets
from xcopula.warn import warn_user

__all__ = ["to_points"]


def to_points(what: str, given: xr.Dataset, observations: Observations) -> Targets:
    """Turn labelled points into targets; ``what`` names them in messages."""
    system = observations.coordinates
    columns = [np.asarray(c.values) for c in xr.broadcast(*system.find_in(given))]
    numbers = [c.reshape(-1) for c in columns]
    lost = ~np.isfinite(np.stack(numbers)).all(axis=0)
    if lost.any():
        raise CoordinateError(
            f"{lost.sum()} of {lost.size} {what} have a coordinate that is not finite. Drop them."
        )
    points = observations.targets(numbers)
    inputs = observations.sample.inputs
    low, high = inputs.min(axis=1, keepdims=True), inputs.max(axis=1, keepdims=True)
    slack = 1e-3  # of the extent: rounding
    outside = ((points.inputs < low - slack) | (points.inputs > high + slack)).any(axis=0)
    if outside.any():
        warn_user(
            f"{outside.sum()} of {outside.size} {what} lie outside the extent of the data, where "
            "they say nothing. The best are sites of the data, or near them."
        )
    return points
