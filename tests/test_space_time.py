"""Time as an input: between, before and after the data, seasons, and dates in and out."""

from __future__ import annotations

import cftime
import numpy as np
import pytest
import xarray as xr
from sources import EAST, NORTH, daily

import xcopula
from xcopula.errors import CoordinateError

FIXED = {"method": "full", "kernels": "matern32", "restarts": 0, "uncertainty": "plugin"}
DAY = np.timedelta64(1, "D")


@pytest.fixture(scope="module")
def series() -> xr.Dataset:
    """Stations over days."""
    return daily()


@pytest.fixture(scope="module")
def model(series):
    """A space-time model."""
    return xcopula.fit(series, "level", marginals="normal", **FIXED)


def places(series, when, *, new: bool = False) -> xr.Dataset:
    """Return stations, or new places, at dates."""
    lon, lat = ([6.0, 10.5], [46.0, 48.0]) if new else (series["lon"][:3], series["lat"][:3])
    return xr.Dataset(
        coords={
            "lon": ("p", np.asarray(lon), EAST),
            "lat": ("p", np.asarray(lat), NORTH),
            "time": ("time", np.asarray(when)),
        }
    )


class TestPrediction:
    def test_groups_and_units(self, model):
        """Space has a length in km and time one in days."""
        assert [g.name for g in model.coordinates.groups] == ["space", "time"]
        assert list(model.parameters["length_units"].values) == ["km", "days"]
        assert "space(lon, lat) x time(time)" in model.summary()
        assert " days" in model.summary()

    @pytest.mark.parametrize("new", [False, True], ids=["stations", "new places"])
    def test_between_before_and_after(self, series, model, new):
        """All dates can be asked for; the nearer the data, the surer."""
        when = series["time"].values
        middle = when[3] + 36 * np.timedelta64(1, "h")
        dates = [when[0] - 400 * DAY, when[0] - 4 * DAY, middle, when[-1] + 4 * DAY]
        std = model.posterior(places(series, dates, new=new)).latent["std"]
        assert (std.sel(time=middle) < std.isel(time=1)).all()
        assert (std.isel(time=1) < std.isel(time=0)).all()
        assert (std.sel(time=middle) < std.isel(time=3)).all()

    @pytest.mark.parametrize("sign", [1, -1], ids=["after", "before"])
    def test_uncertainty_grows_away_from_the_data(self, series, model, sign):
        """The latent deviation grows with every day, and tends to one."""
        edge = series["time"].values[-1 if sign > 0 else 0]
        days = np.array([1, 2, 4, 8, 16, 40, 100, 400, 4000])
        std = model.posterior(places(series, edge + sign * days * DAY)).latent["std"]
        assert (std.diff("time") > -1e-12).all()
        assert (std.isel(time=slice(0, 4)).diff("time") > 0.0).all()
        np.testing.assert_allclose(std.isel(time=-1), 1.0, atol=1e-9)

    def test_an_observation_is_given_back(self, series, model):
        """At an observed place and date the prediction is the value."""
        out = model.predict(series, 0.5)["level"]
        np.testing.assert_allclose(out, series["level"], atol=1e-6)

    def test_one_date_for_a_map(self, series, model):
        """A scalar time on the target holds for all cells."""
        when = series["time"].values[2]
        grid = places(series, [when], new=True)
        scalar = grid.isel(time=0)
        np.testing.assert_allclose(
            model.predict(scalar)["level"], model.predict(grid)["level"].isel(time=0), rtol=1e-12
        )

    def test_lazily(self, series, model):
        """Chunks over time equal the result in memory."""
        target = places(series, series["time"].values + DAY)
        lazy = model.predict(target, chunks={"time": 3})
        xr.testing.assert_allclose(lazy.compute(), model.predict(target), rtol=1e-12)

    def test_a_target_without_time(self, series, model):
        """The missing time is named."""
        with pytest.raises(CoordinateError, match=r"lacks the coordinate 'time'"):
            model.predict(places(series, series["time"].values[:1]).drop_vars("time"))


class TestCycle:
    """Seasons."""

    @pytest.mark.parametrize("calendar", ["standard", "360_day"])
    def test_a_whole_year_apart_is_no_distance(self, calendar):
        """With the cycle alone, a year later, by the calendar, is the same."""
        rng = np.random.default_rng(2)
        days = np.sort(rng.uniform(0.0, 360.0, 30))
        data = xr.Dataset(
            {"v": ("time", np.cos(2.0 * np.pi * days / 360.0) + rng.normal(scale=0.2, size=30))},
            coords={"time": self.dates(days, calendar)},
        )
        season = xcopula.cycle("time")
        model = xcopula.fit(data, "v", coords=season, marginals="normal", **FIXED)
        assert [g.name for g in model.coordinates.groups] == ["season"]
        year = 365.2425 if calendar == "standard" else 360.0
        asked = np.array([10.0, 100.0, 250.0])
        latent = [
            model.posterior(xr.Dataset(coords={"time": self.dates(asked + k * year, calendar)}))
            .latent[["mean", "std"]]
            .to_array()
            .values
            for k in (0, 1, 7)
        ]
        for other in latent[1:]:
            np.testing.assert_allclose(other, latent[0], atol=1e-8)

    @pytest.mark.parametrize("calendar", ["noleap", "360_day"])
    def test_the_same_day_of_another_year_is_another_site(self, calendar):
        """It has the same signal and a nugget of its own."""
        year = {"noleap": 365.0, "360_day": 360.0}[calendar]
        rng = np.random.default_rng(4)
        days = np.add.outer(year * np.arange(4), np.arange(5.0, year, 20.0)).ravel()
        values = np.cos(2.0 * np.pi * days / year) + rng.normal(scale=0.4, size=days.size)
        data = xr.Dataset({"v": ("time", values)}, coords={"time": self.dates(days, calendar)})
        season = xcopula.cycle("time")
        model = xcopula.fit(data, "v", coords=season, marginals="normal", **FIXED)
        sample = model.observations.sample
        assert len(set(sample.sites)) == days.size
        first, later = sample.inputs[:, : days.size // 4], sample.inputs[:, days.size // 4 :]
        np.testing.assert_allclose(np.tile(first, 3), later, atol=1e-9)
        nugget = float(model.parameters["nugget"][0])
        assert nugget > 0.05

        def moments(when, of):
            latent = model.posterior(
                xr.Dataset(coords={"time": self.dates(when, calendar)}), of=of
            ).latent
            return latent["mean"].values, latent["std"].values ** 2

        # At a date with a datum the observation is known, the signal is that of the season.
        seen, unseen = days[:6], days[:6] + 9 * year
        mean, variance = moments(seen, "observation")
        score = model.loo()["score"].values[:6]
        np.testing.assert_allclose(mean, score, atol=1e-6)
        np.testing.assert_allclose(variance, 0.0, atol=1e-6)
        for whole in range(1, 4):
            np.testing.assert_allclose(
                moments(seen, "signal"), moments(seen + whole * year, "signal"), atol=1e-8
            )
        # In a year without data it is the season, and a nugget that nobody knows.
        signal, unsure = moments(seen, "signal")
        mean, variance = moments(unseen, "observation")
        np.testing.assert_allclose(mean, signal, atol=1e-8)
        np.testing.assert_allclose(variance, unsure + nugget, atol=1e-8)

    def test_the_covariance_of_the_same_day_is_the_signal_s(self):
        """The likelihood is that of a circle written out: no two days share a nugget."""
        from scipy import stats

        year = 360.0
        rng = np.random.default_rng(5)
        days = np.add.outer(year * np.arange(3), np.arange(0.0, year, 30.0)).ravel()
        values = np.sin(2.0 * np.pi * days / year) + rng.normal(scale=0.5, size=days.size)
        data = xr.Dataset({"v": ("time", values)}, coords={"time": self.dates(days, "360_day")})
        model = xcopula.fit(data, "v", coords=xcopula.cycle("time"), marginals="normal", **FIXED)
        p, law = model.parameters, model.marginals[0]
        length, nugget = float(p["length_scale"].squeeze()), float(p["nugget"][0])
        phase = 2.0 * np.pi * days / year
        chord = year / np.pi * np.abs(np.sin(0.5 * np.subtract.outer(phase, phase)))
        r = np.sqrt(3.0) * chord / length
        matrix = (1.0 - nugget) * (1.0 + r) * np.exp(-r) + nugget * np.eye(days.size)
        z = (values - law.location) / law.scale
        expected = stats.multivariate_normal(cov=matrix).logpdf(z) - days.size * np.log(law.scale)
        assert model.log_likelihood == pytest.approx(expected, abs=1e-4)

    @staticmethod
    def dates(days, calendar):
        """Return dates of a calendar."""
        if calendar == "standard":
            micros = np.round(np.asarray(days) * 86_400e6).astype("m8[us]")
            return np.datetime64("2001-01-01", "us") + micros
        return np.asarray(cftime.num2date(days, "days since 2001-01-01", calendar=calendar))

    def test_beside_time_it_fades(self, series):
        """With the time itself, next year's season is less certain than this one's."""
        coords = ["lon", "lat", "time", xcopula.cycle("time")]
        model = xcopula.fit(series, "level", coords=coords, marginals="normal", **FIXED)
        assert [g.name for g in model.coordinates.groups] == ["space", "time", "season"]
        when = series["time"].values[3:4]
        year = np.timedelta64(round(365.2425 * 86400), "s")
        std = [
            float(model.posterior(places(series, when + k * year + DAY)).latent["std"].mean())
            for k in (0, 1)
        ]
        assert std[0] < std[1]


class TestDates:
    def test_leave_one_out_gives_dates_back(self, series, model):
        """The table has the dates of the observations."""
        loo = model.loo()
        np.testing.assert_array_equal(loo["time"], np.tile(series["time"].values, 12))
        assert loo["time"].dtype.kind == "M"

    def test_leave_one_out_gives_cftime_back(self, series):
        """Dates of another calendar come back in it."""
        dates = np.asarray(cftime.num2date(3.0 * np.arange(8), "days since 2001-03-01", "noleap"))
        data = series.assign_coords(time=dates)
        loo = xcopula.fit(data, "level", marginals="normal", **FIXED).loo()
        assert loo["time"].values[:8].tolist() == dates.tolist()

    def test_nat_in_training(self, series):
        """A missing date is an error, also under a missing value."""
        when = series["time"].values.copy()
        when[3] = "NaT"
        with pytest.raises(CoordinateError, match=r"'time' has no date \(NaT\) at 1 of 8 places"):
            xcopula.fit(series.assign_coords(time=when), "level")

    def test_nat_in_a_target(self, series, model):
        """A missing date in a target is an error too."""
        when = series["time"].values.copy()
        when[3] = "NaT"
        with pytest.raises(CoordinateError, match=r"'time' has no date \(NaT\) at 1 of 8 places"):
            model.predict(places(series, when))

    def test_calendars_of_variables(self, series):
        """Variables of two calendars are refused, with the variable and both names."""
        dates = np.asarray(cftime.num2date(3.0 * np.arange(8), "days since 2001-03-01", "noleap"))
        other = series["level"].assign_coords(time=dates)
        with pytest.raises(
            CoordinateError,
            match=r"Variable 'b': .*'noleap' calendar, but the model .*'standard'",
        ):
            xcopula.fit({"level": series["level"], "b": other}, "level", "b")

    def test_calendars_of_fit_and_target(self, series, model):
        """A target of another calendar is refused with both names and the remedy."""
        dates = np.asarray(cftime.num2date([0.0, 1.0], "days since 2001-03-01", "360_day"))
        with pytest.raises(
            CoordinateError, match=r"'360_day' calendar, but the model uses 'standard'.*convert_cal"
        ):
            model.predict(places(series, dates))

    def test_numbers_for_dates(self, series, model):
        """Undecoded times are not taken for days."""
        with pytest.raises(CoordinateError, match=r"'time' has dtype float64, .* `xr.decode_cf`"):
            model.predict(places(series, [1.0, 2.0]))

    def test_two_times_of_a_forecast(self, series):
        """The user chooses between issue and validity."""
        two = series.stack(p=("station", "time")).reset_index("p")
        two = two.assign_coords(valid_time=two["time"] + DAY)
        with pytest.raises(CoordinateError, match=r"\['time', 'valid_time'\] all claim"):
            xcopula.fit(two, "level")

    def test_lead_times_that_nothing_describes(self, series):
        """A dim of steps is named where the inputs do not cover it."""
        steps = xr.concat([series["level"], series["level"] + 1.0], "step").to_dataset(name="level")
        steps = steps.assign_coords(valid_time=steps["time"] + steps["step"] * DAY)
        with pytest.raises(CoordinateError, match=r"varies along \['step'\].*`coords`"):
            xcopula.fit(steps, "level")
