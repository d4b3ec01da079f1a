"""What each variable, or each network, is worth: the map and the decisions without it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.arrays import FloatArray, IntArray
from xcopula.model.weighing import check_weights, find_limit, shares_of, sides_of
from xcopula.prediction.posterior import Posterior
from xcopula.prediction.predicting import Asked
from xcopula.prediction.predictor import ConditionedProcess
from xcopula.prediction.thresholds import Limit, Threshold
from xcopula.warn import shown

if TYPE_CHECKING:
    from xcopula.model.record import CopulaModel

__all__ = ["worth"]

_LEVEL = 0.9
_TITLES = {
    "latent_std": "mean latent standard deviation of {}",
    "width": "mean width of the 90 % interval of {}",
    "misclassification": "expected share of wrong decisions at the threshold of {}",
    "changed": "share of cells whose decision at the threshold of {} is another without it",
    "values": "number of values that are switched off in a map of {}",
}


@dataclass(frozen=True)
class _Map:
    """What a map says of the cells that are asked for.

    Attributes
    ----------
    std, width : ndarray (m,)
        Latent deviation, and width of the interval.
    sides : tuple of ndarray (m,), optional
        Probabilities of more than a threshold, and of at most it.
    """

    std: FloatArray
    width: FloatArray
    sides: tuple[FloatArray, FloatArray] | None

    @classmethod
    def of(cls, found: Posterior, limit: Limit | None, cells: IntArray) -> _Map:
        sides = None if limit is None else sides_of(found, limit, cells)
        lower, upper = found.interval(_LEVEL).values.reshape(2, -1)[:, cells]
        return cls(found.latent["std"].values.reshape(-1)[cells], upper - lower, sides)

    @property
    def above(self) -> npt.NDArray[np.bool_]:
        """Which cells are said to lie above the threshold."""
        assert self.sides is not None
        return self.sides[0] > self.sides[1]

    def means(self, weights: FloatArray) -> dict[str, float]:
        """Return means over the cells; wrong decisions count where the threshold is known."""
        found = {"latent_std": float(self.std @ weights), "width": float(self.width @ weights)}
        if self.sides is not None:
            wrong = np.minimum(*self.sides)
            known = ~np.isnan(wrong)
            found["misclassification"] = float(wrong[known] @ shares_of(weights, known)[known])
        return found

    def changed(self, other: _Map, weights: FloatArray) -> float:
        """Return the share of cells whose decision another map does not have."""
        assert self.sides is not None
        shares = shares_of(weights, ~np.isnan(self.sides[0]))
        return float(shares @ (self.above != other.above))


def worth(
    model: CopulaModel,
    target: Any,
    *,
    variable: str | None,
    threshold: Threshold | None,
    network: str | None,
    weights: xr.DataArray | None,
    of: str,
    mask: str | xr.DataArray | None,
) -> xr.Dataset:
    """Switch off one variable or network after the other; see :meth:`CopulaModel.worth`."""
    asked = Asked(model, target, variable, of, mask)
    limit = find_limit(threshold, asked)
    groups = _variables(model, asked.task) if network is None else _networks(model, network)
    cells, _ = asked.cells.query(None, asked.task, nugget=asked.nugget).places()
    shares = check_weights(weights, asked, cells)
    whole = model.predictor.process.as_joint()

    def look(process: ConditionedProcess) -> _Map:
        predictor = replace(model.predictor, process=process)
        return _Map.of(asked.posterior_of(predictor), limit, cells)

    everything = look(whole)
    every = np.arange(model.observations.sample.size)
    columns: dict[str, list[float]] = {}
    for off in groups.values():
        without = look(whole.given(np.setdiff1d(every, off)))
        found = {f"{n}_without": v for n, v in without.means(shares).items()}
        if limit is not None:
            found["changed"] = everything.changed(without, shares)
        for name, value in {**found, "values": off.size}.items():
            columns.setdefault(name, []).append(value)
    dim = "variable" if network is None else "network"
    result = xr.Dataset(
        everything.means(shares) | {n: (dim, values) for n, values in columns.items()},
        {dim: list(groups)},
    )
    return _described(result, model, asked, of)


def _described(result: xr.Dataset, model: CopulaModel, asked: Asked, of: str) -> xr.Dataset:
    """Return the result with names that people read."""
    name, units = asked.variable.name, asked.variable.attrs.get("units")
    for key, array in result.data_vars.items():
        kind = str(key).removesuffix("_without")
        without = " without it" if str(key).endswith("_without") else ""
        array.attrs = {"long_name": _TITLES[kind].format(name) + without}
        if kind != "width":
            array.attrs["units"] = "1"
        elif units is not None:
            array.attrs["units"] = units
    return result.assign_attrs(variable=name, of=of)


def _variables(model: CopulaModel, task: int) -> dict[str, IntArray]:
    """Return the observations of each variable but the one that is mapped."""
    if len(model.tasks) == 1:
        raise ValueError(
            f"The model of {model.tasks[task]!r} has no other variable to switch off. Name a "
            "coordinate of its observations in `network`, or fit with secondaries."
        )
    sample = model.observations.sample
    every = np.arange(sample.size)
    return {name: every[sample.task(i)] for i, name in enumerate(model.tasks) if i != task}


def _networks(model: CopulaModel, network: object) -> dict[str, IntArray]:
    """Return the observations that a coordinate of the data gives one name, by these names."""
    found: dict[str, list[IntArray]] = {}
    there: set[str] = set()
    sample = model.observations.sample
    for i in range(sample.tasks):
        rows = np.arange(sample.size)[sample.task(i)]
        _, labels = model.observations.labels(rows, ())
        there |= set(labels)
        if network not in labels:
            continue
        names = np.broadcast_to(labels[network][1], rows.shape)
        for name in np.unique(names).tolist():
            found.setdefault(name, []).append(rows[names == name])
    groups = {name: np.concatenate(parts) for name, parts in found.items() if name != ""}
    if not groups:
        raise KeyError(
            f"`network` must name a coordinate of the observations, found {shown(network)}; there "
            f"are {sorted(there)}. Add it to the data before the fit."
        )
    most = max(groups.items(), key=lambda pair: pair[1].size)
    if most[1].size == sample.size:
        raise ValueError(
            f"`network` must name several groups, but {shown(most[0])} holds all "
            f"{sample.size} values: nothing would be left without it."
        )
    return dict(sorted(groups.items()))
