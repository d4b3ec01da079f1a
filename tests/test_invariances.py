"""What must not change a model: conventions, units, names, orders, and the turning of the globe."""

from __future__ import annotations

import dataclasses

import cftime
import numpy as np
import pytest
import xarray as xr
from sources import EAST, NORTH, daily, random_rotation, stations, turned

import xcopula
from xcopula.labels.observations import observe

FIXED = {"method": "full", "kernels": "matern32", "anisotropy": False}
LAWS = {"rain": "lognormal", "warmth": "normal"}


@pytest.fixture(scope="module")
def sites() -> xr.Dataset:
    """Stations with two variables."""
    return stations()


@pytest.fixture(scope="module")
def target() -> xr.Dataset:
    """A grid among the stations."""
    return xr.Dataset(
        coords={
            "lat": ("lat", np.linspace(44.5, 49.5, 4), NORTH),
            "lon": ("lon", np.linspace(4.5, 11.5, 5), EAST),
        }
    )


@pytest.fixture(scope="module")
def fitted(sites):
    """A model of both variables."""
    return xcopula.fit(sites, "rain", "warmth", marginals=LAWS, **FIXED)


@pytest.fixture(scope="module")
def series() -> xr.Dataset:
    """Stations over days."""
    return daily()


@pytest.fixture(scope="module")
def moving(series):
    """A space-time model."""
    return xcopula.fit(series, "level", marginals="normal", **FIXED)


def observing(model, data, names, **options):
    """Return the model at the same parameters with other observations."""
    return dataclasses.replace(model, observations=observe(data, names, **options))


def moments(model, target) -> np.ndarray:
    """Return the latent mean and deviation on a target, flat."""
    latent = model.posterior(target).latent
    return np.stack([latent["mean"].values.ravel(), latent["std"].values.ravel()])


def at(lon, lat, data: xr.Dataset) -> xr.Dataset:
    """Return the data at other places."""
    return data.assign_coords(lon=("station", lon, EAST), lat=("station", lat, NORTH))


def points(lon, lat) -> xr.Dataset:
    """Return a target of scattered points."""
    return xr.Dataset(coords={"lon": ("p", lon, EAST), "lat": ("p", lat, NORTH)})


class TestGlobe:
    def test_longitude_convention(self, sites, target, fitted):
        """Trained on -180..180 shifted across zero and predicted in 0..360, both ways."""
        shift = 8.0  # the stations then lie on both sides of Greenwich
        west = at(sites["lon"].values - shift, sites["lat"].values, sites)
        east = west.assign_coords(lon=(west["lon"] % 360.0).assign_attrs(EAST))
        grids = [
            target.assign_coords(lon=("lon", lon, EAST))
            for lon in (target["lon"].values - shift, (target["lon"].values - shift) % 360.0)
        ]
        assert float(east["lon"].max()) > 350.0
        names = ["rain", "warmth"]
        found = [moments(observing(fitted, d, names), g) for d in (west, east) for g in grids]
        for other in [*found[1:], moments(fitted, target)]:
            np.testing.assert_allclose(other, found[0], rtol=0.0, atol=1e-10)

    @pytest.mark.parametrize("anisotropy", [True, False])
    def test_longitude_convention_of_a_whole_fit(self, sites, target, anisotropy):
        """The fit itself does not see the convention, with directions or without."""
        moved = sites.assign_coords(lon=(sites["lon"] - 360.0).assign_attrs(EAST))
        options = FIXED | {"anisotropy": anisotropy}
        before, after = (
            xcopula.fit(data, "rain", "warmth", marginals=LAWS, **options)
            for data in (sites, moved)
        )
        assert after.log_likelihood == pytest.approx(before.log_likelihood, abs=1e-6)
        xr.testing.assert_allclose(after.predict(target), before.predict(target), rtol=1e-4)

    def test_date_line(self, sites, fitted):
        """A cluster across 180 degrees is the same cluster 50 degrees further."""
        lon, lat = sites["lon"].values, sites["lat"].values
        new = np.linspace(4.0, 12.0, 9), np.linspace(44.0, 50.0, 9)
        found = []
        for shift in (172.0, 222.0):
            wrapped = (lon + shift + 180.0) % 360.0 - 180.0
            there = (new[0] + shift + 180.0) % 360.0 - 180.0
            model = observing(fitted, at(wrapped, lat, sites), ["rain", "warmth"])
            found.append(moments(model, points(there, new[1])))
            if shift == 172.0:
                assert wrapped.min() < -170.0
                assert wrapped.max() > 170.0
        np.testing.assert_allclose(found[1], found[0], rtol=0.0, atol=1e-10)

    @pytest.mark.parametrize("seed", [None, 1, 2])
    def test_rotation(self, sites, fitted, seed):
        """A configuration around the pole, or anywhere, equals the same one at the equator."""
        rng = np.random.default_rng(3)
        angle, radius = rng.uniform(0.0, 360.0, 40), rng.uniform(0.0, 12.0, 40)
        spots, reach = rng.uniform(0.0, 360.0, 15), rng.uniform(0.0, 14.0, 15)
        spots[0], reach[0] = 77.0, 0.0  # the pole itself
        to_equator = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
        rotation = to_equator if seed is None else random_rotation(seed)
        names = ["rain", "warmth"]
        polar = observing(fitted, at(angle, 90.0 - radius, sites), names)
        moved = observing(fitted, at(*turned(angle, 90.0 - radius, rotation), sites), names)
        if seed is None:
            assert np.abs(moved.observations.positions[:, 1]).max() < 13.0
        before = moments(polar, points(spots, 90.0 - reach))
        after = moments(moved, points(*turned(spots, 90.0 - reach, rotation)))
        np.testing.assert_allclose(after, before, rtol=0.0, atol=1e-10)

    def test_length_scales_turn_with_the_globe(self, sites, fitted):
        """The reported length is in km wherever the stations lie."""
        lon, lat = turned(sites["lon"].values, sites["lat"].values, random_rotation(5))
        moved = observing(fitted, at(lon, lat, sites), ["rain", "warmth"])
        lengths = [m.parameters["length_scale"] for m in (fitted, moved)]
        np.testing.assert_allclose(lengths[1], lengths[0], rtol=1e-10)


class TestTime:
    def at(self, series, when) -> xr.Dataset:
        """Return the series at other dates."""
        return series.assign_coords(time=when)

    def target(self, when) -> xr.Dataset:
        """Return a few places at all dates and some days later."""
        return xr.Dataset(
            coords={"lon": ("p", [5.0, 9.0], EAST), "lat": ("p", [45.0, 48.0], NORTH), "time": when}
        )

    def test_epoch(self, series, moving):
        """A constant shift of all dates changes nothing."""
        when = series["time"].values
        before = moments(moving, self.target(when + np.timedelta64(36, "h")))
        shift = np.timedelta64(40 * 365, "D")
        moved = observing(moving, self.at(series, when - shift), ["level"])
        after = moments(moved, self.target(when - shift + np.timedelta64(36, "h")))
        np.testing.assert_allclose(after, before, rtol=0.0, atol=1e-10)

    @pytest.mark.parametrize("trained", ["s", "us", "ns"])
    @pytest.mark.parametrize("asked", ["s", "us", "ns"])
    def test_resolution(self, series, moving, trained, asked):
        """Seconds, microseconds and nanoseconds are the same days."""
        when = series["time"].values
        before = moments(moving, self.target(when))
        model = observing(moving, self.at(series, when.astype(f"M8[{trained}]")), ["level"])
        after = moments(model, self.target(when.astype(f"M8[{asked}]")))
        np.testing.assert_allclose(after, before, rtol=0.0, atol=1e-12)

    @pytest.mark.parametrize("calendar", ["standard", "proleptic_gregorian"])
    def test_cftime_of_the_standard_calendar(self, series, moving, calendar):
        """cftime and datetime64 mix, in training and in prediction."""  # noqa: D403
        when = series["time"].values
        days = (when - np.datetime64("2000-01-01", "ns")) / np.timedelta64(1, "D")
        dates = np.asarray(cftime.num2date(days, "days since 2000-01-01", calendar=calendar))
        model = observing(moving, self.at(series, dates), ["level"])
        before = moments(moving, self.target(when))
        for target in (self.target(when), self.target(dates)):
            np.testing.assert_allclose(moments(model, target), before, rtol=0.0, atol=1e-10)
        np.testing.assert_allclose(
            moments(moving, self.target(dates)), before, rtol=0.0, atol=1e-10
        )

    def test_a_whole_fit(self, series, moving):
        """Epoch and resolution do not change a fit."""
        when = (series["time"].values - np.timedelta64(9999, "D")).astype("M8[s]")
        again = xcopula.fit(self.at(series, when), "level", marginals="normal", **FIXED)
        assert again.log_likelihood == pytest.approx(moving.log_likelihood, abs=1e-6)
        np.testing.assert_allclose(
            again.parameters["length_scale"], moving.parameters["length_scale"], rtol=1e-3
        )


class TestNamesAndOrders:
    def test_renamed_coordinates(self, sites, target, fitted):
        """Other names, with or without attributes, are the same model and the same target."""
        named = sites.rename(lon="nav_lon", lat="nav_lat", station="id")
        bare = xr.Dataset(coords={n: target[n].values for n in ("lat", "lon")})
        grids = [
            target.rename(lon="x", lat="y"),
            bare.rename(lon="longitude", lat="latitude"),
        ]
        before = moments(fitted, target)
        again = observing(fitted, named, ["rain", "warmth"])
        for grid in grids:
            np.testing.assert_allclose(moments(again, grid), before, rtol=0.0, atol=1e-12)
        named_fit = xcopula.fit(named, "rain", "warmth", marginals=LAWS, **FIXED)
        np.testing.assert_array_equal(named_fit.theta, fitted.theta)

    def test_order_of_dims(self, series, moving, target, fitted):
        """Dims of the data and of the target may stand in any order."""
        again = observing(moving, series.transpose("time", "station"), ["level"])
        when = series.assign_coords(time=series["time"].values + np.timedelta64(1, "D"))
        found = [m.posterior(when).latent["mean"] for m in (moving, again)]
        np.testing.assert_allclose(
            found[1].transpose(*found[0].dims), found[0], rtol=0.0, atol=1e-10
        )
        other = xr.Dataset(coords={n: target[n] for n in ("lon", "lat")})
        assert list(other.dims) == ["lon", "lat"]
        turned_over = fitted.predict(other)["rain"].transpose("quantile", "lat", "lon")
        np.testing.assert_allclose(turned_over, fitted.predict(target)["rain"], rtol=1e-12)

    def test_order_of_observations(self, sites, target, fitted):
        """Stations in another order give the same prediction."""
        order = np.random.default_rng(1).permutation(40)
        shuffled = sites.isel(station=order)
        again = observing(fitted, shuffled, ["rain", "warmth"])
        np.testing.assert_allclose(
            moments(again, target), moments(fitted, target), rtol=0.0, atol=1e-10
        )
        refitted = xcopula.fit(shuffled, "rain", "warmth", marginals=LAWS, **FIXED)
        assert refitted.log_likelihood == pytest.approx(fitted.log_likelihood, abs=1e-5)

    def test_order_of_secondaries(self):
        """The search takes another way: it ends as high, to what the search calls nothing."""
        options = {"marginals": "lognormal", "kernels": "matern32", "method": "full", "restarts": 0}
        data = xcopula.datasets.jura(hide="Cd").isel(site=slice(0, 359, 7))
        one, two = (
            xcopula.fit(data, "Cd", names, **options) for names in (["Ni", "Zn"], ["Zn", "Ni"])
        )
        assert two.log_likelihood == pytest.approx(one.log_likelihood, abs=1e-2)


class TestUnits:
    km = ({"units": "km", "axis": "X"}, {"units": "km", "axis": "Y"})
    m = ({"units": "m", "axis": "X"}, {"units": "m", "axis": "Y"})

    def plane(self, sites, factor, attrs) -> xr.Dataset:
        """Return the stations on a plane."""
        x, y = factor * 80.0 * sites["lon"].values, factor * 111.0 * sites["lat"].values
        return sites.drop_vars(["lon", "lat"]).assign_coords(
            x=("station", x, attrs[0]), y=("station", y, attrs[1])
        )

    def test_metres_or_kilometres(self, sites):
        """Fits and predictions do not depend on the unit, also if the two differ."""
        near, far = self.plane(sites, 1.0, self.km), self.plane(sites, 1000.0, self.m)
        models = [xcopula.fit(d, "rain", marginals="lognormal", **FIXED) for d in (near, far)]
        np.testing.assert_allclose(models[1].theta, models[0].theta, atol=1e-4)
        np.testing.assert_allclose(
            models[1].parameters["length_scale"], models[0].parameters["length_scale"], rtol=1e-4
        )
        assert "km" in models[1].summary()
        target = {
            "km": xr.Dataset(
                coords={"x": ("x", [400.0, 700.0], self.km[0]), "y": ("y", [5100.0], self.km[1])}
            ),
            "m": xr.Dataset(
                coords={"x": ("x", [4e5, 7e5], self.m[0]), "y": ("y", [5.1e6], self.m[1])}
            ),
        }
        swapped = observing(models[0], far, ["rain"])
        found = [moments(m, t) for m in (models[0], swapped) for t in target.values()]
        for other in found[1:]:
            np.testing.assert_allclose(other, found[0], rtol=0.0, atol=1e-10)

    def test_missing_units_are_those_of_the_training_data(self, sites):
        """Numbers without units, as linspace gives, are taken to be in those of the fit."""
        for scale, attrs in ((1.0, self.km), (1000.0, self.m)):
            plane = self.plane(sites, scale, attrs)
            model = xcopula.fit(plane, "rain", marginals="lognormal", **FIXED)
            bare = plane.assign_coords(
                x=("station", plane["x"].values), y=("station", plane["y"].values)
            )
            np.testing.assert_array_equal(moments(model, bare), moments(model, plane))

    def test_heights_in_feet(self, sites):
        """A height is read in metres, whatever its unit of length."""
        up = {"standard_name": "altitude", "units": "m"}
        metres = sites.assign_coords(alt=("station", sites["elevation"].values, up))
        feet = metres.assign_coords(
            alt=("station", sites["elevation"].values / 0.3048, up | {"units": "ft"})
        )
        seen = [observe(d, ["rain"]) for d in (metres, feet)]
        assert [g.name for g in seen[1].coordinates.groups] == ["space", "height"]
        np.testing.assert_allclose(seen[1].positions, seen[0].positions, rtol=1e-12)
