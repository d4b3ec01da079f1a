"""The inputs of a model: groups of coordinates, found in any data and scaled to unit extent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.arrays import FloatArray
from xcopula.errors import CoordinateError
from xcopula.labels.coordinates.axis import Axis
from xcopula.labels.coordinates.groups import CoordinateGroup, Directions, Globe, Tolerance
from xcopula.labels.coordinates.projection import Projection
from xcopula.labels.coordinates.roles import (
    ROLES,
    Roles,
    coordinates_of,
    guessed_roles,
    listed,
    stated_roles,
)
from xcopula.labels.coordinates.times import is_time

__all__ = ["CoordinateSystem"]


@dataclass(frozen=True)
class CoordinateSystem:
    """The inputs of a model: groups of coordinates, and the centre and scale of each column.

    Attributes
    ----------
    groups : tuple of CoordinateGroup
    centre, scale : tuple of float
        Of each column; empty until :meth:`scaled_to` has seen the sites.
    projection : Projection, optional
        The grid mapping of planar coordinates, where the data tell it.
    """

    groups: tuple[CoordinateGroup, ...]
    centre: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    projection: Projection | None = None

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All axes, in the order of the groups."""
        return tuple(axis for group in self.groups for axis in group.axes)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates in the training data, in the order of the axes."""
        return tuple(axis.name for axis in self.axes)

    @property
    def starts(self) -> list[int]:
        """First column of each group."""
        return [int(k) for k in np.cumsum([0, *(g.columns for g in self.groups)])[:-1]]

    @property
    def directions(self) -> list[Directions]:
        """Along which directions of its columns ranges of each group may differ."""
        centre = np.array(self.centre)
        return [
            g.directions(centre[start : start + g.columns])
            for g, start in zip(self.groups, self.starts, strict=True)
        ]

    def _split(self, numbers: FloatArray) -> list[tuple[CoordinateGroup, FloatArray]]:
        """Give each group its share of numbers (axes, m)."""
        stops = np.cumsum([len(g.axes) for g in self.groups])
        return list(zip(self.groups, np.split(numbers, stops[:-1]), strict=True))

    def embed(self, numbers: FloatArray) -> list[FloatArray]:
        """Turn numbers (axes, m) into the columns of each group."""
        return [group.embed(part) for group, part in self._split(numbers)]

    def places(self, coordinates: Sequence[FloatArray]) -> FloatArray:
        """Turn numbers, an (m,) array for each axis, into positions (k, m) that tell sites."""
        numbers = np.stack([np.asarray(c, np.float64) for c in coordinates])
        return np.concatenate([group.places(part) for group, part in self._split(numbers)])

    def places_in_single(self, coordinates: Sequence[FloatArray]) -> FloatArray:
        """Return :meth:`places` of numbers that are first rounded to single precision.

        Copies of a grid in single and in double precision then agree to the last bit. Dates are not
        rounded.
        """
        pairs = zip(self.axes, coordinates, strict=True)
        return self.places([c if axis.epoch else _in_single(c) for axis, c in pairs])

    def tolerance(self, coordinates: Sequence[FloatArray]) -> Tolerance:
        """Return how far apart positions of one site may lie, from numbers of all sites."""
        numbers = np.stack([np.asarray(c, np.float64) for c in coordinates])
        each = [group.tolerance(group.places(part)) for group, part in self._split(numbers)]
        return Tolerance(*map(np.concatenate, zip(*each, strict=True)))

    def scaled_to(self, sites: FloatArray) -> CoordinateSystem:
        """Return the system centred on sites (n, axes) and scaled to their extent.

        Raises
        ------
        CoordinateError
            If a group has no extent.
        """
        parts = zip(self.groups, self.embed(np.asarray(sites.T)), strict=True)
        frames = [group.frame(columns) for group, columns in parts]
        centre = np.concatenate([f.centre for f in frames])
        scale = np.concatenate([f.scale for f in frames])
        return replace(self, centre=tuple(centre.tolist()), scale=tuple(scale.tolist()))

    def to_columns(self, coordinates: Sequence[npt.NDArray[np.float64]]) -> FloatArray:
        """Turn numbers, one (m,) array for each axis, into scaled inputs (d, m)."""
        numbers = np.stack([np.asarray(c, np.float64) for c in coordinates])
        columns: FloatArray = np.concatenate(self.embed(numbers))
        columns -= np.array(self.centre)[:, None]
        columns /= np.array(self.scale)[:, None]
        return columns

    def read(self, data: xr.Dataset | xr.DataArray, what: str) -> list[xr.DataArray]:
        """Return the coordinates of the data that the system was found in, as numbers."""
        return self.read_all([data[name] for name in self.names], what)

    def find_in(
        self,
        data: xr.Dataset | xr.DataArray,
        what: str = "The target",
        ignore: Sequence[str] = (),
    ) -> list[xr.DataArray]:
        """Return the coordinates of other data as numbers, one array for each axis.

        Roles count, not names: those that attributes state, where they did in the training data,
        then the name, then those that names suggest. Coordinates to ignore, such as fields of a
        law, play no role unless they are axes.

        Raises
        ------
        CoordinateError
            If one is missing, claimed by several, or cannot be read; ``what`` says whose.
        """
        return self.read_all(self.search(data, what, ignore), what)

    def search(
        self,
        data: xr.Dataset | xr.DataArray,
        what: str = "The target",
        ignore: Sequence[str] = (),
    ) -> list[xr.DataArray]:
        """Return the coordinates of other data as they are; see :meth:`find_in`."""
        others = [n for n in ignore if n in data.coords and n not in (*self.names, *data.dims)]
        finder = _Finder(data.drop_vars(others), what)
        return [finder.find(axis) for axis in self.axes]

    def read_all(
        self, found: Sequence[xr.DataArray], what: str = "The target"
    ) -> list[xr.DataArray]:
        """Return coordinates, one for each axis, as numbers."""
        try:
            return [axis.read(c) for axis, c in zip(self.axes, found, strict=True)]
        except CoordinateError as error:
            raise CoordinateError(f"{what}: {error}") from None

    def find_source(self, data: xr.Dataset | xr.DataArray, name: str) -> xr.DataArray | None:
        """Return the coordinate of other data that is the axis of this name, as it is."""
        axes = {axis.name: axis for axis in self.axes}
        return _Finder(data, "The target").find(axes[name]) if name in axes else None

    @property
    def _planar(self) -> bool:
        return any(axis.role in ("x", "y") for axis in self.axes)

    @property
    def grid_mapping(self) -> Projection | None:
        """The projection that every target is in; that of another grid on the globe is its own."""
        if self.projection is None or not (self._planar or self.projection.geographic):
            return None
        return self.projection

    def check_projection(self, found: Projection | None, what: str) -> None:
        """Refuse planar coordinates of another projection.

        Raises
        ------
        CoordinateError
            If both projections are known and differ.
        """
        if not self._planar or found is None or self.projection is None:
            return
        differences = self.projection.differences(found)
        if differences:
            raise CoordinateError(
                f"{what} is in another projection than the model ({'; '.join(differences)}). "
                "Reproject it, or fit and predict on longitude and latitude."
            )

    def looks_like_degrees(self, sites: FloatArray) -> list[str]:
        """Return planar axes without units whose numbers, sites (n, axes), could be degrees.

        Far from the origin against their extent, or all over the globe: numbers near the origin
        are more likely kilometres or none.
        """
        names = list(self.names)
        planes = [g.axes for g in self.groups if not isinstance(g, Globe) and len(g.axes) == 2]
        if len(planes) != 1 or any(axis.units for axis in planes[0]):
            return []
        # East before north, where roles tell; otherwise as they were given.
        axes = sorted(planes[0], key=lambda axis: axis.role == "y")
        pair = [names.index(axis.name) for axis in axes]
        names = [names[k] for k in pair]
        low, high = sites[:, pair].min(axis=0), sites[:, pair].max(axis=0)
        if (low < [-180.0, -90.0]).any() or (high > [360.0, 90.0]).any():
            return []
        extent, middle = high - low, np.abs(low + high) / 2.0
        return names if (middle > extent).all() or (extent > [300.0, 120.0]).all() else []


def _in_single(numbers: FloatArray) -> FloatArray:
    """Round numbers to single precision: to seven decimal digits, where these are the same there.

    Decimals are the same after a shift by 360 degrees.
    """
    single = np.asarray(numbers, np.float32).astype(np.float64)
    digits = 6.0 - np.floor(np.log10(np.where(single == 0.0, 1.0, np.abs(single))))
    decimal = np.rint(single * 10.0**digits) / 10.0**digits
    return np.where(decimal.astype(np.float32) == single, decimal, single)


class _Finder:
    """Looks up axes in some data; what cf_xarray finds is found once."""

    def __init__(self, data: xr.Dataset | xr.DataArray, what: str) -> None:
        self.data, self.what = data, what
        self.coordinates = coordinates_of(data)
        self.stated = stated_roles(self.coordinates)
        self._guessed: Roles | None = None

    def find(self, axis: Axis) -> xr.DataArray:
        stated = self.stated.get(axis.role, [])
        found = [n for n in stated if is_time(self.data[n]) == bool(axis.epoch)]
        # One number beside a grid, such as the place of a satellite, does not stand for the grid.
        spread = [n for n in found if self.data[n].ndim]
        named = axis.name in self.coordinates.coords or axis.name in getattr(
            self.data, "data_vars", ()
        )
        if len(spread) == 1 and (axis.stated or not named):
            return self.data[spread[0]]
        if named and (self.data[axis.name].ndim or len(found) != 1 or not axis.stated):
            return self.data[axis.name]
        found = found or stated or self._roles().get(axis.role, [])
        if len(found) == 1:
            return self.data[found[0]]
        known = axis.role in ROLES and axis.role != axis.name
        wanted = f"{axis.name!r}" + (f" ({axis.role})" if known else "")
        if found:
            raise CoordinateError(
                f"{self.what} has {found}, which all claim to be the coordinate {wanted} of the "
                "model. Drop all but one with `drop_vars`, or rename the right one."
            )
        advice = "Add it, rename one, or set its CF attributes."
        if axis.epoch:
            advice = "Add it, or fit without it: name the other inputs in `coords`."
        elif axis.role in ("x", "y") and self._roles().get("longitude"):
            advice = "Project its longitude and latitude to the model's plane first."
        raise CoordinateError(
            f"{self.what} lacks the coordinate {wanted} of the model; it has "
            f"{listed(self.coordinates.coords)}. {advice}"
        )

    def _roles(self) -> Roles:
        if self._guessed is None:
            self._guessed = guessed_roles(self.coordinates)
        return self._guessed
