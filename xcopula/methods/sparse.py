r"""Sparse inference with inducing points: DTC, FITC and PITC in one.

The signal is explained by its values u at inducing points, :math:`Q = K_{fu} K_{uu}^{-1} K_{uf}`,
and what is left is taken for independent between blocks of observations:

.. math:: S = Q + \Lambda, \qquad \Lambda_b = N_b + M \circ (K_b - Q_b)

DTC leaves nothing but the nugget N (M = 0), FITC restores the variance (M = I), PITC restores whole
blocks of neighbouring sites (M = 1). The nugget is never divided: for DTC and FITC a block is a
site. The cost is O(n m^2) with m inducing points.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from xcopula.arguments import check_integer
from xcopula.arrays import FloatArray, IntArray
from xcopula.methods.contract import Method
from xcopula.methods.lowrank import Blocks, LowRank, factorise, pull_back
from xcopula.methods.partition import by_cluster, by_site, centres
from xcopula.process import (
    Evidence,
    Moments,
    Process,
    Sample,
    Targets,
    keep_data,
    keep_scores,
    known_data,
)
from xcopula.solvers import Cost, Solver
from xcopula.solvers.batches import batches
from xcopula.warn import warn_user

__all__ = ["Projected", "Sparse"]

_KINDS = ("dtc", "fitc", "pitc")
# Observations of a PITC block, on average.
_BLOCK_SIZE = 100


@dataclass(frozen=True)
class Inducing:
    """Inducing points of each task, and blocks of observations gathered by their size."""

    points: tuple[FloatArray, ...]  # each (d, m_i)
    blocks: Blocks  # each (blocks, size)


@dataclass(frozen=True)
class Sparse(Method):
    """Explain the signal by its values at inducing points.

    Parameters
    ----------
    kind : {"dtc", "fitc", "pitc"}
        What is kept of the covariance that inducing points do not explain: nothing, the variance
        of each observation, or whole blocks of neighbouring sites.
    inducing : int, or mapping of variable to int
        The number of inducing points of all variables together, or of each variable. They are
        centres of the clusters that k-means finds among the sites of a variable. A tuple has a
        number, or an array of scaled coordinates (d, m), for each task.

    Examples
    --------
    >>> Sparse("fitc", inducing=100).name
    'fitc'
    """

    kind: str = "fitc"
    inducing: Any = 200

    intervals: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ValueError(f"Unknown sparse method {self.kind!r}. Choose one of {_KINDS}.")
        check = functools.partial(check_integer, "inducing", least=1)
        if isinstance(self.inducing, Mapping):
            counts = {name: check(count) for name, count in self.inducing.items()}
            object.__setattr__(self, "inducing", counts)
        elif not isinstance(self.inducing, tuple):
            object.__setattr__(self, "inducing", check(self.inducing))

    @property
    def name(self) -> str:  # type: ignore[override]
        """The kind, by which users ask for the method."""
        return self.kind

    def for_variables(self, names: Sequence[str]) -> Self:
        """Return the method with the numbers of inducing points in the order of the variables."""
        given = self.inducing
        if not isinstance(given, dict):
            return self
        if set(given) != set(names):
            raise KeyError(f"`inducing` names {list(given)}, but the variables are {list(names)}.")
        return replace(self, inducing=tuple(given[name] for name in names))

    def prepare(
        self,
        solver: Solver,
        process: Process,
        theta: FloatArray,
        sample: Sample,
        *,
        terms: int | None = None,
    ) -> Inducing:
        """Choose inducing points and blocks, so that the likelihood is one function of theta."""
        clusters = max(1, round(sample.size / _BLOCK_SIZE))
        blocks = by_cluster(sample, clusters) if self.kind == "pitc" else by_site(sample)
        points = tuple(
            centres(sample.inputs[:, sample.task(i)], own) if isinstance(own, int) else own
            for i, own in enumerate(self._shares(sample))
        )
        return Inducing(points, tuple(blocks))

    def _shares(self, sample: Sample) -> Sequence[Any]:
        """Return the points of each task, or how many: by its number of observations."""
        if not isinstance(self.inducing, int):
            return list(self.inducing)
        if self.inducing > sample.size:
            warn_user(
                f"inducing={self.inducing} asks for more points than the {sample.size} "
                "observations. One point is put at each observation."
            )
        count = min(self.inducing, sample.size)
        return [max(1, count * n // sample.size) for n in sample.sizes]

    def objective(
        self, process: Process, sample: Sample, structure: Inducing, theta: FloatArray
    ) -> tuple[float, FloatArray]:
        """Return the negative approximate log-likelihood and its gradient."""
        evidence = Evidence.of(process, sample, theta)
        if not evidence.possible:
            return evidence.impossible()
        pieces = factorise(self.kind, process, sample, structure.points, structure.blocks, theta)
        alpha = pieces.solve(evidence.scores[None])[0]
        by = pull_back(self.kind, sample, pieces, alpha)
        return evidence.value(alpha, pieces.log_determinant), evidence.gradient(alpha, by)

    def mean_is_cheaper(self, solver: Solver | None, tasks: int, task: int) -> bool:
        """Tell that it is: the variance takes one more triangular system for each cell."""
        return True

    def condition(
        self, process: Process, sample: Sample, structure: Inducing, theta: FloatArray
    ) -> Projected:
        """Condition the sparse process on a sample."""
        pieces = factorise(self.kind, process, sample, structure.points, structure.blocks, theta)
        w = process.scores(theta, sample)
        return Projected(self.kind, sample, pieces, pieces.solve(w[None])[0], w)

    def submodels(self, sizes: Sequence[int]) -> list[list[int]]:
        """Return none: no solver evaluates a sparse model."""
        return []

    def cost(self, solver: Solver, sizes: Sequence[int], correlations: int = 1) -> Cost:
        """Estimate covariances of all observations with the inducing points."""
        given = self.inducing
        shares = given.values() if isinstance(given, dict) else given
        if isinstance(shares, int):
            shares = [shares]
        m = float(sum(s if isinstance(s, int) else s.shape[1] for s in shares))
        n = float(sum(sizes))
        # The factors are measured (benchmarks/bench_costs.py): the gradient weighs most.
        return Cost(8.0 * (9.0 * n * m + 3.0 * m * m), 20.0 * n * m * m)


@dataclass(frozen=True)
class Projected:
    """A sparse process conditioned on a sample."""

    kind: str
    sample: Sample
    pieces: LowRank
    alpha: FloatArray
    scores: FloatArray

    def moments(self, targets: Targets, *, task: int = 0, nugget: bool = True) -> Moments:
        """Return the latent mean and variance of a task at targets."""
        mean, variance = np.empty(targets.size), np.empty(targets.size)
        state = self.pieces.state
        prior = float(state.amplitudes[:, task, task].sum())
        prior += float(state.nugget[task, task]) if nugget else 0.0
        pull = self.pieces.white @ self.alpha
        for where in batches(targets.size, 2 * len(self.pieces.root)):
            white = self.pieces.whiten(targets.inputs[:, where], task)
            explained = np.einsum("ij,ij->i", white, white)
            mean[where] = white @ pull
            rest = self.pieces.uncertain(white)
            variance[where] = prior - explained + np.einsum("ij,ij->i", rest, rest)
        moments = Moments(mean, np.maximum(variance, 0.0))
        if not nugget:
            return moments
        for own, rows in self._met(targets, task):
            mean[own] = rows @ self.alpha
            explained = np.einsum("ij,ij->i", self.pieces.solve(rows), rows)
            moments.variance[own] = np.maximum(prior - explained, 0.0)
        return keep_data(moments, self.sample, self._known(), targets, task)

    def mean(self, targets: Targets, *, task: int = 0, nugget: bool = True) -> FloatArray:
        """Return the latent mean of a task at targets: half of the triangular systems."""
        mean = np.empty(targets.size)
        pull = self.pieces.white @ self.alpha
        for where in batches(targets.size, 2 * len(self.pieces.root)):
            mean[where] = self.pieces.whiten(targets.inputs[:, where], task) @ pull
        if not nugget:
            return mean
        for own, rows in self._met(targets, task):
            mean[own] = rows @ self.alpha
        return keep_scores(mean, self.sample, self._known(), targets, task)

    def _known(self) -> Moments:
        return known_data(self.scores, None, self.leave_one_out)

    def _met(self, targets: Targets, task: int) -> Iterator[tuple[IntArray, FloatArray]]:
        """Give the targets at sites where other tasks share the nugget, with covariance rows."""
        shared = self._shared_nugget(targets, task)
        met = np.flatnonzero((shared[1] != 0.0).any(axis=0))
        for where in batches(met.size, self.sample.size):
            own = met[where]
            rows = self.pieces.whiten(targets.inputs[:, own], task) @ self.pieces.white
            for datum, amount in zip(shared[0][:, own], shared[1][:, own], strict=True):
                rows[np.arange(own.size), np.maximum(datum, 0)] += amount
            yield own, rows

    def _shared_nugget(self, targets: Targets, task: int) -> tuple[Any, FloatArray]:
        """Return the observation of each other task at the targets' sites, and what it shares."""
        data = np.stack([self.sample.observed(i, targets.sites) for i in range(self.sample.tasks)])
        amounts = np.where(data >= 0, self.pieces.state.nugget[task][:, None], 0.0)
        amounts[:, data[task] >= 0] = 0.0  # the datum itself is there
        return data, amounts

    def means(
        self, targets: Targets, scores: FloatArray, *, task: int = 0, nugget: bool = True
    ) -> FloatArray:
        """Return the means (k, m) of a task that other scores (k, n) would give."""
        alphas = self.pieces.solve(scores)
        each = [replace(self, alpha=a, scores=w) for a, w in zip(alphas, scores, strict=True)]
        return np.stack([c.mean(targets, task=task, nugget=nugget) for c in each])

    def leave_one_out(self) -> Moments:
        """Return the moments of each score given all others, under the approximate law."""
        variance = 1.0 / self.pieces.precision()
        mean = self.scores - self.alpha * variance
        if self.kind == "dtc":
            # A value that is left out is predicted, and predictions have the whole prior variance.
            variance = variance + self.pieces.missing(self.sample)
        return Moments(mean, variance)

    def describe(self) -> list[str]:
        """Return lines for the model's summary."""
        return [f"{self.kind.upper()} with {len(self.pieces.root)} inducing points"]
