"""Coordinate reference systems of pyproj."""

from __future__ import annotations

import sys

import pytest

from xcopula.errors import CoordinateError
from xcopula.labels.coordinates.crs import (
    axis_units,
    crs_of,
    given_crs,
    is_crs,
    same_crs,
    to_attributes,
)

pyproj = pytest.importorskip("pyproj")

CODES = [2056, 3035, 3413, 27700, 32632]


class TestGiven:
    @pytest.mark.parametrize("given", ["EPSG:2056", 2056, "epsg:2056"])
    def test_by_code(self, given):
        """Codes are understood as pyproj does."""
        assert given_crs(given).to_epsg() == 2056

    def test_an_object_is_taken_as_it_is(self):
        """Also one of another package that speaks like pyproj's."""
        crs = pyproj.CRS(2056)
        assert is_crs(crs)
        assert given_crs(crs) is crs
        assert not is_crs("EPSG:2056")

    @pytest.mark.parametrize("given", ["nowhere", 123456789, 1.5, ["x"]])
    def test_anything_else(self, given):
        """What was found is said."""
        with pytest.raises(CoordinateError, match=r"`crs` must be .*'EPSG:2056', found"):
            given_crs(given)

    def test_without_pyproj(self, monkeypatch):
        """The extra is named; grid mappings are then not understood, and compared as numbers."""
        monkeypatch.setitem(sys.modules, "pyproj", None)
        with pytest.raises(ImportError, match=r"needs pyproj.*xcopula\[geo\]"):
            given_crs("EPSG:2056")
        assert crs_of({"crs_wkt": "EPSG:2056"}) is None


class TestSame:
    @pytest.mark.parametrize("code", CODES)
    @pytest.mark.parametrize("version", ["WKT1_GDAL", "WKT1_ESRI", "WKT2_2019"])
    def test_whatever_the_dialect(self, code, version):
        """Names and the order of axes vary between programs."""
        crs = pyproj.CRS(code)
        assert same_crs(crs, pyproj.CRS(crs.to_wkt(version)))

    @pytest.mark.parametrize(
        ("one", "other"),
        [(32632, 32633), (32632, 25832), (3035, 3034), (2056, 21781), (2056, 4326)],
    )
    def test_others_are_others(self, one, other):
        """Another zone, datum, method, origin or kind."""
        assert not same_crs(pyproj.CRS(one), pyproj.CRS(other))

    @pytest.mark.parametrize("version", ["WKT1_GDAL", "WKT2_2019"])
    def test_a_metre_of_false_easting(self, version):
        """Numbers count."""
        text = pyproj.CRS(3035).to_wkt(version).replace("4321000", "4321001")
        assert not same_crs(pyproj.CRS(text), pyproj.CRS(3035))

    def test_heights_and_shifts_do_not_count(self):
        """A compound CRS has its horizontal one, a bound one its own."""
        compound = pyproj.CRS("EPSG:32632+5773")
        bound = pyproj.CRS("+proj=utm +zone=32 +datum=WGS84 +towgs84=0,0,0")
        for crs in (compound, bound):
            assert same_crs(crs, pyproj.CRS(32632))
            assert axis_units(crs) == "m"


class TestAttributes:
    @pytest.mark.parametrize("code", CODES)
    def test_there_and_back(self, code, recwarn):
        """The text says all; what CF cannot say is no reason to warn."""
        attributes = to_attributes(pyproj.CRS(code))
        assert attributes["spatial_ref"] == attributes["crs_wkt"]
        assert crs_of(attributes).to_epsg() == code
        assert not recwarn

    @pytest.mark.parametrize(
        "attributes", [{"crs_wkt": "PROJCS[...]"}, {}, {"grid_mapping_name": "made_up"}]
    )
    def test_not_understood(self, attributes):
        """Others compare what there is."""
        assert crs_of(attributes) is None

    @pytest.mark.parametrize(("code", "units"), [(2056, "m"), (2229, "US_survey_foot"), (4326, "")])
    def test_units(self, code, units):
        """Those of projected axes."""
        assert axis_units(pyproj.CRS(code)) == units
