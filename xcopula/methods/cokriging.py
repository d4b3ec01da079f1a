r"""Ordinary co-kriging: unknown constant means, estimated by generalised least squares.

With F the indicator of each observation's task, the latent scores are :math:`F\beta + z`. The
prediction is the best linear unbiased one: the weights of the primary's values add up to one, those
of each secondary's to zero, and the variance carries what is not known of the means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from xcopula.arrays import FloatArray
from xcopula.methods.full import Full
from xcopula.methods.part import Part
from xcopula.process import Moments, Process, Sample, Targets
from xcopula.solvers import Gaussian

__all__ = ["CoKriging", "Kriged"]


@dataclass(frozen=True)
class CoKriging(Full):
    """Krige with normal laws, a linear model of coregionalisation and unknown means.

    It is the full method, likelihood and all, until the process is conditioned on the data.

    Examples
    --------
    >>> CoKriging().name
    'cokriging'
    """

    name: ClassVar[str] = "cokriging"
    law: ClassVar[str | None] = "normal"
    coupling: ClassVar[str | None] = "lmc"
    intervals: ClassVar[bool] = False

    def condition(
        self, process: Process, sample: Sample, structure: Part, theta: FloatArray
    ) -> Kriged:
        """Condition the process on a sample, its means unknown."""
        base = structure.condition(process, theta)
        trend = np.zeros((sample.tasks, sample.size))
        for i in range(sample.tasks):
            trend[i, sample.task(i)] = 1.0
        lifted = base.solve(trend)
        gram = np.asarray(np.linalg.inv(lifted @ trend.T), np.float64)
        return Kriged(base, trend, lifted, gram, gram @ (lifted @ base.scores))


@dataclass(frozen=True)
class Kriged:
    """A process with unknown means, conditioned on a sample."""

    base: Gaussian
    trend: FloatArray  # (t, n): rows of F'
    lifted: FloatArray  # (t, n): F' K^-1
    gram: FloatArray  # (t, t): (F' K^-1 F)^-1
    level: FloatArray  # (t,): the means

    def moments(self, targets: Targets, *, task: int = 0, nugget: bool = True) -> Moments:
        """Return the kriging mean and variance of a task at targets."""
        simple = self.base.moments(targets, task=task, nugget=nugget)
        missing = self._missing(targets, task, nugget)
        unsure = np.einsum("ij,ik,kj->j", missing, self.gram, missing)
        return Moments(simple.mean + self.level @ missing, simple.variance + unsure)

    def mean(self, targets: Targets, *, task: int = 0, nugget: bool = True) -> FloatArray:
        """Return the kriging mean of a task at targets."""
        simple = self.base.mean(targets, task=task, nugget=nugget)
        return np.asarray(simple + self.level @ self._missing(targets, task, nugget))

    def means(
        self, targets: Targets, scores: FloatArray, *, task: int = 0, nugget: bool = True
    ) -> FloatArray:
        """Return the means (k, m) of a task that other scores (k, n) would give."""
        simple = self.base.means(targets, scores, task=task, nugget=nugget)
        levels = scores @ self.lifted.T @ self.gram
        return np.asarray(simple + levels @ self._missing(targets, task, nugget))

    def _missing(self, targets: Targets, task: int, nugget: bool) -> FloatArray:
        """Return what simple kriging lacks to reproduce each mean: (t, m)."""
        missing = -self.base.means(targets, self.trend, task=task, nugget=nugget)
        missing[task] += 1.0
        return missing

    def leave_one_out(self) -> Moments:
        """Return the moments of each score given all others, the means estimated anew."""
        precision = 1.0 / self.base.leave_one_out().variance
        precision -= np.einsum("in,ij,jn->n", self.lifted, self.gram, self.lifted)
        alpha = self.base.solve((self.base.scores - self.level @ self.trend)[None])[0]
        variance = 1.0 / precision
        return Moments(self.base.scores - alpha * variance, variance)

    def describe(self) -> list[str]:
        """Return lines for the model's summary."""
        return ["ordinary co-kriging: unknown means by generalised least squares"]
