"""The limits between which values lie, as two columns beside a variable. Nothing is computed.

Both are the value itself where that is known. They travel as coordinates that only the reading of
entries sees, so that they are cut into chunks, and taken where values are, as these are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from xcopula.arrays import FloatArray
from xcopula.labels.censoring import AUTO, Rule
from xcopula.labels.coordinates.units import conversion, units_of
from xcopula.labels.flags import find_beside_variable, read_flags

__all__ = ["LIMITS", "lies_elsewhere", "settle_values", "told_by", "with_limits", "without_limits"]

_choose: Any = xr.where  # it has no types

# Names of the coordinates that hold them.
LIMITS = ("__lower__", "__upper__")
_FOUND = "found"

# A value may lie outside its limits by the rounding of single precision.
_ROUNDING = 1e-6


def with_limits(
    name: str, array: xr.DataArray, rule: Rule, data: Mapping[Any, Any]
) -> xr.DataArray:
    """Return a variable with the limits of its values beside it, if it has any.

    Where a value is missing, but a limit is given, it is no longer missing.

    Raises
    ------
    KeyError
        If a name is not in the data.
    TypeError
        If a flag is not boolean, or a limit no number.
    ValueError
        If a limit lies elsewhere than the variable, or is in other units.
    """
    if rule.kind in ("off", "arrays"):
        return array
    values = array.variable.astype(np.float64)
    known: xr.Variable | None
    found: tuple[str, ...] = ()
    if rule.kind == AUTO:
        beside = find_beside_variable(array, data)
        if not beside.names:
            return array
        found = beside.names
        lower, upper, known = _by_convention(name, array, values, beside.minimum, beside.flag)
    elif rule.kind == "flag":
        flag = _find(name, rule.parts[0], array, data)
        lower, upper, known = _by_convention(name, array, values, None, flag)
    elif rule.kind in ("below", "above"):
        lower, upper, known = _by_number(array, values, rule)
    else:
        lower, upper, known = _by_pair(name, array, values, rule, data)
    lower, upper = (_choose(known, end, values) for end in (lower, upper))
    filled = _choose(known & np.isnan(values), _within(lower, upper), values)
    ends = dict(zip(LIMITS, (lower, upper), strict=True))
    out = array.copy(data=filled.transpose(*array.dims).data)
    return out.assign_coords(
        {
            n: (array.dims, end.transpose(*array.dims).data, {_FOUND: found})
            for n, end in ends.items()
        }
    )


def _within(lower: Any, upper: Any) -> Any:
    """Return a number between two limits, of which one at least is finite."""
    middle = _choose(np.isfinite(lower), 0.5 * lower + 0.5 * upper, upper)
    return _choose(np.isfinite(upper), middle, lower)


def _by_convention(
    name: str,
    array: xr.DataArray,
    values: xr.Variable,
    minimum: xr.DataArray | None,
    flag: xr.DataArray | None,
) -> tuple[Any, Any, Any]:
    """Return limits by a flag, or by a detection limit that values do not exceed."""
    if flag is None:
        assert minimum is not None
        limit = _limit(name, minimum, array)
        return -np.inf, limit, _at_most(array.variable, minimum.variable, values, limit)
    _check_place(name, flag, array)
    below, above = read_flags(flag, f"`censored` of {name!r}")
    upper = values
    if minimum is not None:
        limit = _limit(name, minimum, array)
        # A flagged value is a limit itself where none is known, or where it is the larger one: of
        # a diluted specimen, say.
        upper = _choose(np.isnan(limit) | (values > limit), values, limit)
    nothing = xr.zeros_like(values, dtype=bool)
    is_below = nothing if below is None else below & ~np.isnan(upper)
    is_above = nothing if above is None else above & ~np.isnan(values)
    lower = _choose(is_above, values, -np.inf)
    return lower, _choose(is_above, np.inf, upper), is_below | is_above


def _by_number(array: xr.DataArray, values: xr.Variable, rule: Rule) -> tuple[Any, Any, Any]:
    """Return limits by a number: in the precision of the values, which may be single."""
    (limit,) = rule.parts
    if rule.kind == "below":
        return -np.inf, limit, array.variable <= limit
    return limit, np.inf, array.variable >= limit


def _by_pair(
    name: str, array: xr.DataArray, values: xr.Variable, rule: Rule, data: Mapping[Any, Any]
) -> tuple[Any, Any, Any]:
    """Return two limits; a value is what it is where no variable limits it."""
    ends: list[Any] = []
    known = xr.zeros_like(values, dtype=bool)
    for part, open_end in zip(rule.parts, (-np.inf, np.inf), strict=True):
        if part is None or isinstance(part, float):
            ends.append(open_end if part is None else part)
            continue
        limit = _limit(name, _find(name, part, array, data), array)
        known = known | np.isfinite(limit)
        ends.append(_choose(np.isnan(limit), open_end, limit))
    return ends[0], ends[1], known


def _at_most(
    stored: xr.Variable, stored_limit: xr.Variable, values: xr.Variable, limit: xr.Variable
) -> xr.Variable:
    """Tell which values do not exceed a limit, in the coarser precision of the two."""
    kinds = [v.dtype for v in (stored, stored_limit) if v.dtype.kind == "f"]
    coarse = min(kinds, key=lambda kind: kind.itemsize, default=np.dtype(np.float64))
    found: xr.Variable = values.astype(coarse) <= limit.astype(coarse)
    return found


def _find(name: str, part: Any, array: xr.DataArray, data: Mapping[Any, Any]) -> xr.DataArray:
    """Return a flag or a limit, which may be named."""
    if isinstance(part, xr.DataArray):
        return part
    if part == name:
        raise ValueError(
            f"`censored` of {name!r} names {name!r} itself. Name the variable that flags its "
            "values, or that holds their limits."
        )
    found = array.coords.get(part, data.get(part))
    if found is None:
        there = [str(n) for n in (*data, *getattr(data, "coords", ())) if n != name]
        raise KeyError(
            f"`censored` of {name!r} names {part!r}, which is not in the data: they have {there}."
        )
    if not isinstance(found, xr.DataArray):
        raise TypeError(f"`censored` of {name!r}: {part!r} is a {type(found).__name__}.")
    return found.rename(part)


def _limit(name: str, limit: xr.DataArray, array: xr.DataArray) -> xr.Variable:
    """Return a limit as numbers in the units of the variable."""
    called = "a limit" if limit.name is None else repr(limit.name)
    if limit.dtype.kind not in "iuf":
        advice = " A flag alone is no pair: give its name." if limit.dtype.kind == "b" else ""
        raise TypeError(
            f"`censored` of {name!r}: {called} has dtype {limit.dtype}; a limit must be a number."
            f"{advice}"
        )
    _check_place(name, limit, array)
    found, known = units_of(limit), units_of(array)
    factor = conversion(found, known)
    if factor is None:
        raise ValueError(
            f"`censored` of {name!r}: {called} is in {found!r}, but {name!r} is in {known!r}. "
            "Convert the limits and set their `units` attribute."
        )
    return limit.variable.astype(np.float64) * factor


def _check_place(name: str, part: xr.DataArray, array: xr.DataArray) -> None:
    """Refuse a flag or a limit that does not lie where the variable does."""
    called = "an array" if part.name is None else repr(part.name)
    strange = [str(d) for d in part.dims if d not in array.dims]
    if strange:
        raise ValueError(
            f"`censored` of {name!r}: {called} has dims {strange} that {name!r} lacks; it has "
            f"{[str(d) for d in array.dims]}. Select or interpolate it to the values of {name!r}."
        )
    differ = lies_elsewhere(part, array)
    if differ:
        raise ValueError(
            f"`censored` of {name!r}: {called} lies at other places ({differ} differ). Align it "
            f"with `reindex_like`, or give the limits beside the values of {name!r}."
        )


def lies_elsewhere(part: xr.DataArray, array: xr.DataArray) -> list[str]:
    """Return the dims and coordinates by which an array differs from a variable."""
    sizes = [str(d) for d in part.dims if part.sizes[d] != array.sizes[d]]
    columns: dict[Any, Any] = {c: label.variable for c, label in part.coords.items()}
    labels = [
        str(c)
        for c in part.coords
        if c in array.coords and set(part[c].dims) <= set(part.dims)
        # What is not in memory is compared by its name in the graph, or not at all.
        if part[c].chunks is None and array[c].chunks is None
        if str(c) not in sizes and not columns[c].equals(array[c].variable)
    ]
    return sizes or labels


def without_limits(array: xr.DataArray) -> xr.DataArray:
    """Return a variable without the columns that :func:`with_limits` puts beside it."""
    return array.drop_vars([n for n in LIMITS if n in array.coords])


def told_by(array: xr.DataArray) -> tuple[str, ...]:
    """Return the names of the variables in which limits were found."""
    return tuple(array.coords[LIMITS[0]].attrs[_FOUND]) if LIMITS[0] in array.coords else ()


def settle_values(
    name: str, values: FloatArray, limits: FloatArray
) -> tuple[FloatArray, FloatArray | None]:
    """Check the limits (2, n) of values, and let a finite number within stand for each interval.

    The stored value does, unless it is not positive although a positive value is possible: then
    half the upper limit does, from which laws of positive values can start.

    Returns
    -------
    values : ndarray (n,)
    limits : ndarray (2, n) or None
        None if no value is an interval.

    Raises
    ------
    ValueError
        If a lower limit is above its upper one, or a value outside its limits.
    """
    # What is open on both sides is what it is.
    lower, upper = np.where(np.isinf(limits).all(axis=0), values, limits)
    crossed = np.flatnonzero(lower > upper)
    if crossed.size:
        k = crossed[0]
        raise ValueError(
            f"`censored` of {name!r}: {crossed.size} lower limits are above their upper ones "
            f"(first: {lower[k]:g} > {upper[k]:g}). Check which is which, and their units."
        )
    interval = lower < upper
    ends = np.where(np.isfinite(upper), upper, lower)
    values = np.where(interval & np.isinf(values), ends, values)
    inside = np.clip(values, lower, upper)
    with np.errstate(invalid="ignore"):  # an infinite value is refused elsewhere
        outside = np.flatnonzero(np.abs(values - inside) > _ROUNDING * np.abs(inside))
    if outside.size:
        k = outside[0]
        raise ValueError(
            f"`censored` of {name!r}: {outside.size} values lie outside their limits (first: "
            f"{values[k]:g}, not between {lower[k]:g} and {upper[k]:g}). Correct the limits, or "
            "set such values to NaN: the limits are then all that is known."
        )
    if not interval.any():
        return inside, None
    low = interval & (inside <= 0.0) & (upper > 0.0) & np.isfinite(upper)
    return np.where(low, 0.5 * upper, inside), np.stack([lower, upper])
