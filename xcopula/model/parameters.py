"""The fitted parameters by their natural names, as a Dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.labels.coordinates import CoordinateSystem
from xcopula.model.directions import Directions, find_directions
from xcopula.process import Process

__all__ = ["describe_parameters"]

FloatArray = npt.NDArray[np.float64]


def describe_parameters(
    process: Process, theta: FloatArray, names: tuple[str, ...], system: CoordinateSystem
) -> xr.Dataset:
    """Return the parameters at theta, length scales in units of the coordinates."""
    covariance = process.covariance
    covariance_theta, marginals = process.split(theta)
    # With a scale for each column the length is in units of the extent; see `scaling`.
    unit = [
        1.0 if g.ard else system.scale[s] for g, s in zip(system.groups, system.starts, strict=True)
    ]
    lengths = np.exp(covariance.part(covariance_theta, "length")) * np.reshape(unit, (1, -1, 1))
    matrices = covariance.matrices(covariance_theta)
    shares = np.diagonal(matrices, axis1=1, axis2=2)
    root = np.sqrt(shares)
    correlations = matrices / root[:, :, None] / root[:, None, :]
    law_names = sorted({k for m in marginals for k in m.parameters})
    directions = find_directions(process, theta, system)
    table = [[m.parameters.get(k, np.nan) for k in law_names] for m in marginals]
    return xr.Dataset(
        {
            "kernel": ("task", [k.name for k in covariance.kernels]),
            "marginal": ("task", [m.name for m in marginals]),
            "length_scale": (
                ("structure", "group", "task"),
                np.broadcast_to(lengths, (*lengths.shape[:2], covariance.tasks)).copy(),
                {"units": ", ".join(g.units for g in system.groups)},
            ),
            "scaling": ("axis", _scaling(process, covariance_theta, system)),
            "anisotropy_ratio": (
                "group",
                [1.0 if d is None else d.ratio for d in directions],
                {"long_name": "longest range over the shortest"},
            ),
            "anisotropy_angle": (
                "group",
                [np.nan if d is None else d.angle for d in directions],
                {"long_name": "direction of the longest range", "units": "degrees"},
            ),
            **_principal(directions),
            "variance": (("structure", "task"), shares[:-1]),
            "nugget": ("task", shares[-1]),
            "correlation": (("structure", "task", "other"), correlations[:-1]),
            "nugget_correlation": (("task", "other"), correlations[-1]),
            "marginal_parameter": (("task", "parameter"), np.reshape(table, (-1, len(law_names)))),
        },
        coords={
            "task": list(names),
            "other": list(names),
            "group": [g.name for g in system.groups],
            "length_units": ("group", [g.units for g in system.groups]),
            "angle_from": ("group", ["" if d is None else d.origin for d in directions]),
            "structure": np.arange(covariance.structures),
            "axis": list(system.names),
            "parameter": law_names,
        },
    )


def _scaling(process: Process, theta: FloatArray, system: CoordinateSystem) -> FloatArray:
    """Return the scale of each axis: that of its column, or of its group's first."""
    columns = [
        start + (k if g.columns == len(g.axes) else 0)
        for g, start in zip(system.groups, system.starts, strict=True)
        for k in range(len(g.axes))
    ]
    ard = np.repeat([g.ard for g in system.groups], [g.columns for g in system.groups])
    mapping = np.diagonal(process.covariance.state(theta).mapping)
    scaling = np.where(ard, 1.0 / mapping, 1.0)
    return np.asarray(scaling[columns] * np.array(system.scale)[columns])


def _principal(directions: Sequence[Directions | None]) -> dict[str, Any]:
    """Return the principal directions of groups that have more than an angle and a ratio.

    NaN where a group has fewer.
    """
    most = max((d.stretch.size for d in directions if d is not None), default=0)
    if most < 3:
        return {}
    stretch = np.full((len(directions), most), np.nan)
    vectors = np.full((len(directions), most, most), np.nan)
    for k, own in enumerate(directions):
        if own is not None:
            size = own.stretch.size
            stretch[k, :size], vectors[k, :size, :size] = own.stretch, own.vectors
    return {
        "stretch": (
            ("group", "direction"),
            stretch,
            {"long_name": "range along a direction, in length scales"},
        ),
        "direction_vector": (
            ("group", "direction", "component"),
            vectors,
            {"long_name": "components of the direction along the group's coordinates"},
        ),
    }
