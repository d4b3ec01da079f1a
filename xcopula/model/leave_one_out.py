"""Predict observations of a model from all others, at its parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.arguments import check_integer
from xcopula.arrays import IntArray
from xcopula.labels.buffer import Buffer, check_buffer, within
from xcopula.marginals.intervals import is_interval
from xcopula.methods import Full, Transductive
from xcopula.methods.joint import Origin
from xcopula.process import Moments, Predictive, scores_of
from xcopula.solvers import Conditioned, LeavesOut, Sequential

if TYPE_CHECKING:
    from xcopula.model.record import CopulaModel

__all__ = ["LeftOutScore", "compare_alone", "leave_out", "predict_left_out"]

# Values that are left out for a score in the summary, at most; a gain is more than chance from so
# many standard errors on.
_MOST_SCORED, _ERRORS = 1000, 2.0
# With fewer sites than this, fitted parameters know the left-out values well enough to flatter.
_FEW_SITES = 200
_FEW = (
    "Parameters were fitted to these values too: with {sites} sites coverage and scores are a "
    "little too good. cross_validate fits anew."
)
_STATIONS = (
    "Other times of the same place are kept: a whole station is harder to predict. "
    "cross_validate(folds='stations') leaves it out."
)


def leave_out(
    model: CopulaModel, variable: str | None, buffer: Buffer | None, most: int | None
) -> xr.Dataset:
    """Predict each observation of a variable; see :meth:`CopulaModel.loo`."""
    task = model.task(variable)
    sample = model.observations.sample
    own = np.arange(sample.size)[sample.task(task)]
    if most is not None:
        count = min(check_integer("most", most, least=1), own.size)
        own = own[np.linspace(0, own.size, count, endpoint=False).astype(np.int64)]
    near = None if buffer is None else check_buffer(buffer, model.coordinates)
    predicted = predict_left_out(model, task, own, near)
    limits = None if sample.limits is None else sample.limits[:, own]
    results = scores_of(predicted, sample.values[own], limits)._asdict()
    if limits is not None and is_interval(limits).any():
        results |= {"observed_lower": limits[0], "observed_upper": limits[1]}
    dim, coords = model.observations.labels(own, results)
    found = {name: (dim, values) for name, values in results.items()}
    return xr.Dataset(found, coords, attrs=_notes(model, task))


def predict_left_out(
    model: CopulaModel, task: int, rows: IntArray, buffer: dict[str, float] | None = None
) -> Predictive:
    """Return the law of some observations of a task, by their numbers, each given all others.

    With a buffer it is given all but those that are near it.
    """
    sample, process = model.observations.sample, model.predictor.process
    if buffer is None:
        moments = Moments(*(part[rows] for part in process.conditioned.leave_one_out()))
    else:
        moments = _without(model, process.conditioned, rows, buffer)
    covariates = sample.covariates_of(task)[rows - sample.offsets[task]]
    return Predictive.of(process.inflate(moments, task), process.laws[task].at(covariates))


def _without(
    model: CopulaModel, conditioned: object, rows: IntArray, buffer: dict[str, float]
) -> Moments:
    """Predict observations without all that is near them."""
    if not isinstance(conditioned, LeavesOut):
        raise ValueError(
            f"method={model.method.name!r} cannot leave out a neighbourhood: `buffer` is for "
            "'full' and 'transductive'. Fit with one of these."
        )
    return conditioned.left_out(rows, within(model.observations, rows, buffer))


def _notes(model: CopulaModel, task: int) -> dict[str, str]:
    """Say where leaving one out flatters: few sites, and several times at a place."""
    places = _count_places(model, task)
    notes = []
    if places < _FEW_SITES:
        notes.append(_FEW.format(sites=places))
    if places < model.observations.sample.sizes[task]:
        notes.append(_STATIONS)
    return {"note": " ".join(notes)} if notes else {}


def _count_places(model: CopulaModel, task: int) -> int:
    """Return at how many places a variable is known, whatever the time."""
    observations = model.observations
    rows = observations.positions[observations.sample.task(task)]
    still = [k for k, axis in enumerate(observations.coordinates.axes) if not axis.epoch]
    return len(np.unique(rows[:, still], axis=0)) if still else len(rows)


class LeftOutScore(NamedTuple):
    """How well values of the primary are predicted, each from all others.

    Attributes
    ----------
    crps : float
        The mean of the continuous ranked probability score.
    alone : float or None
        The same from values of the primary only, at the same parameters; None where there are no
        secondaries, or the method has no model of the primary alone.
    pays : bool
        Whether secondaries lower the score by more than chance.
    size : int
        Number of values that were predicted.
    stations : bool
        Whether other times of the same place were kept.
    """

    crps: float
    alone: float | None
    pays: bool
    size: int
    stations: bool


def compare_alone(model: CopulaModel) -> LeftOutScore:
    """Score the primary's values, each left out, with the secondaries and without them."""
    sample = model.observations.sample
    size = sample.sizes[0]
    rows = np.linspace(0, size, min(size, _MOST_SCORED), endpoint=False).astype(np.int64)
    stations = _count_places(model, 0) < size
    with_all = _crps(model, model.conditioned, rows)
    if sample.tasks == 1 or not isinstance(model.method, Full | Transductive):
        return LeftOutScore(float(with_all.mean()), None, True, rows.size, stations)
    process, index = model.process.with_tasks((0,))
    origin = Origin(process, model.theta[index], sample.select([0]), model.solver)
    gain = _crps(model, origin.condition(), rows) - with_all
    error = float(gain.std() / np.sqrt(gain.size))
    alone = float((with_all + gain).mean())
    pays = float(gain.mean()) > _ERRORS * error
    return LeftOutScore(float(with_all.mean()), alone, pays, rows.size, stations)


def _crps(model: CopulaModel, conditioned: Conditioned, rows: IntArray) -> npt.NDArray[np.float64]:
    """Return the score of some values of the primary, each left out."""
    sample, process = model.observations.sample, model.predictor.process
    if isinstance(model.solver, Sequential) and isinstance(conditioned, LeavesOut):
        # By neighbours a few of many values are predicted one by one.
        moments = conditioned.left_out(rows, [np.empty(0, np.int64)] * rows.size)
    else:
        moments = Moments(*(part[rows] for part in conditioned.leave_one_out()))
    law = process.laws[0].at(sample.covariates_of(0)[rows])
    limits = None if sample.limits is None else sample.limits[:, rows]
    return scores_of(
        Predictive.of(process.inflate(moments, 0), law), sample.values[rows], limits
    ).crps
