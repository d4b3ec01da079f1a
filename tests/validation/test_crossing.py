"""Cross-validation against models that were made by hand, fold by fold."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy.special import ndtr

import xcopula
from xcopula import cross_validate
from xcopula.errors import CoordinateError
from xcopula.validation import crossing

LAWS = {"metal": "lognormal", "proxy": "normal"}
QUICK = {"marginals": LAWS, "kernels": "matern32", "restarts": 0, "method": "full"}
QUICK |= {"uncertainty": "plugin", "anisotropy": False}
LEVELS = [0.05, 0.5, 0.95]


@pytest.fixture(scope="module")
def fixed(sites):
    """Four folds of random sites at the parameters of all data."""
    return cross_validate(sites, "metal", "proxy", folds=4, refit=False, **QUICK)


def masked(data, result, fold, *, names=("metal",)):
    """Return the data without the values of a fold, and their places."""
    test = np.zeros(data.sizes["site"], bool)
    test[:40] = result["fold"].values == fold
    hidden = {n: data[n].where(~test) for n in names}
    for name, array in hidden.items():
        array.attrs = data[name].attrs
    return data.assign(hidden), data.isel(site=test).drop_vars(list(data))


def check_fold(result, fold, model, target):
    """Compare the quantiles of a fold with what a model predicts."""
    own = result.isel(site=np.flatnonzero(result["fold"].values == fold))
    expected = model.predict(target, LEVELS)["metal"]
    np.testing.assert_allclose(own["quantiles"], expected, rtol=1e-9)
    np.testing.assert_allclose(own["median"], expected.sel(quantile=0.5), rtol=1e-9)


class TestFixedParameters:
    def test_each_fold_is_predicted_from_the_rest(self, sites, fixed, model):
        """By the model of all data, conditioned on what is left."""
        for fold in range(4):
            rest, target = masked(sites, fixed, fold)
            check_fold(fixed, fold, model.with_only(rest), target)

    def test_secondaries_dropped(self, sites, model):
        """They are withheld at the same places."""
        found = cross_validate(
            sites, "metal", "proxy", folds=4, refit=False, secondaries="drop", **QUICK
        )
        rest, target = masked(sites, found, 1, names=("metal", "proxy"))
        check_fold(found, 1, model.with_only(rest), target)
        assert found.attrs["secondaries"] == "drop"

    def test_a_buffer(self, sites, model):
        """It takes the metal around the withheld sites away, not the proxy."""
        options = {"folds": "blocks", "count": 3, "buffer": 0.4, "refit": False}
        found = cross_validate(sites, "metal", "proxy", **options, **QUICK)
        rest, target = masked(sites, found, 0)
        places = np.column_stack([sites["x"], sites["y"]])
        own = np.column_stack([target["x"], target["y"]])
        near = np.linalg.norm(places[:, None] - own, axis=2).min(axis=1) <= 0.4
        rest = rest.assign(metal=rest["metal"].where(~near).assign_attrs(rest["metal"].attrs))
        assert near.sum() > target.sizes["site"]
        check_fold(found, 0, model.with_only(rest), target)
        assert found.attrs["buffer"] == "space 0.4"

    def test_the_single_task(self, sites, fixed, alone):
        """The same without the proxy."""
        rest, target = masked(sites, fixed, 2)
        own = fixed.isel(site=np.flatnonzero(fixed["fold"].values == 2))
        expected = alone.with_only(rest[["metal"]]).posterior(target)
        np.testing.assert_allclose(own["median_single_task"], expected.median(), rtol=1e-9)

    def test_the_climatology(self, sites, fixed):
        """The moments of the logarithms of the training values, and nothing else."""
        logs = np.log(sites["metal"].values[:40])
        for fold in range(4):
            test = fixed["fold"].values == fold
            mean, std = logs[~test].mean(), logs[~test].std()
            np.testing.assert_allclose(fixed["median_climatology"][test], np.exp(mean), rtol=1e-6)
            np.testing.assert_allclose(
                fixed["pit_climatology"][test], ndtr((logs[test] - mean) / std), atol=1e-6
            )


class TestRefit:
    def test_each_fold_is_a_fit_on_the_rest(self, sites):
        """Parameters and all."""
        found = cross_validate(sites, "metal", "proxy", folds=2, **QUICK)
        for fold in range(2):
            rest, target = masked(sites, found, fold)
            check_fold(found, fold, xcopula.fit(rest, "metal", "proxy", **QUICK), target)
        single = xcopula.fit(rest, "metal", **(QUICK | {"marginals": "lognormal"}))
        own = found.isel(site=np.flatnonzero(found["fold"].values == 1))
        expected = single.predict(target, 0.5)["metal"]
        np.testing.assert_allclose(own["median_single_task"], expected, rtol=1e-9)
        assert found.attrs["parameters"] == "fitted in each fold"

    def test_each_fold_begins_once(self, sites, monkeypatch):
        """What the check before any work has found is what is fitted."""
        begin, sizes = crossing.begin, []

        def counted(observations, request):
            sizes.append(observations.sample.tasks)
            return begin(observations, request)

        monkeypatch.setattr(crossing, "begin", counted)
        cross_validate(sites, "metal", "proxy", folds=2, **QUICK)
        assert sorted(sizes) == [1, 1, 2, 2]  # each fold, without the proxy and with it

    def test_laws_that_vary(self, sloped):
        """Fields are read at the withheld places, groups are counted anew in each fold."""
        side = xr.where(sloped["y"] > 1.5, "north", "south")
        data = sloped.assign_coords(side=side.variable)
        law = xcopula.by("side", xcopula.regress("normal", on="height"))
        options = {"marginals": {"proxy": law}, "kernels": "matern32", "restarts": 0}
        found = cross_validate(data, "proxy", folds=2, **options)
        for fold in range(2):
            test = found["fold"].values == fold
            rest = data.assign(proxy=data["proxy"].where(~test).assign_attrs(data["proxy"].attrs))
            model = xcopula.fit(rest, "proxy", **options)
            expected = model.predict(data.isel(site=test), 0.5)["proxy"]
            np.testing.assert_allclose(found["median"][test], expected, rtol=1e-9)
        assert "crps_single_task" not in found
        # The climatology knows heights and sides, and no neighbours.
        spread = float(data["proxy"].std()) / np.sqrt(np.pi)  # of a normal law, at best
        assert float(found["crps_climatology"].mean()) < spread

    def test_families_that_are_chosen(self, sites):
        """The climatology has the family that the fold's model has chosen."""
        options = {"kernels": "matern32", "restarts": 0, "max_hours": None}
        law = xcopula.regress("auto", on="x")
        found = cross_validate(sites, "metal", folds=2, marginals=law, **options)
        assert np.isfinite(found["crps_climatology"]).all()


EVEN = (np.arange(400) + 0.5) / 400
ENDS = [0.025, 0.05, 0.1, 0.25, 0.75, 0.9, 0.95, 0.975]


@pytest.fixture(scope="module")
def fine(sites):
    """Quantiles at 400 even levels, and at the ends of the central intervals."""
    levels = np.union1d(EVEN, ENDS)
    return cross_validate(sites, "metal", "proxy", folds=4, refit=False, quantiles=levels, **QUICK)


class TestScores:
    def test_crps_is_that_of_many_quantiles(self, fine):
        """Exact scores against the mean pinball loss of a grid of quantiles."""
        gap = fine["quantiles"].sel(quantile=EVEN).values - fine["observed"].values
        loss = 2.0 * ((gap > 0) - EVEN[:, None]) * gap
        np.testing.assert_allclose(fine["crps"], loss.mean(axis=0), rtol=5e-3)

    def test_crps_is_that_of_an_ensemble(self, fine):
        """Against the energy form, E|Y - y| - E|Y - Y'| / 2, of a sample at even levels."""
        members, y = fine["quantiles"].sel(quantile=EVEN).values, fine["observed"].values
        between = np.abs(members[:, None] - members[None]).mean(axis=(0, 1))
        energy = np.abs(members - y).mean(axis=0) - 0.5 * between
        np.testing.assert_allclose(fine["crps"], energy, rtol=1e-2)

    def test_coverage_is_that_of_the_quantiles(self, fine):
        """A central interval holds a value where its quantiles enclose it."""
        q, y = fine["quantiles"], fine["observed"]
        for level, low, high in zip((0.95, 0.9, 0.8, 0.5), ENDS[:4], ENDS[:3:-1], strict=True):
            inside = (q.sel(quantile=low) <= y) & (y <= q.sel(quantile=high))
            np.testing.assert_array_equal(fine["covered"].sel(coverage=level), inside)

    def test_log_score_is_a_density(self, fine):
        """The slope of the distribution function between two quantiles about the value."""
        q, y = fine["quantiles"].values, fine["observed"].values
        levels = fine["quantile"].values
        for k in range(0, 40, 5):
            place = np.searchsorted(q[:, k], y[k])
            if 20 < place < 380:
                ends = [place - 8, place + 8]
                slope = np.diff(levels[ends])[0] / np.diff(q[ends, k])[0]
                assert np.exp(fine["log_score"].values[k]) == pytest.approx(slope, rel=0.05)


class TestResult:
    def test_on_the_dims_of_the_data(self, sites, fixed, tmp_path):
        """One dim stays, with its coordinates; the result can be written."""
        assert fixed.sizes == {"site": 40, "quantile": 3, "coverage": 4}
        np.testing.assert_array_equal(fixed["observed"], sites["metal"].values[:40])
        np.testing.assert_array_equal(fixed["x"], sites["x"].values[:40])
        assert fixed["crps"].attrs["units"] == "mg kg-1"
        assert fixed["observed"].attrs["long_name"] == "metal in topsoil"
        fixed.to_netcdf(tmp_path / "result.nc")
        xr.testing.assert_equal(xr.load_dataset(tmp_path / "result.nc"), fixed)

    def test_one_quantile(self, sites, fixed):
        """A number is a list of one."""
        found = cross_validate(
            sites, "metal", "proxy", folds=4, refit=False, quantiles=0.95, **QUICK
        )
        xr.testing.assert_identical(found["quantiles"], fixed["quantiles"].sel(quantile=[0.95]))

    def test_stations_keep_their_names(self, network):
        """On several dims: dim observation, all coordinates beside it."""
        options = {"marginals": "normal", "kernels": "matern12", "restarts": 0}
        found = cross_validate(network, "flow", "level", folds="stations", refit=False, **options)
        assert found.sizes["observation"] == 47
        by_name = found["fold"].groupby("station")
        assert all(np.unique(part).size == 1 for _, part in by_name)
        assert found["time"].dtype.kind == "M"
        np.testing.assert_array_equal(
            found["observed"], network["flow"].values[network["flow"].notnull()]
        )

    def test_pressure_levels(self, sites):
        """An input called level keeps its values."""
        data = sites.rename(y="level")
        options = QUICK | {"marginals": "lognormal", "coords": ["x", "level"]}
        found = cross_validate(data, "metal", folds=2, refit=False, **options)
        np.testing.assert_array_equal(found["level"], sites["y"].values[:40])
        assert found["coverage"].values.tolist() == [0.5, 0.8, 0.9, 0.95]

    def test_given_labels(self, network):
        """The folds keep their names; a mapping of DataArrays will do."""
        options = {"marginals": "normal", "kernels": "matern12", "restarts": 0}
        region = xr.DataArray(list("aabbccab"), dims="station")
        data = {name: network[name].assign_coords(region=region) for name in ("flow", "level")}
        found = cross_validate(data, "flow", "level", folds="region", refit=False, **options)
        assert (found["fold"].values == found["region"].values).all()
        again = cross_validate(network, "flow", "level", folds=region, refit=False, **options)
        np.testing.assert_array_equal(again["crps"], found["crps"])

    def test_by_seed(self, sites, fixed):
        """The same seed gives the same result to the last bit, another one other folds."""
        again = cross_validate(sites, "metal", "proxy", folds=4, refit=False, **QUICK)
        xr.testing.assert_identical(again, fixed)
        other = cross_validate(sites, "metal", "proxy", folds=4, refit=False, seed=1, **QUICK)
        assert (other["fold"] != fixed["fold"]).any()


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "error", "match"),
        [
            ({"secondaries": "hide"}, ValueError, "`secondaries` must be 'keep' or 'drop', found"),
            ({"refit": "no"}, TypeError, "`refit` must be True or False"),
            ({"folds": "squares"}, ValueError, "Unknown folds 'squares'"),
            ({"folds": 100}, ValueError, "100 folds were asked for, but the primary has 40 sites"),
            ({"folds": "time"}, ValueError, "needs a time among the coordinates"),
            ({"folds": "stations"}, ValueError, "needs places with several values"),
            ({"buffer": 99.0}, ValueError, "Fold 0 leaves nothing of 'metal' to train on"),
            ({"buffer": {"time": 1}}, ValueError, "`buffer` names groups of coordinates"),
            ({"quantiles": 1.5}, ValueError, "strictly between 0 and 1"),
            ({"seed": -1}, ValueError, "`seed` must be at least 0"),
            ({"method": "magic"}, ValueError, "magic"),
            ({"neighbours": 5}, TypeError, "has no option 'neighbours'. It takes .*coords, crs"),
            ({"compute": False}, TypeError, "has no option 'compute'"),
            ({"progress": False}, TypeError, "has no option 'progress'"),
            ({"marginals": {"lead": "normal"}}, KeyError, "`marginals` names"),
            ({"coords": "height"}, CoordinateError, "height"),
        ],
    )
    @pytest.mark.parametrize("refit", [True, False])
    def test_before_any_work(self, sites, monkeypatch, options, error, match, refit):
        """Nothing is fitted."""

        def never(*arguments, **others):
            raise AssertionError("a fit was started")

        monkeypatch.setattr("xcopula.validation.crossing.fit_in_steps", never)
        monkeypatch.setattr("xcopula.validation.crossing._fit_all", never)
        with pytest.raises(error, match=match):
            cross_validate(sites, "metal", "proxy", **(QUICK | {"refit": refit} | options))

    def test_inputs_that_are_called_like_results(self, sites, fixed):
        """All names of a result but those of the data."""
        for name in {*fixed.variables} - {*sites.variables}:
            data = sites.rename(y=name)
            with pytest.raises(CoordinateError, match=f"'{name}'.*Rename the coordinate"):
                cross_validate(data, "metal", "proxy", coords=["x", name], **QUICK)

    @pytest.mark.parametrize("refit", [True, False])
    def test_too_few_for_a_law(self, sites, refit):
        """Groups of a law need values in each fold's training data."""
        side = np.where(np.arange(60) % 7 == 0, "left", "right")
        data = sites.assign_coords(side=("site", side))
        law = {"marginals": xcopula.by("side", "normal")}
        with pytest.raises(ValueError, match=r"Fold 0: .*needs at least 5 values in each group"):
            cross_validate(data, "metal", folds=2, refit=refit, **(QUICK | law))
