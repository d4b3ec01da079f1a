"""Find the observations near any place: for each cell, or for tiles of cells that share them.

Tiles are cubes of a lattice that is fixed by the length scales. A cube is halved until the data
that it is predicted from reach well beyond it; so tiles are small where data are dense, and a
tile, hence a prediction, is a function of the place and the data alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xcopula.jit.neighbours import Terms
from xcopula.process import Process, Sample
from xcopula.solvers.graph import WIDER, Near, choose, places, tree_of

__all__ = ["Search", "gaps_around", "search_of"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# The largest tile, in length scales, and how often it may be halved.
_EDGE = 0.5
_HALVINGS = 40
# The neighbours of a tile reach from its centre this many times as far as its corners do.
_REACH = 2.5
# A gap: how far it reaches, in length scales, and how many values it has at most.
_GAP = 0.5
_GAP_VALUES = 300


@dataclass(frozen=True)
class Search:
    """A sample and its trees, one for each task.

    Attributes
    ----------
    near : Near
    trees : tuple
    most : int
        How many observations serve a prediction.
    """

    near: Near
    trees: tuple[Any, ...]
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
        return self._terms(*self._find(where, points, sites, task, without))

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
            neighbours, counts = self._find(
                middle, (middle * self.near.lengths).T, np.full(len(tiles), -1, np.int64), task
            )
            reach = self._reach(middle, neighbours, counts)
            good = reach >= _REACH * 0.5 * edge * np.sqrt(where.shape[1])
            if halving == _HALVINGS - 1:
                good[:] = True
            label = label.reshape(-1)
            kept = good[label]
            by_tile = np.argsort(label[kept], kind="stable")
            order.append(todo[kept][by_tile])
            sizes.append(np.bincount(label[kept], minlength=len(tiles))[good])
            found.append((neighbours[good], counts[good]))
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
        wide = self.most if self.near.distance_decides else int(np.ceil(WIDER * self.most))
        more = max(map(len, without), default=0)
        found = []
        for tree, start in zip(self.trees, self.near.sample.offsets, strict=False):
            _, index = tree.query(where, k=np.arange(1, min(wide + more, tree.n) + 1))
            index = (index + start).astype(np.int32)
            for row, others in zip(index, without, strict=False):
                row[np.isin(row, others)] = -1
            if more:
                # The nearest come first, what is left out last: as many as others look at.
                ranked = np.argsort(index < 0, axis=1, kind="stable")[:, :wide]
                index = np.take_along_axis(index, ranked, axis=1)
            found.append(index)
        candidates = np.concatenate(found, axis=1)
        return choose(self.near, points, sites, task, candidates, self.most)

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


def gaps_around(
    process: Process, theta: FloatArray, sample: Sample, rows: IntArray
) -> list[IntArray]:
    """Return what to leave out around some observations, so that each lies in a gap.

    All that is nearer than half a length scale, but no more than the nearest few hundred.
    """
    near = Near.of(process, theta, sample)
    most = min(_GAP_VALUES + 1, sample.size)
    distance, index = tree_of(near.places).query(
        near.places[rows], k=np.arange(1, most + 1), distance_upper_bound=_GAP
    )
    return [
        np.setdiff1d(found[np.isfinite(away)], [row])
        for row, found, away in zip(rows, index, distance, strict=True)
    ]


def search_of(process: Process, theta: FloatArray, sample: Sample, most: int) -> Search:
    """Prepare a sample for searches at theta."""
    near = Near.of(process, theta, sample)
    trees = tuple(tree_of(near.places[sample.task(i)]) for i in range(sample.tasks))
    return Search(near, trees, min(most, sample.size))
