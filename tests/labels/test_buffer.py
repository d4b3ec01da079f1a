"""Buffers: what lies within a distance, and left-out values without it."""

from __future__ import annotations

import itertools
import tracemalloc
import weakref
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from conftest import METHODS
from sources import DATES, EAST, daily, stations

import xcopula
from xcopula.labels.buffer import Within, check_buffer, near_any, within
from xcopula.labels.observations import observe
from xcopula.process import scores
from xcopula.solvers import Exact, Neighbours, batches

EARTH = 6371.0
# With all data as neighbours nothing is approximated.
SOLVERS = {"exact": Exact(), "neighbours": Neighbours(10**6, 10**6)}
every_solver = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS.keys())


@pytest.fixture(scope="module")
def system():
    """Space and time."""
    return observe(daily(), ["level"]).coordinates


class TestCheck:
    def test_a_number_is_for_the_first_group(self, system):
        """A mapping names groups."""
        assert check_buffer(50, system) == {"space": 50.0}
        assert check_buffer(np.float32(0.5), system) == {"space": 0.5}
        assert check_buffer(0, system) == {"space": 0.0}
        assert check_buffer({"time": 3}, system) == {"time": 3.0}
        both = check_buffer({"time": np.int64(3), "space": 1.5}, system)
        assert both == {"time": 3.0, "space": 1.5}
        assert all(type(v) is float for v in both.values())

    @pytest.mark.parametrize("odd", [{"lon": 5.0}, {5: 5.0}, {"space": 1.0, "depth": 2.0}])
    def test_unknown_groups(self, system, odd):
        """The message names those that there are."""
        with pytest.raises(ValueError, match=r"`buffer` names groups .*has \['space', 'time'\]"):
            check_buffer(odd, system)

    def test_no_group(self, system):
        """An empty mapping says nothing."""
        with pytest.raises(ValueError, match=r"`buffer` names groups of coordinates, found \[\]"):
            check_buffer({}, system)

    @pytest.mark.parametrize("odd", [True, "5 km", [5.0], 1j, None, np.array([1.0, 2.0])])
    def test_what_is_no_distance(self, system, odd):
        """Neither alone nor in a mapping."""
        for buffer in (odd, {"time": odd}):
            with pytest.raises(TypeError, match="`buffer` is a distance, found"):
                check_buffer(buffer, system)

    @pytest.mark.parametrize("odd", [-1.0, -1e-9, np.nan, np.inf, -np.inf])
    def test_distances_that_cannot_be(self, system, odd):
        """Below zero, infinite, or no number."""
        for buffer in (odd, {"time": odd}):
            with pytest.raises(ValueError, match="`buffer` is zero or more, found"):
                check_buffer(buffer, system)


def brute(distances, limits, rows):
    """Return the others within every limit, from matrices of distances."""
    near = np.logical_and.reduce([d <= limit for d, limit in zip(distances, limits, strict=True)])
    return [np.setdiff1d(np.flatnonzero(near[row]), [row]).tolist() for row in rows]


def chords(lon, lat):
    """Return distances in km through the globe, from great circles."""
    u, v = np.deg2rad(lon), np.deg2rad(lat)
    cosine = np.sin(v)[:, None] * np.sin(v) + np.cos(v)[:, None] * np.cos(v) * np.cos(
        u[:, None] - u
    )
    return 2.0 * EARTH * np.sin(np.arccos(np.clip(cosine, -1.0, 1.0)) / 2.0)


class TestWithin:
    @pytest.mark.parametrize("distance", [0.0, 0.3, 1.0, 100.0])
    def test_in_the_plane(self, sites, distance):
        """Of all variables, in the units of the coordinates; also at the site itself."""
        found = observe(sites, ["metal", "proxy"])
        rows = np.arange(0, found.sample.size, 7)
        away = np.linalg.norm(found.positions[:, None] - found.positions, axis=2)
        expected = brute([away], [distance], rows)
        assert [o.tolist() for o in within(found, rows, {"space": distance})] == expected
        # Both variables are known at the first site.
        assert 40 in next(iter(within(found, np.array([0]), {"space": 0.0})))

    def test_on_the_globe(self):
        """In kilometres, whatever the meridian."""
        data = stations(size=60)
        lon = (data["lon"].values * 40.0) % 360.0 - 180.0
        data = data.assign_coords(lon=("station", lon, EAST))
        found = observe(data, ["rain", "warmth"], ["lon", "lat"])
        away = chords(*found.positions.T[[[a.name for a in found.coordinates.axes].index(n)
                                          for n in ("lon", "lat")]])  # fmt: skip
        rows = np.arange(0, 120, 11)
        for km in (200.0, 1500.0, 6000.0):
            expected = brute([away], [km], rows)
            assert [o.tolist() for o in within(found, rows, {"space": km})] == expected
            assert any(len(o) > 2 for o in expected)

    @pytest.mark.parametrize(
        "buffer",
        [{"space": 150.0}, {"time": 4.0}, {"space": 150.0, "time": 4.0}, {"time": 3, "space": 300}],
    )
    def test_in_space_and_time_by_name(self, buffer):
        """Within the distance in every group that is named, in any order; others do not count."""
        found = observe(daily(), ["level"])
        names = [a.name for a in found.coordinates.axes]
        lon, lat, time = (found.positions[:, names.index(n)] for n in ("lon", "lat", "time"))
        away = {"space": chords(lon, lat), "time": np.abs(time[:, None] - time)}
        rows = np.arange(0, 96, 5)
        expected = brute([away[n] for n in buffer], buffer.values(), rows)
        assert [o.tolist() for o in within(found, rows, buffer)] == expected
        assert any(map(len, expected))

    def test_a_distance_that_is_reached_counts(self):
        """A rounding error does not take a neighbour at the very distance out."""
        time = xr.Dataset({"v": ("time", np.sin(np.arange(10.0)))}, {"time": DATES})
        found = observe(time, ["v"])
        for days in (1, 2, 3):
            (others,) = within(found, np.array([5]), {"time": float(days)})
            assert others.size == 2 * min(days, 4)
        # 0.8 - 0.5 is a little more than 0.3.
        along = 0.1 * np.arange(10)
        assert along[8] - along[5] > 0.3
        line = xr.Dataset({"v": ("x", np.sin(along))}, {"x": ("x", along, {"units": "km"})})
        found = observe(line, ["v"])
        (group,) = found.coordinates.groups
        (others,) = within(found, np.array([5]), {group.name: 0.3})
        assert others.tolist() == [2, 3, 4, 6, 7, 8]


@pytest.mark.parametrize("buffer", [{"space": 0.0}, {"space": 300.0}, {"time": 2, "space": 300.0}])
def test_near_any(buffer):
    """All that is within the distance of one of them, and they themselves."""
    seen, rows = observe(daily(), ["level"]), np.array([1, 4, 9, 10, 30])
    expected = np.zeros(seen.sample.size, bool)
    expected[np.concatenate([rows, *within(seen, rows, buffer)])] = True
    np.testing.assert_array_equal(near_any(seen, rows, buffer), expected)


def rest_of(model, row, others):
    """Return the model's process conditioned on what remains, at the same parameters."""
    sample = model.observations.sample
    kept = np.setdiff1d(np.arange(sample.size), [row, *others])
    rest = sample.take(kept)
    method, process = model.method, model.process
    structure = method.prepare(Exact(), process, model.theta, rest)
    return method, process, rest, structure, model.theta


def full(model, row, others):
    """Condition a full model on the rest."""
    method, process, rest, structure, theta = rest_of(model, row, others)
    return method.condition(process, rest, structure, theta)


def transductive(model, row, others):
    """Condition each pair on the rest; how they are combined stays as it was learnt."""
    _, process, rest, structure, theta = rest_of(model, row, others)
    return replace(
        model.conditioned,
        sample=rest,
        models=tuple(part.condition(process, theta) for part in structure),
        anchors=None,
        each=None,
    )


@every_solver
@pytest.mark.parametrize("buffer", [0.0, 0.4, 1.5])
class TestLeaveOut:
    """``loo(buffer=...)`` is what the process says given the rest, without refitting."""

    def check(self, model, name, condition, solver, buffer, most):
        """Compare a few left-out values with conditioning on what remains."""
        own = replace(model, solver=solver)
        found = own.loo(name, buffer=buffer, most=most)
        assert found.sizes == {"site": most}
        sample, task = model.observations.sample, model.task(name)
        rows = np.arange(sample.size)[sample.task(task)]
        rows = rows[np.linspace(0, rows.size, most, endpoint=False).astype(int)]
        near = within(model.observations, rows, {"space": buffer})
        for k, (row, others) in enumerate(zip(rows, near, strict=True)):
            rest = condition(own, row, others)
            target = sample.targets(np.array([row]))
            moments = rest.moments(target, task=task)
            assert float(found["mean"][k]) == pytest.approx(moments.mean[0], abs=1e-8)
            assert float(found["std"][k]) == pytest.approx(np.sqrt(moments.variance[0]), abs=1e-8)
            law = model.marginals[task].at(sample.covariates_of(task)[[row - sample.offsets[task]]])
            expected = scores(moments, law, sample.values[[row]])
            assert float(found["crps"][k]) == pytest.approx(expected.crps[0], rel=1e-6)
            assert float(found["observed"][k]) == sample.values[row]

    @pytest.mark.parametrize("name", ["metal", "proxy"])
    def test_full(self, model, name, solver, buffer):
        """One model of both variables."""
        self.check(model, name, full, solver, buffer, 6)

    @pytest.mark.parametrize("name", ["metal", "proxy", "other"])
    def test_transductive(self, triple, name, solver, buffer):
        """Pairs of the primary with each of two secondaries."""
        self.check(triple, name, transductive, solver, buffer, 5)


@every_solver
class TestOptions:
    def test_most(self, model, solver):
        """At even steps through the data; the same values as without."""
        own = replace(model, solver=solver)
        for buffer in (None, 0.5):
            whole = own.loo(buffer=buffer)
            some = own.loo(buffer=buffer, most=7)
            index = np.linspace(0, 40, 7, endpoint=False).astype(int)
            xr.testing.assert_allclose(some, whole.isel(site=index), rtol=1e-9)
            xr.testing.assert_identical(own.loo(buffer=buffer, most=10**6), whole)

    def test_no_buffer_is_plain_leave_one_out_where_no_site_is_shared(self, alone, solver):
        """A buffer of nothing leaves nothing else out."""
        own = replace(alone, solver=solver)
        xr.testing.assert_allclose(own.loo(buffer=0.0), own.loo(), rtol=1e-6)

    def test_a_buffer_of_everything_is_the_prior(self, model, solver):
        """Nothing is left to predict from."""
        found = replace(model, solver=solver).loo(buffer=1e6, most=4)
        np.testing.assert_allclose(found["mean"], 0.0, atol=1e-9)
        np.testing.assert_allclose(found["std"], 1.0, atol=1e-9)

    def test_larger_buffers_leave_more_uncertain(self, model, solver):
        """The deviation grows with the buffer, for every value."""
        own = replace(model, solver=solver)
        std = [own.loo(buffer=b)["std"] for b in (0.0, 0.3, 0.6, 1.2)]
        for near, far in itertools.pairwise(std):
            assert (far > near - 1e-9).all()
        assert std[-1].mean() > std[0].mean() + 0.1


class TestFewListsAtATime:
    """The lists of what is left out do not lie in memory together."""

    @pytest.fixture
    def alive(self, monkeypatch):
        """How many lists were alive at once, at most."""
        found = {"now": 0, "most": 0, "made": 0}
        original = Within.__iter__

        def gone():
            found["now"] -= 1

        def counted(self):
            for others in original(self):
                weakref.finalize(others, gone)
                found["now"] += 1
                found["made"] += 1
                found["most"] = max(found["most"], found["now"])
                yield others
                del others

        monkeypatch.setattr(Within, "__iter__", counted)
        return found

    @pytest.mark.parametrize("which", ["alone", "model", "triple"])
    def test_exact(self, request, alive, which):
        """One at a time, and the next."""
        model = replace(request.getfixturevalue(which), solver=Exact())
        model.loo(buffer=0.5)
        assert alive["made"] >= 40
        assert alive["most"] <= 3

    @pytest.mark.parametrize("which", ["alone", "model", "triple"])
    def test_neighbours(self, request, alive, which, monkeypatch):
        """A batch of them; and the values do not depend on how large it is."""
        model = replace(request.getfixturevalue(which), solver=Neighbours(predict=15))
        expected = model.loo(buffer=0.5)
        assert alive["made"] >= 40
        alive["most"] = 0
        monkeypatch.setattr(batches, "_BATCH_BYTES", 8000)
        xr.testing.assert_identical(model.loo(buffer=0.5), expected)
        assert 0 < alive["most"] <= 12

    def test_memory(self, alone, monkeypatch):
        """Lists of a thousand values take several times what is ever held of them."""
        rng = np.random.default_rng(0)
        data = xr.Dataset(
            {"metal": ("site", np.exp(rng.normal(size=1000)))},
            {n: ("site", rng.uniform(0.0, 3.0, 1000), {"units": "km"}) for n in ("x", "y")},
        )
        model = replace(alone, observations=observe(data, ["metal"]), solver=Neighbours(predict=15))
        monkeypatch.setattr(batches, "_BATCH_BYTES", 2**17)
        rows = np.arange(0, 1000, 2)
        lists = within(model.observations, rows, {"space": 1.5})
        model.conditioned.left_out(rows[:1], [np.arange(1, 3)])
        tracemalloc.start()
        model.conditioned.left_out(rows, lists)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 0.5 * sum(others.nbytes for others in lists)


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"full", "transductive"}))
def test_methods_that_cannot_leave_out_a_neighbourhood_say_so(model, name):
    """And what can."""
    other = replace(model, method=METHODS[name])
    with pytest.raises(
        ValueError, match=f"method={name!r} cannot .*`buffer` is for 'full' and 'transductive'"
    ):
        other.loo(buffer=0.5)


def test_space_and_time_through_the_model():
    """A buffer by name leaves a station out for some days, on the globe, for both solvers."""
    data = daily(size=9, days=6)
    model = xcopula.fit(
        data, "level", marginals="normal", method="full", kernels="matern32", restarts=0
    )
    found, expected = (
        replace(model, solver=s).loo(buffer={"space": 200.0, "time": 4.0}) for s in SOLVERS.values()
    )
    xr.testing.assert_allclose(found, expected, rtol=1e-6)
    plain = model.loo()
    assert float((expected["std"] - plain["std"]).min()) > -1e-9
    assert float(expected["std"].mean()) > 1.2 * float(plain["std"].mean())
