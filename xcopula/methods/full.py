"""The full method: one Gaussian model of all variables together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xcopula.arrays import FloatArray
from xcopula.methods.contract import Method
from xcopula.methods.part import Part
from xcopula.process import Process, Sample
from xcopula.solvers import Conditioned, Informed, Solver

__all__ = ["Full"]


@dataclass(frozen=True)
class Full(Method):
    """Maximise the likelihood of all variables together, and predict from all at once.

    Examples
    --------
    >>> Full().name
    'full'
    """

    name: ClassVar[str] = "full"
    has_information: ClassVar[bool] = True

    def prepare(
        self,
        solver: Solver,
        process: Process,
        theta: FloatArray,
        sample: Sample,
        *,
        terms: int | None = None,
    ) -> Part:
        """Prepare the one model there is."""
        return Part.of(solver, process, theta, sample, terms=terms)

    def objective(
        self, process: Process, sample: Sample, structure: Part, theta: FloatArray
    ) -> tuple[float, FloatArray]:
        """Return the negative log-likelihood and its gradient."""
        return structure.objective(process, theta)

    def information(
        self, process: Process, sample: Sample, structure: Part, theta: FloatArray
    ) -> Informed:
        """Return the objective with its information matrix."""
        return structure.information(process, theta)

    def mean_is_cheaper(self, solver: Solver | None, tasks: int, task: int) -> bool:
        """Tell what the solver says of its one model."""
        return solver is None or solver.mean_is_cheaper

    def condition(
        self, process: Process, sample: Sample, structure: Part, theta: FloatArray
    ) -> Conditioned:
        """Condition the process at theta on all observations."""
        return structure.condition(process, theta)

    def submodels(self, sizes: Sequence[int]) -> list[list[int]]:
        """Return the one model of all observations."""
        return [list(sizes)]
