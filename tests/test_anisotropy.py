"""Correlation that has a direction, from the data to the summary."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from directional import turned_field, world
from sources import EAST, NORTH

import xcopula
from xcopula.methods import METHODS, Sparse

WEEK = np.timedelta64(7, "D")
GIVEN = {"marginals": "lognormal", "kernels": "matern32", "restarts": 0}


def direction(model, group="space"):
    """Return the angle and the ratio of a fitted model."""
    p = model.parameters.sel(group=group)
    return float(p["anisotropy_angle"]), float(p["anisotropy_ratio"])


def grid(size=12, extent=100.0):
    axis = np.linspace(0.0, extent, size)
    return xr.Dataset(coords={"x": ("x", axis, {"units": "km"}), "y": ("y", axis, {"units": "km"})})


@pytest.fixture(scope="module")
def plumes():
    """A plane of 250 sites whose ranges are four times longer along N 52 E."""
    return world(250, 52.0, 4.0)


@pytest.fixture(scope="module")
def fitted(plumes):
    return xcopula.fit(plumes, "v0", **GIVEN)


class TestRecovery:
    def test_angle_and_ratio_in_a_plane(self, fitted):
        """Within 6 degrees and a third."""
        angle, ratio = direction(fitted)
        assert angle == pytest.approx(52.0, abs=6.0)
        assert ratio == pytest.approx(4.0, rel=0.33)

    def test_by_neighbours(self, plumes, fitted):
        """Neighbours are chosen anew in the metric: the same direction, within a degree or two."""
        angle, ratio = direction(xcopula.fit(plumes, "v0", solver="neighbours", **GIVEN))
        assert angle == pytest.approx(direction(fitted)[0], abs=2.0)
        assert ratio == pytest.approx(direction(fitted)[1], rel=0.1)

    def test_on_the_globe(self):
        """East and north are those at the centre of the data, whose longitudes cross 180."""
        rng = np.random.default_rng(1)
        places = rng.uniform(-400.0, 400.0, (200, 2))  # km around 178 E, 46 N
        lat = 46.0 + np.rad2deg(places[:, 1] / 6371.0)
        lon = 178.0 + np.rad2deg(places[:, 0] / 6371.0) / np.cos(np.deg2rad(lat))
        z = turned_field(places, 120.0, 4.0, length=100.0)
        data = xr.Dataset(
            {"v": ("s", np.exp(z[:, 0]))},
            coords={"lon": ("s", lon, EAST), "lat": ("s", lat, NORTH)},
        )
        model = xcopula.fit(data, "v", **GIVEN)
        angle, ratio = direction(model)
        assert angle == pytest.approx(120.0, abs=6.0)
        assert ratio == pytest.approx(4.0, rel=0.33)
        assert model.parameters["angle_from"].item() == "north, clockwise"
        assert re.search(r"[\d.]+ km along N (5[4-9]|6[0-6]) W, [\d.]+ km across", model.summary())

    def test_in_space(self):
        """Three ranges, each along its direction."""
        rng = np.random.default_rng(2)
        x = rng.uniform(0.0, 1.0, (180, 3))
        turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        mapped = (x @ turn.T) / np.array([0.8, 0.25, 0.1])
        r = np.sqrt(3.0) * np.linalg.norm(mapped[:, None] - mapped[None], axis=2)
        z = np.linalg.cholesky((1 + r) * np.exp(-r) + 1e-3 * np.eye(180)) @ rng.normal(size=180)
        data = xr.Dataset(
            {"v": ("s", np.exp(z))}, coords={n: ("s", c) for n, c in zip("abc", x.T, strict=True)}
        )
        model = xcopula.fit(data, "v", coords=["a", "b", "c"], **GIVEN)
        found = model.parameters.sel(group="space")
        overlap = np.abs(found["direction_vector"].values @ turn.T)
        assert overlap[0, 0] > 0.95
        assert overlap[2, 2] > 0.95
        assert found["anisotropy_ratio"] == pytest.approx(8.0, rel=0.4)
        assert np.isnan(found["anisotropy_angle"])
        assert model.theta.size == 2 + 5 + 2
        assert re.search(r"along \(-?0\.\d\d a, -?0\.\d\d b, -?0\.\d\d c\), ", model.summary())

    def test_of_space_beside_time(self):
        """Days of one region: the direction is that of space, time has none."""
        rng = np.random.default_rng(3)
        places, days = rng.uniform(0.0, 100.0, (40, 2)), 6
        z = turned_field(places, 10.0, 5.0, length=25.0, draws=days)
        data = xr.Dataset(
            {"v": (("s", "time"), np.exp(z))},
            coords={
                "x": ("s", places[:, 0], {"units": "km"}),
                "y": ("s", places[:, 1], {"units": "km"}),
                "time": np.datetime64("2020-01-01", "ns") + np.arange(days) * WEEK,
            },
        )
        model = xcopula.fit(data, "v", **GIVEN)
        angle, ratio = direction(model)
        assert (angle - 10.0 + 90.0) % 180.0 == pytest.approx(90.0, abs=8.0)
        assert ratio > 2.5
        assert direction(model, "time")[1] == 1.0


class TestNoHarm:
    def test_worlds_without_direction_have_nearly_none(self):
        """Of 16 worlds of 80 sites at least 12 have ranges within 1.6 of each other."""
        models = [xcopula.fit(world(80, 0.0, 1.0, seed=k), "v0", **GIVEN) for k in range(16)]
        assert sum(direction(m)[1] < 1.6 for m in models) >= 12

    def test_false_is_without_them(self, plumes):
        """The metric has no parameters then."""
        plain = xcopula.fit(plumes, "v0", anisotropy=False, **GIVEN)
        assert plain.theta.size == 4
        assert direction(plain)[1] == 1.0

    def test_predictions_of_a_directional_world_are_better(self, plumes):
        """The mean CRPS of 100 held-out sites falls by more than a twentieth."""
        rest, known = plumes.isel(site=slice(0, 100)), plumes.isel(site=slice(100, None))
        levels = np.linspace(0.01, 0.99, 99)
        observed, crps = rest["v0"].values, []
        for asked in (True, False):
            model = xcopula.fit(known, "v0", anisotropy=asked, **GIVEN)
            q = model.posterior(rest.drop_vars("v0")).quantile(levels).values
            below = observed >= q
            loss = np.where(below, levels[:, None], levels[:, None] - 1.0) * (observed - q)
            crps.append(2.0 * loss.mean())
        assert crps[0] < 0.95 * crps[1]


class TestInvariance:
    def test_turned_coordinates(self):
        """Sites turned by 30 degrees: the same predictions, and a bearing that has turned.

        A rim of twelve keeps the extent, which length scales are in units of.
        """
        rim = np.deg2rad(30.0 * np.arange(12))
        places = np.concatenate(
            [
                50.0 * np.stack([np.sin(rim), np.cos(rim)], axis=1),
                np.random.default_rng(0).uniform(-33.0, 33.0, (80, 2)),
            ]
        )
        cells = np.random.default_rng(1).uniform(-35.0, 35.0, (30, 2))
        values = np.exp(turned_field(places, 20.0, 4.0, length=15.0)[:, 0])
        turn = np.deg2rad(30.0)
        rotation = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
        models, predictions = [], []
        for matrix in (np.eye(2), rotation):
            east, north = matrix @ places.T
            data = xr.Dataset({"v": ("s", values)}, coords={"x": ("s", east), "y": ("s", north)})
            options = GIVEN | {"uncertainty": "plugin"}
            models.append(xcopula.fit(data, "v", anisotropy=True, **options))
            east, north = matrix @ cells.T
            target = xr.Dataset(coords={"x": ("c", east), "y": ("c", north)})
            predictions.append(models[-1].predict(target).to_array().values)
        # Both searches take the same path, but for rounding.
        np.testing.assert_allclose(predictions[1], predictions[0], rtol=1e-6)
        (before, ratio), (after, same) = map(direction, models)
        assert same == pytest.approx(ratio, rel=1e-6)
        assert (before - after) % 180.0 == pytest.approx(30.0, abs=1e-4)  # from x towards y
        assert models[0].parameters["angle_from"].item() == "x towards y"
        # And at one metric, turned, nothing is.
        theta = models[0].theta.copy()
        part = models[0].process.covariance.part
        a, b = part(models[0].theta, "scaling")
        matrix = rotation @ np.array([[a, b], [b, -a]]) @ rotation.T
        part(theta, "scaling")[:] = matrix[0]
        turned = replace(models[1], theta=theta).predict(target).to_array().values
        np.testing.assert_allclose(turned, predictions[0], rtol=1e-10)

    def test_order_of_the_axes(self, plumes, fitted):
        """A bearing is one whichever coordinate comes first."""
        model = xcopula.fit(plumes, "v0", coords=["y", "x"], **GIVEN)
        assert direction(model) == pytest.approx(direction(fitted), rel=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_every_method(method, tmp_path):
    """Each finds the direction that two variables share; files and other data keep it."""
    data = world(90, 52.0, 6.0, variables=2, length=25.0, seed=5)
    law = "normal" if method == "cokriging" else "lognormal"
    method = Sparse(method, inducing=60) if method in ("dtc", "fitc", "pitc") else method
    options = GIVEN | {"marginals": law, "method": method}
    model = xcopula.fit(data, "v0", "v1", anisotropy=True, **options)
    angle, ratio = direction(model)
    assert angle == pytest.approx(52.0, abs=12.0)
    assert ratio > 2.5
    assert len(re.findall(r"along N \d+ E", model.summary())) == 2
    path = model.save(tmp_path / "model.nc")
    before = model.predict(grid())
    xr.testing.assert_identical(xcopula.load(path).predict(grid()), before)
    again = model.with_only(data)
    xr.testing.assert_allclose(again.predict(grid()), before, rtol=1e-10)
    some, others = data.isel(site=slice(0, 70)), data.isel(site=slice(70, None))
    if method in ("full", "cokriging"):  # others choose points or anchors from the data
        whole = model.with_only(some).condition(others)
        xr.testing.assert_allclose(whole.predict(grid()), before, rtol=1e-8)


class TestAsked:
    def test_lazily(self, plumes, fitted):
        """A recorded fit chooses as one that runs."""
        lazy = xcopula.fit(plumes, "v0", compute=False, **GIVEN)
        np.testing.assert_array_equal(lazy.compute().theta, fitted.theta)

    def test_axes_of_a_plain_plane(self):
        """Without units nobody knows where north is."""
        model = xcopula.fit(world(120, 52.0, 4.0, units={}), "v0", **GIVEN)
        words = r"[\d.]+ along (3\d|4\d) degrees from x to y, [\d.]+ across"
        assert re.search(words, model.summary())

    def test_variables_decide_together(self):
        """Each alone is shrunk more than three that share their direction."""
        data = world(70, 52.0, 2.0, variables=3, length=20.0, seed=5)
        each = [direction(xcopula.fit(data, name, **GIVEN))[1] for name in data]
        angle, ratio = direction(xcopula.fit(data, "v0", ["v1", "v2"], **GIVEN))
        assert ratio > np.mean(each)
        assert ratio > 1.3
        assert angle == pytest.approx(52.0, abs=20.0)

    def test_two_structures_share_a_direction(self, plumes):
        model = xcopula.fit(plumes, "v0", structures=2, **GIVEN)
        assert direction(model)[1] > 2.0
        assert re.search(
            r"[\d.]+, [\d.]+ km along N \d+ E, [\d.]+, [\d.]+ km across", model.summary()
        )

    def test_of_one_group_of_two(self):
        """Directions are asked for group by group; the other group stays without."""
        data = world(60, 52.0, 4.0)
        data = data.assign_coords(p=("site", data["y"].values[::-1]), q=("site", data["x"].values))
        coords = {"space": ["x", "y"], "other": ["p", "q"]}
        model = xcopula.fit(data, "v0", coords=coords, anisotropy="space", **GIVEN)
        assert direction(model, "other")[1] == 1.0
        assert direction(model)[1] > 1.0

    def test_cross_validation(self, plumes):
        """Folds are fitted as was asked."""
        some = plumes.isel(site=slice(0, 60))
        scores = {
            asked: xcopula.cross_validate(some, "v0", folds=2, anisotropy=asked, **GIVEN)
            for asked in (True, False)
        }
        assert not np.array_equal(*(s["crps"].values for s in scores.values()))

    def test_correlogram_in_the_metric(self, fitted):
        """Distances are those of the metric, in km, and the label says what they are."""
        from xcopula.model.correlations import correlograms

        (found,) = correlograms(fitted, [0])
        assert found.units == "km"
        assert re.fullmatch(r"[\d.]+ km along N \d+ E, 0\.\d+ km across", found.directions)
        r = np.sqrt(3.0) * found.curve[0] / fitted.parameters["length_scale"].item()
        expected = fitted.parameters["variance"].item() * (1.0 + r) * np.exp(-r)
        np.testing.assert_allclose(found.curve[1], expected, atol=1e-9)
