"""Places to write: refused before any work."""

from __future__ import annotations

import os

import pytest
import xarray as xr

import xcopula
from xcopula.cli.inputs import checksum
from xcopula.cli.outputs import check_output, write_dataset


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
    given = ["none.nc", *(["none.csv"] if command in ("condition", "predict") else [])]
    done = run(command, *given, "-o", output)
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
    given = {
        "fit": (paths["data"], *quick),
        "predict": (paths["model"], paths["grid"]),
        "condition": (paths["model"], paths["new"]),
    }[command]
    before = checksum(paths[which])
    for output in (paths[which], tmp_path / f"link{ending}"):
        done = run(command, *given, "-o", output, "--overwrite")
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


@pytest.mark.parametrize("name", ["out.nc", "out.zarr"])
def test_the_ending_says_the_format(tmp_path, name):
    """Both hold the same."""
    pytest.importorskip("zarr")
    data = xr.Dataset({"v": ("x", [1.0, 2.0])})
    write_dataset(data, tmp_path / name, overwrite=False)
    engine = "zarr" if name.endswith("zarr") else "netcdf4"
    with xr.open_dataset(tmp_path / name, engine=engine) as found:
        xr.testing.assert_equal(found, data)


def test_without_zarr(tmp_path, monkeypatch):
    """It is said before anything is computed."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ImportError, match="need the package zarr"):
        check_output(tmp_path / "out.zarr", overwrite=False)
