"""Where data lie on the earth, and when: their CRS, points of shapely, tables, and dates as text.

Whatever form this comes in, afterwards it is coordinates of numbers with units, a grid mapping, and
dates.
The optional packages are imported on use, and only if the data hold their objects.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.errors import CoordinateError
from xcopula.labels.coordinates import Projection, coordinates_of, find_projection
from xcopula.labels.coordinates.roles import guessed_roles
from xcopula.labels.coordinates.units import units_of
from xcopula.labels.dates import with_dates

__all__ = ["from_table", "georeferenced", "locate"]

Part = xr.Dataset | xr.DataArray

_GLOBE = {
    "lon": {"units": "degrees_east", "standard_name": "longitude"},
    "lat": {"units": "degrees_north", "standard_name": "latitude"},
}
_AXES = {"x": "X", "y": "Y"}


def from_table(data: Any) -> Any:
    """Return a DataFrame as a Dataset on the dim of its index, and anything else as it is.

    Columns become variables, and so do levels of an index that has several. The points of a
    GeoDataFrame become coordinates ``x`` and ``y``, or ``lon`` and ``lat`` if its CRS is
    geographic.
    """
    import pandas as pd

    if not isinstance(data, pd.DataFrame):
        return data
    twice = [n for n in data.columns if n in data.index.names or (data.columns == n).sum() > 1]
    if twice:
        raise ValueError(
            f"The DataFrame has {twice[0]!r} twice, as columns or as a column and its index. "
            "Rename one, as in `frame.rename_axis('site')`, or drop it."
        )
    if isinstance(data.index, pd.MultiIndex):
        data = data.reset_index()
    columns = data.drop(columns=[c for c in data.columns if str(data[c].dtype) == "geometry"])
    for name, column in columns.items():
        if not isinstance(column.dtype, np.dtype):  # xarray would keep the array of pandas
            numeric = getattr(column.dtype, "kind", "O") in "iufb"
            exact = numeric and not column.hasnans
            columns[name] = (
                column.to_numpy(column.dtype.type if exact else np.float64, na_value=np.nan)
                if numeric
                else column.to_numpy(object)
            )
    dataset = xr.Dataset.from_dataframe(columns)
    (dim,) = dataset.dims
    geopandas = sys.modules.get("geopandas")  # not imported: then it is none
    if geopandas is None or not isinstance(data, geopandas.GeoDataFrame):
        return dataset
    if data.crs is not None:
        projection = Projection.of(data.crs)
        dataset = dataset.assign_coords({projection.name: projection.to_coordinate()})
    return _with_points(dataset, data.geometry.to_numpy(), (str(dim),), "geometry")


def georeferenced(data: Any, crs: Any = None) -> Any:
    """Return data whose CRS, points, dates and units of horizontal coordinates are stated.

    Parameters
    ----------
    data : Dataset, mapping of DataArrays or DataFrame
        Anything else is returned as it is: others refuse it.
    crs : optional
        The CRS of all of it; see ``pyproj.CRS.from_user_input``.

    Raises
    ------
    CoordinateError
        If ``crs`` is none, or the data say otherwise, or a geometry is no point, or the name of a
        coordinate that it gives is taken.
    """
    data = from_table(data)
    given = None if crs is None else Projection.of(crs)
    if isinstance(data, xr.Dataset):
        return locate(data, given, what="The data")
    if isinstance(data, Mapping):
        return {
            name: locate(part, given, data, f"Variable {name!r}")
            if isinstance(part, xr.DataArray)
            else part
            for name, part in data.items()
        }
    return data


def locate(
    part: Part,
    given: Projection | None = None,
    variables: Mapping[Any, Any] | None = None,
    what: str = "The target",
) -> Part:
    """Return one Dataset or DataArray whose CRS, points and units are stated, and dates decoded."""
    part = with_dates(part)
    found = find_projection(part, variables) or given
    if found is None:
        return _with_places(part, None)
    differences = [] if given is None else found.differences(given)
    if differences:
        raise CoordinateError(
            f"{what} has another CRS than `crs` ({'; '.join(differences)}). Leave `crs` out, or "
            "correct the data with `ds.rio.write_crs(...)`."
        )
    if found.name not in part.coords and found.name not in getattr(part, "data_vars", ()):
        part = part.assign_coords({found.name: found.to_coordinate()})
    return _with_units(_with_places(part, found), found)


def _with_places(part: Part, projection: Projection | None) -> Part:
    """Return data with the coordinates of all their points."""
    for name, coordinate in part.coords.items():
        if _holds_geometry(coordinate):
            dims = tuple(map(str, coordinate.dims))
            part = _with_points(part, coordinate.to_numpy(), dims, str(name), projection)
    return part


def _holds_geometry(coordinate: xr.DataArray) -> bool:
    """Tell whether a coordinate holds objects of shapely."""
    if coordinate.dtype.kind != "O" or coordinate.chunks is not None or not coordinate.size:
        return False
    first = next((v for v in coordinate.to_numpy().flat if v is not None), None)
    return type(first).__module__.partition(".")[0] == "shapely"


def _with_points(
    part: Part,
    points: npt.NDArray[Any],
    dims: tuple[str, ...],
    name: str,
    projection: Projection | None = None,
) -> Part:
    """Return data with the coordinates of their points, unless they have both already.

    Raises
    ------
    CoordinateError
        If a geometry is no point, or something else has the name of one of the coordinates.
    """
    import shapely

    others = {str(g.geom_type) for g in points.flat if g is not None} - {"Point"}
    if others:
        raise CoordinateError(
            f"{name!r} holds {sorted(others)}; places must be points. Take one for each, with "
            "`.centroid` or `.representative_point()` say."
        )
    projection = projection or find_projection(part)
    names = list(_GLOBE if projection is not None and projection.geographic else _AXES)
    if all(n in part.coords for n in names):
        return part
    taken = [n for n in names if n in part.coords or n in part.dims]
    if taken:
        raise CoordinateError(
            f"The points of {name!r} become the coordinates {names}, but the data have an index, "
            f"a dim or a coordinate called {taken[0]!r}. Rename the index, as in "
            f"`frame.rename_axis('site')`, or `ds.rename({taken[0]}='site')`."
        )
    numbers = (shapely.get_x(points), shapely.get_y(points))
    return part.assign_coords(
        {
            n: xr.Variable(dims, column, _GLOBE.get(n, {"axis": _AXES.get(n)}))
            for n, column in zip(names, numbers, strict=True)
        }
    )


def _with_units(part: Part, projection: Projection) -> Part:
    """Return data whose x and y, if they say nothing, have the units of their CRS.

    Beside longitude and latitude, x and y may be mere indices, and stay so.
    """
    roles = guessed_roles(coordinates_of(part))
    if roles["longitude"] or roles["latitude"]:
        return part
    told = dict(zip(_AXES, _GLOBE.values(), strict=True))
    if not projection.geographic:
        told = {role: {"units": projection.units} for role in _AXES if projection.units}
    silent = {name: told[role] for role in told for name in roles[role] if not units_of(part[name])}
    if not silent:
        return part
    part = part.copy(deep=False)
    for name, attrs in silent.items():
        kept = {
            k: v for k, v in part[name].attrs.items() if not projection.geographic or k != "axis"
        }
        part[name].attrs = kept | attrs
    return part
