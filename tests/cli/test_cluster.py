"""Clusters of a command, and its progress."""

from __future__ import annotations

import sys

import dask.array as da
import pytest
import xarray as xr

from xcopula.cli.cluster import block_progress, cluster


@pytest.fixture(params=[False, True], ids=["log", "terminal"])
def terminal(request, monkeypatch):
    """Write to a log, then to a terminal."""
    monkeypatch.setattr("xcopula.cli.cluster.on_terminal", lambda: request.param)
    return request.param


@pytest.mark.parametrize("on_cluster", [False, True])
def test_a_bar_for_blocks(terminal, capsys, on_cluster, monkeypatch):
    """A bar is for a terminal, and for work in this process."""
    monkeypatch.setattr("xcopula.cli.cluster.SHORTEST", 0.0)
    with block_progress(on_cluster=on_cluster):
        da.ones(4, chunks=1).compute()
    assert ("100%" in capsys.readouterr().err) == (terminal and not on_cluster)


def test_no_cluster_by_default():
    """Nothing is started."""
    with cluster(None, None) as on_cluster:
        assert on_cluster is False


def test_workers_give_the_same(run, files, tmp_path):
    """Processes of this machine write the same store, and end with the command."""
    distributed = pytest.importorskip("distributed")
    pytest.importorskip("zarr")
    results = []
    for words in ((), ("--workers", "1")):
        path = tmp_path / f"out{len(results)}.zarr"
        arguments = ("predict", files / "model.nc", files / "grid.nc", "--chunks", "4")
        done = run(*arguments, *words, "-o", path)
        assert done.exit_code == 0, done.output
        results.append(xr.load_dataset(path, engine="zarr").drop_attrs(deep=False))
    xr.testing.assert_identical(*results)
    with pytest.raises(ValueError, match=r"No .*client"):
        distributed.get_client()


def test_a_scheduler(run, files, tmp_path):
    """One that runs is used and left running; one that does not answer is one line."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**options) as local:
        arguments = ("predict", files / "model.nc", files / "grid.nc", "-o", tmp_path / "out.nc")
        done = run(*arguments, "--scheduler", local.scheduler_address)
        assert done.exit_code == 0, done.output
        assert local.status.name == "running"


def test_without_distributed(monkeypatch):
    """The message says what to install."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(ImportError, match=r"xcopula\[distributed\]"),
        cluster(None, 2),
    ):
        pass
