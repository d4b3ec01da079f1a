"""Grid mappings."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import xarray as xr
from sources import TEN, dataset

from xcopula.errors import CoordinateError
from xcopula.labels.coordinates import find_coordinates, find_projection

LAEA = {
    "grid_mapping_name": "lambert_azimuthal_equal_area",
    "longitude_of_projection_origin": 10.0,
    "latitude_of_projection_origin": 52.0,
    "crs_wkt": "PROJCS[...]",
}
CONIC = {
    "grid_mapping_name": "lambert_conformal_conic",
    "standard_parallel": [25.0, 60.0],
    "longitude_of_central_meridian": 10.0,
}
METRES = {"x": {"units": "m", "axis": "X"}, "y": {"units": "m", "axis": "Y"}}


def projected(attrs, *, name: str = "crs", as_coordinate: bool = True) -> xr.Dataset:
    """Ten sites in a projection."""
    data = dataset(METRES, x=1e3 * TEN, y=1e3 * TEN[::-1])
    data["v"].attrs["grid_mapping"] = name
    mapping = xr.DataArray(0, attrs=attrs)
    return data.assign_coords({name: mapping}) if as_coordinate else data.assign({name: mapping})


class TestFindProjection:
    @pytest.mark.parametrize("as_coordinate", [True, False])
    def test_coordinate_or_variable(self, as_coordinate):
        """The grid mapping may be a coordinate or a variable."""
        data = projected(LAEA, as_coordinate=as_coordinate)
        for source in (data, data["v"]):
            found = find_projection(source, data)
            assert found.name == "crs"
            assert dict(found.attributes)["grid_mapping_name"] == LAEA["grid_mapping_name"]

    def test_extended_reference_and_encoding(self):
        """The form "crs: x y" is understood, and a reference that decoding moved to encoding."""
        data = projected(LAEA)
        data["v"].attrs["grid_mapping"] = "crs: x y"
        assert find_projection(data["v"]).name == "crs"
        data["v"].encoding["grid_mapping"] = data["v"].attrs.pop("grid_mapping")
        assert find_projection(data["v"]).name == "crs"

    def test_a_target_without_variables(self):
        """A grid mapping is known by its own attributes, even if nothing refers to it."""
        target = projected(LAEA, name="spatial_ref").drop_vars("v")
        assert find_projection(target).name == "spatial_ref"

    def test_none(self):
        """Without a grid mapping, or with a reference to nothing, there is no projection."""
        assert find_projection(dataset(METRES, x=TEN, y=TEN)) is None
        assert find_projection(projected(LAEA).drop_vars("crs")) is None

    def test_to_coordinate_gives_the_attributes_back(self):
        """Lists survive the conversion to a scalar coordinate."""
        coordinate = find_projection(projected(CONIC)).to_coordinate()
        assert coordinate.ndim == 0
        assert coordinate.attrs == CONIC

    def test_the_extent_of_a_grid_is_left_behind(self):
        """GDAL's transform belongs to one grid."""
        found = find_projection(projected(LAEA | {"GeoTransform": "0 1 0 0 0 1"}))
        assert dict(found.without_extent().attributes) == LAEA

    @pytest.mark.parametrize(
        ("attrs", "geographic"),
        [
            ({"grid_mapping_name": "latitude_longitude"}, True),
            (LAEA, False),
            ({"crs_wkt": 'GEOGCS["WGS 84", ...]'}, True),
            ({"spatial_ref": 'PROJCS["somewhere", ...]'}, False),
            ({"crs_wkt": "EPSG:4326", "long_name": "pyproj understands it"}, True),
        ],
    )
    def test_geographic(self, attrs, geographic):
        """By the CF name, by pyproj, or by how the text begins."""
        if "long_name" in attrs:
            pytest.importorskip("pyproj")
        assert find_projection(projected(attrs)).geographic == geographic

    def test_without_pyproj_there_is_no_crs(self, monkeypatch):
        """And no units of it."""
        monkeypatch.setitem(sys.modules, "pyproj", None)
        found = find_projection(projected({"crs_wkt": "EPSG:4326"}))
        assert found.crs is None
        assert found.units == ""


class TestDifferences:
    def test_a_text_against_parameters(self):
        """What the text says is compared with the parameters that the other has."""
        pytest.importorskip("pyproj")
        text = find_projection(projected({"crs_wkt": "EPSG:3035"}))
        assert text.differences(find_projection(projected(LAEA))) == []
        moved = find_projection(projected(LAEA | {"longitude_of_projection_origin": 9.0}))
        assert text.differences(moved) == ["longitude_of_projection_origin: 10.0 / 9.0"]

    def test_texts_without_pyproj(self, monkeypatch):
        """Equal ones agree; of others the message has the beginnings, and names the extra."""
        monkeypatch.setitem(sys.modules, "pyproj", None)
        long = 'PROJCRS["WGS 84 / UTM zone 33N",\n' + "BASEGEOGCRS[" * 20
        one, other = (find_projection(projected({"crs_wkt": t})) for t in (long, "EPSG:32633"))
        assert one.differences(one) == []
        (found,) = other.differences(one)
        assert found.startswith('crs: EPSG:32633 / PROJCRS["WGS 84 / UTM zone 33N", BASE')
        assert len(found) < 160
        assert "`xcopula[geo]`" in found
        assert one.differences(find_projection(projected(CONIC))) == []

    def test_texts_do_not_count(self):
        """Other words and other rounding do not make another projection."""
        other = LAEA | {"crs_wkt": "other", "longitude_of_projection_origin": 10.0 + 1e-12}
        found = find_projection(projected(other))
        assert find_projection(projected(LAEA)).differences(found) == []

    @pytest.mark.parametrize(("relative", "same"), [(1e-10, True), (1e-8, False)])
    def test_how_much_rounding_is_none(self, relative, same):
        """Texts round; a false easting of 4321 km that is four centimetres off is another."""
        one, other = ({"false_easting": 4321e3 * (1.0 + r)} for r in (0.0, relative))
        found = find_projection(projected(LAEA | other))
        assert (find_projection(projected(LAEA | one)).differences(found) == []) == same

    def test_numbers_and_names_do(self):
        """Every attribute that differs is reported with both values."""
        moved = find_projection(projected(LAEA | {"longitude_of_projection_origin": 9.0}))
        assert find_projection(projected(LAEA)).differences(moved) == [
            "longitude_of_projection_origin: 10.0 / 9.0"
        ]

    @pytest.mark.parametrize("parallels", [[25.0, 61.0], [25.0], 25.0])
    def test_lists(self, parallels):
        """Lists are compared, even with lists of another length and with numbers."""
        other = find_projection(projected(CONIC | {"standard_parallel": np.array(parallels)}))
        assert find_projection(projected(CONIC)).differences(other)


class TestCheck:
    def test_another_projection_is_refused(self):
        """The error says how the projections differ."""
        system = find_coordinates(projected(LAEA)["v"])
        with pytest.raises(
            CoordinateError,
            match=r"target is in another projection than the model \(grid_mapping_name: lambert_az"
            r".* / lambert_conf.*Reproject",
        ):
            system.check_projection(find_projection(projected(CONIC)), "The target")

    def test_unknown_projections_pass(self):
        """If one side has no grid mapping, nothing can be compared."""
        system = find_coordinates(projected(LAEA)["v"])
        system.check_projection(None, "The target")
        plain = find_coordinates(dataset(METRES, x=TEN, y=TEN)["v"])
        plain.check_projection(find_projection(projected(CONIC)), "The target")

    def test_the_globe_has_no_projection(self):
        """A model on longitude and latitude takes targets of every projection."""
        data = projected(LAEA).assign_coords(lon=("site", TEN), lat=("site", TEN))
        system = find_coordinates(data["v"], {"longitude": "lon", "latitude": "lat"})
        system.check_projection(find_projection(projected(CONIC)), "The target")
