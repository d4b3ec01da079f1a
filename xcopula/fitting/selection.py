"""The report's first step: each task alone, with the kernel and marginal law that suit it best.

A candidate is fitted as a single-task copula process and judged by its likelihood (as an AIC, so
that laws with more parameters pay for them). A law that sends an observation beyond
:data:`EXTREME_SCORE` standard deviations is passed over while another does not: a light tail on an
outlier distorts every prediction near it, however good the likelihood.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from xcopula.errors import NotPositiveDefiniteError, SupportError
from xcopula.fitting.alone import FIRST_KERNEL, Alone, largest_score, starting_law
from xcopula.fitting.suitability import Support, stays_positive, suited
from xcopula.kernels import KERNELS, Nested, TaskKernel
from xcopula.marginals import MARGINALS, Labels, Law, Marginal, Recipe, fit_law
from xcopula.model.candidates import Candidate
from xcopula.model.extremes import EXTREME_SCORE
from xcopula.process import Sample

__all__ = [
    "Choice",
    "Tried",
    "common_kernel",
    "kernels_to_try",
    "laws_to_try",
    "select_shared",
    "select_structures",
    "shortlist",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
# A fit, why there is none, or None where a law does not admit the values.
Tried = Candidate | NotPositiveDefiniteError | None

# Laws this close to the best in AIC are worth a second look, but not more than so many. So are
# those within so many standard errors of the difference, where terms stand for others.
_CLOSE_AIC = 20.0
_CLOSE_ERRORS = 2.0
_SHORTLIST = 3
# What two structures may have: smooth at short range, rough at long. One rough kernel imitates
# several ranges; where ranges are two, the short one is often smooth. It is tried where two
# structures have an AIC that is no more than this above that of one.
_MIXED, _CLOSE_STRUCTURES = Nested((KERNELS["matern52"], KERNELS["matern12"])), 4.0


@dataclass(frozen=True)
class Choice:
    """What may be chosen for one task, and how it is tried.

    The laws are compared under one kernel, then the kernels under the best law: eleven fits where
    the full table would take twenty-eight. The first law starts from afar, the others from where it
    ended: they do not wait for each other, and neither do the kernels.

    Attributes
    ----------
    alone : Alone
    kernels : tuple of Kernel or Nested
    laws : tuple of (Law, bool)
        Laws of one family each, and whether that family was asked for.
    labels : Labels, optional
        Names of the groups of a law that differs between groups.
    rows : ndarray of int, optional
        The processes see these observations only; the laws start from all of them.
    most_structures : int
        More structures than one are tried with the best kernel and law; if they come close, also
        with a kernel each.
    support : pair of float, optional
        The ends of the values that the variable can have. None, where they were not stated: laws
        that are left to choose then stay positive where the values are.
    """

    alone: Alone
    kernels: tuple[TaskKernel, ...]
    laws: tuple[tuple[Law, bool], ...]
    labels: Labels | None = None
    rows: IntArray | None = None
    most_structures: int = 1
    support: Support = None

    @property
    def tries_structures(self) -> bool:
        """Whether more structures than one are tried."""
        return self.most_structures > self.alone.structures

    @property
    def part(self) -> Alone:
        """The observations that the processes see."""
        if self.rows is None:
            return self.alone
        return replace(self.alone, sample=self.alone.sample.take(self.rows))

    def try_law(self, number: int, first: Tried = None) -> Tried:
        """Fit a law, from where the first one ended."""
        given, asked = self.laws[number]
        sample = self.alone.sample
        rows = sample.values, sample.covariates_of(0), self.labels, sample.limits
        if asked:  # what was asked for fails aloud
            law: Law | None = fit_law(given, *rows)
        else:
            law = suited(given, sample, self.support)
        marginal = None if law is None else starting_law(law, *rows)
        if marginal is None:
            return None
        bound = marginal.at(sample.covariates_of(0))
        if not asked and not stays_positive(bound, sample, self.support):
            return None
        return self._try(self.kernels[0], marginal, first)

    def try_kernel(self, number: int, laws: Sequence[Tried]) -> Tried:
        """Fit a kernel with the best law, from where that one ended."""
        best = _best(laws)
        return self._try(self.kernels[number], best.marginal, best)

    def _try(self, kernel: TaskKernel, marginal: Marginal, begun: Tried) -> Tried:
        part, starts = self.part, []
        if isinstance(begun, Candidate):
            starts = [begun.theta[: begun.theta.size - begun.marginal.theta.size]]
        try:
            candidate = part.fit(kernel, marginal, starts)
        except NotPositiveDefiniteError as error:
            return error  # too smooth for its sites: no candidate, while there is another
        return _of_all(candidate, self.alone.sample, part, marginal)

    def ranked(self, tried: Sequence[Tried]) -> list[Candidate]:
        """Return what was fitted on the same terms, the best first, with more structures if so."""
        part = self.part
        _best(tried)  # or there is nothing to rank
        candidates = part.on_common_terms([c for c in tried if isinstance(c, Candidate)])
        best = min(candidates, key=lambda c: c.rank)
        with contextlib.suppress(NotPositiveDefiniteError):
            if self.tries_structures:
                richer = part.with_structures(best, self.most_structures)
                candidates = self._with(candidates, richer, best.marginal)
            two = [c for c in candidates if c.structures == len(_MIXED.families)]
            if two and len(self.kernels) > 1:  # not where the kernel was given
                richer = min(two, key=lambda c: c.rank)
                if richer.aic - best.aic <= _CLOSE_STRUCTURES:
                    mixed = part.with_kernels(richer, _MIXED)
                    candidates = self._with(candidates, mixed, richer.marginal)
        return sorted(candidates, key=lambda c: c.rank)

    def _with(self, candidates: list[Candidate], new: Candidate, law: Marginal) -> list[Candidate]:
        """Add a candidate with a law that was fitted to all values, and judge all anew."""
        of_all = _of_all(new, self.alone.sample, self.part, law)
        return self.part.on_common_terms([*candidates, of_all])


def kernels_to_try(kernel: TaskKernel | None) -> tuple[TaskKernel, ...]:
    """Return the kernels to try, that of the laws first; None stands for all there are."""
    if kernel is not None:
        return (kernel,)
    first = KERNELS[FIRST_KERNEL]
    return (first, *(k for k in KERNELS.values() if k != first))


def laws_to_try(law: Law | None) -> tuple[tuple[Law, bool], ...]:
    """Return laws of one family each, and whether that family was asked for.

    None stands for all there are, as "auto" does in a recipe.
    """
    if law is None:
        return tuple((family, False) for family in MARGINALS.values())
    if isinstance(law, Recipe):
        return tuple((recipe, law.family is not None) for recipe in law.candidates())
    return ((law, True),)


def _best(tried: Sequence[Tried]) -> Candidate:
    """Return the best of what was fitted.

    Raises
    ------
    SupportError
        If a law that was asked for, or every law, does not admit the values.
    NotPositiveDefiniteError
        If no covariance could be factorised.
    """
    fitted = [c for c in tried if isinstance(c, Candidate)]
    if fitted:
        return min(fitted, key=lambda c: c.rank)
    for failure in tried:
        if isinstance(failure, NotPositiveDefiniteError):
            raise failure
    raise SupportError(
        "No marginal law gives all values a finite score. Choose one with wider support "
        "('normal', 'gev', 't', 'parzen'), or mask the values at the end of the support."
    )


def _of_all(candidate: Candidate, sample: Sample, part: Alone, law: Marginal) -> Candidate:
    """Judge a candidate that was fitted to a part by all values: they must be in its support.

    Where one is not, it takes the law that was fitted to all of them.
    """
    if part.sample is sample:
        return candidate
    if not np.isfinite(largest_score(candidate.marginal, sample)):
        theta = candidate.theta.copy()
        theta[theta.size - law.theta.size :] = law.theta
        part = part.like(candidate)
        candidate = part.judge(candidate.kernel, part.process(candidate.kernel, law), theta)
    return replace(candidate, largest_score=largest_score(candidate.marginal, sample))


def select_structures(tables: list[list[Candidate]]) -> list[list[Candidate]]:
    """Put first the candidates with the number of structures that is best for all tasks together.

    More structures than the least must gain more than a chance could: so many standard errors of
    the difference in AIC.
    """
    numbers = sorted({c.structures for table in tables for c in table})
    by_number = {n: _agreed([[c for c in t if c.structures == n] for t in tables]) for n in numbers}
    few, chosen = by_number[numbers[0]], numbers[0]
    for number in reversed(numbers[1:]):
        many = by_number[number]
        if all(many):
            gain = sum(f[0].aic - m[0].aic for f, m in zip(few, many, strict=True))
            error = np.sqrt(
                sum(f[0].error ** 2 + m[0].error ** 2 for f, m in zip(few, many, strict=True))
            )
            if gain > _CLOSE_ERRORS * error:
                chosen = number
                break
    # What was tried with other numbers stays behind, the fewest first.
    order = [chosen, *(n for n in numbers if n != chosen)]
    return [[c for n in order for c in by_number[n][i]] for i in range(len(tables))]


def _agreed(tables: list[list[Candidate]]) -> list[list[Candidate]]:
    """Put first the candidates with a kernel for each structure, or those with one for all.

    Whichever are better for all tasks together: where kernels at one range differ, tasks can
    correlate less there.
    """
    plain, nested = (
        [[c for c in t if isinstance(c.kernel, Nested) == each] for t in tables]
        for each in (False, True)
    )
    if not all(plain):
        return tables  # nothing was tried, or a list was given
    kinds = [plain, nested] if all(nested) else [plain]
    best = min(kinds, key=lambda kind: sum(t[0].aic for t in kind))
    first = [t[0] for t in best]
    return [[f, *(c for c in t if c is not f)] for f, t in zip(first, tables, strict=True)]


def select_shared(tables: list[list[Candidate]]) -> list[list[Candidate]]:
    """Reorder the tasks' candidates so that the kernel best for all of them together is first.

    With as many structures as come first, if all tasks were tried so with one kernel; else with the
    fewest.
    """

    def kind(candidate: Candidate) -> tuple[TaskKernel, int]:
        return candidate.kernel, candidate.structures

    known = [{kind(c) for c in table} for table in tables]
    common = [k for k in dict.fromkeys(map(kind, tables[0])) if all(k in own for own in known)]
    chosen = tables[0][0].structures
    number = chosen if any(n == chosen for _, n in common) else min(n for _, n in common)
    totals = {}
    for key in common:
        if key[1] == number:
            best = [min((c for c in t if kind(c) == key), key=lambda c: c.rank) for t in tables]
            totals[key] = sum(c.aic for c in best)
    shared = min(totals, key=lambda k: totals[k])
    return [sorted(t, key=lambda c: (kind(c) != shared, c.rank)) for t in tables]


def shortlist(table: list[Candidate]) -> list[Marginal]:
    """Return the laws of one task that are close to the best, each at its best fit."""
    best = table[0]
    # Judged as all laws were tried: with one kernel, the fewest structures and no directions.
    fewest = min(map(_extent, table))
    tried = [c for c in table if c.kernel.name == common_kernel(table) and _extent(c) == fewest]
    close = [
        c.marginal
        for c in tried
        if c.largest_score <= EXTREME_SCORE
        and c.aic - tried[0].aic <= max(_CLOSE_AIC, _CLOSE_ERRORS * c.error)
    ]
    return [best.marginal, *(m for m in close if m.name != best.marginal.name)][:_SHORTLIST]


def _extent(candidate: Candidate) -> tuple[int, int]:
    return candidate.structures, sum(group.parameters for group in candidate.groups)


def common_kernel(table: list[Candidate]) -> str:
    """Return the name of the kernel that most candidates have: all laws were tried with it."""
    names = [c.kernel.name for c in table]
    return max(set(names), key=lambda n: (names.count(n), n))
