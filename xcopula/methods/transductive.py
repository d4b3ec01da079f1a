r"""Transductive inference: pairs of the primary with each secondary, combined at prediction.

If the secondaries are conditionally independent given the primary at its sites and at the query
points, then

.. math:: p(Y^* | Y_1, \dots, Y_t) \propto \prod_i p(Y^* | Y_1, Y_i) \,/\, p(Y^* | Y_1)^{t - 2}

so the likelihood is approximated by :math:`\sum_i l(Y_1, Y_i) - (t - 2)\, l(Y_1)`, at a cost linear
in the number of tasks. All sub-models share the primary's parameters (they are *coherent*): a pair
then never knows less than the single task, and the combined precision is positive.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from xcopula.arguments import check_flag
from xcopula.arrays import FloatArray, IntArray
from xcopula.methods.anchors import Anchored, anchor, choose_anchors, usable_anchors
from xcopula.methods.combination import WEIGHTS, Combination, calibrate, combine
from xcopula.methods.contract import Method
from xcopula.methods.nugget import unexplained, untold
from xcopula.methods.parallel import in_parallel
from xcopula.methods.part import Part, condition_each, given_tasks, total, total_information
from xcopula.process import NO_SITE, Moments, Process, Sample, Targets, keep_data, known_data
from xcopula.process.intervals import known_as_intervals
from xcopula.solvers import Gaussian, Informed, Joint, Solver

__all__ = ["Combined", "Transductive"]

Parts = tuple[Part, ...]

_ANCHORS = ("auto", "block")
# A whole block as query set takes matrices of its size squared.
_LARGEST_BLOCK = 4096
# How to combine sub-models is learnt from so many values of the primary at most.
_MOST_LEARNT = 5000
# Keeps the covariance of a block from being singular where a cell is known.
_KNOWN = 1e-10


@dataclass(frozen=True)
class Transductive(Method):
    """Fit the primary with each secondary apart, and combine the pairs at prediction.

    Parameters
    ----------
    weights : {"calibrated", "report"}
        How sub-models are combined. "report" adds up the information of each secondary as if they
        had nothing in common; "calibrated" weights of the best leave-one-out log score correct for
        what they have.
    anchors : "auto", Dataset, None or "block"
        Query points that every cell shares: sites of secondaries without the primary, given
        points, or none. "block" takes each chunk of the target as its own query set, as in the
        report, and so depends on the chunks.
    polish : bool
        Whether the fit ends with all parameters together.

    Examples
    --------
    >>> Transductive(weights="report", anchors=None)
    Transductive(weights='report', anchors=None, polish=True)
    """

    weights: str = "calibrated"
    anchors: Any = "auto"
    polish: bool = True

    name: ClassVar[str] = "transductive"
    has_information: ClassVar[bool] = True
    likelihood: ClassVar[str] = "composite log-likelihood"
    pairwise: ClassVar[bool] = True
    informs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.weights not in WEIGHTS:
            raise ValueError(f"Unknown weights {self.weights!r}. Choose one of {WEIGHTS}.")
        named = isinstance(self.anchors, str) and self.anchors in _ANCHORS
        if not (
            named
            or self.anchors is None
            or isinstance(self.anchors, Targets)
            or (hasattr(self.anchors, "coords") and hasattr(self.anchors, "data_vars"))
        ):
            raise ValueError(
                f"Unknown anchors {self.anchors!r}. Choose 'auto', 'block', None, or give a "
                "Dataset of points with the model's coordinates."
            )
        check_flag("polish", self.polish)

    def prepare(
        self,
        solver: Solver,
        process: Process,
        theta: FloatArray,
        sample: Sample,
        *,
        terms: int | None = None,
    ) -> Parts:
        """Prepare the primary alone, then each pair.

        The primary counts once in all. A sequential solver takes it as given in a pair; else each
        pair has the primary in it, and the primary alone is taken off.
        """
        given = given_tasks(solver)
        pairs = [(0, i) for i in range(1, sample.tasks)]
        counts = 1.0 if given or not pairs else 1.0 - len(pairs)
        most = terms and max(terms // sample.tasks, 1)
        make = functools.partial(Part.of, solver, process, theta, sample, terms=most)
        return (make((0,), count=counts), *(make(pair, given=given) for pair in pairs))

    def objective(
        self, process: Process, sample: Sample, structure: Parts, theta: FloatArray
    ) -> tuple[float, FloatArray]:
        """Return the negative composite log-likelihood and its gradient."""
        return total(structure, process, theta)

    def information(
        self, process: Process, sample: Sample, structure: Parts, theta: FloatArray
    ) -> Informed:
        """Return the composite objective with its information matrix."""
        return total_information(structure, process, theta)

    def mean_is_cheaper(self, solver: Solver | None, tasks: int, task: int) -> bool:
        """Tell what the solver says where one sub-model decides: a pair, or the primary alone."""
        return (task > 0 or tasks <= 2) and (solver is None or solver.mean_is_cheaper)

    def condition(
        self, process: Process, sample: Sample, structure: Parts, theta: FloatArray
    ) -> Combined:
        """Condition the sub-models on their data and learn how to combine them."""
        models = condition_each(structure, process, theta)
        nugget = process.covariance.matrices(theta[: process.covariance.size])[-1]
        # Numbers tell how to combine, or numbers within intervals where there are no others.
        inside = known_as_intervals(process.marginals, sample)[sample.task(0)]
        known = np.flatnonzero(~inside | inside.all())
        most = min(known.size, _MOST_LEARNT)
        rows = known[np.linspace(0, known.size, most, endpoint=False).astype(np.int64)]
        each = _leave_one_out(models) if sample.sizes[0] <= _MOST_LEARNT else None
        some = each and [Moments(e.mean[rows], e.variance[rows]) for e in each]
        learnt = some or in_parallel(_leave_out, [(m, rows) for m in models])
        left = unexplained(nugget, sample, sample.sites[rows], 0)
        rule = calibrate(
            self.weights,
            process.split(theta)[1][0].at(sample.covariates_of(0)[rows]),
            sample.values[rows],
            np.stack([e.mean for e in learnt]),
            np.stack([e.variance for e in learnt]),
            untold(left, float(nugget[0, 0])),
        )
        several = len(models) > 2
        return Combined(
            sample=sample,
            models=models,
            nugget=nugget,
            rule=rule,
            anchors=self._anchor(models, rule, sample) if several else None,
            block=several and self._by_block,
            each=each,
        )

    @property
    def _by_block(self) -> bool:
        return isinstance(self.anchors, str) and self.anchors == "block"

    @property
    def _automatic(self) -> bool:
        return isinstance(self.anchors, str) and self.anchors == "auto"

    def _anchor(
        self, models: tuple[Gaussian, ...], rule: Combination, sample: Sample
    ) -> Anchored | None:
        joint = _joint(models)
        if self.anchors is None or self._by_block or len(joint) < len(models):
            return None
        if isinstance(self.anchors, Targets):
            points = usable_anchors(self.anchors, sample)
        else:
            points = choose_anchors(sample)
        return anchor(joint, rule.coefficients, points) if points.size else None

    def submodels(self, sizes: Sequence[int]) -> list[list[int]]:
        """Return the primary alone and with each secondary; all are kept for prediction."""
        return [list(sizes[:1]), *([sizes[0], n] for n in sizes[1:])]

    @property
    def needs_joint(self) -> bool:
        """Whether anchors were asked for."""
        return not (self.anchors is None or self._automatic)


@dataclass(frozen=True)
class Combined:
    """Sub-models conditioned on the data, and the rule that combines them.

    The primary is combined from all of them; a secondary comes from its pair with the primary.
    """

    sample: Sample
    models: tuple[Gaussian, ...]
    nugget: FloatArray
    rule: Combination
    anchors: Anchored | None
    block: bool
    each: tuple[Moments, ...] | None  # the sub-models' left-out values, where all are known

    def moments(self, targets: Targets, *, task: int = 0, nugget: bool = True) -> Moments:
        """Return the latent mean and variance of a task at targets."""
        if task:
            return self.models[task].moments(targets, task=1, nugget=nugget)
        if not nugget:
            return self._combine(targets, np.zeros(targets.size), nugget=False)
        left = unexplained(self.nugget, self.sample, targets.sites, 0)
        left[self.sample.observed(0, targets.sites) >= 0] = 0.0  # nothing is left of a datum
        rest = untold(left, float(self.nugget[0, 0]))
        combined = _at_least(self._combine(targets, rest, nugget=True), left)
        return keep_data(combined, self.sample, self._known, targets, 0)

    def mean(self, targets: Targets, *, task: int = 0, nugget: bool = True) -> FloatArray:
        """Return the latent mean of a task at targets; weights need variances, a pair none."""
        if task:
            return self.models[task].mean(targets, task=1, nugget=nugget)
        if len(self.models) > 2:
            return self.moments(targets, nugget=nugget).mean
        return self.models[-1].mean(targets, nugget=nugget)

    def means(
        self, targets: Targets, scores: FloatArray, *, task: int = 0, nugget: bool = True
    ) -> FloatArray:
        """Return the means (k, m) of a task that other scores (k, n) would give."""
        each = [self._with_scores(row) for row in scores]
        return np.stack([c.mean(targets, task=task, nugget=nugget) for c in each])

    def leave_one_out(self) -> Moments:
        """Return the moments of each score given all others: secondaries by their pairs."""
        each = self.each or _leave_one_out(self.models)
        first = self.sample.task(0)
        left = unexplained(self.nugget, self.sample, self.sample.sites[first], 0)
        own = self._join([Moments(*(part[first] for part in e)) for e in each], left)
        # A secondary is left out of its own pair.
        pairs = [Moments(*(part[first.stop :] for part in e)) for e in each[1:]]
        return Moments(*map(np.concatenate, zip(own, *pairs, strict=True)))

    def left_out(self, rows: IntArray, without: Iterable[IntArray]) -> Moments:
        """Return the moments of some scores of one task, each given all but itself and others."""
        task = int(np.searchsorted(self.sample.offsets, rows[0], side="right")) - 1
        own, shift = self.sample.task(task), self._shifts
        if task:
            return self.models[task].left_out(rows + shift[task], self._of(task, without))
        each = [m.left_out(rows, self._of(k, without)) for k, m in enumerate(self.models)]
        # What stands at the site is left out with the rest of the neighbourhood.
        alone = np.array([others.size > 0 for others in without])
        sites = np.where(alone, NO_SITE, self.sample.sites[own][rows])
        return self._join(each, unexplained(self.nugget, self.sample, sites, 0))

    def _join(self, each: Sequence[Moments], left: FloatArray) -> Moments:
        """Combine left-out values of the primary; ``left`` (m,) is the unknown nugget."""
        mean, variance = np.stack([e.mean for e in each]), np.stack([e.variance for e in each])
        rest = untold(left, float(self.nugget[0, 0]))
        return _at_least(combine(self.rule, mean, variance, rest), left)

    @property
    def _shifts(self) -> IntArray:
        """What takes the number of an observation of each task to its number in its pair."""
        return np.where(
            np.arange(self.sample.tasks) > 0, self.sample.offsets[1] - self.sample.offsets[:-1], 0
        )

    def _of(self, pair: int, without: Iterable[IntArray]) -> Iterator[IntArray]:
        """Yield the numbers that observations of the primary and of one secondary have in a pair.

        The primary alone is pair 0.
        """
        first, own, shift = self.sample.task(0), self.sample.task(pair), self._shifts[pair]
        for others in without:
            yield np.concatenate(
                [
                    others[others < first.stop],
                    others[(others >= max(own.start, first.stop)) & (others < own.stop)] + shift,
                ]
            )

    def information(self, targets: Targets, *, nugget: bool = True) -> FloatArray:
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
        if self.block:
            where = "block by block"
        elif self.anchors is not None:
            where = f"given {self.anchors.points.size} anchors"
        else:
            where = "point by point"
        return [
            f"sub-models combined by {self.rule.kind} weights (information {beta}), {where}",
            f"leave-one-out CRPS by rule: {scores}",
        ]

    @functools.cached_property
    def _known(self) -> Moments:
        """What is known of all observations: of the primary by all, of a secondary by its pair."""
        scores = self._whole([m.scores for m in self.models])
        extra = [np.zeros(m.sample.size) if m.extra is None else m.extra for m in self.models]
        return known_data(scores, self._whole(extra), self.leave_one_out)

    def _whole(self, each: Sequence[FloatArray]) -> FloatArray:
        """Return numbers (n,) of all observations from those of the sub-models' own."""
        first = self.sample.task(0).stop
        return np.concatenate([each[0], *(e[first:] for e in each[1:])])

    def _with_scores(self, scores: FloatArray) -> Combined:
        """Return the same combination of other scores: weights stay as they were learnt."""
        tasks = [(0,), *((0, i) for i in range(1, len(self.models)))]
        models = tuple(
            m.with_scores(np.concatenate([scores[self.sample.task(i)] for i in own]))
            for m, own in zip(self.models, tasks, strict=True)
        )
        anchors = self.anchors and anchor(
            _joint(models), self.rule.coefficients, self.anchors.points
        )
        return replace(self, models=models, anchors=anchors)

    def _combine(self, targets: Targets, rest: FloatArray, *, nugget: bool) -> Moments:
        if self.block:
            return self._block_moments(targets, rest, nugget)
        if self.anchors is not None:
            return self.anchors.moments(_joint(self.models), targets, rest, nugget=nugget)
        return combine(self.rule, *self._each(targets, nugget), rest)

    def _each(self, targets: Targets, nugget: bool) -> tuple[FloatArray, FloatArray]:
        both = [m.moments(targets, nugget=nugget) for m in self.models]
        return np.stack([b.mean for b in both]), np.stack([b.variance for b in both])

    def _block_moments(self, targets: Targets, rest: FloatArray, nugget: bool) -> Moments:
        size = targets.size
        if size > _LARGEST_BLOCK:
            raise ValueError(
                f"anchors='block' takes the whole block of {size} cells as query set, which needs "
                f"matrices of that size; the limit is {_LARGEST_BLOCK}. Use smaller chunks, or "
                "anchors='auto', which does not depend on them."
            )
        # Cells at one site share its nugget, and so what of it nobody can tell.
        same = (targets.sites[:, None] == targets.sites) & (targets.sites >= 0)
        np.fill_diagonal(same, True)
        apart = np.where(same, rest, 0.0) - _KNOWN * np.eye(size)
        precision, pull = np.zeros((size, size)), np.zeros(size)
        for coefficient, model in zip(self.rule.coefficients, _joint(self.models), strict=True):
            mean, white = model.whiten(targets, nugget=nugget)
            covariance = model.prior(targets, targets, nugget=nugget)
            # A cell that is no site of the data has a nugget of its own.
            np.fill_diagonal(covariance, model.prior_variance(nugget=nugget))
            covariance -= white @ white.T + apart
            inverse = np.linalg.inv(covariance)
            precision += coefficient * inverse
            pull += coefficient * (inverse @ mean)
        combined = np.linalg.inv(precision)
        return Moments(combined @ pull, np.maximum(np.diagonal(combined), 0.0) + rest)


def _leave_one_out(models: tuple[Gaussian, ...]) -> tuple[Moments, ...]:
    return tuple(in_parallel(lambda m: m.leave_one_out(), [(m,) for m in models]))


def _leave_out(model: Gaussian, rows: IntArray) -> Moments:
    return model.left_out(rows, [np.empty(0, np.int64)] * rows.size)


def _joint(models: tuple[Gaussian, ...]) -> tuple[Joint, ...]:
    """Return the sub-models that know the joint law of several places: all, or none."""
    return tuple(m for m in models if isinstance(m, Joint))


def _at_least(moments: Moments, variance: FloatArray) -> Moments:
    """Return moments with at least the variance (m,) that no data can take away."""
    return Moments(moments.mean, np.maximum(moments.variance, variance))
