"""What ``coords=`` asks for: names, sequences of names, or groups of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xcopula.labels.coordinates.cycles import Recurring
from xcopula.warn import shown

__all__ = ["Coords", "Member", "check_group", "check_members", "coordinates_asked"]

Member = str | Recurring
Coords = Member | Sequence[Member] | Mapping[str, Member | Sequence[Member]] | None


def coordinates_asked(coords: Coords) -> list[str]:
    """Return the names in ``coords``, whatever its form."""
    if coords is None:
        return []
    parts = coords.values() if isinstance(coords, Mapping) else [coords]
    found = [member for part in parts for member in check_members(part)]
    return [m if isinstance(m, str) else m.name for m in found]


def check_group(name: object) -> str:
    """Return the name of a group if it is one."""
    if not isinstance(name, str) or not name:
        raise TypeError(
            f"`coords` must name its groups by strings, found {shown(name)}. Use "
            "`coords={'space': ['x', 'y']}`, say."
        )
    return name


def check_members(given: object) -> list[Member]:
    """Return the members of a group: names, and cycles of names."""
    if isinstance(given, str | Recurring):
        return [given]
    if not isinstance(given, Sequence) or isinstance(given, bytes):
        raise TypeError(
            "`coords` must be a name, a sequence of names, or a mapping of groups to names, "
            f"found {shown(given)}."
        )
    for member in given:
        if not isinstance(member, str | Recurring):
            raise TypeError(f"`coords` must name coordinates by strings, found {shown(member)}.")
    return list(given)
