r"""Transductive inference: pairs of the primary with each secondary, combined at prediction.

If the secondaries are conditionally independent given the primary at its sites and at the query
points, then

.. math:: p(Y^* | Y_1, \dots, Y_t) \propto \prod_i p(Y^* | Y_1, Y_i) \,/\, p(Y^* | Y_1)^{t - 2}

so the likelihood is approximated by :math:`\sum_i l(Y_1, Y_i) - (t - 2)\, l(Y_1)`, at a cost linear
in the number of tasks. All sub-models share the primary's parameters (they are *coherent*): a pair
then never knows less than the single task, and the combined precision is positive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xcopula.jit import pairs as jit
from xcopula.methods import exact
from xcopula.methods.anchors import choose_anchors, usable_anchors
from xcopula.methods.combination import Combination, calibrate, combine
from xcopula.methods.parallel import in_parallel
from xcopula.methods.settings import Settings
from xcopula.linalg import cholesky, solve_lower
from xcopula.process.copula import Moments, Process, Sample

__all__ = ["Combined", "condition", "objective"]

FloatArray = npt.NDArray[np.float64]

# Below this a conditional variance is rounding error: the cell is known given the anchors.
_KNOWN = 1e-10
# A whole block as query set takes matrices of its size squared.
_LARGEST_BLOCK = 4096


def _submodels(
    process: Process, sample: Sample
) -> list[tuple[Process, Sample, npt.NDArray[np.int64]]]:
    """Return the single-task model and the pairs: process, sample and place in theta."""
    models = []
    for task in (None, *range(1, process.covariance.tasks)):
        sub, index = process.with_primary(task)
        models.append((sub, sample.select([0] if task is None else [0, task]), index))
    return models


def objective(
    process: Process, sample: Sample, theta: FloatArray, settings: Settings | None = None
) -> tuple[float, FloatArray]:
    """Return the negative composite log-likelihood and its gradient."""
    models = _submodels(process, sample)
    # Each pair counts once; the single task as often as makes the primary count once in all.
    counts = [2.0 - process.covariance.tasks] + [1.0] * (len(models) - 1)
    terms = [
        (count, index, (sub, part, theta[index]))
        for count, (sub, part, index) in zip(counts, models, strict=True)
        if count != 0.0
    ]
    results = in_parallel(exact.objective, [arguments for _, _, arguments in terms])
    value, gradient = 0.0, np.zeros(process.size)
    for (count, index, _), (nll, by_theta) in zip(terms, results, strict=True):
        if not np.isfinite(nll):
            return np.inf, np.zeros(process.size)
        value += count * nll
        gradient[index] += count * by_theta
    return value, gradient


@dataclass(frozen=True)
class Anchored:
    """The sub-models' posteriors of the primary at the anchors, and their combination.

    Of its *signal*: secondaries know of each other through the signal, not through the nugget of a
    value that nobody has observed.
    """

    points: FloatArray  # (d, m)
    whitened: tuple[FloatArray, ...]  # each (m, n_k): L^-1 k of the anchors
    factors: tuple[FloatArray, ...]  # each (m, m): of the posterior covariance
    means: tuple[FloatArray, ...]  # each (m,): of the anchors, divided by the factor
    rotations: tuple[FloatArray, ...]  # each (m, m): from these to unit base precision
    shift: FloatArray  # (m,): combined mean of the anchors in those coordinates


@dataclass(frozen=True)
class Combined:
    """Sub-models conditioned on the data, and the rule that combines them."""

    models: tuple[exact.Conditioned, ...]
    rule: Combination
    anchors: Anchored | None
    block: bool
    loo: Moments

    @property
    def jitter(self) -> float:
        """The largest jitter that a sub-model needed."""
        return max(m.jitter for m in self.models)

    def moments(self, targets: FloatArray, *, nugget: bool = True) -> Moments:
        """Return the combined latent mean and variance of the primary at targets (d, m)."""
        if self.block and self.rule.kind != "stacked":
            return self._block_moments(targets, nugget)
        if self.anchors is not None and self.rule.kind != "stacked":
            return self._anchored_moments(self.anchors, targets, nugget)
        return combine(self.rule, *self._each(targets, nugget))

    def information(self, targets: FloatArray, *, nugget: bool = True) -> FloatArray:
        """Return the precision (t - 1, m) that each secondary adds, weighted, at each target."""
        _, variance = self._each(targets, nugget)
        precision = 1.0 / np.maximum(variance, 1e-12)
        return np.asarray(self.rule.beta[:, None] * (precision[1:] - precision[0]))

    def describe(self) -> list[str]:
        """Return lines for the model's summary: how the sub-models are combined."""
        if len(self.models) == 2:
            return ["one secondary: the pair is the full model, nothing is approximated"]
        if len(self.models) < 2:
            return []
        beta = ", ".join(f"{b:.2f}" for b in self.rule.beta)
        scores = ", ".join(f"{k} {v:.4g}" for k, v in self.rule.crps.items())
        if self.rule.kind == "stacked":
            where = "point by point"
        elif self.block:
            where = "block by block"
        else:
            count = 0 if self.anchors is None else self.anchors.points.shape[1]
            where = f"given {count} anchors" if count else "point by point"
        return [
            f"sub-models combined by {self.rule.kind} weights (information {beta}), {where}",
            f"leave-one-out CRPS by rule: {scores}",
        ]

    def leave_one_out(self) -> Moments:
        """Return combined leave-one-out moments of the primary; NaN for the secondaries."""
        return self.loo

    def _each(self, targets: FloatArray, nugget: bool) -> tuple[FloatArray, FloatArray]:
        both = [m.moments(targets, nugget=nugget) for m in self.models]
        return np.stack([b.mean for b in both]), np.stack([b.variance for b in both])

    def _anchored_moments(self, anchored: Anchored, targets: FloatArray, nugget: bool) -> Moments:
        size, count = targets.shape[1], anchored.points.shape[1]
        widest = max(m.sample.size for m in self.models) + (len(self.models) + 1) * count
        step = max(1, exact.BATCH_BYTES // (8 * widest))
        mean, variance = np.empty(size), np.empty(size)
        for start in range(0, size, step):
            where = slice(start, min(start + step, size))
            batch = targets[:, where]
            gains, intercepts, variances = self._conditionals(anchored, batch, nugget)
            jit.combine_conditionals(
                gains,
                intercepts,
                variances,
                self.rule.coefficients,
                anchored.shift,
                mean[where],
                variance[where],
            )
        return Moments(mean, np.maximum(variance, 0.0))

    def _conditionals(
        self, anchored: Anchored, batch: FloatArray, nugget: bool
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return each sub-model's law of the batch given the anchors."""
        cells = batch.shape[1]
        gains = np.empty((cells, len(self.models), anchored.points.shape[1]))
        intercepts = np.empty((cells, len(self.models)))
        variances = np.empty_like(intercepts)
        for k, model in enumerate(self.models):
            mean, white = model.whiten(batch, nugget=nugget)
            cross = model.prior(batch, anchored.points, nugget=False)
            cross -= white @ anchored.whitened[k].T
            solve_lower(anchored.factors[k], cross)
            explained = np.einsum("ij,ij->i", white, white) + np.einsum("ij,ij->i", cross, cross)
            variances[:, k] = model.prior_variance(nugget=nugget) - explained
            intercepts[:, k] = mean - cross @ anchored.means[k]
            gains[:, k] = cross @ anchored.rotations[k]
        return gains, intercepts, np.maximum(variances, _KNOWN)

    def _block_moments(self, targets: FloatArray, nugget: bool) -> Moments:
        size = targets.shape[1]
        if size > _LARGEST_BLOCK:
            raise ValueError(
                f"anchors='block' takes the whole block of {size} cells as query set, which needs "
                f"matrices of that size; the limit is {_LARGEST_BLOCK}. Use smaller chunks, or "
                "anchors='auto', which does not depend on them."
            )
        precision, pull = np.zeros((size, size)), np.zeros(size)
        for coefficient, model in zip(self.rule.coefficients, self.models, strict=True):
            mean, white = model.whiten(targets, nugget=nugget)
            covariance = model.prior(targets, targets, nugget=nugget) - white @ white.T
            covariance.flat[:: size + 1] += _KNOWN
            inverse = np.linalg.inv(covariance)
            precision += coefficient * inverse
            pull += coefficient * (inverse @ mean)
        combined = np.linalg.inv(precision)
        return Moments(combined @ pull, np.maximum(np.diagonal(combined), 0.0))


def condition(
    process: Process, sample: Sample, theta: FloatArray, settings: Settings | None = None
) -> Combined:
    """Condition the sub-models on their data and learn how to combine them."""
    settings = settings or Settings()
    arguments = [(sub, part, theta[index]) for sub, part, index in _submodels(process, sample)]
    models = tuple(in_parallel(exact.condition, arguments))
    primary = sample.task(0)
    each = in_parallel(lambda m: m.leave_one_out(), [(m,) for m in models])
    mean = np.stack([e.mean[primary] for e in each])
    variance = np.stack([e.variance[primary] for e in each])
    law = process.laws(theta, sample)[0]
    rule = calibrate(settings.weights, law, sample.values[primary], mean, variance)
    combined = combine(rule, mean, variance)
    loo = Moments(np.full(sample.size, np.nan), np.full(sample.size, np.nan))
    loo.mean[primary], loo.variance[primary] = combined

    block = isinstance(settings.anchors, str) and settings.anchors == "block"
    points = None
    if isinstance(settings.anchors, np.ndarray):
        points = usable_anchors(settings.anchors, sample)
    elif settings.anchors == "auto":
        points = choose_anchors(sample)
    anchored = None
    if points is not None and points.shape[1] and len(models) > 2 and rule.kind != "stacked":
        anchored = _anchor(models, rule, points)
    return Combined(models, rule, anchored, block and len(models) > 2, loo)


def _anchor(
    models: tuple[exact.Conditioned, ...], rule: Combination, points: FloatArray
) -> Anchored:
    count = points.shape[1]
    whitened, factors, inverses, means = [], [], [], []
    precision, pull = np.zeros((count, count)), np.zeros(count)
    for coefficient, model in zip(rule.coefficients, models, strict=True):
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
        whitened=tuple(whitened),
        factors=tuple(factors),
        means=tuple(means),
        rotations=tuple(solve_lower(base, inverse) for inverse in inverses),
        shift=solve_lower(base, pull.copy()),
    )
