"""The fields and group keys that marginal laws vary with: find them in data, read them as columns.

A name with a dot, such as ``time.month``, means a part of a date. A field that is a coordinate of
the model is found by its role. A key becomes the number of its group in the training data; any
other field is a number itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.arrays import FloatArray
from xcopula.errors import FieldError
from xcopula.labels.coordinates import CoordinateSystem
from xcopula.labels.coordinates.times import is_time
from xcopula.labels.coordinates.units import conversion, is_longitude, units_of
from xcopula.warn import warn_user

__all__ = ["Field", "attach_fields", "fields_of", "find_fields", "source_of"]

_SHOWN = 5


def source_of(name: str) -> str:
    """Return the variable behind a field: ``time`` for ``time.month``."""
    return name.partition(".")[0]


@dataclass(frozen=True)
class Field:
    """A field or a group key of one variable's law.

    Attributes
    ----------
    name : str
        Name in the law.
    key : bool
        Whether its values are groups.
    units : str
        Units in the training data; '' if there were none.
    groups : tuple
        Groups of a key, sorted; empty until the training data have been read.
    wrap : float, optional
        Middle longitude of the training data. Longitudes are taken within half a turn of it.
    """

    name: str
    key: bool = False
    units: str = ""
    groups: tuple[Any, ...] = ()
    wrap: float | None = None

    @property
    def source(self) -> str:
        """Name of the variable behind the field."""
        return source_of(self.name)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the groups."""
        return tuple(str(g) for g in self.groups)

    def find_source(
        self, data: xr.Dataset | xr.DataArray, system: CoordinateSystem
    ) -> xr.DataArray | None:
        """Return the variable behind the field, or None if the data lack it."""
        axis = system.find_source(data, self.source)
        if axis is not None:
            return axis
        if self.source in data.coords or self.source in getattr(data, "data_vars", ()):
            return data[self.source]
        # The target may be a DataArray of the field itself.
        return data if isinstance(data, xr.DataArray) and data.name == self.source else None

    def read(self, source: xr.DataArray, system: CoordinateSystem) -> xr.DataArray:
        """Return the values of the field on its own dims, not yet encoded.

        Raises
        ------
        FieldError
            If its units cannot be converted, or its dtype cannot be used.
        """
        _, dot, part = self.name.partition(".")
        field = _part(source, part, self.name) if dot else source
        if self.key:
            return field
        axes = {axis.name: axis for axis in system.axes}
        if not part and self.source in axes:
            return axes[self.source].read(source)
        if field.dtype.kind not in "iufb":
            raise FieldError(
                f"Field {self.name!r} has dtype {field.dtype}; a regression needs numbers. For "
                f"groups use `by({self.name!r}, ...)`."
            )
        units = "" if part else units_of(source)
        factor = conversion(units, self.units)
        if factor is None:
            raise FieldError(
                f"Field {self.name!r} is in {units!r}, but in the training data it was in "
                f"{self.units!r}. Convert it and set its `units` attribute."
            )
        if units and not self.units:
            warn_user(
                f"Field {self.name!r} is in {units!r}, but in the training data it had no units. "
                "The units were assumed to be the same. Set `units` on the training data."
            )
        numbers = field.astype(np.float64, copy=False)
        return numbers if factor == 1.0 else numbers * factor

    def learnt_from(self, values: npt.NDArray[Any], system: CoordinateSystem) -> Field:
        """Return the field with the groups, or the middle longitude, of the training data."""
        if self.key:
            known = _comparable(values[~_missing(values)])
            return replace(self, groups=tuple(np.unique(known).tolist()))
        axes = {axis.name: axis.role for axis in system.axes}
        if axes.get(self.name) == "longitude" or is_longitude(self.units):
            angles = np.deg2rad(values[np.isfinite(values)])
            middle = np.rad2deg(np.arctan2(np.sin(angles).mean(), np.cos(angles).mean()))
            return replace(self, wrap=float(middle))
        return self

    def encode(self, values: npt.NDArray[Any]) -> FloatArray:
        """Return values as a column (m,) of numbers, or of group numbers; NaN where missing.

        Raises
        ------
        FieldError
            If a group does not occur in the training data.
        """
        if not self.key:
            numbers = np.asarray(values, np.float64)
            if self.wrap is None:
                return numbers
            turned: FloatArray = (numbers - self.wrap + 180.0) % 360.0 - 180.0 + self.wrap
            return turned
        codes = np.full(values.shape, np.nan)
        known = ~_missing(values)
        found, order = _comparable(values[known]), np.asarray(self.groups)
        if found.size and (found.dtype.kind in "US") != (order.dtype.kind in "US"):
            raise FieldError(
                f"{self.name!r} has dtype {found.dtype}, but its groups in the training data were "
                f"{', '.join(self.labels[:_SHOWN])}. Use the same names."
            )
        place = np.clip(np.searchsorted(order, found), 0, len(order) - 1)
        strange = order[place] != found
        if strange.any():
            new = list(map(str, np.unique(found[strange])))
            shown = ", ".join([*new[:_SHOWN], *(["..."] if len(new) > _SHOWN else [])])
            raise FieldError(
                f"{self.name} {shown} never occurs in the training data, which have "
                f"{', '.join(self.labels)}. Leave these cells out, or fit on data that have them."
            )
        codes[known] = place
        return codes


def find_fields(
    fields: Sequence[Field],
    data: xr.Dataset | xr.DataArray,
    system: CoordinateSystem,
    variable: str,
    what: str = "the target",
) -> list[xr.DataArray]:
    """Find all fields of a law in a target.

    Raises
    ------
    FieldError
        If fields are missing (the message names all of them), or one cannot be used.
    """
    sources = [f.find_source(data, system) for f in fields]
    missing = [f.name for f, source in zip(fields, sources, strict=True) if source is None]
    if missing:
        there = [str(n) for n in (*data.coords, *getattr(data, "data_vars", ()))]
        raise FieldError(
            f"The law of {variable!r} varies with {missing}, which {what} lacks: it has "
            f"{there}. Add them as variables or coordinates."
        )
    pairs = zip(fields, sources, strict=True)
    return [f.read(source, system) for f, source in pairs if source is not None]


def fields_of(
    data: xr.Dataset | xr.DataArray,
    names: Sequence[str],
    keys: Sequence[str],
    system: CoordinateSystem,
) -> tuple[Field, ...]:
    """Describe the fields that the law of a variable varies with; no values are read."""
    units = {str(n): units_of(c) for n, c in data.coords.items()}
    units |= {axis.name: axis.units for axis in system.axes}  # the units they are read in
    return tuple(Field(name, name in keys, units.get(name, "")) for name in names)


def attach_fields(
    name: str, array: xr.DataArray, wanted: Sequence[str], data: Mapping[Any, Any]
) -> xr.DataArray:
    """Return a variable with the fields of its law as coordinates, taken from the data.

    Raises
    ------
    FieldError
        If a field is not found, has other dims, or lies at other places.
    """
    for source in dict.fromkeys(map(source_of, wanted)):
        if source == name:
            raise FieldError(f"The law of {name!r} cannot vary with {name!r} itself. Leave it out.")
        if source in array.coords:
            continue
        field = data.get(source)
        if field is None:
            raise FieldError(
                f"The law of {name!r} varies with {source!r}, which is neither one of its "
                f"coordinates ({[str(c) for c in array.coords]}) nor a variable of the data. Add "
                "it with `assign_coords`."
            )
        strange = [str(d) for d in field.dims if d not in array.dims]
        if strange:
            raise FieldError(
                f"The law of {name!r} varies with {source!r}, which has dims {strange} that "
                f"{name!r} lacks. Interpolate it to the sites of {name!r} and add it with "
                "`assign_coords`."
            )
        moved = [
            str(c)
            for c in field.coords
            if c in array.coords
            and c not in array.dims
            and not field[c].variable.equals(array[c].variable)
        ]
        if moved or any(
            field.sizes[d] != array.sizes[d] for d in field.dims if d not in array.xindexes
        ):
            raise FieldError(
                f"The law of {name!r} varies with {source!r}, which lies at other places "
                f"({moved or [str(d) for d in field.dims]} differ). Interpolate it to the sites of "
                f"{name!r}."
            )
        array = array.assign_coords({source: field.reset_coords(drop=True)})
    return array


def _part(source: xr.DataArray, part: str, name: str) -> xr.DataArray:
    if not is_time(source):
        raise FieldError(
            f"{name!r} is a part of a date, but {source.name!r} has dtype {source.dtype}. Decode "
            "it with `xr.decode_cf`, or name a variable that holds the groups."
        )
    found = None if part.startswith("_") else getattr(source.dt, part, None)
    if not isinstance(found, xr.DataArray):
        raise FieldError(
            f"A date has no part {part!r} ({name!r}). Use 'month', 'season', 'dayofyear' or 'hour'."
        )
    return found


def _missing(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    if values.dtype.kind in "fmM":
        return np.asarray(np.isnan(values))
    if values.dtype.kind == "O":
        return np.array([v is None or v != v for v in values.flat], bool).reshape(values.shape)
    return np.zeros(values.shape, bool)


def _comparable(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return keys in a form that compares the same for all dtypes: objects and dates as text."""
    if values.dtype.kind == "M":
        return np.char.replace(np.datetime_as_string(values.astype("M8[s]")), "T", " ")
    return values.astype(str) if values.dtype.kind == "O" else values
