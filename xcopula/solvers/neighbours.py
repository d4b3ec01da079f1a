r"""The neighbour solver: each observation given a few before it.

.. math:: p(w) \approx \prod_i p(w_i | w_{N(i)})

known as the Vecchia approximation. With m neighbours an evaluation takes n m^3 operations and n m
numbers: a million values are some seconds. With all that come before as neighbours it is exact.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from xcopula.arguments import check_flag, check_integer
from xcopula.arrays import FloatArray, IntArray
from xcopula.errors import NotPositiveDefiniteError
from xcopula.jit.neighbours import Terms, tile_moments
from xcopula.kernels.assembly import floats, ints, ready, scaled_inputs
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
from xcopula.process.intervals import sites_alone
from xcopula.solvers.batches import batches, batches_of_lists
from xcopula.solvers.contract import Informed
from xcopula.solvers.cost import Cost
from xcopula.solvers.graph import Connected, Graph
from xcopula.solvers.likelihood import evaluate
from xcopula.solvers.local_ep import fill_in
from xcopula.solvers.near import Near
from xcopula.solvers.search import Search, search_of
from xcopula.solvers.strata import connect_some
from xcopula.solvers.terms import (
    Evaluated,
    errors_of,
    evaluate_terms,
    informed_terms,
)
from xcopula.solvers.threads import thread_count

__all__ = ["Local", "Neighbours"]

# Neighbours of a term: of one task, of several, and where inputs have several groups, of which no
# single distance tells who matters.
_ONE_TASK, _SEVERAL_TASKS, _SEVERAL_GROUPS = 20, 35, 40
# Neighbours of a prediction, of one task and of several: those of a tile serve all of its cells.
_TILE, _CELL = (100, 150), (60, 90)
# Microseconds of a term, by its neighbours, their pairs, and the correlations of a pair
# (benchmarks/bench_neighbours.py); what LAPACK would do in one.
_BY_NEIGHBOUR, _BY_SQUARE, _BY_CORRELATION = 0.1, 0.0055, 0.003
_FLOPS = 2e4
# Evaluations of a fit: of all terms, with what searches take, and of so many that stand for all.
_ON_ALL, _ON_SOME, _SOME = 15, 100, 10_000


@dataclass(frozen=True)
class Neighbours:
    """Evaluate each observation given its neighbours: for samples of any size.

    Parameters
    ----------
    neighbours : int, optional
        How many others an observation is given in the likelihood. By default 20 for one variable,
        35 for several, 40 where coordinates have several groups, such as space and time.
    predict : int, optional
        How many observations a prediction is made from. By default 100 for a tile and 60 for a
        cell, of several variables 150 and 90.
    tiles : bool
        Whether cells that are near each other share their neighbours. Tiles are fixed by the data,
        so a prediction is a function of the place, whatever the grid and its chunks are.

    Notes
    -----
    Where neighbours change from one tile or cell to the next, a prediction jumps a little: seams
    may show in wide gaps. More observations (``predict``) make them fainter.

    The likelihood of intervals approximates each term by itself, from the values before it. A
    prediction approximates them from the nearest values on all sides. The two agree where all
    values are neighbours, and nearly so where there are some tens.

    Examples
    --------
    >>> Neighbours(neighbours=25)
    Neighbours(neighbours=25, predict=None, tiles=True)
    """

    neighbours: int | None = None
    predict: int | None = None
    tiles: bool = True

    name: ClassVar[str] = "neighbours"
    # A cell or a tile needs its factor for either: the mean alone takes nine tenths of both.
    mean_is_cheaper: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for option in ("neighbours", "predict"):
            given = getattr(self, option)
            if given is not None:
                object.__setattr__(self, option, check_integer(option, given, least=1))
        object.__setattr__(self, "tiles", check_flag("tiles", self.tiles))

    def prepare(
        self, process: Process, theta: FloatArray, sample: Sample, given: int = 0
    ) -> Connected:
        """Choose the neighbours of every observation but those of tasks that are given."""
        return Connected(process, theta, sample, self.most(process, sample), given)

    def adapts(self, process: Process) -> bool:
        """Tell whether neighbours depend on lengths and metrics: not where distance decides."""
        covariance = process.covariance
        one = covariance.tasks == 1 and len(covariance.groups) == 1
        return not one or covariance.groups[0].freedom > 0

    def subset(
        self, process: Process, theta: FloatArray, sample: Sample, terms: int, given: int = 0
    ) -> tuple[Sample, Graph]:
        """Choose terms that stand for all, and return what of the sample they need."""
        near, most = Near.of(process, theta, sample), self.most(process, sample)
        return connect_some(near, most, terms, given=given, workers=thread_count())

    def objective(
        self, process: Process, sample: Sample, structure: Graph | Connected, theta: FloatArray
    ) -> tuple[float, FloatArray]:
        """Return the negative log-likelihood and its gradient.

        Infinite, with a zero gradient, where a value has no density under its law.

        Raises
        ------
        NotPositiveDefiniteError
            If the covariance of some neighbours cannot be factorised.
        """
        graph, weights = structure.graph, np.zeros(sample.size)
        weights[graph.rows] = graph.weights
        evidence = Evidence.of(process, sample, theta, weights)
        if not evidence.possible:
            return evidence.impossible()
        found = evaluate(evidence, graph, gradient=True)
        value = -float(graph.weights @ found.each)
        return value, evidence.gradient(found.alpha, found.by, found.ends)

    def information(
        self, process: Process, sample: Sample, structure: Graph | Connected, theta: FloatArray
    ) -> Informed:
        """Return the objective with its expected information, term by term.

        Intervals count as what their marginal alone says of them.
        """
        graph, weights = structure.graph, np.zeros(sample.size)
        weights[graph.rows] = graph.weights
        evidence = Evidence.of(process, sample, theta, weights)
        if not evidence.possible:
            return Informed(*evidence.impossible(), None)
        known, size = evidence, process.covariance.size
        if evidence.intervals is not None:
            known = evidence.with_stand_ins(sites_alone(evidence.intervals))
        terms = informed_terms(
            process, sample, graph, theta, known.scores, known.moves(), known.extra
        )
        if evidence.intervals is None:
            densities = evidence.log_densities + 0.5 * evidence.scores**2
            u, log_variance = terms.each.T
            each = densities[graph.rows] - 0.5 * (u * u + log_variance)
            gradient = np.concatenate([terms.gradient, evidence.by_marginals(terms.alpha)])
            alpha, ends = terms.alpha, None
        else:
            likelihood = evaluate(evidence, graph, gradient=True)
            each, alpha, ends = likelihood.each, likelihood.alpha, likelihood.ends
            gradient = evidence.gradient(alpha, likelihood.by, ends)
        matrix = terms.information
        matrix[size:, size:] += evidence.marginal_curvature(alpha, ends)
        return Informed(-float(graph.weights @ each), gradient, matrix)

    def condition(
        self, process: Process, sample: Sample, structure: Graph | Connected, theta: FloatArray
    ) -> Local:
        """Condition the process at theta on a sample."""
        evidence = Evidence.of(process, sample, theta)
        if isinstance(structure, Connected):
            evidence = fill_in(evidence, structure)
        return Local(self, process, theta, sample, evidence.scores, structure, evidence.extra)

    def cost(self, sizes: Sequence[int], correlations: int = 1) -> Cost:
        """Count n small matrices; most evaluations of a fit are of some terms only."""
        n = float(sum(sizes))
        usual = _ONE_TASK if len(sizes) == 1 else _SEVERAL_TASKS
        asked = self.neighbours or (usual if correlations == 1 else _SEVERAL_GROUPS)
        m = min(asked, max(n - 1.0, 0.0))  # there are no more
        each = _BY_NEIGHBOUR * m + (_BY_SQUARE + _BY_CORRELATION * correlations) * m * m
        evaluations = _ON_ALL + _ON_SOME * min(1.0, _SOME / max(n, 1.0))
        return Cost(n * (12.0 * m + 500.0), _FLOPS * each * n, round(evaluations))

    def most(self, process: Process, sample: Sample) -> int:
        """Return how many neighbours an observation of a sample is given."""
        several = len(process.covariance.groups) > 1
        one = _ONE_TASK if process.covariance.tasks == 1 else _SEVERAL_TASKS
        most = self.neighbours or (_SEVERAL_GROUPS if several else one)
        return min(most, sample.size - 1)

    def near(self, tasks: int) -> int:
        """Return how many observations a prediction is made from."""
        return self.predict or (_TILE if self.tiles else _CELL)[tasks > 1]


# What does not depend on scores.
_SHARED = ("_search", "_whole")


def _each(size: int) -> IntArray:
    """Return where tiles of one cell each begin."""
    return np.arange(size + 1, dtype=np.int64)


@dataclass(frozen=True)
class Local:
    """A process conditioned on a sample, by neighbours."""

    solver: Neighbours
    process: Process
    theta: FloatArray
    sample: Sample
    scores: FloatArray
    structure: Graph | Connected
    extra: FloatArray | None = None  # (n,): variances of the stand-ins for intervals

    @functools.cached_property
    def _search(self) -> Search:
        return search_of(self.process, self.theta, self.sample, self._near)

    @property
    def _near(self) -> int:
        return self.solver.near(self.sample.tasks)

    def moments(self, targets: Targets, *, task: int = 0, nugget: bool = True) -> Moments:
        """Return the latent mean and variance of a task at targets."""
        variance = np.empty(targets.size)
        mean = self._krige(targets, self.scores[None], task, nugget, variance)
        moments = Moments(mean[0], variance)
        if not nugget:
            return moments
        return keep_data(moments, self.sample, self._known, targets, task)

    def mean(self, targets: Targets, *, task: int = 0, nugget: bool = True) -> FloatArray:
        """Return the latent mean of a task at targets, without the variance."""
        mean = self._krige(targets, self.scores[None], task, nugget, np.empty(0))[0]
        return keep_scores(mean, self.sample, self._known, targets, task) if nugget else mean

    def means(
        self, targets: Targets, scores: FloatArray, *, task: int = 0, nugget: bool = True
    ) -> FloatArray:
        """Return the means (k, m) of a task that other scores (k, n) would give."""
        return self._krige(targets, scores, task, nugget, np.empty(0))

    def means_of(self, scores: FloatArray) -> Callable[[Targets, int, bool], FloatArray]:
        """Return :meth:`means` of scores (k, n) as a function of targets, task and nugget."""
        return lambda targets, task, nugget: self.means(targets, scores, task=task, nugget=nugget)

    def with_scores(self, scores: FloatArray) -> Local:
        """Return the same process, conditioned on other scores (n,) at the same sites."""
        other = replace(self, scores=scores)
        kept = {name: self.__dict__[name] for name in _SHARED if name in self.__dict__}
        other.__dict__.update(kept)
        return other

    def prior_variance(self, *, task: int = 0, nugget: bool = True) -> float:
        """Return the variance of a task before any data."""
        state = self._search.near.state
        own = float(state.nugget[task, task]) if nugget else 0.0
        return float(state.amplitudes[:, task, task].sum()) + own

    @property
    def jitter(self) -> float:
        """Zero: a small matrix that needs a jitter gets its own."""
        return 0.0

    def left_out(self, rows: IntArray, without: Iterable[IntArray]) -> Moments:
        """Return the moments of some scores, each given all but itself and some others."""
        sample, search = self.sample, self._search
        mean, variance = np.empty((1, rows.size)), np.empty(rows.size)
        data = self._data(self.scores[None])
        every = (np.append(others, row) for row, others in zip(rows, without, strict=True))
        for part, left in batches_of_lists(every, 4, 4 * search.most):
            tasks = np.searchsorted(sample.offsets, rows[part], side="right") - 1
            for task in np.unique(tasks).tolist():
                mine = np.flatnonzero(tasks == task)
                some = part.start + mine
                index, sites = rows[some], sample.sites[rows[some]]
                points = np.ascontiguousarray(search.near.inputs[:, index])
                which = search.cells(points, sites, task, without=[left[k] for k in mine.tolist()])
                own = np.empty(some.size)
                mean[:, some] = self._tiles(
                    points, sites, _each(some.size), task, True, which, data, own
                )
                variance[some] = own
        return Moments(mean[0], variance)

    def solve(self, rows: FloatArray) -> FloatArray:
        """Return rows (k, n) times the inverse of the covariance of the data."""
        graph = self._whole
        return np.stack([self._pass(graph, row).alpha for row in rows])

    def _pass(self, graph: Graph, scores: FloatArray) -> Evaluated:
        return evaluate_terms(
            self.process,
            self.sample,
            graph,
            self.theta,
            scores,
            gradient=False,
            extra=self.extra,
        )

    def leave_one_out(self) -> Moments:
        """Return the moments of each score given all others, under the product of terms.

        Where some are intervals each is predicted from what is around it: the product of terms
        then is no good guide to what is left out.
        """
        if self.extra is not None:
            every = np.arange(self.sample.size)
            return self.left_out(every, [np.empty(0, np.int64)] * every.size)
        passed = self._pass(self._whole, self.scores)
        variance = 1.0 / passed.precision
        return Moments(self.scores - passed.alpha * variance, variance)

    @functools.cached_property
    def _known(self) -> Moments:
        return known_data(self.scores, self.extra, self.leave_one_out)

    @functools.cached_property
    def _whole(self) -> Graph:
        """The graph of all observations, also where the likelihood has those of some tasks only."""
        if isinstance(self.structure, Connected) and not self.structure.given:
            return self.structure.graph
        return self.solver.prepare(self.process, self.theta, self.sample).graph

    def describe(self) -> list[str]:
        """Return lines for the model's summary."""
        most = self.solver.most(self.process, self.sample)
        where = "tile" if self.solver.tiles else "cell"
        return [f"each value given {most} neighbours; each {where} predicted from {self._near}"]

    def _krige(
        self,
        targets: Targets,
        scores: FloatArray,
        task: int,
        nugget: bool,
        variance: FloatArray,
    ) -> FloatArray:
        """Return means (k, m), and fill the variance if it is not empty."""
        search, data = self._search, self._data(scores)
        state, count = search.near.state, len(scores)
        mean = np.empty((count, targets.size))
        for part in batches(targets.size, 8 * search.most):
            batch = targets.take(part)
            points = scaled_inputs(batch.inputs, state)
            sites = ints(batch.sites)
            if self.solver.tiles:
                order, starts, which = search.tiles(points, sites, task)
                points, sites = np.ascontiguousarray(points[:, order]), sites[order]
            else:
                order, starts = np.arange(batch.size), _each(batch.size)
                which = search.cells(points, sites, task)
            own = np.empty(batch.size if variance.size else 0)
            found = self._tiles(points, sites, starts, task, nugget, which, data, own)
            mean[:, part.start + order] = found
            if variance.size:
                variance[part.start + order] = own
        return mean

    def _tiles(
        self,
        points: FloatArray,
        sites: IntArray,
        starts: IntArray,
        task: int,
        nugget: bool,
        which: Terms,
        data: tuple[Any, ...],
        variance: FloatArray,
    ) -> FloatArray:
        """Return means (k, r) of scaled points, tile by tile, and fill the variance."""
        mean = np.empty((len(data[3]), points.shape[1]))
        failed = tile_moments(points, sites, starts, task, nugget, which, *data, mean, variance)
        if failed >= 0:
            raise NotPositiveDefiniteError(
                f"The correlation matrix of {self._near} neighbours of a cell is not positive "
                f"definite at {self.process.describe(self.theta)}. Drop or average sites that "
                "almost coincide. Kernels smoother than 'matern12' fail sooner."
            )
        return mean

    def _data(self, scores: FloatArray) -> tuple[Any, ...]:
        """Return the sample and scores (k, n) as the compiled loops take them."""
        near = self._search.near
        return (
            near.inputs,
            ints(near.sample.sites),
            ints(near.sample.offsets),
            floats(scores),
            errors_of(self.sample, self.extra),
            ready(near.state),
        )

    def __getstate__(self) -> dict[str, Any]:
        # Trees are quickly built again: they do not travel.
        return {f.name: getattr(self, f.name) for f in fields(self)}
