"""Times as days since an epoch."""

from __future__ import annotations

import cftime
import numpy as np
import pytest
import xarray as xr
from sources import DATES

from xcopula.errors import CoordinateError
from xcopula.labels.coordinates import times


def array(values) -> xr.DataArray:
    """A coordinate called ``when``."""
    return xr.DataArray(np.asarray(values), dims="when", name="when")


def cf_dates(calendar: str, count: int = 4) -> np.ndarray:
    """Days from 27 February 2001."""
    dates = cftime.num2date(np.arange(count), "days since 2001-02-27", calendar=calendar)
    return np.asarray(dates)


class TestToDays:
    @pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
    def test_resolution_does_not_matter(self, unit):
        """Dates of every resolution are the same days."""
        found = times.to_days(array(DATES.astype(f"M8[{unit}]")), "1999-12-31", "standard")
        np.testing.assert_array_equal(found, np.arange(1.0, 11.0))

    def test_hours_are_parts_of_a_day(self):
        """Six hours are a quarter."""
        value = np.array(["2000-01-01T06:00"], "M8[ns]")
        assert float(times.to_days(array(value), "2000-01-01", "standard")[0]) == 0.25

    @pytest.mark.parametrize("calendar", ["standard", "gregorian", "proleptic_gregorian"])
    def test_cftime_of_the_standard_calendar_equals_datetime64(self, calendar):
        """Calendars that differ only in name give the same days as datetime64."""
        found = times.to_days(array(cf_dates(calendar)), "2001-02-01", "standard")
        np.testing.assert_array_equal(found, 26.0 + np.arange(4.0))

    @pytest.mark.parametrize(("calendar", "days"), [("noleap", 2.0), ("360_day", 4.0)])
    def test_other_calendars_count_their_own_days(self, calendar, days):
        """From 27 February to 1 March there are as many days as the calendar says."""
        first, last = cf_dates(calendar, 1)[0], cftime.datetime(2001, 3, 1, calendar=calendar)
        found = times.to_days(array([first, last]), "2001-02-27", calendar)
        assert float(found[1]) == days

    def test_an_epoch_beyond_the_reach_of_nanoseconds(self):
        """Nanoseconds do not overflow against an old epoch."""
        found = times.to_days(array(DATES[:1]), "1000-01-01", "standard")
        whole = np.datetime64("2000-01-01", "D") - np.datetime64("1000-01-01", "D")
        assert float(found[0]) == whole.astype(float)

    def test_lazy_dates_stay_lazy(self):
        """Dates in chunks are converted block by block."""
        lazy = times.to_days(array(DATES).chunk(when=3), "2000-01-01", "standard")
        assert lazy.chunks is not None
        np.testing.assert_array_equal(lazy.compute(), np.arange(10.0))

    def test_lazy_nat_is_refused_in_its_block(self):
        """A missing date is an error even if it is found late."""
        dates = DATES.copy()
        dates[4] = "NaT"
        lazy = times.to_days(array(dates).chunk(when=3), "2000-01-01", "standard")
        with pytest.raises(CoordinateError, match=r"'when' has no date \(NaT\)"):
            lazy.compute()

    @pytest.mark.parametrize("place", [0, 2])
    def test_nat_is_an_error_with_a_count(self, place):
        """Missing dates are counted, in datetime64 and cftime."""
        for dates in (DATES.copy(), cf_dates("noleap", 10)):
            dates[place] = "NaT" if dates.dtype.kind == "M" else np.nan
            calendar = "standard" if dates.dtype.kind == "M" else "noleap"
            with pytest.raises(CoordinateError, match=r"no date \(NaT\) at 1 of 10 places"):
                times.to_days(array(dates), "2000-01-01", calendar)

    def test_another_calendar_is_refused_with_both_names(self):
        """Days of two calendars are not comparable."""
        with pytest.raises(CoordinateError, match="'noleap' calendar, but the model uses 'standa"):
            times.to_days(array(cf_dates("noleap")), "2000-01-01", "standard")


class TestCalendars:
    def test_mixed_calendars_are_refused(self):
        """Dates of two calendars in one coordinate are an error that names them."""
        mixed = np.concatenate([cf_dates("noleap"), cf_dates("360_day")])
        with pytest.raises(
            CoordinateError, match=r"mixes dates of the calendars \['360_day', 'nol"
        ):
            times.calendar_of(array(mixed))

    @pytest.mark.parametrize(
        ("calendar", "days"),
        [
            ("standard", 365.2425),
            ("julian", 365.25),
            ("noleap", 365.0),
            ("all_leap", 366.0),
            ("360_day", 360.0),
        ],
    )
    def test_years(self, calendar, days):
        """A year is as long as its calendar makes it on average."""
        assert times.calendar_year(calendar) == days

    def test_what_is_a_time(self):
        """Dates are times, even after a missing one; numbers, strings and spans are not."""
        assert times.is_time(array(DATES))
        dates = cf_dates("noleap")
        dates[0] = np.nan
        assert times.is_time(array(dates))
        for other in ([1.0], ["2000"], np.array([1], "m8[ns]"), np.array(["a"], object)):
            assert not times.is_time(array(other))


@pytest.mark.parametrize("calendar", ["noleap", "360_day", "julian"])
def test_cftime_there_and_back(calendar):
    """Dates come back from days as they were."""
    dates = cf_dates(calendar)
    epoch = times.first_time(array(dates))
    days = times.to_days(array(dates), epoch, calendar)
    assert list(times.from_days(days.values, epoch, calendar)) == list(dates)


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_datetime64_there_and_back(unit):
    """Dates come back from days to the microsecond."""
    dates = (DATES + np.timedelta64(12345678, "us")).astype(f"M8[{unit}]")
    epoch = times.first_time(array(dates))
    days = times.to_days(array(dates), epoch, "standard").values
    np.testing.assert_array_equal(times.from_days(days, epoch, "standard"), dates.astype("M8[us]"))


def test_the_epoch_of_lazy_dates_needs_no_computation():
    """If dates are not in memory, the epoch is a constant."""
    assert times.first_time(array(DATES).chunk(when=3)).startswith("1970-01-01")
