r"""Empirical correlations of normal scores beside those of the fitted model.

For two variables and a group of coordinates, products of their scores, centred and divided by
their standard deviations, are averaged over pairs of observations by distance in that group. Only
pairs that are together in all other groups count: those of one date by distance, those of one site
by lag.

Such an average is not the correlation of the process: centring takes out what all observations
have in common, and observations that are close say the same. So scores are drawn from the fitted
model at the same sites, and averaged in the same way. They say what to expect of the averages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from xcopula.arguments import check_integer
from xcopula.arrays import FloatArray, IntArray
from xcopula.kernels import assembly
from xcopula.labels.coordinates import CoordinateGroup, Cycle
from xcopula.linalg import cholesky
from xcopula.model.directions import find_directions
from xcopula.process import Sample

if TYPE_CHECKING:
    from xcopula.model.record import CopulaModel

__all__ = ["Correlogram", "correlograms"]

_DRAWS = 200
_BAND = (0.05, 0.95)
_FEWEST = 5  # pairs of a bin
_USUAL = 10  # as many, on average: small data have fewer bins
_CURVE = 200  # points of the fitted curve
# Where hardly any observations are together in the other groups, those within this share of the
# extent are taken as together.
_TOGETHER = 0.1
_CENTRES = 5  # of large data: around each of them, neighbours are taken
_SPARSE = 1.5  # observations of one variable that are together, on average


@dataclass(frozen=True)
class Correlogram:
    """Correlations of two variables by distance in one group of coordinates.

    Attributes
    ----------
    first, second : str
        The variables; the same for an autocorrelation.
    group : str
        Name of the group of coordinates.
    units : str
        Units of the distances.
    ard : dict
        Where each coordinate of the group has a scale of its own: what a distance of one is along
        each.
    directions : str
        Where ranges of the group differ by direction: how, for a distance of one. Distances are
        those in the metric of the fit.
    distance, empirical, lower, upper : ndarray (b,)
        Mean distance and mean product of the standardised scores in each bin, and between what it
        lies in 90 % of draws from the model.
    count : ndarray (b,), int
        Number of pairs.
    curve : ndarray (2, m)
        Distances and the fitted correlation there.
    at_site : tuple of float, optional
        The empirical and the fitted correlation at the same site, nugget included, of two
        variables that have common sites.
    """

    first: str
    second: str
    group: str
    units: str
    ard: dict[str, float]
    directions: str
    distance: FloatArray
    empirical: FloatArray
    lower: FloatArray
    upper: FloatArray
    count: IntArray
    curve: FloatArray
    at_site: tuple[float, float] | None = None


def correlograms(
    model: CopulaModel,
    tasks: Sequence[int],
    *,
    bins: int = 15,
    most: int = 1500,
    seed: int = 0,
) -> list[Correlogram]:
    """Return correlations group by group: of each variable, then of the primary with the others.

    Parameters
    ----------
    model : CopulaModel
    tasks : sequence of int
        The variables.
    bins : int
        Number of classes of distance, up to half the largest.
    most : int
        Take at most about so many observations for each group, drawn by ``seed``. Work and memory
        grow with its square.
    seed : int
    """
    check_integer("bins", bins, least=1)
    check_integer("most", most, least=10)
    check_integer("seed", seed)
    own = [(t, t) for t in tasks]
    crossed = [(0, t) for t in tasks if t and 0 in tasks]
    found = []
    for facet in _facets(model):
        drawn = _Drawn.of(model, facet, tasks, most, seed)
        found += [drawn.correlogram(pair, bins) for pair in (*own, *crossed)]
    return found


@dataclass(frozen=True)
class _Facet:
    """A group of coordinates, with cycles of the same coordinate: distances are in the first."""

    groups: tuple[CoordinateGroup, ...]
    columns: IntArray
    others: IntArray

    @property
    def own(self) -> slice:
        """The columns of the group itself."""
        return slice(int(self.columns[0]), int(self.columns[0]) + self.groups[0].columns)


def _facets(model: CopulaModel) -> Iterator[_Facet]:
    """Yield what correlations are drawn against: each group, a cycle with its coordinate."""
    system = model.coordinates
    columns = {
        g.name: np.arange(start, start + g.columns)
        for g, start in zip(system.groups, system.starts, strict=True)
    }
    everything = np.concatenate(list(columns.values()))
    left = sorted(system.groups, key=lambda g: isinstance(g, Cycle))
    while left:
        first = left.pop(0)
        same = [g for g in left if set(g.axes) & set(first.axes)]
        left = [g for g in left if g not in same]
        members = (first, *same)
        inside = np.concatenate([columns[g.name] for g in members])
        yield _Facet(members, inside, np.setdiff1d(everything, inside))


class _Pairs(NamedTuple):
    """Pairs of observations of two variables, each (p,): which, how far apart, at one site?"""

    first: IntArray
    second: IntArray
    distance: FloatArray
    same: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class _Drawn:
    """Observations that stand for all, their scores, and scores drawn from the model for them."""

    model: CopulaModel
    facet: _Facet
    sample: Sample
    cluster: IntArray
    scores: FloatArray  # (n, 1 + draws): of the data, then of draws; standardised

    @classmethod
    def of(
        cls, model: CopulaModel, facet: _Facet, tasks: Sequence[int], most: int, seed: int
    ) -> _Drawn:
        """Choose observations, and draw scores for them from the model."""
        whole, rng = model.observations.sample, np.random.default_rng(seed)
        numbers = np.concatenate([np.arange(whole.size)[whole.task(t)] for t in sorted(tasks)])
        cluster = _clusters(whole.inputs[np.ix_(facet.others, numbers)], len(tasks))
        places = whole.inputs[facet.own][:, numbers]
        kept = _choose(cluster, whole.sites[numbers], places, most, rng)
        index = numbers[kept]
        sample = whole.take(index)
        state = model.process.state(model.theta)
        inputs = assembly.scaled_inputs(sample.inputs, state)
        factor, _ = cholesky(
            lambda: assembly.lower(state, inputs, sample.sites, sample.offsets),
            lambda: model.process.describe(model.theta),
        )
        drawn = np.tril(factor) @ rng.standard_normal((sample.size, _DRAWS))
        scores = np.column_stack([model.process.scores(model.theta, sample), drawn])
        for t in tasks:
            own = scores[sample.task(t)]
            if len(own):
                own -= own.mean(axis=0)
                spread = own.std(axis=0)
                own /= np.where(spread > 0.0, spread, 1.0)
        return cls(model, facet, sample, cluster[kept], scores)

    def correlogram(self, pair: tuple[int, int], bins: int) -> Correlogram:
        """Average products over the pairs of two variables, by distance."""
        pairs = self._pairs(*pair)
        apart = pairs.distance[~pairs.same]
        farthest = _farthest(apart, bins)
        near = ~pairs.same & (pairs.distance <= farthest)
        bins = int(np.clip(near.sum() // _USUAL, min(4, bins), bins))
        # A bin ends with its largest distance: regular lags do not fall between two.
        place = bins * pairs.distance[near] / (farthest or 1.0) * (1.0 - 1e-9)
        number = np.clip(np.ceil(place).astype(np.int64) - 1, 0, bins - 1)
        count = np.bincount(number, minlength=bins)
        full = count >= _FEWEST
        first, second = pairs.first[near], pairs.second[near]
        sums = self._sums(first, second, number, bins)[full] / count[full, None]
        lower, upper = np.quantile(sums[:, 1:], _BAND, axis=1)
        names, group = self.model.tasks, self.facet.groups[0]
        return Correlogram(
            first=names[pair[0]],
            second=names[pair[1]],
            group=group.name,
            units=group.units,
            ard=self._ard(),
            directions=self._directions(),
            distance=np.bincount(number, pairs.distance[near], bins)[full] / count[full],
            empirical=sums[:, 0],
            lower=lower,
            upper=upper,
            count=count[full],
            curve=self._curve(pair, farthest or 0.5 * self._extent()),
            at_site=self._at_site(pair, pairs),
        )

    def _pairs(self, i: int, j: int) -> _Pairs:
        """Return the pairs of two variables that are together in the other groups."""
        rows, columns = (np.arange(self.sample.size)[self.sample.task(t)] for t in (i, j))
        order = columns[np.argsort(self.cluster[columns], kind="stable")]
        starts, stops = (
            np.searchsorted(self.cluster[order], self.cluster[rows], side=side)
            for side in ("left", "right")
        )
        first = np.repeat(rows, stops - starts)
        steps = np.arange(first.size) - np.repeat(np.cumsum(stops - starts), stops - starts)
        second = order[np.repeat(stops, stops - starts) + steps]
        if i == j:
            once = first < second
            first, second = first[once], second[once]
        # In mapped columns, as the kernel sees them; in the coordinates' units where these have one
        # scale for all. Turned and stretched ranges keep their mean: so do the units.
        places = self._places(self.sample.inputs)
        distance = np.sqrt(((places[:, first] - places[:, second]) ** 2).sum(axis=0))
        same = self.sample.sites[first] == self.sample.sites[second]
        return _Pairs(first, second, distance, same)

    def _unit(self) -> float:
        """Return what a distance between mapped columns of the group is multiplied by."""
        own = self.facet.own
        return 1.0 if self.facet.groups[0].ard else self.model.coordinates.scale[own.start]

    def _mapping(self) -> FloatArray:
        """Return what columns of the group are multiplied by for distances."""
        own = self.facet.own
        mapping = self.model.process.state(self.model.theta).mapping[own, own]
        return np.asarray(self._unit() * mapping)

    def _places(self, inputs: FloatArray) -> FloatArray:
        return np.asarray(self._mapping() @ inputs[self.facet.own])

    def _extent(self) -> float:
        """Return how far the observations reach in the group."""
        return float(np.linalg.norm(np.ptp(self._places(self.sample.inputs), axis=1)))

    def _ard(self) -> dict[str, float]:
        group = self.facet.groups[0]
        if not group.ard:
            return {}
        own = np.diagonal(self._mapping())
        scale = np.asarray(self.model.coordinates.scale)[self.facet.own] / own
        return {axis.name: float(s) for axis, s in zip(group.axes, scale, strict=True)}

    def _directions(self) -> str:
        model, group = self.model, self.facet.groups[0]
        found = find_directions(model.process, model.theta, model.coordinates)
        own = found[model.coordinates.groups.index(group)]
        return "" if own is None else own.describe([1.0], group.units)

    def _sums(self, first: IntArray, second: IntArray, number: IntArray, bins: int) -> FloatArray:
        """Return the sums (bins, 1 + draws) of products: of the data, then of draws."""
        from scipy.sparse import csr_array

        size = self.sample.size
        out = np.empty((bins, self.scores.shape[1]))
        for b in range(bins):
            own = number == b
            where = (first[own], second[own])
            matrix = csr_array((np.ones(int(own.sum())), where), shape=(size, size))
            out[b] = (self.scores * (matrix @ self.scores)).sum(axis=0)
        return out

    def _curve(self, pair: tuple[int, int], farthest: float) -> FloatArray:
        """Return distances and the fitted correlation of the signal there."""
        distance = farthest * np.linspace(0.0, 1.0, _CURVE) ** 2
        state = self.model.process.state(self.model.theta)
        start = self.sample.inputs[:, :1]
        inputs = np.repeat(start, _CURVE, axis=1)
        if len(self.facet.groups) == 1:
            step = np.linalg.inv(self._mapping())[:, :1]
            inputs[self.facet.own] += step * distance
        else:
            inputs = self._along_axis(distance)
            start = inputs[:, :1]
        offsets = np.where(np.arange(self.sample.tasks + 1) <= pair[1], 0, _CURVE)
        found = assembly.cross(
            state,
            assembly.scaled_inputs(start, state),
            None,
            pair[0],
            assembly.scaled_inputs(inputs, state),
            np.empty(0, np.int64),
            offsets,
            nugget=False,
        )
        return np.stack([distance, found[0]])

    def _along_axis(self, distance: FloatArray) -> FloatArray:
        """Return the inputs (d, m) of places at some distances along the facet's coordinate."""
        system = self.model.coordinates
        numbers = np.repeat(self.model.observations.positions[:1].T, distance.size, axis=1)
        (axis,) = self.facet.groups[0].axes
        numbers[[each == axis for each in system.axes]] += distance
        return system.to_columns(list(numbers))

    def _at_site(self, pair: tuple[int, int], pairs: _Pairs) -> tuple[float, float] | None:
        i, j = pair
        if i == j or pairs.same.sum() < _FEWEST:
            return None
        scores = self.scores[:, 0]
        products = scores[pairs.first[pairs.same]] * scores[pairs.second[pairs.same]]
        state = self.model.process.state(self.model.theta)
        fitted = state.amplitudes[:, i, j].sum() + state.nugget[i, j]
        return float(products.mean()), float(fitted)


def _farthest(distance: FloatArray, bins: int) -> float:
    """Return the largest distance of interest: half of all, or all where there are only a few."""
    largest = float(distance.max(initial=0.0))
    if largest == 0.0:
        return 0.0
    few = np.unique(np.round(distance / largest, 6)).size <= 2 * bins
    return largest if few else 0.5 * largest


def _clusters(others: FloatArray, tasks: int) -> IntArray:
    """Return numbers (n,) of observations that are together in the other groups, columns (k, n).

    At the same place and time, or near to each other where hardly any share those.
    """
    if not len(others):
        return np.zeros(others.shape[1], np.int64)
    for width in (1e-7, _TOGETHER):
        _, number = np.unique(np.round(others / width), axis=1, return_inverse=True)
        found = np.asarray(number, np.int64).reshape(-1)
        if found.size / (found.max() + 1) >= _SPARSE * tasks:
            break
    return found


def _choose(
    cluster: IntArray, sites: IntArray, places: FloatArray, most: int, rng: np.random.Generator
) -> IntArray:
    """Return which observations (m,) stand for all: whole clusters, as many as there is room for.

    Of a cluster that is too large, half are sites at random and half the neighbours of a few:
    short distances are rare among sites at random.
    """
    chosen: list[IntArray] = []
    room = most
    order = np.argsort(cluster, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(cluster))[:-1])
    for k in rng.permutation(len(members)):
        own = members[k]
        if own.size > room and chosen:
            break
        if own.size > room:
            own = _thinned(own, sites, places, room, rng)
        chosen.append(own)
        room -= own.size
    return np.sort(np.concatenate(chosen))


def _thinned(
    own: IntArray, sites: IntArray, places: FloatArray, room: int, rng: np.random.Generator
) -> IntArray:
    """Return some of the observations of one cluster, about ``room``."""
    from scipy.spatial import cKDTree

    different = rng.permutation(np.unique(sites[own]))
    share = max(int(different.size * 0.5 * room / own.size), 1)
    apart = own[np.isin(sites[own], different[:share])]
    centres = rng.choice(own, _CENTRES, replace=False)
    nearest = max(room // (2 * _CENTRES), 1)
    tree = cKDTree(places[:, own].T, balanced_tree=False)
    _, near = tree.query(places[:, centres].T, k=[*range(1, nearest + 1)])
    return np.unique(np.concatenate([apart, own[near.ravel()]]))
