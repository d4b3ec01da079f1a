"""Choosing neighbours: candidates by their covariance, and thinning by a radius."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import reference

from xcopula.jit.choice import gather, pick, thin
from xcopula.kernels.assembly import cross, ready, scaled_inputs

RNG = np.random.default_rng


def picked(process, theta, sample, points, sites, task, candidates, least, most, each=0):
    """Call the compiled loop; return a list of neighbours for each point."""
    state = ready(process.state(theta))
    out = np.zeros((len(candidates), most), np.int32)
    counts = np.zeros(len(candidates), np.int32)
    pick(
        scaled_inputs(points, state),
        sites,
        task,
        candidates,
        scaled_inputs(sample.inputs, state),
        sample.sites,
        sample.offsets,
        state,
        least,
        each,
        out,
        counts,
    )
    return [row[:count].tolist() for row, count in zip(out, counts, strict=True)]


def best(key, owner, least, most, parts=(), each=0):
    """Return which candidates are kept: the best ``least`` of each task, then the best of all.

    Between them, the best ``each`` by every part of the covariance.
    """
    ranked = sorted(key, key=lambda j: -key[j])
    kept: list[int] = []
    for j in ranked:
        if sum(owner[i] == owner[j] for i in kept) < least and len(kept) < most:
            kept.append(j)
    for part in parts:
        others = sorted((j for j in key if j not in kept), key=lambda j: -abs(part[j]))
        kept += others[: min(each, most - len(kept))]
    kept += [j for j in ranked if j not in kept][: most - len(kept)]
    return sorted(kept)


class TestPick:
    @pytest.mark.parametrize("name", ["shared", "groups"])
    @pytest.mark.parametrize("least", [0, 2])
    def test_against_brute_force(self, name, least):
        """The largest covariances, nugget and all, but some of every task; in increasing order."""
        process, sample, theta, rng = reference.example(name=name, sizes=(14, 11, 9))
        tasks = np.repeat(np.arange(sample.tasks), sample.sizes)
        inputs, _ = reference.parts(sample)
        dense = np.abs(reference.covariance_matrix(process.covariance, theta, inputs))
        for task in range(sample.tasks):
            own = np.arange(sample.size)[sample.task(task)]
            candidates = np.full((own.size, 16), -1, np.int32)
            for r, i in enumerate(own):
                others = np.setdiff1d(np.arange(sample.size), [i])
                number = rng.integers(0, 17)
                some = rng.permutation(16)[:number]
                candidates[r, some] = rng.permutation(others)[:number]
            points = np.ascontiguousarray(sample.inputs[:, own])
            found = picked(
                process, theta, sample, points, sample.sites[own], task, candidates, least, 7
            )
            for r, i in enumerate(own):
                key = {int(j): dense[i, j] for j in candidates[r] if j >= 0}
                assert found[r] == best(key, tasks, least, 7)

    @pytest.mark.parametrize("least", [0, 2])
    @pytest.mark.parametrize("each", [1, 2, 5])
    def test_some_of_every_structure(self, least, each):
        """By its own part of the covariance, whatever the others say."""
        process, sample, theta, _ = reference.example("groups", sizes=(16, 13))
        covariance = process.covariance
        tasks = np.repeat(np.arange(sample.tasks), sample.sizes)
        inputs, _ = reference.parts(sample)
        dense = np.abs(reference.covariance_matrix(covariance, theta, inputs))
        state = ready(process.state(theta))
        x = scaled_inputs(sample.inputs, state)
        own = np.arange(sample.sizes[0])
        parts = []
        for q in range(2):
            one = np.zeros_like(state.amplitudes)
            one[q] = state.amplitudes[q]
            one = state._replace(amplitudes=one)
            parts.append(
                cross(one, x[:, own], sample.sites[own], 0, x, sample.sites, sample.offsets,
                      nugget=False)
            )  # fmt: skip
        candidates = np.array([np.setdiff1d(np.arange(sample.size), [i]) for i in own], np.int32)
        points = np.ascontiguousarray(sample.inputs[:, own])
        args = process, theta, sample, points, sample.sites[own], 0, candidates, least, 8
        found, plain = picked(*args, each), picked(*args)
        for i in own:
            key = {int(j): dense[i, j] for j in candidates[i]}
            assert found[i] == best(key, tasks, least, 8, [p[i] for p in parts], each)
        assert (found != plain) or each < 3  # a few may be the best in any case

    def test_a_point_that_is_no_site_shares_no_nugget(self):
        """The nugget counts for candidates at the site of a point, and only there."""
        process, sample, theta, _ = reference.example("shared", noise="correlated", sizes=(12,) * 3)
        theta = theta.copy()
        process.covariance.part(theta, "logit")[:] = -6.0  # next to nothing but nugget
        process.covariance.part(theta, "noise_correlation")[:] = 3.0
        point = np.ascontiguousarray(sample.inputs[:, :1])
        twin = int(sample.offsets[1] + np.flatnonzero(sample.sites[12:24] == sample.sites[0])[0])
        candidates = np.arange(1, sample.size, dtype=np.int32)[None]
        rest = (point, sample.sites[:1], 0, candidates, 0, 2)
        both = np.flatnonzero(sample.sites == sample.sites[0])[1:].tolist()
        assert picked(process, theta, sample, *rest) == [both]
        assert twin in both
        nowhere = (point, np.array([-1]), *rest[2:])
        signal = reference.covariance_matrix(
            process.covariance,
            theta,
            reference.parts(sample)[0],
            np.arange(sample.size),  # no two at one site
        )
        expected = {int(j): abs(signal[0, j]) for j in candidates[0]}
        tasks = np.repeat(np.arange(3), 12)
        assert picked(process, theta, sample, *nowhere) == [best(expected, tasks, 0, 2)]

    def test_no_candidates(self):
        """A point that has none keeps none."""
        process, sample, theta, _ = reference.example("shared")
        none = np.full((1, 4), -1, np.int32)
        point = np.ascontiguousarray(sample.inputs[:, :1])
        assert picked(process, theta, sample, point, sample.sites[:1], 0, none, 1, 3) == [[]]


class TestGather:
    def gathered(self, process, theta, sample, rows, task, candidates, most):
        """Call the compiled loop; return a list of neighbours for each observation."""
        state = ready(process.state(theta))
        out = np.zeros((len(candidates), most), np.int32)
        counts = np.zeros(len(candidates), np.int32)
        inputs = scaled_inputs(sample.inputs, state)
        gather(
            np.ascontiguousarray(inputs[:, rows]),
            sample.sites[rows],
            task,
            candidates,
            inputs,
            sample.sites,
            sample.offsets,
            state,
            out,
            counts,
        )
        return [row[:count].tolist() for row, count in zip(out, counts, strict=True)]

    @pytest.mark.parametrize("name", ["shared", "groups"])
    def test_against_brute_force(self, name):
        """Each candidate in turn is the one whose addition leaves the least variance."""
        process, sample, theta, rng = reference.example(name=name, sizes=(14, 11, 9))
        inputs, _ = reference.parts(sample)
        dense = reference.covariance_matrix(process.covariance, theta, inputs)

        def left(i, given):
            across = dense[np.ix_(given, [i])]
            solved = np.linalg.solve(dense[np.ix_(given, given)], across)
            return 1.0 - float((across.T @ solved)[0, 0])

        for task in range(sample.tasks):
            rows = np.arange(sample.size)[sample.task(task)]
            candidates = np.full((rows.size, 12), -1, np.int32)
            for r, i in enumerate(rows):
                number = rng.integers(0, 13)
                others = rng.permutation(np.setdiff1d(np.arange(sample.size), [i]))
                candidates[r, rng.permutation(12)[:number]] = others[:number]
            found = self.gathered(process, theta, sample, rows, task, candidates, 5)
            for r, i in enumerate(rows):
                pool, kept = [int(j) for j in candidates[r] if j >= 0], []
                while pool and len(kept) < 5:
                    kept.append(min(pool, key=lambda j: left(i, [*kept, j])))
                    pool.remove(kept[-1])
                assert left(i, found[r] or [i]) == pytest.approx(left(i, kept or [i]), abs=1e-9)
                assert found[r] == sorted(found[r])
                assert len(found[r]) == len(kept)
                assert set(found[r]) <= {int(j) for j in candidates[r]}

    def test_copies_tell_nothing_more(self):
        """Of two candidates at one place without a nugget, one is enough."""
        process, sample, theta, _ = reference.example("shared", sizes=(8,))
        theta = theta.copy()
        process.covariance.part(theta, "logit")[:] = 40.0
        twice = replace(sample, inputs=np.ascontiguousarray(sample.inputs[:, [0, 1, 1, 2]]))
        twice = replace(twice, values=sample.values[:4], offsets=np.array([0, 4]))
        twice = replace(twice, sites=np.array([0, 1, 1, 2]))
        rows, candidates = np.array([0]), np.array([[1, 2, 3]], np.int32)
        (found,) = self.gathered(process, theta, twice, rows, 0, candidates, 3)
        assert len(found) == 2
        assert 3 in found


class TestThin:
    @pytest.mark.parametrize("d", [1, 2, 3, 4])
    @pytest.mark.parametrize("radius", [0.02, 0.1, 0.4, 3.0])
    def test_taken_points_are_apart_and_cover_the_rest(self, d, radius):
        """They stand a radius apart at least, and each other point is nearer than that to one."""
        rng = RNG(d)
        points = rng.normal(size=(150, d)) * np.array([1.0, 5.0, 0.1, 1.0])[:d]
        self.check(points, rng.permutation(150), radius)

    def test_points_that_coincide(self):
        """Of each place one is taken."""
        rng = RNG(0)
        places = rng.integers(0, 4, (120, 2)).astype(float)
        taken = self.check(places, np.arange(120), 0.5)
        assert taken.sum() == len(np.unique(places, axis=0))

    def test_a_lattice_at_its_own_spacing(self):
        """Points exactly a radius apart are both taken."""
        lattice = np.stack(np.meshgrid(np.arange(6.0), np.arange(5.0)), -1).reshape(-1, 2)
        assert self.check(lattice, RNG(1).permutation(30), 1.0).all()

    def test_a_level_goes_on_from_the_one_before(self):
        """What was taken stays, in front, and the next level keeps its distance from it."""
        rng = RNG(2)
        points, order = rng.uniform(size=(300, 2)), rng.permutation(300)
        taken, away, out = np.zeros(300, bool), np.full(300, np.inf), np.full(300, -1)
        coarse = thin(points, order, 0.3, taken, away, out, 0)
        first = out[:coarse].copy()
        # What blocked those that were passed over is within the radius, and is what is said.
        near = ((points[:, None] - points[first]) ** 2).sum(axis=2)
        assert np.isinf(away[taken]).all()
        assert (away[~taken] < 0.3**2).all()
        assert (np.abs(near - away[:, None]).min(axis=1)[~taken] < 1e-12).all()
        fine = thin(points, order, 0.1, taken, away, out, coarse)
        assert 0 < coarse < fine < 300
        np.testing.assert_array_equal(out[:coarse], first)
        np.testing.assert_array_equal(np.sort(out[:fine]), np.flatnonzero(taken))
        self.covers(points, taken, 0.1)

    def check(self, points, order, radius):
        """Thin points once, and compare with a greedy choice by all distances."""
        n = len(points)
        taken, out = np.zeros(n, bool), np.full(n, -1)
        count = thin(points, order, radius, taken, np.full(n, np.inf), out, 0)
        greedy: list[int] = []
        for i in order:
            away = np.linalg.norm(points[greedy] - points[i], axis=1)
            if not (away < radius).any():
                greedy.append(i)
        assert out[:count].tolist() == greedy
        np.testing.assert_array_equal(np.flatnonzero(taken), np.sort(greedy))
        self.covers(points, taken, radius)
        return taken

    @staticmethod
    def covers(points, taken, radius):
        """Check that taken points are apart, and that others are near one of them."""
        away = np.linalg.norm(points[:, None] - points[taken], axis=2)
        own = away[taken]
        np.fill_diagonal(own, np.inf)
        assert own.min(initial=np.inf) >= radius
        assert (away[~taken].min(axis=1) < radius).all()
