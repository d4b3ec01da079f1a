"""Check single arguments: whole numbers, and True or False."""

from __future__ import annotations

import operator

import numpy as np

from xcopula.warn import shown

__all__ = ["check_flag", "check_integer"]


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
