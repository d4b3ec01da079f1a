"""Realizations of a posterior: its mean, covariance and laws, through the data."""

from __future__ import annotations

import numpy as np
import pytest
import reference
import xarray as xr
from conftest import METHODS
from scipy import stats
from scipy.special import ndtri

import xcopula
from xcopula.labels.observations import to_targets
from xcopula.process import paths
from xcopula.solvers import Neighbours

FIXED = {"kernels": "matern32", "restarts": 0, "uncertainty": "plugin", "anisotropy": False}
DRAWS = 2000
# By chance the largest of some dozen errors is so many standard errors.
FAR = 4.2


@pytest.fixture(autouse=True)
def few_waves(monkeypatch):
    """Moments over draws are exact whatever the number of waves."""
    monkeypatch.setattr(paths, "WAVES", 24)


def cells_of(grid: xr.Dataset) -> xr.Dataset:
    return grid.isel(x=[0, 1, 4], y=[0, 1])


def latent_draws(model, target, **options) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores (draws, m) of draws, and latent mean and deviation (m,) of the posterior."""
    posterior = model.posterior(target, **options)
    drawn = posterior.sample(DRAWS).transpose("realization", ...)
    assert drawn.dims[1:] == posterior.dims
    drawn = drawn.values.reshape(DRAWS, -1)
    law = model.marginals[posterior.query.task]
    latent = posterior.latent
    return law.to_normal(drawn), latent["mean"].values.ravel(), latent["std"].values.ravel()


def check_moments(scores: np.ndarray, mean: np.ndarray, std: np.ndarray) -> None:
    assert abs((scores.mean(axis=0) - mean) / std).max() * np.sqrt(DRAWS) < FAR
    assert abs(scores.std(axis=0) / std - 1.0).max() * np.sqrt(2 * DRAWS) < FAR


def left(model, target, nugget=True) -> np.ndarray:
    """Return the covariance, given the data, of all variables at cells in (y, x), densely."""
    process, sample = model.process, model.observations.sample
    y, x = (c.values.ravel() for c in xr.broadcast(target["y"], target["x"]))
    order = [{"x": x, "y": y}[n] for n in model.coordinates.names]
    cells = to_targets(model.coordinates, model.predictor.sites, order)
    theta = model.theta[: process.covariance.size]
    tasks = [*reference.parts(sample)[0], *[cells.inputs.T] * sample.tasks]
    # Tasks of cells stand behind those of the data: sort them in.
    count = sample.tasks
    inputs = [np.vstack([tasks[i], tasks[count + i]]) for i in range(count)]
    fresh = sample.sites.max() + 1 + np.arange(cells.size)
    numbers = [np.append(sample.sites[sample.task(i)], fresh) for i in range(count)]
    whole = reference.covariance_matrix(process.covariance, theta, inputs, np.concatenate(numbers))
    stops = np.cumsum([len(block) for block in inputs])
    new = np.concatenate([np.arange(stop - cells.size, stop) for stop in stops])
    if not nugget:
        own = reference.task_matrices(process.covariance, theta)[-1]
        whole[np.ix_(new, new)] -= np.kron(own, np.eye(cells.size))
    data = np.delete(np.arange(len(whole)), new)
    across = whole[np.ix_(new, data)]
    return whole[np.ix_(new, new)] - across @ np.linalg.solve(whole[np.ix_(data, data)], across.T)


@pytest.mark.parametrize("of", ["observation", "signal"])
def test_joint_law_of_cells_and_variables(fit_by, sloped_grid, of):
    """Against dense matrices of data and cells."""
    model, target = fit_by("full"), cells_of(sloped_grid)
    metal, mean, std = latent_draws(model, target, of=of)
    check_moments(metal, mean, std)
    proxy = model.posterior(target, variable="proxy", of=of).sample(DRAWS)
    height = target["height"].transpose("y", "x").values.reshape(-1, 1)
    proxy = (
        model.marginals[1]
        .at(height)
        .to_normal(proxy.transpose("realization", "y", "x").values.reshape(DRAWS, -1))
    )
    want = left(model, target, nugget=of == "observation")
    error = np.cov(np.hstack([metal, proxy]).T) - want
    scale = np.sqrt((np.outer(np.diag(want), np.diag(want)) + want**2) / DRAWS)
    assert abs(error / scale).max() < FAR
    assert stats.kstest((metal[:, 0] - mean[0]) / std[0], "norm").pvalue > 1e-3


@pytest.mark.parametrize("name", [*METHODS])
def test_every_method_has_its_moments(fit_by, sloped_grid, name):
    model = fit_by(name)
    check_moments(*latent_draws(model, cells_of(sloped_grid)))


@pytest.mark.parametrize("variable", ["metal", "other"])
def test_three_variables_by_pairs(triple, grid, variable):
    """The joint process of the parameters, standardised to the combined moments."""
    check_moments(*latent_draws(triple, cells_of(grid), variable=variable))


def test_neighbours(trio, grid):
    laws = {"metal": "lognormal", "proxy": "normal"}
    model = xcopula.fit(
        trio, "metal", "proxy", marginals=laws, solver=Neighbours(15, predict=12), **FIXED
    )
    check_moments(*latent_draws(model, cells_of(grid)))


def test_draws_go_through_the_data(model, sites):
    known = sites.isel(site=slice(0, 40))
    drawn = model.posterior(known).sample(20)
    np.testing.assert_allclose(drawn, np.tile(known["metal"], (20, 1)), rtol=1e-10)
    signal = model.posterior(known, of="signal").sample(20)
    assert (abs(signal - known["metal"]) > 1e-6).all()


@pytest.mark.parametrize("name", ["transductive", "fitc", "bcm"])
def test_other_methods_go_through_the_data_too(fit_by, sloped, name):
    known = sloped.isel(site=slice(0, 40))
    drawn = fit_by(name).posterior(known).sample(5)
    np.testing.assert_allclose(drawn, np.tile(known["metal"], (5, 1)), rtol=1e-10)


def test_near_the_data_a_path_is_near_them(alone, sites):
    """The signal is continuous: half a metre off a site it has the signal of the site."""
    place = sites.isel(site=slice(0, 5))
    off = place.assign_coords(x=place["x"] + 0.0005)
    both = [alone.posterior(t, of="signal").sample(8).values for t in (place, off)]
    assert abs(both[0] / both[1] - 1.0).max() < 0.05


@pytest.mark.parametrize("method", ["full", "transductive"])
def test_inflated_errors(sites, grid, method):
    """Draws deviate from the mean as much as the posterior says, and go through the data."""
    few = sites.isel(site=slice(0, 15))
    options = FIXED | {"marginals": "lognormal", "method": method, "uncertainty": "inflated"}
    model = xcopula.fit(few, "metal", "proxy", **options)
    assert model.uncertainty.factor(0) > 1.1
    check_moments(*latent_draws(model, cells_of(grid)))
    known = few.where(few["metal"].notnull(), drop=True)
    drawn = model.posterior(known).sample(3)
    np.testing.assert_allclose(drawn, np.tile(known["metal"], (3, 1)), rtol=1e-10)


class TestLaws:
    def test_that_vary(self, fit_by, sloped_grid):
        model = fit_by("full")
        posterior = model.posterior(cells_of(sloped_grid), variable="proxy")
        drawn = posterior.sample(DRAWS)
        below = (drawn <= posterior.quantile(0.25)).mean("realization")
        assert (abs(below - 0.25) < FAR * np.sqrt(0.25 * 0.75 / DRAWS)).all()

    def test_with_an_atom(self):
        rng = np.random.default_rng(0)
        x = np.sort(rng.uniform(0.0, 10.0, 40))
        wet = np.maximum(np.sin(x) + 0.3 * rng.normal(size=40), 0.0)
        ds = xr.Dataset({"rain": ("site", wet)}, {"x": ("site", x, {"units": "km"})})
        model = xcopula.fit(ds, "rain", **FIXED)
        assert model.marginals["rain"].atom == 0.0
        target = xr.Dataset(coords={"x": ("x", [1.5, 4.8, 11.0], {"units": "km"})})
        posterior = model.posterior(target)
        drawn = posterior.sample(DRAWS)
        dry = (drawn == 0.0).mean("realization")
        want = posterior.cdf(0.0)
        assert (abs(dry - want) < FAR * np.sqrt(0.25 / DRAWS) + 1e-12).all()
        at_sites = model.posterior(ds).sample(10)
        np.testing.assert_allclose(at_sites, np.tile(wet, (10, 1)), rtol=1e-9, atol=1e-12)


@pytest.fixture(scope="module")
def censored(sites) -> xr.Dataset:
    """Sites whose lowest values are limits."""
    metal = sites["metal"].isel(site=slice(0, 40))
    below = metal < 1.2
    kept = sites.isel(site=slice(0, 40)).assign(metal=metal.where(~below, 1.2), below=below)
    return kept.drop_vars("proxy")


@pytest.fixture(scope="module")
def limited(censored):
    """A model that knows them."""
    options = FIXED | {"marginals": "lognormal"}
    return xcopula.fit(censored, "metal", censored={"metal": "below"}, **options)


class TestIntervals:
    def test_values_lie_within_their_limits(self, limited, censored):
        drawn = limited.posterior(censored).sample(200)
        below = censored["below"]
        assert (drawn.where(below) <= 1.2 * (1.0 + 1e-9)).where(below, True).all()
        np.testing.assert_allclose(
            drawn.where(~below, 0.0), xr.zeros_like(drawn) + censored["metal"].where(~below, 0.0)
        )

    def test_they_have_their_law(self, limited, censored):
        target = censored.where(censored["below"], drop=True).isel(site=slice(0, 4))
        posterior = limited.posterior(target)
        drawn = posterior.sample(DRAWS)
        for level in (0.1, 0.5, 0.9):
            below = (drawn <= posterior.quantile(level)).mean("realization")
            # Expectation propagation is nearly, not quite, the law of a value and its neighbours.
            error = np.sqrt(level * (1.0 - level) / DRAWS)
            assert (abs(below - level) < FAR * error + 0.01).all()

    def test_so_have_cells_beside_them(self, limited, grid):
        check_moments(*latent_draws(limited, cells_of(grid)))


def test_replicates_are_new_measurements(sites):
    """Two samplers at one site: a third measures something else there."""
    some = sites[["metal"]].isel(site=slice(0, 25))
    noise = np.exp(0.1 * np.random.default_rng(3).normal(size=25))
    twice = xr.concat([some, some.assign(metal=some["metal"] * noise)], "site")
    options = FIXED | {"marginals": "lognormal", "replicates": True}
    model = xcopula.fit(twice, "metal", **options)
    scores, mean, std = latent_draws(model, some.isel(site=slice(0, 5)))
    assert (std > 0.05).all()
    check_moments(scores, mean, std)


def test_a_lattice_leaves_masked_cells_out(model, grid):
    mask = (grid["x"] + 0.0 * grid["y"]) > 1.5
    drawn = model.posterior(grid, mask=mask).sample(2)
    assert (drawn.isnull() == ~mask).all()


def test_cells_outside_the_mask(model, grid):
    mask = xr.zeros_like(grid["x"] + grid["y"], dtype=bool)
    mask[2, 3] = True
    posterior = model.posterior(grid, mask=mask)
    drawn, whole = posterior.sample(3), model.posterior(grid).sample(3)
    assert drawn.notnull().sum() == 3
    other = whole.transpose(*drawn.dims).where(mask)
    np.testing.assert_allclose(drawn, other.transpose(*drawn.dims), rtol=1e-10)
    none = model.posterior(grid, mask=xr.zeros_like(mask)).sample(3)
    assert none.isnull().all()


def test_quantiles_of_draws(alone, grid):
    """Of every cell, within the error of so many draws, and of the normal scores."""
    posterior = alone.posterior(cells_of(grid))
    drawn = alone.marginals[0].to_normal(posterior.sample(DRAWS).values.reshape(DRAWS, -1))
    latent = posterior.latent
    mean, std = (latent[name].values.ravel() for name in ("mean", "std"))
    for level in (0.1, 0.5, 0.9):
        z = ndtri(level)
        density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
        error = np.sqrt(level * (1.0 - level) / DRAWS) / density
        found = (np.quantile(drawn, level, axis=0) - mean) / std
        assert abs(found - z).max() < FAR * error
