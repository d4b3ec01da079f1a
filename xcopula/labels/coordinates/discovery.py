"""Decide which coordinates of the training data are the inputs of a model."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import xarray as xr

from xcopula.errors import CoordinateError
from xcopula.labels.coordinates.asked import Coords, Member, check_group, check_members
from xcopula.labels.coordinates.axis import Axis
from xcopula.labels.coordinates.cycles import Recurring
from xcopula.labels.coordinates.extent import Extent
from xcopula.labels.coordinates.groups import CoordinateGroup, Cycle, Globe
from xcopula.labels.coordinates.projection import find_projection
from xcopula.labels.coordinates.roles import (
    ROLES,
    Roles,
    coordinates_of,
    counts_rows,
    guessed_roles,
    listed,
    look_alikes,
    refuse_text_dates,
    stated_roles,
)
from xcopula.labels.coordinates.system import CoordinateSystem
from xcopula.labels.coordinates.times import calendar_of, calendar_year, epoch_of, is_time
from xcopula.labels.coordinates.units import conversion, is_degrees, is_length, units_of
from xcopula.warn import shown, warn_user

__all__ = ["find_coordinates"]

_log = logging.getLogger("xcopula")

_GLOBE = ("longitude", "latitude")
_LISTED = 10


def find_coordinates(
    data: xr.Dataset | xr.DataArray,
    coords: Coords = None,
    *,
    ard: bool | Sequence[str] = False,
    extents: Mapping[str, Extent] | None = None,
    columns: Sequence[str] = (),
) -> CoordinateSystem:
    """Decide which coordinates of the training data are the inputs.

    Parameters
    ----------
    data : Dataset or DataArray
        Data with the coordinates of the primary variable.
    coords : None, str, sequence or mapping
        The inputs. None finds them by CF attributes, then by name. A name or a sequence of names
        is sorted into groups: longitude and latitude, dates, and heights (known by their
        attributes) each make a group; the rest make the group "space", or one group each beside
        longitude and latitude. A mapping of group names to names gives the groups. Its keys may be
        "longitude" and "latitude", each with one name. :func:`cycle` marks a periodic coordinate.
    ard : bool or sequence of str
        Groups in which each coordinate has its own length scale; True means all groups that can.
    extents : mapping of str to Extent, optional
        How far coordinates reach that are not in memory.
    columns : sequence of str
        Variables beside the coordinates, for a message.

    Raises
    ------
    CoordinateError
        If no coordinate is found, or one is missing, holds neither numbers nor dates, or has no
        distance in common with the others of its group.
    """
    source = _Source.of(coordinates_of(data), extents or {}, columns)
    if isinstance(coords, Mapping) and any(key in coords for key in _GLOBE):
        source, coords = source.naming_globe(coords)
    groups = source.discover() if coords is None else source.arrange(coords)
    made = [source.group(name, members) for name, members in groups.items()]
    if coords is not None:
        source.warn_of_assumed_degrees(made)
    chosen = _ard_groups(ard, made)
    system = CoordinateSystem(
        tuple(replace(group, ard=True) if group.name in chosen else group for group in made),
        projection=find_projection(data),
    )
    _log.info("Inputs: %s", {g.name: [a.name for a in g.axes] for g in system.groups})
    return system


def _ard_groups(ard: bool | Sequence[str], groups: list[CoordinateGroup]) -> list[str]:
    may = [g.name for g in groups if not isinstance(g, Globe | Cycle)]
    if isinstance(ard, bool | np.bool_):
        return may if ard else []
    if not isinstance(ard, Iterable):
        raise TypeError(f"`ard` is True, False or the names of groups, found {shown(ard)}.")
    chosen = [ard] if isinstance(ard, str) else list(ard)
    unknown = [g for g in chosen if g not in may]
    if unknown:
        raise CoordinateError(
            f"`ard` names groups {unknown}; the groups that can have a length scale for each "
            f"coordinate are {may}."
        )
    return chosen


@dataclass(frozen=True)
class _Source:
    """The coordinates of the training data, and the roles that they claim."""

    coordinates: xr.Dataset
    stated: Roles
    guessed: Roles
    extents: Mapping[str, Extent]
    columns: Sequence[str] = ()
    named: Roles = field(default_factory=dict)  # by ``coords``, which overrides the others

    @classmethod
    def of(
        cls, coordinates: xr.Dataset, extents: Mapping[str, Extent], columns: Sequence[str]
    ) -> _Source:
        stated, guessed = stated_roles(coordinates), guessed_roles(coordinates)
        return cls(coordinates, stated, guessed, extents, columns)

    def role(self, name: str) -> str:
        """Return the role of a coordinate: from ``coords``, its attributes, or a guess."""
        for roles in (self.named, self.stated, self.guessed):
            for role in ROLES:
                if name in roles.get(role, []):
                    return role
        return ""

    def naming_globe(self, coords: Mapping[str, Any]) -> tuple[_Source, dict[str, Any]]:
        """Take longitude and latitude as ``coords`` names them, and make them a group."""
        missing = [key for key in _GLOBE if not isinstance(coords.get(key), str)]
        if missing:
            raise CoordinateError(
                "`coords` must name one coordinate for longitude and one for latitude; "
                f"{missing[0]!r} is {coords.get(missing[0])!r}."
            )
        if "space" in coords:
            raise CoordinateError(
                "`coords` has longitude and latitude, which make the group 'space', and another "
                "group 'space'. Rename that group."
            )
        source = replace(self, named={role: [coords[role]] for role in _GLOBE})
        others = {group: m for group, m in coords.items() if group not in _GLOBE}
        return source, {"space": [coords[role] for role in _GLOBE], **others}

    def discover(self) -> dict[str, list[Member]]:
        """Find the groups by CF role. A coordinate that does not vary is not an input."""
        space = self._space()
        groups: dict[str, list[Member]] = {"space": list(space)} if space else {}
        for group, role in (("height", "z"), ("time", "time")):
            found = self._only(role)
            if found and found not in space:
                groups[group] = [found]
        if "time" not in groups:
            refuse_text_dates(self.coordinates)
        if groups:
            alike = look_alikes(self.columns)
            if alike and not space:
                warn_user(
                    f"The only inputs are {[n for m in groups.values() for n in m]}; columns "
                    f"{alike[:_LISTED]} look like coordinates. Pass `coords=` with the names of "
                    "all inputs."
                )
            return groups
        numeric = [
            str(n) for n, c in self.coordinates.coords.items() if c.dtype.kind in "iuf" and c.ndim
        ]
        rows = [n for n in numeric if counts_rows(self.coordinates, n)]
        if len(numeric) == 1 and not rows:
            return {"space": list(numeric)}
        planar = self.guessed["x"] + self.guessed["y"]
        degrees = [n for n in planar if is_degrees(units_of(self.coordinates[n]))]
        if len(degrees) == 2:
            raise CoordinateError(
                f"Coordinates {degrees} are in degrees, which are not a distance. If they are "
                f"longitude and latitude, pass `coords={{'longitude': {degrees[0]!r}, 'latitude': "
                f"{degrees[1]!r}}}`. If they belong to a rotated pole, use the true longitude and "
                "latitude."
            )
        counted = f", where {rows[0]!r} only counts rows" if rows else ""
        columns = look_alikes(self.columns)[:_LISTED]
        beside = f" The columns {columns} look like coordinates." if columns else ""
        raise CoordinateError(
            "Cannot tell which coordinates are the inputs: the data have "
            f"{listed(self.coordinates.coords)}{counted}.{beside} Pass `coords="
            f"{columns[:2] or ['x', 'y']}` with their names, or set their CF attributes, such as "
            "`units='degrees_north'` or `axis='X'`."
        )

    def _space(self) -> list[str]:
        """Find the horizontal coordinates.

        Attributes come before names, which are only a guess. Planar axes in units of length come
        before longitude and latitude; planar axes without units may be mere indices.
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
                    f"and there is no {other} to go with it. Add a {other}; set the `units` if it "
                    f"is not a {role}; or name the inputs in `coords=`."
                )

    def _plane(self) -> list[str]:
        """Find x and y, each by its attributes or by its name."""
        both = [self._claimed(self.stated, r) or self._claimed(self.guessed, r) for r in ("x", "y")]
        found = [n for n in both if n is not None]
        degrees = [n for n in found if is_degrees(units_of(self.coordinates[n]))]
        return [] if degrees else found

    def _pair(self, roles: Roles, wanted: tuple[str, ...]) -> list[str]:
        found = [self._claimed(roles, role, scalar=True) for role in wanted]
        names = [n for n in found if n is not None]
        # Along a meridian or a parallel, one of the two is a single number.
        whole = len(names) == len(wanted) and any(self.coordinates[n].size > 1 for n in names)
        return names if whole else []

    def _claimed(self, roles: Roles, role: str, *, scalar: bool = False) -> str | None:
        claims = roles.get(role, [])
        # Along a dim of length one a coordinate is a single number too.
        names = [n for n in claims if self.coordinates[n].size > 1] or (claims if scalar else [])
        return _one(names, role)

    def _only(self, role: str) -> str | None:
        """Find the one coordinate of a role that varies. A guess must be a dim or hold dates."""
        stated = [n for n in self.stated.get(role, []) if self._varies(n)]
        names = stated or [
            n
            for n in self.guessed.get(role, [])
            if self._varies(n) and (n in self.coordinates.dims or is_time(self.coordinates[n]))
        ]
        dims = [n for n in names if n in self.coordinates.dims]
        return _one(dims if len(dims) == 1 else names, role)

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
            return name not in self.extents or self.extents[name].varies
        if is_time(coordinate):
            calendar_of(coordinate)  # refuse several calendars, which cannot be compared
        first = coordinate.values.flat[0]
        return bool((coordinate.values != first).any())

    def arrange(self, coords: object) -> dict[str, list[Member]]:
        """Turn ``coords`` into groups."""
        if isinstance(coords, Mapping):
            groups = {check_group(g): check_members(m) for g, m in coords.items()}
        else:
            groups = self._sorted(check_members(coords))
        if not groups or any(not members for members in groups.values()):
            raise CoordinateError(f"`coords` names no coordinate, found {shown(coords)}.")
        plain = [m for members in groups.values() for m in members]
        if len(set(plain)) < len(plain):
            raise CoordinateError(f"`coords` names a coordinate twice: {plain}. Name it once.")
        for member in plain:
            name = member if isinstance(member, str) else member.name
            if name not in self.coordinates.coords:
                raise CoordinateError(
                    f"No coordinate {name!r} in the data, which have "
                    f"{listed(self.coordinates.coords)}. Correct `coords`, or add it with "
                    "`assign_coords`."
                )
        return groups

    def _sorted(self, members: list[Member]) -> dict[str, list[Member]]:
        """Sort names into groups: times, heights, cycles and the globe each have their own."""
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
                raise CoordinateError(
                    f"Group {name!r} holds a cycle and other coordinates. Give the cycle a group "
                    "of its own."
                )
            return self._cycle(name, cycles[0])
        names = [m for m in members if isinstance(m, str)]
        roles = {self.role(n): n for n in names}
        if len(names) == 2 and set(roles) == set(_GLOBE):
            return Globe(name, tuple(self._axis(roles[role], role) for role in _GLOBE))
        axes = [self._axis(n, self.role(n)) for n in names]
        if len(axes) > 1 and all(is_length(a.units) for a in axes):
            # One distance needs one unit.
            units = "km" if any(a.role in ("x", "y") for a in axes) else axes[0].units
            axes = [replace(a, units=units) for a in axes]
        self._check_plane(name, axes)
        return CoordinateGroup(name, tuple(axes))

    def warn_of_assumed_degrees(self, groups: Sequence[CoordinateGroup]) -> None:
        """Warn of coordinates without units that their names made longitude and latitude."""
        for group in groups:
            names = [a.name for a in group.axes]
            told = all(a.stated or a.name in self.named.get(a.role, []) for a in group.axes)
            if isinstance(group, Globe) and not told:
                warn_user(
                    f"Coordinates {names} have no units 'degrees_east' and 'degrees_north'; "
                    "because of their names, they were taken for degrees on the globe. Set these "
                    f"units, or pass `coords={{'longitude': {names[0]!r}, 'latitude': "
                    f"{names[1]!r}}}`. If they are distances in a plane, set their true units."
                )

    def _axis(self, name: str, role: str) -> Axis:
        axis = Axis.of(self.coordinates[name], role, stated=name in self.stated.get(role, []))
        if axis.epoch and name in self.extents:
            return replace(axis, epoch=epoch_of(self.coordinates[name], self.extents[name].low))
        return axis

    def _cycle(self, name: str, member: Recurring) -> CoordinateGroup:
        axis = self._axis(member.name, self.role(member.name))
        period = member.period
        if isinstance(period, str):
            if not axis.epoch:
                raise CoordinateError(
                    f"cycle({member.name!r}, {period!r}): {member.name!r} holds no dates. Give the "
                    f"period as a number, in the units of {member.name!r}."
                )
            period = 1.0 if period == "day" else calendar_year(axis.calendar)
        factor = conversion(axis.given, axis.units) or 1.0  # the data may be in m, the axis in km
        return Cycle(name, (axis,), period=factor * float(period))

    def _check_plane(self, group: str, axes: Sequence[Axis]) -> None:
        """Refuse a plane of degrees, or of dates and other coordinates."""
        degrees = [a.name for a in axes if is_degrees(a.units)]
        if degrees:
            raise CoordinateError(
                f"Coordinates {degrees} of the group {group!r} are in degrees, which are not a "
                "distance. Only longitude and latitude together can be in degrees: name both, and "
                "give each other coordinate, such as a height, a group of its own. For any other "
                f"angle use `cycle({degrees[0]!r}, 360)`."
            )
        dates = [a.name for a in axes if a.epoch]
        if dates and len(axes) > 1:
            raise CoordinateError(
                f"Coordinates {[a.name for a in axes]} of the group {group!r} include dates, which "
                "have no distance in common with the others. Give each a group of its own: "
                f"`coords={{'space': [...], 'time': {dates[0]!r}}}`."
            )


def _one(names: Sequence[str], role: str) -> str | None:
    if len(names) > 1:
        raise CoordinateError(
            f"{names} all claim to be {role!r}. Name the inputs in `coords=`, or correct the "
            "attributes."
        )
    return names[0] if names else None
