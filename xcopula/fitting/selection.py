"""The report's first step: each task alone, with the kernel and marginal law that suit it best.

A candidate is fitted as a single-task copula process and judged by its likelihood (as an AIC, so
that laws with more parameters pay for them). A law that sends an observation beyond
:data:`EXTREME_SCORE` standard deviations is passed over while another does not: a light tail on an
outlier distorts every prediction near it, however good the likelihood.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from xcopula.errors import NotPositiveDefiniteError, SupportError
from xcopula.fitting.interruption import interruptible
from xcopula.fitting.optimiser import Objective, Optimum
from xcopula.fitting.stages import minimise_in_stages
from xcopula.kernels import KERNELS, Kernel
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import MARGINALS, Labels, Law, Marginal, Recipe, check_law, fit_law
from xcopula.methods.part import Part
from xcopula.model.record import EXTREME_SCORE, Candidate
from xcopula.process import Process, Sample, Scores, scores
from xcopula.solvers import Sequential, Solver

__all__ = [
    "Alone",
    "length_parameters",
    "penalised",
    "select",
    "select_shared",
    "shortlist",
    "some_terms",
    "starting_law",
    "starting_point",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_FIRST_KERNEL = "matern32"
# Laws this close to the best in AIC are worth a second look, but not more than so many.
_CLOSE_AIC = 20.0
_SHORTLIST = 3
# So are those within so many standard errors of their difference, where terms stand for others.
_CLOSE_ERRORS = 2.0
# Terms of the likelihood that stand for all.
_TERMS = 4000


def penalised(
    process: Process, objective: Callable[[FloatArray], tuple[float, FloatArray]]
) -> Objective:
    """Return the negative log posterior density as a function of theta."""

    def value(theta: FloatArray) -> tuple[float, FloatArray]:
        nll, gradient = objective(theta)
        prior, prior_gradient = process.log_prior(theta)
        return nll - prior, gradient - prior_gradient

    return value


@dataclass(frozen=True)
class Alone:
    """A variable on its own, and how single-task processes are fitted to it.

    Attributes
    ----------
    sample : Sample
        Of one task.
    groups : tuple of InputGroup
    structures : int
    solver : Solver
    ticket : int
        Of the fit that it belongs to.
    """

    sample: Sample
    groups: tuple[InputGroup, ...]
    structures: int
    solver: Solver
    ticket: int = 0

    def process(self, kernel: Kernel, marginal: Marginal) -> Process:
        """Return the single-task process of a kernel and a law."""
        covariance = Covariance(
            (kernel,), self.groups, structures=self.structures, noise="independent"
        )
        return Process(covariance, (marginal,))

    def fit(self, kernel: Kernel, marginal: Marginal, start: FloatArray | None = None) -> Candidate:
        """Fit a single-task process from one starting point of its covariance."""
        process = self.process(kernel, marginal)
        if start is None:
            start = starting_point(process.covariance)
        fit = minimise_in_stages(
            lambda theta, terms: self.objective(process, self.part(process, theta, terms)),
            [process.join(start)],
            process.bounds(),
            terms=self.terms,
            lengths=length_parameters(process),
            anew=isinstance(self.solver, Sequential),
            whole=False,
        )
        return self._candidate(kernel, process, fit.optimum)

    @property
    def terms(self) -> int | None:
        """How many terms of the likelihood stand for all; None where all are evaluated."""
        return some_terms(self.solver, self.sample, _TERMS)

    def part(self, process: Process, theta: FloatArray, terms: int | None) -> Part:
        """Return the sample, or a part that stands for it, as a model."""
        return Part.of(self.solver, process, theta, self.sample, terms=terms)

    def objective(self, process: Process, part: Part) -> Objective:
        """Return what is minimised; it stops when the fit that it belongs to does."""
        whole = penalised(process, lambda theta: part.objective(process, theta))
        return interruptible(whole, self.ticket)

    def judge(self, kernel: Kernel, process: Process, theta: FloatArray) -> Candidate:
        """Return a candidate at given parameters."""
        value, _ = self.objective(process, self.part(process, theta, self.terms))(theta)
        return self._candidate(kernel, process, Optimum(theta, value, True, "", 1))

    def _candidate(self, kernel: Kernel, process: Process, optimum: Optimum) -> Candidate:
        theta = optimum.theta
        _, (fitted,) = process.split(theta)
        nll = optimum.value + process.log_prior(theta)[0]
        return Candidate(
            kernel=kernel,
            marginal=fitted,
            theta=theta,
            log_likelihood=-nll,
            aic=2.0 * (nll + process.covariance.size + fitted.dof),
            largest_score=largest_score(fitted, self.sample),
        )

    def scores(self, candidate: Candidate) -> Scores:
        """Score the candidate's leave-one-out predictions."""
        process = self.process(candidate.kernel, candidate.marginal)
        conditioned = self.part(process, candidate.theta, None).condition(process, candidate.theta)
        law = candidate.marginal.at(self.sample.covariates_of(0))
        return scores(conditioned.leave_one_out(), law, self.sample.values)


def some_terms(solver: Solver, sample: Sample, terms: int) -> int | None:
    """Return how many terms stand for all of a sample; None where that would save little."""
    return terms if isinstance(solver, Sequential) and sample.size > 2 * terms else None


def length_parameters(process: Process) -> IntArray:
    """Return where the length scales, and the scales of columns, stand in theta."""
    theta = np.arange(process.covariance.size)
    parts = [process.covariance.part(theta, name).ravel() for name in ("length", "scaling")]
    return np.concatenate(parts)


def largest_score(law: Marginal, sample: Sample) -> float:
    """Return the largest absolute normal score of a task alone.

    A law that does not vary increases: the ends of the sample have it.
    """
    if law.fields:
        z = law.at(sample.covariates_of(0)).to_normal(sample.values)
    else:
        z = law.to_normal(np.array([sample.values.min(), sample.values.max()]))
    return float(np.abs(z).max())


def starting_law(
    law: Law,
    values: FloatArray,
    covariates: FloatArray | None = None,
    labels: Labels | None = None,
) -> Marginal | None:
    """Return the law fitted to independent values, or None if it does not admit them all.

    Covariates (n, c) and the names of groups are for laws that vary; the law returned is not bound
    to these rows.
    """
    try:
        marginal = fit_law(law, values, covariates, labels)
    except SupportError:
        return None
    check_law(marginal)
    bound = marginal if covariates is None else marginal.at(covariates)
    # A value at the very end of a support, such as a zero, has no finite score.
    ends = values if marginal.fields else np.array([values.min(), values.max()])
    return marginal if np.isfinite(bound.to_normal(ends)).all() else None


def starting_point(covariance: Covariance) -> FloatArray:
    """Return covariance parameters to start from: nested lengths, most variance in the signal."""
    theta = np.zeros(covariance.size)
    spread = np.linspace(-1.0, 1.0, covariance.structures) if covariance.structures > 1 else [0.0]
    covariance.part(theta, "length")[:] = np.log(0.15) + np.reshape(spread, (-1, 1, 1))
    covariance.part(theta, "logit")[:] = 1.0
    return theta


def select(
    alone: Alone,
    kernels: Iterable[Kernel] | None,
    marginals: Iterable[Law] | None,
    labels: Labels | None = None,
    rows: IntArray | None = None,
) -> list[Candidate]:
    """Fit the candidates for one task and return them best first.

    None stands for all there are, as "auto" does in a recipe. The laws are compared under one
    kernel, then the kernels under the best law: eleven fits where the full table would take
    twenty-eight. ``labels`` name the groups of a law that differs between groups. Where ``rows``
    are given the processes see these observations only; the laws start from all of them.

    Raises
    ------
    SupportError
        If a law that was asked for, or every law, does not admit the values.
    """
    choice = list(KERNELS.values()) if kernels is None else list(kernels)
    first = KERNELS[_FIRST_KERNEL] if KERNELS[_FIRST_KERNEL] in choice else choice[0]
    candidates: list[Candidate] = []
    failure: NotPositiveDefiniteError | None = None
    start: FloatArray | None = None
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
            candidate = part.fit(first, marginal, start)
        except NotPositiveDefiniteError as error:
            failure = error
            continue
        candidates.append(_of_all(candidate, sample, part, marginal))
        start = candidate.theta[: candidate.theta.size - candidate.marginal.theta.size]
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
                candidate = part.fit(kernel, best.marginal, start)
                candidates.append(_of_all(candidate, sample, part, best.marginal))
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


def select_shared(tables: list[list[Candidate]]) -> list[list[Candidate]]:
    """Reorder the tasks' candidates so that the kernel best for all of them together is first."""
    totals = {}
    for kernel in dict.fromkeys(c.kernel for c in tables[0]):
        best = [min((c for c in t if c.kernel == kernel), key=lambda c: c.rank) for t in tables]
        totals[kernel] = sum(c.aic for c in best)
    shared = min(totals, key=lambda k: totals[k])
    return [sorted(t, key=lambda c: (c.kernel != shared, c.rank)) for t in tables]


def shortlist(table: list[Candidate]) -> list[Marginal]:
    """Return the laws of one task that are close to the best, each at its best fit."""
    best = table[0]
    # Judged under the kernel that all laws were tried with.
    tried = [c for c in table if c.kernel.name == _common_kernel(table)]
    close = [
        c.marginal
        for c in tried
        if c.largest_score <= EXTREME_SCORE and c.aic - tried[0].aic <= _CLOSE_AIC
    ]
    return [best.marginal, *(m for m in close if m.name != best.marginal.name)][:_SHORTLIST]


def _common_kernel(table: list[Candidate]) -> str:
    names = [c.kernel.name for c in table]
    return max(set(names), key=lambda n: (names.count(n), n))
