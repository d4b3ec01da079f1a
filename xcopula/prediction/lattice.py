"""Cells that are a product: where waves of a grid are one matrix product.

A wave at the cell (i, j) of a rectilinear grid is a product of a factor of i and a factor of j, as
its phase is a sum. So a draw on a grid of p by q cells takes the sines of p + q numbers, not of
p q, and a product of two matrices. The same holds for space and time, whatever the cells in space
are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xcopula.arrays import FloatArray
from xcopula.jit.waves import turn
from xcopula.labels.coordinates import CoordinateSystem
from xcopula.process.paths import Waves

__all__ = ["Lattice", "find_lattice"]

# Waves, and cells of one side, that are worked on at a time.
_WAVES, _CELLS = 512, 4096


@dataclass(frozen=True)
class Lattice:
    """The cells of a block, as pairs of a cell of one side and one of the other.

    Attributes
    ----------
    shape : tuple of int
        Of the block.
    sides : tuple of tuple of int
        Axes of the block of each side.
    inputs : tuple of ndarray (d, n)
        Scaled inputs of the cells of each side; what they do not tell is zero, so that those of a
        cell of the block are the sum of both.
    """

    shape: tuple[int, ...]
    sides: tuple[tuple[int, ...], tuple[int, ...]]
    inputs: tuple[FloatArray, FloatArray]

    def signal(self, waves: Waves, task: int) -> FloatArray:
        """Return the signal of a task on all cells of the block, in one realization."""
        rows, columns = self.inputs
        total = np.zeros((rows.shape[1], columns.shape[1]))
        for k in range(0, waves.frequencies.shape[1], _WAVES):
            some = slice(k, k + _WAVES)
            frequencies = np.ascontiguousarray(waves.frequencies[:, some])
            a, b = waves.cosines[task, some], waves.sines[task, some]
            across = _turned(columns, frequencies)
            for start in range(0, rows.shape[1], _CELLS):
                part = slice(start, start + _CELLS)
                along = _turned(np.ascontiguousarray(rows[:, part]), frequencies)
                cosine, sine = along[:, : a.size], along[:, a.size :]
                both = np.concatenate([a * cosine + b * sine, b * cosine - a * sine], axis=1)
                total[part] += both @ across.T
        order = [*self.sides[0], *self.sides[1]]
        found = total.reshape([self.shape[axis] for axis in order])
        return np.transpose(found, np.argsort(order))


def _turned(inputs: FloatArray, frequencies: FloatArray) -> FloatArray:
    out = np.empty((inputs.shape[1], 2 * frequencies.shape[1]))
    turn(inputs, frequencies, out)
    return out


def find_lattice(
    system: CoordinateSystem, coordinates: Sequence[npt.NDArray[Any]], shape: tuple[int, ...]
) -> Lattice | None:
    """Return the block as a lattice of two sides, None where no such sides are.

    Parameters
    ----------
    system : CoordinateSystem
    coordinates : sequence of ndarray
        Of each axis of the system, with all axes of the block: of length one where it is constant.
    shape : tuple of int
    """
    needed = _needed(system, [{k for k, n in enumerate(c.shape) if n > 1} for c in coordinates])
    bundles = _bundles(needed, len(shape))
    if len(bundles) < 2:
        return None
    sides = _sides(bundles, shape)
    both = []
    for k, side in enumerate(sides):
        numbers = np.zeros((len(coordinates), math.prod(shape[a] for a in side)))
        # What does not vary at all belongs to the first side.
        here = [bool(own & set(side)) or (not own and k == 0) for own in needed]
        for row, c, mine in zip(numbers, coordinates, here, strict=True):
            if mine:
                whole = [n if a in side else 1 for a, n in enumerate(shape)]
                ordered = np.transpose(np.broadcast_to(c, whole), [*side, *_others(side, shape)])
                row[:] = ordered.reshape(-1)
        both.append(_only(system, here, system.to_columns(list(numbers))))
    return Lattice(tuple(shape), sides, (both[0], both[1]))


def _others(side: tuple[int, ...], shape: tuple[int, ...]) -> list[int]:
    return [a for a in range(len(shape)) if a not in side]


def _needed(system: CoordinateSystem, varying: Sequence[set[int]]) -> list[set[int]]:
    """Return, for each coordinate, the axes of the block that its columns vary with.

    A plane has a column for each coordinate; a point on the globe depends on both, also where one
    of them is constant.
    """
    needed: list[set[int]] = []
    start = 0
    for group in system.groups:
        own = varying[start : (start := start + len(group.axes))]
        needed += own if group.separable else [set().union(*own)] * len(own)
    return needed


def _bundles(needed: Sequence[set[int]], axes: int) -> list[tuple[int, ...]]:
    """Return axes of the block in bundles that no input needs two of."""
    bundles = [{a} for a in range(axes)]
    for own in filter(None, needed):
        joined = set().union(*(b for b in bundles if b & own))
        bundles = [*(b for b in bundles if not b & own), joined]
    return [tuple(sorted(b)) for b in bundles]


def _sides(
    bundles: Sequence[tuple[int, ...]], shape: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return two sides with as few cells together as can be."""

    def join(which: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        return tuple(sorted(itertools.chain(*which)))

    splits = [
        (join([b for b in bundles if b not in some]), join(some))
        for size in range(1, len(bundles))
        for some in itertools.combinations(bundles, size)
    ]
    return min(splits, key=lambda two: sum(math.prod(shape[a] for a in side) for side in two))


def _only(system: CoordinateSystem, here: Sequence[bool], columns: FloatArray) -> FloatArray:
    """Return columns with zero in those that these axes do not tell."""
    kept, start = [], 0
    for group in system.groups:
        own = here[start : (start := start + len(group.axes))]
        kept += list(own) if group.separable else [any(own)] * group.columns
    return np.where(np.array(kept)[:, None], columns, 0.0)
