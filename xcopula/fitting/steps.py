"""The steps of a fit, as functions of plain values: each can be one task of a graph.

observations -> step one, each task alone -> choice of kernels and laws -> (pairs with the primary)
-> all parameters together -> the primary's law, by leave-one-out -> what was fitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from xcopula.errors import SupportError
from xcopula.fitting.alone import (
    VALUES_ALONE,
    Alone,
    length_parameters,
    penalised,
    some_terms,
)
from xcopula.fitting.competition import compete
from xcopula.fitting.cost import check_cost
from xcopula.fitting.directions import (
    Turned,
    check_directions,
    choose_directions,
    input_groups,
    try_directions,
)
from xcopula.fitting.heaps import refuse_zeros, support_of_method, warn_of_heap
from xcopula.fitting.interruption import run_of
from xcopula.fitting.optimiser import Objective, Optimum
from xcopula.fitting.request import Request, check_structures
from xcopula.fitting.rivals import rivals_of
from xcopula.fitting.selection import (
    Choice,
    Tried,
    kernels_to_try,
    laws_to_try,
    select_shared,
    select_structures,
)
from xcopula.fitting.suggestion import suggest
from xcopula.fitting.suitability import Support, begin_law, within
from xcopula.fitting.together import (
    Fitted,
    Tables,
    Together,
    adapts,
    begin_together,
    in_stages,
)
from xcopula.fitting.watch import Watch, best_of
from xcopula.labels.observations import Observations
from xcopula.labels.points import to_points
from xcopula.marginals import Law, Marginal, Recipe
from xcopula.methods import Method
from xcopula.methods.part import Part, given_tasks
from xcopula.model.candidates import Candidate
from xcopula.model.intervals import check_intervals
from xcopula.process import Sample
from xcopula.progress.run import UNHEARD, Step
from xcopula.solvers import Sequential, settle

__all__ = [
    "begin",
    "choose",
    "choose_metrics",
    "fit_pair",
    "fit_together",
    "rank",
    "survey",
    "try_kernel",
    "try_law",
    "turn",
]

FloatArray = npt.NDArray[np.float64]

# Terms of the likelihood of a pair that stand for all.
_PAIR_TERMS = 4000
# A second structure is tried from twice so many values on, by neighbours; from so many on, exactly.
_STRUCTURES_FROM, _FEWEST_WITH_TWO = 2000, 50


def begin(observations: Observations, request: Request) -> Request:
    """Fit the laws that were asked for and locate given points: bad input ends the fit here."""
    method = request.method.located(
        lambda what, given: to_points(what, given, observations), observations.names
    )
    check_structures(observations, request.structures or 1)
    anisotropy = check_directions(observations, request.anisotropy)
    sample = observations.sample
    check_intervals(observations, method, request.laws)
    solver = settle(request.solver, method.submodels(sample.sizes))
    if method.needs_joint and isinstance(solver, Sequential):
        raise ValueError(
            f"The anchors of {method!r} need the joint law of many places, which "
            f"solver={solver.name!r} does not have. Use anchors='auto', or solver='exact' on fewer "
            "data."
        )
    cost = check_cost(
        observations,
        method,
        solver,
        request.max_hours,
        request.kernels,
        request.laws,
        request.structures or 1,
    )
    run_of(request.ticket).expect(3600.0 * cost.hours)
    laws, supports = _begin_laws(observations, request, method)
    return replace(
        request,
        laws=laws,
        support=supports,
        method=method,
        solver=solver,
        anisotropy=anisotropy,
    )


def _begin_laws(
    observations: Observations, request: Request, method: Method
) -> tuple[tuple[Law | None, ...], tuple[Support, ...]]:
    """Fit the laws that were asked for; say what becomes of zeros, and of other heaps."""
    laws, supports = [], []
    for i, (variable, law) in enumerate(zip(observations.variables, request.laws, strict=True)):
        sample = observations.sample.select([i])
        stated = request.support[i] if request.support else None
        try:
            laws.append(begin_law(law, sample, variable.labels, stated, variable.name))
        except SupportError:
            refuse_zeros(method, sample, variable.name)
            raise
        supports.append(support_of_method(method, law, sample, variable, stated))
        warn_of_heap(law, sample, variable, stated)
    known = [law if isinstance(law, Marginal | Recipe) else None for law in laws]
    method.check_intervals(observations.sample, known, observations.names)
    return tuple(laws), tuple(supports)


def survey(observations: Observations, request: Request, task: int) -> Part | None:
    """Begin step one for one task: choose terms that stand for all, if one choice serves it."""
    return _choice(observations, request, task, None).alone.survey()


def try_law(
    observations: Observations,
    request: Request,
    task: int,
    some: Part | None,
    law: int,
    first: Tried = None,
) -> Tried:
    """Step one for one task: fit a law, from where the first one ended."""
    label = laws_to_try(request.laws[task])[law][0].name
    with _step_one("law", observations, request, task, some, label) as choice:
        return choice.try_law(law, first)


def try_kernel(
    observations: Observations,
    request: Request,
    task: int,
    some: Part | None,
    kernel: int,
    laws: Sequence[Tried],
) -> Tried:
    """Step one for one task: fit a kernel with the best law."""
    label = kernels_to_try(request.kernels[task])[kernel].name
    with _step_one("kernel", observations, request, task, some, label) as choice:
        return choice.try_kernel(kernel, laws)


def rank(
    observations: Observations,
    request: Request,
    task: int,
    some: Part | None,
    tried: Sequence[Tried],
) -> tuple[Candidate, ...]:
    """Step one for one task: put what was tried in order, the best first."""
    choice = _choice(observations, request, task, some)
    if choice.tries_structures:
        given, label = (observations, request, task, some), f"{choice.most_structures} structures"
        with _step_one("structures", *given, label, counts=False) as choice:
            return tuple(choice.ranked(tried))
    return tuple(choice.ranked(tried))


@contextmanager
def _step_one(
    what: str,
    observations: Observations,
    request: Request,
    task: int,
    some: Part | None,
    label: str,
    *,
    counts: bool = True,
) -> Iterator[Choice]:
    """Try something for one task, and tell of it."""
    names = (observations.names[task],)
    with run_of(request.ticket).step(what, names, label, counts=counts) as step:
        yield _choice(observations, request, task, some, step)


def _choice(
    observations: Observations,
    request: Request,
    task: int,
    some: Part | None,
    step: Step = UNHEARD,
) -> Choice:
    sample = observations.sample.select([task])
    rows = None
    if sample.size > VALUES_ALONE and not isinstance(request.solver, Sequential):
        rng = np.random.default_rng(request.seed)
        rows = np.sort(rng.permutation(sample.size)[:VALUES_ALONE])
    variable = observations.variables[task]
    return Choice(
        Alone(
            sample,
            input_groups(observations, request.anisotropy),
            request.structures or 1,
            request.solver,
            request.ticket,
            step,
            some,
        ),
        kernels_to_try(request.kernels[task]),
        laws_to_try(request.laws[task]),
        variable.labels,
        rows,
        most_structures=_most_structures(request, sample),
        support=within(request.support[task] if request.support else None, variable.attrs),
    )


def _most_structures(request: Request, sample: Sample) -> int:
    """Return how many structures are tried: two where values are many, if it was left open."""
    if isinstance(request.solver, Sequential):
        enough = some_terms(request.solver, sample, _STRUCTURES_FROM) is not None
    else:
        # As one of the kernels: where that was given, this is not a question.
        enough = sample.size >= _FEWEST_WITH_TWO and None in request.kernels
    return 2 if request.structures is None and enough and request.coupling != "icm" else 1


def choose(tables: Sequence[Sequence[Candidate]], request: Request) -> Tables:
    """Put the kernels and laws to use first in each table: shared kernels must agree."""
    ordered = select_structures([list(table) for table in tables])
    if request.coupling != "convolution":
        ordered = select_shared(ordered)
    return tuple(tuple(table) for table in ordered)


def turn(
    observations: Observations, request: Request, task: int, some: Part | None, tables: Tables
) -> tuple[Turned, ...]:
    """Step one for one task: try whether its correlation has a direction, group by group."""
    if None not in request.anisotropy:
        return ()
    given = observations, request, task, some
    with _step_one("directions", *given, "directions", counts=False) as choice:
        system = observations.coordinates
        return tuple(try_directions(choice.part, tables[task][0], request.anisotropy, system))


def choose_metrics(
    observations: Observations,
    request: Request,
    some: Sequence[Part | None],
    tables: Tables,
    turned: Sequence[Sequence[Turned]],
) -> Tables:
    """Put candidates whose correlation has a direction first, if all tasks together gain by it."""
    if None not in request.anisotropy:
        return tables
    alone = [_choice(observations, request, i, own).part for i, own in enumerate(some)]
    ordered = choose_directions(tables, turned, alone, request.anisotropy)
    return tuple(tuple(table) for table in ordered)


def fit_pair(observations: Observations, request: Request, tables: Tables, task: int) -> Optimum:
    """Fit the primary with one secondary, the primary's parameters held at those of step one."""
    sample = observations.sample.select([0, task])
    chosen = [tables[0][0], tables[task][0]]
    covariance = request.covariance(
        [c.kernel for c in chosen], chosen[0].groups, chosen[0].structures
    )
    process, theta = suggest(covariance, chosen, sample)
    _, own = process.with_tasks((0,))
    free = np.setdiff1d(np.arange(process.size), own)

    def filled(part: FloatArray) -> FloatArray:
        point = theta.copy()
        point[free] = part
        return point

    def prepare(at: FloatArray, terms: int | None) -> Objective:
        given = given_tasks(request.solver)
        part = Part.of(request.solver, process, filled(at), sample, given=given, terms=terms)
        whole = penalised(process, lambda point: part.objective(process, point))

        def restricted(some: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = whole(filled(some))
            return value, gradient[free]

        return restricted

    best = best_of(request.ticket)
    best.given = observations, request, tables
    names = (observations.names[0], observations.names[task])
    with run_of(request.ticket).step("pair", names) as step:
        optimum = in_stages(
            prepare,
            theta[free],
            process.bounds()[free],
            request,
            terms=some_terms(request.solver, sample, _PAIR_TERMS),
            size=sample.size,
            lengths=np.flatnonzero(np.isin(free, length_parameters(process))),
            anew=adapts(request, process),
            whole=False,
            watch=Watch(step, lambda part, value: best.keep_pair(task, filled(part), value)),
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
    best = best_of(request.ticket)
    best.given = observations, request, tables
    chosen = [table[0].marginal for table in tables]
    request.method.check_intervals(observations.sample, chosen, observations.names)
    best.pairs = {i: pair.theta for i, pair in enumerate(pairs, start=1)}
    process, theta = begin_together(observations, request, tables, best.pairs, apart=bool(pairs))
    settled = bool(pairs) or len(tables) == 1
    together = Together(observations.sample, request, settled=settled)
    with run_of(request.ticket).step("together", tuple(observations.names)) as step:
        if pairs and not request.method.polish:
            return together.judge(process, _joined(pairs, theta))
        watch = Watch(step, best.keep_whole(process))
        first = together.fit(process, theta, later=True, watch=watch)
        rivals = rivals_of(
            first.process,
            first.theta,
            tables,
            observations.sample,
            other_coupling=request.other_coupling,
        )
        return compete(together, first, rivals, step)


def _joined(pairs: Sequence[Optimum], theta: FloatArray) -> Optimum:
    return Optimum(
        theta,
        sum(p.value for p in pairs),
        all(p.converged for p in pairs),
        "; ".join(sorted({p.message for p in pairs})),
        sum(p.evaluations for p in pairs),
    )
