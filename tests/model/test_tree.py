"""A model as a tree that a person can read."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import xarray as xr
from sources import daily, stations

import xcopula
from xcopula.labels.observations import Observations
from xcopula.model.reading import from_tree
from xcopula.model.tree import decode, to_tree
from xcopula.process import Sample, Sites

QUICK = {"method": "full", "marginals": "normal", "kernels": "matern32", "restarts": 0}


class TestGroups:
    def test_data(self, model, sites):
        """Observations with coordinates, units and names; gaps are not there."""
        tree = model.to_datatree()
        assert set(tree.children) == {"data", "parameters", "structure"}
        data = tree["data/metal"].to_dataset(inherit=False)
        known = sites["metal"].dropna("site")
        np.testing.assert_array_equal(data["metal"].values, known.values)
        np.testing.assert_array_equal(data["x"].values, known["x"].values)
        assert set(data.coords) == {"x", "y"}
        assert data["metal"].attrs["units"] == "mg kg-1"
        assert data["metal"].attrs["long_name"] == "metal in topsoil"
        assert data["x"].attrs == {"units": "km", "axis": "X"}
        assert data.sizes == {"observation": 40, "origin_0_places_0": 40}

    def test_parameters_are_those_of_the_model(self, model):
        """By their natural names."""
        xr.testing.assert_identical(
            model.to_datatree()["parameters"].to_dataset(inherit=False), model.parameters
        )

    def test_theta_has_names(self, model, triple, fit_by):
        """One for each number."""
        for each in (model, triple, fit_by("full")):
            found = to_tree(each)["structure"].to_dataset()
            np.testing.assert_array_equal(found["theta"].values, each.theta)
            names = found["parameter"].values.tolist()
            assert len(set(names)) == each.theta.size
        names = to_tree(model)["structure/parameter"].values.tolist()
        assert names[0] == "length[structure 0, space, metal]"
        assert "noise_correlation[metal, proxy]" in names
        assert names[-1] == "law[proxy, 1]"

    def test_tables_of_laws(self, sites):
        """On dims that say what they are, each table once."""
        model = xcopula.fit(sites, "metal", **QUICK | {"marginals": "parzen"})
        laws = to_tree(model)["laws/metal"].to_dataset(inherit=False)
        assert set(laws) == {"sample", "table_x", "table_z", "table_slope"}
        assert laws["table_x"].dims == laws["table_z"].dims == ("table_knot",)
        assert "knots" in laws["table_x"].attrs["long_name"]
        law = model.marginals[0]
        np.testing.assert_array_equal(laws["table_slope"].values, law.table.slope)

    def test_the_root_says_what_it_is(self, triple):
        """And how the fit went; the rest is JSON."""
        attrs = triple.to_datatree().attrs
        assert attrs["title"] == "Copula process of metal with proxy, other"
        assert attrs["format"] == "xcopula model"
        assert attrs["schema"] == 1
        assert attrs["log_likelihood"] == triple.log_likelihood
        assert attrs["converged"] == int(triple.converged)
        assert (attrs["method"], attrs["solver"]) == ("transductive", "exact")
        assert json.loads(attrs["state"])["method"]["class"] == "Transductive"
        assert "history" not in attrs

    def test_no_class_is_named_by_its_module(self, fit_by):
        """A module may move."""
        assert "xcopula." not in to_tree(fit_by("fitc")).attrs["state"]


class TestData:
    def test_fields_of_laws(self, sloped):
        """By name, with units, or with the meaning of their numbers."""
        side = sloped.assign_coords(side=("site", np.where(sloped["x"] > 2.0, "far east", "west")))
        law = xcopula.by("side", xcopula.regress("normal", on=["height", "x"]))
        model = xcopula.fit(side, "metal", **QUICK | {"marginals": law})
        data = to_tree(model)["data/metal"].to_dataset(inherit=False)
        assert data["height"].attrs == {"units": "km"}
        assert data["side"].attrs["flag_meanings"] == "far_east west"
        assert data["side"].attrs["flag_values"] == [0.0, 1.0]
        assert set(data.variables) == {"x", "y", "metal", "side", "height", "origin_0_places"}

    @pytest.mark.parametrize("calendar", [None, "noleap"])
    def test_dates(self, calendar):
        """Days since the first in the file, dates for people."""
        data = daily()
        if calendar:
            data = data.convert_calendar(calendar, use_cftime=True)
        model = xcopula.fit(data, "level", **QUICK)
        raw = to_tree(model)["data/level"].to_dataset()
        assert raw["time"].dtype == np.float64
        found = model.to_datatree()["data/level/time"]
        assert set(found.values) <= set(data["time"].values)

    def test_the_globe(self):
        """Has CF attributes."""
        model = xcopula.fit(stations(), "rain", **QUICK)
        found = to_tree(model)["data/rain"].to_dataset()
        assert found["lon"].attrs == {"units": "degrees_east", "standard_name": "longitude"}

    def test_days_stay_numbers(self, sites):
        """Units of a time do not make a duration of a value."""
        days = sites.assign(metal=sites["metal"].assign_attrs(units="days"))
        tree = xcopula.fit(days, "metal", **QUICK).to_datatree()
        assert tree["data/metal/metal"].dtype == np.float64

    def test_odd_names(self, sites):
        """Names that no file takes are in the text, and in an attribute."""
        odd = sites.rename(metal="../metal/é", proxy="PROXY", x="lon/g").assign(
            proxy=sites["proxy"] + 1.0
        )
        coords = ["lon/g", "y"]
        model = xcopula.fit(odd, "../metal/é", ["PROXY", "proxy"], coords=coords, **QUICK)
        tree = to_tree(model)
        assert set(tree["data"].children) == {"variable_0", "PROXY", "proxy_2"}
        first = tree["data/variable_0"].to_dataset(inherit=False)
        assert first.attrs["name"] == "../metal/é"
        assert set(first.variables) == {"value_0", "axis_0", "y", "origin_0_places"}

    def test_attributes_of_coordinates_that_no_file_holds(self, sites):
        """They are left out, with a warning; labels of the data are there."""
        odd = sites.assign_coords(name=("site", [f"s{k}" for k in range(60)]))
        odd["name"].attrs = {"made": object(), "by": "hand"}
        model = xcopula.fit(odd, "metal", **QUICK)
        with pytest.warns(UserWarning, match="'made' of 'name' is a object, which a model file"):
            again = from_tree(to_tree(model), {})
        loo = again.loo()
        assert loo["name"].attrs == {"by": "hand"}
        assert loo["name"].values.tolist() == [f"s{k}" for k in range(40)]

    def test_attributes_that_no_file_holds(self, sites):
        """They are left out, and said to be; the others stay."""
        strange = {"who": {"a", "b"}, "when": np.array([1j]), "units": "mg", "deep": {"k": [1, 2]}}
        data = sites.assign(metal=sites["metal"].assign_attrs(strange))
        model = xcopula.fit(data, "metal", **QUICK)
        with pytest.warns(UserWarning, match=r"'w(ho|hen)' of 'metal' is a .* left out") as caught:
            tree = to_tree(model)
        assert len(caught) == 2
        assert '"deep"' in tree.attrs["state"]
        assert '"who"' not in tree.attrs["state"]


def test_what_is_made_again_is_known():
    """A new field of these must be written, or made again when a model is read."""
    assert [f.name for f in dataclasses.fields(Sample)] == [
        *("inputs", "offsets", "values", "sites", "covariates", "limits")
    ]
    assert [f.name for f in dataclasses.fields(Sites)] == ["places", "numbers", "tolerance"]
    assert {"positions", "sites", "sample"} <= {f.name for f in dataclasses.fields(Observations)}


def test_two_classes_of_one_name(sites):
    """A file could not tell them apart."""
    from test_state import RationalQuadratic

    twin = dataclasses.make_dataclass(
        "RationalQuadratic", [], bases=(RationalQuadratic,), frozen=True
    )
    model = xcopula.fit(sites, "metal", **QUICK | {"kernels": RationalQuadratic()})
    method = dataclasses.make_dataclass("Holds", [("kernel", object)], frozen=True)(twin())
    model = dataclasses.replace(model, method=method)
    with pytest.raises(TypeError, match="two classes that are called 'RationalQuadratic'"):
        to_tree(model)


def test_decoding_twice_changes_nothing(model):
    """What is decoded stays so."""
    tree = model.to_datatree()
    xr.testing.assert_identical(decode(tree), tree)
