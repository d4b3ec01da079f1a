"""Step two: all variables in one likelihood, and how well it predicts what is left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from xcopula.fitting.alone import length_parameters, penalised, some_terms
from xcopula.fitting.interruption import interruptible
from xcopula.fitting.optimiser import UNWATCHED, Objective, Optimum, Watching, units
from xcopula.fitting.request import Request
from xcopula.fitting.stages import Staged, end_on_all, minimise_in_stages
from xcopula.fitting.suggestion import suggest
from xcopula.fitting.watch import best_of
from xcopula.kernels.covariance import Covariance
from xcopula.labels.observations import Observations
from xcopula.model.candidates import Candidate, Trial
from xcopula.process import Moments, Process, Sample, Scores, scores
from xcopula.solvers import Conditioned, LeavesOut, Sequential
from xcopula.solvers.search import gaps_around

__all__ = [
    "Fitted",
    "LeftOut",
    "Rows",
    "Tables",
    "Together",
    "adapts",
    "begin_together",
    "in_stages",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Tables = tuple[tuple[Candidate, ...], ...]

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
    trials : tuple of Trial
        What competed with it, the largest weight first.
    others : tuple of (Fitted, float)
        With whom it shares a prediction, and their weights; the rest is its own.
    """

    process: Process
    optimum: Optimum
    prepared: FloatArray
    log_likelihood: float
    trials: tuple[Trial, ...] = ()
    others: tuple[tuple[Fitted, float], ...] = ()

    @property
    def theta(self) -> FloatArray:
        """The parameters."""
        return self.optimum.theta


class Rows(NamedTuple):
    """Values of the primary to leave out: each alone, and a few with all that is in their gaps."""

    some: IntArray
    few: IntArray
    gaps: list[IntArray]


class LeftOut(NamedTuple):
    """Scores of left-out values: of each alone, and of those in gaps where that is known."""

    parts: tuple[Scores, ...]

    @property
    def mean_crps(self) -> float:
        """Both ways count the same."""
        return float(np.mean([part.crps.mean() for part in self.parts]))

    @property
    def mean_log_score(self) -> float:
        """Both ways count the same."""
        return float(np.mean([part.log_score.mean() for part in self.parts]))

    def error(self, other: LeftOut) -> float:
        """Return the standard error of the difference of two means of the same values."""
        pairs = zip(self.parts, other.parts, strict=True)
        squares = [np.var(own.crps - its.crps) / own.crps.size for own, its in pairs]
        return float(np.sqrt(sum(squares)) / len(squares))

    @property
    def log_densities(self) -> FloatArray:
        """All of them in a row."""
        return np.concatenate([part.log_score for part in self.parts])


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
        self._whole: tuple[Any, Any] | None = None
        self._parts: dict[Any, Any] = {}
        self.request, self.method = request, request.method
        solver = request.solver
        self.solver = solver.for_trials() if isinstance(solver, Sequential) else solver

    def fit(
        self,
        process: Process,
        start: FloatArray,
        *,
        scout: bool = False,
        restart: bool = True,
        later: bool = False,
        watch: Watching = UNWATCHED,
    ) -> Fitted:
        """Maximise the likelihood from a start, and from others around it if some were asked for.

        A scout takes a few steps from the start only. With ``later`` it stops before it comes to
        all terms, where some stand for them: :meth:`end` goes on.
        """
        once = scout or self.settled or not restart
        limited = replace(self.request, restarts=0) if once else self.request
        staged = in_stages(
            self._objectives(process),
            start,
            process.bounds(),
            limited,
            terms=self._terms,
            size=self.sample.size,
            lengths=length_parameters(process),
            anew=adapts(self.request, process) and not scout,
            whole=not scout,
            later=later,
            scout=scout,
            watch=watch,
        )
        return _fitted(process, staged)

    @property
    def _terms(self) -> int | None:
        return some_terms(self.request.solver, self.sample, _TERMS)

    def end(self, begun: Fitted, *, watch: Watching = UNWATCHED) -> Fitted:
        """End on all terms what was to do so later."""
        if self._terms is None:
            return begun
        process = begun.process
        staged = end_on_all(
            _heard(self._objectives(process), self.request),
            Staged(begun.optimum, begun.prepared),
            process.bounds(),
            lengths=length_parameters(process),
            anew=adapts(self.request, process),
            watch=watch,
        )
        return _fitted(process, staged)

    def judge(self, process: Process, optimum: Optimum) -> Fitted:
        """Evaluate the likelihood at given parameters."""
        theta = optimum.theta
        value, _ = self._objective(process, self._prepare(process, theta))(theta)
        return _fitted(process, Staged(replace(optimum, value=value), theta))

    def _objectives(self, process: Process) -> Callable[[FloatArray, int | None], Objective]:
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

    def _objective(self, process: Process, structure: Any) -> Objective:
        return penalised(
            process, lambda point: self.method.objective(process, self.sample, structure, point)
        )

    def to_leave_out(self, fitted: Fitted) -> Rows:
        """Choose which values of the primary to leave out, alone and with all that is near."""
        size = self.sample.sizes[0]
        some = np.linspace(0, size, min(size, _MOST_LEFT_OUT), endpoint=False).astype(np.int64)
        few = some[:: max(1, some.size // _MOST_IN_GAPS)]
        return Rows(some, few, gaps_around(fitted.process, fitted.theta, self.sample, few))

    def left_out(self, fitted: Fitted, where: Rows) -> LeftOut:
        """Score the primary's values, each left out, and some left out with all that is near.

        Next to a datum all models are good, in a gap they are not.
        """
        process, theta, sample = fitted.process, fitted.theta, self.sample
        conditioned = self.method.condition(
            process, sample, self._prepare(process, fitted.prepared), theta
        )
        near = self._each_alone(conditioned, where.some)
        found = [self._scores(fitted, near, where.some)]
        if isinstance(conditioned, LeavesOut):
            far = conditioned.left_out(where.few, where.gaps)
            found.append(self._scores(fitted, far, where.few))
        return LeftOut(tuple(found))

    def _each_alone(self, conditioned: Conditioned, rows: IntArray) -> Moments:
        """Return the moments of some values, each left out.

        By neighbours from those around it, as a cell is predicted: all terms of all values are not
        needed for some.
        """
        if isinstance(self.solver, Sequential) and isinstance(conditioned, LeavesOut):
            return conditioned.left_out(rows, [np.empty(0, np.int64)] * rows.size)
        return Moments(*(part[rows] for part in conditioned.leave_one_out()))

    def _scores(self, fitted: Fitted, moments: Moments, rows: IntArray) -> Scores:
        law = fitted.process.split(fitted.theta)[1][0].at(self.sample.covariates_of(0)[rows])
        return scores(moments, law, self.sample.values[rows], self.sample.limits_of(0)[:, rows])


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
    return minimise_in_stages(
        _heard(prepare, request),
        [start, *others],
        bounds,
        progress=request.progress(),
        scout=scout,
        optimizer=request.optimizer,
        seed=request.seed,
        **stages,
    )


def _heard(
    prepare: Callable[[FloatArray, int | None], Objective], request: Request
) -> Callable[[FloatArray, int | None], Objective]:
    """Return objectives that count for a fit, and stop when it does."""
    best = best_of(request.ticket)
    return lambda theta, terms: best.counted(interruptible(prepare(theta, terms), request.ticket))
