"""Which values are withheld together: random sites, blocks, stations, spans of time, or as given.

A fold is a property of a site, so that whatever stands at a withheld place can be withheld too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.arguments import check_integer
from xcopula.arrays import FloatArray, IntArray
from xcopula.labels.coordinates import CoordinateSystem
from xcopula.labels.coordinates.groups import CoordinateGroup
from xcopula.labels.observations import Observations
from xcopula.labels.variables import Data
from xcopula.methods.partition import centres
from xcopula.process import NO_SITE, number_sites
from xcopula.warn import shown

__all__ = ["KINDS", "Folds", "assign", "find_labels"]

KINDS = ("blocks", "stations", "time")
_FOLDS = 10


@dataclass(frozen=True)
class Folds:
    """The fold of every site of some observations.

    Attributes
    ----------
    of_site : ndarray (s,), int64
        By the number of the site; -1 for one that is never withheld.
    labels : ndarray (k,)
        Names of the folds: numbers, or what was given.
    kind : str
        "sites", one of :data:`KINDS`, or "given".
    """

    of_site: IntArray
    labels: npt.NDArray[Any]
    kind: str

    def of(self, observations: Observations) -> IntArray:
        """Return the fold (n,) of every observation, of all variables."""
        return self.of_site[observations.places()]


def find_labels(folds: object, data: Data, primary: str) -> xr.DataArray | None:
    """Return the variable that labels the folds, or None if they are a number or a kind.

    Raises
    ------
    TypeError
        If they are neither.
    ValueError
        If they name neither a kind nor a variable.
    """
    if isinstance(folds, xr.DataArray):
        return folds
    if not isinstance(folds, str):
        check_integer("folds", folds, least=2)
        return None
    if folds in KINDS:
        return None
    beside = data[primary].coords
    for place in (data, beside):
        if folds in place:
            found: xr.DataArray = place[folds]
            return found
    there = sorted({*map(str, data), *map(str, beside)} - {primary})
    raise ValueError(
        f"Unknown folds {folds!r}. Give a number, one of {', '.join(map(repr, KINDS))}, or the "
        f"name of a variable that labels them: the data have {there}."
    )


def assign(
    observations: Observations,
    folds: object,
    *,
    count: int | None = None,
    seed: int = 0,
    given: xr.DataArray | None = None,
) -> Folds:
    """Give every site its fold.

    Parameters
    ----------
    folds : int or str
        A number of folds of random sites, or one of :data:`KINDS`.
    count : int, optional
        How many blocks, groups of stations, or spans.
    seed : int
        Of random folds.
    given : DataArray, optional
        Labels of the folds, on dims of the primary: they come before ``folds``.

    Raises
    ------
    ValueError
        If the data do not allow such folds.
    """
    places = observations.places()
    size = int(places.max()) + 1
    if count is not None and (given is not None or not isinstance(folds, str)):
        raise ValueError(
            f"`count` is for {', '.join(map(repr, KINDS))}; found {count!r} with "
            f"folds={shown(folds)}. Leave it out."
        )
    if given is not None:
        return _given(observations, given, size)
    rng = np.random.default_rng(seed)
    own = np.unique(places[observations.sample.task(0)])
    if not isinstance(folds, str):
        number = _enough(check_integer("folds", folds, least=2), own.size, "sites")
        of_site = np.full(size, NO_SITE, np.int64)
        of_site[own] = rng.permutation(own.size) % number
        return Folds(of_site, np.arange(number), "sites")
    if count is not None:
        check_integer("count", count, least=2)
    numbers, first = np.unique(places, return_index=True)
    sites = _Sites(observations.coordinates, observations.positions[first], np.isin(numbers, own))
    make = {"blocks": _blocks, "stations": _stations, "time": _spans}[folds]
    found, number = make(sites, count, rng)
    of_site = np.full(size, NO_SITE, np.int64)
    of_site[numbers] = found
    return Folds(of_site, np.arange(number), folds)


def _enough(asked: int, there: int, what: str) -> int:
    if asked > there:
        raise ValueError(
            f"{asked} folds were asked for, but the primary has {there} {what}. Use at most "
            f"{there}."
        )
    return asked


def _given(observations: Observations, given: xr.DataArray, size: int) -> Folds:
    """Read the folds of the primary's values from labels beside them."""
    (origin,) = observations.origins[0]
    name = observations.variables[0].name
    sizes = dict(zip(origin.dims, origin.shape, strict=True))
    found = {str(d): n for d, n in given.sizes.items()}
    if not found or any(sizes.get(d) != n for d, n in found.items()):
        raise ValueError(
            f"`folds` must label the values of {name!r} along dims of its own, {sizes}; found "
            f"{found}."
        )
    labels = {label.name: label for label in origin.labels if label.dims == (label.name,)}
    for dim in found:
        index, known = given.indexes.get(dim), labels.get(dim)
        if index is None or known is None:
            continue
        if not np.array_equal(origin.at([dim], np.asarray(index)), origin.column(known)):
            raise ValueError(
                f"`folds` has other labels along {dim!r} than {name!r}. Align it first, with "
                "`reindex_like`."
            )
    each = origin.at([str(d) for d in given.dims], np.asarray(given.values))
    missing = np.array([v is None or v != v for v in each.tolist()])
    if missing.any():
        raise ValueError(
            f"`folds` is missing at {missing.sum()} of the {missing.size} values of {name!r}. Give "
            "each value a fold, or set it to NaN in the data."
        )
    names, codes = np.unique(
        each.astype(str) if each.dtype.kind == "O" else each, return_inverse=True
    )
    if names.size < 2:
        raise ValueError(f"`folds` has one label only, {names[0]!r}. At least two are needed.")
    of_site = np.full(size, NO_SITE, np.int64)
    places = observations.places()[observations.sample.task(0)]
    of_site[places] = codes
    if (of_site[places] != codes).any():
        raise ValueError(
            f"`folds` has several labels at a site where {name!r} has several values. Give "
            "replicates one fold: each would tell what the others are."
        )
    return Folds(of_site, names, "given")


@dataclass(frozen=True)
class _Sites:
    """All sites, in the order of their numbers: where they are, and which the primary has."""

    system: CoordinateSystem
    positions: FloatArray
    primary: npt.NDArray[np.bool_]


def _blocks(sites: _Sites, count: int | None, rng: np.random.Generator) -> tuple[IntArray, int]:
    """Gather sites around centres of the primary's, in the first group of coordinates."""
    from scipy.spatial import cKDTree

    points = sites.system.embed(sites.positions.T)[0]
    own = np.unique(points[:, sites.primary], axis=1)
    middle = centres(own, _enough(count or _FOLDS, own.shape[1], "different places"))
    _, nearest = cKDTree(middle.T).query(points[:, sites.primary].T)
    middle = middle[:, np.unique(nearest)]  # those that have values of the primary
    _, nearest = cKDTree(middle.T).query(points.T)
    return nearest.astype(np.int64), middle.shape[1]


def _is_time(group: CoordinateGroup) -> bool:
    return any(axis.role == "time" or axis.epoch for axis in group.axes)


def _stations(sites: _Sites, count: int | None, rng: np.random.Generator) -> tuple[IntArray, int]:
    """Deal places, with all their times, to folds at random."""
    places, tolerance, start = [], [], 0
    for group in sites.system.groups:
        part = sites.positions[:, start : start + len(group.axes)].T
        start += len(group.axes)
        if not _is_time(group):
            places.append(group.places(part))
            tolerance.append(group.tolerance(places[-1]).most)
    where = np.zeros(len(sites.positions), np.int64)
    if places:
        _, where = number_sites(np.concatenate(places), np.concatenate(tolerance))
    stations = np.unique(where[sites.primary])
    if stations.size in (1, int(sites.primary.sum())):
        found = "all values at one place" if stations.size == 1 else "one value at each place"
        raise ValueError(
            "folds='stations' needs places with several values, at different times say; found "
            f"{found}. Use a number of folds, or 'blocks'."
        )
    number = _enough(count or min(_FOLDS, stations.size), stations.size, "stations")
    fold = np.full(int(where.max()) + 1, NO_SITE, np.int64)
    fold[stations] = rng.permutation(stations.size) % number
    return fold[where], number


def _spans(sites: _Sites, count: int | None, rng: np.random.Generator) -> tuple[IntArray, int]:
    """Cut the primary's times into spans that follow each other."""
    axes = sites.system.axes
    found = [k for k, axis in enumerate(axes) if axis.role == "time" or axis.epoch]
    if not found:
        raise ValueError(
            "folds='time' needs a time among the coordinates, found "
            f"{list(sites.system.names)}. Use a number of folds, or 'blocks'."
        )
    times = sites.positions[:, found[0]]
    own = np.unique(times[sites.primary])
    number = _enough(count or min(_FOLDS, own.size), own.size, "different times")
    if number < 2:
        raise ValueError("folds='time' needs at least two different times, found one.")
    starts = np.array([span[0] for span in np.array_split(own, number)])
    span = np.searchsorted(starts, times, side="right") - 1
    return np.where(times > own[-1], NO_SITE, span).astype(np.int64), number
