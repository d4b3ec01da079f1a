"""Groups: the plane, the globe and the cycle as spaces with a distance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sources import TEN, random_rotation, turned

from xcopula.errors import CoordinateError
from xcopula.labels.coordinates import Axis, CoordinateGroup, Cycle, Globe
from xcopula.labels.coordinates.groups import EARTH_RADIUS

GLOBE = Globe("space", (Axis("lon", "longitude", "degrees"), Axis("lat", "latitude", "degrees")))
YEAR = Cycle("season", (Axis("time", "time", "days"),), period=365.0)

LONGITUDES = st.floats(-180.0, 360.0)
LATITUDES = st.floats(-90.0, 90.0)


def distances(columns: np.ndarray) -> np.ndarray:
    """Return distances between columns (d, m)."""
    return np.linalg.norm(columns[:, :, None] - columns[:, None, :], axis=0)


class TestGlobe:
    @given(a=LONGITUDES, b=LATITUDES, c=LONGITUDES, d=LATITUDES)
    def test_the_chord_belongs_to_the_great_circle(self, a, b, c, d):
        """The chord is 2 R sin(angle / 2), by the haversine formula."""
        found = distances(GLOBE.embed(np.array([[a, c], [b, d]])))[0, 1]
        lon, lat = np.deg2rad([a, c]), np.deg2rad([b, d])
        h = np.sin(np.diff(lat)[0] / 2) ** 2 + np.cos(lat).prod() * np.sin(np.diff(lon)[0] / 2) ** 2
        assert found == pytest.approx(2.0 * EARTH_RADIUS * np.sqrt(h), abs=1e-5)

    def test_the_size_of_the_earth(self):
        """A degree of latitude is 111.19 km; the chord from equator to pole is 9009.95 km."""
        degree, quarter = (
            distances(GLOBE.embed(np.array([[10.0, 10.0], [0.0, lat]])))[0, 1]
            for lat in (1.0, 90.0)
        )
        assert degree == pytest.approx(111.19, abs=0.01)
        assert quarter == pytest.approx(9009.95, abs=0.01)

    @given(lon=LONGITUDES, lat=LATITUDES)
    def test_conventions_of_longitude_are_one_place(self, lon, lat):
        """A full turn ends at the same place."""
        both = GLOBE.embed(np.array([[lon, lon - 360.0], [lat, lat]]))
        np.testing.assert_allclose(both[:, 0], both[:, 1], atol=1e-8)

    def test_all_meridians_meet_at_the_poles(self):
        """The pole is one place at every longitude."""
        columns = GLOBE.embed(np.stack([np.linspace(0.0, 360.0, 9), np.full(9, 90.0)]))
        assert distances(columns).max() < 1e-8

    @pytest.mark.parametrize("seed", range(3))
    def test_distances_and_scale_turn_with_the_globe(self, seed):
        """A rotation changes neither the distances nor the scale of the inputs."""
        rng = np.random.default_rng(seed)
        lon, lat = rng.uniform(-20, 20, 12), rng.uniform(-15, 15, 12)
        moved = np.stack(turned(lon, lat, random_rotation(seed)))
        before, after = GLOBE.embed(np.stack([lon, lat])), GLOBE.embed(moved)
        np.testing.assert_allclose(distances(after), distances(before), atol=1e-8)
        np.testing.assert_allclose(GLOBE.frame(after).scale, GLOBE.frame(before).scale, rtol=1e-12)

    def test_units_and_columns(self):
        """The globe is three columns in km."""
        assert (GLOBE.units, GLOBE.columns) == ("km", 3)

    def test_one_place_has_no_extent(self):
        """Equal places are refused, even if their longitudes differ by a turn."""
        columns = GLOBE.embed(np.array([[10.0, 370.0], [40.0, 40.0]]))
        with pytest.raises(CoordinateError, match=r"\['lon', 'lat'\] have one value at all 2"):
            GLOBE.frame(columns)


class TestCycle:
    def test_a_period_leads_back(self):
        """Days a whole period apart coincide, half a period is the diameter."""
        gaps = distances(YEAR.embed(np.array([[0.0, 365.0, 730.0, 182.5]])))
        np.testing.assert_allclose(gaps[0], [0.0, 0.0, 0.0, 365.0 / np.pi], atol=1e-9)

    def test_a_circle_has_two_columns(self):
        """A cycle is a circle in a plane; its turns fall on each other."""
        columns = YEAR.embed(TEN[None])
        assert columns.shape == (YEAR.columns, TEN.size) == (2, TEN.size)
        np.testing.assert_allclose(np.linalg.norm(columns, axis=0), 365.0 / (2.0 * np.pi))

    def test_near_days_are_as_far_as_on_a_line(self):
        """Over a few days the circle is straight: length scales are in days."""
        gap = distances(YEAR.embed(np.array([[100.0, 103.0]])))[0, 1]
        assert gap == pytest.approx(3.0, rel=1e-3)
        assert YEAR.units == "days"

    def test_its_frame_is_the_circle(self):
        """Scale and centre do not depend on where the data lie."""
        frame = YEAR.frame(YEAR.embed(np.array([[3.0, 9.0]])))
        np.testing.assert_array_equal(frame.centre, np.zeros(2))
        np.testing.assert_allclose(frame.scale, 365.0 / np.pi)


class TestPlane:
    def test_units_are_those_that_axes_agree_on(self):
        """A length scale has units only if all axes have the same."""
        km, day = Axis("x", "x", "km"), Axis("t", "", "day")
        assert CoordinateGroup("g", (km, km)).units == "km"
        assert CoordinateGroup("g", (km, day)).units == ""
        assert CoordinateGroup("g", (km, km), ard=True).units == ""
