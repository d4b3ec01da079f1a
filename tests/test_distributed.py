"""The same results on a cluster of worker processes, and with a worker that is killed."""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import dask
import numpy as np
import pytest
import xarray as xr

import xcopula
from xcopula.solvers import Exact, Neighbours

distributed = pytest.importorskip("distributed")

LAWS = {"metal": "lognormal", "proxy": "normal", "other": "normal"}
FIXED = {"marginals": LAWS, "kernels": "matern32", "restarts": 0}
SECONDS = 120


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    """End a test that hangs."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def stop(number, frame):
        raise TimeoutError(f"The test took more than {SECONDS} s.")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def running_cluster() -> Iterator[distributed.Client]:
    """Start two worker processes, and make them the default of everything that computes."""
    cluster = distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def data(sites) -> xr.Dataset:
    """Three variables; the metal is known at 40 of 60 sites."""
    noise = np.random.default_rng(0).normal(size=sites.sizes["site"])
    return sites.assign(other=sites["proxy"].copy(data=sites["proxy"].values + noise))


@pytest.fixture(scope="module")
def fitted(data):
    """A transductive model that was fitted and predicts in this process."""
    return xcopula.fit(data, "metal", ["proxy", "other"], **FIXED)


@pytest.fixture(scope="module")
def expected(fitted, grid) -> xr.Dataset:
    """What that model predicts, in memory."""
    return fitted.predict(grid)


@pytest.fixture(scope="class")
def client(fitted, expected) -> Iterator[distributed.Client]:
    """A cluster for each class; it starts after the results in memory exist."""
    with running_cluster() as client:
        yield client


def killer(flag: Path | str):
    """Return a function that kills the first worker to call it, and does nothing after that."""

    def kill(*arguments):
        with contextlib.suppress(FileExistsError):
            os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
            os.kill(os.getpid(), signal.SIGKILL)

    return kill


@dataclass(frozen=True)
class Counted(Exact):
    """The exact solver, which writes a letter to a file at each evaluation of a likelihood."""

    log: str = ""

    def information(self, process, sample, structure, theta):
        """Count and evaluate."""
        with open(self.log, "a") as file:
            file.write("x")
        return super().information(process, sample, structure, theta)


@dataclass(frozen=True)
class Fatal(Exact):
    """The exact solver, which kills the first worker that evaluates so many variables together."""

    flag: str = ""
    tasks: int = 1

    def information(self, process, sample, structure, theta):
        """Kill or evaluate."""
        if process.covariance.tasks == self.tasks:
            killer(self.flag)()
        return super().information(process, sample, structure, theta)


@dataclass(frozen=True)
class FatalNeighbours(Neighbours):
    """The same, of neighbours."""

    flag: str = ""

    def information(self, process, sample, structure, theta):
        """Kill or evaluate."""
        killer(self.flag)()
        return super().information(process, sample, structure, theta)


def test_nothing_takes_a_client():
    """Whatever scheduler is the default is used."""
    for function in (xcopula.fit, xcopula.predict):
        assert "client" not in inspect.signature(function).parameters


class TestCluster:
    def test_prediction(self, client, fitted, grid, expected):
        """Blocks on worker processes equal the result in memory."""
        out = fitted.predict(grid, chunks={"y": 2, "x": 3}).compute()
        xr.testing.assert_allclose(out, expected, rtol=1e-12, atol=0.0)

    def test_draws(self, client, fitted, grid):
        """Draws of workers meet, and equal those in memory; so do numbers made of them."""
        lazy = fitted.posterior(grid, chunks={"y": 2, "x": 3})
        drawn = fitted.posterior(grid).sample(3)
        xr.testing.assert_allclose(lazy.sample(3).compute(), drawn, rtol=1e-10)
        found = lazy.reduce("max", n=20).compute()
        xr.testing.assert_allclose(found, fitted.posterior(grid).reduce("max", n=20), rtol=1e-10)

    def test_the_workers_compute(self, client, fitted, grid):
        """Blocks of a persisted prediction lie on the workers."""
        out = fitted.predict(grid, chunks={"y": 2, "x": 3})["metal"].persist()
        distributed.wait(out)
        assert len(client.who_has(out.data)) >= 9

    def test_fit(self, client, data, fitted):
        """An eager fit has its tasks run by the cluster, and gives the same model."""
        model = xcopula.fit(data, "metal", ["proxy", "other"], **FIXED)
        np.testing.assert_allclose(model.theta, fitted.theta, rtol=1e-12)

    def test_lazy_fit(self, client, data, fitted, grid, expected):
        """A graph of a fit computes on the cluster, and so does a prediction built on it."""
        lazy = xcopula.fit(data, "metal", ["proxy", "other"], compute=False, **FIXED)
        np.testing.assert_allclose(lazy.compute().theta, fitted.theta, rtol=1e-12)
        out = lazy.persist().predict(grid, chunks=4).compute()
        xr.testing.assert_allclose(out, expected, rtol=1e-12, atol=0.0)

    @pytest.mark.parametrize("refit", [True, False])
    def test_cross_validation(self, client, data, refit):
        """Folds on workers give the result of folds in threads."""
        options = {"folds": "blocks", "count": 3, "refit": refit, "method": "full", **FIXED}
        out = xcopula.cross_validate(data, "metal", ["proxy", "other"], **options)
        with dask.config.set(scheduler="threads"):
            expected = xcopula.cross_validate(data, "metal", ["proxy", "other"], **options)
        xr.testing.assert_allclose(out, expected, rtol=1e-9, atol=0.0)

    def test_any_variable(self, client, fitted, grid):
        """A secondary is predicted by workers as in memory."""
        for variable in ("proxy", "other"):
            out = fitted.predict(grid, variable=variable, chunks=3).compute()
            xr.testing.assert_allclose(
                out, fitted.predict(grid, variable=variable), rtol=1e-12, atol=0.0
            )

    def test_arrays_that_travelled_are_closed(self, client, data, grid, expected):
        """Workers see read-only arrays, fit and predict with them, and give back a closed model."""
        lazy = xcopula.fit(data, "metal", ["proxy", "other"], compute=False, **FIXED)

        def written(model):
            arrays = [model.theta, model.observations.sample.values, model.observations.positions]
            return [array.flags.writeable for array in arrays]

        kept = lazy.persist()
        future = distributed.futures_of(kept.node)[0]
        assert client.submit(written, future).result() == [False] * 3
        model = kept.compute()
        assert written(model) == [False] * 3
        with pytest.raises(ValueError, match="read-only"):
            model.theta[0] = 0.0
        xr.testing.assert_allclose(model.predict(grid), expected, rtol=1e-12, atol=0.0)
        out = kept.predict(grid, chunks=4).compute()
        xr.testing.assert_allclose(out, expected, rtol=1e-12, atol=0.0)

    @pytest.mark.parametrize("built", ["persisted", "before", "anew"])
    def test_a_persisted_model_is_fitted_once(self, client, data, grid, expected, tmp_path, built):
        """Predictions computed one by one find it, also those of another graph of the same fit."""
        log = str(tmp_path / "evaluations")

        def lazy():
            copy = data.copy(deep=True)
            options = FIXED | {"solver": Counted(log)}
            return xcopula.fit(copy, "metal", ["proxy", "other"], compute=False, **options)

        first = lazy()
        kept = first.persist()
        distributed.wait(kept.node)
        evaluations = os.path.getsize(log)
        assert evaluations > 3
        again = {"persisted": kept, "before": first}.get(built) or lazy()
        for variable in ("metal", "proxy"):
            out = again.predict(grid, variable=variable, chunks={"x": 4}).compute()
            if variable == "metal":
                xr.testing.assert_allclose(out, expected, rtol=1e-12, atol=0.0)
        assert os.path.getsize(log) == evaluations

    def test_another_seed_is_another_model(self, client, data, tmp_path):
        """What was fitted with other options is not taken for it."""
        log = str(tmp_path / "evaluations")
        options = FIXED | {"marginals": "normal", "solver": Counted(log), "compute": False}
        models = [xcopula.fit(data, "metal", "proxy", seed=s, **options) for s in (0, 1)]
        sizes = []
        for model in models:
            kept = model.persist()
            distributed.wait(kept.node)
            sizes.append(os.path.getsize(log))
        assert sizes[1] > sizes[0] > 0

    def test_zarr(self, client, fitted, grid, expected, tmp_path):
        """Workers write their own blocks."""
        path = tmp_path / "prediction.zarr"
        fitted.predict(grid, chunks={"y": 2, "x": 4}).to_zarr(path, consolidated=False)
        with xr.open_zarr(path, consolidated=False) as found:
            xr.testing.assert_allclose(found.load(), expected, rtol=1e-12, atol=0.0)

    def test_example(self, client, tmp_path):
        """The example takes the address of a scheduler, writes all or nothing, and only once."""
        script = Path(__file__).parent.parent / "examples" / "cluster_predict.py"
        address = client.scheduler.address
        command = [sys.executable, str(script), "out.zarr", "--quick", "--scheduler", address]
        options = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": SECONDS}
        done = subprocess.run(command, **options)
        assert done.returncode == 0, done.stderr
        assert "cells per second" in done.stdout
        assert [p.name for p in tmp_path.iterdir()] == ["out.zarr"]
        with xr.open_zarr(tmp_path / "out.zarr", consolidated=False) as found:
            assert found["Cd"].dims == ("quantile", "y", "x")
            assert np.isfinite(found["Cd"]).all()
        again = subprocess.run(command, **options)
        assert again.returncode == 2
        assert "exists" in again.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
class TestKilledWorker:
    def test_prediction(self, client, fitted, grid, expected, tmp_path):
        """A worker that dies in the midst of a prediction costs a retry."""
        kill = killer(tmp_path / "killed")

        def mask(block, block_info=None):
            if block_info[0]["chunk-location"] == (2, 2):
                kill()
            return block

        inside = xr.ones_like(expected["metal"].isel(quantile=0, drop=True), dtype=bool)
        inside = inside.chunk(y=2, x=3)
        fatal = inside.copy(
            data=inside.data.map_blocks(mask, dtype=bool, meta=np.empty((0, 0), bool))
        )
        before = set(client.run(os.getpid).values())
        out = fitted.predict(grid, mask=fatal, chunks={"y": 2, "x": 3}).compute()
        assert (tmp_path / "killed").exists()
        client.wait_for_workers(2, timeout=60)
        assert set(client.run(os.getpid).values()) != before
        xr.testing.assert_allclose(out, expected, rtol=1e-12, atol=0.0)

    @pytest.mark.parametrize("tasks", [1, 2])
    def test_fit(self, client, data, fitted, tmp_path, tasks):
        """So does one that dies in the midst of a fit, with what it has fitted alone."""
        options = FIXED | {"solver": Fatal(str(tmp_path / "killed"), tasks), "compute": False}
        lazy = xcopula.fit(data, "metal", ["proxy", "other"], **options)
        model = lazy.compute()
        assert (tmp_path / "killed").exists()
        np.testing.assert_allclose(model.theta, fitted.theta, rtol=1e-12)

    def test_many_values(self, client, tmp_path, monkeypatch):
        """The same holds for a fit by neighbours, in stages, and for its prediction in tiles."""
        rng = np.random.default_rng(0)
        x, y = rng.random((2, 9000))
        z = np.sin(9.0 * x) * np.cos(7.0 * y) + 0.3 * rng.normal(size=x.size)
        many = xr.Dataset({"v": ("site", z)}, {"x": ("site", x), "y": ("site", y)})
        axis = np.linspace(0.1, 0.9, 40)
        grid = xr.Dataset(coords={"y": axis, "x": axis})
        options = {"marginals": "normal", "kernels": "matern32", "restarts": 0}
        monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as on the workers
        here = xcopula.fit(many, "v", **options)
        assert here.solver.name == "neighbours"
        assert here.converged
        solver = FatalNeighbours(flag=str(tmp_path / "killed"))
        lazy = xcopula.fit(many, "v", compute=False, solver=solver, **options)
        model = lazy.compute()
        assert (tmp_path / "killed").exists()
        np.testing.assert_allclose(model.theta, here.theta, rtol=1e-9)
        out = model.predict(grid, chunks={"y": 8, "x": 8}).compute()
        xr.testing.assert_allclose(out, here.predict(grid), rtol=1e-9)
