"""Where to measure next: the sites that tell most about a map, chosen before they are measured."""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from xcopula.arguments import check_integer
from xcopula.arrays import FloatArray, IntArray
from xcopula.errors import CoordinateError, CostError
from xcopula.labels.coordinates import find_projection
from xcopula.labels.georeference import from_table
from xcopula.labels.rows import place_of
from xcopula.methods.posterior_covariance import Places, covariance_between, variance_at
from xcopula.model.weighing import check_weights, find_limit, shares_of, sides_of
from xcopula.prediction.posterior import Posterior
from xcopula.prediction.predicting import Asked
from xcopula.prediction.predictor import ConditionedProcess
from xcopula.prediction.target import find_cells
from xcopula.prediction.thresholds import Limit, Threshold
from xcopula.process import NO_SITE, Targets
from xcopula.process.choosing import choose
from xcopula.process.decision import Misclassification, Variance, distance_of
from xcopula.process.sites import number_sites
from xcopula.solvers.cost import MEMORY_SHARE, machine_memory
from xcopula.warn import shown

if TYPE_CHECKING:
    from xcopula.model.record import CopulaModel

__all__ = ["design"]

_CHOICE = "choice"
_CRITERIA = ("mean latent variance", "expected misclassification")
_TITLES = {
    "variance": "latent variance of {}",
    "misclassification": "probability that {} lies on the less likely side of the threshold",
}
# Beside the covariances: a batch of them.
_COPIES = 1.2


@dataclass(frozen=True)
class _Candidates:
    """Where something could be measured.

    Attributes
    ----------
    numbers : list of ndarray (c,)
        Their coordinates.
    positions : ndarray (c,)
        Where they stand among all that were given, counted in C order.
    labels : Dataset
        The coordinates that were given.
    shape : mapping of dim to int
        Of what was given.
    """

    numbers: list[FloatArray]
    positions: IntArray
    labels: xr.Dataset
    shape: dict[Hashable, int]

    @property
    def size(self) -> int:
        return self.positions.size

    def take(self, which: IntArray) -> xr.Dataset:
        """Return positions and coordinates of some of them, along dim ``choice``."""
        position, labels = self.positions[which], self.labels
        for name, index in labels.xindexes.items():
            if isinstance(index, xr.indexes.PandasMultiIndex) and name in labels.dims:
                labels = labels.reset_index(name)
        # A single point has no dims to be taken along.
        where = np.unravel_index(position, tuple(self.shape.values())) if self.shape else ()
        at = {d: xr.DataArray(i, dims=_CHOICE) for d, i in zip(self.shape, where, strict=True)}
        chosen = labels.isel(at).reset_coords()
        chosen = chosen.rename({n: f"site_{n}" for n in chosen.data_vars})
        return chosen.set_coords(list(chosen.data_vars)).assign(candidate=(_CHOICE, position))


def design(
    model: CopulaModel,
    candidates: Any,
    k: int,
    target: Any,
    *,
    variable: str | None,
    measure: str | None,
    threshold: Threshold | None,
    weights: xr.DataArray | None,
    of: str,
    mask: str | xr.DataArray | None,
) -> xr.Dataset:
    """Choose sites; see :meth:`CopulaModel.design`."""
    count = check_integer("k", k, least=1)
    measured = model.task(variable if measure is None else measure)
    asked = Asked(model, candidates if target is None else target, variable, of, mask)
    if _CHOICE in asked.cells.dims:
        raise ValueError(
            f"The target has a dim {_CHOICE!r}, which the result needs. Rename it, as in "
            f"`target.rename({_CHOICE}='{_CHOICE}_axis')`."
        )
    limit = find_limit(threshold, asked)
    given = _find_candidates(model, candidates, measured, mask if target is None else None)
    if count > given.size:
        raise ValueError(
            f"`k` must be at most the number of candidates, {given.size}, found {count}."
        )
    query = asked.cells.query(None, asked.task, nugget=asked.nugget)
    cells, numbers = query.places()
    shares = check_weights(weights, asked, cells)
    _check_memory(given.size, cells.size)
    sites, places = _number(model, given, numbers)

    world = _World.of(model, asked, places)
    maps: dict[str, Variance | Misclassification] = {"variance": world.variance}
    if limit is not None:
        maps["misclassification"] = wrong = world.misclassification(limit, cells)
        shares = shares_of(shares, ~np.isnan(wrong.distance))
    *_, loss = maps.values()
    chosen = choose(*world.covariances(sites, measured), shares, count, loss)
    result = given.take(chosen.order).assign_coords({_CHOICE: np.arange(1, count + 1)})
    columns = {"gain": -np.diff(chosen.criterion), "criterion": chosen.criterion[1:]}
    result = result.assign({name: (_CHOICE, values) for name, values in columns.items()})
    result["criterion_before"] = chosen.criterion[0]
    drawn = _maps(world.posterior, maps, chosen.reduction, cells)
    drawn = drawn.drop_vars([n for n in drawn.coords if n in result.variables])
    return result.merge(drawn).assign_attrs(
        variable=asked.variable.name,
        measured=model.tasks[measured],
        of=of,
        criterion=_CRITERIA[limit is not None],
    )


@dataclass(frozen=True)
class _World:
    """What a model knows of the cells of a target, as one process of all variables.

    Attributes
    ----------
    process : ConditionedProcess
        One joint model.
    posterior : Posterior
        Of that process.
    places : Places
        The cells that are asked for.
    """

    process: ConditionedProcess
    posterior: Posterior
    places: Places

    @classmethod
    def of(cls, model: CopulaModel, asked: Asked, cells: Targets) -> _World:
        process = model.predictor.process.as_joint()
        predictor = replace(model.predictor, process=process)
        return cls(process, asked.posterior_of(predictor), Places(cells, asked.task, asked.nugget))

    @functools.cached_property
    def variance(self) -> Variance:
        """The latent variance of each cell."""
        factor = self.process.factors[self.places.task]
        return Variance(factor**2 * variance_at(self.process.joint, self.places))

    def misclassification(self, limit: Limit, cells: IntArray) -> Misclassification:
        """Return the probability of a wrong decision in each cell."""
        distance = distance_of(*sides_of(self.posterior, limit, cells))
        return Misclassification(distance, self.variance.variance)

    def covariances(self, sites: Targets, task: int) -> tuple[FloatArray, FloatArray]:
        """Return those of measurements with the cells (c, m), and among themselves (c, c)."""
        gaussian, origin = self.process.joint, self.process.origin
        make = functools.partial(
            covariance_between, gaussian, origin.process.state(origin.theta), sites, task
        )
        among = make(Places(sites, task, nugget=True))
        measured, mapped = self.process.factors[task], self.process.factors[self.places.task]
        # By neighbours the two halves differ a little.
        symmetric = 0.5 * (among + among.T)
        return measured * mapped * make(self.places), measured**2 * symmetric


def _find_candidates(
    model: CopulaModel, candidates: Any, task: int, mask: str | xr.DataArray | None
) -> _Candidates:
    """Find the coordinates of candidates for a variable, and refuse what cannot be measured."""
    candidates = from_table(candidates)
    if not isinstance(candidates, xr.Dataset | xr.DataArray):
        raise TypeError(
            f"`candidates` must be a Dataset, DataArray or DataFrame, found {shown(candidates)}. "
            f"Give it the coordinates {list(model.coordinates.names)}."
        )
    model.coordinates.check_projection(find_projection(candidates), "`candidates`")
    # What will be measured needs no law yet: fields that it varies with may be missing.
    bare = replace(model.variables[task], fields=())
    cells = find_cells(candidates, bare, model.coordinates, mask)
    query = cells.query(None, task, nugget=True)
    positions, numbers = query.places()
    lost = int(np.broadcast_to(np.asarray(cells.mask), query.shape).sum()) - positions.size
    if lost:
        raise CoordinateError(
            f"`candidates` must have coordinates, found {lost} with one that is NaN. Drop them, as "
            "in `candidates.dropna`."
        )
    found = _Candidates(
        numbers, positions, cells.kept, dict(zip(cells.dims, query.shape, strict=True))
    )
    _refuse_known(model, found, task)
    return found


def _refuse_known(model: CopulaModel, given: _Candidates, task: int) -> None:
    """Refuse candidates where the variable is known, and several at one site."""
    observations = model.observations
    if observations.specimens is not None:
        return  # a site may have several values
    sites = observations.targets(given.numbers).sites
    met = np.flatnonzero(observations.sample.observed(task, sites) >= 0)
    if met.size:
        place = place_of(model.coordinates, np.array([n[met[0]] for n in given.numbers]))
        raise ValueError(
            f"`candidates` must be sites where {model.tasks[task]!r} is not known yet, found "
            f"{met.size} where it is (first: {place}). Leave them out: nothing is to be learnt."
        )
    _, own = number_sites(model.coordinates.places(given.numbers), observations.sites.tolerance)
    twice = own.size - np.unique(own).size
    if twice:
        raise ValueError(
            f"`candidates` must be different sites, found {twice} at the site of another one. Drop "
            "them: a site is measured once."
        )


def _check_memory(candidates: int, cells: int) -> None:
    numbers, memory = candidates * (cells + candidates), MEMORY_SHARE * machine_memory()
    needed = _COPIES * 8.0 * numbers
    if needed > memory:
        raise CostError(
            f"The covariances of {candidates:,} candidates with {cells:,} cells need about "
            f"{needed / 1e9:.2g} GB; the limit is {memory / 1e9:.2g} GB. Give fewer candidates, or "
            "a coarser target."
        )


def _number(
    model: CopulaModel, given: _Candidates, numbers: list[FloatArray]
) -> tuple[Targets, Targets]:
    """Return candidates and cells as targets: a cell at a candidate has the number of its site."""
    observations, system = model.observations, model.coordinates
    sites, cells = observations.targets(given.numbers), observations.targets(numbers)
    first = 1 + max(int(observations.sample.sites.max()), int(observations.sites.numbers.max()))
    if observations.specimens is not None:
        # What will be measured is a specimen of its own, and a cell is another one.
        return replace(sites, sites=first + np.arange(sites.size)), cells
    new, own = number_sites(system.places(given.numbers), observations.sites.tolerance)
    met = new.find(system.places(numbers))
    fresh = (cells.sites == NO_SITE) & (met != NO_SITE)
    return (
        replace(sites, sites=np.where(sites.sites == NO_SITE, first + own, sites.sites)),
        replace(cells, sites=np.where(fresh, first + met, cells.sites)),
    )


def _maps(
    posterior: Posterior,
    losses: Mapping[str, Variance | Misclassification],
    reduction: FloatArray,
    cells: IntArray,
) -> xr.Dataset:
    """Return maps of losses before and after something is taken off the variances."""
    maps = {}
    mapped = {k: v for k, v in posterior.attrs.items() if k == "grid_mapping"}
    for name, loss in losses.items():
        title = _TITLES[name].format(posterior.name)
        for when, less in (("before", np.zeros_like(reduction)), ("after", reduction)):
            whole = np.full(math.prod(posterior.query.shape), np.nan)
            whole[cells] = loss(less)
            attrs = {"long_name": f"{title}, {when}", "units": "1"} | mapped
            maps[f"{name}_{when}"] = posterior.dims, whole.reshape(posterior.query.shape), attrs
    taken = [n for n in maps if n in posterior.coords]
    return xr.Dataset(maps, posterior.coords.to_dataset().drop_vars(taken).coords)
