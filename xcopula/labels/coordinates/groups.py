"""Groups of coordinates that share one distance, and the space that each kind is measured in.

A plane is itself. Longitude and latitude become points of a sphere in three dimensions, where the
chord is a distance: no date line, no poles, and every kernel stays valid. A cycle becomes a circle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xcopula.labels.coordinates.axis import Axis
from xcopula.errors import CoordinateError

__all__ = ["EARTH_RADIUS", "CoordinateGroup", "Cycle", "Frame", "Globe"]

FloatArray = npt.NDArray[np.float64]

EARTH_RADIUS = 6371.0  # km
# Of a cycle's turn, in circumferences. Sites are told apart from 1e-9 of the extent on. A thousand
# turns rise by 6e-6 of the diameter.
_RISE = 2e-9


class Frame(NamedTuple):
    """Centre and scale of each column, to bring inputs to about unit extent."""

    centre: FloatArray
    scale: FloatArray


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

    def embed(self, numbers: FloatArray) -> FloatArray:
        """Turn degrees (2, m) into points (3, m) of the sphere."""
        longitude, latitude = np.deg2rad(numbers)
        ring = np.cos(latitude)
        return EARTH_RADIUS * np.stack(
            [ring * np.cos(longitude), ring * np.sin(longitude), np.sin(latitude)]
        )

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

    Turn after turn rises by a hair, too little for any kernel to notice: the same day of another
    year has the same signal, but is another site, with a nugget of its own.
    """

    period: float = 1.0

    @property
    def columns(self) -> int:
        """Number of columns: points in space."""
        return 3

    def embed(self, numbers: FloatArray) -> FloatArray:
        """Turn numbers (1, m) into points (3, m) of the circle."""
        turns = numbers[0] / self.period
        phase = 2.0 * np.pi * turns
        rise = 2.0 * np.pi * _RISE * turns
        return (self.period / (2.0 * np.pi)) * np.stack([np.cos(phase), np.sin(phase), rise])

    def frame(self, columns: FloatArray) -> Frame:
        """Return the frame of the circle: its diameter is one, wherever the data stand on it."""
        extent = np.ptp(columns[:2], axis=1).max(keepdims=True)
        # Rounding leaves a little between equal phases.
        extent[extent < 1e-9 * self.period] = 0.0
        self._check_extent(extent, columns.shape[1])
        return Frame(np.zeros(3), np.full(3, self.period / np.pi))
