"""The steps of a fit, as functions of plain values: each can be one task of a graph.

observations -> step one, each task alone -> choice of kernels and laws -> (pairs with the primary)
-> all parameters together -> the primary's law, by leave-one-out -> what was fitted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from xcopula.errors import SupportError
from xcopula.fitting.alone import (
    Alone,
    length_parameters,
    penalised,
    some_terms,
)
from xcopula.fitting.cost import check_cost
from xcopula.fitting.interruption import interruptible
from xcopula.fitting.optimiser import Objective, Optimum, units
from xcopula.fitting.request import Request, check_structures, input_groups
from xcopula.fitting.selection import (
    Choice,
    Tried,
    kernels_to_try,
    laws_to_try,
    select_shared,
    select_structures,
    shortlist,
)
from xcopula.fitting.stages import Staged, minimise_in_stages
from xcopula.fitting.suggestion import suggest
from xcopula.kernels.covariance import Covariance
from xcopula.labels.observations import Observations
from xcopula.labels.points import to_points
from xcopula.marginals import Law, Marginal, Recipe, check_law, check_scores, fit_law
from xcopula.methods.part import Part
from xcopula.model.candidates import Candidate, LawTrial
from xcopula.process import Moments, Process, Sample, scores
from xcopula.solvers import LeavesOut, Sequential, settle
from xcopula.solvers.search import gaps_around

__all__ = [
    "Fitted",
    "begin",
    "choose",
    "fit_pair",
    "fit_together",
    "rank",
    "try_kernel",
    "try_law",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Tables = tuple[tuple[Candidate, ...], ...]

_log = logging.getLogger("xcopula")

# How far a random start lies from the suggested one, in units of the parameters' boxes.
_RESTART_SPREAD = 0.7
# Step one, which only suggests where to start, looks at no more values of a variable.
_MOST_ALONE = 2000
# Terms of a likelihood that stand for all: of a pair, and of all variables.
_PAIR_TERMS, _TERMS = 4000, 10_000
# A second structure is tried from twice so many values on.
_STRUCTURES_FROM = 2000
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


def begin(observations: Observations, request: Request) -> Request:
    """Fit the laws that were asked for and locate given points: bad input ends the fit here."""
    method = request.method.located(
        lambda what, given: to_points(what, given, observations), observations.names
    )
    check_structures(observations, request.structures or 1)
    sample = observations.sample
    solver = settle(request.solver, method.submodels(sample.sizes))
    if method.needs_joint and isinstance(solver, Sequential):
        raise ValueError(
            f"The anchors of {method!r} need the joint law of many places, which "
            f"solver={solver.name!r} does not have. Use anchors='auto', or solver='exact' on fewer "
            "data."
        )
    check_cost(
        observations,
        method,
        solver,
        request.max_hours,
        request.kernels,
        request.laws,
        request.structures or 1,
    )
    fitted: list[Law | None] = []
    for i, (variable, law) in enumerate(zip(observations.variables, request.laws, strict=True)):
        if isinstance(law, Recipe) and law.family is None:
            fitted.append(law)  # one of several families: to be chosen
            continue
        name, values = variable.name, sample.values[sample.task(i)]
        if isinstance(law, Marginal):
            law.check_support(values, name)
        elif law is not None:
            try:
                law = fit_law(law, values, sample.covariates_of(i), variable.labels)
                check_law(law)
            except SupportError as error:
                raise SupportError(f"Variable {name!r}: {error}") from None
            except ValueError as error:
                raise ValueError(f"Variable {name!r}: {error}") from None
        if law is not None:
            check_scores(law.at(sample.covariates_of(i)), values, name)
        fitted.append(law)
    return replace(request, laws=tuple(fitted), method=method, solver=solver)


def try_law(
    observations: Observations, request: Request, task: int, law: int, first: Tried = None
) -> Tried:
    """Step one for one task: fit a law, from where the first one ended."""
    return _choice(observations, request, task).try_law(law, first)


def try_kernel(
    observations: Observations, request: Request, task: int, kernel: int, laws: Sequence[Tried]
) -> Tried:
    """Step one for one task: fit a kernel with the best law."""
    return _choice(observations, request, task).try_kernel(kernel, laws)


def rank(
    observations: Observations, request: Request, task: int, tried: Sequence[Tried]
) -> tuple[Candidate, ...]:
    """Step one for one task: put what was tried in order, the best first."""
    return tuple(_choice(observations, request, task).ranked(tried))


def _choice(observations: Observations, request: Request, task: int) -> Choice:
    sample = observations.sample.select([task])
    rows = None
    if sample.size > _MOST_ALONE and not isinstance(request.solver, Sequential):
        rng = np.random.default_rng(request.seed)
        rows = np.sort(rng.permutation(sample.size)[:_MOST_ALONE])
    return Choice(
        Alone(
            sample,
            input_groups(observations),
            request.structures or 1,
            request.solver,
            request.ticket,
        ),
        kernels_to_try(request.kernels[task]),
        laws_to_try(request.laws[task]),
        observations.variables[task].labels,
        rows,
        most_structures=_most_structures(request, sample),
    )


def _most_structures(request: Request, sample: Sample) -> int:
    """Return how many structures are tried: two where values are many, if it was left open."""
    many = some_terms(request.solver, sample, _STRUCTURES_FROM) is not None
    return 2 if request.structures is None and many and request.coupling != "icm" else 1


def choose(tables: Sequence[Sequence[Candidate]], request: Request) -> Tables:
    """Put the kernels and laws to use first in each table: shared kernels must agree."""
    ordered = select_structures([list(table) for table in tables])
    if request.coupling != "convolution":
        ordered = select_shared(ordered)
    return tuple(tuple(table) for table in ordered)


def fit_pair(observations: Observations, request: Request, tables: Tables, task: int) -> Optimum:
    """Fit the primary with one secondary, the primary's parameters held at those of step one."""
    sample = observations.sample.select([0, task])
    chosen = [tables[0][0], tables[task][0]]
    covariance = request.covariance([c.kernel for c in chosen], observations, chosen[0].structures)
    process, theta = suggest(covariance, chosen, sample)
    _, own = process.with_tasks((0,))
    free = np.setdiff1d(np.arange(process.size), own)

    def filled(part: FloatArray) -> FloatArray:
        point = theta.copy()
        point[free] = part
        return point

    def prepare(at: FloatArray, terms: int | None) -> Objective:
        given = int(isinstance(request.solver, Sequential))
        part = Part.of(request.solver, process, filled(at), sample, given=given, terms=terms)
        whole = penalised(process, lambda point: part.objective(process, point))

        def restricted(some: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = whole(filled(some))
            return value, gradient[free]

        return restricted

    optimum = _in_stages(
        prepare,
        theta[free],
        process.bounds()[free],
        request,
        terms=some_terms(request.solver, sample, _PAIR_TERMS),
        lengths=np.flatnonzero(np.isin(free, length_parameters(process))),
        anew=_adapts(request, process),
        whole=False,
    ).optimum
    return replace(optimum, theta=filled(optimum.theta))


def fit_together(
    observations: Observations, request: Request, tables: Tables, pairs: Sequence[Optimum] = ()
) -> Fitted:
    """Maximise the likelihood over all parameters, and let leave-one-out choose the primary's law.

    Parameters
    ----------
    pairs : sequence of Optimum
        Pair models to start from, one for each secondary, where the method is pairwise.
    """
    sample = observations.sample
    chosen = [table[0] for table in tables]
    covariance = request.covariance([c.kernel for c in chosen], observations, chosen[0].structures)
    process, theta = suggest(covariance, chosen, sample)
    for i, pair in enumerate(pairs, start=1):
        theta[process.with_tasks((0, i))[1]] = pair.theta
    if pairs:
        _set_secondaries_apart(covariance, theta[: covariance.size])
    together = _Together(sample, request, settled=bool(pairs) or len(tables) == 1)
    if pairs and not request.method.polish:
        return together.judge(process, _joined(pairs, theta))
    first = together.fit(process, theta)
    return together.choose_law(first, shortlist(list(tables[0])))


class _Together:
    """All variables in one likelihood: the method prepares the sample once for every law."""

    def __init__(self, sample: Sample, request: Request, *, settled: bool) -> None:
        # Pairs have had their restarts; a single task has nothing that step one has not seen.
        self.sample, self.settled = sample, settled
        self._last: tuple[Any, Any] | None = None
        self.request, self.method = request, request.method
        solver = request.solver
        self.solver = solver.for_trials() if isinstance(solver, Sequential) else solver

    def fit(self, process: Process, start: FloatArray, *, scout: bool = False) -> Fitted:
        """Maximise the likelihood from a start; a scout takes a few steps only."""
        limited = replace(self.request, restarts=0) if scout or self.settled else self.request
        staged = _in_stages(
            lambda theta, terms: self._objective(process, self._prepare(process, theta, terms)),
            start,
            process.bounds(),
            limited,
            terms=some_terms(self.request.solver, self.sample, _TERMS),
            lengths=length_parameters(process),
            anew=_adapts(self.request, process) and not scout,
            whole=not scout,
            scout=scout,
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
        at = own.tobytes() if _adapts(self.request, process) else b""
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

    def choose_law(self, first: Fitted, laws: list[Marginal]) -> Fitted:
        """Let laws of the primary that are close to the chosen one compete in the whole model.

        Each is refitted for a few iterations from where the first fit ended. The lowest
        leave-one-out CRPS wins: a proper score, in the units of the variable.
        """
        tried = [first]
        covariance_theta, marginals = first.process.split(first.theta)
        for law in laws:
            if law.name != marginals[0].name:
                process = Process(first.process.covariance, (law, *marginals[1:]))
                trial = self.fit(process, process.join(covariance_theta), scout=True)
                tried.append(replace(trial, prepared=first.prepared))
        if len(tried) == 1:
            return first
        trials = [
            LawTrial(f.process.marginals[0].name, f.log_likelihood, self.crps(f)) for f in tried
        ]
        _log.info("Laws of the primary: %s", trials)
        best = tried[int(np.argmin([t.crps for t in trials]))]
        if best is not first:
            best = self.fit(best.process, best.theta)
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


def _joined(pairs: Sequence[Optimum], theta: FloatArray) -> Optimum:
    return Optimum(
        theta,
        sum(p.value for p in pairs),
        all(p.converged for p in pairs),
        "; ".join(sorted({p.message for p in pairs})),
        sum(p.evaluations for p in pairs),
    )


def _adapts(request: Request, process: Process) -> bool:
    """Tell whether a structure is to be made anew when length scales have moved."""
    return isinstance(request.solver, Sequential) and request.solver.adapts(process)


def _fitted(process: Process, staged: Staged) -> Fitted:
    optimum = staged.optimum
    log_likelihood = -optimum.value - process.log_prior(optimum.theta)[0]
    return Fitted(process, optimum, staged.prepared, log_likelihood)


def _in_stages(
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
        lambda theta, terms: interruptible(prepare(theta, terms), request.ticket),
        [start, *others],
        bounds,
        progress=request.progress(),
        scout=scout,
        optimizer=request.optimizer,
        seed=request.seed,
        **stages,
    )
