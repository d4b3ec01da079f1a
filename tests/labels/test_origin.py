"""Where observations stood in the data: results get their dims and coordinates back."""

from __future__ import annotations

import dataclasses

import cftime
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xcopula
from xcopula.labels.observations import observe
from xcopula.labels.origin import Label, Origin, labels_of, take_origins

QUICK = {"marginals": "normal", "kernels": "matern32", "restarts": 0}


@pytest.fixture(scope="module")
def network() -> xr.Dataset:
    """Five named stations with eight days each, one value missing."""
    values = np.random.default_rng(0).normal(size=(5, 8))
    values[1, 2] = np.nan
    return xr.Dataset(
        {"level": (("station", "time"), values, {"units": "m"})},
        coords={
            "station": np.array(["v", "w", "x", "y", "z"], object),
            "time": pd.date_range("2020-01-01", periods=8),
            "lon": ("station", 5.0 + np.arange(5.0), {"units": "degrees_east"}),
            "lat": ("station", 50.0 + np.arange(5.0) ** 2, {"units": "degrees_north"}),
            "code": (("station", "time"), np.arange(40).reshape(5, 8)),
            "median": ("station", np.arange(5)),
            "run": 7,
        },
    )


def labelled(data, name="level", rows=None, taken=("median",)):
    """Return the labels of some observations of the first variable."""
    seen = observe(data, [name])
    return seen.labels(np.arange(seen.sample.size) if rows is None else rows, taken)


class TestSeveralDims:
    def test_every_coordinate_at_every_observation(self, network):
        """On dim observation; what a result is called is left out, a scalar stays one."""
        dim, coords = labelled(network)
        assert dim == "observation"
        assert set(coords) == {"station", "time", "lon", "lat", "code", "run"}
        flat = network.stack(observation=("station", "time"))
        flat = flat.where(flat["level"].notnull(), drop=True).reset_index("observation")
        for name in ("station", "time", "lon", "lat", "code"):
            assert coords[name][0] == ("observation",)
            np.testing.assert_array_equal(coords[name][1], flat[name].values)
        assert coords["run"][0] == ()
        assert coords["lon"][2] == {"units": "degrees_east"}

    def test_names_are_text_and_small(self, network):
        """Objects become text, kept once for each station; code is as large as the data."""
        (origin,) = observe(network, ["level"]).origins[0]
        labels = {label.name: label for label in origin.labels}
        assert labels["station"].values.dtype.kind == "U"
        assert labels["station"].values.shape == (5,)
        assert labels["code"].each
        assert labels["code"].values.shape == (39,)
        assert sum(label.values.size for label in origin.labels) < 39 + 5 * 8

    def test_nothing_is_shared_with_the_data(self, network):
        """A model closes its arrays: those of the data stay open."""
        xcopula.fit(network, "level", **QUICK)
        network["code"].values[0, 0] = 0
        network["lon"].values[0] = 5.0

    def test_unstacks_to_the_data(self, network):
        """The dims of the data are one line away."""
        loo = xcopula.fit(network, "level", **QUICK).loo()
        back = loo.set_index(observation=["station", "time"]).unstack("observation")
        np.testing.assert_array_equal(
            back["observed"].transpose("station", "time"), network["level"].values
        )


class TestOneDim:
    def test_its_own(self, sites):
        """With the index of the data, so that results align with it."""
        named = sites.assign_coords(site=[f"s{k}" for k in range(60)])
        model = xcopula.fit(named, "metal", **(QUICK | {"marginals": "lognormal"}))
        loo = model.loo()
        assert loo.sizes == {"site": 40}
        assert float(loo["observed"].sel(site="s7")) == float(named["metal"].sel(site="s7"))
        assert (loo["observed"] - named["metal"]).sizes == {"site": 40}
        assert loo["x"].attrs == sites["x"].attrs
        some = model.loo(most=7)
        xr.testing.assert_identical(some, loo.sel(site=some["site"]))

    def test_a_dim_of_length_one_becomes_a_scalar(self, network):
        """Stations of one day have the day beside them."""
        dim, coords = labelled(network.isel(time=[3]).drop_vars("code"))
        assert dim == "station"
        assert coords["time"][0] == ()
        assert coords["time"][1] == network["time"].values[3]
        assert coords["station"][1].tolist() == ["v", "w", "x", "y", "z"]

    def test_that_is_called_like_a_result(self, sites):
        """The results then are on dim observation."""
        dim, coords = labelled(sites.rename(site="crps"), "metal", taken=("crps",))
        assert dim == "observation"
        assert "x" in coords

    def test_levels_of_a_multiindex_stay(self, network):
        """Its tuples do not."""
        flat = network.drop_vars("code").stack(cell=("station", "time"))
        dim, coords = labelled(flat)
        assert dim == "cell"
        assert {"station", "time"} <= set(coords)
        assert "cell" not in coords

    def test_dates_that_are_objects(self):
        """They are kept as days, and come back as dates."""
        dates = [cftime.datetime(2000, 2, k, calendar="360_day") for k in range(25, 31)]
        data = xr.Dataset({"a": ("time", np.arange(6.0) ** 2)}, coords={"time": dates})
        _, coords = labelled(data, "a")
        assert coords["time"][1].tolist() == dates

    def test_missing_names_are_empty_and_odd_objects_left_out(self, sites):
        """A label can be written to a file."""
        names = np.array(["a", None] * 30, object)
        odd = np.array([{}] * 60, object)
        data = sites.assign_coords(name=("site", names), odd=("site", odd))
        _, coords = labelled(data, "metal")
        assert coords["name"][1].tolist() == ["a", ""] * 20
        assert "odd" not in coords


def origin(values, units="km", dim="site", name="x") -> Origin:
    """Return observations on one dim with one label."""
    label = Label(name, (dim,), np.asarray(values), {"units": units})
    return Origin((dim,), (len(values),), np.arange(len(values)), (label,))


class TestPieces:
    def test_one_after_the_other(self):
        """The labels of all pieces, in order; rows count over all."""
        pieces = (origin([1.0, 2.0, 3.0]), origin([4.0, 5.0]))
        dim, coords = labels_of(pieces, ())
        assert dim == "site"
        assert coords["x"][1].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
        some = take_origins(pieces, np.array([0, 2, 4]))
        assert labels_of(some, ())[1]["x"][1].tolist() == [1.0, 3.0, 5.0]
        assert len(take_origins(pieces, np.array([3, 4]))) == 1

    @pytest.mark.parametrize(
        "other", [origin([4.0], units="m"), origin(["a"]), origin([4.0], name="y")]
    )
    def test_that_do_not_match(self, other):
        """A coordinate in other units, of another kind, or that one piece lacks, is left out."""
        assert labels_of((origin([1.0, 2.0]), other), ())[1] == {}

    def test_of_other_dims(self):
        """They stand on dim observation."""
        dim, _ = labels_of((origin([1.0, 2.0]), origin([1.0, 2.0], dim="station")), ())
        assert dim == "observation"

    def test_a_scalar_stays_one_where_all_agree(self):
        """Else it has a value at each observation."""

        def dated(day):
            label = Label("day", (), np.array(day), {})
            return Origin(("site",), (2,), np.arange(2), (label,))

        assert labels_of((dated(1), dated(1)), ())[1]["day"][0] == ()
        dims, values, _ = labels_of((dated(1), dated(2)), ())[1]["day"]
        assert (dims, values.tolist()) == (("site",), [1, 1, 2, 2])


def test_inputs_are_there_in_any_case(network):
    """Where the data's own cannot be kept, in the units of the model."""
    seen = observe(network.isel(time=0, drop=True), ["level"])
    (piece,) = seen.origins[0]
    bare = Origin(piece.dims, piece.shape, piece.places, ())
    object.__setattr__(seen, "origins", ((bare,),))
    dim, coords = seen.labels(np.arange(5), ())
    assert dim == "station"
    np.testing.assert_array_equal(coords["lat"][1], network["lat"])
    assert coords["lat"][2] == {"units": "degrees"}


def test_an_origin_that_is_not_known(network):
    """Results have the inputs of the model alone."""
    seen = dataclasses.replace(observe(network, ["level"]), origins=())
    dim, coords = seen.labels(np.arange(39), ())
    assert dim == "observation"
    assert set(coords) == {"lon", "lat", "time"}


def test_labels_are_numbers_and_text(network):
    """A file can hold them: dates and durations are counts."""
    lag = network.assign_coords(lag=("time", np.arange(8) * np.timedelta64(90, "m")))
    (piece,) = observe(lag, ["level"]).origins[0]
    assert {label.values.dtype.kind for label in piece.labels} <= set("biufU")
    _, coords = labels_of((piece,), ())
    assert coords["lag"][1].dtype.kind == "m"
    assert coords["lag"][1][1] == np.timedelta64(90, "m")
