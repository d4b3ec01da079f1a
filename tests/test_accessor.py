"""The accessor delegates, and that is all it does."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import xarray as xr

import xcopula
from xcopula.accessor import MultiTaskCopulaAccessor
from xcopula.model.record import CopulaModel

FIXED = {"method": "full", "kernels": "matern32", "restarts": 0}


def shape(function, *without: str) -> list[tuple[str, object, object]]:
    """Return name, kind and default of each parameter, apart from some."""
    parameters = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in parameters if p.name not in without]


class TestSignatures:
    def test_fit(self):
        """The accessor's fit takes what the function takes, but for the data."""
        assert shape(MultiTaskCopulaAccessor.fit, "self") == shape(xcopula.fit, "data")

    def test_predict(self):
        """The accessor's predict takes what the function takes, but for the target."""
        assert shape(MultiTaskCopulaAccessor.predict, "self") == shape(xcopula.predict, "target")

    @pytest.mark.parametrize("name", ["predict", "posterior"])
    def test_methods_of_the_model(self, name):
        """The model's methods take what the functions take, but for the model."""
        function = getattr(xcopula.prediction, name)
        assert shape(getattr(CopulaModel, name), "self") == shape(function, "model")


class TestDelegation:
    def test_every_argument_of_fit_is_passed_on(self, monkeypatch):
        """No argument is lost or swapped on the way."""
        seen = {}

        def fit(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            seen.update(bound.arguments)

        signature = inspect.signature(xcopula.fit)
        monkeypatch.setattr("xcopula.fitting.fit.fit", fit)
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
        monkeypatch.setattr("xcopula.prediction.target.predict", predict)
        ds = xr.Dataset()
        given = {n: object() for n in signature.parameters if n != "target"}
        ds.mtcopula.predict(**given)
        assert seen.pop("target") is ds
        assert seen == given

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
