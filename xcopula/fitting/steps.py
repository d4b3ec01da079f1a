"""The steps of a fit, as functions of plain values: each can be one task of a graph.

observations -> step one, each task alone -> choice of kernels and laws -> (pairs with the primary)
-> all parameters together -> the primary's law, by leave-one-out -> what was fitted.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from xcopula.errors import SupportError
from xcopula.fitting.cost import check_cost
from xcopula.fitting.interruption import interruptible
from xcopula.fitting.optimiser import Objective, Optimum, minimise_from, units
from xcopula.fitting.request import Request, check_structures, input_groups
from xcopula.fitting.selection import (
    Alone,
    penalised,
    select,
    select_shared,
    shortlist,
    starting_point,
)
from xcopula.kernels.correlation import parameters_of
from xcopula.kernels.covariance import Covariance
from xcopula.labels.observations import Observations
from xcopula.labels.points import to_points
from xcopula.marginals import Law, Marginal, Recipe, check_law, fit_law
from xcopula.model.record import Candidate, LawTrial
from xcopula.process import Moments, Process, Sample, scores

__all__ = ["Fitted", "begin", "choose", "fit_alone", "fit_pair", "fit_together"]

FloatArray = npt.NDArray[np.float64]
Tables = tuple[tuple[Candidate, ...], ...]

_log = logging.getLogger("xcopula")

# How far a random start lies from the suggested one, in units of the parameters' boxes.
_RESTART_SPREAD = 0.7
# Step one, which only suggests where to start, looks at no more values of a variable.
_MOST_ALONE = 2000


@dataclass(frozen=True)
class Fitted:
    """A process at the parameters where an optimiser ended.

    Attributes
    ----------
    process : Process
    optimum : Optimum
        Its value includes weak priors.
    log_likelihood : float
        Without them.
    law_trials : tuple of LawTrial
    """

    process: Process
    optimum: Optimum
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
    check_structures(observations, request.structures)
    check_cost(observations, method, request.solver, request.max_hours)
    fitted: list[Law | None] = []
    sample = observations.sample
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
            _check_scores(name, law.at(sample.covariates_of(i)), values)
        fitted.append(law)
    return replace(request, laws=tuple(fitted), method=method)


def _check_scores(name: str, law: Marginal, values: FloatArray) -> None:
    """Refuse values at the very end of a support, such as zeros under an exponential law."""
    bad = values[~np.isfinite(law.to_normal(values))]
    if bad.size:
        first = ", ".join(str(float(v)) for v in bad[:3])
        raise SupportError(
            f"Variable {name!r}: {bad.size} of {values.size} values have no finite normal score "
            f"under the {law.name} law (first: {first}). Choose a marginal with wider support "
            "('normal', 'gev', 't', 'parzen') or mask them."
        )


def fit_alone(observations: Observations, request: Request, task: int) -> tuple[Candidate, ...]:
    """Step one for one task: fit the candidates, best first."""
    kernel, law = request.kernels[task], request.laws[task]
    sample = observations.sample.select([task])
    rows = None
    if sample.size > _MOST_ALONE:
        rng = np.random.default_rng(request.seed)
        rows = np.sort(rng.permutation(sample.size)[:_MOST_ALONE])
    candidates = select(
        Alone(
            sample, input_groups(observations), request.structures, request.solver, request.ticket
        ),
        None if kernel is None else [kernel],
        None if law is None else [law],
        observations.variables[task].labels,
        rows,
    )
    return tuple(candidates)


def choose(tables: Sequence[Sequence[Candidate]], request: Request) -> Tables:
    """Put the kernels and laws to use first in each table: shared kernels must agree."""
    ordered = [list(table) for table in tables]
    if request.coupling != "convolution":
        ordered = select_shared(ordered)
    return tuple(tuple(table) for table in ordered)


def fit_pair(observations: Observations, request: Request, tables: Tables, task: int) -> Optimum:
    """Fit the primary with one secondary, the primary's parameters held at those of step one."""
    sample = observations.sample.select([0, task])
    chosen = [tables[0][0], tables[task][0]]
    covariance = request.covariance([c.kernel for c in chosen], observations)
    process, theta = _suggest(covariance, chosen, sample)
    _, own = process.with_tasks((0,))
    free = np.setdiff1d(np.arange(process.size), own)
    solver = request.solver
    structure = solver.prepare(process, theta, sample)
    whole = penalised(process, functools.partial(solver.objective, process, sample, structure))

    def restricted(part: FloatArray) -> tuple[float, FloatArray]:
        point = theta.copy()
        point[free] = part
        value, gradient = whole(point)
        return value, gradient[free]

    optimum = _from_starts(restricted, theta[free], process.bounds()[free], request)
    point = theta.copy()
    point[free] = optimum.theta
    return replace(optimum, theta=point)


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
    covariance = request.covariance([c.kernel for c in chosen], observations)
    process, theta = _suggest(covariance, chosen, sample)
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
        self.request, self.method = request, request.method

    def fit(self, process: Process, start: FloatArray, *, scout: bool = False) -> Fitted:
        """Maximise the likelihood from a start."""
        structure = self.method.prepare(self.request.solver, process, start, self.sample)
        objective = functools.partial(self.method.objective, process, self.sample, structure)
        limited = replace(self.request, restarts=0) if scout or self.settled else self.request
        optimum = _from_starts(
            penalised(process, objective), start, process.bounds(), limited, scout=scout
        )
        return self.judge(process, optimum)

    def judge(self, process: Process, optimum: Optimum) -> Fitted:
        """Evaluate the likelihood, without priors, where the optimiser ended."""
        theta = optimum.theta
        structure = self.method.prepare(self.request.solver, process, theta, self.sample)
        nll, _ = self.method.objective(process, self.sample, structure, theta)
        return Fitted(process, optimum, -nll)

    def crps(self, fitted: Fitted) -> float:
        """Return the mean leave-one-out CRPS of the primary."""
        process, theta = fitted.process, fitted.theta
        structure = self.method.prepare(self.request.solver, process, theta, self.sample)
        conditioned = self.method.condition(process, self.sample, structure, theta)
        own = self.sample.task(0)
        moments = Moments(*(part[own] for part in conditioned.leave_one_out()))
        law = process.laws(theta, self.sample)[0]
        return float(scores(moments, law, self.sample.values[own]).crps.mean())

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
                tried.append(self.fit(process, process.join(covariance_theta), scout=True))
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


def _from_starts(
    objective: Objective,
    start: FloatArray,
    bounds: FloatArray,
    request: Request,
    *,
    scout: bool = False,
) -> Optimum:
    rng = np.random.default_rng(request.seed)
    spread = _RESTART_SPREAD * units(bounds)
    others = [start + spread * rng.normal(size=start.size) for _ in range(request.restarts)]
    return minimise_from(
        interruptible(objective, request.ticket),
        [start, *others],
        bounds,
        progress=request.progress(),
        scout=scout,
        optimizer=request.optimizer,
        seed=request.seed,
    )


def _suggest(
    covariance: Covariance, chosen: Sequence[Candidate], sample: Sample
) -> tuple[Process, FloatArray]:
    """Return the process of the chosen kernels and laws, and where single-task fits put it.

    What tasks share starts at the first one's, so that a primary stays as it was alone.
    """
    process = Process(covariance, tuple(c.marginal for c in chosen))
    theta = starting_point(covariance)
    singles = [
        (Covariance((c.kernel,), covariance.groups, structures=covariance.structures), c.theta)
        for c in chosen
    ]
    lengths, logits, scalings = (
        [single.part(t, name) for single, t in singles] for name in ("length", "logit", "scaling")
    )
    own = lengths[0] if covariance.shared else np.concatenate(lengths, axis=2)
    covariance.part(theta, "length")[:] = own
    covariance.part(theta, "logit")[:] = np.concatenate(logits, axis=1)
    covariance.part(theta, "scaling")[:] = scalings[0]
    if covariance.tasks > 1:
        a = parameters_of(_score_correlation(process, sample))
        covariance.part(theta, "correlation")[:] = a
        if covariance.noise == "correlated":
            covariance.part(theta, "noise_correlation")[:] = a
    return process, process.join(theta)


def _score_correlation(process: Process, sample: Sample) -> FloatArray:
    """Estimate the correlation between tasks from each site's nearest neighbour in the other."""
    from scipy.spatial import cKDTree

    tasks = process.covariance.tasks
    w = [
        m.at(sample.covariates_of(i)).to_normal(sample.values[sample.task(i)])
        for i, m in enumerate(process.marginals)
    ]
    trees = [cKDTree(sample.inputs[:, sample.task(i)].T) for i in range(tasks)]
    matrix = np.eye(tasks)
    for i in range(tasks):
        for j in range(i):
            distance, nearest = trees[j].query(trees[i].data)
            close = distance <= np.quantile(distance, 0.5)
            with np.errstate(invalid="ignore", divide="ignore"):  # constant scores: no correlation
                r = float(np.corrcoef(w[i][close], w[j][nearest[close]])[0, 1])
            matrix[i, j] = matrix[j, i] = 0.0 if np.isnan(r) else np.clip(r, -0.95, 0.95)
    # Estimated pair by pair, the matrix may be indefinite: shrink it until it is not.
    while np.linalg.eigvalsh(matrix)[0] < 0.02:
        matrix = 0.9 * matrix + 0.1 * np.eye(tasks)
    return matrix
