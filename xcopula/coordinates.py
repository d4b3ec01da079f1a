"""Which coordinates are the inputs of a model, and how labelled coordinates become columns.

Coordinates are found by CF role (through cf_xarray) or named by ``coords=``. A *group* of them
shares one distance; the covariance is a product over groups. Every column is centred and scaled
once, so that the array core always sees inputs of about unit extent.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from xcopula.errors import CoordinateError

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Axis", "CoordinateGroup", "CoordinateSystem", "Coords", "find_coordinates"]

FloatArray = npt.NDArray[np.float64]
Coords = str | Sequence[str] | Mapping[str, str | Sequence[str]] | None

_log = logging.getLogger("xcopula")

# Roles that together make one planar distance.
_PLANAR = ("x", "y", "z")
_DEGREES = ("degree", "degrees_north", "degrees_east", "degrees", "degree_north", "degree_east")


@dataclass(frozen=True)
class Axis:
    """One coordinate: its name in the training data and its units there ('' if it had none)."""

    name: str
    units: str = ""


@dataclass(frozen=True)
class CoordinateGroup:
    """Coordinates that share one distance.

    Attributes
    ----------
    name : str
    axes : tuple of Axis
    ard : bool
        Whether each coordinate has a scale of its own.
    """

    name: str
    axes: tuple[Axis, ...]
    ard: bool = False

    @property
    def units(self) -> str:
        """Units of the length scale: those of the axes if they agree."""
        found = {axis.units for axis in self.axes}
        return found.pop() if len(found) == 1 and not self.ard else ""


@dataclass(frozen=True)
class CoordinateSystem:
    """The inputs of a model: groups of coordinates, and the centre and scale of each column."""

    groups: tuple[CoordinateGroup, ...]
    centre: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All axes, in column order."""
        return tuple(axis for group in self.groups for axis in group.axes)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates in the training data, in column order."""
        return tuple(axis.name for axis in self.axes)

    def scaled_to(self, sites: FloatArray) -> CoordinateSystem:
        """Return the system centred on sites (n, d) and scaled to their extent.

        Raises
        ------
        CoordinateError
            If a group has no extent.
        """
        low, high = sites.min(axis=0), sites.max(axis=0)
        extent = high - low
        scale = np.empty_like(extent)
        start = 0
        for group in self.groups:
            columns = slice(start, start + len(group.axes))
            start = columns.stop
            widest = extent[columns].max()
            if widest == 0.0 or (group.ard and (extent[columns] == 0.0).any()):
                flat = [
                    a.name for a, e in zip(group.axes, extent[columns], strict=True) if e == 0.0
                ]
                raise CoordinateError(
                    f"Coordinates {flat} have one value at all {len(sites)} observations. "
                    "Leave them out of `coords`, or give data that spread."
                )
            scale[columns] = extent[columns] if group.ard else widest
        return replace(self, centre=tuple(0.5 * (low + high)), scale=tuple(scale))

    def to_columns(self, coordinates: Sequence[npt.NDArray[np.float64]]) -> FloatArray:
        """Scale raw coordinates, one (m,) array for each axis, to inputs (d, m)."""
        raw = np.stack([np.asarray(c, np.float64) for c in coordinates])
        columns: FloatArray = (raw - np.array(self.centre)[:, None]) / np.array(self.scale)[:, None]
        return columns

    def find_in(self, target: xr.Dataset | xr.DataArray) -> list[xr.DataArray]:
        """Return the coordinates of a prediction target, one for each axis.

        Raises
        ------
        CoordinateError
            If one is missing, is not numeric, or has other units than in training.
        """
        found = []
        for axis in self.axes:
            if axis.name not in target.coords and axis.name not in _variables(target):
                raise CoordinateError(
                    f"The target lacks the coordinate {axis.name!r} that the model was fitted on; "
                    f"it has {_listed(target.coords)}. Rename one of them, or add it."
                )
            coordinate = target[axis.name]
            _check_numeric(coordinate, axis.name)
            units = str(coordinate.attrs.get("units", "")).strip()
            if units and axis.units and units != axis.units:
                raise CoordinateError(
                    f"The target's coordinate {axis.name!r} is in {units!r}, the model was fitted "
                    f"in {axis.units!r}. Convert it and set its `units` attribute."
                )
            found.append(coordinate)
        return found


def find_coordinates(
    data: xr.Dataset, coords: Coords = None, *, ard: bool | Sequence[str] = False
) -> CoordinateSystem:
    """Decide which coordinates of the training data are the inputs.

    Parameters
    ----------
    data : Dataset
        Only the variables of the model.
    coords : None, str, sequence or mapping
        A name or several names: one group called "space". A mapping of group names to a name or
        names: a product over these groups. None: by CF role, then by name, then the only one.
    ard : bool or sequence of str
        Groups whose coordinates each have a scale of their own; True for all.

    Raises
    ------
    CoordinateError
        If none is found, or one is missing, not numeric, or geographic.
    """
    if not isinstance(coords, str | Sequence | Mapping | None):
        raise TypeError(
            f"`coords` is a name, names, or a mapping of groups to names, found {coords!r}."
        )
    if coords is None:
        groups = {"space": _discover(data)}
    elif isinstance(coords, Mapping):
        groups = {g: [n] if isinstance(n, str) else list(n) for g, n in coords.items()}
    else:
        groups = {"space": [coords] if isinstance(coords, str) else list(coords)}
    names = [name for group in groups.values() for name in group]
    if not names or any(not group for group in groups.values()):
        raise CoordinateError(f"`coords` names no coordinate: found {coords!r}.")
    if len(set(names)) < len(names):
        raise CoordinateError(f"`coords` names a coordinate twice: {names}.")
    chosen = _ard_groups(ard, list(groups))
    system = CoordinateSystem(
        tuple(
            CoordinateGroup(group, tuple(_axis(data, name) for name in members), group in chosen)
            for group, members in groups.items()
        )
    )
    _log.info("Inputs: %s", {g.name: [a.name for a in g.axes] for g in system.groups})
    return system


def _ard_groups(ard: bool | Sequence[str], groups: list[str]) -> list[str]:
    if isinstance(ard, bool):
        return groups if ard else []
    chosen = [ard] if isinstance(ard, str) else list(ard)
    unknown = [g for g in chosen if g not in groups]
    if unknown:
        raise CoordinateError(f"`ard` names groups {unknown}; the groups are {groups}.")
    return chosen


def _discover(data: xr.Dataset) -> list[str]:
    """Find planar axes by CF role, or the only numeric coordinate there is."""
    import cf_xarray  # noqa: F401 - registers .cf

    # Attributes are the word of whoever made the data; names are a guess, and x, y beside
    # latitude and longitude may be mere indices.
    planar = _planar(data)
    if planar:
        return planar
    guessed = data.cf.guess_coord_axis()
    _refuse_geographic(data)
    _refuse_geographic(guessed)
    planar = _planar(guessed)
    if planar:
        return planar
    numeric = [
        str(n) for n, c in data.coords.items() if np.issubdtype(c.dtype, np.number) and c.ndim
    ]
    if len(numeric) == 1:
        return numeric
    raise CoordinateError(
        f"Cannot tell which coordinates are the inputs: the data have {_listed(data.coords)}. "
        "Pass `coords=['x', 'y']` with their names, or set `axis='X'` and `axis='Y'` on them."
    )


def _refuse_geographic(data: xr.Dataset) -> None:
    found = [n for role in ("longitude", "latitude") for n in data.cf.coordinates.get(role, [])]
    if found:
        raise CoordinateError(
            f"Coordinates {found} are geographic; degrees are not a distance. Project them "
            "to planar x and y (in km, say) and pass those by `coords=['x', 'y']`."
        )


def _planar(data: xr.Dataset) -> list[str]:
    geographic = {n for names in data.cf.coordinates.values() for n in names}
    found = []
    for role in _PLANAR:
        names = [str(n) for n in data.cf.axes.get(role.upper(), [])]
        if geographic.intersection(names):
            return []
        if len(names) > 1:
            raise CoordinateError(f"{names} all claim axis {role.upper()!r}. Choose by `coords=`.")
        found += names
    return found


def _axis(data: xr.Dataset, name: str) -> Axis:
    if name not in data.coords and name not in data.variables:
        raise CoordinateError(
            f"No coordinate {name!r} in the data; it has {_listed(data.coords)}. "
            "Correct `coords`, or add it with `assign_coords`."
        )
    coordinate = data[name]
    _check_numeric(coordinate, name)
    units = str(coordinate.attrs.get("units", "")).strip()
    if units in _DEGREES:
        raise CoordinateError(
            f"Coordinate {name!r} is in {units!r}; degrees are not a distance. Project it to "
            "planar coordinates first."
        )
    return Axis(name, units)


def _check_numeric(coordinate: xr.DataArray, name: str) -> None:
    if coordinate.dtype.kind not in "iuf":
        raise CoordinateError(
            f"Coordinate {name!r} has dtype {coordinate.dtype}; inputs are numbers. Convert it, "
            "for times to days since an epoch: `(time - epoch) / np.timedelta64(1, 'D')`."
        )


def _variables(target: xr.Dataset | xr.DataArray) -> list[Hashable]:
    return list(getattr(target, "data_vars", []))


def _listed(coords: Mapping[Hashable, object]) -> str:
    return f"coords {[str(c) for c in coords]}" if coords else "no coords"
