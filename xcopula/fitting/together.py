"""All variables in one likelihood."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from xcopula.arrays import FloatArray
from xcopula.fitting.interruption import interruptible
from xcopula.fitting.maximise import Fit, Prepare, maximise, penalised, subsample_size
from xcopula.fitting.newton import Loss, Optimum, units
from xcopula.fitting.request import Request
from xcopula.fitting.suggestion import suggest
from xcopula.fitting.watch import Watch, best_of
from xcopula.kernels.covariance import Covariance
from xcopula.labels.observations import Observations
from xcopula.process import Process, Sample
from xcopula.solvers import Sequential

__all__ = [
    "Together",
    "adapts",
    "begin_together",
    "from_starts",
]


# How far a random start lies from the suggested one, in units of the parameters' boxes.
_RESTART_SPREAD = 0.7
# Terms of the likelihood of all variables that stand for all.
_TERMS = 10_000


def begin_together(
    observations: Observations,
    request: Request,
    singles: Sequence[Fit],
    pairs: Mapping[int, FloatArray],
    *,
    apart: bool,
) -> tuple[Process, FloatArray]:
    """Return the process of all variables and where to start.

    Parameters
    ----------
    singles : sequence of Fit
        Each variable alone.
    pairs : mapping of int to ndarray
        Parameters of pair models, by the number of the secondary.
    apart : bool
        Whether secondaries have no correlation beyond the primary's.
    """
    covariance = request.covariance(
        [s.kernel for s in singles],
        singles[0].covariance.groups,
        singles[0].covariance.structures,
    )
    process, theta = suggest(covariance, singles, observations.sample)
    for i, pair in pairs.items():
        theta[process.with_tasks((0, i))[1]] = pair
    if apart:
        _set_secondaries_apart(covariance, theta[: covariance.size])
    return process, theta


class Together:
    """All variables in one likelihood: the method prepares the sample once for every law."""

    def __init__(self, sample: Sample, request: Request, *, settled: bool) -> None:
        # Pairs have had their restarts; a single task starts where it ended alone.
        self.sample, self.settled = sample, settled
        self._whole: tuple[Any, Any] | None = None
        self._parts: dict[Any, Any] = {}
        self.request, self.method = request, request.method
        self.solver = request.solver

    def fit(
        self,
        process: Process,
        start: FloatArray,
        *,
        watch: Watch | None = None,
    ) -> Fit:
        """Maximise the likelihood from a start, and from ``restarts`` others around it."""
        limited = replace(self.request, restarts=0) if self.settled else self.request
        return from_starts(
            process,
            self._objectives(process),
            start,
            limited,
            terms=self._terms,
            size=self.sample.size,
            anew=adapts(self.request, process),
            watch=watch,
        )

    @property
    def _terms(self) -> int | None:
        return subsample_size(self.request.solver, self.sample, _TERMS)

    def judge(self, process: Process, optimum: Optimum) -> Fit:
        """Evaluate the likelihood at given parameters."""
        theta = optimum.theta
        value, _, matrix = self._objective(process, self._prepare(process, theta))(theta)
        return Fit.of(process, replace(optimum, value=value, information=matrix))

    def _objectives(self, process: Process) -> Prepare:
        """Return what makes the objective of so many terms, or of all, for parameters near theta.

        The method prepares the sample for it.
        """
        return lambda theta, terms: self._objective(process, self._prepare(process, theta, terms))

    def _prepare(self, process: Process, theta: FloatArray, terms: int | None = None) -> Any:
        """Prepare the sample, but not the same way twice in a row: laws do not matter.

        Parts are small: all of them are kept.
        """
        key = self._kind(process, theta)
        if terms is not None:
            if key not in self._parts:
                self._parts[key] = self._made(process, theta, terms)
            return self._parts[key]
        if self._whole is None or self._whole[0] != key:
            self._whole = None  # one at a time is in memory
            self._whole = (key, self._made(process, theta, None))
        return self._whole[1]

    def _made(self, process: Process, theta: FloatArray, terms: int | None) -> Any:
        return self.method.prepare(self.solver, process, theta, self.sample, terms=terms)

    def _kind(self, process: Process, theta: FloatArray) -> tuple[Any, ...]:
        """Return what a preparation depends on: as a rule the covariance.

        Neighbours depend on its lengths too, or on nothing, where distance alone decides who they
        are.
        """
        if not isinstance(self.request.solver, Sequential):
            return (process.covariance,)
        if adapts(self.request, process):
            return process.covariance, theta[: process.covariance.size].tobytes()
        return process.covariance.groups

    def _objective(self, process: Process, structure: Any) -> Loss:
        information = None
        if self.method.has_information and hasattr(self.solver, "information"):
            information = functools.partial(
                self.method.information, process, self.sample, structure
            )
        objective = functools.partial(self.method.objective, process, self.sample, structure)
        return penalised(process, objective, information)


def _set_secondaries_apart(covariance: Covariance, theta: FloatArray) -> None:
    """Give secondaries no correlation beyond the primary's: pairs say nothing of it."""
    others = np.tril_indices(covariance.tasks, -1)[1] > 0
    covariance.part(theta, "correlation")[:, others] = 0.0
    if covariance.noise == "correlated":
        covariance.part(theta, "noise_correlation")[others] = 0.0


def adapts(request: Request, process: Process) -> bool:
    """Tell whether a structure is to be made anew when length scales have moved."""
    return isinstance(request.solver, Sequential) and request.solver.adapts(process)


def from_starts(
    process: Process, prepare: Prepare, start: FloatArray, request: Request, **options: Any
) -> Fit:
    """Maximise from a start, and from ``restarts`` others around it."""
    rng = np.random.default_rng(request.seed)
    spread = _RESTART_SPREAD * units(process.bounds())
    others = [start + spread * rng.normal(size=start.size) for _ in range(request.restarts)]
    best = best_of(request.ticket)

    def counted(theta: FloatArray, terms: int | None) -> Loss:
        return best.counted(interruptible(prepare(theta, terms), request.ticket))

    return maximise(process, counted, [start, *others], **options)
