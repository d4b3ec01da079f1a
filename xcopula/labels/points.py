"""Anchors with labels, which a transductive method was given, as the inputs it computes with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr

from xcopula.errors import CoordinateError
from xcopula.labels.coordinates import CoordinateSystem
from xcopula.labels.observations import Observations
from xcopula.methods import Method, Transductive
from xcopula.process import Sample, Targets
from xcopula.warn import shown, warn_user

__all__ = ["check_anchors", "locate_anchors", "renumber_anchors", "to_points"]


def check_anchors(method: Method, system: CoordinateSystem) -> None:
    """Refuse anchors with labels that are no points, or lack a coordinate; nothing is computed.

    Raises
    ------
    TypeError
        If they are no Dataset.
    CoordinateError
        If there is no point, or a coordinate is missing or cannot be used.
    """
    given = method.anchors if isinstance(method, Transductive) else None
    if given is None or isinstance(given, str | Targets):
        return
    if not isinstance(given, xr.Dataset):
        raise TypeError(f"`anchors` must be a Dataset of points, found {shown(given)}.")
    axes = system.find_in(given, "`anchors`")
    if any(size == 0 for axis in axes for size in axis.shape):
        sizes = {str(d): n for axis in axes for d, n in axis.sizes.items()}
        raise CoordinateError(
            f"`anchors` has no point: its sizes are {sizes}. Give at least one, or leave it out."
        )


def locate_anchors(method: Method, observations: Observations) -> Method:
    """Return the method with anchors as inputs, if it was given any with labels."""
    if not isinstance(method, Transductive) or not isinstance(method.anchors, xr.Dataset):
        return method
    return replace(method, anchors=to_points(method.anchors, observations))


def renumber_anchors(method: Method, sample: Sample) -> Method:
    """Return the method for data whose sites have other numbers."""
    if not isinstance(method, Transductive) or not isinstance(method.anchors, Targets):
        return method
    inputs = method.anchors.inputs
    return replace(method, anchors=Targets(inputs, sample.sites_at(inputs)))


def to_points(given: xr.Dataset, observations: Observations) -> Targets:
    """Turn anchors with labels into targets."""
    system = observations.coordinates
    columns = [np.asarray(c.values) for c in xr.broadcast(*system.find_in(given))]
    numbers = [c.reshape(-1) for c in columns]
    lost = ~np.isfinite(np.stack(numbers)).all(axis=0)
    if lost.any():
        raise CoordinateError(
            f"{lost.sum()} of {lost.size} anchors have a coordinate that is not finite. Drop them."
        )
    points = observations.targets(numbers)
    inputs = observations.sample.inputs
    low, high = inputs.min(axis=1, keepdims=True), inputs.max(axis=1, keepdims=True)
    slack = 1e-3  # of the extent: rounding
    outside = ((points.inputs < low - slack) | (points.inputs > high + slack)).any(axis=0)
    if outside.any():
        warn_user(
            f"{outside.sum()} of {outside.size} anchors lie outside the extent of the data, where "
            "they say nothing. The best are sites of the data, or near them."
        )
    return points
