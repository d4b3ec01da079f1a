"""Flags and detection limits that stand beside a variable, as the CF conventions have them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

__all__ = ["Beside", "Flags", "find_beside_variable", "read_flags"]

# What a flag may mean: that the value is an upper limit, or a lower one. "above_detection_limit"
# as a rule means an ordinary value.
_BELOW = re.compile(
    r"(.*_)?(below|under|less_than)_(.*_)?"
    r"(detection|quantification|quantitation|reporting|lod|loq|mdl|limit)(_.*)?"
    r"|(.*_)?(non_?detect(s|ed|ion)?|not_detect(ed|able)|bdl|left_censored)"
)
_ABOVE = re.compile(
    r"(.*_)?(saturat(ed|ion)|over_?range|right_censored)(_.*)?"
    r"|(.*_)?(above|over|exceeds)_(.*_)?(upper|maximum|max|range|saturation)(_.*)?"
)
_DENIED = re.compile(r"(.*_)?(not|no|un)_(below|under|less|above|over|exceed|saturat).*")


class Flags(NamedTuple):
    """Which values are upper limits, and which are lower ones; None where no flag means it."""

    below: xr.Variable | None
    above: xr.Variable | None


class Beside(NamedTuple):
    """What the data say of a variable's limits: a detection limit, and flags."""

    minimum: xr.DataArray | None
    flag: xr.DataArray | None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables that say it."""
        return tuple(str(part.name) for part in self if part is not None)


def find_beside_variable(array: xr.DataArray, data: Mapping[Any, Any]) -> Beside:
    """Find the ancillary variables that tell of the limits of a variable.

    They are named by its attribute ``ancillary_variables``. A detection limit has the standard
    name of the variable followed by ``detection_minimum``, a flag has ``flag_meanings`` one of
    which says that a value is below a limit, or saturated.
    """
    listed = array.attrs.get("ancillary_variables") or array.encoding.get("ancillary_variables")
    minimum = flag = None
    for name in str(listed or "").split():
        found = array.coords.get(name, data.get(name))
        if not isinstance(found, xr.DataArray):
            continue
        standard = str(found.attrs.get("standard_name", "")).split()
        if standard[-1:] == ["detection_minimum"]:
            minimum = found.rename(name)
        elif any(_means(found, pattern) for pattern in (_BELOW, _ABOVE)):
            flag = found.rename(name)
    return Beside(minimum, flag)


def _meanings(flag: xr.DataArray) -> list[str]:
    given = flag.attrs.get("flag_meanings", "")
    words = given if isinstance(given, list | tuple | np.ndarray) else str(given).split()
    return [re.sub(r"[^a-z0-9]+", "_", str(word).lower()).strip("_") for word in words]


def _means(flag: xr.DataArray, pattern: re.Pattern[str]) -> list[int]:
    """Return which of the meanings of a flag say something."""
    return [
        k
        for k, meaning in enumerate(_meanings(flag))
        if pattern.fullmatch(meaning) and not _DENIED.fullmatch(meaning)
    ]


def read_flags(flag: xr.DataArray, what: str) -> Flags:
    """Return which values a flag calls upper or lower limits; nothing is computed.

    A boolean flag is True where the value is an upper limit.

    Raises
    ------
    TypeError
        If it is neither boolean nor has it meanings.
    ValueError
        If no meaning says that a value is a limit, or its attributes do not fit each other.
    """
    if flag.dtype.kind == "b":
        return Flags(flag.variable, None)
    meanings = _meanings(flag)
    if not meanings:
        raise TypeError(
            f"{what}: {flag.name!r} has dtype {flag.dtype}; a flag must be boolean, or have CF "
            f"attributes `flag_values` and `flag_meanings`. Use `ds[{flag.name!r}] == 1` for a "
            "flag of zeros and ones, or give a pair (lower, upper) of limits."
        )
    below, above = _means(flag, _BELOW), _means(flag, _ABOVE)
    if not below and not above:
        raise ValueError(
            f"{what}: no flag of {flag.name!r} says that a value is below a limit; its "
            f"`flag_meanings` are {', '.join(meanings)}. Give a boolean variable."
        )
    values, masks = (_numbers(flag.attrs.get(f"flag_{part}")) for part in ("values", "masks"))
    if any(n is not None and len(n) != len(meanings) for n in (values, masks)) or (
        values is None and masks is None
    ):
        raise ValueError(
            f"{what}: {flag.name!r} has {len(meanings)} `flag_meanings`, which need as many "
            "`flag_values` or `flag_masks`. Correct its attributes, or give a boolean variable."
        )
    return Flags(*(_any(flag.variable, values, masks, some) for some in (below, above)))


def _numbers(given: Any) -> list[int] | None:
    """Return numbers of an attribute, also where they were written as text: "0b, 1b"."""
    if given is None:
        return None
    if isinstance(given, str):
        given = [part.strip("bsBSlL") for part in re.split(r"[\s,]+", given.strip())]
    return [int(number) for number in np.atleast_1d(given)]


def _any(
    flag: xr.Variable, values: list[int] | None, masks: list[int] | None, some: list[int]
) -> xr.Variable | None:
    """Tell where any of some meanings is set."""
    found = None
    for k in some:
        if masks is None:
            assert values is not None
            own = flag == values[k]
        else:
            # A flag with gaps was decoded to floating point numbers.
            gaps: Any = flag
            whole = gaps.fillna(0).astype(np.int64) if flag.dtype.kind == "f" else flag
            bits = whole & masks[k]
            own = bits != 0 if values is None else bits == values[k]
        found = own if found is None else found | own
    return found
