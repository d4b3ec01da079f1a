"""Labelled points that a method was given, as the inputs it computes with."""

from __future__ import annotations

import numpy as np
import xarray as xr

from xcopula.errors import CoordinateError
from xcopula.labels.coordinates import CoordinateSystem
from xcopula.labels.observations import Observations
from xcopula.process import Targets
from xcopula.warn import shown, warn_user

__all__ = ["check_points", "to_points"]


def check_points(what: str, given: object, system: CoordinateSystem) -> None:
    """Refuse labelled points that are none, or lack a coordinate; nothing is computed.

    Raises
    ------
    TypeError
        If they are no Dataset.
    CoordinateError
        If there is no point, or a coordinate is missing or cannot be used.
    """
    if not isinstance(given, xr.Dataset):
        raise TypeError(f"{what} must be a Dataset of points, found {shown(given)}.")
    axes = system.find_in(given, what)
    if any(size == 0 for axis in axes for size in axis.shape):
        sizes = {str(d): n for axis in axes for d, n in axis.sizes.items()}
        raise CoordinateError(
            f"{what} has no point: its sizes are {sizes}. Give at least one, or leave it out."
        )


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
