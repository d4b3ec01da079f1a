"""The steps of a fit, as functions of plain values: each can be one task of a graph.

observations -> each task alone -> (pairs with the primary) -> all parameters together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from xcopula.arrays import FloatArray
from xcopula.errors import NotPositiveDefiniteError, SupportError
from xcopula.fitting.alone import VALUES_ALONE, Alone, loss_of
from xcopula.fitting.cost import check_cost
from xcopula.fitting.defaults import (
    ROUGH,
    SMOOTH,
    Support,
    check_values,
    count_structures,
    has_censored_end,
    is_flexible,
    start_marginal,
    support_of,
)
from xcopula.fitting.directions import input_groups
from xcopula.fitting.interruption import run_of
from xcopula.fitting.maximise import Fit, subsample_size
from xcopula.fitting.newton import Loss, Optimum
from xcopula.fitting.request import Request, check_structures
from xcopula.fitting.select import agree, select, tabulate
from xcopula.fitting.suggestion import suggest
from xcopula.fitting.ties import refuse_zeros, warn_of_numbers, warn_of_ties
from xcopula.fitting.together import Together, adapts, begin_together, from_starts
from xcopula.fitting.watch import Watch, best_of
from xcopula.labels.observations import Observations
from xcopula.labels.points import locate_anchors
from xcopula.marginals import Law, Marginal
from xcopula.methods import Method
from xcopula.methods.part import Part, given_tasks
from xcopula.model.intervals import check_intervals
from xcopula.model.selection import Alternative
from xcopula.process import Sample
from xcopula.solvers import Sequential, settle

__all__ = ["Agreed", "begin", "bring_together", "fit_alone", "fit_pair", "fit_together"]

# A fit of each variable alone, and the table of what was compared.
Agreed = tuple[tuple[Fit, ...], tuple[Alternative, ...]]

# Terms in the subsample of the likelihood of a pair.
_PAIR_TERMS = 2000
# A field without noise: its nugget has less than this share of the variance.
_NO_NUGGET = 1e-3


def begin(observations: Observations, request: Request) -> Request:
    """Fit the marginals to the values and locate given points: bad input ends the fit here."""
    method = locate_anchors(request.method.for_variables(observations.names), observations)
    check_structures(observations, request.structures or 1)
    structures = request.structures or count_structures(observations, request.coupling)
    request = replace(request, structures=structures)
    sample = observations.sample
    check_intervals(observations, method, request.named_laws)
    solver = settle(request.solver, method.submodels(sample.sizes))
    if method.needs_joint and isinstance(solver, Sequential):
        raise ValueError(
            f"The anchors of {method!r} need the joint law of many places, which "
            f"solver={solver.name!r} does not have. Use anchors='auto', or solver='exact' on fewer "
            "data."
        )
    cost = check_cost(observations, method, solver, request)
    run_of(request.ticket).expect(3600.0 * cost.hours)
    laws, supports = _begin_laws(observations, request, method)
    return replace(request, laws=laws, support=supports, method=method, solver=solver)


def _begin_laws(
    observations: Observations, request: Request, method: Method
) -> tuple[tuple[Any, ...], tuple[Support, ...]]:
    """Fit the marginals to the values; say what becomes of zeros, and of other ties."""
    laws: list[Any] = []
    supports: list[Support] = []
    for i, variable in enumerate(observations.variables):
        sample = observations.sample.select([i])
        stated = request.support[i] if request.support else None
        check_values(sample, stated, variable.name)
        # Laws that are compared have one support: that of the default one, if it is among them.
        options = request.law_options(i)
        law = next(filter(is_flexible, options), options[0])
        support = support_of(law, sample, stated, variable.attrs)
        warn_of_ties(law, sample, variable, support)
        if has_censored_end(law, sample, support) and not method.intervals:
            if stated is not None:
                refuse_zeros(method, sample, variable.name)
            warn_of_numbers(method, sample, variable.name)
            support = None
        supports.append(support)
        if request.selects(i):
            laws.append(request.laws[i])
            continue
        try:
            laws.append(start_marginal(law, sample, variable.labels, support, variable.name))
        except SupportError:
            refuse_zeros(method, sample, variable.name)
            raise
    known = [law if isinstance(law, Marginal) else None for law in laws]
    method.check_intervals(observations.sample, known, observations.names)
    return tuple(laws), tuple(supports)


def fit_alone(observations: Observations, request: Request, task: int) -> tuple[Fit, ...]:
    """Fit one task alone: with its marginal and kernel, or with all that are to be compared."""
    names = (observations.names[task],)
    with run_of(request.ticket).step("alone", names) as step:
        sample, variable = observations.sample.select([task]), observations.variables[task]
        alone = Alone(
            _part_alone(sample, request),
            input_groups(observations, request.anisotropy),
            request.structures or 1,
            request.solver,
            request.ticket,
            step,
            whole=sample,
        )
        support = request.support[task] if request.support else None

        def start(law: Law) -> Marginal:
            return start_marginal(law, sample, variable.labels, support, variable.name)

        kernels, laws = request.kernel_options(task), request.law_options(task)
        if request.selects(task):
            singles = select(replace(alone, rough=False), kernels, laws, start)
        else:
            (marginal,) = laws
            assert isinstance(marginal, Marginal)  # the fit has begun
            singles = (alone.fit(kernels[0], marginal),)
            if request.kernels[task] is None and kernels[0] == ROUGH:
                singles = _without_noise(alone, singles[0], marginal)
        return singles


def _part_alone(sample: Sample, request: Request) -> Sample:
    """Return the sample, or a part of it where the exact solver would take long."""
    if sample.size <= VALUES_ALONE or isinstance(request.solver, Sequential):
        return sample
    rng = np.random.default_rng(request.seed)
    return sample.take(np.sort(rng.permutation(sample.size)[:VALUES_ALONE]))


def _without_noise(alone: Alone, single: Fit, marginal: Marginal) -> tuple[Fit, ...]:
    """Return a fit with the smoother kernel first, if the field has no noise with either.

    Output of models and reanalyses on grids is smooth: under the rough kernel its range would run
    to the end of its bounds. Observations of any kind keep a nugget.
    """
    if single.nugget >= _NO_NUGGET:
        return (single,)
    try:
        smooth = alone.fit(SMOOTH, marginal)
    except NotPositiveDefiniteError:
        return (single,)
    return (smooth, single) if smooth.nugget < _NO_NUGGET else (single,)


def bring_together(
    observations: Observations, request: Request, tables: Sequence[Sequence[Fit]]
) -> Agreed:
    """Take one fit of each variable: shared kernels must agree."""
    singles = agree(tables, shared=request.coupling != "convolution")
    selected = [i for i in range(len(tables)) if request.selects(i)]
    names = [observations.names[i] for i in selected]
    rows = tabulate(names, [tables[i] for i in selected], [singles[i] for i in selected])
    return singles, rows


def fit_pair(observations: Observations, request: Request, agreed: Agreed, task: int) -> Fit:
    """Fit the primary with one secondary, the primary's parameters held where it has them alone."""
    sample = observations.sample.select([0, task])
    singles = [agreed[0][0], agreed[0][task]]
    covariance = request.covariance(
        [s.kernel for s in singles], agreed[0][0].covariance.groups, request.structures or 1
    )
    process, theta = suggest(covariance, singles, sample)
    free = np.setdiff1d(np.arange(process.size), process.with_tasks((0,))[1])

    def prepare(at: FloatArray, terms: int | None) -> Loss:
        given = given_tasks(request.solver)
        part = Part.of(request.solver, process, at, sample, given=given, terms=terms)
        return loss_of(process, part)

    def keep(searched: FloatArray, value: float) -> None:
        point = theta.copy()
        point[free] = searched
        best.keep_pair(task, point, value)

    best = best_of(request.ticket)
    best.given = observations, request, *agreed
    names = (observations.names[0], observations.names[task])
    with run_of(request.ticket).step("pair", names) as step:
        return from_starts(
            process,
            prepare,
            theta,
            request,
            free=free,
            terms=subsample_size(request.solver, sample, _PAIR_TERMS),
            size=sample.size,
            anew=adapts(request, process),
            whole=False,
            rough=True,
            watch=Watch(step, keep),
        )


def fit_together(
    observations: Observations, request: Request, agreed: Agreed, pairs: Sequence[Fit] = ()
) -> Fit:
    """Maximise the likelihood over all parameters.

    Parameters
    ----------
    pairs : sequence of Fit
        Pair models to start from, one for each secondary, where the method is pairwise.
    """
    best = best_of(request.ticket)
    best.given = observations, request, *agreed
    singles = agreed[0]
    marginals = [single.marginal for single in singles]
    request.method.check_intervals(observations.sample, marginals, observations.names)
    best.pairs = {i: pair.theta for i, pair in enumerate(pairs, start=1)}
    process, theta = begin_together(observations, request, singles, best.pairs, apart=bool(pairs))
    settled = bool(pairs) or len(singles) == 1
    together = Together(observations.sample, request, settled=settled)
    with run_of(request.ticket).step("together", tuple(observations.names)) as step:
        if pairs and not request.method.polish:
            return together.judge(process, _joined(pairs, theta))
        return together.fit(process, theta, watch=Watch(step, best.keep_whole(process)))


def _joined(pairs: Sequence[Fit], theta: FloatArray) -> Optimum:
    searches = [pair.optimum for pair in pairs]
    return Optimum(
        theta,
        sum(search.value for search in searches),
        all(search.converged for search in searches),
        "; ".join(sorted({search.message for search in searches})),
        sum(search.evaluations for search in searches),
    )
