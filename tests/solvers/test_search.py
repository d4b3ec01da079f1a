"""Searches: neighbours of cells and tiles, and predictions that are functions of the place."""

from __future__ import annotations

import itertools
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import reference

from xcopula.kernels import KERNELS
from xcopula.kernels.assembly import scaled_inputs
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import Normal
from xcopula.process import Process, Sample, Targets
from xcopula.solvers import Exact, Neighbours, batches
from xcopula.solvers.near import places
from xcopula.solvers.search import search_of

RNG = np.random.default_rng


def setting(name="single", sizes=(150, 120, 90), most=12, seed=0):
    """Return a search, the process, its parameters, and a generator."""
    process, sample, theta, rng = reference.example(name, sizes=sizes, seed=seed)
    return search_of(process, theta, sample, most), process, theta, rng


def nowhere(search, rng, size):
    """Return scaled points, which are no sites."""
    inputs = rng.uniform(-0.2, 1.2, (len(search.near.sample.inputs), size))
    return scaled_inputs(inputs, search.near.state), np.full(size, -1)


def by_distance(search, points):
    """Return the distances (r, n) of scaled points to all observations, in length scales."""
    where = places(points, search.near.lengths)
    return np.linalg.norm(where[:, None] - search.near.places, axis=2)


class TestCells:
    def test_the_nearest_of_one_task(self):
        """In one group the neighbours of a cell are the nearest observations, by brute force."""
        search, *_, rng = setting()
        points, sites = nowhere(search, rng, 40)
        which = search.cells(points, sites, 0)
        nearest = np.argsort(by_distance(search, points), axis=1)[:, :12]
        np.testing.assert_array_equal(which.neighbours, np.sort(nearest, axis=1))
        np.testing.assert_array_equal(which.counts, 12)
        np.testing.assert_array_equal(which.weights, 1.0)

    def test_a_task_without_values_has_no_neighbours(self):
        """The others are among the nearest of those that have."""
        process, sample, theta, rng = reference.example("lmc", sizes=(40, 30), seed=0)
        few = search_of(process, theta, sample.take(np.arange(40)), 12)
        points, sites = nowhere(few, rng, 20)
        which = few.cells(points, sites, 0)
        nearest = np.argsort(by_distance(few, points), axis=1)[:, :18]
        pairs = zip(which.neighbours, nearest, strict=True)
        assert all(np.isin(own, near).all() for own, near in pairs)
        np.testing.assert_array_equal(which.counts, 12)

    def test_the_nearest_without_some(self):
        """Those that a cell does without make room for the next ones, for each cell its own."""
        search, *_, rng = setting()
        points, sites = nowhere(search, rng, 30)
        away = by_distance(search, points)
        ranked = np.argsort(away, axis=1)
        without = [row[: 3 * k] for k, row in enumerate(ranked)]
        which = search.cells(points, sites, 0, without=without)
        for k, row in enumerate(ranked):
            expected = np.sort(row[3 * k : 3 * k + 12])
            assert which.neighbours[k, : which.counts[k]].tolist() == expected.tolist()

    def test_the_nearest_without_one(self):
        """Each its own, near or far; or only some of them."""
        search, *_, rng = setting(most=12)
        points, sites = nowhere(search, rng, 20)
        ranked = np.argsort(by_distance(search, points), axis=1)
        one = [row[k % 15 : k % 15 + 1] for k, row in enumerate(ranked)]
        for without in (one, [own[: k % 2] for k, own in enumerate(one)]):
            which = search.cells(points, sites, 0, without=without)
            for k, (row, others) in enumerate(zip(ranked, without, strict=True)):
                expected = np.sort([i for i in row if i not in others][:12])
                assert which.neighbours[k, : which.counts[k]].tolist() == expected.tolist()

    @pytest.mark.parametrize("name", ["mixed", "groups", "lmc"])
    def test_several_tasks_or_groups(self, name):
        """Neighbours are distinct, increasing, of every task, and none that was left out."""
        search, *_, rng = setting(name, most=18)
        sample = search.near.sample
        points, sites = nowhere(search, rng, 30)
        away = by_distance(search, points)
        without = [np.argsort(row)[: rng.integers(0, 40)] for row in away]
        for task, left in itertools.product(range(sample.tasks), ((), without)):
            which = search.cells(points, sites, task, without=left)
            np.testing.assert_array_equal(which.counts, 18)
            assert (np.diff(which.neighbours, axis=1) > 0).all()
            for row, others in zip(which.neighbours, left, strict=False):
                assert not np.intersect1d(row, others).size
            each = np.searchsorted(sample.offsets, which.neighbours, side="right") - 1
            for i in range(sample.tasks):
                assert ((each == i).sum(axis=1) >= 18 // (3 * sample.tasks)).all()

    def test_fewer_observations_than_are_asked_for(self):
        """Then all are neighbours, or all that may be."""
        search, *_, rng = setting(sizes=(9,), most=50)
        points, sites = nowhere(search, rng, 4)
        which = search.cells(points, sites, 0)
        np.testing.assert_array_equal(which.neighbours, np.tile(np.arange(9), (4, 1)))
        left = [np.arange(k) for k in (0, 3, 8, 9)]
        which = search.cells(points, sites, 0, without=left)
        assert which.counts.tolist() == [9, 6, 1, 0]


def tiled(search, points, sites, task=0):
    """Return the cells of each tile, and its neighbours."""
    order, starts, which = search.tiles(points, sites, task)
    assert sorted(order.tolist()) == list(range(points.shape[1]))
    assert starts[0] == 0
    assert starts[-1] == order.size
    cells = [order[a:b] for a, b in itertools.pairwise(starts)]
    assert len(cells) == which.rows.size
    return [
        (own, row[:count])
        for own, row, count in zip(cells, which.neighbours, which.counts, strict=True)
    ]


class TestTiles:
    @pytest.mark.parametrize("name", ["single", "mixed", "groups"])
    def test_neighbours_reach_beyond_the_corners(self, name):
        """From any cell of a tile the farthest neighbour of each task is beyond the others."""
        search, *_, rng = setting(name, most=24)
        points, sites = nowhere(search, rng, 3000)
        where, sample = places(points, search.near.lengths), search.near.sample
        several = 0
        for own, neighbours in tiled(search, points, sites):
            several += own.size > 1
            across = np.linalg.norm(np.ptp(where[own], axis=0))
            for i in range(sample.tasks):
                task = sample.task(i)
                mine = neighbours[(neighbours >= task.start) & (neighbours < task.stop)]
                if 0 < mine.size < sample.sizes[i]:
                    away = np.linalg.norm(
                        where[own][:, None] - search.near.places[mine], axis=2
                    ).max(axis=1)
                    assert (away > 0.74 * across).all()
        assert several > 5

    def test_tiles_are_small_where_data_are_dense(self):
        """A dense cluster has tiles of its size; where there are no data they are as long scales.

        And not many tiles are needed for cells that are far from any data.
        """
        rng = RNG(0)
        process, sample, theta, _ = reference.example("single", sizes=(400,))
        inputs = sample.inputs.copy()
        inputs[:, 50:] = 0.5 + 0.01 * rng.normal(size=(2, 350))
        sample = type(sample)(inputs, sample.offsets, sample.values, np.arange(400))
        search = search_of(process, theta, sample, 15)
        dense = 0.5 + 0.02 * rng.uniform(-1.0, 1.0, (2, 500))
        empty = np.stack([rng.uniform(5.0, 6.0, 500), rng.uniform(5.0, 6.0, 500)])
        sizes = []
        for inputs in (dense, empty):
            points = scaled_inputs(inputs, search.near.state)
            where = places(points, search.near.lengths)
            tiles = tiled(search, points, np.full(500, -1))
            sizes.append((max(np.ptp(where[own], axis=0).max() for own, _ in tiles), len(tiles)))
        (near, many), (far, few) = sizes
        assert near < 0.05 < 0.3 < far <= 0.5
        assert few < 50 < many

    def test_all_data_serve_every_tile(self):
        """Where a prediction is made from all data there is no reason to cut a tile."""
        search, *_, rng = setting(sizes=(40,), most=1000)
        points, sites = nowhere(search, rng, 200)
        for _, neighbours in tiled(search, points, sites):
            assert neighbours.tolist() == list(range(40))

    def test_cells_between_data_that_coincide(self):
        """At a place where more data stand than serve a prediction, halving ends."""
        process, sample, theta, _ = reference.example("single", sizes=(60,))
        inputs = np.repeat(sample.inputs[:, :3], 20, axis=1)
        sample = type(sample)(inputs, sample.offsets, sample.values, np.arange(60))
        search = search_of(process, theta, sample, 10)
        points = scaled_inputs(np.repeat(inputs[:, :1], 5, axis=1), search.near.state)
        found = tiled(search, points, np.full(5, -1))
        assert sum(own.size for own, _ in found) == 5


CASES = {
    "one task": ("single", Neighbours(predict=15)),
    "three tasks": ("mixed", Neighbours(predict=18)),
    "two groups": ("groups", Neighbours(predict=16)),
    "cells": ("mixed", Neighbours(predict=12, tiles=False)),
}


@pytest.mark.parametrize(("name", "solver"), CASES.values(), ids=CASES.keys())
class TestAFunctionOfThePlace:
    def setting(self, name, solver, seed=0):
        """Return a conditioned process and cells, some of which are sites."""
        process, sample, theta, rng = reference.example(name, sizes=(150, 120, 90), seed=seed)
        conditioned = reference.condition(solver, process, sample, theta)
        return conditioned, reference.some_targets(sample, rng, 700), rng

    @pytest.mark.parametrize("nugget", [True, False])
    def test_bitwise(self, name, solver, nugget):
        """Any part of the cells, in any order, has the very same mean and variance."""
        conditioned, cells, rng = self.setting(name, solver)
        for task in range(conditioned.sample.tasks):
            how = {"task": task, "nugget": nugget}
            whole = np.array(conditioned.moments(cells, **how))
            alone = conditioned.mean(cells, **how)
            np.testing.assert_array_equal(alone, whole[0])
            for size in (1, 3, 130, 500):
                some = rng.permutation(cells.size)[:size]
                part = cells.take(some)
                np.testing.assert_array_equal(conditioned.moments(part, **how), whole[:, some])
                np.testing.assert_array_equal(conditioned.mean(part, **how), whole[0, some])
            scores = conditioned.scores[None]
            if not nugget:
                np.testing.assert_array_equal(conditioned.means(cells, scores, **how)[0], whole[0])

    def test_batches_do_not_matter(self, name, solver, monkeypatch):
        """Nor does how many cells are worked on at a time."""
        conditioned, cells, _ = self.setting(name, solver)
        expected = np.array(conditioned.moments(cells))
        monkeypatch.setattr(batches, "_BATCH_BYTES", 50_000)
        assert len(list(batches.batches(cells.size, 8 * solver.near(1)))) > 3
        np.testing.assert_array_equal(conditioned.moments(cells), expected)

    def test_is_near_the_exact_prediction(self, name, solver):
        """By default means and variances are about those given all data, the variance no less."""
        solver = Neighbours(tiles=solver.tiles)
        process, sample, theta, rng = reference.example(name, sizes=(150, 120, 90))
        conditioned, exact = (
            reference.condition(s, process, sample, theta) for s in (solver, Exact())
        )
        cells = Targets.nowhere(rng.uniform(size=(len(sample.inputs), 200)))
        found, expected = conditioned.moments(cells), exact.moments(cells)
        assert (found.variance > expected.variance - 1e-12).all()
        error = (found.mean - expected.mean) / np.sqrt(expected.variance)
        assert np.sqrt(np.mean(error**2)) < 0.15
        assert np.mean(found.variance / expected.variance) < 1.02


def test_left_out_from_few_neighbours_equals_exact_from_the_same():
    """Values left out with a buffer are exact predictions from the nearest that remain."""
    process, sample, theta, rng = reference.example("single", sizes=(120,))
    conditioned = reference.condition(Neighbours(predict=15), process, sample, theta)
    rows = rng.permutation(120)[:15]
    away = np.linalg.norm(sample.inputs[:, rows, None] - sample.inputs[:, None], axis=0)
    without = [np.setdiff1d(np.flatnonzero(a < 0.2), [r]) for a, r in zip(away, rows, strict=True)]
    assert sum(map(len, without)) > 30
    found = conditioned.left_out(rows, without)
    for k, row in enumerate(rows):
        kept = np.setdiff1d(np.arange(120), [row, *without[k]])
        nearest = np.sort(kept[np.argsort(away[k, kept])[:15]])
        exact = reference.condition(Exact(), process, sample.take(nearest), theta)
        mean, variance = exact.moments(sample.targets(np.array([row])))
        assert found.mean[k] == pytest.approx(mean[0], abs=1e-10)
        assert found.variance[k] == pytest.approx(variance[0], abs=1e-10)


@pytest.mark.parametrize("name", ["single", "mixed", "groups"])
def test_left_out_values_do_not_depend_on_each_other(name, monkeypatch):
    """Each is what it is alone, whatever the others do without and how many are asked for."""
    process, sample, theta, rng = reference.example(name, sizes=(150, 120, 90))
    conditioned = reference.condition(Neighbours(predict=12), process, sample, theta)
    rows = rng.permutation(sample.size)[:40]
    without = [
        np.setdiff1d(rng.permutation(sample.size)[: 3 * k], [row]) for k, row in enumerate(rows)
    ]
    expected = np.array(conditioned.left_out(rows, without))
    for k in range(0, 40, 3):
        alone = conditioned.left_out(rows[k : k + 1], without[k : k + 1])
        np.testing.assert_array_equal(np.array(alone)[:, 0], expected[:, k])
    monkeypatch.setattr(batches, "_BATCH_BYTES", 30_000)
    np.testing.assert_array_equal(conditioned.left_out(rows, without), expected)


def test_left_out_in_memory_that_does_not_grow_with_the_square():
    """Buffers that grow with the data are worked on in batches."""
    peaks = []
    for n in (1000, 2000):
        process, sample, theta, _ = reference.example("single", sizes=(n,))
        conditioned = reference.condition(Neighbours(predict=10), process, sample, theta)
        others = [np.arange(n // 4)] * n
        conditioned.left_out(np.arange(1), others[:1])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(batches, "_BATCH_BYTES", 2**20)
            tracemalloc.start()
            conditioned.left_out(np.arange(n), others)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < 2.0 * peaks[0]


def test_a_gap_is_seen_from_all_sides():
    """In the midst of a gap the nearest may stand on one side; those of thinned samples do not."""
    rng = np.random.default_rng(0)
    points = rng.uniform(-0.5, 0.5, (9000, 2))
    points = points[np.hypot(*points.T) > 0.25]
    covariance = Covariance((KERNELS["matern32"],), (InputGroup(2),))
    process = Process(covariance, (Normal(0.0, 1.0),))
    theta = process.join(np.array([np.log(0.3), 2.0]))
    sample = Sample.of([points], [rng.normal(size=len(points))])
    centre = np.array([[0.02], [0.01]])

    def widest(search):
        """Return the widest angle without a neighbour."""
        which = search.cells(scaled_inputs(centre, search.near.state), np.array([-1]), 0)
        own = sample.inputs[:, which.neighbours[0, : which.counts[0]]] - centre
        angle = np.sort(np.arctan2(own[1], own[0]))
        return np.diff(np.append(angle, angle[0] + 2.0 * np.pi)).max(), which

    found = search_of(process, theta, sample, 60)
    angle, which = widest(found)
    alone, _ = widest(replace(found, thinned=()))
    assert angle < 0.6 * alone
    assert which.counts[0] == 60
    assert np.unique(which.neighbours[0]).size == 60


def test_thinned_samples_do_not_depend_on_the_order_of_the_data():
    """Shuffled data have the same neighbours, those of thinned samples included."""
    rng = RNG(0)
    points = rng.uniform(size=(2500, 2))
    process = Process(Covariance((KERNELS["matern32"],), (InputGroup(2),)), (Normal(0.0, 1.0),))
    theta = process.join(np.array([np.log(0.3), 2.0]))
    cells = np.array([[0.4, 0.7, 0.1], [0.5, 0.2, 0.9]])
    found = []
    for order in (np.arange(2500), rng.permutation(2500)):
        sample = Sample.of([points[order]], [np.zeros(2500)])
        search = search_of(process, theta, sample, 60)
        assert len(search.thinned) == 2
        which = search.cells(scaled_inputs(cells, search.near.state), np.full(3, -1), 0)
        found.append(np.sort(order[which.neighbours], axis=1))
    np.testing.assert_array_equal(*found)
