r"""The Bayesian committee machine: blocks of data learn alone and vote.

Each block of neighbouring sites has a model of its own; all share the parameters. With
:math:`s_b^2` the variance that block b gives a cell and :math:`s_0^2` the one before any data,

.. math:: 1 / s^2 = \sum_b 1 / s_b^2 - (B - 1) / s_0^2

The vote is on what the data can tell: the signal, and at a site that has data what they tell of its
nugget. The rest of the nugget is added to the result; it is not divided by the number of votes. The
likelihood is the product of the blocks'. With one block the method is the full one.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from xcopula.arguments import check_integer
from xcopula.arrays import FloatArray, IntArray
from xcopula.methods.contract import Method
from xcopula.methods.nugget import unexplained
from xcopula.methods.part import Part, condition_each, total, total_information
from xcopula.methods.partition import by_cluster
from xcopula.process import Moments, Process, Sample, Targets, keep_data, known_data
from xcopula.solvers import Gaussian, Informed, Solver

__all__ = ["Committee", "Members"]

_FEWEST_SITES = 5


@dataclass(frozen=True)
class Blocks:
    """Blocks of data: the observations of each, and its model."""

    index: tuple[IntArray, ...]
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Committee(Method):
    """Give each block of neighbouring sites its own model, and let them vote on the prediction.

    Parameters
    ----------
    blocks : int
        Number of blocks.

    Examples
    --------
    >>> Committee(blocks=8)
    Committee(blocks=8)
    """

    blocks: int = 4

    name: ClassVar[str] = "bcm"
    has_information: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", check_integer("blocks", self.blocks, least=1))

    def prepare(
        self,
        solver: Solver,
        process: Process,
        theta: FloatArray,
        sample: Sample,
        *,
        terms: int | None = None,
    ) -> Blocks:
        """Choose the blocks.

        Raises
        ------
        ValueError
            If a block would have fewer than five sites.
        """
        index = tuple(block[0] for block in by_cluster(sample, self.blocks))
        smallest = min(np.unique(sample.sites[block]).size for block in index)
        if smallest < _FEWEST_SITES:
            raise ValueError(
                f"With blocks={self.blocks} one block has only {smallest} sites, and each needs at "
                f"least {_FEWEST_SITES}. Use fewer blocks."
            )
        samples = [sample.take(block) for block in index]
        most = terms and max(terms // self.blocks, 1)
        parts = (Part.of(solver, process, theta, own, terms=most) for own in samples)
        return Blocks(index, tuple(parts))

    def objective(
        self, process: Process, sample: Sample, structure: Blocks, theta: FloatArray
    ) -> tuple[float, FloatArray]:
        """Return the negative log-likelihood of independent blocks and its gradient."""
        return total(structure.parts, process, theta)

    def information(
        self, process: Process, sample: Sample, structure: Blocks, theta: FloatArray
    ) -> Informed:
        """Return the objective of independent blocks with its information matrix."""
        return total_information(structure.parts, process, theta)

    def condition(
        self, process: Process, sample: Sample, structure: Blocks, theta: FloatArray
    ) -> Members:
        """Condition every block on its data."""
        nugget = process.covariance.matrices(theta[: process.covariance.size])[-1]
        members = condition_each(structure.parts, process, theta)
        return Members(sample, members, structure.index, nugget)

    def submodels(self, sizes: Sequence[int]) -> list[list[int]]:
        """Return a model for each block of data."""
        return [[-(-n // self.blocks) for n in sizes]] * self.blocks


@dataclass(frozen=True)
class Members:
    """The members of a committee, each conditioned on its block."""

    sample: Sample
    members: tuple[Gaussian, ...]
    index: tuple[IntArray, ...]
    nugget: FloatArray

    def moments(self, targets: Targets, *, task: int = 0, nugget: bool = True) -> Moments:
        """Return the latent mean and variance of a task at targets."""
        each = [m.moments(targets, task=task, nugget=nugget) for m in self.members]
        prior = self.members[0].prior_variance(task=task, nugget=nugget)
        if not nugget:
            return _vote(each, prior, np.zeros(targets.size))
        rest = unexplained(self.nugget, self.sample, targets.sites, task)
        return keep_data(_vote(each, prior, rest), self.sample, self._known, targets, task)

    def mean(self, targets: Targets, *, task: int = 0, nugget: bool = True) -> FloatArray:
        """Return the latent mean of a task at targets: votes count by their variance."""
        return self.moments(targets, task=task, nugget=nugget).mean

    def means(
        self, targets: Targets, scores: FloatArray, *, task: int = 0, nugget: bool = True
    ) -> FloatArray:
        """Return the means (k, m) of a task that other scores (k, n) would give."""
        each = [self._with_scores(row) for row in scores]
        return np.stack([c.mean(targets, task=task, nugget=nugget) for c in each])

    def leave_one_out(self) -> Moments:
        """Return the moments of each score given all others."""
        loo = Moments(np.empty(self.sample.size), np.empty(self.sample.size))
        alone = [m.leave_one_out() for m in self.members]
        for task in range(self.sample.tasks):
            own = self.sample.task(task)
            prior = self.members[0].prior_variance(task=task)
            for k, index in enumerate(self.index):
                mine = (index >= own.start) & (index < own.stop)
                where = index[mine]
                sites = self.sample.targets(where)
                votes = [Moments(alone[k].mean[mine], alone[k].variance[mine])]
                votes += [m.moments(sites, task=task) for j, m in enumerate(self.members) if j != k]
                rest = unexplained(self.nugget, self.sample, sites.sites, task)
                loo.mean[where], loo.variance[where] = _vote(votes, prior, rest)
        return loo

    def describe(self) -> list[str]:
        """Return lines for the model's summary."""
        sizes = ", ".join(str(m.sample.size) for m in self.members)
        return [f"committee of {len(self.members)} blocks with {sizes} observations"]

    @functools.cached_property
    def _known(self) -> Moments:
        scores, extra = np.empty(self.sample.size), None
        for index, member in zip(self.index, self.members, strict=True):
            scores[index] = member.scores
            if member.extra is not None:
                extra = np.zeros(self.sample.size) if extra is None else extra
                extra[index] = member.extra
        return known_data(scores, extra, self.leave_one_out)

    def _with_scores(self, scores: FloatArray) -> Members:
        pairs = zip(self.members, self.index, strict=True)
        return replace(self, members=tuple(m.with_scores(scores[i]) for m, i in pairs))


def _vote(votes: Sequence[Moments], prior: float, rest: FloatArray) -> Moments:
    """Combine votes on all but the ``rest`` (m,) of the variance, which nobody can tell."""
    precision = -(len(votes) - 1) / np.maximum(prior - rest, 1e-12)
    pull = np.zeros_like(precision)
    for vote in votes:
        weight = 1.0 / np.maximum(vote.variance - rest, 1e-12)
        precision += weight
        pull += weight * vote.mean
    return Moments(pull / precision, 1.0 / precision + rest)
