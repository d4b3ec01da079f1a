"""The fitted parameters by their natural names."""

from __future__ import annotations

import numpy as np
import pytest

import xcopula
from xcopula.model.selection import Alternative, selection_table


class TestParameters:
    def test_dims_units_and_unit_variance(self, model):
        """Parameters are labelled, in the units of the data, and the variance is one."""
        p = model.parameters
        assert p["length_scale"].dims == ("structure", "group", "task")
        assert p["length_scale"].attrs["units"] == "km"
        assert list(p["task"].values) == ["metal", "proxy"]
        assert list(p["group"].values) == ["space"]
        assert list(p["axis"].values) == ["x", "y"]
        np.testing.assert_allclose(p["variance"].sum("structure") + p["nugget"], 1.0, rtol=1e-12)
        assert p["correlation"].dims == ("structure", "task", "other")
        np.testing.assert_allclose(np.diagonal(p["correlation"][0]), 1.0)
        assert list(p["marginal"].values) == ["lognormal", "normal"]
        assert (p["length_scale"] > 0.05).all()
        assert (p["length_scale"] < 10.0).all()

    def test_marginal_parameters_are_those_of_the_laws(self, model):
        """The table of parameters agrees with the laws themselves."""
        table = model.parameters["marginal_parameter"]
        for name, law in zip(model.tasks, model.marginals, strict=True):
            for key, value in law.parameters.items():
                assert float(table.sel(task=name, parameter=key)) == value

    def test_laws_without_a_parameter_have_nan(self, sites):
        """Laws of different parameters share a table, with NaN where there is none."""
        fitted = xcopula.fit(
            sites,
            "metal",
            "proxy",
            marginals={"metal": "gamma", "proxy": "normal"},
            method="full",
            kernels="matern32",
            coupling="icm",
            restarts=0,
        )
        table = fitted.parameters["marginal_parameter"]
        assert set(table["parameter"].values) > {"location"}
        assert np.isnan(table.sel(task="metal", parameter="location"))

    def test_several_structures(self, sites):
        """Nested structures share the variance with the nugget."""
        fitted = xcopula.fit(
            sites,
            "metal",
            marginals="lognormal",
            method="full",
            kernels="matern32",
            structures=2,
            restarts=0,
        )
        p = fitted.parameters
        assert p.sizes["structure"] == 2
        np.testing.assert_allclose(p["variance"].sum("structure") + p["nugget"], 1.0)
        assert "2 structures" in fitted.summary()

    def test_can_be_written(self, model, tmp_path):
        """Parameters and selection are plain netCDF."""
        model.parameters.to_netcdf(tmp_path / "parameters.nc")
        table = selection_table([Alternative("a", "se", "normal", -1.0, 4.0, True)])
        table.to_netcdf(tmp_path / "selection.nc")

    def test_length_scales_do_not_depend_on_units(self, sites, alone):
        """The same data in metres have the same lengths, in km; without units, their own."""
        metres = sites.assign_coords(
            {n: ("site", 1000.0 * sites[n].values, {"units": "m"}) for n in "xy"}
        )
        bare = metres.assign_coords({n: ("site", metres[n].values) for n in "xy"})
        for data, units, factor in ((metres, "km", 1.0), (bare, "", 1000.0)):
            fitted = xcopula.fit(
                data,
                "metal",
                marginals="lognormal",
                method="full",
                kernels="matern32",
                anisotropy=False,
            )
            lengths = fitted.parameters["length_scale"]
            np.testing.assert_allclose(
                lengths, factor * alone.parameters["length_scale"], rtol=1e-4
            )
            assert lengths.attrs["units"] == units
            assert fitted.log_likelihood == pytest.approx(alone.log_likelihood, abs=1e-6)
