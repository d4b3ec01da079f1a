"""Number the sites of labelled data: one number for each, with one tolerance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from xcopula.arrays import FloatArray, IntArray
from xcopula.labels.coordinates import CoordinateSystem
from xcopula.labels.coordinates.groups import Tolerance
from xcopula.process import Sites, number_sites

__all__ = ["find_sites", "sites_within", "tell_apart"]

# Of the smallest distance: a site midway between two is neither of them.
_LESS = 0.99


def find_sites(
    system: CoordinateSystem, positions: Sequence[FloatArray]
) -> tuple[Sites, list[IntArray]]:
    """Number the sites of some variables.

    Coordinates that differ by the rounding of single precision are one site. Where the sites of
    one variable lie closer than that, just under half their smallest distance tells sites apart,
    or less of it if there are more than two variables: two sites of one variable are then never
    joined by a chain of sites of the others.

    Parameters
    ----------
    system : CoordinateSystem
    positions : sequence of ndarray (n_i, axes)
        Coordinates of each variable as numbers.

    Returns
    -------
    Sites
    list of ndarray (n_i,), int64
        The number of each observation's site.
    """
    both = system.tolerance(list(np.concatenate(positions).T))
    each = [system.places(list(p.T)) for p in positions]
    links = max(2, len(each))
    closest = min(_closest(places, both, links / _LESS) for places in _different(each))
    share = min(1.0, _LESS * closest / links)
    tolerance = np.maximum(both.most * share, both.least)
    return _number(each, tolerance)


def sites_within(
    system: CoordinateSystem, positions: Sequence[FloatArray], tolerance: FloatArray
) -> tuple[Sites, list[IntArray]]:
    """Number the sites of some variables by a tolerance (k,) that was found before."""
    return _number([system.places(list(p.T)) for p in positions], tolerance)


def tell_apart(sites: Sequence[IntArray], specimens: Sequence[IntArray]) -> list[IntArray]:
    """Give replicates numbers of their own, and what was measured together with them.

    They share the signal of their site, but not its nugget. A target there has the number of the
    site, which none of them has: an observation of it is a new measurement.

    Parameters
    ----------
    sites, specimens : sequence of ndarray (n_i,)
        The site of each observation of each variable, and what was measured together.

    Returns
    -------
    list of ndarray (n_i,), int64
    """
    which = np.concatenate(sites)
    pairs = np.stack([which, np.concatenate(specimens)])
    repeated = np.concatenate([_is_repeated(own) for own in sites])
    if not repeated.any():
        return list(sites)
    # Only what stands at such a site is looked at.
    there = np.flatnonzero(np.isin(which, which[repeated]))
    _, measured = np.unique(pairs[:, there], axis=1, return_inverse=True)
    measured = measured.reshape(-1)
    apart = np.unique(measured[repeated[there]])
    own = np.isin(measured, apart)
    numbers = which.copy()
    numbers[there[own]] = which.max() + 1 + np.searchsorted(apart, measured[own])
    return np.split(numbers, np.cumsum([s.size for s in sites])[:-1])


def _is_repeated(sites: IntArray) -> npt.NDArray[np.bool_]:
    """Tell which observations of a variable share their site with another one."""
    _, place, counts = np.unique(sites, return_inverse=True, return_counts=True)
    return np.asarray(counts[place] > 1)


def _number(each: Sequence[FloatArray], tolerance: FloatArray) -> tuple[Sites, list[IntArray]]:
    sites, numbers = number_sites(np.concatenate(each, axis=1), tolerance)
    return sites, np.split(numbers, np.cumsum([p.shape[1] for p in each])[:-1])


def _different(each: Sequence[FloatArray]) -> list[FloatArray]:
    """Leave out positions that another variable has too: variables of one file often share them."""
    kept: list[FloatArray] = []
    for places in each:
        if not any(np.array_equal(places, other) for other in kept):
            kept.append(places)
    return kept


def _closest(places: FloatArray, tolerance: Tolerance, reach: float) -> float:
    """Return the smallest distance between sites of a variable, in units of the most tolerance.

    Infinite where it is more than ``reach``.
    """
    from scipy.spatial import cKDTree

    points = (places / tolerance.most[:, None]).T
    tree = cKDTree(points, balanced_tree=False, compact_nodes=False)
    distance, _ = tree.query(points, k=[2], p=np.inf, distance_upper_bound=reach)
    if np.isinf(distance).all():
        return np.inf  # as a rule: all sites are well apart
    sites, _ = number_sites(places, tolerance.least)
    _, first = np.unique(sites.numbers, return_index=True)
    points = (sites.places[:, first] / tolerance.most[:, None]).T
    tree = cKDTree(points, balanced_tree=False, compact_nodes=False)
    distance, _ = tree.query(points, k=[2], p=np.inf, distance_upper_bound=reach)
    return float(distance.min())
