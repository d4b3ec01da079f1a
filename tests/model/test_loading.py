"""Model files read back: exact, in another process too; whatever is wrong ends in one error."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import xarray as xr
from test_state import Logistic, RationalQuadratic

import xcopula
from xcopula.errors import ModelFormatError
from xcopula.solvers import Neighbours

QUICK = {"marginals": "normal", "kernels": "matern32", "restarts": 0}

both = pytest.mark.parametrize("ending", [".nc", ".zarr"])


def named(ending: str) -> str:
    """Return a name, or skip what needs zarr where there is none."""
    if ending == ".zarr":
        pytest.importorskip("zarr")
    return f"model{ending}"


@pytest.fixture(scope="module")
def climate() -> xr.Dataset:
    """Two years of a few stations, on the globe and in time."""
    data = xcopula.datasets.colorado().isel(station=slice(None, None, 24), time=slice(0, 6))
    return data[["tmax", "tmin"]]


@pytest.fixture(scope="module")
def make(sites, trio, sloped, climate, fit_by, triple):
    """Give tests a model by what is special in it."""
    cases = {
        "transductive": lambda: triple,
        "full": lambda: fit_by("full"),
        "fitc": lambda: fit_by("fitc"),
        "committee": lambda: fit_by("bcm"),
        "cokriging": lambda: fit_by("cokriging"),
        "laws selected": lambda: xcopula.fit(
            trio,
            "metal",
            "other",
            **QUICK | {"marginals": {"metal": ["parzen", "normal"], "other": "auto"}},
        ),
        "globe, time and cycle": lambda: xcopula.fit(
            climate,
            "tmax",
            "tmin",
            coords=["lon", "lat", "time", xcopula.cycle("time")],
            solver=Neighbours(6, 12),
            **QUICK,
        ),
        "own": lambda: xcopula.fit(
            sites,
            "metal",
            method="full",
            structures=2,
            **QUICK | {"kernels": RationalQuadratic(), "marginals": Logistic(1.5, -1.0)},
        ),
    }
    return functools.cache(lambda name: cases[name]())


@both
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "case",
    [
        *("transductive", "full", "fitc", "committee", "cokriging", "laws selected"),
        *("globe, time and cycle", "own"),
    ],
)
def test_a_model_is_itself_again(make, sloped_grid, climate, tmp_path, case, ending):
    """To the last bit: predictions, leave-one-out, parameters, what it says of itself."""
    model = make(case)
    path = model.save(tmp_path / named(ending))
    own = {
        "laws": {"Logistic": Logistic(0.0, 0.0)},
        "kernels": {"RationalQuadratic": RationalQuadratic},
    }
    again = xcopula.load(str(path), **own)
    target = climate if "globe" in case else sloped_grid
    for name in model.tasks:
        xr.testing.assert_identical(
            again.predict(target, variable=name), model.predict(target, variable=name)
        )
        xr.testing.assert_identical(again.loo(name), model.loo(name))
    xr.testing.assert_identical(again.parameters, model.parameters)
    if case == "laws selected":
        xr.testing.assert_identical(again.selection, model.selection)
    assert again.summary() == model.summary()
    figures = ("log_likelihood", "converged", "message", "evaluations", "alternatives")
    for name in figures:
        assert getattr(again, name) == getattr(model, name)
        assert type(getattr(again, name)) is type(getattr(model, name))
    value, slope = again.objective(model.theta)
    assert value == model.objective(model.theta)[0]
    np.testing.assert_array_equal(slope, model.objective(model.theta)[1])


@both
def test_a_file_that_xarray_wrote(make, climate, tmp_path, ending):
    """The tree may be written by hand, too: dates come back as they were."""
    model = make("globe, time and cycle")
    path, tree = tmp_path / named(ending), model.to_datatree()
    if ending == ".nc":
        tree.to_netcdf(path)
    else:
        tree.to_zarr(path, zarr_format=2)
    again = xcopula.load(path)
    xr.testing.assert_identical(again.predict(climate), model.predict(climate))


SCRIPT = """
import sys
import numpy as np, xarray as xr, xcopula
path, grid, out = sys.argv[1:]
model = xcopula.load(path)
with xr.open_dataset(grid) as target:
    model.predict(target.load()).to_netcdf(out)
"""


def test_in_a_new_process_without_the_data(triple, grid, tmp_path):
    """The file is all that is needed."""
    path = triple.save(tmp_path / "model.nc")
    grid.to_netcdf(tmp_path / "grid.nc")
    with xr.open_dataset(tmp_path / "grid.nc") as target:
        expected = triple.predict(target.load())
    files = [str(path), str(tmp_path / "grid.nc"), str(tmp_path / "out.nc")]
    environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *files],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | environment | {"PYTHONPATH": str(Path(xcopula.__file__).parents[1])},
    )
    assert done.returncode == 0, done.stderr
    with xr.open_dataset(tmp_path / "out.nc") as found:
        np.testing.assert_array_equal(found["metal"].values, expected["metal"].values)


class TestArguments:
    def test_no_file(self, tmp_path):
        """Is not a file of a wrong format."""
        for name in ("model.nc", "model.zarr"):
            with pytest.raises(FileNotFoundError, match=f"{name} does not exist"):
                xcopula.load(tmp_path / name)
        with pytest.raises(TypeError, match="`path` must be a string or a path, found None"):
            xcopula.load(None)

    def test_classes_of_one_s_own(self, tmp_path):
        """Are given by name."""
        with pytest.raises(TypeError, match="`laws` must map names to classes"):
            xcopula.load(tmp_path, laws=[Logistic])
        with pytest.raises(TypeError, match="`kernels` must hold classes, found 'rq' for 'Mine'"):
            xcopula.load(tmp_path, kernels={"Mine": "rq"})

    def test_without_zarr(self, tmp_path, monkeypatch):
        """The message says what to install."""
        (tmp_path / "model.zarr").mkdir()
        monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
        with pytest.raises(ImportError, match=r"xcopula\[zarr\]"):
            xcopula.load(tmp_path / "model.zarr")


@pytest.fixture(scope="module")
def stored(model, tmp_path_factory) -> Path:
    """A folder with a good file of each format."""
    folder = tmp_path_factory.mktemp("stored")
    model.save(folder / "model.nc")
    with contextlib.suppress(ImportError):
        model.save(folder / "model.zarr")
    return folder


class TestDamagedNetCDF:
    @pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9, 0.999])
    def test_cut_off(self, stored, tmp_path, share):
        """At any length."""
        whole = (stored / "model.nc").read_bytes()
        path = tmp_path / "model.nc"
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(ModelFormatError, match=r"model\.nc cannot be read"):
            xcopula.load(path)

    def test_other_bytes(self, stored, tmp_path):
        """Random ones, a text, a file of another kind, a folder."""
        path = tmp_path / "model.nc"
        for data in (
            np.random.default_rng(0).bytes(5000),
            b"model",
            b"\x89HDF\r\n\x1a\n" + b"x" * 99,
        ):
            path.write_bytes(data)
            with pytest.raises(ModelFormatError, match=r"model\.nc cannot be read"):
                xcopula.load(path)
        with pytest.raises(ModelFormatError, match="cannot be read"):
            xcopula.load(tmp_path)

    def test_a_few_bytes_changed(self, stored, model, tmp_path):
        """Of the text, of the figures, of an array: nothing else tells that they are wrong."""
        whole, path = (stored / "model.nc").read_bytes(), tmp_path / "model.nc"
        values = model.observations.sample.values[model.observations.sample.task(0)]
        for part in (b'"LogNormal"', np.float64(model.log_likelihood).tobytes(), values.tobytes()):
            start = whole.rindex(part) + len(part) // 2
            data = bytearray(whole)
            data[start] ^= 1
            path.write_bytes(data)
            with pytest.raises(ModelFormatError, match=r"not what was written|is damaged"):
                xcopula.load(path)

    def test_a_result_is_not_a_model(self, model, grid, tmp_path):
        """The message says what is."""
        path = xcopula.storage.write_netcdf(model.predict(grid), tmp_path / "out.nc")
        with pytest.raises(ModelFormatError, match=r"out\.nc cannot be read\. It is not a model"):
            xcopula.load(path)

    def test_sizes_that_would_fill_the_memory(self, stored, tmp_path):
        """Are refused before anything is allocated."""
        path = shutil.copy(stored / "model.nc", tmp_path / "model.nc")
        with netCDF4.Dataset(path, "a") as file:
            group = file.createGroup("more")
            group.createDimension("task", 10**13)
            group.createVariable("task", "f8", ("task",), zlib=True, chunksizes=(1000,))
        with pytest.raises(ModelFormatError, match=r"would take 80,000,000,\d{3},\d{3} bytes"):
            xcopula.load(path)

    def test_types_of_their_own(self, stored, tmp_path):
        """Are not numbers."""
        path = shutil.copy(stored / "model.nc", tmp_path / "model.nc")
        with netCDF4.Dataset(path, "a") as file:
            kind = file.createVLType(np.float64, "ragged")
            file.createDimension("k", 2)
            file.createVariable("strange", kind, ("k",))
        with pytest.raises(ModelFormatError, match="'strange' has a type of its own"):
            xcopula.load(path)


def change_array(path: Path, **changes) -> None:
    """Change what a store says of theta."""
    about = path / "structure" / "theta" / ".zarray"
    about.write_text(json.dumps(json.loads(about.read_text()) | changes))


class TestDamagedZarr:
    @pytest.fixture
    def path(self, stored, tmp_path) -> Path:
        """A store to damage."""
        pytest.importorskip("zarr")
        return shutil.copytree(stored / "model.zarr", tmp_path / "model.zarr")

    def test_a_whole_one(self, path, model):
        """What the others start from."""
        np.testing.assert_array_equal(xcopula.load(path).theta, model.theta)

    @pytest.mark.parametrize(
        ("changes", "match"),
        [
            ({"filters": [{"id": "pickle"}]}, "packed in a way"),
            ({"compressor": {"id": "pickle"}}, "packed in a way"),
            ({"dtype": "|O"}, "must hold numbers"),
            ({"dtype": "|V8"}, "must hold numbers"),
            ({"dtype": [["a", "<f8"]]}, "damaged"),
            ({"shape": [10**12]}, "would take"),
            ({"chunks": [10**12]}, "would take"),
            ({"shape": [3]}, "theta"),
            ({"shape": "x"}, "damaged"),
            ({"dtype": "<i8"}, "theta"),
        ],
        ids=str,
    )
    def test_what_an_array_says_of_itself(self, path, changes, match):
        """Nothing is unpacked that could run."""
        change_array(path, **changes)
        with pytest.raises(ModelFormatError, match=match):
            xcopula.load(path)

    def test_a_pickle_is_not_opened(self, path, monkeypatch):
        """Not when a copy of the metadata hides it, either."""
        import pickle

        chunk = path / "structure" / "theta" / "0"
        chunk.write_bytes(pickle.dumps(np.zeros(3)))
        monkeypatch.setattr(pickle, "loads", lambda *_, **__: pytest.fail("run"))
        monkeypatch.setattr(pickle, "load", lambda *_, **__: pytest.fail("run"))
        hidden = path / ".zmetadata"
        text = hidden.read_text()
        assert '"filters": null' in text
        hidden.write_text(text.replace('"filters": null', '"filters": [{"id": "pickle"}]'))
        with pytest.raises(ModelFormatError, match="cannot be read"):
            xcopula.load(path)

    def test_parts_that_are_missing(self, path):
        """A chunk, an array, a group, all."""
        (path / "structure" / "theta" / "0").unlink()
        for gone in (None, "structure/theta", "data/metal", "structure", "data"):
            if gone:
                shutil.rmtree(path / gone)
            with pytest.raises(ModelFormatError, match="cannot be read"):
                xcopula.load(path)

    def test_links_and_other_formats(self, path, tmp_path):
        """They are no part of a model."""
        (path / "structure" / "zarr.json").write_text("{}")
        with pytest.raises(ModelFormatError, match="Zarr format 3; a model has format 2"):
            xcopula.load(path)
        (path / "structure" / "zarr.json").unlink()
        (path / "more").symlink_to(tmp_path)
        with pytest.raises(ModelFormatError, match="symbolic link"):
            xcopula.load(path)

    def test_something_else(self, path, tmp_path):
        """A file, an empty folder."""
        (tmp_path / "file.zarr").write_text("x")
        (tmp_path / "empty.zarr").mkdir()
        for name in ("file.zarr", "empty.zarr"):
            with pytest.raises(ModelFormatError, match=f"{name} cannot be read"):
                xcopula.load(tmp_path / name)


def test_a_text_that_names_another_class(stored, tmp_path):
    """In a file, as in a tree: it is refused and not run."""
    from xcopula.model.tree import seal

    path = shutil.copy(stored / "model.nc", tmp_path / "model.nc")
    with netCDF4.Dataset(path, "a") as file:
        text = file.state.replace('"Exact"', '"os.system"')
        assert text != file.state
        figures = {name: file.getncattr(name) for name in ("log_likelihood", "converged")}
        figures |= {"evaluations": file.evaluations, "message": file.message}
        for name, value in seal(text, figures).items():
            file.setncattr(name, value)
    with pytest.raises(
        ModelFormatError, match=r"model\.nc cannot be read\. It names a class 'os\.sys"
    ):
        xcopula.load(path)


@pytest.mark.skipif(os.name != "posix", reason="needs pipes")
def test_pipes_and_devices(tmp_path):
    """To open a pipe takes until somebody writes to it: it is refused, also within a store."""
    pytest.importorskip("zarr")
    os.mkfifo(tmp_path / "pipe.nc")
    for path in (tmp_path / "pipe.nc", Path("/dev/zero")):
        with pytest.raises(ModelFormatError, match=r"must be a file or a Zarr store, found a dev"):
            xcopula.load(path)
    store = tmp_path / "model.zarr"
    store.mkdir()
    os.mkfifo(store / ".zarray")
    with pytest.raises(ModelFormatError, match=r"cannot be read. A device or a pipe is in it"):
        xcopula.load(store)
