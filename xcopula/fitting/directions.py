"""In which groups of coordinates ranges may differ by direction: in all planes, by default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from xcopula.errors import CoordinateError
from xcopula.kernels.covariance import InputGroup
from xcopula.labels.coordinates import CoordinateGroup, CoordinateSystem, Cycle
from xcopula.labels.observations import Observations
from xcopula.warn import shown

__all__ = ["Anisotropy", "free_groups", "input_groups"]

# All planes, none, or groups by name.
Anisotropy = bool | str | Sequence[str]

# By default the metric is free in groups of no more coordinates: seven have 27 parameters.
_MOST_COLUMNS = 3


def free_groups(anisotropy: Anisotropy, system: CoordinateSystem) -> tuple[bool, ...]:
    """Return whether ranges may differ by direction in each group of coordinates.

    Raises
    ------
    TypeError, ValueError, CoordinateError
        If the option is not understood, names no group, or one that can have no directions.
    """
    groups = system.groups
    if isinstance(anisotropy, bool | np.bool_):
        return tuple(bool(anisotropy) and _is_plane(g) for g in groups)
    names = [anisotropy] if isinstance(anisotropy, str) else anisotropy
    if not isinstance(names, Iterable) or isinstance(names, bytes | Mapping):
        raise TypeError(
            f"`anisotropy` is True, False or the names of groups, found {shown(anisotropy)}."
        )
    names = list(names)
    unknown = [name for name in names if name not in [g.name for g in groups]]
    if unknown:
        raise CoordinateError(
            f"`anisotropy` names groups {unknown}; the groups of coordinates are "
            f"{[g.name for g in groups]}. Name one of these, or give True or False."
        )
    return tuple(group.name in names and _can_turn(group) for group in groups)


def _is_plane(group: CoordinateGroup) -> bool:
    return _has_directions(group) and not group.ard and group.columns <= _MOST_COLUMNS


def _has_directions(group: CoordinateGroup) -> bool:
    return group.columns > 1 and not isinstance(group, Cycle)


def _can_turn(group: CoordinateGroup) -> bool:
    """Return True for a group that can have directions, refuse others."""
    if not _has_directions(group):
        why = "is a cycle" if isinstance(group, Cycle) else "has only one coordinate"
        raise ValueError(
            f"`anisotropy` needs at least two coordinates in a group; {group.name!r} {why}. Leave "
            "it out."
        )
    if group.ard:
        raise ValueError(
            f"`anisotropy` and `ard` are both set for group {group.name!r}. Directions include "
            "those of the axes: leave `ard` out."
        )
    return True


def input_groups(
    observations: Observations, anisotropy: tuple[bool, ...] = ()
) -> tuple[InputGroup, ...]:
    """Return the columns of each group of coordinates, as the covariance wants them.

    Sites on more than half the globe have no east and north in common, and no directions.
    """
    system = observations.coordinates
    free = anisotropy or (False,) * len(system.groups)
    return tuple(
        InputGroup(group.columns, group.ard, directions if turns else ())
        for group, directions, turns in zip(system.groups, system.directions, free, strict=True)
    )
