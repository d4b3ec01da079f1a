"""Predictions on files."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest
import xarray as xr

ALL = ("-q", "0.1", "-q", "0.5", "--exceed", "1", "--exceed", "2", "--mean", "--std")


def opened(path) -> xr.Dataset:
    engine = "zarr" if path.suffix == ".zarr" else "netcdf4"
    with xr.open_dataset(path, engine=engine) as result:
        return result.load()


@pytest.mark.parametrize("name", ["out.nc", "out.zarr"])
@pytest.mark.parametrize("chunks", [(), ("--chunks", "3"), ("--chunks", "y=2")])
def test_the_results_are_those_of_python(run, files, model, grid, tmp_path, name, chunks):
    """Whatever the format and the blocks."""
    pytest.importorskip("zarr")
    path = tmp_path / name
    done = run("predict", files / "model.nc", files / "grid.nc", *ALL, *chunks, "-o", path)
    assert done.exit_code == 0, done.output
    assert "Predicted 42 cells" in done.output
    result, posterior = opened(path), model.posterior(grid)
    parts = (
        posterior.quantile([0.1, 0.5]),
        posterior.exceedance([1.0, 2.0]),
        posterior.mean(),
        posterior.std(),
    )
    assert set(result.data_vars) == {part.name for part in parts}
    for part in parts:
        xr.testing.assert_allclose(result[part.name], part, rtol=1e-12)
        assert result[part.name].attrs == part.attrs


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")
def test_sigterm_leaves_no_trace(files, tmp_path):
    """A scheduler ends a long prediction: its temporary file goes, as after ctrl-C."""
    axes = ("--axis", "x=0:9:0.002", "--axis", "y=0:9:0.002")
    arguments = (files / "model.nc", *axes, "--chunks", "500", "-o", tmp_path / "out.nc")
    command = [sys.executable, "-c", "from xcopula.cli import main; main()", "predict"]
    with subprocess.Popen([*command, *map(str, arguments)], stderr=subprocess.PIPE) as process:
        while not any(p.stat().st_size > 10_000 for p in tmp_path.iterdir()):
            assert process.poll() is None
            time.sleep(0.05)
        process.terminate()
        try:
            _, errors = process.communicate(timeout=100)
        finally:
            process.kill()
    assert process.returncode == 143
    assert errors in (b"Interrupted.\n", b"")  # nothing, where a lock was left held
    assert list(tmp_path.iterdir()) == []


def test_other_variables_masks_and_signals(run, files, model, grid, tmp_path):
    """Options of `predict` have their words; a mask may be of numbers."""
    inside = (grid["y"] + grid["x"] < 4.0).astype(np.int8)
    grid.assign(inside=inside).to_netcdf(tmp_path / "grid.nc")
    words = ("--variable", "proxy", "--of", "signal", "--mask", "inside", "-q", "0.5")
    path = tmp_path / "out.nc"
    done = run("predict", files / "model.nc", tmp_path / "grid.nc", *words, "-o", path)
    assert done.exit_code == 0, done.output
    expected = model.predict(grid, [0.5], variable="proxy", of="signal", mask=inside == 1)
    np.testing.assert_allclose(opened(path)["proxy"], expected["proxy"], rtol=1e-12)


def test_points_of_a_table(run, files, model, tmp_path):
    """A table gives a prediction at each of its rows."""
    (tmp_path / "points.csv").write_text("name,x,y\na,1,1\nb,2.5,2\n")
    path = tmp_path / "out.nc"
    done = run("predict", files / "model.nc", tmp_path / "points.csv", "-o", path)
    assert done.exit_code == 0, done.output
    points = xr.Dataset(coords={"x": ("row", [1.0, 2.5]), "y": ("row", [1.0, 2.0])})
    np.testing.assert_allclose(opened(path)["metal"], model.predict(points)["metal"], rtol=1e-12)


def test_wrong_usage(run, files, tmp_path):
    """A grid and axes, neither, and a resumed NetCDF file."""
    arguments = ("predict", files / "model.nc")
    out = ("-o", tmp_path / "out.nc")
    for words, message in (
        ((), "Give a GRID or --axis"),
        ((files / "grid.nc", "--axis", "x=0:1:1"), "and not both"),
        ((files / "grid.nc", "--resume"), "needs an output that ends in .zarr"),
        ((files / "grid.nc", "--workers", "1", "--scheduler", "tcp://a:1"), "not both"),
    ):
        done = run(*arguments, *words, *out)
        assert done.exit_code == 2, done.output
        assert message in done.output


@pytest.mark.parametrize("case", ["no model", "data", "no coordinate", "units", "crs", "level"])
def test_bad_input_is_one_line(run, files, grid, tmp_path, case):
    """A file that is no model, a grid without coordinates or of another place on the earth."""
    model, target, words = files / "model.nc", tmp_path / "grid.nc", ["--chunks", "2"]
    data = grid
    if case == "no model":
        model = tmp_path / "model.nc"
        model.write_bytes(b"CDF no more")
        message = "cannot be read as a model"
    elif case == "data":
        model, message = files / "data.nc", "data.nc cannot be read."
    elif case == "no coordinate":
        data, message = grid.rename(y="upward"), "lacks the coordinate 'y'"
    elif case == "units":
        grid["x"].encoding = {}
        data = grid.assign_coords(x=grid["x"].assign_attrs(units="K"))
        message = "'K'"
    elif case == "crs":
        pytest.importorskip("pyproj")
        message = "another projection than the model"
        model = _projected(run, files, tmp_path)
        data = grid.assign_coords(spatial_ref=xr.DataArray(0, attrs={"crs_wkt": _wkt(32632)}))
    else:
        words, message = ["-q", "95"], "Quantile levels must lie strictly between 0 and 1"
    data.to_netcdf(target)
    done = run("predict", model, target, *words, "-o", tmp_path / "out.nc")
    assert done.exit_code == 1, done.output
    assert message in done.output
    assert done.output.count("\n") == 1
    assert not (tmp_path / "out.nc").exists()


def _wkt(code: int) -> str:
    import pyproj

    return pyproj.CRS.from_epsg(code).to_wkt()


def _projected(run, files, tmp_path):
    """Fit a model whose data are in a projection."""
    path = tmp_path / "projected.nc"
    words = ("--primary", "metal", "--crs", "EPSG:2056", "--marginal", "lognormal")
    quick = ("--kernel", "matern32", "--restarts", "0")
    assert run("fit", files / "data.csv", *words, *quick, "-o", path).exit_code == 0
    return path


SLOW = """
import sys, time
from xcopula.storage import blocks
from xcopula.cli import main

write = blocks._Target.__setitem__

def slowly(self, region, values):
    write(self, region, values)
    time.sleep(0.2)

blocks._Target.__setitem__ = slowly
main(sys.argv[1:])
"""


def test_a_killed_prediction_goes_on(run, files, tmp_path):
    """After a kill in mid-write nothing is under the name; resumed, the store is the same."""
    pytest.importorskip("zarr")
    (tmp_path / "grid.nc").write_bytes((files / "grid.nc").read_bytes())
    path, marks = tmp_path / "out.zarr", tmp_path / ".out.zarr.partial" / "finished"

    def words(to, *more):
        arguments = (files / "model.nc", tmp_path / "grid.nc", "--exceed", "1", "--chunks", "1")
        return [str(w) for w in ("predict", *arguments, *more, "-o", to)]

    process = subprocess.Popen([sys.executable, "-c", SLOW, *words(path)])
    deadline = time.monotonic() + 60
    while not (marks.is_dir() and len(list(marks.iterdir())) > 5):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert not path.exists()
    done = len(list(marks.iterdir()))
    assert 5 < done < 84

    refused = run(*words(path))
    assert refused.exit_code == 1
    assert "Go on with --resume, or begin anew with --overwrite." in refused.output
    with xr.open_dataset(files / "grid.nc") as grid:
        grid.assign_coords(x=grid["x"] + 0.1).to_netcdf(tmp_path / "grid.nc")
    changed = run(*words(path, "--resume", "--mean"))
    assert changed.exit_code == 1
    assert "the grid, the options, the variables or their blocks changed since" in changed.output
    (tmp_path / "grid.nc").write_bytes((files / "grid.nc").read_bytes())
    resumed = run(*words(path, "--resume"))
    assert resumed.exit_code == 0, resumed.output
    assert run(*words(tmp_path / "whole.zarr")).exit_code == 0
    xr.testing.assert_identical(
        opened(path).drop_attrs(deep=False), opened(tmp_path / "whole.zarr").drop_attrs(deep=False)
    )
    assert not marks.parent.exists()
