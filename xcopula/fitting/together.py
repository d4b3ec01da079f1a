"""All variables in one likelihood."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from xcopula.arrays import FloatArray
from xcopula.fitting.alone import Single, length_parameters, penalised, some_terms
from xcopula.fitting.interruption import interruptible
from xcopula.fitting.newton import Loss, Optimum, units
from xcopula.fitting.request import Request
from xcopula.fitting.stages import Staged, minimise_in_stages
from xcopula.fitting.suggestion import suggest
from xcopula.fitting.watch import Watch, best_of
from xcopula.kernels.covariance import Covariance
from xcopula.labels.observations import Observations
from xcopula.process import Process, Sample
from xcopula.solvers import Sequential

__all__ = [
    "Fitted",
    "Together",
    "adapts",
    "begin_together",
    "in_stages",
]

# How far a random start lies from the suggested one, in units of the parameters' boxes.
_RESTART_SPREAD = 0.7
# Terms of the likelihood of all variables that stand for all.
_TERMS = 10_000


@dataclass(frozen=True)
class Fitted:
    """A process at the parameters where an optimiser ended.

    Attributes
    ----------
    process : Process
    optimum : Optimum
        Its value includes weak priors.
    prepared : ndarray
        The parameters that the method's last structure was made for.
    log_likelihood : float
        Without them.
    """

    process: Process
    optimum: Optimum
    prepared: FloatArray
    log_likelihood: float

    @property
    def theta(self) -> FloatArray:
        """The parameters."""
        return self.optimum.theta


def begin_together(
    observations: Observations,
    request: Request,
    singles: Sequence[Single],
    pairs: Mapping[int, FloatArray],
    *,
    apart: bool,
) -> tuple[Process, FloatArray]:
    """Return the process of all variables and where to start.

    Parameters
    ----------
    singles : sequence of Single
        Each variable alone.
    pairs : mapping of int to ndarray
        Parameters of pair models, by the number of the secondary.
    apart : bool
        Whether secondaries have no correlation beyond the primary's.
    """
    covariance = request.covariance(
        [s.kernel for s in singles], singles[0].groups, singles[0].structures
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
    ) -> Fitted:
        """Maximise the likelihood from a start, and from ``restarts`` others around it."""
        limited = replace(self.request, restarts=0) if self.settled else self.request
        staged = in_stages(
            self._objectives(process),
            start,
            process.bounds(),
            limited,
            terms=self._terms,
            size=self.sample.size,
            lengths=length_parameters(process),
            anew=adapts(self.request, process),
            watch=watch,
        )
        return _fitted(process, staged)

    @property
    def _terms(self) -> int | None:
        return some_terms(self.request.solver, self.sample, _TERMS)

    def judge(self, process: Process, optimum: Optimum) -> Fitted:
        """Evaluate the likelihood at given parameters."""
        theta = optimum.theta
        value, _, matrix = self._objective(process, self._prepare(process, theta))(theta)
        return _fitted(process, Staged(replace(optimum, value=value, information=matrix), theta))

    def _objectives(self, process: Process) -> Callable[[FloatArray, int | None], Loss]:
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


def _fitted(process: Process, staged: Staged) -> Fitted:
    optimum = staged.optimum
    log_likelihood = -optimum.value - process.log_prior(optimum.theta)[0]
    return Fitted(process, optimum, staged.prepared, log_likelihood)


def in_stages(
    prepare: Callable[[FloatArray, int | None], Loss],
    start: FloatArray,
    bounds: FloatArray,
    request: Request,
    **stages: Any,
) -> Staged:
    """Minimise from a start, and from ``restarts`` others around it."""
    rng = np.random.default_rng(request.seed)
    spread = _RESTART_SPREAD * units(bounds)
    others = [start + spread * rng.normal(size=start.size) for _ in range(request.restarts)]
    return minimise_in_stages(
        _heard(prepare, request),
        [start, *others],
        bounds,
        **stages,
    )


def _heard(
    prepare: Callable[[FloatArray, int | None], Loss], request: Request
) -> Callable[[FloatArray, int | None], Loss]:
    """Return objectives that count for a fit, and stop when it does."""
    best = best_of(request.ticket)
    return lambda theta, terms: best.counted(interruptible(prepare(theta, terms), request.ticket))
