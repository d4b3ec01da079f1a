"""New observations for the model of a file."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import xcopula

NEW = "x,y,metal\n1.05,2.05,3.5\n2.55,0.55,1.25\n"


def test_the_model_is_that_of_python(run, files, model, grid, tmp_path):
    """The new model predicts what `condition` in Python does."""
    (tmp_path / "new.csv").write_text(NEW)
    done = run("condition", files / "model.nc", tmp_path / "new.csv", "-o", tmp_path / "m2.nc")
    assert done.exit_code == 0, done.output
    assert "The model had 100 observations and has 102." in done.output
    new = xr.Dataset(
        {"metal": ("row", [3.5, 1.25])},
        coords={"x": ("row", [1.05, 2.55]), "y": ("row", [2.05, 0.55])},
    )
    found = xcopula.load(tmp_path / "m2.nc").predict(grid)["metal"]
    np.testing.assert_array_equal(found, model.condition(new).predict(grid)["metal"])


@pytest.mark.parametrize("replace", [False, True])
def test_the_same_site_again(run, files, sites, tmp_path, replace):
    """Old values are replaced on request only."""
    x, y = float(sites["x"][0]), float(sites["y"][0])
    (tmp_path / "new.csv").write_text(f"x,y,metal\n{x!r},{y!r},2.5\n")
    words = ["--replace"] if replace else []
    given = (files / "model.nc", tmp_path / "new.csv", *words, "-o", tmp_path / "m2.nc")
    done = run("condition", *given)
    assert done.exit_code == (0 if replace else 1), done.output
    assert ("has 100." if replace else "replace=True") in done.output


def test_text_among_numbers(run, files, tmp_path):
    """The line is named."""
    (tmp_path / "new.csv").write_text(NEW.replace("1.25", "low"))
    done = run("condition", files / "model.nc", tmp_path / "new.csv", "-o", tmp_path / "m2.nc")
    assert done.exit_code == 1
    assert "line 3: column 'metal' must hold numbers, found 'low'" in done.output
