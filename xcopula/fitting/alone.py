"""One variable alone: a single-task process fitted to it, where the joint fit starts."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np

from xcopula.arrays import FloatArray
from xcopula.fitting.interruption import interruptible
from xcopula.fitting.maximise import Fit, maximise, penalised, subsample_size
from xcopula.fitting.newton import Loss
from xcopula.fitting.watch import Watch
from xcopula.kernels import TaskKernel
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import Marginal
from xcopula.methods.part import Part
from xcopula.process import Process, Sample, Scores, scores
from xcopula.process.intervals import known_as_intervals, typical_scores
from xcopula.progress.run import SILENT_STEP, Step
from xcopula.solvers import Sequential, Solver

__all__ = [
    "TERMS_ALONE",
    "VALUES_ALONE",
    "Alone",
    "largest_score",
    "loss_of",
    "starting_point",
    "starting_points",
    "with_all_values",
]

# Of a variable alone, which only says where to start: terms in the subsample of the likelihood, and
# values in the sample where the likelihood has no terms.
TERMS_ALONE, VALUES_ALONE = 2000, 2000
# Where length scales start, in units of the extent.
_START = 0.15


@dataclass(frozen=True)
class Alone:
    """A variable alone, and how single-task processes are fitted to it.

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
    rough : bool
        Whether the result is only where another search starts.
    whole : Sample, optional
        All values, where ``sample`` is a part of them: marginals must admit all.
    """

    sample: Sample
    groups: tuple[InputGroup, ...]
    structures: int
    solver: Solver
    ticket: int = 0
    step: Step = SILENT_STEP
    rough: bool = True
    whole: Sample | None = None

    def process(self, kernel: TaskKernel, marginal: Marginal) -> Process:
        """Return the single-task process of a kernel and a law."""
        covariance = Covariance(
            (kernel,), self.groups, structures=self.structures, noise="independent"
        )
        return Process(covariance, (marginal,))

    def fit(self, kernel: TaskKernel, marginal: Marginal, *, terms_of: Fit | None = None) -> Fit:
        """Fit a single-task process from the best of some starting points of its covariance.

        Parameters
        ----------
        kernel, marginal
            Of the process; the marginal starts where it is.
        terms_of : Single, optional
            A fit whose terms and neighbours are taken, so that both can be compared.
        """
        process = self.process(kernel, marginal)
        fixed = None if terms_of is None else self.part(terms_of.process, terms_of.theta)
        single = maximise(
            process,
            lambda theta, terms: self.objective(process, fixed or self.part(process, theta)),
            [process.join(start) for start in starting_points(process.covariance)],
            terms=self.terms,
            size=self.sample.size,
            anew=fixed is None
            and isinstance(self.solver, Sequential)
            and self.solver.adapts(process),
            whole=False,
            rough=self.rough,
            watch=Watch(self.step),
        )
        return single if self.whole is None else with_all_values(single, self.whole, marginal)

    @property
    def terms(self) -> int | None:
        """Terms in the subsample of the likelihood; None where all are evaluated."""
        return subsample_size(self.solver, self.sample, TERMS_ALONE)

    def part(self, process: Process, theta: FloatArray) -> Part:
        """Return the sample, or the subsample of its terms, as a model."""
        return Part.of(self.solver, process, theta, self.sample, terms=self.terms)

    def objective(self, process: Process, part: Part) -> Loss:
        """Return what is minimised; it stops when the fit that it belongs to does."""
        return interruptible(loss_of(process, part), self.ticket)

    def scores(self, single: Fit) -> Scores:
        """Score the leave-one-out predictions of a fit."""
        process = single.process
        part = Part.of(self.solver, process, single.theta, self.sample)
        conditioned = part.condition(process, single.theta)
        law = single.marginal.at(self.sample.covariates_of(0))
        limits = self.sample.limits_of(0)
        return scores(conditioned.leave_one_out(), law, self.sample.values, limits)


def loss_of(process: Process, part: Part) -> Loss:
    """Return the negative log posterior density of a sub-model."""
    information = None
    if hasattr(part.solver, "information"):
        information = functools.partial(part.information, process)
    return penalised(process, functools.partial(part.objective, process), information)


def with_all_values(single: Fit, sample: Sample, start: Marginal) -> Fit:
    """Return a fit to a part of a sample with a marginal that admits all of it.

    Where a value lies outside the support of the fitted one, that is the one before the fit.
    """
    if np.isfinite(largest_score(single.marginal, sample)):
        return single
    theta = single.theta.copy()
    theta[theta.size - start.theta.size :] = start.theta
    return replace(single, theta=theta)


def largest_score(law: Marginal, sample: Sample) -> float:
    """Return the largest absolute normal score of a task alone.

    A law that does not vary increases: the ends of the sample have it. Intervals have none.
    """
    if law.fields or known_as_intervals((law,), sample).any():
        z = typical_scores((law.at(sample.covariates_of(0)),), sample)
    else:
        z = law.to_normal(np.array([sample.values.min(), sample.values.max()]))
    return float(np.abs(z).max())


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
