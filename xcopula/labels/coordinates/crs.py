"""Coordinate reference systems as pyproj knows them, where it is installed.

Nothing here is needed for data without a projection; pyproj is imported on use. Its objects are
`Any` to the type checker, because they are optional.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from xcopula.errors import CoordinateError
from xcopula.warn import shown

__all__ = ["axis_units", "crs_of", "given_crs", "is_crs", "same_crs", "to_attributes"]

# How UDUNITS spells what PROJ calls its units of length.
_UNITS = {"metre": "m", "kilometre": "km", "foot": "foot", "US survey foot": "US_survey_foot"}


def given_crs(given: Any) -> Any:
    """Return what a user gave as a CRS of pyproj.

    Parameters
    ----------
    given : CRS, str, int or mapping
        What ``pyproj.CRS.from_user_input`` takes: "EPSG:2056", 2056, well-known text.

    Raises
    ------
    ImportError
        If pyproj is not installed.
    CoordinateError
        If it is no CRS.
    """
    if is_crs(given):
        return given
    try:
        from pyproj import CRS
        from pyproj.exceptions import CRSError
    except ImportError:
        raise ImportError(
            "`crs` needs pyproj, which is not installed. Install `xcopula[geo]`, or describe the "
            "projection by a CF grid mapping in the data."
        ) from None
    try:
        return CRS.from_user_input(given)
    except (CRSError, TypeError) as error:
        raise CoordinateError(
            f"`crs` must be a coordinate reference system, such as 'EPSG:2056', found "
            f"{shown(given)} ({error})."
        ) from None


def is_crs(given: Any) -> bool:
    """Tell whether an object is a CRS of pyproj; nothing is imported."""
    return hasattr(given, "to_cf") and hasattr(given, "to_wkt")


def crs_of(attributes: Mapping[str, Any]) -> Any | None:
    """Return the CRS that attributes of a grid mapping describe.

    None if pyproj is not installed, or does not understand them.
    """
    try:
        from pyproj import CRS
        from pyproj.exceptions import CRSError
    except ImportError:
        return None
    try:
        return CRS.from_cf(
            {k: list(v) if isinstance(v, tuple) else v for k, v in attributes.items()}
        )
    except (CRSError, KeyError, TypeError, ValueError):
        return None  # what is left can be compared as numbers


def to_attributes(crs: Any) -> dict[str, Any]:
    """Return a CRS as attributes of a CF grid mapping, with its well-known text for GDAL."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what CF cannot say is in the text
        attributes = dict(crs.to_cf())
    return attributes | {"spatial_ref": attributes.get("crs_wkt", crs.to_wkt())}


def same_crs(one: Any, other: Any) -> bool:
    """Tell whether two CRS place horizontal coordinates alike, whatever their names and axis order.

    Heights of a compound CRS and transformations to another datum do not count.
    """
    one, other = _horizontal(one), _horizontal(other)
    if one.equals(other, ignore_axis_order=True):
        return True
    if not (one.is_projected and other.is_projected):
        return False
    # The order of projected axes counts in `equals`, although arrays have their own.
    units = [sorted(axis.unit_conversion_factor for axis in crs.axis_info) for crs in (one, other)]
    return bool(
        units[0] == units[1]
        and one.geodetic_crs.equals(other.geodetic_crs, ignore_axis_order=True)
        and one.coordinate_operation == other.coordinate_operation
    )


def axis_units(crs: Any) -> str:
    """Return the units of projected coordinates; '' if there are none that we know."""
    crs = _horizontal(crs)
    found = {axis.unit_name for axis in crs.axis_info} if crs.is_projected else set()
    return _UNITS.get(found.pop(), "") if len(found) == 1 else ""


def _horizontal(crs: Any) -> Any:
    if crs.is_compound:
        crs = crs.sub_crs_list[0]
    return crs.source_crs if crs.is_bound else crs
