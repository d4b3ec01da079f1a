"""Groups of coordinates that share one distance, and the space that each kind is measured in.

A plane is itself. Longitude and latitude become points of a sphere in three dimensions, where the
chord is a distance: no date line, no poles, and every kernel stays valid. A cycle becomes a circle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from xcopula.arrays import FloatArray
from xcopula.errors import CoordinateError
from xcopula.labels.coordinates.axis import Axis

__all__ = ["EARTH_RADIUS", "CoordinateGroup", "Cycle", "Directions", "Frame", "Globe", "Tolerance"]

Directions = tuple[tuple[float, ...], ...]

EARTH_RADIUS = 6371.0  # km

# Rounding to single precision moves a number by at most half of this, relative to its size.
_SINGLE = 2.0**-23
# Positions nearer than this, relative to the extent, are one site in any case.
_SAME = 1e-9
# The mean of points spread evenly over half the globe is so many radii from the Earth's centre.
_HEMISPHERE = 0.5
# Dates are exact; days since an epoch are not, in their last digits.
_MILLISECOND = 1.0 / 86_400e3


def _rows(matrix: FloatArray) -> Directions:
    return tuple(tuple(row) for row in matrix.tolist())


class Frame(NamedTuple):
    """Centre and scale of each column, to bring inputs to about unit extent."""

    centre: FloatArray
    scale: FloatArray


class Tolerance(NamedTuple):
    """How far apart two positions of one site may lie along each coordinate: at most, at least."""

    most: FloatArray
    least: FloatArray


@dataclass(frozen=True)
class CoordinateGroup:
    """Coordinates with a Euclidean distance: a plane, a height, a time, any numbers.

    Attributes
    ----------
    name : str
    axes : tuple of Axis
    ard : bool
        Whether each coordinate has a scale of its own.
    """

    name: str
    axes: tuple[Axis, ...]
    ard: bool = False

    @property
    def units(self) -> str:
        """Units of the length scale: those of the axes if they agree."""
        found = {axis.units for axis in self.axes}
        return found.pop() if len(found) == 1 and not self.ard else ""

    @property
    def columns(self) -> int:
        """Number of columns that the group has as inputs."""
        return len(self.axes)

    def directions(self, centre: FloatArray) -> Directions:
        """Return orthonormal directions (k, columns) along which ranges may differ.

        None where there is one direction only, or where no two places share theirs. They may depend
        on the centre of the columns.
        """
        return _rows(np.eye(self.columns)) if self.columns > 1 else ()

    @property
    def separable(self) -> bool:
        """Whether each axis has a column of its own, on a scale of its own numbers."""
        return True

    def embed(self, numbers: FloatArray) -> FloatArray:
        """Turn numbers (axes, m) into columns (columns, m)."""
        return numbers

    def frame(self, columns: FloatArray) -> Frame:
        """Return the centre and the scale of columns (columns, n)."""
        low, high = columns.min(axis=1), columns.max(axis=1)
        extent = high - low
        self._check_extent(extent if self.ard else extent.max(keepdims=True), columns.shape[1])
        scale = extent if self.ard else np.full_like(extent, extent.max())
        return Frame(0.5 * (low + high), scale)

    def places(self, numbers: FloatArray) -> FloatArray:
        """Turn numbers (axes, m) into positions (k, m) that tell sites apart."""
        return numbers

    def tolerance(self, places: FloatArray) -> Tolerance:
        """Return how far apart positions (k, n) of one site may lie.

        At most by what single precision rounds off, since one variable's coordinates may have been
        stored so; at least by the rounding of the arithmetic.
        """
        least = np.full(len(places), _SAME * np.ptp(places, axis=1).max())
        most = np.maximum(_SINGLE * np.abs(places).max(axis=1), least)
        for k, axis in enumerate(self.axes):
            if axis.epoch:
                most[k] = least[k] = _MILLISECOND
        return Tolerance(most, least)

    def _check_extent(self, extent: FloatArray, count: int) -> None:
        flat = extent == 0.0
        if flat.any():
            each = np.broadcast_to(flat, len(self.axes))  # one extent may stand for all axes
            names = [a.name for a, f in zip(self.axes, each, strict=True) if f]
            raise CoordinateError(
                f"Coordinates {names} have one value at all {count} observations. "
                "Leave them out of `coords`, or give data that spread."
            )


@dataclass(frozen=True)
class Globe(CoordinateGroup):
    """Longitude and latitude, in this order: chords of the sphere, in km."""

    @property
    def units(self) -> str:
        """Units of the length scale."""
        return "km"

    @property
    def columns(self) -> int:
        """Number of columns: points in space."""
        return 3

    @property
    def separable(self) -> bool:
        """Whether each axis has a column of its own: a point in space depends on both."""
        return False

    def directions(self, centre: FloatArray) -> Directions:
        """Return east and north at the centre of the data.

        Where data reach over more than half the globe they have no such centre.
        """
        if float(np.linalg.norm(centre)) < _HEMISPHERE * EARTH_RADIUS:
            return ()
        longitude = np.arctan2(centre[1], centre[0])
        latitude = np.arctan2(centre[2], np.hypot(centre[0], centre[1]))
        east = [-np.sin(longitude), np.cos(longitude), 0.0]
        north = [
            -np.sin(latitude) * np.cos(longitude),
            -np.sin(latitude) * np.sin(longitude),
            np.cos(latitude),
        ]
        return _rows(np.array([east, north]))

    def embed(self, numbers: FloatArray) -> FloatArray:
        """Turn degrees (2, m) into points (3, m) of the sphere."""
        longitude, latitude = np.deg2rad(numbers)
        ring = np.cos(latitude)
        return EARTH_RADIUS * np.stack(
            [ring * np.cos(longitude), ring * np.sin(longitude), np.sin(latitude)]
        )

    def places(self, numbers: FloatArray) -> FloatArray:
        """Turn degrees (2, m) into points (3, m) of the sphere: one site has many longitudes."""
        return self.embed(numbers)

    def tolerance(self, places: FloatArray) -> Tolerance:
        """Return how far apart points (3, n) of one site may lie, in km."""
        least = np.full(3, _SAME * np.ptp(places, axis=1).max())
        # Longitudes go up to 360 degrees, whatever the size of the points' coordinates.
        most = np.full(3, EARTH_RADIUS * np.deg2rad(360.0) * _SINGLE / 2.0)
        return Tolerance(np.maximum(most, least), least)

    def frame(self, columns: FloatArray) -> Frame:
        """Return a centre and a scale that turn with the globe."""
        centre = columns.mean(axis=1)
        radius = float(np.sqrt(((columns - centre[:, None]) ** 2).sum(axis=0).max()))
        # Rounding leaves a few nanometres between equal points.
        self._check_extent(np.array([radius if radius > 1e-6 else 0.0]), columns.shape[1])
        return Frame(centre, np.full(3, 2.0 * radius))


@dataclass(frozen=True)
class Cycle(CoordinateGroup):
    """A coordinate that returns after a period: chords of a circle of that circumference.

    The same day of another year has the same signal, but it is another site, with a nugget of its
    own: sites are told apart by the coordinate itself.
    """

    period: float = 1.0

    @property
    def columns(self) -> int:
        """Number of columns: points of the plane of the circle."""
        return 2

    @property
    def separable(self) -> bool:
        """Whether each axis has a column of its own: it has two."""
        return False

    def directions(self, centre: FloatArray) -> Directions:
        """Return none: a circle has none that all its points share."""
        return ()

    def embed(self, numbers: FloatArray) -> FloatArray:
        """Turn numbers (1, m) into points (2, m) of the circle."""
        phase = 2.0 * np.pi * numbers[0] / self.period
        return (self.period / (2.0 * np.pi)) * np.stack([np.cos(phase), np.sin(phase)])

    def frame(self, columns: FloatArray) -> Frame:
        """Return the frame of the circle: its diameter is one, wherever the data stand on it."""
        extent = np.ptp(columns, axis=1).max(keepdims=True)
        # Rounding leaves a little between equal phases.
        extent[extent < 1e-9 * self.period] = 0.0
        self._check_extent(extent, columns.shape[1])
        return Frame(np.zeros(2), np.full(2, self.period / np.pi))
