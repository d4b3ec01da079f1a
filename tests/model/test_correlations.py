"""Correlograms against loops over pairs and closed forms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import xarray as xr

import xcopula
from xcopula.model.correlations import _choose, _clusters, correlograms

OPTIONS = {"kernels": "matern32", "coupling": "icm", "restarts": 0, "method": "full"}


@pytest.fixture(scope="module")
def panel_model():
    """Nine stations on a line, seven days: each station has a level of its own."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=(9, 1)) + 0.5 * rng.normal(size=(9, 7))
    data = xr.Dataset(
        {"t": (("station", "time"), values, {"units": "K"})},
        coords={
            "x": ("station", np.arange(9.0) ** 1.5, {"units": "km", "axis": "X"}),
            "y": ("station", np.zeros(9) + np.arange(9) % 2, {"units": "km", "axis": "Y"}),
            "time": np.arange("2020-01-01", "2020-01-08", dtype="M8[D]").astype("M8[ns]"),
        },
    )
    return xcopula.fit(data, "t", marginals="normal", **OPTIONS)


def standard_scores(model, task):
    sample = model.observations.sample
    law = model.marginals[task]
    z = law.to_normal(sample.values[sample.task(task)])
    return (z - z.mean()) / z.std()


def by_hand(model, i, j, bins):
    """Return distance, product and count of each bin from a loop over all pairs."""
    sample, positions = model.observations.sample, model.observations.positions
    own, other = (np.arange(sample.size)[sample.task(t)] for t in (i, j))
    a, b = standard_scores(model, i), standard_scores(model, j)
    rows = []
    for k, m in itertools.product(range(own.size), range(other.size)):
        if sample.sites[own[k]] == sample.sites[other[m]] or (i == j and k >= m):
            continue
        rows.append((np.hypot(*(positions[own[k]] - positions[other[m]])), a[k] * b[m]))
    distance, product = np.array(rows).T
    half = 0.5 * distance.max()
    number = np.floor(bins * distance / half)
    groups = [number == k for k in range(bins)]
    return (
        [distance[g].mean() for g in groups],
        [product[g].mean() for g in groups],
        [g.sum() for g in groups],
    )


class TestPlane:
    @pytest.mark.parametrize(("number", "pair"), [(0, (0, 0)), (1, (1, 1)), (2, (0, 1))])
    def test_averages_are_those_of_a_loop_over_pairs(self, model, number, pair):
        found = correlograms(model, [0, 1], bins=6)[number]
        distance, product, count = by_hand(model, *pair, 6)
        assert (found.first, found.second) == tuple(model.tasks[t] for t in pair)
        np.testing.assert_allclose(found.distance, distance)
        np.testing.assert_allclose(found.empirical, product, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(found.count, count)
        assert (found.group, found.units) == ("space", "km")

    @pytest.mark.parametrize("task", [0, 1])
    def test_the_curve_is_the_kernel_without_the_nugget(self, model, task):
        found = correlograms(model, [0, 1])[task]
        p = model.parameters.isel(task=task)
        r = np.sqrt(3.0) * found.curve[0] / p["length_scale"].values.ravel()[0]
        expected = float(p["variance"].sum()) * (1.0 + r) * np.exp(-r)
        np.testing.assert_allclose(found.curve[1], expected, atol=1e-9)

    def test_common_sites_have_the_whole_correlation(self, model):
        *alone, pair = correlograms(model, [0, 1])
        assert [each.at_site for each in alone] == [None, None]
        p = model.parameters
        share = np.sqrt(p["variance"].values[:, 0] * p["variance"].values[:, 1])
        fitted = (p["correlation"].values[:, 0, 1] * share).sum()
        fitted += p["nugget_correlation"].values[0, 1] * np.sqrt(p["nugget"].values.prod())
        a, b = standard_scores(model, 0), standard_scores(model, 1)
        assert pair.at_site == pytest.approx(((a * b[:40]).mean(), fitted))

    def test_draws_are_seeded_and_hold_most_averages_of_a_fitted_model(self, model):
        first, again, other = (correlograms(model, [0, 1], seed=s) for s in (1, 1, 2))
        np.testing.assert_array_equal(first[0].upper, again[0].upper)
        assert not np.array_equal(first[0].upper, other[0].upper)
        inside = [(c.lower <= c.empirical) & (c.empirical <= c.upper) for c in first]
        assert np.concatenate(inside).mean() > 0.7

    def test_one_variable_alone_has_no_pair(self, model):
        assert [c.second for c in correlograms(model, [1])] == ["proxy"]

    def test_work_is_bounded(self, model):
        whole, part = (correlograms(model, [0], most=m)[0].count.sum() for m in (1500, 20))
        assert part < 0.6 * whole
        assert part < 0.5 * 25**2

    @pytest.mark.parametrize("option", ["bins", "most", "seed"])
    def test_options_are_whole_numbers(self, model, option):
        with pytest.raises(TypeError, match=f"`{option}` must be an integer"):
            correlograms(model, [0], **{option: 1.5})
        with pytest.raises(ValueError, match=f"`{option}` must be at least"):
            correlograms(model, [0], **{option: -1})


class TestSpaceAndTime:
    def test_distances_are_among_values_of_one_date(self, panel_model):
        space, time = correlograms(panel_model, [0], bins=3)
        positions = panel_model.observations.positions
        gaps = [
            np.hypot(*(positions[a] - positions[b])[:2])
            for a, b in itertools.combinations(range(63), 2)
            if positions[a, 2] == positions[b, 2]
        ]
        assert len(gaps) == 7 * 36
        assert space.count.sum() == np.sum(np.array(gaps) <= 0.5 * max(gaps))
        assert (time.group, time.units) == ("time", "days")

    def test_lags_are_among_values_of_one_station(self, panel_model):
        _, time = correlograms(panel_model, [0], bins=6)
        np.testing.assert_allclose(time.distance, np.arange(1, 7))
        np.testing.assert_array_equal(time.count, 9 * np.arange(6, 0, -1))
        # Stations differ in level: days of one of them are alike, whatever the lag.
        z = standard_scores(panel_model, 0).reshape(9, 7)
        assert time.empirical[0] == pytest.approx((z[:, 1:] * z[:, :-1]).mean())

    def test_a_cycle_goes_with_its_coordinate(self):
        rng = np.random.default_rng(0)
        t = np.arange(60.0)
        values = np.sin(2 * np.pi * t / 12) + 0.3 * rng.normal(size=60)
        data = xr.Dataset({"v": ("t", values)}, coords={"t": ("t", t, {"units": "day"})})
        groups = {"trend": "t", "year": xcopula.cycle("t", period=12.0)}
        model = xcopula.fit(data, "v", coords=groups, marginals="normal", **OPTIONS)
        (found,) = correlograms(model, [0])
        assert found.group == "trend"
        # The curve falls along the trend and comes back after a period.
        whole, half = (np.argmin(np.abs(found.curve[0] - lag)) for lag in (12.0, 6.0))
        p = model.parameters
        lengths = p["length_scale"].values[0, :, 0]
        chord = 12.0 / np.pi * np.sin(np.pi * found.curve[0] / 12.0)
        r = np.sqrt(3.0) * np.stack([found.curve[0], np.abs(chord)]) / lengths[:, None]
        expected = p["variance"].item() * ((1.0 + r) * np.exp(-r)).prod(axis=0)
        np.testing.assert_allclose(found.curve[1], expected, atol=1e-8)
        assert found.curve[1, whole] > found.curve[1, half]

    def test_scattered_values_are_together_when_they_are_near(self):
        others = np.random.default_rng(0).uniform(size=(1, 500))
        number = _clusters(others, tasks=1)
        spread = [np.ptp(others[0, number == k]) for k in range(number.max() + 1)]
        assert max(spread) <= 0.1 + 1e-12
        shared = np.repeat(others[:, :50], 10, axis=1)
        assert np.unique(_clusters(shared, tasks=1)).size == 50


class TestFewPairs:
    def test_where_nothing_is_together_there_is_only_the_curve(self):
        """Three places, each at a date of its own and far from the others in time."""
        rng = np.random.default_rng(1)
        time = np.array(["2000-01-01", "2010-01-01", "2020-01-01"] * 3, "M8[ns]")
        time += np.arange(9).astype("m8[D]")
        data = xr.Dataset(
            {"v": ("s", rng.normal(size=9))},
            coords={
                "x": ("s", np.arange(9.0) * 100.0, {"units": "km", "axis": "X"}),
                "y": ("s", np.arange(9.0) ** 2, {"units": "km", "axis": "Y"}),
                "time": ("s", time),
            },
        )
        model = xcopula.fit(data, "v", marginals="normal", **OPTIONS)
        space, lag = correlograms(model, [0])
        assert space.count.sum() <= 9
        assert lag.count.size == lag.empirical.size == lag.lower.size == 0
        days = np.ptp(time) / np.timedelta64(1, "D")
        assert lag.curve[0, -1] == pytest.approx(0.5 * days)
        assert np.isfinite(lag.curve).all()


class TestScaledCoordinates:
    def test_a_distance_of_one_is_said_along_each(self, sites):
        model = xcopula.fit(sites, "proxy", marginals="normal", ard=True, **OPTIONS)
        (found,) = correlograms(model, [0])
        expected = dict(zip(("x", "y"), model.parameters["scaling"].values, strict=True))
        assert found.ard == pytest.approx(expected)
        r = np.sqrt(3.0) * found.curve[0] / model.parameters["length_scale"].item()
        fitted = model.parameters["variance"].item() * (1.0 + r) * np.exp(-r)
        np.testing.assert_allclose(found.curve[1], fitted, atol=1e-9)


class TestChoice:
    def test_whole_clusters_are_taken_while_there_is_room(self):
        cluster = np.repeat(np.arange(20), 10)
        rng = np.random.default_rng(0)
        kept = _choose(cluster, np.arange(200), np.zeros((1, 200)), 55, rng)
        assert kept.size == 50
        assert np.unique(cluster[kept]).size == 5

    def test_a_large_cluster_is_thinned_to_near_and_far(self):
        rng = np.random.default_rng(0)
        places = rng.uniform(size=(2, 100_000))
        kept = _choose(np.zeros(100_000, int), np.arange(100_000), places, 1000, rng)
        assert 800 <= kept.size <= 1000
        gaps = np.linalg.norm(places[:, kept, None] - places[:, None, kept[:200]], axis=0)
        gaps[gaps == 0.0] = np.inf
        # Half have a neighbour as near as in the whole, which has 0.0016 on average.
        assert np.median(gaps.min(axis=0)) < 0.02
        assert np.ptp(places[0, kept]) > 0.95
