"""The coordinate reference system of data, as a CF grid mapping describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import xarray as xr

from xcopula.errors import CoordinateError
from xcopula.labels.coordinates.crs import (
    axis_units,
    crs_of,
    given_crs,
    is_crs,
    same_crs,
    to_attributes,
)
from xcopula.warn import shown

__all__ = ["Projection", "find_projection", "reference"]

# The name of a grid mapping variable that the data do not name; rioxarray's too.
_NAME = "spatial_ref"

# Attributes that may differ although the projection is the same.
_TEXTS = ("crs_wkt", "spatial_ref")
_IGNORED = (*_TEXTS, "geotransform", "long_name", "units", "comment")


@dataclass(frozen=True)
class Projection:
    """A grid mapping: the name of its variable and its attributes."""

    name: str
    attributes: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, given: Any, name: str = _NAME) -> Projection:
        """Describe a CRS of pyproj, or what it can be made of; see :func:`given_crs`."""
        return cls(name, _attributes(to_attributes(given_crs(given))))

    @property
    def crs(self) -> Any | None:
        """The CRS, where pyproj is installed and understands the attributes."""
        return crs_of(dict(self.attributes))

    @property
    def geographic(self) -> bool:
        """Whether its coordinates are longitude and latitude themselves."""
        named = dict(self.attributes).get("grid_mapping_name")
        if named is not None:
            return bool(named == "latitude_longitude")
        if self.crs is not None:
            return bool(self.crs.is_geographic)
        return self._text().upper().startswith(("GEOGCS", "GEOGCRS", "GEODCRS"))

    @property
    def units(self) -> str:
        """Units of projected coordinates; '' if unknown."""
        return "" if self.crs is None else axis_units(self.crs)

    def differences(self, other: Projection) -> list[str]:
        """Return what differs, as "key: this / that".

        Two texts are compared as coordinate reference systems if pyproj is installed. Otherwise
        the CF attributes that both have are compared; of texts alone only equal ones agree.
        """
        if self._text() and other._text() and self.crs is not None and other.crs is not None:
            if same_crs(self.crs, other.crs):
                return []
            return [f"crs: {_called(self.crs)} / {_called(other.crs)}"]
        mine, theirs = self._parameters(), other._parameters()
        if "grid_mapping_name" in mine and "grid_mapping_name" in theirs:
            return [
                f"{key}: {mine[key]} / {theirs[key]}"
                for key in mine
                if key in theirs and not _same(mine[key], theirs[key])
            ]
        one, two = self._text(), other._text()
        if not one or not two or one == two:
            return []
        advice = "" if find_spec("pyproj") else ", texts that only `xcopula[geo]` can compare"
        return [f"crs: {_brief(one)} / {_brief(two)}{advice}"]

    def _text(self) -> str:
        """Return the well-known text, or what else describes the CRS in one text; '' if nothing."""
        return next((str(v) for k, v in self.attributes if k.lower() in _TEXTS and v), "")

    def _parameters(self) -> dict[str, Any]:
        """Return the CF attributes, without names of datums, which have many spellings."""
        known = dict(self.attributes)
        if "grid_mapping_name" not in known and self.crs is not None:
            known = dict(_attributes(to_attributes(self.crs)))  # as the text says
        return {
            k: v
            for k, v in known.items()
            if k.lower() not in _IGNORED and (k == "grid_mapping_name" or not k.endswith("_name"))
        }

    def without_extent(self) -> Projection:
        """Return it without what says where the cells of one grid are, for another grid."""
        kept = tuple((k, v) for k, v in self.attributes if k.lower() != "geotransform")
        return Projection(self.name, kept)

    def to_coordinate(self) -> xr.DataArray:
        """Return the grid mapping variable, as a scalar coordinate."""
        attrs = {k: list(v) if isinstance(v, tuple) else v for k, v in self.attributes}
        return xr.DataArray(0, attrs=attrs, name=self.name)


def find_projection(
    array: xr.Dataset | xr.DataArray, variables: Mapping[Any, Any] | None = None
) -> Projection | None:
    """Return the coordinate reference system of a variable, or of a Dataset.

    It is looked for in this order: an index with a CRS (xproj, xvec), the grid mapping that is
    referred to, a grid mapping that nothing refers to, an attribute ``crs``.

    Parameters
    ----------
    variables : mapping, optional
        Where else to look for the grid mapping variable, besides the coordinates.

    Raises
    ------
    CoordinateError
        If indexes have different CRS, a reference is no name, or an attribute ``crs`` is no CRS.
    """
    indexed = _of_indexes(array)
    if indexed is not None:
        return indexed
    names = [reference(array)]
    if isinstance(array, xr.Dataset):
        names += [reference(v) for v in array.data_vars.values()]
    candidates: dict[str, Any] = {str(n): c for n, c in (variables or {}).items()}
    if isinstance(array, xr.Dataset):
        candidates.update({str(n): v for n, v in array.data_vars.items()})
    candidates.update({str(n): c for n, c in array.coords.items()})
    # A grid mapping is known by its own attributes, even if nothing refers to it.
    own = {"grid_mapping_name", *_TEXTS}
    names += [n for n, c in candidates.items() if own & set(getattr(c, "attrs", {}))]
    for name in names:
        if name in candidates:
            return Projection(name, _attributes(candidates[name].attrs))
    return _of_attributes(array)


def _of_indexes(array: xr.Dataset | xr.DataArray) -> Projection | None:
    """Return the CRS that the indexes of coordinates have."""
    found: Projection | None = None
    for name, index in array.xindexes.items():
        crs = getattr(index, "crs", None)
        if not is_crs(crs):
            continue
        # The index of points is no grid mapping variable, and cannot lend its name.
        own = Projection.of(crs, _NAME if array[name].ndim else str(name))
        if found is not None and found.differences(own):
            raise CoordinateError(
                f"Indexes of the data have different coordinate reference systems "
                f"({'; '.join(found.differences(own))}). Keep one of them."
            )
        found = found or own
    return found


def _of_attributes(array: xr.Dataset | xr.DataArray) -> Projection | None:
    """Return the CRS of an attribute ``crs``: of the data, or of a coordinate of points."""
    owners = [array, *(c for c in array.coords.values() if c.dtype.kind == "O")]
    given = next((o.attrs["crs"] for o in owners if o.attrs.get("crs") is not None), None)
    if is_crs(given):
        return Projection.of(given)
    if not isinstance(given, str | int | np.integer):
        return None
    text = given if isinstance(given, str) else f"EPSG:{given}"
    known = crs_of({"crs_wkt": text})
    if known is not None:
        return Projection.of(known)
    # Without pyproj the text itself can be compared. With it, this is no CRS.
    return None if find_spec("pyproj") else Projection(_NAME, (("crs_wkt", text),))


def reference(variable: Any) -> str:
    """Return the name of the grid mapping that a variable refers to; '' if to none.

    Raises
    ------
    CoordinateError
        If the attribute is anything but a name.
    """
    found = variable.attrs.get("grid_mapping")
    if found is None or (isinstance(found, str) and not found):  # decoding may have put it there
        found = variable.encoding.get("grid_mapping")
    names = [] if found is None else np.ravel(found).tolist()
    name = names[0] if len(names) == 1 else "" if not names else None
    if isinstance(name, bytes):  # as some HDF5 files have it
        name = name.decode("utf-8", "replace")
    if not isinstance(name, str):
        own = getattr(variable, "name", None)
        raise CoordinateError(
            f"{'The Dataset' if own is None else f'Variable {own!r}'} has the attribute "
            f"`grid_mapping` {shown(found)}, which must be the name of one variable. Set it to "
            "that name, or delete it."
        )
    return name.partition(":")[0].strip()


def _called(crs: Any) -> str:
    """Name a CRS by its code, or else by its name."""
    code = crs.to_authority()
    return f"{':'.join(code)} ({crs.name})" if code else str(crs.name)


def _attributes(attrs: Mapping[Any, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(
        (str(k), tuple(np.ravel(v).tolist()) if np.ndim(v) else v) for k, v in attrs.items()
    )


def _brief(text: str) -> str:
    """Return the beginning of a well-known text, where its name stands, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:60] + "..."


def _same(mine: Any, theirs: Any) -> bool:
    try:
        return bool(np.allclose(mine, theirs, rtol=1e-9, atol=0.0))
    except (TypeError, ValueError):
        return bool(mine == theirs)
