"""Data that are hard for neighbours, at a small scale: each right, or a clear error.

Where there are few enough values the exact solver says what is right.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from conftest import simulate_pair

import xcopula
from xcopula.errors import CoordinateError
from xcopula.solvers import Exact, Neighbours

KM = {"units": "km"}
FAST = {"kernels": "matern32", "marginals": "normal", "uncertainty": "plugin"}
FEW = Neighbours(10, 25)


def fit(data, primary="v", secondary=(), **options):
    """Fit by neighbours, in little time."""
    given = {"method": "full", "solver": FEW, **FAST, **options}
    return xcopula.fit(data, primary, secondary, **given)


def waves(*columns, seed=0, noise=0.3):
    """Return a smooth function of some columns, with noise."""
    rng = np.random.default_rng(seed)
    total = sum(np.sin((3.0 + k) * c + k) for k, c in enumerate(columns))
    return total + noise * rng.normal(size=np.shape(total))


def plane(x, y, **variables):
    """Return variables at sites in the plane."""
    values = variables or {"v": waves(x, y)}
    return xr.Dataset(
        {name: ("site", v) for name, v in values.items()},
        coords={"x": ("site", x, {**KM, "axis": "X"}), "y": ("site", y, {**KM, "axis": "Y"})},
    )


def at(x, y):
    """Return a target in the plane."""
    return xr.Dataset(coords={"x": ("p", np.array(x), KM), "y": ("p", np.array(y), KM)})


def is_sensible(model, target):
    """Check that a fit converged and that a prediction is finite, ordered, and as lazy as eager."""
    assert model.converged
    assert np.isfinite(model.log_likelihood)
    assert np.isfinite(model.theta).all()
    out = model.predict(target, [0.1, 0.5, 0.9])
    for name in out.data_vars:
        assert np.isfinite(out[name]).all()
        assert (out[name].diff("quantile") >= 0.0).all()
    chunked = model.predict(target, [0.1, 0.5, 0.9], chunks=2).compute()
    xr.testing.assert_allclose(chunked, out, rtol=1e-12)
    return out


def is_near_exact(model, target, *, nats=0.01, mean=0.1):
    """Check likelihood and latent prediction against the exact solver at the same parameters."""
    exact = replace(model, solver=Exact())
    size = model.observations.sample.size
    value, expected = model.objective(model.theta)[0], exact.objective(model.theta)[0]
    assert value == pytest.approx(expected, abs=nats * size)
    found, right = (m.posterior(target).latent for m in (model, exact))
    np.testing.assert_allclose(found["mean"], right["mean"], atol=mean)
    np.testing.assert_allclose(found["std"], right["std"], atol=mean)
    for name in model.tasks:
        crps, true = (float(m.loo(name)["crps"].mean()) for m in (model, exact))
        assert crps == pytest.approx(true, rel=0.02)


class TestSites:
    def test_all_on_a_line(self):
        """A transect in the plane, also askew: one coordinate does not vary across it."""
        along = np.random.default_rng(0).uniform(0.0, 10.0, 200)
        for x, y in ((along, np.zeros(200)), (along, 0.5 * along)):
            model = fit(plane(x, y, v=waves(along)))
            target = at(np.linspace(0.0, 10.0, 5), np.linspace(0.0, 5.0, 5) * (y.max() > 0.0))
            is_sensible(model, target)
            is_near_exact(model, target)

    def test_near_duplicates(self):
        """Clusters whose sites stand a ten-millionth of the extent apart are told apart."""
        rng = np.random.default_rng(1)
        x, y = (np.repeat(rng.uniform(0.0, 10.0, 60), 5) for _ in range(2))
        x, y = (c + 1e-6 * rng.uniform(-1.0, 1.0, 300) for c in (x, y))
        model = fit(plane(x, y, v=waves(x, y, noise=0.0)))  # and there is no nugget to see
        target = at([1.0, 5.0, x[0]], [2.0, 5.0, y[0]])
        out = is_sensible(model, target)
        assert float(out["v"].sel(quantile=0.5)[2]) == pytest.approx(waves(x, y, noise=0.0)[0])
        is_near_exact(model, target, mean=0.2)

    def test_identical_in_one_group(self):
        """Where all values have one date there is nothing to learn of time: the error says so."""
        x, y = np.random.default_rng(2).uniform(size=(2, 50))
        when = np.full(50, np.datetime64("2001-05-01", "ns"))
        data = plane(x, y).assign_coords(time=("site", when))
        with pytest.raises(CoordinateError, match=r"\['time'\] have one value at all 50"):
            fit(data, coords={"space": ["x", "y"], "time": "time"})

    def test_two_values_in_one_group(self):
        """Two dates are enough, and neighbours of both are found."""
        rng = np.random.default_rng(2)
        x, y = rng.uniform(0.0, 5.0, (2, 150))
        day = np.arange(150) % 2
        when = np.datetime64("2001-05-01", "ns") + day * np.timedelta64(1, "D")
        data = plane(x, y, v=waves(x, y + 0.2 * day)).assign_coords(time=("site", when))
        model = fit(data, coords={"space": ["x", "y"], "time": "time"}, solver=Neighbours(20, 40))
        target = at([1.0, 2.0], [3.0, 4.0]).assign_coords(time=("p", when[:2]))
        is_sensible(model, target)
        is_near_exact(model, target)

    @pytest.mark.parametrize("tiles", [True, False])
    @pytest.mark.parametrize("method", ["full", "transductive"])
    def test_a_target_far_outside(self, method, tiles):
        """It has the prior: the law's own median, and a latent deviation of one."""
        data, _ = simulate_pair(0)
        solver = Neighbours(10, 25, tiles=tiles)
        model = fit(data, "metal", "proxy", method=method, solver=solver)
        far = at([1e3, -1e6, 1e9], [0.0, 1e6, -1e9])
        is_sensible(model, far)
        latent = model.posterior(far).latent
        np.testing.assert_allclose(latent["mean"], 0.0, atol=1e-9)
        np.testing.assert_allclose(latent["std"], 1.0, atol=1e-9)
        median = model.predict(far, 0.5)["metal"]
        np.testing.assert_allclose(median, model.marginals[0].from_normal(np.zeros(3)), rtol=1e-9)


class TestSizes:
    @pytest.mark.parametrize("primary", ["few", "many"])
    def test_five_values_beside_three_thousand(self, primary):
        """The task of five is predicted by help of the other, whichever is the primary."""
        rng = np.random.default_rng(3)
        x, y = rng.uniform(0.0, 10.0, (2, 3000))
        many = waves(x, y)
        few = np.where(np.arange(3000) % 600 == 0, 2.0 * many + 1.0, np.nan)
        data = plane(x, y, few=few, many=many)
        secondary = "many" if primary == "few" else "few"
        model = fit(data, primary, secondary)
        assert sorted(model.observations.sample.sizes) == [5, 3000]
        target = at([2.0, 5.0, 50.0], [2.0, 5.0, 50.0])
        is_sensible(model, target)
        loo = model.loo("few")
        assert set(loo.sizes.values()) == {5}
        assert np.isfinite(loo["crps"]).all()
        # Five values that are a line in the other: they say a little of what it is.
        predicted = model.posterior(data.isel(site=[1, 2, 3]), variable="few").latent["std"]
        assert (predicted < 0.99).all()

    def test_fewer_values_than_neighbours(self):
        """Then nothing is approximated."""
        data, _ = simulate_pair(1, size=12, known=6)
        model = fit(data, "metal", "proxy", solver="neighbours")
        target = at([1.0, 2.0], [1.0, 2.0])
        is_sensible(model, target)
        is_near_exact(model, target, nats=1e-9, mean=1e-9)


class TestSeries:
    def series(self, stations, dates, seed=4):
        """Return a variable at stations over dates, space and time."""
        rng = np.random.default_rng(seed)
        x, y = rng.uniform(0.0, 10.0, (2, stations))
        day = (dates - dates[0]) / np.timedelta64(1, "D")
        # A wave that travels: neither place nor date alone tells it.
        values = 1.4 * np.sin((0.5 * x + 0.3 * y)[:, None] + 2.0 * np.pi * day / 60.0)
        values = values + 0.3 * rng.normal(size=values.shape)
        return xr.Dataset(
            {"v": (("station", "time"), values)},
            coords={"x": ("station", x, KM), "y": ("station", y, KM), "time": dates},
        )

    def test_long_series_at_few_stations(self):
        """Three thousand values at ten stations: neighbours are found in time and in space."""
        dates = np.datetime64("2001-01-01", "ns") + np.arange(300) * np.timedelta64(1, "D")
        data = self.series(10, dates)
        model = fit(data, coords={"space": ["x", "y"], "time": "time"})
        assert model.observations.sample.size == 3000
        when = dates[[0, 100, 299]] + np.timedelta64(12, "h")
        target = at([2.0, 5.0], [3.0, 5.0]).assign_coords(time=("time", when))
        is_sensible(model, target)
        # The wave is found: what is left out is predicted to about its noise.
        loo = model.loo(most=200)
        error = loo["observed"] - loo["median"]
        assert 0.25 < float(np.sqrt((error**2).mean())) < 0.4
        inside = (loo["observed"] > loo["lower"]) & (loo["observed"] < loo["upper"])
        assert 0.82 < float(inside.mean()) < 0.97

    def test_a_year_with_a_missing_month(self):
        """The gap is bridged with an interval that is wider, and as the exact solver would."""
        dates = np.datetime64("2001-01-01", "ns") + np.arange(0, 365, 5) * np.timedelta64(1, "D")
        data = self.series(8, dates)
        month = data["time"].dt.month == 7
        data = data.assign(v=data["v"].where(~month))
        model = fit(data, coords={"space": ["x", "y"], "time": "time"}, solver=Neighbours(20, 60))
        target = data[["x", "y"]].isel(station=slice(3)).assign_coords(time=dates)
        is_near_exact(model, target, nats=0.01, mean=0.12)
        out = is_sensible(model, target)
        width = out["v"].sel(quantile=0.9) - out["v"].sel(quantile=0.1)
        signal = model.posterior(target).latent["std"]
        gap = signal.where(month, drop=True).mean()
        beside = model.posterior(target.assign_coords(time=dates + np.timedelta64(36, "h"))).latent[
            "std"
        ]
        assert float(gap) > float(beside.where(~month.values).mean())
        assert (width >= 0.0).all()
