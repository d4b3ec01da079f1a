"""The components of a model's predictions, conditioned on its data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from xcopula.methods.joint import Origin, joint_origin
from xcopula.prediction.predictor import Component
from xcopula.process import Process, Sample
from xcopula.process.bounded import Limits
from xcopula.process.intervals import Intervals
from xcopula.state import freeze

if TYPE_CHECKING:
    from xcopula.model.record import CopulaModel
    from xcopula.model.uncertainty import Member

__all__ = ["condition_components", "take_heaviest", "with_rows_alone"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def condition_components(model: CopulaModel) -> tuple[Component, ...]:
    """Condition each process that a prediction is a mixture of; as a rule there is one."""
    if model.uncertainty is None or not model.uncertainty.members:
        sample = model.observations.sample
        origin = Origin(model.process, model.theta, sample, model.solver)
        limits = _limits(model.process, model.theta, sample)
        return (Component(model.conditioned, origin, tuple(model.marginals), limits=limits),)
    return tuple(c for member in model.uncertainty.members for c in _each(model, member))


def take_heaviest(model: CopulaModel) -> Component:
    """Return the component with the largest weight as the only one: its joint process predicts."""
    heaviest = max(model.components, key=lambda c: c.weight)
    origin = joint_origin(heaviest.conditioned, heaviest.origin)
    return replace(heaviest, conditioned=heaviest.joint, origin=origin, weight=1.0)


def with_rows_alone(component: Component, rows: IntArray) -> Component:
    """Return a component of one joint process given some observations, by increasing numbers."""
    origin = component.origin.given(rows)
    limits = _limits(origin.process, origin.theta, origin.sample)
    return replace(component, conditioned=origin.condition(), origin=origin, limits=limits)


def _each(model: CopulaModel, member: Member) -> Iterator[Component]:
    """Condition a process at each of its draws; what the model has made already is taken."""
    process, sample, method = member.process, model.observations.sample, model.method
    alike = process.covariance == model.process.covariance
    if alike and np.array_equal(member.prepared, model.prepared):
        structure = model.structure
    else:
        structure = freeze(method.prepare(model.solver, process, member.prepared, sample))
    for theta, weight in zip(member.thetas, member.weights.tolist(), strict=True):
        own = process is model.process and np.array_equal(theta, model.theta)
        conditioned = (
            model.conditioned
            if own
            else freeze(method.condition(process, sample, structure, theta))
        )
        laws, limits = process.split(theta)[1], _limits(process, theta, sample)
        origin = Origin(process, theta, sample, model.solver)
        yield Component(conditioned, origin, laws, weight, member.students, limits)


def _limits(process: Process, theta: FloatArray, sample: Sample) -> Limits | None:
    """Return the limits of intervals as scores, under the laws at theta."""
    return Limits.of(Intervals.of(process.laws(theta, sample), sample), sample)
