"""Step two: all variables in one likelihood, and the primary's law by leave-one-out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from xcopula.fitting.alone import length_parameters, penalised, some_terms
from xcopula.fitting.interruption import interruptible
from xcopula.fitting.optimiser import UNWATCHED, Objective, Optimum, Watching, units
from xcopula.fitting.request import Request
from xcopula.fitting.stages import Staged, minimise_in_stages
from xcopula.fitting.suggestion import suggest
from xcopula.fitting.watch import Watch, best_of
from xcopula.kernels.covariance import Covariance
from xcopula.labels.observations import Observations
from xcopula.marginals import Marginal
from xcopula.model.candidates import Candidate, LawTrial
from xcopula.process import Moments, Process, Sample, scores
from xcopula.progress.run import UNHEARD, Step
from xcopula.solvers import LeavesOut, Sequential
from xcopula.solvers.search import gaps_around

__all__ = ["Fitted", "Tables", "Together", "adapts", "begin_together", "in_stages"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Tables = tuple[tuple[Candidate, ...], ...]

_log = logging.getLogger("xcopula")

# How far a random start lies from the suggested one, in units of the parameters' boxes.
_RESTART_SPREAD = 0.7
# Terms of the likelihood of all variables that stand for all.
_TERMS = 10_000
# Laws of the primary are compared by so many left-out values at most.
_MOST_LEFT_OUT, _MOST_IN_GAPS = 2000, 400


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
    law_trials : tuple of LawTrial
    """

    process: Process
    optimum: Optimum
    prepared: FloatArray
    log_likelihood: float
    law_trials: tuple[LawTrial, ...] = ()

    @property
    def theta(self) -> FloatArray:
        """The parameters."""
        return self.optimum.theta


def begin_together(
    observations: Observations,
    request: Request,
    tables: Tables,
    pairs: Mapping[int, FloatArray],
    *,
    apart: bool,
) -> tuple[Process, FloatArray]:
    """Return the process of all variables and where to start.

    Parameters
    ----------
    pairs : mapping of int to ndarray
        Parameters of pair models, by the number of the secondary; step one suggests the others.
    apart : bool
        Whether secondaries have no correlation beyond the primary's.
    """
    chosen = [table[0] for table in tables]
    covariance = request.covariance(
        [c.kernel for c in chosen], chosen[0].groups, chosen[0].structures
    )
    process, theta = suggest(covariance, chosen, observations.sample)
    for i, pair in pairs.items():
        theta[process.with_tasks((0, i))[1]] = pair
    if apart:
        _set_secondaries_apart(covariance, theta[: covariance.size])
    return process, theta


class Together:
    """All variables in one likelihood: the method prepares the sample once for every law."""

    def __init__(self, sample: Sample, request: Request, *, settled: bool) -> None:
        # Pairs have had their restarts; a single task has nothing that step one has not seen.
        self.sample, self.settled = sample, settled
        self._last: tuple[Any, Any] | None = None
        self.request, self.method = request, request.method
        solver = request.solver
        self.solver = solver.for_trials() if isinstance(solver, Sequential) else solver

    def fit(
        self,
        process: Process,
        start: FloatArray,
        *,
        scout: bool = False,
        watch: Watching = UNWATCHED,
    ) -> Fitted:
        """Maximise the likelihood from a start; a scout takes a few steps only."""
        limited = replace(self.request, restarts=0) if scout or self.settled else self.request
        staged = in_stages(
            lambda theta, terms: self._objective(process, self._prepare(process, theta, terms)),
            start,
            process.bounds(),
            limited,
            terms=some_terms(self.request.solver, self.sample, _TERMS),
            lengths=length_parameters(process),
            anew=adapts(self.request, process) and not scout,
            whole=not scout,
            scout=scout,
            watch=watch,
        )
        return _fitted(process, staged)

    def judge(self, process: Process, optimum: Optimum) -> Fitted:
        """Evaluate the likelihood at given parameters."""
        theta = optimum.theta
        value, _ = self._objective(process, self._prepare(process, theta))(theta)
        return _fitted(process, Staged(replace(optimum, value=value), theta))

    def _prepare(self, process: Process, theta: FloatArray, terms: int | None = None) -> Any:
        """Prepare the sample, but not the same way twice in a row: laws do not matter."""
        own = theta[: process.covariance.size]
        at = own.tobytes() if adapts(self.request, process) else b""
        key = (process.covariance, at, terms)
        if self._last is None or self._last[0] != key:
            structure = self.method.prepare(self.solver, process, theta, self.sample, terms=terms)
            self._last = (key, structure)
        return self._last[1]

    def _objective(self, process: Process, structure: Any) -> Objective:
        return penalised(
            process, lambda point: self.method.objective(process, self.sample, structure, point)
        )

    def crps(self, fitted: Fitted) -> float:
        """Return the mean CRPS of the primary's values, each left out.

        Where values are many, some are also left out with all that is near them, and both count
        the same: next to a datum all models are good, in a gap they are not.
        """
        process, theta, sample = fitted.process, fitted.theta, self.sample
        conditioned = self.method.condition(
            process, sample, self._prepare(process, fitted.prepared), theta
        )
        size = sample.sizes[0]
        some = np.linspace(0, size, min(size, _MOST_LEFT_OUT), endpoint=False).astype(np.int64)
        near = Moments(*(part[some] for part in conditioned.leave_one_out()))
        found = self._mean_crps(fitted, near, some)
        if size <= _MOST_LEFT_OUT or not isinstance(conditioned, LeavesOut):
            return found
        few = some[:: _MOST_LEFT_OUT // _MOST_IN_GAPS]
        far = conditioned.left_out(few, gaps_around(process, theta, sample, few))
        return 0.5 * (found + self._mean_crps(fitted, far, few))

    def _mean_crps(self, fitted: Fitted, moments: Moments, rows: IntArray) -> float:
        law = fitted.process.split(fitted.theta)[1][0].at(self.sample.covariates_of(0)[rows])
        return float(scores(moments, law, self.sample.values[rows]).crps.mean())

    def choose_law(self, first: Fitted, laws: Sequence[Marginal], step: Step = UNHEARD) -> Fitted:
        """Let laws of the primary that are close to the chosen one compete in the whole model.

        Each is refitted for a few iterations from where the first fit ended. The lowest
        leave-one-out CRPS wins: a proper score, in the units of the variable.
        """
        tried = [first]
        covariance_theta, marginals = first.process.split(first.theta)
        for law in laws:
            if law.name != marginals[0].name:
                process = Process(first.process.covariance, (law, *marginals[1:]))
                start = process.join(covariance_theta)
                with step.run.step("rival", step.names[:1], law.name, counts=False) as own:
                    trial = self.fit(process, start, scout=True, watch=Watch(own))
                tried.append(replace(trial, prepared=first.prepared))
        if len(tried) == 1:
            return first
        trials = [
            LawTrial(f.process.marginals[0].name, f.log_likelihood, self.crps(f)) for f in tried
        ]
        _log.info("Laws of the primary: %s", trials)
        best = tried[int(np.argmin([t.crps for t in trials]))]
        if best is not first:
            keep = best_of(self.request.ticket).keep_whole(best.process)
            best = self.fit(best.process, best.theta, watch=Watch(step, keep))
            tried.append(best)
        evaluations = sum(f.optimum.evaluations for f in tried)
        return replace(
            best,
            law_trials=tuple(sorted(trials, key=lambda t: t.crps)),
            optimum=replace(best.optimum, evaluations=evaluations),
        )


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
    prepare: Callable[[FloatArray, int | None], Objective],
    start: FloatArray,
    bounds: FloatArray,
    request: Request,
    *,
    scout: bool = False,
    **stages: Any,
) -> Staged:
    """Minimise from a start, and from others around it, as was asked of the fit."""
    rng = np.random.default_rng(request.seed)
    spread = _RESTART_SPREAD * units(bounds)
    others = [start + spread * rng.normal(size=start.size) for _ in range(request.restarts)]
    best = best_of(request.ticket)
    return minimise_in_stages(
        lambda theta, terms: best.counted(interruptible(prepare(theta, terms), request.ticket)),
        [start, *others],
        bounds,
        progress=request.progress(),
        scout=scout,
        optimizer=request.optimizer,
        seed=request.seed,
        **stages,
    )
