"""Numbers that stand for missing values: those of attributes are gaps, others are warned of."""

from __future__ import annotations

import numpy as np
import xarray as xr

from xcopula.arrays import FloatArray
from xcopula.warn import warn_user

__all__ = ["find_fill", "warn_of_fill", "without_fill"]

_ATTRIBUTES = ("_FillValue", "missing_value")
# Usual ones: nines, the ends of whole numbers, and large floats such as the default of netCDF.
_NINES = [sign * (10.0**k - 1.0) for k in range(2, 7) for sign in (-1, 1)]
_WHOLE = [-999.25, -32767.0, -32768.0, 32767.0, 65535.0, -2147483647.0]
_USUAL = [*_NINES, *_WHOLE, 1e20, -1e20, 1e30, -1e30, 1e35, 9.96921e36, -3.402823e38]
_ROUNDING = 1e-5


def without_fill(array: xr.DataArray) -> xr.DataArray:
    """Return a variable with gaps where its attributes say so. Lazy values stay lazy."""
    stated = [np.ravel(array.attrs[name]) for name in _ATTRIBUTES if name in array.attrs]
    if not stated:
        return array
    out = array.copy(deep=False)
    out.attrs = {n: v for n, v in array.attrs.items() if n not in _ATTRIBUTES}
    for fill in np.concatenate(stated):
        if fill.dtype.kind in "iuf":
            # A float32 is compared in its own precision.
            out = out.where(out != (out.dtype.type(fill) if out.dtype.kind == "f" else fill))
    return out


def find_fill(values: FloatArray) -> float | None:
    """Return a usual fill value that lies far from the other values, if there is one."""
    for end in (values.min(), values.max()) if values.size else ():
        others = values[values != end]
        usual = np.isclose(end, _USUAL, rtol=_ROUNDING, atol=0.0).any()
        if not usual or not others.size:
            continue
        if np.abs(others - end).min() > max(np.ptp(others), 0.5 * abs(end)):
            return float(end)
    return None


def warn_of_fill(name: str, values: FloatArray) -> None:
    """Warn of values that look like missing ones."""
    fill = find_fill(values)
    if fill is not None:
        others = values[values != fill]
        warn_user(
            f"Variable {name!r}: {values.size - others.size} of {values.size} values are {fill:g}, "
            f"far from the others ({others.min():g} to {others.max():g}). A fill value? Then make "
            f"them gaps: `ds[{name!r}].where(ds[{name!r}] != {fill:g})`, or set the attribute "
            "`_FillValue`."
        )
