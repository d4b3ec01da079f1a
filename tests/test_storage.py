"""Files: all or nothing, never over what is there, and with their history."""

from __future__ import annotations

import re

import numpy as np
import pytest
import xarray as xr

import xcopula
from xcopula.storage import check_free, write_netcdf


@pytest.fixture
def small() -> xr.Dataset:
    """A Dataset without a history."""
    return xr.Dataset({"v": ("x", [1.0, 2.0], {"units": "mm"})}, attrs={"title": "small"})


class TestWrite:
    def test_there_and_back(self, small, tmp_path):
        """The file holds the data and their attributes, and a dated line of history."""
        path = write_netcdf(small, tmp_path / "out.nc")
        with xr.open_dataset(path) as read:
            xr.testing.assert_equal(read, small)
            assert read["v"].attrs == {"units": "mm"}
            assert read.attrs["title"] == "small"
            assert read.attrs["xcopula_version"] == xcopula.__version__
            assert re.fullmatch(
                rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ: .*xcopula {re.escape(xcopula.__version__)}",
                read.attrs["history"],
            )

    def test_history_goes_in_front(self, small, tmp_path):
        """An earlier history is kept below the new line."""
        path = write_netcdf(small.assign_attrs(history="made\nby hand"), tmp_path / "out.nc")
        with xr.open_dataset(path) as read:
            first, *rest = read.attrs["history"].split("\n")
        assert "written by xcopula" in first
        assert rest == ["made", "by hand"]

    def test_memory_is_not_touched(self, small, tmp_path):
        """What is in memory has no history, before and after."""
        before = small.copy(deep=True)
        write_netcdf(small, tmp_path / "out.nc")
        xr.testing.assert_identical(small, before)
        assert set(small.attrs) == {"title"}

    def test_a_prediction(self, model, grid, tmp_path):
        """A prediction has no history in memory, and one in its file."""
        predicted = model.predict(grid)
        assert "history" not in predicted.attrs
        assert "history" not in predicted["metal"].attrs
        path = write_netcdf(predicted, tmp_path / "out.nc")
        with xr.open_dataset(path) as read:
            xr.testing.assert_allclose(read, predicted)
            assert "history" in read.attrs

    def test_a_failure_leaves_no_trace(self, small, tmp_path):
        """Neither a half-written file nor a temporary one stays."""
        bad = small.assign(bad=("x", np.array([object(), object()])))
        with pytest.raises((TypeError, ValueError), match=r".+"):
            write_netcdf(bad, tmp_path / "out.nc")
        assert list(tmp_path.iterdir()) == []


class TestFree:
    def test_what_is_there_stays(self, small, tmp_path):
        """A file is replaced on request only."""
        path = write_netcdf(small, tmp_path / "out.nc")
        with pytest.raises(FileExistsError, match=r"out.nc exists"):
            write_netcdf(small, path)
        assert write_netcdf(small, path, overwrite=True) == path

    def test_a_folder_that_does_not_exist(self, tmp_path):
        """The folder is named."""
        with pytest.raises(FileNotFoundError, match=r"nowhere does not exist"):
            check_free(tmp_path / "nowhere" / "out.nc")
