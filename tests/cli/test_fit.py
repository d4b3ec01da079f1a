"""Fits of files, their cross-validation, and new observations."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
import xarray as xr

import xcopula


@pytest.mark.parametrize("name", ["data.nc", "data.csv"])
@pytest.mark.filterwarnings("ignore:Coordinate")  # a table has no units
def test_the_model_is_that_of_python(run, files, quick, model, grid, tmp_path, name):
    """The file predicts what a fit in Python does, and the summary is printed."""
    done = run("fit", files / name, *quick, "-o", tmp_path / "m.nc")
    assert done.exit_code == 0, done.output
    assert "Multi-task Gaussian copula process of 'metal' with 'proxy'" in done.output
    assert "Fitted in" in done.output
    assert done.output.endswith(f"Wrote {tmp_path / 'm.nc'}.\n")
    result = xcopula.load(tmp_path / "m.nc").predict(grid)["metal"]
    exact = 0.0 if name.endswith("nc") else 1e-6  # a table rounds the last digit
    np.testing.assert_allclose(result, model.predict(grid)["metal"], rtol=exact)


@pytest.mark.parametrize("on_cluster", [False, True])
def test_progress(run, files, quick, tmp_path, monkeypatch, on_cluster):
    """On a terminal, for work in this process."""
    monkeypatch.setattr("xcopula.cli.fit.on_terminal", lambda: True)
    monkeypatch.setattr("xcopula.cli.fit.cluster", lambda *_: nullcontext(on_cluster))
    done = run("fit", files / "data.nc", *quick, "-o", tmp_path / "m.nc")
    assert ("fit done, " in done.output) != on_cluster


def test_stations_with_dates(run, tmp_path):
    """A long table of places and times, with a law that moves with a column."""
    rng = np.random.default_rng(0)
    lon, lat, height = rng.uniform([5, 45, 200], [9, 48, 2000], (8, 3)).T
    lines = ["station,lon,lat,time,height,warmth"]
    for k in range(8):
        for day in (1, 2, 3):
            value = (
                f"{20 - 0.006 * height[k] + day + rng.normal():.2f}" if (k, day) != (3, 2) else ""
            )
            lines.append(f"s{k},{lon[k]},{lat[k]},2024-05-{day:02d},{height[k]},{value}")
    path = tmp_path / "stations.csv"
    path.write_text("\n".join(lines))
    coords = ("--coords", "lon", "--coords", "lat", "--coords", "time")
    law = ("--marginal", "warmth=normal~height", "--kernel", "matern32", "--restarts", "0")
    out = tmp_path / "m.nc"
    done = run("fit", path, *coords, "--primary", "warmth", *law, "-o", out)
    assert done.exit_code == 0, done.output
    assert "23 observations, inputs space(lon, lat) x time(time)" in done.output
    assert "normal ~ height" in done.output


def test_usual_columns_are_found(run, tmp_path):
    """Easting, northing and a date need no options, under any of their names."""
    rng = np.random.default_rng(0)
    rows = [
        f"{x:.1f},{y:.1f},2024-05-0{k % 3 + 1},{x + k}"
        for k, (x, y) in enumerate(rng.uniform(0, 9, (20, 2)))
    ]
    path = tmp_path / "wells.csv"
    path.write_text("\n".join(["utm_x,utm_y,sampled,level", *rows]))
    law = ("--marginal", "level=normal", "--kernel", "matern32")
    done = run("fit", path, "--primary", "level", *law, "-o", tmp_path / "m.nc")
    assert "20 observations, inputs space(utm_x, utm_y) x time(sampled)" in done.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--primary", "gold"], "No variable 'gold' in the data"),
        (["--primary", "metal", "--kernel", "cubic"], "Unknown kernel 'cubic'"),
        (["--primary", "metal", "--coords", "lon"], "has no column 'lon'"),
        (["--primary", "metal", "--crs", "nowhere"], "nowhere"),
    ],
)
def test_wrong_data_is_one_line(run, files, tmp_path, words, message):
    """With exit code 1, and no file."""
    done = run("fit", files / "data.csv", *words, "-o", tmp_path / "m.nc")
    assert done.exit_code == 1
    (line,) = [text for text in done.output.splitlines() if not text.startswith("Fitting")]
    assert line.startswith("Error: ")
    assert message in line
    assert list(tmp_path.iterdir()) == []


def test_validate_as_in_python(run, files, sites, quick, tmp_path):
    """The table and the scores."""
    words = ("--folds", "blocks", "--count", "3", "--fixed", "--secondaries", "drop", "--seed", "2")
    out = tmp_path / "scores.nc"
    done = run("validate", files / "data.nc", *quick, *words, "-o", out)
    assert done.exit_code == 0, done.output
    expected = xcopula.cross_validate(
        sites,
        "metal",
        "proxy",
        folds="blocks",
        count=3,
        refit=False,
        secondaries="drop",
        seed=2,
        method="full",
        anisotropy=False,
        marginals={"metal": "lognormal", "proxy": "normal"},
        kernels="matern32",
        uncertainty="plugin",
    )
    assert done.output == f"{xcopula.format_validation(expected)}\n\nWrote {out}.\n"
    with xr.open_dataset(out) as result:
        xr.testing.assert_allclose(result.drop_attrs(), expected.drop_attrs(), rtol=1e-12)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--folds", "1"], "folds"),
        (["--folds", "region"], "region"),
        (["--buffer", "far=3"], "`buffer` names groups of coordinates, found ['far']"),
        (["--buffer", "100"], "leaves"),
    ],
)
def test_folds_that_cannot_be(run, files, quick, words, message):
    """One line, before anything is fitted."""
    done = run("validate", files / "data.csv", *quick, *words)
    assert done.exit_code == 1
    assert message in done.output
    assert done.output.count("\n") == 1


NEW = "x,y,metal\n1.05,2.05,3.5\n2.55,0.55,1.25\n"


def test_condition_as_in_python(run, files, model, grid, tmp_path):
    """The new model predicts what `condition` in Python does."""
    (tmp_path / "new.csv").write_text(NEW)
    done = run("condition", files / "model.nc", tmp_path / "new.csv", "-o", tmp_path / "m2.nc")
    assert done.exit_code == 0, done.output
    assert "The model had 100 observations and has 102." in done.output
    new = xr.Dataset(
        {"metal": ("row", [3.5, 1.25])},
        coords={"x": ("row", [1.05, 2.55]), "y": ("row", [2.05, 0.55])},
    )
    result = xcopula.load(tmp_path / "m2.nc").predict(grid)["metal"]
    np.testing.assert_array_equal(result, model.condition(new).predict(grid)["metal"])


@pytest.mark.parametrize("replace", [False, True])
def test_the_same_site_again(run, files, sites, tmp_path, replace):
    """Old values are replaced on request only."""
    x, y = float(sites["x"][0]), float(sites["y"][0])
    (tmp_path / "new.csv").write_text(f"x,y,metal\n{x!r},{y!r},2.5\n")
    words = ["--replace"] if replace else []
    arguments = (files / "model.nc", tmp_path / "new.csv", *words, "-o", tmp_path / "m2.nc")
    done = run("condition", *arguments)
    assert done.exit_code == (0 if replace else 1), done.output
    assert ("has 100." if replace else "replace=True") in done.output


def test_condition_with_text_among_numbers(run, files, tmp_path):
    """The line is named."""
    (tmp_path / "new.csv").write_text(NEW.replace("1.25", "low"))
    done = run("condition", files / "model.nc", tmp_path / "new.csv", "-o", tmp_path / "m2.nc")
    assert done.exit_code == 1
    assert "line 3: column 'metal' must hold numbers, found 'low'" in done.output
