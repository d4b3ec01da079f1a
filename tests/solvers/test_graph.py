"""The order of observations, their neighbours, and terms that stand for all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import reference

from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import LogNormal, Normal
from xcopula.process import Process, Sample
from xcopula.solvers import Exact, Neighbours
from xcopula.solvers import graph as module
from xcopula.solvers.graph import connect, order
from xcopula.solvers.near import WIDER, Near
from xcopula.solvers.strata import connect_some
from xcopula.solvers.terms import evaluate_terms

RNG = np.random.default_rng


def near_of(name="single", sizes=(80, 60, 50), seed=0):
    """Return a sample in the metric of its covariance, and what made it."""
    process, sample, theta, _ = reference.example(name, sizes=sizes, seed=seed)
    return Near.of(process, theta, sample), process, theta


def smooth(size=3000, length=0.2, seed=0):
    """Return a process of one task in the plane, a sample that is smooth, and theta.

    The field is a sum of waves whose covariance is that of the process.
    """
    rng = RNG(seed)
    process = Process(Covariance((KERNELS["se"],), (InputGroup(2),)), (Normal(0.0, 1.0),))
    theta = process.join(np.array([np.log(length), np.log(4.0)]))
    x = rng.uniform(size=(size, 2))
    frequency, phase = rng.normal(size=(2, 400)) / length, rng.uniform(0.0, 2.0 * np.pi, 400)
    signal = np.cos(x @ frequency + phase).sum(axis=1) * np.sqrt(2.0 / 400)
    values = np.sqrt(0.8) * signal + np.sqrt(0.2) * rng.normal(size=size)
    return process, Sample.of([x], [values]), theta


def spread(points):
    """Return the least distance between any two points."""
    away = np.linalg.norm(points[:, None] - points, axis=2)
    np.fill_diagonal(away, np.inf)
    return away.min()


class TestOrder:
    @pytest.mark.parametrize("name", ["single", "groups", "mixed"])
    def test_a_permutation_with_tasks_in_blocks(self, name):
        """Each task keeps its own places, and each place is taken once."""
        near, *_ = near_of(name)
        rank = order(near)
        for i in range(near.sample.tasks):
            own = near.sample.task(i)
            assert sorted(rank[own].tolist()) == list(range(own.start, own.stop))

    @pytest.mark.parametrize("d", [1, 2, 3])
    def test_from_coarse_to_fine(self, d):
        """The first points are farther apart than random ones, and leave no region out."""
        rng = RNG(d)
        points = rng.uniform(size=(600, d))
        by_rank = module._coarse_to_fine(points)
        assert sorted(by_rank.tolist()) == list(range(600))
        for first in (8, 20, 60, 150):
            chosen = points[by_rank[:first]]
            random = [points[rng.permutation(600)[:first]] for _ in range(20)]
            assert spread(chosen) > max(map(spread, random))
            cover, covers = (
                [np.linalg.norm(points[:, None] - c, axis=2).min(axis=1).max() for c in some]
                for some in ([chosen], random)
            )
            assert cover[0] < np.median(covers)

    def test_the_order_of_the_data_is_immaterial(self):
        """The same points come first, however they are numbered."""
        points = RNG(0).uniform(size=(200, 2))
        shuffle = RNG(1).permutation(200)
        first = points[module._coarse_to_fine(points)]
        np.testing.assert_array_equal(
            points[shuffle][module._coarse_to_fine(points[shuffle])], first
        )

    @pytest.mark.parametrize(
        "points",
        [
            np.zeros((7, 2)),
            np.repeat(RNG(0).uniform(size=(5, 2)), 40, axis=0),
            np.column_stack([np.arange(50.0), np.zeros(50)]),
            np.ones((1, 3)),
            np.vstack([RNG(1).uniform(size=(30, 2)), RNG(2).uniform(size=(30, 2)) * 1e-9]),
        ],
        ids=["one place", "five places", "a line", "one point", "a dense cluster"],
    )
    def test_hard_points(self, points):
        """Points that coincide have an order too."""
        found = module._coarse_to_fine(points)
        assert sorted(found.tolist()) == list(range(len(points)))

    def test_of_places_that_repeat_each_comes_once_before_any_comes_twice(self):
        """A long series at few stations begins with every station."""
        places = RNG(0).uniform(size=(5, 2))
        found = module._coarse_to_fine(np.repeat(places, 40, axis=0))
        assert sorted((found[:5] // 40).tolist()) == [0, 1, 2, 3, 4]


class TestNeighbours:
    @pytest.mark.parametrize("name", ["single", "mixed", "groups", "lmc"])
    @pytest.mark.parametrize("most", [1, 6, 25])
    def test_precede_and_are_as_many_as_there_are(self, name, most):
        """They stand before in the order, are distinct, in increasing order, and of right count."""
        near, *_ = near_of(name)
        graph, rank = connect(near, most, given=0, workers=1), order(near)
        n = near.sample.size
        assert sorted(graph.rows.tolist()) == list(range(n))
        np.testing.assert_array_equal(graph.weights, np.ones(n))
        for row, count, own in zip(graph.rows, graph.counts, graph.neighbours, strict=True):
            some = own[:count]
            assert count == min(most, rank[row])
            assert (np.diff(some) > 0).all()
            assert (rank[some] < rank[row]).all()

    @pytest.mark.parametrize("size", [40, 300, 1200])
    @pytest.mark.parametrize("most", [1, 8, 30])
    def test_the_nearest_of_one_task(self, size, most):
        """In one group they are the nearest that precede, by brute force."""
        near, *_ = near_of("single", (size,))
        graph, rank = connect(near, most, given=0, workers=2), order(near)
        for k in range(0, size, max(1, size // 100)):
            before = np.flatnonzero(rank < rank[graph.rows[k]])
            away = np.linalg.norm(near.places[before] - near.places[graph.rows[k]], axis=1)
            nearest = before[np.argsort(away)[:most]]
            assert graph.neighbours[k, : graph.counts[k]].tolist() == sorted(nearest.tolist())

    @pytest.mark.parametrize("name", ["mixed", "shared"])
    def test_the_most_correlated_of_several_tasks(self, name):
        """Where all are candidates: a quota of each task, then the largest covariances."""
        near, process, theta = near_of(name, (30, 25, 20))
        most = 12
        graph, rank = connect(near, most, given=0, workers=1), order(near)
        sample = near.sample
        tasks = np.repeat(np.arange(sample.tasks), sample.sizes)
        factor = np.tril(reference.condition(Exact(), process, sample, theta).factor)
        dense = np.abs(factor @ factor.T)
        least, wide = max(1, most // (3 * sample.tasks)), int(np.ceil(WIDER * most))
        for row, count, own in zip(graph.rows, graph.counts, graph.neighbours, strict=True):
            before = np.flatnonzero(rank < rank[row])
            candidates = np.concatenate(
                [
                    some[np.argsort(np.linalg.norm(near.places[some] - near.places[row], axis=1))]
                    for t in range(sample.tasks)
                    if (some := before[tasks[before] == t]).size
                ]
                or [before]
            )
            if any((tasks[before] == t).sum() > wide for t in range(sample.tasks)):
                continue  # not all of them are candidates
            ranked = candidates[np.argsort(-dense[row, candidates], kind="stable")]
            kept: list[int] = []
            for j in ranked:
                if (tasks[kept] == tasks[j]).sum() < least and len(kept) < most:
                    kept.append(int(j))
            kept += [int(j) for j in ranked if j not in kept][: most - len(kept)]
            assert own[:count].tolist() == sorted(kept)

    def test_the_quota_of_each_task(self):
        """Every task that comes before has its share, however little it is correlated."""
        near, process, theta = near_of("mixed", (90, 80, 70))
        theta = theta.copy()
        process.covariance.part(theta, "correlation")[:] = 0.01
        near = Near.of(process, theta, near.sample)
        graph = connect(near, 18, given=0, workers=1)
        sample = near.sample
        last = np.flatnonzero(graph.rows >= sample.offsets[2])
        for k in last[last > 0]:
            own = np.searchsorted(sample.offsets, graph.neighbours[k], side="right") - 1
            counts = np.bincount(own[: graph.counts[k]], minlength=3)
            assert (counts[:2] >= 2).all()

    def test_tasks_that_are_given_have_no_terms(self):
        """Their values are neighbours all the same."""
        near, *_ = near_of("mixed")
        first = int(near.sample.offsets[1])
        graph, whole = (connect(near, 10, given=g, workers=1) for g in (1, 0))
        assert sorted(graph.rows.tolist()) == list(range(first, near.sample.size))
        assert (graph.neighbours[np.arange(10) < graph.counts[:, None]] < first).any()
        by_row = {r: k for k, r in enumerate(whole.rows)}
        same = [by_row[r] for r in graph.rows]
        np.testing.assert_array_equal(graph.neighbours, whole.neighbours[same])

    def test_length_scales_decide_in_several_groups(self):
        """Neighbours along a group of long range reach farther in it."""
        rng = RNG(0)
        covariance = Covariance((KERNELS["matern32"],), (InputGroup(1), InputGroup(1)))
        process = Process(covariance, (Normal(0.0, 1.0),))
        sample = Sample.of([rng.uniform(size=(400, 2))], [rng.normal(size=400)])
        for long in (0, 1):
            own = np.zeros(covariance.size)
            covariance.part(own, "length")[0, :, 0] = np.log([0.02, 0.02])
            covariance.part(own, "length")[0, long, 0] = np.log(0.5)
            theta = process.join(own)
            graph = Neighbours(10).prepare(process, theta, sample).graph
            full = graph.counts == 10
            away = np.abs(
                sample.inputs[:, graph.neighbours[full]] - sample.inputs[:, graph.rows[full], None]
            ).mean(axis=(1, 2))
            assert away[long] > 4.0 * away[1 - long]


@pytest.fixture(scope="module")
def effects():
    """Return 67 places x 8 dates: a structure of places, one of dates, and a nugget of 0.7."""
    rng = RNG(0)
    covariance = Covariance((KERNELS["matern32"],), (InputGroup(2), InputGroup(1)), structures=2)
    process = Process(covariance, (Normal(0.0, 1.0),))
    own = np.zeros(covariance.size)
    covariance.part(own, "length")[:, :, 0] = np.log([[0.012, 1.1], [2.7, 0.06]])
    covariance.part(own, "logit")[:] = np.log([[0.17 / 0.7], [0.13 / 0.7]])
    theta = process.join(own)
    place, date = rng.uniform(size=(67, 2)), np.linspace(0.0, 1.0, 8)
    points = np.column_stack([np.repeat(place, 8, axis=0), np.tile(date, 67)])
    sample = Sample.of([points], [rng.normal(size=536)])
    near = Near.of(process, theta, sample)
    np.testing.assert_allclose(near.state.nugget, 0.7)
    factor = reference.condition(Exact(), process, sample, theta).factor
    return process, theta, near, float(np.log(np.diagonal(factor)).sum())


class TestPlacesAndDates:
    """What is the same at a place at all dates, and at a date everywhere, under much noise.

    What is known of an effect is an average over many values, of which a few neighbours hold a
    part. So the divergence from the exact density falls slowly with their number.
    """

    def divergence(self, effects, near, most):
        """Return the expected log-likelihood that neighbours lose, in nats."""
        process, theta, _, exact = effects
        graph = connect(near, most, given=0, workers=1)
        none = np.zeros(near.sample.size)
        each = evaluate_terms(process, near.sample, graph, theta, none, gradient=False).each
        return 0.5 * each[:, 1].sum() - exact

    def test_neighbours_are_of_both_kinds(self, effects):
        """A value late in the order has neighbours at its place, and neighbours at its date."""
        _, _, near, _ = effects
        graph, rank = connect(near, 40, given=0, workers=1), order(near)
        points = near.sample.inputs
        late = np.flatnonzero(rank[graph.rows] > 400)
        for row, own in zip(graph.rows[late], graph.neighbours[late], strict=True):
            same_place = (points[:2, own] == points[:2, row, None]).all(axis=0)
            before = (points[:2] == points[:2, row, None]).all(axis=0) & (rank < rank[row])
            assert same_place.sum() == before.sum()
            assert (points[2, own] == points[2, row]).sum() > 15

    @pytest.mark.parametrize(("most", "nats"), [(20, 7.0), (40, 2.2), (80, 0.8), (160, 0.2)])
    def test_what_is_lost(self, effects, most, nats):
        """As measured: some nats at the default of 40, less than half of what one metric loses."""
        _, _, near, _ = effects
        found = self.divergence(effects, near, most)
        assert 0.5 * nats < found < nats
        one = replace(near, metrics=near.lengths[None])
        assert found < 0.6 * self.divergence(effects, one, most)


class TestSubset:
    """Some terms that stand for all."""

    def setting(self, sizes=(2000, 1500), terms=700, given=0, seed=0):
        """Two tasks, and a part of their terms."""
        process, sample, theta, _ = reference.example("lmc", sizes=sizes, seed=seed)
        near = Near.of(process, theta, sample)
        some, graph = connect_some(near, 10, terms, given=given, workers=1)
        return process, sample, theta, near, some, graph

    @pytest.mark.parametrize("given", [0, 1])
    def test_terms_stand_for_all(self, given):
        """Weights add up to the number of observations of each task; terms are about as many."""
        _, sample, _, _, some, graph = self.setting(given=given)
        for i in range(2):
            own = some.task(i)
            mine = (graph.rows >= own.start) & (graph.rows < own.stop)
            expected = sample.sizes[i] if i >= given else 0.0
            assert graph.weights[mine].sum() == pytest.approx(expected, rel=1e-9, abs=0.0)
        assert 0.6 * 700 < graph.rows.size < 1.2 * 700
        assert len(np.unique(graph.rows)) == graph.rows.size

    def test_extremes_of_each_task_count_once(self):
        """The law of a task must admit them."""
        _, sample, _, _, some, graph = self.setting()
        for i in range(2):
            values = sample.values[sample.task(i)]
            own = some.values[some.task(i)]
            for extreme in (values.min(), values.max()):
                row = some.task(i).start + np.flatnonzero(own == extreme)
                (where,) = np.flatnonzero(np.isin(graph.rows, row))
                assert graph.weights[where] == 1.0

    def test_early_ones_count_once_and_others_more(self):
        """The first of the order are all there, the others stand for more than themselves."""
        _, _, _, near, some, graph = self.setting()
        once = graph.weights == 1.0
        assert (graph.weights[~once] > 1.0).all()
        rank = order(near)
        index = self.index(near.sample, some)
        for i, terms in enumerate((400, 300)):
            task = near.sample.task(i)
            early = np.flatnonzero(rank < task.start + terms // 10)
            early = early[early >= task.start]
            assert np.isin(early, index[graph.rows[once]]).all()

    @pytest.mark.parametrize("size", [5, 9])
    def test_a_task_of_few_values(self, size):
        """A tenth of its terms is less than one: there is one all the same."""
        _, _, _, _, some, graph = self.setting(sizes=(2000, size), terms=100)
        assert some.sizes[1] == size
        assert (graph.weights[graph.rows >= some.offsets[1]] == 1.0).all()

    def test_a_small_task_is_there_whole(self):
        """Of a task of few values none is left out."""
        _, sample, _, _, some, graph = self.setting(sizes=(3000, 40), terms=500)
        assert some.sizes[1] == 40
        assert np.isin(np.arange(some.offsets[1], some.size), graph.rows).all()
        assert (graph.weights[graph.rows >= some.offsets[1]] == 1.0).all()
        assert sample.sizes == [3000, 40]

    @staticmethod
    def index(sample, some):
        """Return which observations of a sample a smaller one has."""
        where = {tuple(x): k for k, x in enumerate(sample.inputs[:, : sample.offsets[1]].T)}
        rest = {
            tuple(x): k + int(sample.offsets[1])
            for k, x in enumerate(sample.inputs[:, sample.offsets[1] :].T)
        }
        first = int(some.offsets[1])
        return np.array(
            [(where if k < first else rest)[tuple(x)] for k, x in enumerate(some.inputs.T)]
        )

    @pytest.mark.parametrize("given", [0, 1])
    def test_the_compressed_sample_has_the_same_terms(self, given):
        """Value and gradient are those of the same terms on the whole sample."""
        process, sample, theta, _, some, graph = self.setting((600, 500), 300, given)
        index = self.index(sample, some)
        assert some.size < 0.9 * sample.size
        np.testing.assert_array_equal(some.values, sample.values[index])
        np.testing.assert_array_equal(some.sites, sample.sites[index])
        there = np.arange(graph.neighbours.shape[1]) < graph.counts[:, None]
        on_all = replace(
            graph,
            rows=index[graph.rows],
            neighbours=np.where(there, index[graph.neighbours], 0).astype(np.int32),
        )
        solver = Neighbours(10)
        found = solver.objective(process, some, graph, theta)
        expected = solver.objective(process, sample, on_all, theta)
        assert found[0] == pytest.approx(expected[0], rel=1e-13)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-10, atol=1e-9)

    def test_gradient_of_weighted_terms(self):
        """Central differences, with weights and tasks that are given, also by the laws."""
        process, _, theta, _, some, graph = self.setting((300, 250), 200, 1)
        solver = Neighbours(10)
        _, gradient = solver.objective(process, some, graph, theta)
        expected = reference.differences(
            lambda x: solver.objective(process, some, graph, x)[0], theta, step=5e-4
        )
        np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-6 * np.abs(expected).max())

    def test_a_value_out_of_support(self):
        """The part says so too, as the extremes are in it."""
        process, sample, theta, *_ = self.setting((900, 700), 300)
        values = sample.values.copy()
        values[123] = -1.0
        bad = replace(sample, values=values)
        some, graph = Neighbours(10).subset(process, theta, bad, 300)
        value, gradient = Neighbours(10).objective(process, some, graph, theta)
        assert value == np.inf
        assert (gradient == 0.0).all()

    def test_an_estimate_of_the_whole(self):
        """In a smooth world the part's likelihood is close to the whole's.

        And so is the difference of two models, which is what a search needs.
        """
        process, sample, theta = smooth()
        solver = Neighbours(8)
        whole = solver.prepare(process, theta, sample)
        some, graph = solver.subset(process, theta, sample, 1000)
        assert some.size < 0.95 * sample.size
        longer = theta + np.array([0.3, -0.2, 0.0, 0.1])
        (whole_at, whole_longer), (part_at, part_longer) = (
            [-solver.objective(process, s, g, at)[0] for at in (theta, longer)]
            for s, g in ((sample, whole), (some, graph))
        )
        assert part_at == pytest.approx(whole_at, rel=0.05)
        gain = whole_at - whole_longer
        assert gain > 20.0
        assert part_at - part_longer == pytest.approx(gain, rel=0.3)


def test_arrays_that_are_closed_are_copied():
    """A model's arrays are read-only; the compiled loops get writeable ones."""
    near, *_ = near_of()
    graph = connect(near, 5, given=0, workers=1)
    for part in (graph.rows, graph.neighbours, graph.counts, graph.weights):
        part.flags.writeable = False
    terms = graph.terms(slice(3, 9))
    assert all(part.flags.writeable for part in terms)
    np.testing.assert_array_equal(terms.rows, graph.rows[3:9])
    np.testing.assert_array_equal(terms.neighbours, graph.neighbours[3:9])
    assert graph.graph is graph


def test_laws_do_not_matter_for_neighbours():
    """Only inputs and the covariance do."""
    process, sample, theta, _ = reference.example("lmc")
    other = Process(process.covariance, (LogNormal(3.0, 0.1), Normal(0.0, 1.0)))
    moved = other.join(theta[: process.covariance.size])
    graphs = [
        Neighbours(5).prepare(p, t, sample).graph for p, t in ((process, theta), (other, moved))
    ]
    np.testing.assert_array_equal(graphs[0].neighbours, graphs[1].neighbours)
