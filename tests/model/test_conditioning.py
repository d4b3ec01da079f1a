"""New data without a refit: the same as a model of all data at the same parameters."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import xarray as xr
from conftest import METHODS

import xcopula
from xcopula.errors import CoordinateError, CostError, FieldError, MarginalWarning, SupportError
from xcopula.labels.observations import observe
from xcopula.methods import Transductive
from xcopula.model.conditioning import with_rows
from xcopula.solvers import Exact, Neighbours

CLOSE = {"rtol": 1e-10, "atol": 1e-10}
# Sites that are not at the edge: without them the coordinates have the same extent.
NEW = [6, 12, 14, 30, 44, 51]


def split(data: xr.Dataset) -> tuple[xr.Dataset, xr.Dataset]:
    """Return the data without some sites, and these alone."""
    mask = np.isin(np.arange(data.sizes["site"]), NEW)
    for name in ("x", "y"):
        column = data[name].values
        assert {int(column.argmin()), int(column.argmax())}.isdisjoint(NEW)
    return data.isel(site=~mask), data.isel(site=mask)


def assert_equal(left, right, target) -> None:
    """Compare what two models predict, for all variables."""
    for variable in left.tasks:
        for of in ("observation", "signal"):
            a, b = (m.predict(target, variable=variable, of=of)[variable] for m in (left, right))
            np.testing.assert_allclose(a, b, **CLOSE)


class TestEqualsTheUnion:
    @pytest.mark.parametrize("method", METHODS)
    def test_of_every_method(self, fit_by, sloped, sloped_grid, method):
        """Part of the data, then the rest: the model of all, law with a field and all."""
        whole = fit_by(method)
        old, new = split(sloped)
        part = whole.with_only(old)
        assert part.observations.sample.size < whole.observations.sample.size
        again = part.condition(new)
        assert_equal(again, whole, sloped_grid)
        value, expected = (m.objective(whole.theta)[0] for m in (again, whole))
        assert value == pytest.approx(expected, rel=1e-10)

    @pytest.mark.parametrize("method", METHODS)
    def test_with_only(self, fit_by, sloped, sloped_grid, method):
        """The same as the arrays of these data read from scratch."""
        whole = fit_by(method)
        old, _ = split(sloped)
        laws = [None, xcopula.regress("normal", on="height")]
        seen = observe(old, ["metal", "proxy"], laws=laws)
        assert seen.coordinates == whole.coordinates
        expected = dataclasses.replace(whole, observations=seen)
        assert_equal(whole.with_only(old), expected, sloped_grid)

    @pytest.mark.parametrize("solver", [Exact(), Neighbours(neighbours=8, predict=15)])
    @pytest.mark.parametrize("name", ["model", "alone", "triple"])
    def test_of_both_solvers(self, request, trio, grid, name, solver):
        """The full method, a single task, and pairs of three variables."""
        whole = dataclasses.replace(request.getfixturevalue(name), solver=solver)
        old, new = split(trio)
        part = whole.with_only(old[list(whole.tasks)])
        assert_equal(part.condition(new[list(whole.tasks)]), whole, grid)
        # One variable after the other, in any order of rows, is the same again.
        for name in reversed(whole.tasks):
            part = part.condition(new[[name]].isel(site=slice(None, None, -1)))
        assert_equal(part, whole, grid)

    def test_given_anchors_are_numbered_anew(self, triple, trio, grid):
        """Anchors where the primary is known by now are dropped, as a fit would."""
        points = [trio[n].values[[6, 45, 50, 51]] for n in ("x", "y")]
        anchors = triple.observations.targets(points)
        method = Transductive(weights="calibrated", anchors=anchors)
        whole = dataclasses.replace(triple, method=method)
        old, new = split(trio)
        part = whole.with_only(old)
        assert part.method.anchors.sites[0] == -1
        again = part.condition(new)
        assert part.conditioned.anchors.points.size == 4
        assert again.conditioned.anchors.points.size == 3
        assert_equal(again, whole, grid)

    def test_some_of_its_own_rows(self, fit_by, sloped, sloped_grid):
        """By number, as cross-validation takes them."""
        whole = fit_by("full")
        keep = ~np.isin(np.arange(60), NEW)
        rows = np.flatnonzero(np.concatenate([keep[:40], keep]))
        some = with_rows(whole, rows)
        assert_equal(some, whole.with_only(split(sloped)[0]), sloped_grid)
        xr.testing.assert_allclose(
            some.loo("proxy"), whole.with_only(split(sloped)[0]).loo("proxy"), rtol=1e-9
        )


class TestReading:
    def test_by_role_units_and_time(self):
        """Coordinates by other names and in other units; a slice of one time."""
        rng = np.random.default_rng(2)
        days = np.datetime64("2024-03-01") + np.arange(9)
        data = xr.Dataset(
            {"level": (("station", "time"), rng.normal(size=(7, 9)), {"units": "m"})},
            coords={
                "time": days,
                "x": ("station", rng.uniform(0, 5, 7), {"units": "km", "axis": "X"}),
                "y": ("station", rng.uniform(0, 5, 7), {"units": "km", "axis": "Y"}),
            },
        )
        law = xcopula.regress("normal", on="time")
        whole = xcopula.fit(data, "level", marginals=law, kernels="matern12", restarts=0)
        part = whole.with_only(data.isel(time=slice(0, 8)))
        last = data.isel(time=8).rename(x="easting", y="northing", time="valid_time")
        for name in ("easting", "northing"):
            metres = 1000.0 * last[name]
            last = last.assign_coords({name: metres.assign_attrs(units="m", axis=name[0])})
        last["easting"].attrs["axis"], last["northing"].attrs["axis"] = "X", "Y"
        last["valid_time"].attrs["axis"] = "T"
        target = data.drop_vars("level").isel(time=slice(3, None, 5))
        target = target.assign_coords(x=target["x"] + 0.1)
        target["x"].attrs = data["x"].attrs
        assert_equal(part.condition(last), whole, target)

    def test_the_rest_of_the_record(self, model, sites):
        """What says how the fit went stays; the summary tells."""
        old, new = split(sites)
        assert model.since is None
        assert "of the fit" not in model.summary()
        part = model.with_only(old)
        assert part.since == (100, True, 0, 0)
        assert "conditioned on other data; parameters of the fit on 100" in part.summary()
        more = part.condition(new[["metal"]])
        assert more.since == (100, True, 4, 0)
        both = more.condition(new, replace=True)
        assert both.since == (100, True, 4 + 10, 4)
        assert "on other data and on 14 more values (4 in place of others)" in both.summary()
        assert "log-likelihood of the fit" in both.summary()
        for name in ("log_likelihood", "evaluations", "converged", "alternatives"):
            assert getattr(both, name) == getattr(model, name)
        assert both.theta is model.theta
        assert both.loo().sizes == {"site": 40}

    def test_new_values_win(self, model, sites, grid):
        """With replace, old values of the same variable at the same site are gone."""
        other = sites.isel(site=slice(3, 9))[["metal"]] * 1.5
        changed = sites.copy(deep=True)
        changed["metal"][3:9] *= 1.5
        expected = dataclasses.replace(model, observations=observe(changed, ["metal", "proxy"]))
        assert_equal(model.condition(other, replace=True), expected, grid)

    def test_a_value_at_a_place_beside(self, model):
        """One new value, as scalars, far from all others: its neighbourhood learns of it."""
        at = xr.Dataset({"metal": 6.0}, coords={"x": 8.0, "y": 8.0})
        before, after = (
            float(m.predict(at.assign_coords(x=8.01), 0.5)["metal"])
            for m in (model, model.condition(at))
        )
        assert after > 2.0 * before
        assert float(model.condition(at).predict(at, 0.5)["metal"]) == pytest.approx(6.0)

    def test_variables_of_several_sources(self, model, sites, grid):
        """A mapping of DataArrays; a variable without a value in it is no error."""
        old, new = split(sites)
        part = model.with_only(old)
        mapping = {"metal": new["metal"], "proxy": new["proxy"].rename(site="station")}
        assert_equal(part.condition(mapping), model, grid)
        empty = new.assign(metal=new["metal"] * np.nan)
        assert part.condition(empty).since.added == 6


class TestErrors:
    def test_a_site_that_has_a_value(self, model, sites):
        """Variable, count and the first place."""
        match = (
            r"have 3 values of 'metal' at sites where the model has one \(first: x=.*, y=.*\)\. "
            r"Leave them out, or pass `replace=True`"
        )
        with pytest.raises(ValueError, match=match):
            model.condition(sites[["metal"]].isel(site=[38, 39, 2]))

    def test_a_site_that_is_the_same_but_for_rounding(self, model, sites):
        """Single precision does not make it another site."""
        rounded = sites[["metal"]].isel(site=[4])
        rounded = rounded.assign_coords(x=rounded["x"].astype("f4"), y=rounded["y"].astype("f4"))
        for name in ("x", "y"):
            rounded[name].attrs = sites[name].attrs
        with pytest.raises(ValueError, match="have 1 values of 'metal' at sites"):
            model.condition(rounded)
        assert model.condition(rounded, replace=True).observations.sample.sizes == [40, 60]

    def test_two_new_values_at_one_site(self, model):
        """As in a fit."""
        twice = xr.Dataset(
            {"metal": ("k", [1.0, 2.0])}, coords={"x": ("k", [9.0, 9.0]), "y": ("k", [1.0, 1.0])}
        )
        with pytest.raises(ValueError, match=r"'metal' has several values at 1 of its sites"):
            model.condition(twice)

    @pytest.mark.parametrize(
        ("change", "error", "match"),
        [
            (lambda d: d.drop_vars("x"), CoordinateError, "lacks the coordinate 'x'"),
            (lambda d: d.rename(metal="lead", proxy="tin"), KeyError, "no variable of the model"),
            (lambda d: d * np.nan, ValueError, r"no value of \['metal', 'proxy'\]: all are NaN"),
            (lambda d: d.assign(metal=-d["metal"]), SupportError, "lognormal needs positive"),
            (lambda d: d.assign(metal=d["metal"] / 0.0), ValueError, "6 infinite values"),
            (lambda d: "data.nc", TypeError, "must be a Dataset"),
            (
                lambda d: d.assign(metal=d["metal"].assign_attrs(units="g kg-1")),
                ValueError,
                r"'metal' is in 'g kg-1', but the model was fitted to it in 'mg kg-1'\. Convert",
            ),
            (
                lambda d: d.assign_coords(x=d["x"].assign_attrs(units="s")),
                CoordinateError,
                r"Coordinate 'x' is in 's'",
            ),
        ],
    )
    def test_what_a_fit_refuses(self, model, sites, change, error, match):
        """Names, units, coordinates and support are checked before any work."""
        new = sites.isel(site=slice(0, 6))
        moved = new.assign_coords(x=(new["x"] + 5.0).assign_attrs(sites["x"].attrs))
        with pytest.raises(error, match=match):
            model.condition(change(moved))

    def test_groups_and_fields_of_a_law(self):
        """A group that the training data lack, and a field that the new data lack."""
        rng = np.random.default_rng(0)
        data = xr.Dataset(
            {"a": ("site", rng.normal(size=24))},
            coords={"x": ("site", rng.uniform(size=24)), "soil": ("site", ["clay", "sand"] * 12)},
        )
        law = xcopula.by("soil", "normal")
        fitted = xcopula.fit(data, "a", coords="x", marginals=law, kernels="matern32", restarts=0)
        new = xr.Dataset({"a": ("k", [0.1])}, coords={"x": ("k", [0.333])})
        with pytest.raises(FieldError, match="varies with 'soil', which is neither"):
            fitted.condition(new)
        with pytest.raises(FieldError, match="'a': soil peat never occurs in the training data"):
            fitted.condition(new.assign_coords(soil=("k", ["peat"])))
        sand = fitted.condition(new.assign_coords(soil=("k", ["sand"])))
        assert sand.observations.sample.covariates[0][-1].tolist() == [1.0]

    def test_another_date_of_a_model_without_time(self, sites, grid):
        """Dates are not mixed; the same model of another date has that date."""
        days = [sites.assign_coords(time=np.datetime64(f"2024-05-0{k}", "ns")) for k in (1, 2)]
        options = {"marginals": "lognormal", "kernels": "matern32", "restarts": 0}
        fitted = xcopula.fit(days[0], "metal", coords=["x", "y"], **options)
        moved = days[1].assign_coords(x=(days[1]["x"] + 9.0).assign_attrs(sites["x"].attrs))
        with pytest.raises(CoordinateError, match=r"new data have the date 2024-05-02.*with_only"):
            fitted.condition(moved)
        other = fitted.with_only(days[1])
        assert other.predict(grid)["time"].values == np.datetime64("2024-05-02", "ns")
        same = moved.assign_coords(time=days[0]["time"])
        assert fitted.condition(same).observations.sample.size == 80

    def test_dates_are_compared_as_those_of_a_target(self, sites):
        """By their names, for each station, to a millisecond; others do not matter."""
        day, later = np.datetime64("2024-05-01", "ns"), np.datetime64("2025-05-01", "ns")
        options = {"marginals": "lognormal", "kernels": "matern32", "restarts": 0}
        dated = sites.assign_coords(time=day, reftime=day - np.timedelta64(1, "D"))
        fitted = xcopula.fit(dated, "metal", coords=["x", "y"], **options)
        moved = dated.assign_coords(x=(sites["x"] + 9.0).assign_attrs(sites["x"].attrs))
        dim, size = sites["metal"].dims[0], sites["metal"].size
        days = np.where(np.arange(size) > 0, later, day)
        mixed = moved.assign_coords(time=dated["reftime"], reftime=dated["time"])
        for other in (moved.assign_coords(time=(dim, days)), mixed):
            with pytest.raises(CoordinateError, match="The new data have the date"):
                fitted.condition(other)
        near = moved.assign_coords(time=day + np.timedelta64(1, "us"), analysis=later)
        assert fitted.condition(near).observations.sample.size == 80

    def test_with_only_needs_every_variable(self, model, sites):
        """A task without a value is no task."""
        with pytest.raises(ValueError, match=r"no value of \['proxy'\]: every variable"):
            model.with_only(sites[["metal"]])

    def test_replace_is_a_flag(self, model, sites):
        """Not a list of names."""
        with pytest.raises(TypeError, match="`replace` must be True or False, found 'metal'"):
            model.condition(sites, replace="metal")

    def test_more_than_the_memory(self, model, sites, monkeypatch):
        """The exact solver is for some thousand values."""
        monkeypatch.setattr("xcopula.model.conditioning.machine_memory", lambda: 1e4)
        far = xr.Dataset({"metal": 1.0}, coords={"x": 8.0, "y": 8.0})
        with pytest.raises(CostError, match=r"would hold 101 values, .*solver='neighbours'"):
            model.condition(far)

    def test_an_extreme_value_is_told(self, model):
        """As after a fit."""
        far = xr.Dataset({"metal": 1e6}, coords={"x": 8.0, "y": 8.0})
        with pytest.warns(MarginalWarning, match="'metal' its value 1e\\+06 lies"):
            model.condition(far)

    def test_units_that_the_model_lacks(self, model, sites):
        """They are assumed, with a warning."""
        bare = dataclasses.replace(model.variables[0], attrs={})
        seen = dataclasses.replace(model.observations, variables=(bare, model.variables[1]))
        unaware = dataclasses.replace(model, observations=seen)
        far = xr.Dataset({"metal": ((), 1.0, {"units": "g"})}, coords={"x": 8.0, "y": 8.0})
        with pytest.warns(UserWarning, match="'metal' is in 'g', but it had no units"):
            unaware.condition(far)
