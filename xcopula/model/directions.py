"""Directions of correlation in the words of the data: bearings, or angles between axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xcopula.arrays import FloatArray
from xcopula.labels.coordinates import CoordinateSystem, Globe
from xcopula.labels.coordinates.units import is_length
from xcopula.process import Process

__all__ = ["Directions", "find_directions", "short", "with_units"]


@dataclass(frozen=True)
class Directions:
    """How ranges of one group of coordinates differ by direction.

    Attributes
    ----------
    stretch : ndarray (k,)
        Ranges along each principal direction are so many length scales; the longest first.
    vectors : ndarray (k, k)
        These directions, each by its components along the axes.
    axes : tuple of str
        Names of the axes; "east" and "north" on the globe.
    compass : bool
        Whether the axes are east and north, in this order.
    """

    stretch: FloatArray
    vectors: FloatArray
    axes: tuple[str, ...]
    compass: bool

    @property
    def ratio(self) -> float:
        """The longest range over the shortest."""
        return float(self.stretch[0] / self.stretch[-1])

    @property
    def angle(self) -> float:
        """Where the longest range points, in degrees below 180: see :attr:`origin`.

        NaN where there are more than two axes.
        """
        if len(self.axes) != 2:
            return np.nan
        first, second = self.vectors[0]
        whole = np.arctan2(first, second) if self.compass else np.arctan2(second, first)
        return float(np.rad2deg(whole) % 180.0)

    @property
    def origin(self) -> str:
        """What the angle is counted from, and which way."""
        if len(self.axes) != 2:
            return ""
        return "north, clockwise" if self.compass else f"{self.axes[0]} towards {self.axes[1]}"

    def describe(self, lengths: npt.ArrayLike, units: str) -> str:
        """Say how long ranges are in which direction, for the length scale of each structure."""
        along, *others = (with_units(np.multiply(lengths, s), units) for s in self.stretch)
        if len(self.axes) == 2:
            return f"{along} along {self._course()}, {others[0]} across"
        each = zip((along, *others), self.vectors, strict=True)
        return ", ".join(f"{length} along {self._components(v)}" for length, v in each)

    def _course(self) -> str:
        """Name the longer direction of a plane: N 52 E, or 38 degrees from x to y."""
        angle = round(self.angle) % 180
        if not self.compass:
            return f"{angle} degrees from {self.axes[0]} to {self.axes[1]}"
        return f"N {angle} E" if angle <= 90 else f"N {180 - angle} W"

    def _components(self, vector: FloatArray) -> str:
        sign = 1.0 if vector[np.argmax(np.abs(vector))] > 0.0 else -1.0
        parts = zip(self.axes, sign * vector, strict=True)
        return f"({', '.join(f'{v:.2f} {name}' for name, v in parts)})"


def with_units(lengths: Iterable[float], units: str) -> str:
    """Return lengths, one for each structure, with their units."""
    return f"{', '.join(map(short, lengths))} {units}".rstrip()


def short(number: float) -> str:
    """Return a number with three digits, without an exponent up to a million: 2,120."""
    text = f"{number:.3g}"
    return f"{float(text):,.0f}" if 1e3 <= abs(float(text)) < 1e6 else text


def find_directions(
    process: Process, theta: FloatArray, system: CoordinateSystem
) -> list[Directions | None]:
    """Return the directions of each group of coordinates; None where all are alike."""
    covariance = process.covariance
    found: list[Directions | None] = []
    metrics = covariance.metrics(theta[: covariance.size])
    for group, columns, own in zip(system.groups, covariance.groups, metrics, strict=True):
        if not columns.directions:
            found.append(None)
            continue
        logs, vectors = columns.principal(own)
        axes, compass = tuple(a.name for a in group.axes), isinstance(group, Globe)
        if compass:
            axes = ("east", "north")
        elif {a.role for a in group.axes} == {"x", "y"} and (
            system.projection is not None or all(is_length(a.units) for a in group.axes)
        ):
            compass = True
            order = [a.role == "y" for a in group.axes]
            axes, vectors = _in_order(axes, vectors, order)
        found.append(Directions(np.exp(logs), vectors, axes, compass))
    return found


def _in_order(
    axes: tuple[str, ...], vectors: FloatArray, last: Sequence[bool]
) -> tuple[tuple[str, ...], FloatArray]:
    """Put axes that come last behind the others."""
    order = np.argsort(last, kind="stable")
    return tuple(axes[k] for k in order), vectors[:, order]
