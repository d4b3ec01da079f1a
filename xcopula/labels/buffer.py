"""Which observations lie within a distance of some others, in the units of the coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from xcopula.labels.coordinates import CoordinateSystem
from xcopula.labels.observations import Observations
from xcopula.warn import shown

__all__ = ["Buffer", "check_buffer", "near_any", "within"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Buffer = float | Mapping[str, float]

# Observations whose neighbourhoods are listed at once.
_BATCH = 500


def check_buffer(buffer: object, system: CoordinateSystem) -> dict[str, float]:
    """Return the distance in each group that has one; a number is for the first group.

    Raises
    ------
    TypeError, ValueError
        If a distance is no positive number, or the model has no such group.
    """
    names = [group.name for group in system.groups]
    distances: dict[Any, Any] = dict(buffer) if isinstance(buffer, Mapping) else {names[0]: buffer}
    unknown = [name for name in distances if name not in names]
    if unknown or not distances:
        raise ValueError(
            f"`buffer` names groups of coordinates, found {unknown}; the model has {names}."
        )
    for name, distance in distances.items():
        if isinstance(distance, bool) or not isinstance(distance, int | float | np.number):
            raise TypeError(f"`buffer` is a distance, found {shown(distance)} for {name!r}.")
        if not 0.0 <= distance < np.inf:
            raise ValueError(f"`buffer` is zero or more, found {distance} for {name!r}.")
    return {str(name): float(distance) for name, distance in distances.items()}


def within(
    observations: Observations, rows: IntArray, buffer: Mapping[str, float]
) -> list[IntArray]:
    """Return, for each of some observations, the others within a distance in every named group.

    Of all variables. Distances are those of the model: kilometres on the globe, days in time.
    """
    from scipy.spatial import cKDTree

    system = observations.coordinates
    columns = dict(
        zip((g.name for g in system.groups), system.embed(observations.positions.T), strict=True)
    )
    (first, distance), *rest = buffer.items()
    places = columns[first].T
    # A rounding error does not take a site out of its own buffer.
    found = cKDTree(places).query_ball_point(places[rows], distance * (1.0 + 1e-9) + 1e-12)
    out = []
    for row, near in zip(rows, found, strict=True):
        others = np.setdiff1d(np.asarray(near, np.int64), [row])
        for name, limit in rest:
            away = columns[name][:, others] - columns[name][:, row, None]
            others = others[np.linalg.norm(away, axis=0) <= limit * (1.0 + 1e-9) + 1e-12]
        out.append(others)
    return out


def near_any(
    observations: Observations, rows: IntArray, buffer: Mapping[str, float]
) -> npt.NDArray[np.bool_]:
    """Tell which observations (n,), of all variables, lie within a distance of any of some.

    In every named group, as :func:`within` has it. The others are asked for in batches: a large
    buffer would have long lists.
    """
    near = np.zeros(len(observations.positions), bool)
    for start in range(0, rows.size, _BATCH):
        batch = rows[start : start + _BATCH]
        near[batch] = True
        for others in within(observations, batch, buffer):
            near[others] = True
    return near
