"""Sites have numbers: whether two points are the same site is asked once, of one tolerance."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from xcopula.arrays import FloatArray, IntArray

__all__ = ["NO_SITE", "Sites", "number_sites"]

# The number of a point that is no site of the data.
NO_SITE = -1


@dataclass(frozen=True)
class Sites:
    """The sites of some data, and how near a point must be to stand at one of them.

    Attributes
    ----------
    places : ndarray (k, s)
        Different positions of the data, in coordinates that tell sites apart.
    numbers : ndarray (s,), int64
        The site of each; positions that are within the tolerance share one.
    tolerance : ndarray (k,)
        How far two positions of one site may lie apart, along each coordinate.
    """

    places: FloatArray
    numbers: IntArray
    tolerance: FloatArray

    def find(self, places: FloatArray) -> IntArray:
        """Return the numbers (m,) of the sites at positions (k, m); -1 where there is none."""
        found = np.full(places.shape[1], NO_SITE, np.int64)
        known = np.isfinite(places).all(axis=0)
        distance, nearest = self._tree.query(
            (places[:, known] / self.tolerance[:, None]).T,
            p=np.inf,
            distance_upper_bound=1.0 + 1e-6,
        )
        found[known] = np.append(self.numbers, NO_SITE)[
            np.where(np.isfinite(distance), nearest, len(self.numbers))
        ]
        return found

    @functools.cached_property
    def _tree(self) -> Any:
        return _tree(self.places, self.tolerance)

    def __getstate__(self) -> dict[str, Any]:
        # The tree is quickly built again: it does not travel.
        return {f.name: getattr(self, f.name) for f in fields(self)}


def number_sites(places: FloatArray, tolerance: FloatArray) -> tuple[Sites, IntArray]:
    """Number the sites of positions (k, n); also return the number of each position (n,).

    Positions that agree to the last bit are found by sorting, those within the tolerance by a tree
    of what is left: O(n log n) in all.
    """
    order = np.lexsort(places)
    ordered = places[:, order]
    new = np.ones(order.size, bool)
    new[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    position = np.empty(order.size, np.int64)
    position[order] = np.cumsum(new) - 1
    different = np.ascontiguousarray(ordered[:, new])
    numbers = np.arange(different.shape[1], dtype=np.int64)
    close = _tree(different, tolerance).query_pairs(1.0, p=np.inf, output_type="ndarray")
    if len(close):
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        size = different.shape[1]
        graph = coo_array((np.ones(len(close)), (close[:, 0], close[:, 1])), shape=(size, size))
        numbers = connected_components(graph, directed=False)[1].astype(np.int64)
    return Sites(different, numbers, tolerance), numbers[position]


def _tree(places: FloatArray, tolerance: FloatArray) -> Any:
    from scipy.spatial import cKDTree

    # Sliding midpoints: medians would search long among coordinates that repeat.
    points = (places / tolerance[:, None]).T
    return cKDTree(points, balanced_tree=False, compact_nodes=False)
