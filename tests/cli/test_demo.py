"""The worked example."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest
import xarray as xr

import xcopula
from xcopula.methods import Transductive


@pytest.fixture
def small(monkeypatch):
    """Let the demo map a few cells from a few samples, with nothing to choose."""
    pytest.importorskip("matplotlib")
    jura, grid = xcopula.datasets.jura, xcopula.datasets.jura_grid
    monkeypatch.setattr(
        xcopula.datasets, "jura", lambda **o: jura(**o).isel(site=slice(None, None, 8))
    )
    monkeypatch.setattr(
        xcopula.datasets, "jura_grid", lambda: grid().isel(x=slice(0, None, 9), y=slice(0, None, 9))
    )
    quick = {"marginals": "lognormal", "kernels": "matern32", "restarts": 0, "coupling": "icm"}
    monkeypatch.setattr("xcopula.fitting.fit", functools.partial(xcopula.fit, **quick))


@pytest.mark.usefixtures("small")
def test_demo_writes_a_map_and_its_numbers(run, tmp_path):
    """It says what it fitted, how well that predicts, and where the files are."""
    folder = tmp_path / "new" / "demo"
    folder.mkdir(parents=True)
    (folder / "cadmium.nc").write_text("an earlier run")
    done = run("demo", "--output", str(folder), "--overwrite")
    assert done.exit_code == 0, done.output
    assert "Multi-task Gaussian copula process of 'Cd' with 'Ni', 'Zn'" in done.output
    assert "mean absolute error" in done.output
    said = re.search(r"Fitted in [\d.]+ s: (.+) (-?[\d.]+), without priors\.\n", done.output)
    assert said[1] == Transductive.likelihood == "composite log-likelihood"
    assert f"composite log-likelihood {said[2]} with" in done.output  # as the summary has it
    assert "iteration" not in done.output  # no terminal: no progress
    assert not re.search(r"(?<!composite )log-likelihood", done.output)
    assert {p.name for p in folder.iterdir()} == {"cadmium.nc", "cadmium.png"}
    with xr.open_dataset(folder / "cadmium.nc") as result:
        assert result["Cd"].dims == ("quantile", "y", "x")
        inside = result["Cd"].notnull()
        assert inside.any()
        assert not inside.all()
        assert (result["Cd"].diff("quantile").values[inside[1:].values] > 0.0).all()
        assert result["quantile"].values.tolist() == [0.05, 0.5, 0.95]
        assert np.isfinite(result["Cd"].values[inside.values]).all()


@pytest.mark.parametrize("name", ["cadmium.nc", "cadmium.png"])
def test_demo_keeps_what_is_there(run, tmp_path, name):
    """A file of an earlier run is replaced on request only, before anything is fitted."""
    (tmp_path / name).write_text("mine")
    done = run("demo", "-o", str(tmp_path))
    assert done.exit_code == 1
    assert f"{name} exists" in done.output
    assert "--overwrite" in done.output
    assert (tmp_path / name).read_text() == "mine"
