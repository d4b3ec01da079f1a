"""The fitted parameters by their natural names, as a Dataset."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.labels.coordinates import CoordinateSystem
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
    scaling = process.covariance.state(theta).scaling
    return np.asarray(scaling[columns] * np.array(system.scale)[columns])
