"""What ``censored=`` says: how it is told which values of a variable are known as intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from xcopula.warn import shown

__all__ = ["AUTO", "Censored", "Rule", "rules_of"]

Censored = str | Mapping[str, Any] | None

AUTO = "auto"
_WAYS = (
    "Give the name of a boolean variable (True: the stored value is an upper limit), a number "
    "(values at or below it are below it), or a pair (lower, upper) of variables"
)


@dataclass(frozen=True)
class Rule:
    """How it is told which values of one variable are known as intervals.

    Attributes
    ----------
    kind : {"auto", "off", "flag", "below", "above", "between", "arrays"}
        By what stands beside the variable by the CF conventions; not at all; by a flag; by a
        number that values do not exceed, or are not less than; by two limits; or, once the data
        have been read, by arrays that were given.
    parts : tuple
        Names, numbers and None, or arrays while these are to be read. Of "auto" what was found.
    """

    kind: str = AUTO
    parts: tuple[Any, ...] = ()

    @property
    def tells(self) -> bool:
        """Whether it may make intervals of some values: by "auto" only if something was found."""
        return self.kind != "off" and (self.kind != AUTO or bool(self.parts))

    @property
    def plain(self) -> Rule:
        """The rule as a model keeps it: without arrays."""
        if any(isinstance(part, xr.DataArray) for part in self.parts):
            return Rule("arrays")
        return self

    def describe(self) -> str:
        """Say in a few words where the limits come from."""
        named = " and ".join(repr(p) for p in self.parts if isinstance(p, str))
        return {
            AUTO: f"found in {named}",
            "flag": f"flagged by {named}",
            "between": f"limits in {named}",
            "arrays": "limits given as arrays",
        }.get(self.kind, "by one limit for all")


def rules_of(censored: object, names: Sequence[str]) -> tuple[Rule, ...]:
    """Return how it is told of each variable which of its values are intervals.

    Parameters
    ----------
    censored : "auto", None or mapping
        As in :func:`xcopula.fit`. Variables that a mapping does not name are left to the data.
    names : sequence of str
        The variables of the model.

    Raises
    ------
    KeyError
        If another variable is named.
    TypeError, ValueError
        If something cannot be a limit.
    """
    if censored is None or (isinstance(censored, str) and censored == AUTO):
        return (Rule("off" if censored is None else AUTO),) * len(names)
    if not isinstance(censored, Mapping):
        raise TypeError(
            "`censored` must be 'auto', None, or a mapping such as {'Cd': 0.2}, found "
            f"{shown(censored)}."
        )
    unknown = [n for n in censored if n not in names]
    if unknown:
        raise KeyError(
            f"`censored` names {unknown}, but the variables of the model are {list(names)}."
        )
    return tuple(_rule(name, censored.get(name, AUTO)) for name in names)


def _rule(name: str, given: object) -> Rule:
    if given is None:
        return Rule("off")
    if isinstance(given, str):
        return Rule(AUTO) if given == AUTO else Rule("flag", (given,))
    if isinstance(given, xr.DataArray):
        return Rule("flag", (given,))
    if isinstance(given, tuple | list):
        return _pair(name, tuple(given))
    return Rule("below", (_number(name, given, _WAYS),))


def _pair(name: str, given: tuple[Any, ...]) -> Rule:
    if len(given) != 2:
        raise ValueError(
            f"`censored` of {name!r} must be a pair (lower, upper), found {len(given)} entries. "
            "None leaves a side open."
        )
    parts = tuple(
        p
        if p is None or isinstance(p, str | xr.DataArray)
        else _number(name, p, "A limit is a number, a variable or its name, or None")
        for p in given
    )
    lower, upper = parts = tuple(None if _is_infinite(p) else p for p in parts)
    numbers = [isinstance(p, float) for p in parts]
    if lower is None and upper is None:
        raise ValueError(
            f"`censored` of {name!r} leaves both sides open. Give a limit, or None instead of the "
            "pair."
        )
    if all(numbers):
        raise ValueError(
            f"`censored` of {name!r} is a pair of two numbers: every value would lie between "
            f"{lower:g} and {upper:g}. Give {upper:g} alone if values at or below it are below "
            f"it, ({lower:g}, None) if those at or above it are above it, or variables that hold "
            "the limits of each value."
        )
    if upper is None and numbers[0]:
        return Rule("above", (lower,))
    if lower is None and numbers[1]:
        return Rule("below", (upper,))
    return Rule("between", parts)


def _is_infinite(part: object) -> bool:
    return isinstance(part, float) and bool(np.isinf(part))


def _number(name: str, given: object, advice: str) -> float:
    if isinstance(given, bool | np.bool_) or not isinstance(given, int | float | np.number):
        raise TypeError(f"`censored` of {name!r} cannot be {shown(given)}. {advice}.")
    if np.isnan(given):
        raise ValueError(f"`censored` of {name!r} is NaN. {advice}.")
    return float(given)
