"""The examples of large samples run in their quick mode, and leave what the docs show."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

pytest.importorskip("matplotlib")

FOLDER = Path(__file__).parents[1] / "examples"
DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture
def satellite(monkeypatch):
    """The script of the satellite image, as a module."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    spec = importlib.util.spec_from_file_location("satellite", FOLDER / "satellite.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_gaps_of_an_image_are_filled(satellite, tmp_path, capsys):
    """The quick image is solved by neighbours, and its gaps are scored by their depth."""
    satellite.main(["--quick", "--output", str(tmp_path)])
    assert "solver 'neighbours'" in capsys.readouterr().out
    table = pd.read_csv(tmp_path / "gaps.csv")
    all_gaps = table[(table["from"] == 1) & np.isinf(table["to"])]
    assert len(all_gaps) == len(satellite.STRUCTURES)
    assert all_gaps["coverage"].between(80, 97).all()
    assert (tmp_path / "gaps.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_cells_that_were_seen_keep_their_values(satellite):
    """A prediction on the image itself returns what was observed."""
    image = satellite.make_image(1, (30, 40))
    quantiles, _ = satellite.fill(
        image.chunk({"y": 15}), marginals="lognormal", kernels="matern32", solver="neighbours"
    )
    seen = image["chlorophyll"].notnull()
    assert np.allclose(quantiles.where(seen), image["chlorophyll"].where(seen), equal_nan=True)
    assert quantiles.notnull().all()


def test_the_simulated_image_has_its_ranges(satellite):
    """A simulated field has unit variance and the correlation of its kernel."""
    rng = np.random.default_rng(0)
    z = np.concatenate([satellite.simulate(rng, (200, 200), 5.0) for _ in range(8)])
    assert z.var() == pytest.approx(1.0, rel=0.1)
    lag = np.mean(z[:, 5:] * z[:, :-5]) / z.var()
    assert lag == pytest.approx((1 + np.sqrt(3)) * np.exp(-np.sqrt(3)), abs=0.05)


def test_the_committed_gaps_say_what_the_docs_say():
    """Two structures fill the gaps better than one, and most so where they are deep."""
    table = pd.read_csv(DOCS / "satellite" / "gaps.csv").set_index(["from", "to", "model"])["crps"]
    gain = table.xs("structures=2", level=2) / table.xs("structures=1", level=2) - 1.0
    assert (gain < 0.0).all()
    assert gain[8.0, 16.0] < gain[1.0, 2.0]


def test_a_fit_on_a_cluster(tmp_path):
    """The example starts its own cluster, fits there and writes; it does not overwrite."""
    pytest.importorskip("distributed")
    command = [sys.executable, str(FOLDER / "cluster_fit.py"), "out.zarr", "--quick"]
    command += ["--picture", "out.png"]
    options = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 300}
    done = subprocess.run(command, **options)
    assert done.returncode == 0, done.stderr
    assert "2 workers" in done.stdout
    assert "solver 'neighbours'" in done.stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.png", "out.zarr"]
    with xr.open_zarr(tmp_path / "out.zarr", consolidated=False) as found:
        assert found["chlorophyll"].dims == ("quantile", "y", "x")
        assert np.isfinite(found["chlorophyll"]).all()
    again = subprocess.run(command, **options)
    assert again.returncode == 2
    assert "exists" in again.stderr
