"""Files to read, and grids in words."""

from __future__ import annotations

import os

import click
import numpy as np
import pytest
import xarray as xr

from xcopula.cli import inputs
from xcopula.cli.inputs import checksum, is_model, make_grid, read_data, split


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
    monkeypatch.setattr(inputs, "_SMALL_BYTES", 10)
    found = read_data(files / "data.nc")
    assert found["metal"].chunks is not None
    assert found["x"].chunks is None
    xr.testing.assert_identical(found.compute(), sites)


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


def test_split():
    """The first sign divides."""
    assert split("a = b=c", "--select") == ("a", "b=c")


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
