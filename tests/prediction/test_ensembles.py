"""The law of a function of each draw: batches, statistics, labels, and what is refused."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
import xarray as xr

from xcopula.prediction import ensembles
from xcopula.prediction.ensembles import Ensemble
from xcopula.process.ensemble import summarise


class White:
    """White noise that can be drawn from; it counts how many draws are alive at a time."""

    def __init__(self, shape=(3, 4), *, lazy=False, data=0):
        self.sizes = dict(zip(("y", "x"), shape, strict=True))
        self.lazy, self.data = lazy, data
        self.asked, self.alive, self.peak = [], [], 0

    def values(self, n, seed, start):
        each = [
            np.random.default_rng([seed, start + k]).normal(size=tuple(self.sizes.values()))
            for k in range(n)
        ]
        return np.stack(each)

    def sample(self, n=1, seed=0, *, start=0):
        self.asked.append((n, start))
        values = self.values(n, seed, start)
        self.alive = [r for r in self.alive if r() is not None] + [weakref.ref(values)]
        self.peak = max(self.peak, sum(len(r()) for r in self.alive))
        draws = xr.DataArray(
            values,
            dims=("realization", *self.sizes),
            coords={"realization": np.arange(start, start + n)},
            attrs={"units": "K"},
            name="noise",
        )
        return draws.chunk({"realization": 7}) if self.lazy else draws


def mean_of(draws):
    return draws.mean(("y", "x"))


class TestBatches:
    def test_no_ensemble_is_held(self, monkeypatch):
        """Draws come some at a time, each once, and are gone when the next ones come."""
        monkeypatch.setattr(ensembles, "drawn_together", lambda cells, data: 8)
        white = White()
        Ensemble.of(50, 3, 0.5).law(white, mean_of, ("y", "x"))
        assert white.asked == [(8, start) for start in range(0, 48, 8)] + [(2, 48)]
        assert white.peak == 8

    def test_batches_are_those_of_the_draws(self, monkeypatch):
        """Their size depends on the cells and on the data."""
        asked = []
        monkeypatch.setattr(
            ensembles, "drawn_together", lambda cells, data: asked.append((cells, data)) or 256
        )
        Ensemble.of(5, 0, 0.5).law(White((5, 2), data=17), mean_of, ("y", "x"))
        assert asked == [(10, 17)]

    def test_batches_do_not_change_the_result(self, monkeypatch):
        """Nor does laziness."""
        ensemble = Ensemble.of(40, 1, (0.1, 0.5))
        whole = ensemble.law(White(), mean_of, ("y", "x"))
        lazy = ensemble.law(White(lazy=True), mean_of, ("y", "x"))
        assert all(v.chunks is not None for v in lazy.data_vars.values())
        monkeypatch.setattr(ensembles, "drawn_together", lambda cells, data: 3)
        xr.testing.assert_identical(ensemble.law(White(), mean_of, ("y", "x")), whole)
        xr.testing.assert_allclose(lazy.compute(), whole, rtol=1e-12)


class TestStatistics:
    def test_they_are_those_of_all_draws(self):
        """On the dims that are left, with the levels as a coordinate."""
        levels = (0.1, 0.5, 0.8)
        found = Ensemble.of(60, 2, levels).law(White(), lambda d: d.max("x"), ("x",))
        expected = summarise(White().values(60, 2, 0).max(axis=2).T, np.array(levels))
        np.testing.assert_allclose(found["mean"], expected[:, 0])
        np.testing.assert_allclose(found["mean_error"], expected[:, 1])
        np.testing.assert_allclose(found["quantiles"], expected[:, 2:5].T)
        np.testing.assert_allclose(found["quantile_error"], expected[:, 5:].T)
        assert found["quantiles"].dims == ("quantile", "y")
        assert found["quantile"].values.tolist() == list(levels)
        assert found.attrs == {"realizations": 60, "seed": 2}

    def test_attributes_are_the_functions_own(self):
        """What draws are in may not be what the function returns: it says so itself."""
        ensemble = Ensemble.of(5, 0, 0.5)
        bare = ensemble.law(White(), lambda d: (d > 0.0).sum(("y", "x")), ("y", "x"))
        assert "units" not in bare["mean"].attrs
        stated = ensemble.law(White(), lambda d: mean_of(d).assign_attrs(units="m"), ("y", "x"))
        assert stated["quantiles"].attrs["units"] == stated["mean_error"].attrs["units"] == "m"
        given = ensemble.law(White(), mean_of, ("y", "x"), {"units": "K", "long_name": "noise"})
        assert given["mean"].attrs == {"units": "K", "long_name": "mean of noise"}
        assert given["quantile_error"].attrs["long_name"].endswith("of the quantiles of noise")

    def test_a_coordinate_that_is_called_like_a_statistic(self):
        """It gives way."""
        found = Ensemble.of(5, 0, 0.5).law(
            White(), lambda d: d.max("x").assign_coords(mean=("y", [1.0, 2.0, 3.0])), ("x",)
        )
        assert "mean" in found.data_vars

    def test_where_there_is_no_mean(self):
        """Quantiles stay."""
        endless = xr.DataArray([True, False, False], dims="y")
        found = Ensemble.of(30, 0, 0.5).law(White(), lambda d: d.max("x"), ("x",), endless=endless)
        for name in ("mean", "mean_error"):
            np.testing.assert_array_equal(found[name].isnull(), endless)
        assert found["quantiles"].notnull().all()


class TestRefused:
    @pytest.mark.parametrize(
        ("asked", "error", "match"),
        [
            ((0, 0, 0.5), ValueError, "`n` must be at least 1, found 0"),
            ((2.5, 0, 0.5), TypeError, r"`n` must be an integer, found 2\.5"),
            ((5, 1.5, 0.5), TypeError, r"`seed` must be an integer, found 1\.5"),
            ((5, "a", 0.5), TypeError, "`seed` must be an integer, found 'a'"),
            ((5, -1, 0.5), ValueError, "`seed` must be at least 0, found -1"),
            ((5, 0, 90), ValueError, "Quantile levels must lie strictly between 0 and 1"),
        ],
    )
    def test_what_is_asked(self, asked, error, match):
        """Before anything is drawn."""
        with pytest.raises(error, match=match):
            Ensemble.of(*asked)

    @pytest.mark.parametrize(
        ("function", "error", "match"),
        [
            (lambda d: 3.0, TypeError, r"must return a DataArray of numbers, found 3\.0"),
            (lambda d: mean_of(d).astype(str), TypeError, "of numbers, found dtype <U"),
            (lambda d: d.mean(), ValueError, r"the dim 'realization' and none of \['y', 'x'\]"),
            (lambda d: d.mean("x"), ValueError, r"found the dims \['realization', 'y'\]"),
            (
                lambda d: mean_of(d)[:2],
                ValueError,
                "one entry for each of 5 realizations, found 2",
            ),
        ],
    )
    def test_what_a_function_returns(self, function, error, match):
        """It must reduce the dims that it was given, and those only."""
        with pytest.raises(error, match=match):
            Ensemble.of(5, 0, 0.5).law(White(), function, ("y", "x"))


def test_an_error_that_is_not_known_says_why():
    """It is NaN where draws are too few, and the variable says how many are needed."""
    few, enough = (
        Ensemble.of(n, 0, [0.05, 0.5]).law(White(), mean_of, ("y", "x")) for n in (50, 76)
    )
    assert np.isnan(few["quantile_error"]).values.tolist() == [True, False]
    assert few["quantile_error"].attrs["comment"] == (
        "50 draws are too few for the error of some quantiles, which is NaN. Draws needed: "
        "0.05 (76)."
    )
    assert np.isfinite(enough["quantile_error"]).all()
    assert "comment" not in enough["quantile_error"].attrs
