"""Anchors: query points that every cell of a transductive prediction shares.

The approximation depends on the query set. A set that is fixed once for the model makes it
independent of how a grid is cut into chunks. The best anchors are sites where a secondary is known
and the primary is not: given the primary's signal there, secondaries say nothing of each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from xcopula.arrays import FloatArray
from xcopula.jit.anchored import combine_conditionals
from xcopula.linalg import cholesky, solve_lower
from xcopula.methods.partition import spread
from xcopula.process import Moments, Sample, Targets, number_sites
from xcopula.solvers import Joint
from xcopula.solvers.batches import batches

__all__ = ["MOST_ANCHORS", "Anchored", "anchor", "choose_anchors", "usable_anchors"]

MOST_ANCHORS = 300

# Below this a conditional variance is rounding error: the cell is known given the anchors.
_KNOWN = 1e-10
# Points that are given twice are one anchor; inputs have about unit extent.
_SAME_POINT = 1e-9


def usable_anchors(points: Targets, sample: Sample) -> Targets:
    """Drop repeated points and those where the primary is known, which add little."""
    _, numbers = number_sites(points.inputs, np.full(len(points.inputs), _SAME_POINT))
    _, first = np.unique(numbers, return_index=True)
    points = points.take(np.sort(first))
    return points.take(sample.observed(0, points.sites) < 0)


def choose_anchors(sample: Sample, most: int = MOST_ANCHORS) -> Targets:
    """Return sites of secondaries without the primary, spread out where there are too many."""
    secondary = sample.targets(slice(int(sample.offsets[1]), None))
    _, first = np.unique(secondary.sites, return_index=True)
    points = secondary.take(np.sort(first))
    points = points.take(sample.observed(0, points.sites) < 0)
    return points if points.size <= most else points.take(spread(points.inputs, most))


@dataclass(frozen=True)
class Anchored:
    """The sub-models' posteriors of the primary at the anchors, and their combination.

    Of its *signal*: secondaries know of each other through the signal, not through the nugget of a
    value that nobody has observed.
    """

    points: Targets
    coefficients: FloatArray  # (k,): of the sub-models' precisions
    whitened: tuple[FloatArray, ...]  # each (m, n_k): L^-1 k of the anchors
    factors: tuple[FloatArray, ...]  # each (m, m): of the posterior covariance
    means: tuple[FloatArray, ...]  # each (m,): of the anchors, divided by the factor
    rotations: tuple[FloatArray, ...]  # each (m, m): from these to unit base precision
    shift: FloatArray  # (m,): combined mean of the anchors in those coordinates

    def moments(
        self, models: tuple[Joint, ...], targets: Targets, rest: FloatArray, *, nugget: bool
    ) -> Moments:
        """Return the combined moments of the primary; ``rest`` (m,) is combined by nobody."""
        mean, variance = np.empty(targets.size), np.empty(targets.size)
        # Copies: numba would compile again for read-only arrays, which those of a model are.
        coefficients, shift = self.coefficients.copy(), self.shift.copy()
        width = max(m.sample.size for m in models) + (len(models) + 1) * self.points.size
        for where in batches(targets.size, width):
            gains, intercepts, variances = self._conditionals(models, targets.take(where), nugget)
            variances = np.maximum(variances - rest[where, None], _KNOWN)
            combine_conditionals(
                gains,
                intercepts,
                variances,
                coefficients,
                shift,
                mean[where],
                variance[where],
            )
        return Moments(mean, np.maximum(variance, 0.0) + rest)

    def _conditionals(
        self, models: tuple[Joint, ...], batch: Targets, nugget: bool
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return each sub-model's law of the batch given the anchors."""
        gains = np.empty((batch.size, len(models), self.points.size))
        intercepts = np.empty((batch.size, len(models)))
        variances = np.empty_like(intercepts)
        for k, model in enumerate(models):
            mean, white = model.whiten(batch, nugget=nugget)
            cross = model.prior(batch, self.points, nugget=False)
            cross -= white @ self.whitened[k].T
            solve_lower(self.factors[k], cross)
            explained = np.einsum("ij,ij->i", white, white) + np.einsum("ij,ij->i", cross, cross)
            variances[:, k] = model.prior_variance(nugget=nugget) - explained
            intercepts[:, k] = mean - cross @ self.means[k]
            gains[:, k] = cross @ self.rotations[k]
        return gains, intercepts, variances


def anchor(models: tuple[Joint, ...], coefficients: FloatArray, points: Targets) -> Anchored:
    """Combine the sub-models' posteriors at the anchors, once for all cells."""
    count = points.size
    whitened, factors, inverses, means = [], [], [], []
    precision, pull = np.zeros((count, count)), np.zeros(count)
    for coefficient, model in zip(coefficients, models, strict=True):
        mean, white = model.whiten(points, nugget=False)
        covariance = model.prior(points, points, nugget=False) - white @ white.T
        factor, _ = cholesky(covariance.copy, lambda: f"{count} anchors")
        inverse = np.ascontiguousarray(solve_lower(factor, np.eye(count)).T)
        scaled = solve_lower(factor, mean.copy())
        precision += coefficient * (inverse.T @ inverse)
        pull += coefficient * (inverse.T @ scaled)
        whitened.append(white)
        factors.append(factor)
        inverses.append(inverse)
        means.append(scaled)
    base, _ = cholesky(precision.copy, lambda: f"the combined precision of {count} anchors")
    return Anchored(
        points=points,
        coefficients=coefficients,
        whitened=tuple(whitened),
        factors=tuple(factors),
        means=tuple(means),
        rotations=tuple(solve_lower(base, inverse) for inverse in inverses),
        shift=solve_lower(base, pull.copy()),
    )
