"""Check single arguments: whole numbers, True or False, and the names of options."""

from __future__ import annotations

import difflib
import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from xcopula.warn import shown

__all__ = ["check_flag", "check_integer", "check_methods", "check_options", "unknown_option"]

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type[Any])


def check_options(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that suggests a name in place of an option that it does not have."""
    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return function  # which passes them on
    names = [name for name in parameters if name != "self"]

    @functools.wraps(function)
    def checked(*arguments: P.args, **options: P.kwargs) -> R:
        for option in options:
            if option not in names:
                raise unknown_option(function.__name__, option, names)
        return function(*arguments, **options)

    return checked


def check_methods(cls: C) -> C:
    """Return a class whose public methods suggest names as :func:`check_options` does."""
    for name, method in list(vars(cls).items()):
        if inspect.isfunction(method) and not name.startswith("_"):
            setattr(cls, name, check_options(method))
    return cls


def unknown_option(function: str, option: str, known: Sequence[str]) -> TypeError:
    """Return the error of an option that a function does not have, with the nearest name."""
    near = difflib.get_close_matches(option, known, n=1, cutoff=0.7)
    advice = f"Did you mean `{near[0]}`?" if near else f"It takes {', '.join(known)}."
    return TypeError(f"`{function}` has no option {option!r}. {advice}")


def check_integer(name: str, value: object, *, least: int = 0) -> int:
    """Return a whole number of any integer type.

    Raises
    ------
    TypeError
        If it is no whole number.
    ValueError
        If it is less than ``least``.
    """
    try:
        if isinstance(value, bool | np.bool_):  # numpy 2.0 only warns of the latter
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"`{name}` must be an integer, found {value!r}.") from None
    if number < least:
        raise ValueError(f"`{name}` must be at least {least}, found {number}.")
    return number


def check_flag(name: str, value: object) -> bool:
    """Return True or False.

    Raises
    ------
    TypeError
        If it is neither.
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"`{name}` must be True or False, found {shown(value)}.")
    return bool(value)
