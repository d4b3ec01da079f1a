"""Options of a fit from a file: TOML, with names for the objects that Python would be given."""

from __future__ import annotations

import dataclasses
import inspect
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

__all__ = [
    "as_number",
    "named_coordinates",
    "parse_censored",
    "parse_hours",
    "parse_law",
    "parse_limits",
    "read_config",
]

# What a file cannot say of a fit.
_NOT_HERE = ("compute", "progress")


def read_config(path: Path) -> dict[str, Any]:
    """Return the options of a fit, its primary and its secondaries, from a file of TOML.

    Raises
    ------
    FileNotFoundError
    KeyError
        If an option is unknown, or an object has no such option.
    ValueError
        If the file is no TOML.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist.")
    try:
        with open(path, "rb") as file:
            found = tomllib.load(file)
    except ValueError as error:  # of TOML, or of UTF-8
        raise ValueError(f"{path} is no TOML: {error}.") from None
    _check_keys(found, ("primary", "secondary", *_options()), str(path))
    readers = {
        "coords": _coords,
        "marginals": _marginals,
        "censored": parse_censored,
        "support": _support,
        "method": _method,
        "solver": _solver,
        "max_hours": parse_hours,
    }
    return {key: readers[key](value) if key in readers else value for key, value in found.items()}


def _options() -> list[str]:
    from xcopula.fitting import fit

    parameters = inspect.signature(fit).parameters.values()
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in _NOT_HERE]


def _check_keys(found: Collection[str], known: Collection[str], what: str) -> None:
    unknown = [key for key in found if key not in known]
    if unknown:
        raise KeyError(f"{what} has no option {unknown[0]!r}. Choose from: {', '.join(known)}.")


def parse_hours(given: Any) -> Any:
    """Return a number of hours, or None for "none": TOML has no word for it."""
    return None if given == "none" else given


def parse_censored(given: Any) -> Any:
    """Return which values are limits, by variable: TOML has no None, "none" stands for it."""
    if isinstance(given, Mapping):
        return {name: parse_limits(each) for name, each in given.items()}
    return None if given == "none" else given


def parse_limits(given: Any) -> Any:
    """Return the limits of a variable; an empty side of a pair is open."""
    if isinstance(given, list):
        return tuple(None if side in ("", "none") else side for side in given)
    return None if given == "none" else given


def _support(given: Any) -> Any:
    """Return the ends of the values, by variable or of all; an empty end is open."""
    if isinstance(given, Mapping):
        return {name: parse_limits(each) for name, each in given.items()}
    return parse_limits(given)


def as_number(text: str) -> Any:
    """Return a number that was written as text, and any other text as it is."""
    try:
        return float(text)
    except ValueError:
        return text


def parse_law(given: Any) -> Any:
    """Return a law from its name, from ``law~covariate+covariate``, or from a table.

    A table has ``law``, and ``on``, ``degree`` and ``link`` of :func:`xcopula.regress`, or ``by``,
    the key of :func:`xcopula.by`.
    """
    from xcopula.marginals import by, regress

    if isinstance(given, str) and "~" in given:
        name, _, on = given.partition("~")
        return regress(name.strip() or "auto", [part.strip() for part in on.split("+")])
    if not isinstance(given, Mapping):
        return given
    _check_keys(given, ("law", "on", "degree", "link", "by"), "A law")
    law: Any = given.get("law", "auto")
    rest = {k: v for k, v in given.items() if k not in ("law", "by")}
    if "by" in given:
        law = by(given["by"], law)
    return regress(law, **rest) if rest else law


def _marginals(given: Any) -> Any:
    if isinstance(given, Mapping):
        return {name: parse_law(law) for name, law in given.items()}
    return parse_law(given)


def _coords(given: Any) -> Any:
    if isinstance(given, Mapping):
        return {group: _members(members) for group, members in given.items()}
    return _members(given)


def _members(given: Any) -> Any:
    return [_member(m) for m in given] if isinstance(given, list) else _member(given)


def _member(given: Any) -> Any:
    from xcopula.labels.coordinates import cycle

    if not isinstance(given, Mapping):
        return given
    _check_keys(given, ("cycle", "period"), "A coordinate")
    return cycle(given.get("cycle"), given.get("period", "year"))  # type: ignore[arg-type]


def named_coordinates(coords: Any) -> list[str]:
    """Return the names of all coordinates of ``coords=``."""
    if coords is None:
        return []
    if isinstance(coords, Mapping):
        return [name for members in coords.values() for name in named_coordinates(members)]
    members = coords if isinstance(coords, list) else [coords]
    return list(dict.fromkeys(str(getattr(member, "name", member)) for member in members))


def _method(given: Any) -> Any:
    from xcopula.methods import resolve_method

    return _named(given, resolve_method, "method")


def _solver(given: Any) -> Any:
    from xcopula.solvers import resolve_solver

    return _named(given, resolve_solver, "solver")


def _named(given: Any, resolve: Any, what: str) -> Any:
    """Return an object from a table with its name and its options."""
    if not isinstance(given, Mapping):
        return given
    if "name" not in given:
        raise KeyError(f"The {what} has no name: give one, as in {what} = {{name = ...}}.")
    plain = resolve(given["name"])
    rest = {key: value for key, value in given.items() if key != "name"}
    known = [f.name for f in dataclasses.fields(plain)] if dataclasses.is_dataclass(plain) else []
    _check_keys(rest, known, f"{what} {given['name']!r}")
    return dataclasses.replace(plain, **rest) if rest else given["name"]
