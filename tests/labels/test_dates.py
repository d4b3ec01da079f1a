"""Dates as datetime64, and the date of a model without a time."""

from __future__ import annotations

import datetime

import cftime
import numpy as np
import pytest
import xarray as xr
from conftest import FIXED
from sources import DATES, TEN, dataset

import xcopula
from xcopula.errors import CoordinateError
from xcopula.labels.dates import check_dates, common_dates, date_of, with_dates

DAY = np.datetime64("2020-03-01T12:00:00", "ns")
LATER = DAY + np.timedelta64(1, "D")


def dated(when, dims: tuple[str, ...] = ()) -> xr.Dataset:
    """Ten sites of one date."""
    return dataset(x=TEN, y=np.sin(TEN)).assign_coords(time=(dims, when))


@pytest.fixture(scope="module")
def grid() -> xr.Dataset:
    return xr.Dataset(coords={"x": ("x", [1.0, 2.5]), "y": ("y", [0.0, 0.5])})


@pytest.fixture(scope="module")
def model() -> xcopula.CopulaModel:
    return xcopula.fit(dated(DAY), "v", marginals="normal", **FIXED)


class TestCommonDates:
    @pytest.mark.parametrize(
        "data",
        [dated(DAY), dated(np.full(10, DAY), ("site",)), dated([DAY], ("time",))],
        ids=["scalar", "column", "dim"],
    )
    def test_of_any_form(self, data):
        """One number, a column that does not vary, a dim of length one."""
        (axis,) = common_dates(data, ())
        assert axis.name == "time"
        assert date_of(axis).values == DAY

    def test_what_is_used_or_varies_is_none(self):
        """Inputs, fields of laws, and several dates."""
        assert common_dates(dated(DAY), ("time",)) == ()
        assert common_dates(dated(DATES, ("site",)), ()) == ()
        assert common_dates(dataset(x=TEN), ()) == ()
        gap = np.array([np.datetime64("NaT", "ns")] * 10)
        assert common_dates(dated(gap, ("site",)), ()) == ()

    def test_of_another_calendar(self):
        """The date comes back as it was."""
        when = cftime.Datetime360Day(2020, 2, 30)
        (axis,) = common_dates(dated(np.array(when, object)), ())
        assert date_of(axis).item() == when


class TestPrediction:
    def test_the_date_of_the_data_is_that_of_the_map(self, model, grid):
        """Whether the target has none, or the same in another resolution."""
        for target in (grid, grid.assign_coords(time=DAY.astype("M8[s]"))):
            assert model.predict(target)["time"].values == DAY
        one = model.predict(grid.assign_coords(time=[DAY]))
        assert one.sizes["time"] == 1
        assert one["v"].dims[0] == "quantile"

    def test_another_date_is_refused(self, model, grid):
        """By both dates, and what to do; under another name too."""
        found = r"date 2020-03-02T12.* observations of 'v' are of 2020-03-01T12.*drop_vars\('{}'\)"
        for name in ("time", "valid_time"):
            for when in (LATER, ([name], [LATER])):
                target = grid.assign_coords({name: when})
                with pytest.raises(CoordinateError, match=found.format(name)):
                    model.predict(target)
        target = grid.assign_coords(time=LATER)
        assert model.predict(target.drop_vars("time"))["time"].values == DAY

    def test_several_dates_are_refused(self, model, grid):
        """They would be dropped."""
        target = grid.assign_coords(time=[DAY, LATER])
        with pytest.raises(CoordinateError, match=r"dims \['time'\], which are no inputs"):
            model.predict(target)
        first = target.isel(time=0, drop=True)
        assert model.predict(first)["time"].values == DAY

    def test_a_model_without_any_date_keeps_the_target_s(self, grid):
        """Elevations have none."""
        model = xcopula.fit(dated(DAY).drop_vars("time"), "v", marginals="normal", **FIXED)
        assert model.predict(grid.assign_coords(time=LATER))["time"].values == LATER

    def test_a_number_called_time_is_no_date(self, model, grid):
        """It is the target's own, and stays."""
        assert float(model.predict(grid.assign_coords(time=3.0))["time"]) == 3.0

    def test_an_input_is_no_date(self):
        """The times of the target are not taken for a date of the data that it lacks."""
        data = xr.Dataset({"v": ("time", TEN)}, {"time": DAY + np.arange(10) * (LATER - DAY)})
        model = xcopula.fit(data.assign_coords(reftime=DAY), "v", marginals="normal", **FIXED)
        assert model.predict(data)["reftime"].values == DAY

    def test_lazily_too(self, grid):
        """A fit that has not run yet knows the date of its data."""
        lazy = xcopula.fit(dated(DAY), "v", marginals="normal", compute=False, **FIXED)
        assert lazy.predict(grid)["time"].values == DAY
        with pytest.raises(CoordinateError, match="date 2020-03-02"):
            lazy.predict(grid.assign_coords(time=LATER))

    def test_a_law_of_the_date_takes_any(self, grid):
        """A time that a law varies with is no date of the model."""
        data = dated(DATES, ("site",)).drop_vars("time").assign_coords(time=DAY)
        law = xcopula.regress("normal", on="time.dayofyear")
        assert common_dates(data, {"time"}) == ()
        assert check_dates((), grid.assign_coords(time=LATER), "v") == {}
        assert law.fields == ("time.dayofyear",)


class TestDimsOfLengthOne:
    """One station, kept as a dim, is one station."""

    @pytest.fixture(scope="class")
    @classmethod
    def series(cls) -> xr.Dataset:
        wave = np.sin(np.arange(30) / 3.0)[None]
        return xr.Dataset(
            {"v": (("station", "time"), wave)},
            coords={
                "lat": ("station", [46.0]),
                "lon": ("station", [7.0]),
                "time": np.datetime64("2020-01-01", "ns") + np.arange(30) * np.timedelta64(1, "D"),
            },
        )

    def test_its_place_is_no_input(self, series):
        """As if it were a scalar; predictions keep the dim."""
        options = {"marginals": "normal", **FIXED}
        model = xcopula.fit(series, "v", **options)
        assert model.coordinates.names == ("time",)
        scalar = xcopula.fit(series.isel(station=0), "v", **options)
        assert model.log_likelihood == pytest.approx(scalar.log_likelihood, rel=1e-12)
        later = series.assign_coords(time=series["time"] + np.timedelta64(6, "h"))
        out = model.predict(later)["v"]
        assert out.dims == ("quantile", "station", "time")
        np.testing.assert_allclose(out.isel(station=0), scalar.predict(later)["v"].isel(station=0))


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("sampled", ["2024-05-01", "", None], "M"),
        ("sampled", ["2024-05-01T12:00:00.5Z", "2024-05-02"], "M"),
        ("sample", ["2301-07", "2302-08"], "O"),
        ("month", ["2024-05", "2024-06"], "O"),
        ("time", ["2024-05", "2024-06"], "M"),
        ("time", ["05/01/2024", "2024-06-01"], "O"),
        ("note", ["2024-05-01", "later"], "O"),
        ("day", [datetime.date(2024, 5, 1), None], "M"),
        ("odd", [[1], [2, 3]], "O"),
    ],
)
def test_what_is_a_date(name, values, kind):
    """Whole dates in ISO format are, under any name; all of a column is, or nothing."""
    column = np.empty(len(values), object)
    column[:] = values
    data = with_dates(xr.Dataset({name: ("site", column)}))
    assert data[name].dtype.kind == kind
    if kind == "M":
        missing = [v in (None, "") for v in values]
        np.testing.assert_array_equal(np.isnat(data[name]), missing)
