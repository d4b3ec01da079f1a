"""The steps of a fit, as functions of plain values: each can be one task of a graph.

observations -> step one, each task alone -> choice of kernels and laws -> (pairs with the primary)
-> all parameters together -> the primary's law, by leave-one-out -> model.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.fitting.cost import check_cost
from xcopula.errors import SupportError
from xcopula.methods import Method, Settings, exact, resolve_method
from xcopula.kernels import Kernel
from xcopula.kernels.correlation import parameters_of
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import Law, Marginal, Recipe, fit_law
from xcopula.model.record import CopulaModel, LawTrial
from xcopula.labels.observations import Observations
from xcopula.fitting.optimiser import Objective, Optimum, minimise_from
from xcopula.labels.points import to_inducing, to_inputs
from xcopula.process.copula import Process, Sample
from xcopula.fitting.selection import (
    Candidate,
    penalised,
    select,
    select_shared,
    shortlist,
    starting_point,
)

__all__ = ["Plan", "begin", "choose", "fit_alone", "fit_pair", "fit_together"]

FloatArray = npt.NDArray[np.float64]
Callback = Callable[[int, float, FloatArray], object]
Tables = tuple[tuple[Candidate, ...], ...]

_log = logging.getLogger("xcopula")

# How far a random start lies from the suggested one, on unconstrained scales.
_RESTART_SPREAD = 0.7
# Step one, which only suggests where to start, looks at no more values of a variable.
_MOST_ALONE = 2000


@dataclass(frozen=True)
class Plan:
    """What was asked of a fit.

    Attributes
    ----------
    laws : tuple
        Marginal law of each variable; None to choose one.
    kernels : tuple
        Kernel of each variable; None to choose one.
    anchors : "auto", "block", None or Dataset
    inducing : int, Dataset, or mapping of variable to either
    settings : Settings
        Of the method, once the observations are known.
    """

    method: str
    laws: tuple[Law | None, ...]
    kernels: tuple[Kernel | None, ...]
    coupling: str
    structures: int
    noise: str
    weights: str
    anchors: str | xr.Dataset | None
    inducing: int | xr.Dataset | Mapping[str, int | xr.Dataset]
    blocks: int
    polish: bool
    optimizer: str
    restarts: int
    seed: int
    max_hours: float | None
    callback: Callback | None
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        hours = self.max_hours
        if isinstance(hours, bool) or not isinstance(hours, int | float | np.number | None):
            raise TypeError(f"`max_hours` is a number of hours or None, found {hours!r}.")
        if hours is not None and not hours > 0.0:
            raise ValueError(f"`max_hours` is positive, found {hours!r}. None sets no limit.")

    @property
    def algorithm(self) -> Method:
        """The inference method."""
        return resolve_method(self.method)

    def covariance(self, kernels: Sequence[Kernel], observations: Observations) -> Covariance:
        """Return the covariance of some tasks with these kernels."""
        groups = _groups(observations)
        return Covariance(tuple(kernels), groups, self.coupling, self.structures, self.noise)

    def progress(self) -> Callable[[int, float, FloatArray], object] | None:
        """Return the callback as the optimiser calls it."""
        callback = self.callback
        return callback and (lambda k, value, theta: callback(k, -value, theta))


def _groups(observations: Observations) -> tuple[InputGroup, ...]:
    return tuple(InputGroup(g.columns, g.ard) for g in observations.coordinates.groups)


def begin(observations: Observations, plan: Plan) -> Plan:
    """Fit the laws that were asked for and resolve the settings: bad input ends the fit here."""
    settings = _settings(plan, observations)
    check_cost(observations, plan.method, settings, plan.max_hours)
    fitted: list[Law | None] = []
    sample = observations.sample
    for i, (name, law) in enumerate(zip(observations.names, plan.laws, strict=True)):
        if isinstance(law, Recipe) and law.family is None:
            fitted.append(law)  # one of several families: to be chosen
            continue
        values = sample.values[sample.task(i)]
        if isinstance(law, Marginal):
            law.check_support(values, name)
        elif law is not None:
            try:
                law = fit_law(law, values, sample.covariates_of(i), observations.labels(i))
            except SupportError as error:
                raise SupportError(f"Variable {name!r}: {error}") from None
            except ValueError as error:
                raise ValueError(f"Variable {name!r}: {error}") from None
        if law is not None:
            _check_scores(name, law.at(sample.covariates_of(i)), values)
        fitted.append(law)
    settings = plan.algorithm.prepare(sample, settings)
    return replace(plan, laws=tuple(fitted), settings=settings)


def _check_scores(name: str, law: Marginal, values: FloatArray) -> None:
    """Refuse values at the very end of a support, such as zeros under an exponential law."""
    bad = values[~np.isfinite(law.to_normal(values))]
    if bad.size:
        first = ", ".join(str(float(v)) for v in bad[:3])
        raise SupportError(
            f"Variable {name!r}: {bad.size} of {values.size} values stand where the {law.name} law "
            f"has an infinite normal score (first: {first}). Choose a marginal with wider support "
            "('normal', 'gev', 't', 'parzen') or mask them."
        )


def fit_alone(observations: Observations, plan: Plan, task: int) -> tuple[Candidate, ...]:
    """Step one for one task: fit the candidates, best first."""
    kernel, law = plan.kernels[task], plan.laws[task]
    alone = observations.sample.select([task])
    rows = None
    if alone.size > _MOST_ALONE:
        rng = np.random.default_rng(plan.seed)
        rows = np.sort(rng.permutation(alone.size)[:_MOST_ALONE])
    candidates = select(
        alone,
        _groups(observations),
        plan.structures,
        None if kernel is None else [kernel],
        None if law is None else [law],
        observations.labels(task),
        rows,
    )
    return tuple(candidates)


def choose(tables: Sequence[Sequence[Candidate]], plan: Plan) -> Tables:
    """Put the kernels and laws to use first in each table: shared kernels must agree."""
    ordered = [list(table) for table in tables]
    if plan.coupling != "convolution":
        ordered = select_shared(ordered)
    return tuple(tuple(table) for table in ordered)


def fit_pair(observations: Observations, plan: Plan, tables: Tables, task: int) -> Optimum:
    """Fit the primary with one secondary, the primary's parameters held at those of step one."""
    sample = observations.sample.select([0, task])
    covariance = plan.covariance([tables[0][0].kernel, tables[task][0].kernel], observations)
    process, theta = _suggest(covariance, [tables[0][0], tables[task][0]], sample)
    _, own = process.with_primary(None)
    free = np.setdiff1d(np.arange(process.size), own)
    whole = penalised(process, sample, exact.objective)

    def restricted(part: FloatArray) -> tuple[float, FloatArray]:
        point = theta.copy()
        point[free] = part
        value, gradient = whole(point)
        return value, gradient[free]

    optimum = _from_starts(restricted, theta[free], process.bounds()[free], plan)
    point = theta.copy()
    point[free] = optimum.theta
    return replace(optimum, theta=point)


def fit_together(
    observations: Observations, plan: Plan, tables: Tables, pairs: Sequence[Optimum] = ()
) -> CopulaModel:
    """Maximise the likelihood over all parameters, and let leave-one-out choose the primary's law.

    Parameters
    ----------
    pairs : sequence of Optimum
        Pair models to start from, one for each secondary, where the method is pairwise.
    """
    sample = observations.sample
    settings = plan.settings
    chosen = [table[0] for table in tables]
    covariance = plan.covariance([c.kernel for c in chosen], observations)
    process, theta = _suggest(covariance, chosen, sample)
    for i, pair in enumerate(pairs, start=1):
        theta[process.with_primary(i)[1]] = pair.theta
    if pairs:
        _set_secondaries_apart(covariance, theta[: covariance.size])

    def finish(process: Process, optimum: Optimum) -> CopulaModel:
        nll, _ = plan.algorithm.objective(process, sample, optimum.theta, settings)
        return CopulaModel(
            observations=observations,
            process=process,
            theta=optimum.theta,
            method=plan.method,
            settings=settings,
            log_likelihood=-nll,
            converged=optimum.converged,
            message=optimum.message,
            evaluations=optimum.evaluations,
            candidates=tables,
        )

    def polish(process: Process, start: FloatArray, *, scout: bool = False) -> CopulaModel:
        target = penalised(process, sample, plan.algorithm.objective, settings)
        # Pairs have had their restarts; a single task has nothing that step one has not seen.
        settled = scout or bool(pairs) or len(tables) == 1
        limited = replace(plan, restarts=0 if settled else plan.restarts)
        optimum = _from_starts(target, start, process.bounds(), limited, scout=scout)
        return finish(process, optimum)

    if pairs and not plan.polish:
        model = finish(process, _joined(pairs, theta))
    else:
        model = _choose_primary_law(polish(process, theta), shortlist(list(tables[0])), polish)
    return model


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


class _Polish(Protocol):
    def __call__(
        self, process: Process, start: FloatArray, *, scout: bool = False
    ) -> CopulaModel: ...


def _choose_primary_law(first: CopulaModel, laws: list[Marginal], polish: _Polish) -> CopulaModel:
    """Let laws of the primary that are close to the chosen one compete in the whole model.

    Each is refitted for a few iterations from where the first fit ended. The lowest leave-one-out
    CRPS wins: a proper score, in the units of the variable.
    """
    models = [first]
    covariance_theta, marginals = first.process.split(first.theta)
    for law in laws:
        if law.name != marginals[0].name:
            process = Process(first.process.covariance, (law, *marginals[1:]))
            models.append(polish(process, process.join(covariance_theta), scout=True))
    if len(models) == 1:
        return first
    trials = [LawTrial(m.marginals[0].name, m.log_likelihood, m.loo_crps()) for m in models]
    _log.info("Laws of the primary: %s", trials)
    best = models[int(np.argmin([t.crps for t in trials]))]
    if best is not first:
        best = polish(best.process, best.theta)
        models.append(best)
    return replace(
        best,
        law_trials=tuple(sorted(trials, key=lambda t: t.crps)),
        evaluations=sum(m.evaluations for m in models),
    )


def _from_starts(
    objective: Objective, start: FloatArray, bounds: FloatArray, plan: Plan, *, scout: bool = False
) -> Optimum:
    rng = np.random.default_rng(plan.seed)
    others = [
        start + rng.normal(scale=_RESTART_SPREAD, size=start.size) for _ in range(plan.restarts)
    ]
    return minimise_from(
        objective,
        [start, *others],
        bounds,
        progress=plan.progress(),
        scout=scout,
        optimizer=plan.optimizer,
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


def _settings(plan: Plan, observations: Observations) -> Settings:
    """Turn points that were given with labels into scaled inputs."""
    anchors: str | FloatArray | None
    if isinstance(plan.anchors, xr.Dataset):
        anchors = to_inputs("anchors", plan.anchors, observations)
    else:
        anchors = plan.anchors
    return Settings(plan.weights, anchors, to_inducing(plan.inducing, observations), plan.blocks)
