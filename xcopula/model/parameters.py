"""The fitted parameters by their natural names with their standard errors, as a Dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from xcopula.arrays import FloatArray
from xcopula.labels.coordinates import CoordinateSystem
from xcopula.marginals import Marginal
from xcopula.model.directions import Directions, find_directions
from xcopula.model.precision import estimate_covariance, standard_errors
from xcopula.process import Process

__all__ = ["describe_parameters"]


def describe_parameters(
    process: Process,
    theta: FloatArray,
    information: FloatArray | None,
    names: tuple[str, ...],
    system: CoordinateSystem,
) -> xr.Dataset:
    """Return the parameters at theta with their standard errors, in units of the coordinates."""
    covariance = process.covariance
    covariance_theta, marginals = process.split(theta)
    directions = find_directions(process, theta, system)
    parameters = _parameter_names(marginals)
    numbers = _numbers(process, theta, system)
    estimates = estimate_covariance(process, theta, information)
    errors = standard_errors(
        process, theta, estimates, lambda point: _numbers(process, point, system)
    )
    out = xr.Dataset(
        {
            "kernel": ("task", [k.name for k in covariance.kernels]),
            "marginal": ("task", [m.name for m in marginals]),
            **{name: (_DIMS[name], value, _ATTRS.get(name, {})) for name, value in numbers.items()},
            "anisotropy_angle": (
                "group",
                [np.nan if d is None else d.angle for d in directions],
                {"long_name": "direction of the longest range", "units": "degrees"},
            ),
            **_principal(directions),
            "scaling": ("axis", _scaling(process, covariance_theta, system)),
            **{f"{name}_error": (_DIMS[name], value) for name, value in errors.items()},
        },
        coords={
            "task": list(names),
            "other": list(names),
            "group": [g.name for g in system.groups],
            "length_units": ("group", [g.units for g in system.groups]),
            "angle_from": ("group", ["" if d is None else d.origin for d in directions]),
            "structure": np.arange(covariance.structures),
            "axis": list(system.names),
            "parameter": parameters,
        },
    )
    out["length_scale"].attrs["units"] = ", ".join(g.units for g in system.groups)
    for name in errors:
        out[f"{name}_error"].attrs["long_name"] = f"standard error of {name}"
    return out


_DIMS = {
    "length_scale": ("structure", "group", "task"),
    "anisotropy_ratio": ("group",),
    "variance": ("structure", "task"),
    "nugget": ("task",),
    "correlation": ("structure", "task", "other"),
    "nugget_correlation": ("task", "other"),
    "marginal_parameter": ("task", "parameter"),
}
_ATTRS = {"anisotropy_ratio": {"long_name": "longest range over the shortest"}}


def _parameter_names(marginals: Sequence[Marginal]) -> list[str]:
    """Return the names of the parameters of all marginals."""
    return sorted({name for marginal in marginals for name in marginal.parameters})


def _numbers(
    process: Process, theta: FloatArray, system: CoordinateSystem
) -> dict[str, FloatArray]:
    """Return the parameters that have standard errors, as arrays."""
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
    names = _parameter_names(marginals)
    table = [[m.parameters.get(k, np.nan) for k in names] for m in marginals]
    directions = find_directions(process, theta, system)
    return {
        "length_scale": np.broadcast_to(lengths, (*lengths.shape[:2], covariance.tasks)).copy(),
        "anisotropy_ratio": np.array([1.0 if d is None else d.ratio for d in directions]),
        "variance": shares[:-1],
        "nugget": shares[-1],
        "correlation": correlations[:-1],
        "nugget_correlation": correlations[-1],
        "marginal_parameter": np.reshape(table, (-1, len(names))),
    }


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
