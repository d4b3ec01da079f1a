"""The accessor delegates, and that is all it does."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import xarray as xr

import xcopula
from xcopula.accessor import MultiTaskCopulaAccessor
from xcopula.model import CopulaModel, LazyModel
from xcopula.prediction import predicting

FIXED = {"method": "full", "kernels": "matern32", "anisotropy": False, "uncertainty": "plugin"}


def shape(function, *without: str) -> list[tuple[str, object, object]]:
    """Return name, kind and default of each parameter, apart from some."""
    parameters = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in parameters if p.name not in without]


class TestSignatures:
    @pytest.mark.parametrize(
        ("name", "subject", "named"),
        [("fit", "data", ["primary", "secondary"]), ("predict", "target", ["model", "quantiles"])],
    )
    def test_the_accessor_names_what_comes_first(self, name, subject, named):
        """What has a place is the function's, in its order; the rest is passed on by name."""
        mine = shape(getattr(MultiTaskCopulaAccessor, name), "self")
        theirs = shape(getattr(xcopula, name), subject)
        assert [p[0] for p in mine] == [*named, "options"]
        assert mine[:-1] == theirs[: len(named)]
        assert mine[-1][1] is inspect.Parameter.VAR_KEYWORD
        assert all(kind is inspect.Parameter.KEYWORD_ONLY for _, kind, _ in theirs[len(named) :])

    @pytest.mark.parametrize("name", ["predict", "posterior"])
    def test_methods_of_the_model(self, name):
        """The model's methods take what the functions take, but for the model."""
        function = getattr(predicting, name)
        for model in (CopulaModel, LazyModel):
            assert shape(getattr(model, name), "self") == shape(function, "model")


class TestDelegation:
    def test_every_argument_of_fit_is_passed_on(self, monkeypatch):
        """No argument is lost or swapped on the way."""
        seen = {}

        def fit(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            seen.update(bound.arguments)

        signature = inspect.signature(xcopula.fit)
        monkeypatch.setattr("xcopula.fitting.fit", fit)
        ds = xr.Dataset()
        given = {p.name: object() for p in signature.parameters.values() if p.name != "data"}
        ds.mtcopula.fit(given.pop("primary"), **given)
        assert seen.pop("data") is ds
        assert {k: seen[k] for k in given} == given

    def test_every_argument_of_predict_is_passed_on(self, monkeypatch):
        """No argument is lost or swapped on the way."""
        seen = {}

        def predict(*args, **kwargs):
            seen.update(signature.bind(*args, **kwargs).arguments)

        signature = inspect.signature(xcopula.predict)
        monkeypatch.setattr("xcopula.prediction.predict", predict)
        ds = xr.Dataset()
        given = {n: object() for n in signature.parameters if n != "target"}
        ds.mtcopula.predict(**given)
        assert seen.pop("target") is ds
        assert seen == given

    @pytest.mark.parametrize("name", ["weights", "inducing", "blocks", "anything"])
    def test_unknown_options_are_named(self, sites, grid, alone, name):
        """A keyword that the function has not ends in a TypeError that says which."""
        with pytest.raises(TypeError, match=f"`fit` has no option '{name}'"):
            sites.mtcopula.fit("metal", **{name: 1})
        with pytest.raises(TypeError, match=f"`predict` has no option '{name}'"):
            grid.mtcopula.predict(alone, **{name: 1})

    def test_fit_and_predict_equal_the_functions(self, sites, alone, grid):
        """Through the accessor the model and the prediction are the same."""
        fitted = sites.mtcopula.fit("metal", marginals="lognormal", **FIXED)
        np.testing.assert_array_equal(fitted.theta, alone.theta)
        xr.testing.assert_identical(grid.mtcopula.predict(fitted), xcopula.predict(alone, grid))

    def test_nothing_is_stored(self, sites, grid, alone):
        """The accessor holds the dataset and nothing else, before and after."""
        grid.mtcopula.predict(alone)
        sites.mtcopula.fit("metal", marginals="lognormal", **FIXED)
        for ds in (grid, sites):
            assert list(vars(ds.mtcopula)) == ["_dataset"]
            assert ds.mtcopula._dataset is ds

    def test_is_registered_on_datasets_only(self, sites):
        """Tasks are variables, so the accessor lives on a Dataset, and copes with an empty one."""
        assert hasattr(xr.Dataset(), "mtcopula")
        assert not hasattr(sites["metal"], "mtcopula")


def test_it_shows_what_it_does():
    """And no address."""
    text = repr(xr.Dataset({"a": 1.0}).mtcopula)
    assert "'a'" in text
    assert ".mtcopula.fit(primary, secondary)" in text
    assert " at 0x" not in text
