"""One variable on its own: how single-task processes are fitted to it and judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from xcopula.errors import SupportError
from xcopula.fitting.interruption import interruptible
from xcopula.fitting.optimiser import Objective, Optimum
from xcopula.fitting.stages import minimise_in_stages
from xcopula.fitting.watch import Watch
from xcopula.kernels import KERNELS, TaskKernel
from xcopula.kernels.base import half_distance
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.kernels.nested import family
from xcopula.marginals import Labels, Law, Marginal, Normal, check_law, fit_law
from xcopula.marginals.intervals import check_limits, is_interval
from xcopula.methods.part import Part
from xcopula.model.candidates import Candidate
from xcopula.model.extremes import extreme_score
from xcopula.process import Process, Sample, Scores, scores
from xcopula.process.intervals import known_as_intervals, typical_scores
from xcopula.progress.run import UNHEARD, Step
from xcopula.solvers import Sequential, Solver

__all__ = [
    "FIRST_KERNEL",
    "TERMS_ALONE",
    "VALUES_ALONE",
    "Alone",
    "largest_score",
    "length_parameters",
    "penalised",
    "some_terms",
    "starting_law",
    "starting_point",
    "starting_points",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Of a variable on its own, which only suggests where to start: terms of the likelihood that stand
# for all, and how many values are looked at where no terms can.
TERMS_ALONE, VALUES_ALONE = 4000, 2000
# The kernel that laws are tried with.
FIRST_KERNEL = "matern32"
# Where length scales start, in units of the extent.
_START = 0.15


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
    step : Step
        Of that fit: hears of iterations.
    some : Part, optional
        Terms that stand for all whatever the candidate, if they were chosen before.
    """

    sample: Sample
    groups: tuple[InputGroup, ...]
    structures: int
    solver: Solver
    ticket: int = 0
    step: Step = UNHEARD
    some: Part | None = None

    def process(self, kernel: TaskKernel, marginal: Marginal) -> Process:
        """Return the single-task process of a kernel and a law."""
        covariance = Covariance(
            (kernel,), self.groups, structures=self.structures, noise="independent"
        )
        return Process(covariance, (marginal,))

    def fit(
        self, kernel: TaskKernel, marginal: Marginal, starts: Sequence[FloatArray] = ()
    ) -> Candidate:
        """Fit a single-task process from the best of some starting points of its covariance."""
        process = self.process(kernel, marginal)
        fit = minimise_in_stages(
            lambda theta, terms: self.objective(process, self.part(process, theta, terms)),
            [process.join(start) for start in starts or starting_points(process.covariance)],
            process.bounds(),
            terms=self.terms,
            size=self.sample.size,
            lengths=length_parameters(process),
            anew=isinstance(self.solver, Sequential) and self.solver.adapts(process),
            whole=False,
            watch=Watch(self.step),
        )
        return self._candidate(kernel, process, fit.optimum)

    @property
    def terms(self) -> int | None:
        """How many terms of the likelihood stand for all; None where all are evaluated."""
        return some_terms(self.solver, self.sample, TERMS_ALONE)

    def part(self, process: Process, theta: FloatArray, terms: int | None) -> Part:
        """Return the sample, or a part that stands for it, as a model."""
        if terms is not None and self.some is not None and self._is_settled(process):
            return self.some
        return Part.of(self.solver, process, theta, self.sample, terms=terms)

    def survey(self) -> Part | None:
        """Choose terms that stand for all once, if they are the same for every candidate.

        To order the values and to look for neighbours among all of them takes longer than to fit a
        candidate to a few thousand terms.
        """
        process = self.process(KERNELS[FIRST_KERNEL], Normal(0.0, 1.0))
        if self.terms is None or not self._is_settled(process):
            return None
        return self.part(process, process.join(starting_point(process.covariance)), self.terms)

    def _is_settled(self, process: Process) -> bool:
        """Tell whether lengths do not say which terms these are."""
        return isinstance(self.solver, Sequential) and not self.solver.adapts(process)

    def objective(self, process: Process, part: Part) -> Objective:
        """Return what is minimised; it stops when the fit that it belongs to does."""
        whole = penalised(process, lambda theta: part.objective(process, theta))
        return interruptible(whole, self.ticket)

    def judge(
        self,
        kernel: TaskKernel,
        process: Process,
        theta: FloatArray,
        objective: Objective | None = None,
    ) -> Candidate:
        """Return a candidate at given parameters, by terms that suit them or by an objective."""
        if objective is None:
            objective = self.objective(process, self.part(process, theta, self.terms))
        value, _ = objective(theta)
        return self._candidate(kernel, process, Optimum(theta, value, True, "", 1))

    def _candidate(self, kernel: TaskKernel, process: Process, optimum: Optimum) -> Candidate:
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
            structures=self.structures,
            groups=self.groups,
            limit=extreme_score(self.sample.size),
        )

    def with_structures(self, candidate: Candidate, structures: int) -> Candidate:
        """Fit a candidate with more structures, from where it is with one: short and long."""
        richer = replace(self, structures=structures)
        poor = self.process(candidate.kernel, candidate.marginal).covariance
        covariance = richer.process(candidate.kernel, candidate.marginal).covariance
        starts = starting_points(covariance)
        own = candidate.theta[: poor.size]
        for start in starts:
            covariance.part(start, "length")[:] += poor.part(own, "length") - np.log(_START)
            covariance.part(start, "scaling")[:] = poor.part(own, "scaling")
            # Together they have the share of the variance that the one has.
            covariance.part(start, "logit")[:] = poor.part(own, "logit") - np.log(structures)
        return richer.fit(candidate.kernel, candidate.marginal, starts)

    def with_kernels(self, candidate: Candidate, kernel: TaskKernel) -> Candidate:
        """Fit a candidate with other kernels of its structures, from where it is."""
        own = self.like(candidate)
        covariance = own.process(candidate.kernel, candidate.marginal).covariance
        start = candidate.theta[: covariance.size].copy()
        old, new = (
            [half_distance(family(each, q)) for q in range(candidate.structures)]
            for each in (candidate.kernel, kernel)
        )
        # Half of the correlation is left at the same distance.
        covariance.part(start, "length")[:] += np.log(np.divide(old, new)).reshape(-1, 1, 1)
        return own.fit(kernel, candidate.marginal, [start])

    def on_common_terms(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Judge candidates by the same terms, those that suit the best of them.

        Where terms stand for others their choice matters, and so does how surely the best is best.
        """
        if not isinstance(self.solver, Sequential):
            return list(candidates)
        best = min(candidates, key=lambda c: c.rank)
        part = self.like(best).part(self._process_of(best), best.theta, self.terms)
        found = [
            self.solver.log_densities(self._process_of(c), part.sample, part.structure, c.theta)
            for c in candidates
        ]
        reference = next(d for d, c in zip(found, candidates, strict=True) if c is best)
        return [
            replace(
                c,
                log_likelihood=d.total,
                aic=c.aic + 2.0 * (c.log_likelihood - d.total),
                error=2.0 * d.error(reference),
            )
            for c, d in zip(candidates, found, strict=True)
        ]

    def like(self, candidate: Candidate) -> Alone:
        """Return the variable as it was fitted with a candidate: with its structures and groups."""
        return replace(self, structures=candidate.structures, groups=candidate.groups)

    def _process_of(self, candidate: Candidate) -> Process:
        return self.like(candidate).process(candidate.kernel, candidate.marginal)

    def scores(self, candidate: Candidate) -> Scores:
        """Score the candidate's leave-one-out predictions."""
        process = self._process_of(candidate)
        conditioned = self.part(process, candidate.theta, None).condition(process, candidate.theta)
        law = candidate.marginal.at(self.sample.covariates_of(0))
        limits = self.sample.limits_of(0)
        return scores(conditioned.leave_one_out(), law, self.sample.values, limits)


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

    A law that does not vary increases: the ends of the sample have it. Intervals have none.
    """
    if law.fields or known_as_intervals((law,), sample).any():
        z = typical_scores((law.at(sample.covariates_of(0)),), sample)
    else:
        z = law.to_normal(np.array([sample.values.min(), sample.values.max()]))
    return float(np.abs(z).max())


def starting_law(
    law: Law,
    values: FloatArray,
    covariates: FloatArray | None = None,
    labels: Labels | None = None,
    limits: FloatArray | None = None,
) -> Marginal | None:
    """Return the law fitted to independent values, or None if it does not admit them all.

    Covariates (n, c) and the names of groups are for laws that vary; the law returned is not bound
    to these rows. With limits (2, n) some values are known as intervals only.
    """
    try:
        marginal = fit_law(law, values, covariates, labels, limits)
        check_law(marginal)
        bound = marginal if covariates is None else marginal.at(covariates)
        if limits is not None:
            check_limits(bound, limits)
    except SupportError:
        return None
    if limits is not None:
        finite = np.isfinite(bound.to_normal(values)) | is_interval(limits)
        return marginal if finite.all() else None
    # A value at the very end of a support, such as a zero, has no finite score.
    ends = values if marginal.fields else np.array([values.min(), values.max()])
    return marginal if np.isfinite(bound.to_normal(ends)).all() else None


def starting_point(covariance: Covariance) -> FloatArray:
    """Return covariance parameters to start from: nested lengths, most variance in the signal."""
    theta = np.zeros(covariance.size)
    spread = np.linspace(-1.0, 1.0, covariance.structures) if covariance.structures > 1 else [0.0]
    covariance.part(theta, "length")[:] = np.log(_START) + np.reshape(spread, (-1, 1, 1))
    covariance.part(theta, "logit")[:] = 1.0
    return theta


def starting_points(covariance: Covariance) -> list[FloatArray]:
    """Return where to start: what is near in space may be short in time, or long.

    Nested structures are short or long in all groups, or short in the first and long in the others:
    weather of a region that changes from day to day, and local climate that stays.
    """
    start = starting_point(covariance)
    if covariance.structures == 1 or len(covariance.groups) == 1:
        return [start]
    crossed = start.copy()
    lengths = covariance.part(crossed, "length")
    lengths[:, 1:] = lengths[::-1, 1:].copy()
    return [start, crossed]
