"""The report's first step: each task alone, with the kernel and marginal law that suit it best.

A candidate is fitted as a single-task copula process and judged by its likelihood (as an AIC, so
that laws with more parameters pay for them). A law that sends an observation beyond
:data:`EXTREME_SCORE` standard deviations is passed over while another does not: a light tail on an
outlier distorts every prediction near it, however good the likelihood.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from xcopula.errors import NotPositiveDefiniteError, SupportError
from xcopula.fitting.alone import Alone, largest_score, starting_law
from xcopula.kernels import KERNELS, Kernel
from xcopula.marginals import MARGINALS, Labels, Law, Marginal, Recipe, fit_law
from xcopula.model.record import EXTREME_SCORE, Candidate
from xcopula.process import Sample

__all__ = ["select", "select_shared", "select_structures", "shortlist"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_FIRST_KERNEL = "matern32"
# Laws this close to the best in AIC are worth a second look, but not more than so many. So are
# those within so many standard errors of the difference, where terms stand for others.
_CLOSE_AIC = 20.0
_CLOSE_ERRORS = 2.0
_SHORTLIST = 3


def select(
    alone: Alone,
    kernels: Iterable[Kernel] | None,
    marginals: Iterable[Law] | None,
    labels: Labels | None = None,
    rows: IntArray | None = None,
    most_structures: int = 1,
) -> list[Candidate]:
    """Fit the candidates for one task and return them best first.

    None stands for all there are, as "auto" does in a recipe. The laws are compared under one
    kernel, then the kernels under the best law: eleven fits where the full table would take
    twenty-eight. ``labels`` name the groups of a law that differs between groups. Where ``rows``
    are given the processes see these observations only; the laws start from all of them. More
    structures than one are tried with the best kernel and law.

    Raises
    ------
    SupportError
        If a law that was asked for, or every law, does not admit the values.
    """
    choice = list(KERNELS.values()) if kernels is None else list(kernels)
    first = KERNELS[_FIRST_KERNEL] if KERNELS[_FIRST_KERNEL] in choice else choice[0]
    candidates: list[Candidate] = []
    failure: NotPositiveDefiniteError | None = None
    starts: list[FloatArray] = []
    sample = alone.sample
    covariates = sample.covariates_of(0)
    part = alone if rows is None else replace(alone, sample=sample.take(rows))
    for law, asked in _options(marginals):
        if asked:  # what was asked for fails aloud
            law = fit_law(law, sample.values, covariates, labels)
        marginal = starting_law(law, sample.values, covariates, labels)
        if marginal is None:
            continue
        try:
            candidate = part.fit(first, marginal, starts)
        except NotPositiveDefiniteError as error:
            failure = error
            continue
        candidates.append(_of_all(candidate, sample, part, marginal))
        starts = [candidate.theta[: candidate.theta.size - candidate.marginal.theta.size]]
    if failure and not candidates:
        raise failure
    if not candidates:
        raise SupportError(
            "No marginal law gives all values a finite score. Choose one with wider support "
            "('normal', 'gev', 't', 'parzen'), or mask the values at the end of the support."
        )
    best = min(candidates, key=lambda c: c.rank)
    for kernel in choice:
        if kernel != first:
            # A kernel that is too smooth for its sites is no candidate.
            with contextlib.suppress(NotPositiveDefiniteError):
                candidate = part.fit(kernel, best.marginal, starts)
                candidates.append(_of_all(candidate, sample, part, best.marginal))
    candidates = part.on_common_terms(candidates)
    if most_structures > part.structures:
        best = min(candidates, key=lambda c: c.rank)
        with contextlib.suppress(NotPositiveDefiniteError):
            richer = part.with_structures(best, most_structures)
            candidates.append(_of_all(richer, sample, part, best.marginal))
            candidates = part.on_common_terms(candidates)
    return sorted(candidates, key=lambda c: c.rank)


def _of_all(candidate: Candidate, sample: Sample, part: Alone, law: Marginal) -> Candidate:
    """Judge a candidate that was fitted to a part by all values: they must be in its support.

    Where one is not, it takes the law that was fitted to all of them.
    """
    if part.sample is sample:
        return candidate
    if not np.isfinite(largest_score(candidate.marginal, sample)):
        theta = candidate.theta.copy()
        theta[theta.size - law.theta.size :] = law.theta
        candidate = part.judge(candidate.kernel, part.process(candidate.kernel, law), theta)
    return replace(candidate, largest_score=largest_score(candidate.marginal, sample))


def _options(marginals: Iterable[Law] | None) -> Iterator[tuple[Law, bool]]:
    """Yield laws of one family each, and whether that family was asked for."""
    if marginals is None:
        yield from ((family, False) for family in MARGINALS.values())
        return
    for law in marginals:
        if isinstance(law, Recipe):
            yield from ((recipe, law.family is not None) for recipe in law.candidates())
        else:
            yield law, True


def select_structures(tables: list[list[Candidate]]) -> list[list[Candidate]]:
    """Keep the candidates with the number of structures that is best for all tasks together.

    More structures than the least must gain more than a chance could: so many standard errors of
    the difference in AIC.
    """
    numbers = sorted({c.structures for table in tables for c in table})
    few = [[c for c in t if c.structures == numbers[0]] for t in tables]
    for number in reversed(numbers[1:]):
        many = [[c for c in t if c.structures == number] for t in tables]
        if all(many):
            gain = sum(f[0].aic - m[0].aic for f, m in zip(few, many, strict=True))
            error = np.sqrt(
                sum(f[0].error ** 2 + m[0].error ** 2 for f, m in zip(few, many, strict=True))
            )
            if gain > _CLOSE_ERRORS * error:
                # The laws that were tried with fewer structures stay behind them.
                return [m + f for f, m in zip(few, many, strict=True)]
    return few


def select_shared(tables: list[list[Candidate]]) -> list[list[Candidate]]:
    """Reorder the tasks' candidates so that the kernel best for all of them together is first."""
    totals = {}
    known = [{c.kernel for c in table} for table in tables]
    for kernel in dict.fromkeys(c.kernel for c in tables[0] if all(c.kernel in k for k in known)):
        best = [min((c for c in t if c.kernel == kernel), key=lambda c: c.rank) for t in tables]
        totals[kernel] = sum(c.aic for c in best)
    shared = min(totals, key=lambda k: totals[k])
    return [sorted(t, key=lambda c: (c.kernel != shared, c.rank)) for t in tables]


def shortlist(table: list[Candidate]) -> list[Marginal]:
    """Return the laws of one task that are close to the best, each at its best fit."""
    best = table[0]
    # Judged under the kernel that all laws were tried with.
    tried = [
        c
        for c in table
        if c.kernel.name == _common_kernel(table) and c.structures == table[-1].structures
    ]
    close = [
        c.marginal
        for c in tried
        if c.largest_score <= EXTREME_SCORE
        and c.aic - tried[0].aic <= max(_CLOSE_AIC, _CLOSE_ERRORS * c.error)
    ]
    return [best.marginal, *(m for m in close if m.name != best.marginal.name)][:_SHORTLIST]


def _common_kernel(table: list[Candidate]) -> str:
    names = [c.kernel.name for c in table]
    return max(set(names), key=lambda n: (names.count(n), n))
