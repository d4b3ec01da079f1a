"""The map projection of planar coordinates, as a CF grid mapping describes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from xcopula.errors import CoordinateError
from xcopula.warn import shown

__all__ = ["Projection", "find_projection", "reference"]

# Attributes that may differ although the projection is the same.
_TEXTS = ("crs_wkt", "spatial_ref")
_IGNORED = (*_TEXTS, "geotransform", "long_name", "units", "comment")


@dataclass(frozen=True)
class Projection:
    """A grid mapping: the name of its variable and its attributes."""

    name: str
    attributes: tuple[tuple[str, Any], ...]

    @property
    def geographic(self) -> bool:
        """Whether its coordinates are longitude and latitude themselves."""
        return dict(self.attributes).get("grid_mapping_name") == "latitude_longitude"

    def differences(self, other: Projection) -> list[str]:
        """Return the attributes that both have and that differ, as "key: this / that"."""
        mine, theirs = self._parameters(), other._parameters()
        if not ("grid_mapping_name" in mine and "grid_mapping_name" in theirs):
            mine, theirs = self._title(), other._title()  # only the texts can be compared
        return [
            f"{key}: {mine[key]} / {theirs[key]}"
            for key in mine
            if key in theirs and not _same(mine[key], theirs[key])
            if key != "name" or _letters(mine[key]) != _letters(theirs[key])
        ]

    def _parameters(self) -> dict[str, Any]:
        """Return the CF attributes, without names of datums, which have many spellings."""
        return {
            k: v
            for k, v in self.attributes
            if k.lower() not in _IGNORED and (k == "grid_mapping_name" or not k.endswith("_name"))
        }

    def _title(self) -> dict[str, Any]:
        """Return the name that a text begins with, and the parameters if it is well-known text."""
        text = next((str(v) for k, v in self.attributes if k.lower() in _TEXTS), "")
        quoted = re.search(r'"([^"]+)"', text)
        name = quoted[1] if quoted else text
        nameless = _letters(name) in ("", "unknown", "unnamed")
        found: dict[str, Any] = {} if nameless else {"name": name}
        for key, value in re.findall(r'PARAMETER\["([^"]+)",\s*([-+.\deE]+)', text):
            found[key.lower()] = float(value)
        return found

    def to_coordinate(self) -> xr.DataArray:
        """Return the grid mapping variable, as a scalar coordinate."""
        attrs = {k: list(v) if isinstance(v, tuple) else v for k, v in self.attributes}
        return xr.DataArray(0, attrs=attrs, name=self.name)


def find_projection(
    array: xr.Dataset | xr.DataArray, variables: Mapping[Any, Any] | None = None
) -> Projection | None:
    """Return the grid mapping that a variable, or a Dataset, refers to.

    Parameters
    ----------
    variables : mapping, optional
        Where else to look for the grid mapping variable, besides the coordinates.
    """
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
    return None


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


def _attributes(attrs: Mapping[Any, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(
        (str(k), tuple(np.ravel(v).tolist()) if np.ndim(v) else v) for k, v in attrs.items()
    )


def _letters(name: str) -> str:
    """Return a name without case, blanks and punctuation, which vary between programs."""
    return re.sub(r"[^a-z0-9]", "", name.lower()).replace("wgs1984", "wgs84")


def _same(mine: Any, theirs: Any) -> bool:
    try:
        return bool(np.allclose(mine, theirs, rtol=1e-9, atol=0.0))
    except (TypeError, ValueError):
        return bool(mine == theirs)
