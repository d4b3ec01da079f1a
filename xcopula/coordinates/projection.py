"""The map projection of planar coordinates, as a CF grid mapping describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

__all__ = ["Projection", "find_projection"]

# Texts and layouts that may differ between descriptions of one projection.
_IGNORED = ("crs_wkt", "spatial_ref", "geotransform", "long_name", "units", "comment")


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
        mine, theirs = dict(self.attributes), dict(other.attributes)
        return [
            f"{key}: {mine[key]} / {theirs[key]}"
            for key in mine
            if key in theirs and not _same(mine[key], theirs[key])
        ]

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
        Where the grid mapping variable may stand beside the coordinates.
    """
    names = [_reference(array)]
    if isinstance(array, xr.Dataset):
        names += [_reference(v) for v in array.data_vars.values()]
    candidates: dict[str, Any] = {str(n): c for n, c in (variables or {}).items()}
    if isinstance(array, xr.Dataset):
        candidates.update({str(n): v for n, v in array.data_vars.items()})
    candidates.update({str(n): c for n, c in array.coords.items()})
    # A variable may be a grid mapping by its own attributes alone.
    names += [n for n, c in candidates.items() if "grid_mapping_name" in getattr(c, "attrs", {})]
    for name in names:
        if name in candidates:
            return Projection(name, _attributes(candidates[name].attrs))
    return None


def _reference(variable: Any) -> str:
    found = variable.attrs.get("grid_mapping") or variable.encoding.get("grid_mapping") or ""
    return str(found).partition(":")[0].strip()


def _attributes(attrs: Mapping[Any, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(
        (str(k), tuple(np.ravel(v).tolist()) if np.ndim(v) else v)
        for k, v in attrs.items()
        if str(k).lower() not in _IGNORED
    )


def _same(mine: Any, theirs: Any) -> bool:
    try:
        return bool(np.allclose(mine, theirs, rtol=1e-9, atol=0.0))
    except (TypeError, ValueError):
        return bool(mine == theirs)
