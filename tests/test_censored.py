"""Limits of values through the doors of the package: fits, files, new data, folds, commands."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner

import xcopula
from xcopula.cli import main
from xcopula.errors import SupportError

OPTIONS = {
    **{"marginals": {"metal": "lognormal", "proxy": "normal"}, "kernels": "matern32"},
    **{"method": "full", "restarts": 0, "uncertainty": "plugin"},
}


@pytest.fixture(scope="module")
def data(sites) -> xr.Dataset:
    """The sites with a flag, a limit and units; a third of the metal is below 1.2."""
    low = sites["metal"] <= sites["metal"].quantile(0.3).item()
    limit = sites["metal"].quantile(0.3).item()
    return sites.assign(low=low.drop_attrs(), limit=xr.full_like(sites["metal"], limit))


@pytest.fixture(scope="module")
def fitted(data) -> xcopula.CopulaModel:
    """A model whose metal is below a limit at twelve sites."""
    return data.mtcopula.fit(
        "metal", "proxy", censored={"metal": float(data["limit"][0])}, **OPTIONS
    )


def limits(model, task=0):
    """Return the limits of a variable of a model."""
    return model.observations.sample.limits_of(task)


def test_the_sample_has_them(fitted, data):
    """Below the limit, of the primary only; the summary says so."""
    lower, upper = limits(fitted)
    below = data["metal"].values[:40] <= float(data["limit"][0])
    np.testing.assert_array_equal(lower == -np.inf, below)
    np.testing.assert_array_equal(upper[below], float(data["limit"][0]))
    np.testing.assert_array_equal(upper[~below], data["metal"].values[:40][~below])
    assert (limits(fitted, 1)[0] == limits(fitted, 1)[1]).all()
    told = f"metal: of 40 values {below.sum()} below a limit (by one limit for all)"
    assert told in fitted.summary()
    assert "between two limits" not in fitted.summary()


def test_a_lazy_fit_has_the_same(fitted, data):
    """Also where values and flags are backed by dask."""
    options = {**OPTIONS, "censored": {"metal": "low"}, "compute": False}
    lazy = xcopula.fit(data.chunk(site=25), "metal", "proxy", **options)
    model = lazy.compute()
    np.testing.assert_array_equal(limits(model)[0], limits(fitted)[0])
    assert model.variables[0].censored.parts == ("low",)
    assert lazy.variables[0].censored == model.variables[0].censored


def test_files_and_pickles(fitted, tmp_path, grid):
    """Limits and what told them come back to the last bit, and so do predictions."""
    path = fitted.save(tmp_path / "m.nc")
    for again in (xcopula.load(path), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(again.observations.sample.limits,
                                      fitted.observations.sample.limits)  # fmt: skip
        assert again.variables[0].censored == fitted.variables[0].censored
        found, expected = (m.predict(grid)["metal"] for m in (again, fitted))
        np.testing.assert_array_equal(found, expected)
    tree = fitted.to_datatree()["data/metal"]
    np.testing.assert_array_equal(tree["metal_lower"], limits(fitted)[0])
    np.testing.assert_array_equal(tree["metal_upper"], limits(fitted)[1])
    assert tree["metal_upper"].attrs["units"] == tree["metal"].attrs["units"]
    assert "proxy_upper" not in fitted.to_datatree()["data/proxy"]


class TestNewData:
    NEW = xr.Dataset(
        {"metal": ("site", [0.01, 50.0]), "low": ("site", [False, True])},
        coords={"x": ("site", [1.05, 2.05]), "y": ("site", [0.55, 1.55])},
    )

    def test_as_in_the_fit(self, fitted):
        """A limit of all values is kept; another way can be given."""
        new = self.NEW.isel(site=[0])
        limit = fitted.variables[0].censored.parts[0]
        assert limits(fitted.condition(new))[1, -1] == limit
        assert limits(fitted.condition(new))[0, -1] == -np.inf
        with pytest.warns(xcopula.errors.MarginalWarning, match=r"0\.01"):
            assert limits(fitted.condition(new, censored=None))[1, -1] == 0.01
        other = fitted.condition(self.NEW.isel(site=[1]), censored={"metal": "low"})
        assert limits(other)[0, -1] == -np.inf

    def test_only_other_data(self, fitted, data):
        """With the limit of the fit."""
        some = data[["metal", "proxy"]].isel(site=slice(0, 12))
        np.testing.assert_array_equal(limits(fitted.with_only(some)), limits(fitted)[:, :12])

    @pytest.mark.parametrize("by_name", [True, False])
    def test_what_told_it_is_missing(self, data, by_name):
        """It must be said anew."""
        flag = "low" if by_name else data["low"]
        model = xcopula.fit(data, "metal", "proxy", censored={"metal": flag}, **OPTIONS)
        new = self.NEW.drop_vars("low").isel(site=[0])
        match = r"by \['low'\], which the new data lack\." if by_name else r"told by arrays\."
        with pytest.raises(KeyError, match=match):
            model.condition(new)
        if by_name:
            assert limits(model.condition(self.NEW.isel(site=[1])))[0, -1] == -np.inf

    def test_limits_that_the_law_calls_impossible(self, fitted):
        """They are refused, as in a fit."""
        new = self.NEW.isel(site=[0])
        for value in (-1.0, -2.0):
            with pytest.raises(SupportError, match=r"'metal': 1 of its limits lie outside"):
                fitted.condition(new * 0.0 + value, censored={"metal": -0.5})


class TestRefused:
    def test_a_method_that_takes_numbers(self, data):
        """By name, before any work; the stored values can be taken."""
        options = OPTIONS | {"method": "cokriging", "marginals": "auto"}
        with pytest.raises(ValueError, match=r"method='cokriging' takes numbers only.*censored=N"):
            xcopula.fit(data, "metal", "proxy", censored={"metal": "low"}, **options)

    def test_a_limit_below_the_support(self, data):
        """Of a law that was asked for."""
        negative = data.assign(limit=data["limit"] - 10.0, metal=data["metal"].where(~data["low"]))
        pair = (None, negative["limit"].where(data["low"]))
        with pytest.raises(SupportError, match="limits lie outside the support of the lognormal"):
            xcopula.fit(negative, "metal", censored={"metal": pair}, **(OPTIONS | {
                "marginals": "lognormal"}))  # fmt: skip

    def test_a_fold_without_exact_values(self, data):
        """It is named before any fold is fitted."""
        number = np.where(data["low"], 0, 1) + xr.zeros_like(data["metal"], int)
        with pytest.raises(ValueError, match=r"Fold 1: All \d+ values of variable 'metal' are c"):
            xcopula.cross_validate(
                data, "metal", folds=number, censored={"metal": "low"},
                **(OPTIONS | {"marginals": "lognormal"}),
            )  # fmt: skip


@pytest.mark.parametrize("refit", [False, True])
def test_folds_keep_limits(data, refit, monkeypatch):
    """What a fold is trained on has the limits of its values."""
    from xcopula.validation import crossing

    seen = []
    real = crossing._both

    def watch(model, *rest):
        seen.append(model)
        return real(model, *rest)

    monkeypatch.setattr(crossing, "_both", watch)
    options = OPTIONS | {"censored": {"metal": "low", "proxy": None}}
    xcopula.cross_validate(data, "metal", "proxy", folds=2, refit=refit, **options)
    low = data["low"].values[:40]
    for model in seen:
        lower, upper = limits(model)
        values = model.observations.sample.values[: lower.size]
        index = [int(np.flatnonzero(data["metal"].values == v)[0]) for v in values]
        np.testing.assert_array_equal(lower < upper, low[index])
    assert len(seen) == 4  # of two folds, the model and the single task


def test_compare_takes_them(data):
    """By the same argument; a name that is no variable is refused."""
    given = {"kernels": ["matern32"], "marginals": ["lognormal"]}
    found = xcopula.compare(data, "metal", censored={"metal": "low"}, **given)
    assert np.isfinite(found["loo_crps"]).all()
    with pytest.raises(KeyError, match=r"`censored` names \['gold'\]"):
        xcopula.compare(data, "metal", censored={"gold": 1.0}, **given)


class TestCommands:
    @pytest.fixture
    def table(self, data, tmp_path):
        """A table of a laboratory."""
        limit, lines = float(data["limit"][0]), ["x,y,metal"]
        for x, y, value in zip(*(data[n].values for n in ("x", "y", "metal")), strict=True):
            cell = "" if np.isnan(value) else f"<{limit}" if value <= limit else repr(float(value))
            lines.append(f"{x},{y},{cell}")
        path = tmp_path / "lab.csv"
        path.write_text("\n".join(lines))
        return path

    def run(self, *words):
        """Run a command."""
        return CliRunner().invoke(main, list(map(str, words)))

    def test_cells_tell_limits(self, table, tmp_path):
        """A fit and new data of such tables know which values are limits."""
        quick = ("--marginal", "lognormal", "--kernel", "matern32", "--restarts", "0")
        out = tmp_path / "m.nc"
        done = self.run("fit", table, "--primary", "metal", *quick, "-o", out)
        assert done.exit_code == 0, done.output
        assert "metal: of 40 values 12 below a limit (found in 'metal_qualifier')" in done.output
        (tmp_path / "new.csv").write_text("x,y,metal\n0.5,0.5,<0.9\n1.5,0.5,2.5\n")
        again = tmp_path / "m2.nc"
        done = self.run("condition", out, tmp_path / "new.csv", "-o", again)
        assert done.exit_code == 0, done.output
        new = limits(xcopula.load(again))[:, 40:]
        np.testing.assert_array_equal(new, [[-np.inf, 2.5], [0.9, 2.5]])
        words = ("--as-stored", "-o", again, "--overwrite")
        assert self.run("condition", out, tmp_path / "new.csv", *words).exit_code == 0
        assert limits(xcopula.load(again))[0, 40] == 0.9

    def test_two_ways_at_once(self, table, tmp_path):
        """Cells that tell limits are not overruled unseen."""
        words = ("--primary", "metal", "--censored", "metal=1.0", "-o", tmp_path / "m.nc")
        done = self.run("fit", table, *words)
        assert done.exit_code == 2
        assert "Column 'metal' has cells such as <0.2" in " ".join(done.output.split())


def test_scores_say_what_is_known(fitted, data):
    """The limits stand beside the values, in leave-one-out and in folds."""
    found = fitted.loo()
    lower, upper = limits(fitted)
    np.testing.assert_array_equal(found["observed_lower"].dropna("site"), lower)
    np.testing.assert_array_equal(found["observed_upper"].dropna("site"), upper)
    assert "observed_lower" not in fitted.loo("proxy")
    options = OPTIONS | {"censored": {"metal": "low"}, "marginals": "lognormal"}
    folds = xcopula.cross_validate(data, "metal", folds=2, refit=False, **options)
    low = folds["observed_lower"].dropna("site").values
    np.testing.assert_array_equal(low == -np.inf, data["low"].values[:40])
    known = int((~data["low"].values[:40]).sum())
    assert f"MAE and RMSE are of the {known} values" in xcopula.format_validation(folds)


def test_climatology_takes_the_limits(data):
    """Its law is the one with the largest likelihood of numbers and limits."""
    from scipy import optimize, stats

    from xcopula.validation.scoring import Withheld, climatology

    model = xcopula.fit(
        data, "metal", **OPTIONS | {"marginals": "lognormal", "censored": {"metal": "low"}}
    )
    values, low = data["metal"].values[:40], data["low"].values[:40]

    def loss(theta):
        z = (np.log(values) - theta[0]) / np.exp(theta[1])
        return -np.where(low, stats.norm.logcdf(z), stats.norm.logpdf(z) - theta[1]).sum()

    location, scale = optimize.minimize(loss, [0.0, 0.0]).x
    withheld = Withheld.of(model.observations, np.arange(40))
    found = climatology(None, model, withheld, np.array([0.5, 0.9]))
    expected = np.exp(location + np.exp(scale) * stats.norm.ppf([0.5, 0.9]))
    np.testing.assert_allclose(found.quantiles[:, 0], expected, rtol=1e-3)


class TestFoldsAreChecked:
    """Before any work, with the limits of what a fold is trained on."""

    @pytest.fixture(autouse=True)
    def _no_work(self, monkeypatch):
        from xcopula.validation import crossing

        def work(*_, **__):
            raise RuntimeError("work began")

        monkeypatch.setattr(crossing, "_run", work)

    def validate(self, data, law, censored):
        """Ask for two folds of the metal, without a fit for each."""
        options = OPTIONS | {"marginals": law, "censored": {"metal": censored}}
        xcopula.cross_validate(data, "metal", folds=2, refit=False, **options)

    def test_a_law_that_takes_none(self, data):
        """It is refused for the fold."""
        with pytest.raises(ValueError, match=r"Fold 0: .*takes no intervals: \d+ of \d+ values"):
            self.validate(data, xcopula.regress("parzen", on="x"), "low")

    def test_numbers_that_only_stand_for_intervals(self, data):
        """A group whose stored values are all the same may have limits that differ."""
        north = data["y"] > 1.5
        metal = data["metal"].where(~north | data["metal"].isnull(), 1.0)
        step = np.random.default_rng(0).uniform(0.1, 0.8, (2, 60))
        same = data.assign(
            metal=metal,
            lower=metal.where(~north, metal - step[0]).drop_attrs(),
            upper=metal.where(~north, metal + step[1]).drop_attrs(),
        ).assign_coords(side=("site", np.where(north, "north", "south")))
        law = xcopula.by("side", "normal")
        with pytest.raises(ValueError, match=r"Fold 0: .*all values of north are the same"):
            self.validate(same, law, None)
        with pytest.raises(RuntimeError, match="work began"):
            self.validate(same, law, ("lower", "upper"))
