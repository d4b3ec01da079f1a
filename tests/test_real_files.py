"""Traps that real files set: each of these once gave a wrong model without a word."""

from __future__ import annotations

import warnings

import cftime
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sources import EAST, NORTH, TEN, dataset, stations

import xcopula
from xcopula import by, cycle, regress
from xcopula.errors import CoordinateError
from xcopula.labels.coordinates import Projection, find_coordinates

FIXED = {"method": "full", "marginals": "normal", "kernels": "matern32", "restarts": 0}
DOWN = {"units": "m", "positive": "down"}
UP = {"units": "m", "positive": "up"}


@pytest.fixture(scope="module")
def sites() -> xr.Dataset:
    """Stations on the globe."""
    return stations()


@pytest.fixture(scope="module")
def model(sites):
    """A model on the globe."""
    return xcopula.fit(sites, "rain", **FIXED)


class TestRoles:
    def test_one_number_does_not_stand_for_a_grid(self, model):
        """The place of a satellite states a latitude, but the grid is what has dims."""
        grid = xr.Dataset(coords={"lon": [8.0, 8.5], "lat": [47.0, 47.4, 47.8]})
        odd = grid.assign_coords(sat_lon=((), 0.0, EAST), sat_lat=((), 0.0, NORTH))
        xr.testing.assert_allclose(
            model.predict(odd)["rain"].drop_vars(["sat_lon", "sat_lat"]),
            model.predict(grid)["rain"],
        )

    def test_indices_yield_to_names_of_the_globe(self):
        """Axes without units of length beside bare lat(y, x), lon(y, x) are indices."""
        lon, lat = np.meshgrid(TEN, TEN + 40.0)
        for attrs in ({}, {"units": "1"}):
            data = xr.Dataset(
                {"v": (("y", "x"), lon)},
                coords={
                    "x": ("x", TEN, {"axis": "X"} | attrs),
                    "y": ("y", TEN, {"axis": "Y"} | attrs),
                    "lon": (("y", "x"), lon),
                    "lat": (("y", "x"), lat),
                },
            )
            assert find_coordinates(data["v"]).names == ("lon", "lat")

    def test_half_a_plane_is_completed_by_name(self):
        """One axis with attributes and one without make a plane."""
        data = dataset({"x": {"axis": "X", "units": "km"}}, x=TEN, y=TEN[::-1])
        assert find_coordinates(data).names == ("x", "y")

    def test_x_and_y_in_degrees(self):
        """The message says what to pass."""
        data = dataset({"x": {"units": "degrees"}, "y": {"units": "degrees"}}, x=TEN, y=TEN)
        with pytest.raises(CoordinateError, match=r"coords=\{'longitude': 'x', 'latitude': 'y'\}"):
            find_coordinates(data)

    def test_degrees_for_a_planar_model(self):
        """A target on the globe is to be projected, not renamed."""
        plane = find_coordinates(dataset(x=TEN, y=TEN), ["x", "y"])
        with pytest.raises(
            CoordinateError, match=r"lacks the coordinate 'x'.*Project its longitude"
        ):
            plane.find_in(xr.Dataset(coords={"lon": TEN, "lat": TEN}))


class TestOwnCoordinates:
    """What was chosen for the fit is what is read, whatever else states its role."""

    @pytest.mark.parametrize("as_field", [False, True])
    def test_a_depth_beside_an_altitude(self, sites, as_field):
        """An altitude with attributes does not take the place of a depth without."""
        size = sites.sizes["station"]
        data = sites.assign_coords(depth=("station", np.linspace(0.0, 9.0, size)))
        altitude = ("station", np.linspace(500.0, 100.0, size) ** 1.1, UP)
        data = data.assign(alt=altitude) if as_field else data.assign_coords(alt=altitude)
        law = regress("normal", on="alt") if as_field else "normal"
        coords = {"space": ["lon", "lat"], "height": "depth"}
        model = xcopula.fit(data, "rain", coords=coords, **FIXED | {"marginals": law})
        np.testing.assert_array_equal(model.observations.positions[:, 2], data["depth"])
        again = model.predict(data.drop_vars("rain"), 0.5)["rain"]
        np.testing.assert_allclose(again, sites["rain"], rtol=1e-6)

    def test_named_coordinates_beside_stated_ones(self, sites):
        """Coordinates that were asked for are those that are used."""
        data = sites.assign_coords(
            lon=("station", sites["lon"].values),
            lat=("station", sites["lat"].values),
            lon_true=("station", sites["lon"].values + 5.0, EAST),
            lat_true=("station", sites["lat"].values + 5.0, NORTH),
        )
        model = xcopula.fit(data, "rain", coords={"longitude": "lon", "latitude": "lat"}, **FIXED)
        np.testing.assert_array_equal(model.observations.positions[:, 0], sites["lon"])

    def test_one_distance_has_one_unit(self):
        """Metres along x, y and z in one group stay one length."""
        metres = {n: {"units": "m"} for n in "xyz"}
        data = dataset(metres, x=TEN, y=TEN[::-1], z=TEN)
        group = find_coordinates(data, {"space": ["x", "y", "z"]}).groups[0]
        assert [a.units for a in group.axes] == ["km"] * 3
        mixed = dataset({"e": {"units": "m"}, "n": {"units": "km"}}, e=1e3 * TEN, n=TEN)
        system = find_coordinates(mixed, ["e", "n"])
        first, second = system.find_in(mixed)
        np.testing.assert_allclose(first, second)


class TestHeights:
    def test_a_depth_is_a_negative_height(self):
        """Where both say which way they count, one is turned."""
        values = np.sin(TEN)
        depth = xr.Dataset({"v": ("depth", values)}, coords={"depth": ("depth", TEN, DOWN)})
        model = xcopula.fit(depth, "v", **FIXED)
        below = xr.Dataset(coords={"depth": ("depth", TEN + 0.3, DOWN)})
        above = xr.Dataset(coords={"height": ("height", -TEN - 0.3, UP)})
        np.testing.assert_array_equal(
            model.predict(above)["v"].values, model.predict(below)["v"].values
        )

    def test_durations_in_hours(self):
        """A model of lead times in hours reads timedelta64 as hours."""
        attrs = {"lead": {"units": "hours"}}
        data = dataset(attrs, lead=TEN)
        axis = find_coordinates(data, "lead").axes[0]
        steps = xr.DataArray((TEN * 3600e9).astype("m8[ns]"), dims="lead", name="lead")
        np.testing.assert_allclose(axis.read(steps), TEN)
        with pytest.raises(CoordinateError, match=r"is in 'days', .* 'no units'"):
            find_coordinates(dataset(lead=TEN), "lead").axes[0].read(steps)

    def test_undecoded_times(self):
        """Numbers since an epoch are times that nobody decoded."""
        data = dataset({"t": {"units": "days since 2000-01-01"}}, x=TEN, y=TEN, t=TEN)
        with pytest.raises(CoordinateError, match=r"'days since 2000-01-01' .*xr.decode_cf"):
            find_coordinates(data, ["x", "y", "t"])


class TestLazyCoordinates:
    def test_dates_that_are_not_in_memory(self):
        """Lazy point-wise dates are found like eager ones, or refused, but not forgotten."""
        dates = np.asarray(cftime.num2date(np.arange(10), "days since 2001-01-01", "noleap"))
        data = dataset(x=TEN, y=TEN[::-1], time=dates)
        options = FIXED | {"kernels": "matern12"}
        eager = xcopula.fit(data, "v", **options)
        lazy = xcopula.fit(data.chunk(), "v", **options)
        assert lazy.coordinates.names == eager.coordinates.names == ("x", "y", "time")
        with pytest.raises(CoordinateError, match=r"'time' may hold dates but is not in memory"):
            xcopula.fit(data.chunk(), "v", compute=False, **options)

    def test_a_constant_height(self, sites):
        """A height that is the same everywhere is no input, lazy or not."""
        flat = sites.assign_coords(alt=("station", np.full(sites.sizes["station"], 2.0), UP))
        for data in (flat, flat.chunk()):
            assert xcopula.fit(data, "rain", **FIXED).coordinates.names == ("lon", "lat")


class TestTables:
    def test_coordinates_among_the_variables(self, sites, model):
        """What a table of columns has as variables is found, by name or as asked."""
        frame = pd.DataFrame({n: sites[n].values for n in ("lon", "lat", "rain")})
        table = frame.to_xarray()
        for coords in (None, {"longitude": "lon", "latitude": "lat"}):
            found = xcopula.fit(table, "rain", coords=coords, **FIXED)
            assert found.coordinates.names == ("lon", "lat")
            assert found.log_likelihood == pytest.approx(model.log_likelihood)

    def test_a_latent_heat_is_no_latitude(self):
        """Variables whose names only begin like a coordinate's stay variables."""
        data = dataset(x=TEN, y=np.sin(TEN))
        data = data.assign(latent_heat=("site", TEN), longwave=("site", TEN[::-1]))
        model = xcopula.fit(data.assign(v=("site", np.cos(TEN))), "v", **FIXED)
        assert model.coordinates.names == ("x", "y")

    @pytest.mark.parametrize(
        "names",
        [("east", "north"), ("utm_x", "utm_y"), ("XCOORD", "YCOORD"), ("X", "Y"), ("lng", "Lat")],
    )
    def test_usual_names_of_columns(self, names):
        """The places of a table are its inputs, never its index."""
        places = dict(zip(names, (TEN, np.sin(TEN)), strict=True))
        frame = pd.DataFrame({**places, "v": np.cos(TEN)})
        assert xcopula.fit(frame, "v", **FIXED).coordinates.names == names

    def test_row_numbers_are_no_coordinate(self):
        """Columns that look like coordinates are listed, also where rows were dropped."""
        frame = pd.DataFrame({"E": TEN, "N": np.sin(TEN), "v": np.cos(TEN)})
        for rows in (frame, frame.drop(index=3)):
            with pytest.raises(CoordinateError, match=r"only counts rows.*Pass `coords=\['E', 'N'"):
                xcopula.fit(rows, "v", **FIXED)
        assert xcopula.fit(frame, "v", coords=["E", "N"], **FIXED).coordinates.names == ("E", "N")

    @pytest.mark.parametrize("kind", ["dates", "text", "zone", "objects"])
    def test_dates_under_any_name(self, kind):
        """A column of dates is the time: as dates, as ISO text, in a time zone (then UTC)."""
        days = pd.date_range("2024-05-01T12:00", periods=10, freq="D", tz="Europe/Zurich")
        columns = {
            "dates": days.tz_convert(None),
            "text": days.strftime("%Y-%m-%dT%H:%M%z"),
            "zone": days,
            "objects": days.astype(object),
        }
        frame = pd.DataFrame({"x": TEN, "y": np.sin(TEN), "v": np.cos(TEN)})
        table = pd.concat([frame.assign(sampled=day, v=frame.v + i) for i, day in enumerate(days)])
        table["sampled"] = np.repeat(np.asarray(columns[kind], object), 10)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = xcopula.fit(table, "v", **FIXED)
            assert model.predict(table[:3])["v"].notnull().all()
        assert model.coordinates.names == ("x", "y", "sampled")
        assert model.coordinates.axes[2].epoch.startswith("2024-05-01 10:00")
        assert any("converted to UTC" in str(w.message) for w in caught) == (kind != "dates")

    def test_time_zone_of_an_index(self):
        """An axis of time becomes UTC for the model, and a result keeps the labels it was given."""
        days = pd.date_range("2024-05-01", periods=10, tz="Europe/Zurich")
        data = xr.Dataset({"v": ("time", np.cos(TEN))}, coords={"time": days})
        with pytest.warns(UserWarning, match="'time' has the time zone Europe/Zurich: it was conv"):
            model = xcopula.fit(data, "v", **FIXED)
        with pytest.warns(UserWarning, match="converted to UTC"):
            found = model.predict(data)
        assert model.coordinates.axes[0].epoch.startswith("2024-04-30 22:00")
        assert found.indexes["time"].equals(data.indexes["time"])

    def test_dates_that_cannot_be_read(self):
        """Text that is no ISO date, and several columns of dates, are named."""
        frame = pd.DataFrame({"x": TEN, "y": np.sin(TEN), "v": np.cos(TEN)})
        days = pd.date_range("2024-05-01", periods=10)
        with pytest.raises(CoordinateError, match=r"'Date'.*such as '01\.05\.2024'.*pd\.to_dat"):
            xcopula.fit(frame.assign(Date=days.strftime("%d.%m.%Y")), "v", **FIXED)
        with pytest.raises(CoordinateError, match=r"\['begin', 'end'\] hold dates.*coords="):
            xcopula.fit(frame.assign(begin=days, end=days[::-1]), "v", **FIXED)

    def test_few_rows(self):
        """Of one row, or none, it is the number that is wrong."""
        frame = pd.DataFrame({"x": TEN, "y": np.sin(TEN), "v": np.cos(TEN)})
        for rows in (0, 1):
            with pytest.raises(ValueError, match=f"{rows} finite values of {rows}; a task needs"):
                xcopula.fit(frame[:rows], "v", **FIXED)

    def test_a_frame_all_the_way(self):
        """Fitted, conditioned, compared, predicted and planned on; results keep its places."""
        frame = pd.DataFrame({"east": TEN, "north": np.sin(TEN), "v": np.cos(TEN)})
        model = xcopula.fit(frame, "v", **FIXED)
        new = frame.assign(east=frame.east + 0.4).set_index(np.arange(50, 60))
        assert model.condition(new).size == 20
        for found in (model.predict(new), model.posterior(new).mean()):
            np.testing.assert_array_equal(found["east"], new.east)
            np.testing.assert_array_equal(found["index"], new.index)
        sites = model.design(new[["east", "north"]], 2)
        np.testing.assert_array_equal(sites["site_east"], new.east.loc[sites["site_index"]])
        assert xcopula.cross_validate(frame, "v", folds=2, **FIXED).sizes
        assert xcopula.compare(frame, "v", kernels=["se"], marginals=["normal"]).sizes

    def test_a_frame_with_a_name_twice(self):
        """An index would hide the column of its name."""
        frame = pd.DataFrame({"x": TEN, "y": np.sin(TEN), "v": np.cos(TEN)})
        for odd in (frame.rename_axis("x"), pd.concat([frame, frame[["v"]]], axis=1)):
            with pytest.raises(ValueError, match="twice, as columns or as a column and its index"):
                xcopula.fit(odd, "v", **FIXED)

    def test_columns_of_pandas(self):
        """Arrays that only pandas has become those of numpy, with their gaps."""
        frame = pd.DataFrame({"x": TEN, "y": np.sin(TEN), "v": np.cos(TEN)})
        model = xcopula.fit(frame.astype({"x": "Int64", "v": "Float64"}), "v", **FIXED)
        assert model.log_likelihood == xcopula.fit(frame, "v", **FIXED).log_likelihood


class TestProjections:
    def test_texts_that_differ_are_refused(self):
        """Zones that only a text tells apart are told apart, and the text is kept."""
        metres = {"x": {"axis": "X", "units": "m"}, "y": {"axis": "Y", "units": "m"}}
        data = dataset(metres, x=1e4 * TEN, y=1e4 * np.sin(TEN))
        data["v"] = ("site", np.cos(TEN), {"grid_mapping": "crs"})
        zones = [
            data.assign_coords(crs=((), 0, {"crs_wkt": f'PROJCRS["WGS 84 / UTM zone {z}N",...]'}))
            for z in (32, 33)
        ]
        model = xcopula.fit(zones[0], "v", **FIXED)
        assert "zone 32N" in model.predict(zones[0])["crs"].attrs["crs_wkt"]
        with pytest.raises(CoordinateError, match=r"another projection.*zone 32N.* / .*zone 33N"):
            model.predict(zones[1])

    @pytest.mark.parametrize(
        ("mine", "theirs", "same"),
        [
            ('PROJCRS["WGS 84 / UTM zone 33N"]', 'PROJCRS["WGS 84 / UTM zone 33N"]', True),
            ('PROJCS["WGS_1984_UTM_Zone_33N"]', 'PROJCRS["WGS 84 / UTM zone 33N"]', False),
            ("EPSG:32633", "EPSG:32632", False),
            ("+proj=utm +zone=33", "+proj=utm +zone=32", False),
        ],
    )
    def test_texts(self, mine, theirs, same):
        """Without a CRS that pyproj understands, only equal texts agree."""
        first, second = (Projection("crs", (("crs_wkt", text),)) for text in (mine, theirs))
        assert (first.differences(second) == []) == same

    def test_a_mapping_that_is_not_there(self):
        """A reference to a lost grid mapping is warned of."""
        data = dataset(x=TEN, y=np.sin(TEN))
        data["v"] = ("site", np.cos(TEN), {"grid_mapping": "crs"})
        with pytest.warns(
            UserWarning, match="refers to the grid mapping 'crs', which is not there"
        ):
            xcopula.fit(data, "v", **FIXED)


class TestGroups:
    def test_a_mask_leaves_out_groups_never_seen(self, sites):
        """Cells of an unseen group cost nothing and raise nothing where they are masked."""
        land = np.where(np.arange(sites.sizes["station"]) % 2, "forest", "field")
        data = sites.assign_coords(land=("station", land))
        model = xcopula.fit(data, "rain", **FIXED | {"marginals": by("land", "normal")})
        grid = xr.Dataset(
            {"land": ("p", ["forest", "sea", "field"])},
            coords={"lon": ("p", [8.0, 8.1, 8.2]), "lat": ("p", [47.0, 47.1, 47.2])},
        )
        for chunks in (None, {"p": 1}):
            out = model.predict(grid, 0.5, mask=grid["land"] != "sea", chunks=chunks)
            assert np.isnan(out["rain"].values).tolist() == [False, True, False]

    def test_models_of_other_groups_have_other_tokens(self, sites):
        """Keys 0 and 1 and keys "0" and "1" are not the same."""
        from dask.base import tokenize

        key = np.arange(sites.sizes["station"]) % 2
        options = FIXED | {"marginals": by("k", "normal")}
        models = [
            xcopula.fit(sites.assign_coords(k=("station", k)), "rain", **options)
            for k in (key, key.astype(str))
        ]
        assert models[0].log_likelihood == models[1].log_likelihood
        assert tokenize(models[0]) != tokenize(models[1])


class TestTime:
    def test_the_same_day_of_several_years(self):
        """A season that is the same every year takes several years of a 360-day calendar."""
        months = np.arange(36) * 30
        dates = np.asarray(cftime.num2date(months, "days since 2001-01-15", "360_day"))
        rng = np.random.default_rng(1)
        values = 10.0 * np.cos(2 * np.pi * months / 360.0) + rng.normal(size=(4, 36))
        data = xr.Dataset(
            {"tas": (("cell", "time"), values)},
            coords={
                "x": ("cell", [0.0, 1.0, 0.0, 1.0], {"units": "km"}),
                "y": ("cell", [0.0, 0.0, 1.0, 1.0], {"units": "km"}),
                "time": dates,
            },
        )
        model = xcopula.fit(data, "tas", coords=["x", "y", cycle("time")], **FIXED)
        assert 0.0 < model.parameters["nugget"].item() < 0.2
        later = cftime.num2date([360 * 9, 360 * 9 + 180], "days since 2001-01-15", "360_day")
        target = data.isel(cell=0).drop_vars("tas").drop_dims("time").assign_coords(time=later)
        np.testing.assert_allclose(
            model.predict(target, 0.5)["tas"].values, [10.0, -10.0], atol=1.0
        )


def test_cokriging_takes_a_normal_regression(sites):
    """The only family that a method knows may vary."""
    data = sites.assign_coords(h=("station", sites["lat"].values ** 2))
    for law in (regress("normal", on="h"), regress("auto", on="h")):
        model = xcopula.fit(data, "rain", method="cokriging", marginals=law, kernels="matern32")
        assert model.marginals[0].name == "normal ~ h"
    with pytest.raises(ValueError, match=r"takes normal marginals only, found \['gamma'\]"):
        xcopula.fit(data, "rain", method="cokriging", marginals=regress("gamma", on="h"))
