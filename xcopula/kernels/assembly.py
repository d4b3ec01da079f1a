"""From a covariance at given parameters to matrices, and from derivatives back: numpy to numba."""

from __future__ import annotations

import numpy as np

from xcopula.jit import pairs as jit
from xcopula.kernels.base import FloatArray
from xcopula.kernels.covariance import Contraction, CovarianceState, IntArray

__all__ = [
    "add_signal_contraction",
    "contract_lower",
    "cross",
    "lower",
    "no_contraction",
    "scaled_inputs",
    "signal",
]


def scaled_inputs(inputs: FloatArray, state: CovarianceState) -> FloatArray:
    """Divide inputs (d, n) by the scale of each column, ready for the compiled loops."""
    return np.require(inputs / state.scaling[:, None], np.float64, ["C", "W"])


def lower(state: CovarianceState, inputs: FloatArray, offsets: IntArray) -> FloatArray:
    """Return the covariance of scaled inputs (d, n) sorted by task; only the lower triangle."""
    out = np.empty((inputs.shape[1], inputs.shape[1]))
    jit.fill_lower(
        inputs,
        offsets,
        state.amplitudes,
        state.nugget,
        state.tables,
        state.groups,
        state.coefficients,
        state.ranges,
        out,
    )
    return out


def cross(
    state: CovarianceState,
    targets: FloatArray,
    task: int,
    inputs: FloatArray,
    offsets: IntArray,
    *,
    nugget: bool = True,
    structures: bool = True,
    out: FloatArray | None = None,
) -> FloatArray:
    """Return the covariance (m, n) of one task at scaled targets with scaled inputs.

    Without ``nugget`` that of the signal, without ``structures`` that of the nugget alone. Where
    ``out`` is given its first m rows are filled.
    """
    if out is None:
        out = np.empty((targets.shape[1], inputs.shape[1]))
    rows = out[: targets.shape[1]]
    jit.fill_cross(
        targets,
        task,
        inputs,
        offsets,
        state.amplitudes if structures else np.zeros_like(state.amplitudes),
        state.nugget if nugget else np.zeros_like(state.nugget),
        state.tables,
        state.groups,
        state.coefficients,
        state.ranges,
        rows,
    )
    return rows


def signal(
    state: CovarianceState,
    targets: FloatArray,
    target_offsets: IntArray,
    inputs: FloatArray,
    offsets: IntArray,
) -> FloatArray:
    """Return the signal's covariance (m, n) between two sets, both scaled and sorted by task."""
    out = np.empty((targets.shape[1], inputs.shape[1]))
    for task in range(len(target_offsets) - 1):
        rows = slice(int(target_offsets[task]), int(target_offsets[task + 1]))
        own = np.require(targets[:, rows], np.float64, ["C", "W"])
        cross(state, own, task, inputs, offsets, nugget=False, out=out[rows])
    return out


def no_contraction(state: CovarianceState) -> Contraction:
    """Return derivatives that are all zero, to add to."""
    return Contraction(
        amplitudes=np.zeros_like(state.amplitudes),
        nugget=np.zeros_like(state.nugget),
        slope=np.zeros_like(state.ranges),
        sensitivity=np.zeros_like(state.ranges),
        scaling=np.zeros_like(state.scaling),
    )


def contract_lower(
    state: CovarianceState,
    inverse: FloatArray,
    alpha: FloatArray,
    inputs: FloatArray,
    offsets: IntArray,
) -> Contraction:
    """Contract K^-1 - alpha alpha' with the derivatives of the covariance of scaled inputs."""
    by = no_contraction(state)
    jit.contract_gradient(
        inverse,
        alpha,
        inputs,
        offsets,
        state.amplitudes,
        state.tables,
        state.groups,
        state.coefficients,
        state.sensitivities,
        state.ranges,
        state.scaled,
        *by,
    )
    return by


def add_signal_contraction(
    by: Contraction,
    state: CovarianceState,
    weights: FloatArray,
    targets: FloatArray,
    target_offsets: IntArray,
    inputs: FloatArray,
    offsets: IntArray,
) -> None:
    """Add the contraction of weights (m, n) with the derivatives of :func:`signal`."""
    jit.contract_cross(
        np.require(weights, np.float64, ["C", "W"]),
        targets,
        target_offsets,
        inputs,
        offsets,
        state.amplitudes,
        state.tables,
        state.groups,
        state.coefficients,
        state.sensitivities,
        state.ranges,
        state.scaled,
        by.amplitudes,
        by.slope,
        by.sensitivity,
        by.scaling,
    )
