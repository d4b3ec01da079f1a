"""Decide which coordinates of the training data are the inputs of a model."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import xarray as xr

from xcopula.labels.coordinates.axis import Axis
from xcopula.labels.coordinates.cycles import Recurring
from xcopula.labels.coordinates.groups import CoordinateGroup, Cycle, Globe
from xcopula.labels.coordinates.projection import find_projection
from xcopula.labels.coordinates.roles import (
    ROLES,
    Roles,
    coordinates_of,
    guessed_roles,
    listed,
    stated_roles,
)
from xcopula.labels.coordinates.system import CoordinateSystem
from xcopula.labels.coordinates.times import calendar_of, calendar_year, is_time
from xcopula.labels.coordinates.units import is_degrees, is_length, units_of
from xcopula.errors import CoordinateError, warn_user

__all__ = ["Coords", "coordinates_asked", "find_coordinates"]

_log = logging.getLogger("xcopula")

_GLOBE = ("longitude", "latitude")


Member = str | Recurring
Coords = Member | Sequence[Member] | Mapping[str, Member | Sequence[Member]] | None


def find_coordinates(
    data: xr.Dataset | xr.DataArray,
    coords: Coords = None,
    *,
    ard: bool | Sequence[str] = False,
) -> CoordinateSystem:
    """Decide which coordinates of the training data are the inputs.

    Parameters
    ----------
    data : Dataset or DataArray
        With the coordinates of the primary variable.
    coords : None, str, sequence or mapping
        Names: longitude and latitude, times and heights (by their attributes) make groups of their
        own, the others one called "space". A mapping of group names to a name or names: these
        groups. A mapping with the keys "longitude" and "latitude" says which coordinates these
        are. :func:`cycle` marks a periodic one. None: by CF attributes, then by name.
    ard : bool or sequence of str
        Groups whose coordinates each have a scale of their own; True for all that may.

    Raises
    ------
    CoordinateError
        If none is found, or one is missing, is neither a number nor a date, or cannot share a
        distance with the others of its group.
    """
    source = _Source.of(coordinates_of(data))
    if isinstance(coords, Mapping) and any(key in coords for key in _GLOBE):
        source, coords = source.naming_globe(coords)
    groups = source.discover() if coords is None else source.arrange(coords)
    made = [source.group(name, members) for name, members in groups.items()]
    if coords is not None:
        source.warn_of_assumed_degrees(made)
    chosen = _ard_groups(ard, made)
    system = CoordinateSystem(
        tuple(_with_ard(group) if group.name in chosen else group for group in made),
        projection=find_projection(data),
    )
    _log.info("Inputs: %s", {g.name: [a.name for a in g.axes] for g in system.groups})
    return system


def _with_ard(group: CoordinateGroup) -> CoordinateGroup:
    return CoordinateGroup(group.name, group.axes, ard=True)


def _ard_groups(ard: bool | Sequence[str], groups: list[CoordinateGroup]) -> list[str]:
    may = [g.name for g in groups if not isinstance(g, Globe | Cycle)]
    if isinstance(ard, bool):
        return may if ard else []
    chosen = [ard] if isinstance(ard, str) else list(ard)
    unknown = [g for g in chosen if g not in may]
    if unknown:
        raise CoordinateError(
            f"`ard` names groups {unknown}; the groups whose coordinates may have scales of their "
            f"own are {may}."
        )
    return chosen


@dataclass(frozen=True)
class _Source:
    """The coordinates of the training data and the roles that they claim."""

    coordinates: xr.Dataset
    stated: Roles
    guessed: Roles
    named: Roles = field(default_factory=dict)  # by ``coords``, whatever attributes and names say

    @classmethod
    def of(cls, coordinates: xr.Dataset) -> _Source:
        return cls(coordinates, stated_roles(coordinates), guessed_roles(coordinates))

    def role(self, name: str) -> str:
        """Return the role of a coordinate: as ``coords`` says, by attributes, or else by guess."""
        for roles in (self.named, self.stated, self.guessed):
            for role in ROLES:
                if name in roles.get(role, []):
                    return role
        return ""

    def naming_globe(self, coords: Mapping[str, Any]) -> tuple[_Source, dict[str, Any]]:
        """Believe what ``coords`` says of longitude and latitude, and make them a group."""
        missing = [key for key in _GLOBE if not isinstance(coords.get(key), str)]
        if missing:
            raise CoordinateError(
                f"`coords` with longitude and latitude names one coordinate for each; "
                f"{missing[0]!r} is {coords.get(missing[0])!r}."
            )
        if "space" in coords:
            raise CoordinateError("`coords` has longitude, latitude and another group 'space'.")
        source = replace(self, named={role: [coords[role]] for role in _GLOBE})
        others = {group: m for group, m in coords.items() if group not in _GLOBE}
        return source, {"space": [coords[role] for role in _GLOBE], **others}

    def discover(self) -> dict[str, list[Member]]:
        """Find the groups by CF role: what does not vary is not an input."""
        space = self._space()
        groups: dict[str, list[Member]] = {"space": list(space)} if space else {}
        for group, role in (("height", "z"), ("time", "time")):
            found = self._only(role)
            if found and found not in space:
                groups[group] = [found]
        if groups:
            return groups
        numeric = [
            str(n) for n, c in self.coordinates.coords.items() if c.dtype.kind in "iuf" and c.ndim
        ]
        if len(numeric) == 1:
            self._warn_of_row_numbers(numeric[0])
            return {"space": list(numeric)}
        degrees = [
            n
            for role in ("x", "y")
            for n in self.guessed.get(role, [])
            if is_degrees(units_of(self.coordinates[n]))
        ]
        if len(degrees) == 2:
            raise CoordinateError(
                f"Coordinates {degrees} are in degrees, which are not a distance. If they are "
                f"longitude and latitude, pass `coords={{'longitude': {degrees[0]!r}, 'latitude': "
                f"{degrees[1]!r}}}`; of a rotated pole, give the true ones."
            )
        raise CoordinateError(
            "Cannot tell which coordinates are the inputs: the data have "
            f"{listed(self.coordinates.coords)}. Pass `coords=['x', 'y']` with their names, or set "
            "their CF attributes, such as `units='degrees_north'` or `axis='X'`."
        )

    def _warn_of_row_numbers(self, name: str) -> None:
        coordinate = self.coordinates[name]
        if coordinate.dtype.kind in "iu" and name in self.coordinates.dims:
            values = coordinate.values
            if np.array_equal(values, np.arange(values.size) + values[0]):
                warn_user(
                    f"The only numeric coordinate is {name!r}, which counts from {values[0]} to "
                    f"{values[-1]}: it was taken for the input. If these are row numbers, make the "
                    "true coordinates known with `set_coords`, or pass `coords=`."
                )

    def _space(self) -> list[str]:
        """Find the horizontal coordinates.

        Attributes are the word of whoever made the data, and names a guess. Planar axes in units
        of length come first; those without may be mere indices beside longitude and latitude.
        """
        planar = self._plane()
        stated = [n for n in planar if n in self.stated["x"] + self.stated["y"]]
        if stated and all(is_length(units_of(self.coordinates[n])) for n in stated):
            found = planar
        else:
            globe = self._pair(self.stated, _GLOBE) or self._pair(self.guessed, _GLOBE)
            found = globe or planar
        if len(found) < 2:
            self._refuse_half_a_globe()
        return found

    def _refuse_half_a_globe(self) -> None:
        half = {role: self._claimed(self.guessed, role) for role in _GLOBE}
        for role, other in (_GLOBE, _GLOBE[::-1]):
            if half[role] is not None and half[other] is None:
                raise CoordinateError(
                    f"Coordinate {half[role]!r} is a {role}, in degrees, which are not a distance, "
                    f"and no {other} varies beside it. Give it its `units` if it is no {role}; add "
                    f"a {other}; or choose by `coords=`."
                )

    def _plane(self) -> list[str]:
        """Find x and y, each by its attributes or else by its name."""
        both = [self._claimed(self.stated, r) or self._claimed(self.guessed, r) for r in ("x", "y")]
        found = [n for n in both if n is not None]
        degrees = [n for n in found if is_degrees(units_of(self.coordinates[n]))]
        return [] if degrees else found

    def _pair(self, roles: Roles, wanted: tuple[str, ...]) -> list[str]:
        found = [self._claimed(roles, role, scalar=True) for role in wanted]
        names = [n for n in found if n is not None]
        # Along a meridian or a parallel one of them is a single number.
        whole = len(names) == len(wanted) and any(self.coordinates[n].ndim for n in names)
        return names if whole else []

    def _claimed(self, roles: Roles, role: str, *, scalar: bool = False) -> str | None:
        claims = roles.get(role, [])
        names = [n for n in claims if self.coordinates[n].ndim] or (claims if scalar else [])
        if len(names) > 1:
            raise CoordinateError(
                f"{names} all claim to be {role!r}. Choose by `coords=`, or correct the attributes."
            )
        return names[0] if names else None

    def _only(self, role: str) -> str | None:
        """Find the coordinate of a role that varies; a guess must be a dimension or a date."""
        stated = [n for n in self.stated.get(role, []) if self._varies(n)]
        names = stated or [
            n
            for n in self.guessed.get(role, [])
            if self._varies(n) and (n in self.coordinates.dims or is_time(self.coordinates[n]))
        ]
        dims = [n for n in names if n in self.coordinates.dims]
        names = dims if len(dims) == 1 else names
        if len(names) > 1:
            raise CoordinateError(f"{names} all claim to be {role!r}. Choose by `coords=`.")
        return names[0] if names else None

    def _varies(self, name: str) -> bool:
        coordinate = self.coordinates[name]
        if coordinate.size < 2 or coordinate.dtype.kind not in "iufmMO":
            return False
        if coordinate.chunks is not None:
            if coordinate.dtype.kind == "O":
                raise CoordinateError(
                    f"Coordinate {name!r} may hold dates but is not in memory. Load it first: "
                    f"`ds.assign_coords({name}=ds[{name!r}].compute())`."
                )
            return True
        if is_time(coordinate):
            calendar_of(coordinate)  # dates of several calendars cannot even be compared
        first = coordinate.values.flat[0]
        return bool((coordinate.values != first).any())

    def arrange(self, coords: object) -> dict[str, list[Member]]:
        """Turn what was asked for into groups."""
        if isinstance(coords, Mapping):
            groups = {str(g): _members(m) for g, m in coords.items()}
        else:
            groups = self._sorted(_members(coords))
        if not groups or any(not members for members in groups.values()):
            raise CoordinateError(f"`coords` names no coordinate: found {coords!r}.")
        plain = [m for members in groups.values() for m in members]
        if len(set(plain)) < len(plain):
            raise CoordinateError(f"`coords` names a coordinate twice: {plain}.")
        for member in plain:
            name = member if isinstance(member, str) else member.name
            if name not in self.coordinates.coords:
                raise CoordinateError(
                    f"No coordinate {name!r} in the data; it has "
                    f"{listed(self.coordinates.coords)}. Correct `coords`, or add it with "
                    "`assign_coords`."
                )
        return groups

    def _sorted(self, members: list[Member]) -> dict[str, list[Member]]:
        """Give times, heights, cycles and the globe groups of their own."""
        groups: dict[str, list[Member]] = {}
        names = [m for m in members if isinstance(m, str)]
        globe = {self.role(n): n for n in names if self.role(n) in _GLOBE}
        space = [globe[role] for role in _GLOBE] if len(globe) == len(_GLOBE) else []
        rest = [n for n in names if n not in space and not self._kind(n)]
        if space:
            groups["space"] = list(space)
            groups.update({n: [n] for n in rest})
        elif rest:
            groups["space"] = list(rest)
        for n in names:
            if n not in space and self._kind(n):
                groups[self._kind(n)] = [*groups.get(self._kind(n), []), n]
        cycles = [m for m in members if isinstance(m, Recurring)]
        for k, member in enumerate(cycles):
            label = "season" if member.period == "year" else "cycle"
            groups[f"{label}{k}" if label in groups else label] = [member]
        return groups

    def _kind(self, name: str) -> str:
        if name not in self.coordinates.coords:
            return ""
        if is_time(self.coordinates[name]):
            return "time"
        return "height" if name in self.stated.get("z", []) else ""

    def group(self, name: str, members: list[Member]) -> CoordinateGroup:
        """Make a group of the kind that its members ask for."""
        cycles = [m for m in members if isinstance(m, Recurring)]
        if cycles:
            if len(members) > 1:
                raise CoordinateError(f"Group {name!r} holds a cycle and more: give each its own.")
            return self._cycle(name, cycles[0])
        names = [m for m in members if isinstance(m, str)]
        roles = {self.role(n): n for n in names}
        if len(names) == 2 and set(roles) == set(_GLOBE):
            return Globe(name, tuple(self._axis(roles[role], role) for role in _GLOBE))
        axes = [self._axis(n, self.role(n)) for n in names]
        if len(axes) > 1 and all(is_length(a.units) for a in axes):
            # One distance has one unit.
            units = "km" if any(a.role in ("x", "y") for a in axes) else axes[0].units
            axes = [replace(a, units=units) for a in axes]
        self._check_plane(name, axes)
        return CoordinateGroup(name, tuple(axes))

    def warn_of_assumed_degrees(self, groups: Sequence[CoordinateGroup]) -> None:
        """Say what names were believed: coordinates without units on the globe."""
        for group in groups:
            names = [a.name for a in group.axes]
            told = all(a.stated or a.name in self.named.get(a.role, []) for a in group.axes)
            if isinstance(group, Globe) and not told:
                warn_user(
                    f"Coordinates {names} have no units; by their names they were taken for "
                    "degrees on the globe. Set `units='degrees_east'` and 'degrees_north' on them, "
                    f"or pass `coords={{'longitude': {names[0]!r}, 'latitude': {names[1]!r}}}`; if "
                    "they are distances in a plane, set their units to what they are."
                )

    def _axis(self, name: str, role: str) -> Axis:
        return Axis.of(self.coordinates[name], role, stated=name in self.stated.get(role, []))

    def _cycle(self, name: str, member: Recurring) -> CoordinateGroup:
        axis = self._axis(member.name, self.role(member.name))
        period = member.period
        if isinstance(period, str):
            if not axis.epoch:
                raise CoordinateError(
                    f"cycle({member.name!r}, {period!r}): {member.name!r} holds no dates. Give the "
                    "period as a number in its units."
                )
            period = 1.0 if period == "day" else calendar_year(axis.calendar)
        return Cycle(name, (axis,), period=float(period))

    def _check_plane(self, group: str, axes: Sequence[Axis]) -> None:
        """Refuse a plane of degrees, or of times and lengths together."""
        degrees = [a.name for a in axes if is_degrees(a.units)]
        if degrees:
            raise CoordinateError(
                f"Coordinates {degrees} of the group {group!r} are in degrees, which are not a "
                "distance. Longitude and latitude together, and nothing else, make a group: give "
                "both, and a group of its own to anything else (a height, say)."
            )
        dates = [a.name for a in axes if a.epoch]
        if dates and len(axes) > 1:
            raise CoordinateError(
                f"Coordinates {[a.name for a in axes]} of the group {group!r} are dates and more, "
                "which have no common distance. Give each a group of its own: "
                f"`coords={{'space': [...], 'time': {dates[0]!r}}}`."
            )


def coordinates_asked(coords: Coords) -> list[str]:
    """Return the names that ``coords`` mentions, in any of its forms."""
    if coords is None:
        return []
    parts = coords.values() if isinstance(coords, Mapping) else [coords]
    members = [member for part in parts for member in _members(part)]
    return [m if isinstance(m, str) else m.name for m in members]


def _members(given: object) -> list[Member]:
    if isinstance(given, str | Recurring):
        return [given]
    if not isinstance(given, Sequence):
        raise TypeError(
            f"`coords` is a name, names, or a mapping of groups to names, found {given!r}."
        )
    for member in given:
        if not isinstance(member, str | Recurring):
            raise TypeError(f"`coords` names coordinates by strings, found {member!r}.")
    return list(given)
