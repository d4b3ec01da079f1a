"""Realizations are functions of place: the same in any chunks, windows, orders and numbers."""

from __future__ import annotations

import dask
import numpy as np
import pytest
import xarray as xr
from sources import EAST, NORTH, daily
from threadpoolctl import threadpool_info

import xcopula
from xcopula.prediction import sampling
from xcopula.process import paths

FIXED = {"kernels": "matern32", "restarts": 0, "uncertainty": "plugin", "anisotropy": False}


@pytest.fixture(autouse=True)
def few_waves(monkeypatch):
    """Seams do not depend on their number."""
    monkeypatch.setattr(paths, "WAVES", 100)


@pytest.fixture(scope="module")
def fine() -> xr.Dataset:
    """A grid that no chunks divide evenly."""
    km = {"units": "km"}
    coords = {"y": ("y", np.linspace(0.0, 3.0, 23), km), "x": ("x", np.linspace(0.0, 4.0, 31), km)}
    return xr.Dataset(coords=coords)


@pytest.fixture
def whole(triple, fine) -> xr.DataArray:
    """Three realizations on all cells."""
    return triple.posterior(fine).sample(3)


def test_any_number_of_threads(triple, fine, whole, monkeypatch):
    """Each draws some realizations, and BLAS none of its own beside them."""
    simulate, threads = sampling.simulate, []

    def counted(*arguments, **options):
        threads.append(threadpool_info())
        return simulate(*arguments, **options)

    monkeypatch.setattr(sampling, "thread_count", lambda: 2)
    monkeypatch.setattr(sampling, "simulate", counted)
    found = triple.posterior(fine).sample(3)
    xr.testing.assert_allclose(found, whole, rtol=1e-10)
    blas = [pool for info in threads for pool in info if pool["user_api"] == "blas"]
    assert len(threads) == 2
    assert {pool["num_threads"] for pool in blas} == {1}


class TestSeams:
    @pytest.mark.parametrize("seed", range(10))
    def test_any_chunks(self, triple, fine, whole, seed):
        rng = np.random.default_rng(seed)
        chunks = {"y": int(rng.integers(1, 24)), "x": int(rng.integers(2, 32))}
        lazy = triple.posterior(fine, chunks=chunks).sample(3)
        assert lazy.chunks is not None
        xr.testing.assert_allclose(lazy.compute(), whole, rtol=1e-10)

    def test_a_window(self, triple, fine, whole):
        window = {"y": slice(4, 11), "x": slice(20, 29)}
        found = triple.posterior(fine.isel(window)).sample(3)
        xr.testing.assert_allclose(found, whole.isel(window), rtol=1e-10)

    def test_another_order(self, triple, fine, whole):
        rng = np.random.default_rng(0)
        order = {"y": rng.permutation(23), "x": rng.permutation(31)}
        found = triple.posterior(fine.isel(order)).sample(3)
        xr.testing.assert_allclose(found, whole.isel(order), rtol=1e-10)

    def test_scattered_cells(self, triple, fine, whole):
        rng = np.random.default_rng(1)
        some = {d: xr.DataArray(rng.integers(0, fine.sizes[d], 40), dims="cell") for d in fine.dims}
        found = triple.posterior(fine.isel(some)).sample(3)
        want = whole.isel(some).transpose(*found.dims)
        np.testing.assert_allclose(found, want, rtol=1e-10)

    def test_a_finer_grid(self, triple, fine, whole):
        halved = fine.isel(y=slice(None, None, 2), x=slice(None, None, 3))
        found = triple.posterior(halved).sample(3)
        want = whole.isel(y=slice(None, None, 2), x=slice(None, None, 3))
        xr.testing.assert_allclose(found, want, rtol=1e-10)

    def test_a_cell_alone(self, triple, fine, whole):
        found = triple.posterior(fine.isel(y=3, x=5)).sample(3)
        assert found.dims == ("realization",)
        np.testing.assert_allclose(found, whole.isel(y=3, x=5), rtol=1e-10)
        lazy = triple.posterior(fine.chunk(y=5).isel(y=3, x=5)).sample(3)
        np.testing.assert_allclose(lazy, found, rtol=1e-10)

    def test_by_neighbours(self, trio, fine):
        laws = {"metal": "lognormal", "proxy": "normal"}
        model = xcopula.fit(trio, "metal", "proxy", marginals=laws, solver="neighbours", **FIXED)
        whole = model.posterior(fine).sample(2)
        lazy = model.posterior(fine, chunks={"y": 7, "x": 9}).sample(2)
        xr.testing.assert_allclose(lazy.compute(), whole, rtol=1e-10)

    def test_on_the_globe_and_in_time(self):
        data = daily()
        model = xcopula.fit(data, "level", marginals="normal", **FIXED)
        lon, lat = (
            ("lon", np.linspace(4.0, 12.0, 6), EAST),
            ("lat", np.linspace(44.0, 50.0, 5), NORTH),
        )
        grid = xr.Dataset(coords={"lat": lat, "lon": lon, "time": data["time"].values[1:5]})
        whole = model.posterior(grid).sample(2)
        lazy = model.posterior(grid, chunks={"lat": 2, "lon": 4, "time": 3}).sample(2)
        xr.testing.assert_allclose(lazy.compute(), whole, rtol=1e-9)
        points = grid.isel(lat=2, lon=[1, 3]).isel(time=2)
        want = whole.isel(lat=2, lon=[1, 3], time=2)
        found = model.posterior(points).sample(2)
        np.testing.assert_allclose(found, want.transpose(*found.dims), rtol=1e-9)

    def test_single_precision_places(self, triple, fine, whole):
        """A place is the same site to the precision of the data."""
        other = fine.assign_coords(x=fine["x"] * (1.0 + 1e-15), y=fine["y"] * (1.0 - 1e-15))
        found = triple.posterior(other).sample(3)
        np.testing.assert_allclose(found.transpose(*whole.dims), whole, rtol=1e-9)


class TestNumbers:
    def test_more_draws_have_the_first(self, triple, fine, whole):
        more = triple.posterior(fine).sample(5)
        xr.testing.assert_allclose(more.isel(realization=slice(0, 3)), whole, rtol=1e-12)

    def test_from_a_number_on(self, triple, fine):
        posterior = triple.posterior(fine)
        later = posterior.sample(2, start=3)
        assert later["realization"].values.tolist() == [3, 4]
        xr.testing.assert_allclose(later, posterior.sample(5)[3:], rtol=1e-12)

    def test_another_seed(self, triple, fine, whole):
        other = triple.posterior(fine).sample(3, seed=1)
        assert (other != whole).mean() > 0.99
        assert other["realization"].attrs["seed"] == 1

    def test_in_batches(self, triple, fine, whole, monkeypatch):
        monkeypatch.setattr(sampling, "_TOGETHER", 2)
        xr.testing.assert_allclose(triple.posterior(fine).sample(3), whole, rtol=1e-12)
        lazy = triple.posterior(fine, chunks=16).sample(3)
        assert lazy.chunks[0] == (2, 1)
        xr.testing.assert_allclose(lazy.compute(), whole, rtol=1e-10)

    @pytest.mark.parametrize(
        ("cells", "data", "expected"),
        [(1, 1, 256), (2**20, 50, 16), (100, 2**22, 4), (2**30, 1, 1)],
    )
    def test_memory_is_bounded(self, cells, data, expected):
        assert sampling.drawn_together(cells, data) == expected


class TestLabels:
    def test_of_the_target_and_the_variable(self, triple, fine, whole):
        assert whole.name == "metal"
        assert whole.dims == ("realization", "y", "x")
        assert whole.attrs["units"] == "mg kg-1"
        xr.testing.assert_equal(whole["x"], fine["x"])

    def test_lazy_builds_a_graph_only(self, triple, fine):
        def refuse(*arguments, **options):
            raise AssertionError("computed")

        with dask.config.set(scheduler=refuse):
            lazy = triple.posterior(fine, chunks=8).sample(4)
        assert lazy.shape == (4, 23, 31)

    def test_a_model_that_is_not_fitted_yet(self, sites, grid):
        options = FIXED | {"marginals": "lognormal"}
        model = xcopula.fit(sites, "metal", compute=False, **options)
        found = model.posterior(grid, chunks=3).sample(2).compute()
        want = xcopula.fit(sites, "metal", **options).posterior(grid).sample(2)
        xr.testing.assert_allclose(found, want, rtol=1e-8)

    def test_the_frame_is_made_once(self, triple, fine):
        """Blocks of all realizations share what their cells need."""
        lazy = triple.posterior(fine, chunks=16).sample(600)
        names = [str(k) for k in lazy.__dask_graph__()]
        assert sum("evaluate" in k for k in names) == len({k for k in names if "evaluate" in k})
        assert len(lazy.chunks[0]) == 3

    def test_what_follows_is_part_of_the_same_task(self, triple, fine):
        """Else a scheduler may make all draws before the first is used."""
        lazy = triple.posterior(fine, chunks=8).area_above(1.0, n=5)
        (merged,) = dask.optimize(lazy)
        names = [str(k) for k in dict(merged.__dask_graph__())]
        assert any("evaluate" in k for k in names)
        assert not any("simulate" in k for k in names)


class TestBadInput:
    @pytest.mark.parametrize("n", [0, -3])
    def test_no_realizations(self, triple, grid, n):
        with pytest.raises(ValueError, match=rf"`n` must be at least 1, found {n}\."):
            triple.posterior(grid).sample(n)

    @pytest.mark.parametrize("seed", [1.5, "a", None, True])
    def test_a_seed_that_is_no_integer(self, triple, grid, seed):
        with pytest.raises(TypeError, match="`seed` must be an integer, found"):
            triple.posterior(grid).sample(1, seed)

    def test_a_negative_seed(self, triple, grid):
        with pytest.raises(ValueError, match=r"`seed` must be at least 0, found -1\."):
            triple.posterior(grid).sample(1, -1)

    def test_a_negative_start(self, triple, grid):
        with pytest.raises(ValueError, match=r"`start` must be at least 0, found -1\."):
            triple.posterior(grid).sample(1, start=-1)
