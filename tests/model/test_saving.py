"""Model files: whole or not at all, and with their origin."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import netCDF4  # noqa: F401 - its import warns with some versions of numpy
import numpy as np
import pytest
import xarray as xr
from test_state import Logistic

import xcopula


def named(name):
    """Return the name, or skip what needs zarr where there is none."""
    if name.endswith(".zarr"):
        pytest.importorskip("zarr")
    return name


both = pytest.mark.parametrize("name", ["model.nc", "model.zarr"])


def opened(path):
    """Open a file as a user does."""
    return xr.open_datatree(path, engine="zarr" if path.suffix == ".zarr" else "netcdf4")


@both
@pytest.mark.filterwarnings("error")
class TestSave:
    def test_plain_xarray_opens_it(self, triple, tmp_path, name):
        """It shows what the model does, and where it comes from; nothing warns."""
        path = triple.save(tmp_path / named(name))
        assert path == tmp_path / name
        shown = triple.to_datatree()
        with opened(path) as tree:
            for node in shown.subtree:
                found = tree[node.path].to_dataset(inherit=False)
                xr.testing.assert_equal(found, node.to_dataset(inherit=False))
            for key, value in shown.attrs.items():
                assert tree.attrs[key] == value
            assert tree["data/metal/metal"].attrs["units"] == "mg kg-1"
            attrs = tree.attrs
        assert attrs["xcopula_version"] == xcopula.__version__
        assert attrs["numpy_version"] == np.__version__
        assert attrs["xarray_version"] == xr.__version__
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", attrs["date_created"])
        assert "written by xcopula" in attrs["history"]

    def test_what_is_there_stays(self, model, alone, tmp_path, name):
        """Unless it may be replaced."""
        path = model.save(str(tmp_path / named(name)))
        with pytest.raises(FileExistsError, match=r"exists\. Choose another name, or pass overwr"):
            alone.save(path)
        assert xcopula.load(path).tasks == model.tasks
        alone.save(path, overwrite=True)
        assert xcopula.load(path).tasks == alone.tasks
        assert list(tmp_path.iterdir()) == [path]

    def test_a_failure_leaves_no_trace(self, model, tmp_path, name, monkeypatch):
        """A disk that is full, in the middle of a file."""
        real = {"to_netcdf": xr.DataTree.to_netcdf, "to_zarr": xr.DataTree.to_zarr}

        def half(method):
            def fail(self, to, **options):
                real[method](self, to, **options)
                raise OSError(28, "no space")

            return fail

        for method in real:
            monkeypatch.setattr(xr.DataTree, method, half(method))
        with pytest.raises(OSError, match="is full"):
            model.save(tmp_path / named(name))
        assert list(tmp_path.iterdir()) == []


class TestRefused:
    def test_another_ending(self, model, tmp_path):
        """The ending says the format."""
        with pytest.raises(ValueError, match=r"must end in \.nc .* found 'model\.pkl'"):
            model.save(tmp_path / "model.pkl")

    def test_no_path_or_no_folder(self, model, tmp_path):
        """Before any work."""
        with pytest.raises(TypeError, match="`path` must be a string or a path, found 3"):
            model.save(3)
        with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
            model.save(tmp_path / "nowhere" / "model.nc")

    def test_a_folder_that_may_not_be_written(self, model, tmp_path):
        """The system's own error."""
        tmp_path.chmod(0o500)
        try:
            if os.access(tmp_path, os.W_OK):
                pytest.skip("this user may write anywhere")
            with pytest.raises(PermissionError):
                model.save(tmp_path / "model.nc")
        finally:
            tmp_path.chmod(0o700)

    def test_without_zarr(self, model, tmp_path, monkeypatch):
        """The message says what to install."""
        monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
        with pytest.raises(ImportError, match=r"xcopula\[zarr\]"):
            model.save(tmp_path / "model.zarr")

    def test_a_model_that_is_not_fitted_yet(self, sites, tmp_path):
        """A graph has nothing to save."""
        lazy = xcopula.fit(sites, "metal", compute=False)
        with pytest.raises(AttributeError, match=r"no 'save'.*`model = model\.compute\(\)`"):
            lazy.save(tmp_path / "model.nc")


@dataclasses.dataclass(frozen=True)
class Tabled(Logistic):
    """A law of one's own with arrays: two whose names a file does not take, two of other laws."""

    _low: Any = None
    _high: Any = None
    x: Any = None
    z: Any = None

    def with_theta(self, theta):
        """Return the law with other parameters."""
        location, log_scale = map(float, theta)
        return dataclasses.replace(self, location=location, log_scale=log_scale)


def test_arrays_of_a_law_of_one_s_own_have_any_length(sites, tmp_path):
    """Dims are shared where the sizes agree, and only there."""
    law = Tabled(1.5, -1.0, *(np.arange(float(n)) for n in (20, 30, 40, 50)))
    options = {"method": "full", "kernels": "matern32", "restarts": 0}
    model = xcopula.fit(sites, "metal", marginals=law, **options)
    path = model.save(tmp_path / "model.nc")
    again = xcopula.load(path, laws={"Tabled": Tabled}).marginals[0]
    for name in ("_low", "_high", "x", "z"):
        np.testing.assert_array_equal(getattr(again, name), getattr(law, name))


def test_long_arrays_are_compressed(triple, tmp_path, monkeypatch):
    """And are read as they were."""
    monkeypatch.setattr("xcopula.model.saving._COMPRESSED", 10)
    path = triple.save(tmp_path / "model.nc")
    with xr.open_datatree(path) as tree:
        assert tree["data/metal/metal"].encoding["zlib"]
        assert not tree["parameters/nugget"].encoding["zlib"]
    np.testing.assert_array_equal(
        xcopula.load(path).observations.positions, triple.observations.positions
    )


def test_a_file_is_small(tmp_path):
    """Nothing is in it that can be computed: not ten times what the data take."""
    data = xcopula.datasets.jura(hide="Cd")
    options = {"method": "full", "marginals": "normal", "kernels": "matern32", "restarts": 0}
    model = xcopula.fit(data, "Cd", **options)
    model.loo()  # a factorisation, which does not travel
    path = Path(model.save(tmp_path / "model.nc"))
    assert path.stat().st_size < 50_000


FULL = """
import os, sys
from pathlib import Path
import xcopula

model, folder = xcopula.load(sys.argv[1]), Path(sys.argv[2])
for name in sys.argv[3:]:
    try:
        model.save(folder / name)
    except OSError as error:
        assert f"{folder} is full" in str(error), error
    else:
        raise AssertionError("there was room")
    assert not list(folder.iterdir()), list(folder.iterdir())
os._exit(0)  # the netCDF library may crash when it lets go of a file that it could not write
"""


def test_a_disk_that_is_really_full(model, tmp_path, tmp_path_factory):
    """Of 16 KiB: it is said, and no trace is left."""
    pytest.importorskip("zarr")
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare")
    own = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    mount = f"mount -t tmpfs -o size=16k none '{tmp_path}'"
    if subprocess.run([*own, mount], capture_output=True).returncode:
        pytest.skip("this user may not mount a file system of their own")
    source = model.save(tmp_path_factory.mktemp("source") / "model.nc")
    arguments = [sys.executable, FULL, str(source), str(tmp_path), "model.zarr", "model.nc"]
    run = [*own, f'{mount} && exec "$0" -c "$1" "$2" "$3" "$4" "$5"', *arguments]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
