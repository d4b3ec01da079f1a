"""From a covariance at given parameters to matrices, and from derivatives back: numpy to numba.

A numba function is compiled anew for each combination of type, layout and permission to write. So
arrays are made alike here: the arrays of a fitted model are read-only. The loops write to none of
them, so read-only arrays are handed on as they are, without a copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xcopula.arrays import FloatArray, IntArray
from xcopula.jit import pairs
from xcopula.kernels.covariance import Contraction, CovarianceState

__all__ = [
    "add_signal_contraction",
    "between",
    "contract_lower",
    "cross",
    "flat_contraction",
    "floats",
    "ints",
    "lower",
    "multiply_lower",
    "no_contraction",
    "ready",
    "scaled_inputs",
    "signal",
]

_NO_SITES, _NO_SCORES = np.empty(0, np.int64), np.empty(0)


class _Opened:
    """The memory of a read-only array, declared writeable to numba; it keeps the array alive."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array
        interface = array.__array_interface__
        self.__array_interface__ = interface | {"data": (interface["data"][0], False)}


def _alike(array: np.ndarray[Any, Any], kind: type) -> Any:
    """Return an array of a type, C-contiguous and writeable, without a copy where that is so."""
    flags = array.flags
    if array.dtype != kind or not (flags.c_contiguous and flags.aligned):
        return np.require(array, kind, ["C", "W"])
    return array if flags.writeable else np.asarray(_Opened(array))


def floats(array: FloatArray) -> FloatArray:
    """Return float64 numbers for the loops to read."""
    return _alike(array, np.float64)  # type: ignore[no-any-return]


def ints(array: IntArray) -> IntArray:
    """Return int64 numbers for the loops to read."""
    return _alike(array, np.int64)  # type: ignore[no-any-return]


def ready(state: CovarianceState) -> CovarianceState:
    """Return the state with arrays as the compiled loops take them."""
    return CovarianceState(
        amplitudes=floats(state.amplitudes),
        nugget=floats(state.nugget),
        tables=ints(state.tables),
        groups=ints(state.groups),
        coefficients=floats(state.coefficients),
        sensitivities=floats(state.sensitivities),
        ranges=floats(state.ranges),
        mapping=floats(state.mapping),
        freedom=ints(state.freedom),
    )


def scaled_inputs(inputs: FloatArray, state: CovarianceState) -> FloatArray:
    """Map inputs (d, n) to where distances are Euclidean, ready for the compiled loops.

    Column by column: a matrix product may round a point by how many others come with it.
    """
    out = np.array(inputs, np.float64, order="C")
    for g in np.flatnonzero(state.freedom):
        own = range(state.groups[g], state.groups[g + 1])
        for row in own:
            out[row] = state.mapping[row, own[0]] * inputs[own[0]]
            for column in own[1:]:
                out[row] += state.mapping[row, column] * inputs[column]
    return out


def lower(
    state: CovarianceState, inputs: FloatArray, sites: IntArray, offsets: IntArray
) -> FloatArray:
    """Return the covariance of scaled inputs (d, n) sorted by task; only the lower triangle.

    Parameters
    ----------
    state : CovarianceState
    inputs : ndarray (d, n)
    sites : ndarray (n,) of int
        Number of each observation's site: the nugget is shared where two are equal.
    offsets : ndarray (t + 1,) of int
        Where each task begins, and where the last one ends.

    Returns
    -------
    ndarray (n, n)
        What stands above the diagonal is left as it was.
    """
    n = inputs.shape[1]
    out = np.empty((n, n))
    inputs, sites, offsets = floats(inputs), ints(sites), ints(offsets)
    pairs.fill(inputs, sites, offsets, inputs, sites, offsets, True, True, ready(state), out)
    out.flat[:: n + 1] = 1.0
    return out


def cross(
    state: CovarianceState,
    targets: FloatArray,
    target_sites: IntArray | None,
    task: int,
    inputs: FloatArray,
    sites: IntArray,
    offsets: IntArray,
    *,
    nugget: bool = True,
    out: FloatArray | None = None,
) -> FloatArray:
    """Return the covariance (m, n) of one task at scaled targets with scaled inputs.

    Parameters
    ----------
    state : CovarianceState
    targets : ndarray (d, m)
    target_sites : ndarray (m,) of int, optional
        Number of each target's site, -1 where it is no site of the data. Needed with the nugget.
    task : int
    inputs, sites, offsets
        As in :func:`lower`.
    nugget : bool, optional
        Whether the nugget counts; without it the covariance is that of the signal.
    out : ndarray, optional
        Where it is given its first m rows are filled.
    """
    if target_sites is None:
        if nugget:
            raise ValueError(
                "The nugget is shared at common sites, and target_sites is None. "
                "Give the number of each target's site, or nugget=False."
            )
        target_sites = _NO_SITES
    own = np.where(np.arange(len(offsets)) <= task, 0, targets.shape[1])
    return _rectangle(
        state, targets, target_sites, own, inputs, sites, offsets, nugget=nugget, out=out
    )


def between(
    state: CovarianceState,
    targets: FloatArray,
    target_sites: IntArray,
    task: int,
    others: FloatArray,
    other_sites: IntArray,
    other: int,
    *,
    nugget: bool = True,
) -> FloatArray:
    """Return the covariance (m, k) of one task at targets with one task at other points.

    Inputs (d, m) and (d, k) are not scaled yet. All else is as in :func:`cross`.
    """
    points, inputs = (scaled_inputs(part, state) for part in (targets, others))
    offsets = np.where(np.arange(state.nugget.shape[0] + 1) <= other, 0, others.shape[1])
    return cross(state, points, target_sites, task, inputs, other_sites, offsets, nugget=nugget)


def signal(
    state: CovarianceState,
    targets: FloatArray,
    target_offsets: IntArray,
    inputs: FloatArray,
    offsets: IntArray,
) -> FloatArray:
    """Return the signal's covariance (m, n) between two sets, both scaled and sorted by task."""
    return _rectangle(
        state, targets, _NO_SITES, target_offsets, inputs, _NO_SITES, offsets, nugget=False
    )


def _rectangle(
    state: CovarianceState,
    targets: FloatArray,
    target_sites: IntArray,
    target_offsets: IntArray,
    inputs: FloatArray,
    sites: IntArray,
    offsets: IntArray,
    *,
    nugget: bool,
    out: FloatArray | None = None,
) -> FloatArray:
    if out is None:
        out = np.empty((targets.shape[1], inputs.shape[1]))
    rows = out[: targets.shape[1]]
    pairs.fill(
        floats(targets),
        ints(target_sites),
        ints(target_offsets),
        floats(inputs),
        ints(sites),
        ints(offsets),
        False,
        nugget,
        ready(state),
        rows,
    )
    return rows


def no_contraction(state: CovarianceState) -> Contraction:
    """Return derivatives that are all zero, to add to."""
    structures, tasks = state.amplitudes.shape[:2]
    return Contraction(
        amplitudes=np.zeros((structures, tasks, tasks)),
        nugget=np.zeros((tasks, tasks)),
        slope=np.zeros(state.ranges.size),
        sensitivity=np.zeros(state.ranges.size),
        moments=np.zeros(state.mapping.shape),
    )


def contract_lower(
    state: CovarianceState,
    inverse: FloatArray,
    alpha: FloatArray,
    inputs: FloatArray,
    sites: IntArray,
    offsets: IntArray,
) -> Contraction:
    """Contract K^-1 - alpha alpha' with the derivatives of the covariance of scaled inputs.

    Only the strictly lower triangle of ``inverse`` is read. The other arguments are those of
    :func:`lower`.
    """
    by = no_contraction(state)
    inputs, offsets = floats(inputs), ints(offsets)
    pairs.contract(
        floats(inverse),
        floats(alpha),
        inputs,
        offsets,
        inputs,
        ints(sites),
        offsets,
        True,
        ready(state),
        by,
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
    pairs.contract(
        floats(weights),
        _NO_SCORES,
        floats(targets),
        ints(target_offsets),
        floats(inputs),
        _NO_SITES,
        ints(offsets),
        False,
        ready(state),
        by,
    )


def flat_contraction(state: CovarianceState) -> tuple[FloatArray, Contraction]:
    """Return numbers (s,) that are zero, and derivatives whose arrays are views of them."""
    parts = no_contraction(state)
    flat = np.zeros(sum(part.size for part in parts))
    ends = np.cumsum([part.size for part in parts])
    views = [
        flat[end - part.size : end].reshape(part.shape)
        for part, end in zip(parts, ends, strict=True)
    ]
    return flat, Contraction(*views)


def multiply_lower(
    state: CovarianceState,
    alpha: FloatArray,
    inputs: FloatArray,
    sites: IntArray,
    offsets: IntArray,
) -> FloatArray:
    """Multiply the derivatives of the covariance of scaled inputs by numbers (n,).

    Rows (s, n) are in the order of :func:`flat_contraction`. The other arguments are those of
    :func:`lower`.
    """
    out = np.zeros((flat_contraction(state)[0].size, alpha.size))
    pairs.multiply(floats(alpha), floats(inputs), ints(sites), ints(offsets), ready(state), out)
    return out
