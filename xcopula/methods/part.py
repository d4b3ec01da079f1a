"""Sub-models: some tasks or some observations, with the solver that evaluates them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xcopula.arrays import FloatArray
from xcopula.methods.parallel import in_parallel
from xcopula.process import Process, Sample
from xcopula.solvers import Gaussian, Informed, Sequential, Solver

__all__ = ["Part", "condition_each", "given_tasks", "total", "total_information"]


@dataclass(frozen=True)
class Part:
    """A Gaussian sub-model.

    Attributes
    ----------
    solver : Solver
    tasks : tuple of int
        Tasks of the whole process that it has.
    sample : Sample
        Its observations.
    structure : object
        What the solver made of them.
    count : float
        How often its likelihood counts.
    """

    solver: Solver
    tasks: tuple[int, ...]
    sample: Sample
    structure: Any
    count: float = 1.0

    @classmethod
    def of(
        cls,
        solver: Solver,
        process: Process,
        theta: FloatArray,
        sample: Sample,
        tasks: tuple[int, ...] | None = None,
        *,
        count: float = 1.0,
        given: int = 0,
        terms: int | None = None,
    ) -> Part:
        """Make the sub-model of some tasks of a sample; of all by default.

        Parameters
        ----------
        count : float
            How often its likelihood counts.
        given : int
            So many of its tasks are given: their likelihood does not count. Only a solver that is
            sequential can do that.
        terms : int, optional
            How many terms of the likelihood are to stand for all, if the solver is sequential.
        """
        own = tuple(range(sample.tasks)) if tasks is None else tasks
        chosen = sample.select(own)
        sub, index = process.with_tasks(own)
        if not isinstance(solver, Sequential):
            return cls(solver, own, chosen, solver.prepare(sub, theta[index], chosen), count)
        if terms is not None and terms < chosen.size - chosen.offsets[given]:
            some, structure = solver.subset(sub, theta[index], chosen, terms, given)
            return cls(solver, own, some, structure, count)
        return cls(solver, own, chosen, solver.prepare(sub, theta[index], chosen, given), count)

    def objective(self, process: Process, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return its negative log-likelihood, and the gradient by all of theta."""
        sub, index = process.with_tasks(self.tasks)
        value, by_part = self.solver.objective(sub, self.sample, self.structure, theta[index])
        if sub is process:
            return value, by_part
        gradient = np.zeros(process.size)
        gradient[index] = by_part
        return value, gradient

    def information(self, process: Process, theta: FloatArray) -> Informed:
        """Return the objective with the information matrix by all of theta."""
        sub, index = process.with_tasks(self.tasks)
        informed = self.solver.information(sub, self.sample, self.structure, theta[index])
        if sub is process:
            return informed
        gradient, matrix = np.zeros(process.size), np.zeros((process.size, process.size))
        gradient[index] = informed.gradient
        if informed.information is not None:
            matrix[np.ix_(index, index)] = informed.information
        return Informed(informed.value, gradient, matrix)

    def condition(self, process: Process, theta: FloatArray) -> Gaussian:
        """Condition it on its observations."""
        sub, index = process.with_tasks(self.tasks)
        return self.solver.condition(sub, self.sample, self.structure, theta[index])


def given_tasks(solver: Solver) -> int:
    """Return how many tasks of a pair can be taken as given: the first, or none."""
    return int(isinstance(solver, Sequential))


def total(parts: Sequence[Part], process: Process, theta: FloatArray) -> tuple[float, FloatArray]:
    """Add up the objectives of sub-models, each as often as it counts."""
    counted = [part for part in parts if part.count != 0.0]
    results = in_parallel(lambda part: part.objective(process, theta), [(p,) for p in counted])
    if not all(np.isfinite(value) for value, _ in results):
        return np.inf, np.zeros(process.size)
    value, gradient = 0.0, np.zeros(process.size)
    # A slope may overflow where a marginal is far from its values: a search meets a wall there.
    with np.errstate(invalid="ignore"):
        for part, (nll, by_theta) in zip(counted, results, strict=True):
            value += part.count * nll
            gradient += part.count * by_theta
    return value, gradient


def total_information(parts: Sequence[Part], process: Process, theta: FloatArray) -> Informed:
    """Add up the objectives of sub-models with their information, each as often as it counts."""
    counted = [part for part in parts if part.count != 0.0]
    results = in_parallel(lambda part: part.information(process, theta), [(p,) for p in counted])
    if not all(np.isfinite(informed.value) for informed in results):
        return Informed(np.inf, np.zeros(process.size), None)
    value, gradient = 0.0, np.zeros(process.size)
    matrix = np.zeros((process.size, process.size))
    with np.errstate(invalid="ignore"):
        for part, informed in zip(counted, results, strict=True):
            value += part.count * informed.value
            gradient += part.count * informed.gradient
            assert informed.information is not None
            matrix += part.count * informed.information
    return Informed(value, gradient, matrix)


def condition_each(
    parts: Sequence[Part], process: Process, theta: FloatArray
) -> tuple[Gaussian, ...]:
    """Condition every sub-model on its own observations."""
    return tuple(in_parallel(lambda part: part.condition(process, theta), [(p,) for p in parts]))
