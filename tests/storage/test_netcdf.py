"""NetCDF files: in threads, by blocks, and what they cannot hold."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from xcopula.storage import write_netcdf, write_zarr

# Without a lock, this ends in a segmentation fault within a second. Each thread saves and loads a
# model, and writes a Dataset by lazy blocks. Files that are open lazily are left out: xarray reads
# them under locks that do not cover what it opens and closes.
THREADS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import numpy as np, xarray as xr
import xcopula
from xcopula.storage import NETCDF_LOCK, write_netcdf

folder = Path(sys.argv[1])
options = {"marginals": "normal", "kernels": "matern32", "uncertainty": "plugin"}
model = xcopula.fit(xcopula.datasets.toy(seed=0), "primary", **options)
grid = xr.Dataset({"v": (("y", "x"), np.arange(600.0).reshape(20, 30))})

def work(k):
    path, copy = (folder / f"{k}{name}" for name in ("m.nc", "out.nc"))
    for _ in range(8):
        model.save(path, overwrite=True)
        xcopula.load(path)
        write_netcdf(grid.chunk(y=5) + k, copy, overwrite=True)
        with NETCDF_LOCK:
            xr.testing.assert_equal(xr.load_dataset(copy, engine="netcdf4"), grid + k)

with ThreadPoolExecutor(4) as pool:
    list(pool.map(work, range(4)))
"""


def test_threads_take_turns(tmp_path):
    """Threads that save, load, and write lazy values neither crash nor wait for ever."""
    done = subprocess.run(
        [sys.executable, "-c", THREADS, str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


def test_blocks_are_encoded_as_whole_variables_are(tmp_path):
    """Numbers, flags, dates and packed values are the same in a lazy Dataset as in memory."""
    eager = xr.Dataset(
        {
            "v": (("y", "x"), np.arange(12.0).reshape(4, 3), {"units": "mm"}),
            "flag": ("y", [True, False, True, False]),
            "packed": ("x", [0.5, np.nan, 1.5]),
            "when": ("y", pd.date_range("2024-05-31", periods=4)),
            "name": ("x", ["a", "bc", ""]),
        },
        coords={"x": [1, 2, 3]},
    )
    eager["packed"].encoding = {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -9}
    write_netcdf(eager, tmp_path / "eager.nc")
    write_netcdf(eager.chunk(x=2, y=3), tmp_path / "lazy.nc")
    files = [
        xr.load_dataset(tmp_path / name, engine="netcdf4", decode_cf=False)
        for name in ("eager.nc", "lazy.nc")
    ]
    for file in files:
        del file.attrs["history"]
    xr.testing.assert_identical(*files)


def test_a_graph_that_writes_itself(tmp_path):
    """The lock is free while values are computed: a block may read or write another file."""
    da = pytest.importorskip("dask.array")

    def block(values):
        write_netcdf(xr.Dataset({"v": ("x", values)}), tmp_path / f"{values[0]}.nc")
        return values

    lazy = da.arange(4, chunks=2).map_blocks(block, meta=np.empty(0, int))
    path = write_netcdf(xr.Dataset({"v": ("x", lazy)}), tmp_path / "all.nc")
    assert xr.load_dataset(path)["v"].values.tolist() == [0, 1, 2, 3]


class TestWhatAFileCannotHold:
    """It is said before anything is computed."""

    @staticmethod
    def lazy() -> xr.Dataset:
        """A Dataset that must not be computed."""
        da = pytest.importorskip("dask.array")

        def fail(values):
            raise AssertionError("computed")

        values = da.zeros(4, chunks=2).map_blocks(fail, meta=np.empty(0))
        return xr.Dataset({"v": ("x", values)}, coords={"x": np.arange(4)})

    @pytest.mark.parametrize("value", [None, True, {"a": 1}, [[1], [2, 3]], np.array([None])])
    def test_attributes(self, tmp_path, value):
        """Whose attribute it is, and what to do."""
        bad = self.lazy()
        bad["v"].attrs["note"] = value
        with pytest.raises(TypeError, match=r"numbers or text, found 'note' of 'v': .* by `str`"):
            write_netcdf(bad, tmp_path / "out.nc")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("name", ["out.nc", "out.zarr"])
    def test_names_and_indexes(self, tmp_path, name):
        """A slash would be a group; a MultiIndex has no form in a file."""
        if name == "out.zarr":
            pytest.importorskip("zarr")
        write = write_zarr if name == "out.zarr" else write_netcdf
        for bad in ("a/b", "a ", ""):
            with pytest.raises(ValueError, match=rf"found '{bad}'. Use `dataset.rename`"):
                write(self.lazy().rename(v=bad), tmp_path / name)
        stacked = xr.Dataset(coords={"a": [1, 2], "b": [3, 4]}).stack(site=["a", "b"])
        with pytest.raises(ValueError, match=r"found 'site'. Use `dataset.reset_index\('site'\)`"):
            write(stacked, tmp_path / name)
        assert list(tmp_path.iterdir()) == []
