"""Find the observations near any place: for each cell, or for tiles of cells that share them.

Tiles are cubes of a lattice that is fixed by the length scales. A cube is halved until the data
that it is predicted from reach well beyond it; so tiles are small where data are dense, and a
tile, hence a prediction, is a function of the place and the data alone.

Most neighbours are the nearest. In the midst of a gap these may all stand on one side of it. So
some are the nearest of a thinned sample, and some of one that is thinner still: they surround it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xcopula.arrays import FloatArray, IntArray
from xcopula.jit.neighbours import Terms
from xcopula.process import Process, Sample
from xcopula.solvers.graph import choose
from xcopula.solvers.near import WIDER, Near, places, tree_of

__all__ = ["Search", "search_of"]

# The largest tile, in length scales, and how often it may be halved.
_EDGE = 0.5
_HALVINGS = 40
# The neighbours of a tile reach from its centre this many times as far as its corners do.
_REACH = 2.5
# What of the neighbours comes from thinned samples, and how much thinner each is than all. Tasks of
# fewer values than this are not thinned.
_FAR, _THINNER, _FEWEST = 0.15, (8, 64), 2000


@dataclass(frozen=True)
class Level:
    """Trees of some observations of each task, and their numbers."""

    trees: tuple[Any, ...]
    rows: tuple[IntArray, ...]

    @classmethod
    def of(cls, near: Near, rows: Sequence[IntArray]) -> Level:
        """Build the trees of some observations of each task."""
        return cls(tuple(tree_of(near.places[r]) for r in rows), tuple(rows))

    def nearest(
        self, where: FloatArray, count: int, without: Sequence[IntArray]
    ) -> npt.NDArray[np.int32]:
        """Return the nearest (r, c) of each task to places (r, d), the nearest first.

        What a place does ``without`` is -1 and comes last.
        """
        more = max(map(len, without), default=0)
        found = []
        for tree, rows in zip(self.trees, self.rows, strict=True):
            if not tree.n:
                continue  # a variable that is switched off
            _, index = tree.query(where, k=np.arange(1, min(count + more, tree.n) + 1))
            numbers = rows[index].astype(np.int32)
            if more == 1 and all(map(len, without)):
                numbers[numbers == np.stack(without)] = -1  # each does without itself
            else:
                for row, others in zip(numbers, without, strict=False):
                    row[np.isin(row, others)] = -1
            found.append(_last(numbers)[:, :count] if more else numbers)
        return np.concatenate(found, axis=1)


def _last(numbers: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Put what is none last in each row."""
    return np.take_along_axis(numbers, np.argsort(numbers < 0, axis=1, kind="stable"), axis=1)


@dataclass(frozen=True)
class Search:
    """A sample and its trees, one for each task.

    Attributes
    ----------
    near : Near
    all : Level
    thinned : tuple of Level
    most : int
        How many observations serve a prediction.
    """

    near: Near
    all: Level
    thinned: tuple[Level, ...]
    most: int

    def cells(
        self,
        points: FloatArray,
        sites: IntArray,
        task: int,
        without: Sequence[IntArray] = (),
    ) -> Terms:
        """Return the neighbours of scaled points (d, r), for a prediction of a task.

        Observations that each point does ``without`` are no neighbours of it.
        """
        where = places(points, self.near.lengths)
        found = self._find(where, points, sites, task, without)
        return self._terms(*self._with_far(where, points, sites, task, *found, without))

    def tiles(
        self, points: FloatArray, sites: IntArray, task: int
    ) -> tuple[IntArray, IntArray, Terms]:
        """Sort scaled points (d, r) into tiles.

        Returns
        -------
        order : ndarray (r,)
            The points, those of a tile one after the other.
        starts : ndarray (tiles + 1,)
            Where each tile begins.
        which : Terms
            The neighbours of each tile.
        """
        where = places(points, self.near.lengths)
        todo, edge = np.arange(len(where)), _EDGE
        order, sizes, found = [], [], []
        for halving in range(_HALVINGS):
            codes = np.floor(where[todo] / edge).astype(np.int64)
            tiles, label = np.unique(codes, axis=0, return_inverse=True)
            middle = np.asarray((tiles + 0.5) * edge, np.float64)
            nowhere = np.full(len(tiles), -1, np.int64)
            at = middle, (middle * self.near.lengths).T, nowhere, task
            neighbours, counts = self._find(*at)
            reach = self._reach(middle, neighbours, counts)
            good = reach >= _REACH * 0.5 * edge * np.sqrt(where.shape[1])
            if halving == _HALVINGS - 1:
                good[:] = True
            label = label.reshape(-1)
            kept = good[label]
            by_tile = np.argsort(label[kept], kind="stable")
            order.append(todo[kept][by_tile])
            sizes.append(np.bincount(label[kept], minlength=len(tiles))[good])
            chosen = (a[good] for a in (neighbours, counts))
            found.append(self._with_far(middle[good], at[1][:, good], nowhere[good], task, *chosen))
            todo, edge = todo[~kept], 0.5 * edge
            if not todo.size:
                break
        which = self._terms(*map(np.concatenate, zip(*found, strict=True)))
        starts = np.cumsum(np.concatenate([[0], *sizes]), dtype=np.int64)
        return np.concatenate(order), starts, which

    def _find(
        self,
        where: FloatArray,
        points: FloatArray,
        sites: IntArray,
        task: int,
        without: Sequence[IntArray] = (),
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return neighbours (r, m) of places (r, d), and how many each has."""
        count = self.most - len(self.thinned) * self._far
        candidates = self.all.nearest(where, self._wide(count), without)
        return choose(self.near, points, sites, task, candidates, count)

    @property
    def _far(self) -> int:
        """How many neighbours come from each thinned sample."""
        return int(_FAR * self.most)

    def _wide(self, count: int) -> int:
        """Return how many candidates there are for so many neighbours of each task."""
        return count if self.near.distance_decides else int(np.ceil(WIDER * count))

    def _with_far(
        self,
        where: FloatArray,
        points: FloatArray,
        sites: IntArray,
        task: int,
        neighbours: npt.NDArray[np.int32],
        counts: npt.NDArray[np.int32],
        without: Sequence[IntArray] = (),
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return neighbours (r, m) with some of the thinned samples, by increasing number."""
        if not self.thinned or not self._far:
            return neighbours, counts
        none = np.iinfo(np.int32).max
        chosen = np.where(np.arange(neighbours.shape[1]) < counts[:, None], neighbours, none)
        for level, thinner in zip(self.thinned, _THINNER, strict=True):
            # Some are neighbours already: so many more are looked at.
            count = self._wide(self._far) + neighbours.shape[1] // thinner + self._far
            candidates = level.nearest(where, count, without)
            known = (candidates[:, :, None] == chosen[:, None, :]).any(axis=2)
            candidates[known] = -1
            more, number = choose(self.near, points, sites, task, _last(candidates), self._far)
            more[np.arange(self._far) >= number[:, None]] = none
            chosen = np.concatenate([chosen, more], axis=1)
        chosen.sort(axis=1)
        counts = (chosen < none).sum(axis=1).astype(np.int32)
        return np.where(chosen < none, chosen, 0).astype(np.int32), counts

    def _reach(
        self,
        middle: FloatArray,
        neighbours: npt.NDArray[np.int32],
        counts: npt.NDArray[np.int32],
    ) -> FloatArray:
        """Return how far (r,) the neighbours of every task reach; a task that is all there, any."""
        offsets = self.near.sample.offsets
        away = np.linalg.norm(self.near.places[neighbours] - middle[:, None], axis=2)
        there = np.arange(neighbours.shape[1]) < counts[:, None]
        reach = np.full(len(middle), np.inf)
        for first, last in itertools.pairwise(offsets):
            own = there & (neighbours >= first) & (neighbours < last)
            some = (own.sum(axis=1) > 0) & (own.sum(axis=1) < last - first)
            reach[some] = np.minimum(reach, np.where(own, away, 0.0).max(axis=1))[some]
        return reach

    @staticmethod
    def _terms(neighbours: npt.NDArray[np.int32], counts: npt.NDArray[np.int32]) -> Terms:
        size = len(counts)
        return Terms(np.arange(size), np.ones(size), np.ascontiguousarray(neighbours), counts)


def search_of(process: Process, theta: FloatArray, sample: Sample, most: int) -> Search:
    """Prepare a sample for searches at theta."""
    near = Near.of(process, theta, sample)
    rows = [np.arange(sample.size)[sample.task(i)] for i in range(sample.tasks)]
    thinned: tuple[Level, ...] = ()
    if most < sample.size and max(sample.sizes) >= _FEWEST:
        thinned = tuple(Level.of(near, [_thin(near, r, k) for r in rows]) for k in _THINNER)
    return Search(near, Level.of(near, rows), thinned, min(most, sample.size))


def _thin(near: Near, rows: IntArray, thinner: int) -> IntArray:
    """Return some of a task's observations, whatever order they came in."""
    if rows.size < _FEWEST:
        return rows
    shuffled = np.lexsort(near.places[rows].T)[np.random.default_rng(0).permutation(rows.size)]
    return np.sort(rows[shuffled[: rows.size // thinner]])
