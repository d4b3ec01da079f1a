"""Files to read and to write, and grids in words."""

from __future__ import annotations

import os

import click
import numpy as np
import pytest
import xarray as xr

import xcopula
from xcopula.cli import files as module
from xcopula.cli.files import (
    check_output,
    checksum,
    is_model,
    make_grid,
    read_data,
    write_dataset,
)


def test_every_format_is_the_same_data(sites, files, tmp_path):
    """NetCDF, Zarr and a table hold the same values."""
    pytest.importorskip("zarr")
    sites.to_zarr(tmp_path / "data.zarr", zarr_format=2)
    xr.testing.assert_identical(read_data(files / "data.nc"), sites)
    xr.testing.assert_identical(read_data(tmp_path / "data.zarr"), sites)
    table = read_data(files / "data.csv")
    for name in ("metal", "proxy", "x", "y"):
        np.testing.assert_allclose(table[name], sites[name], rtol=1e-14)


def test_a_large_file_is_read_in_chunks(files, monkeypatch, sites):
    """Above a size, variables stay on disk, and coordinates along one dim are in memory."""
    monkeypatch.setattr(module, "_SMALL_BYTES", 10)
    result = read_data(files / "data.nc")
    assert result["metal"].chunks is not None
    assert result["x"].chunks is None
    xr.testing.assert_identical(result.compute(), sites)


def test_models_are_told_from_data(files):
    """By what the file says of itself."""
    assert is_model(files / "model.nc")
    assert not is_model(files / "data.nc")
    assert not is_model(files / "data.csv")
    with pytest.raises(ValueError, match=r"is a model. Give a file of data"):
        read_data(files / "model.nc")


def test_what_cannot_be_read(tmp_path):
    """A missing file, and one of another kind."""
    with pytest.raises(FileNotFoundError, match=r"none.nc does not exist"):
        read_data(tmp_path / "none.nc")
    (tmp_path / "text.nc").write_text("no numbers")
    with pytest.raises(ValueError, match=r"text.nc cannot be read: it must be NetCDF, Zarr"):
        read_data(tmp_path / "text.nc")


def test_a_grid_in_words():
    """Ranges have both ends, single values are scalars, dates are dates."""
    grid = make_grid(["x=0:0.3:0.1", "y=2:1:-0.5", "z=7", "time=2024-05-31T12:00"])
    np.testing.assert_allclose(grid["x"], [0.0, 0.1, 0.2, 0.3])
    np.testing.assert_allclose(grid["y"], [2.0, 1.5, 1.0])
    assert float(grid["z"]) == 7.0
    assert grid["time"].values == np.datetime64("2024-05-31T12:00")
    np.testing.assert_allclose(make_grid(["x=0:1:0.4"])["x"], [0.0, 0.4, 0.8])


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ("x", "must be NAME=VALUE"),
        ("x=0:1", "START:STOP:STEP"),
        ("x=0:1:0", "START:STOP:STEP"),
        ("x=0:1:-1", "START:STOP:STEP"),
        ("x=0:inf:1", "START:STOP:STEP"),
        ("time=yesterday", "a number or a date, found 'yesterday'"),
    ],
)
def test_axes_that_are_none(axis, message):
    """They are wrong usage."""
    with pytest.raises(click.UsageError, match=message):
        make_grid([axis])


def test_an_axis_given_twice():
    """One would be lost."""
    with pytest.raises(click.UsageError, match="gives 'x' twice"):
        make_grid(["x=1:2:1", "x=3"])


def test_checksums_tell_contents_apart(tmp_path):
    """Of a file, and of a folder with the names of its files."""
    for name, text in (("a", "1"), ("b", "1"), ("c", "2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "inside").write_text(text)
    a, b, c = (checksum(tmp_path / name) for name in "abc")
    assert a == b != c
    (tmp_path / "b" / "inside").rename(tmp_path / "b" / "other")
    assert checksum(tmp_path / "b") != a
    assert checksum(tmp_path / "a" / "inside") != checksum(tmp_path / "c" / "inside")


@pytest.mark.skipif(os.name != "posix", reason="needs pipes")
def test_a_pipe_is_no_file(run, tmp_path):
    """To open it would take for ever."""
    for name in ("pipe.nc", "pipe.csv"):
        os.mkfifo(tmp_path / name)
        done = run("info", tmp_path / name)
        assert done.exit_code == 1
        assert "must be a file or a Zarr store, found a device or a pipe." in done.output


@pytest.mark.parametrize(
    ("command", "ending"), [("fit", "model.txt"), ("predict", "out"), ("plot", "map.nc")]
)
def test_endings_are_wrong_usage(run, files, tmp_path, command, ending):
    """The ending says the format."""
    done = run(command, files / "model.nc", "-o", tmp_path / ending)
    assert done.exit_code == 2
    assert "must end in" in done.output


@pytest.mark.parametrize("command", ["fit", "predict", "plot", "condition", "validate"])
@pytest.mark.parametrize("case", ["taken", "missing", "read-only"])
def test_places_are_checked_first(run, tmp_path, monkeypatch, command, case):
    """Before any file is read: the input does not even exist."""
    output = tmp_path / ("out.png" if command == "plot" else "out.nc")
    message = f"{output} exists. Choose another name, or pass --overwrite."
    if case == "taken":
        output.write_text("mine")
    elif case == "missing":
        output, message = tmp_path / "no" / output.name, "no does not exist. Create it first."
    else:  # the superuser may write anywhere
        monkeypatch.setattr(os, "access", lambda *_: False)
        message = "cannot be written to. Choose another, or change its permissions."
    arguments = ["none.nc", *(["none.csv"] if command in ("condition", "predict") else [])]
    done = run(command, *arguments, "-o", output)
    assert done.exit_code == 1, done.output
    assert message in done.output
    assert done.output.count("\n") == 1
    assert case != "taken" or output.read_text() == "mine"


@pytest.mark.parametrize("ending", [".nc", ".zarr"])
@pytest.mark.parametrize("case", ["fit data", "predict model", "predict grid", "condition new"])
def test_an_input_is_not_overwritten(run, files, quick, tmp_path, case, ending):
    """Neither by its name nor by that of a link; it is as it was."""
    pytest.importorskip("zarr")
    command, which = case.split()
    paths = {name: tmp_path / f"{name}{ending}" for name in ("data", "model", "grid", "new")}
    xcopula.load(files / "model.nc").save(paths["model"])
    for name, source in (("data", "data.nc"), ("grid", "grid.nc"), ("new", "data.nc")):
        write_dataset(xr.load_dataset(files / source), paths[name], overwrite=False)
    (tmp_path / f"link{ending}").symlink_to(paths[which])
    arguments = {
        "fit": (paths["data"], *quick),
        "predict": (paths["model"], paths["grid"]),
        "condition": (paths["model"], paths["new"]),
    }[command]
    before = checksum(paths[which])
    for output in (paths[which], tmp_path / f"link{ending}"):
        done = run(command, *arguments, "-o", output, "--overwrite")
        assert done.exit_code == 1
        assert f"is the input {paths[which]}. Choose another name." in done.output
    assert checksum(paths[which]) == before


def test_a_conditioned_model_may_take_the_place_of_the_model(run, files, model, tmp_path):
    """A model is kept up to date in place."""
    path = model.save(tmp_path / "m.nc")
    (tmp_path / "new.csv").write_text("x,y,metal\n0.01,0.02,1.5\n")
    done = run("condition", path, tmp_path / "new.csv", "-o", path, "--overwrite")
    assert done.exit_code == 0, done.output
    assert xcopula.load(path).observations.sample.size == model.observations.sample.size + 1


def test_without_zarr(tmp_path, monkeypatch):
    """It is said before anything is computed."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ImportError, match="need the package zarr"):
        check_output(tmp_path / "out.zarr", overwrite=False)
