"""Which observations lie within a distance of some others, in the units of the coordinates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xcopula.arrays import FloatArray, IntArray
from xcopula.labels.coordinates import CoordinateSystem
from xcopula.labels.observations import Observations
from xcopula.warn import shown

__all__ = ["Buffer", "Within", "check_buffer", "near_any", "within"]

Buffer = float | Mapping[str, float]


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


@dataclass(frozen=True)
class Within:
    """For each of some observations, the others within a distance in every named group.

    They are found as one goes through them, again each time, and none are kept: of a million
    observations the lists together would not fit into memory.

    Attributes
    ----------
    rows : ndarray (r,)
        Numbers of the observations.
    tree : cKDTree
        Of all observations, in the first group.
    distance : float
        In this group.
    rest : tuple of (ndarray (d, n), float)
        Of the other groups: columns and distance.
    """

    rows: IntArray
    tree: Any
    distance: float
    rest: tuple[tuple[FloatArray, float], ...]

    def __len__(self) -> int:
        return self.rows.size

    def __iter__(self) -> Iterator[IntArray]:
        for row in self.rows:
            near = self.tree.query_ball_point(self.tree.data[row], self.distance)
            others = np.setdiff1d(np.asarray(near, np.int64), [row])
            for columns, limit in self.rest:
                away = columns[:, others] - columns[:, row, None]
                others = others[np.linalg.norm(away, axis=0) <= limit]
            yield others


def within(observations: Observations, rows: IntArray, buffer: Mapping[str, float]) -> Within:
    """Return what lies within a distance of some observations, in every named group.

    Of all variables. Distances are those of the model: kilometres on the globe, days in time.
    """
    from scipy.spatial import cKDTree

    system = observations.coordinates
    columns = dict(
        zip((g.name for g in system.groups), system.embed(observations.positions.T), strict=True)
    )
    # A rounding error does not take a site out of its own buffer.
    first, *rest = ((columns[n], limit * (1.0 + 1e-9) + 1e-12) for n, limit in buffer.items())
    return Within(rows, cKDTree(first[0].T), first[1], tuple(rest))


def near_any(
    observations: Observations, rows: IntArray, buffer: Mapping[str, float]
) -> npt.NDArray[np.bool_]:
    """Tell which observations (n,), of all variables, lie within a distance of any of some.

    In every named group, as :func:`within` has it; these observations themselves are among them.
    """
    near = np.zeros(len(observations.positions), bool)
    near[rows] = True
    for others in within(observations, rows, buffer):
        near[others] = True
    return near
