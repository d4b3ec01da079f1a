"""Files: all or nothing, never over what is there, and with their history."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import xcopula
from xcopula.storage import (
    check_free,
    is_zarr,
    write_figure,
    write_netcdf,
    write_tree,
    write_zarr,
)


@pytest.fixture
def small() -> xr.Dataset:
    """A Dataset without a history."""
    return xr.Dataset({"v": ("x", [1.0, 2.0], {"units": "mm"})}, attrs={"title": "small"})


def test_a_folder_that_cannot_be_written_to(tmp_path, monkeypatch):
    """It is refused at once. The superuser may write anywhere: the answer is made up."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match=r"cannot be written to. Choose another"):
        check_free(tmp_path / "out.nc")


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

    def test_a_folder_is_no_file(self, tmp_path):
        """The name of a folder is refused, asked to overwrite or not."""
        for overwrite in (False, True):
            with pytest.raises(IsADirectoryError, match=r"is a folder"):
                check_free(tmp_path, overwrite=overwrite)

    def test_something_else_than_a_dataset(self, tmp_path):
        """What cannot be written is named before a file is made."""
        with pytest.raises(TypeError, match=r"found NoneType"):
            write_netcdf(None, tmp_path / "out.nc")
        assert list(tmp_path.iterdir()) == []

    def test_a_flag_that_is_none(self, small, tmp_path):
        """A text is not taken for True."""
        path = write_netcdf(small, tmp_path / "out.nc")
        with pytest.raises(TypeError, match=r"`overwrite` must be True or False, found 'no'"):
            write_netcdf(small.assign_attrs(title="new"), path, overwrite="no")
        assert xr.load_dataset(path).attrs["title"] == "small"

    def test_a_name_that_is_too_long(self, tmp_path):
        """It is refused before any work, in bytes."""
        for name in ("é" * 119 + ".nc", "a" * 236 + ".zarr"):
            with pytest.raises(ValueError, match=r"at most 240 bytes, found 24\d: .* shorter"):
                check_free(tmp_path / name)

    @pytest.mark.skipif(os.name != "posix", reason="needs pipes")
    def test_a_pipe(self, small, tmp_path):
        """It is never replaced by a file."""
        os.mkfifo(tmp_path / "pipe.nc")
        with pytest.raises(FileExistsError, match=r"is a device or a pipe. Choose another"):
            write_netcdf(small, tmp_path / "pipe.nc", overwrite=True)

    @pytest.mark.parametrize("name", ["in.nc", "in.zarr"])
    def test_what_a_lazy_dataset_is_read_from(self, small, tmp_path, name):
        """Its values would be gone with it, also by the name of a link; loaded, they are safe."""
        path, link = tmp_path / name, tmp_path / f"link{name[2:]}"
        if is_zarr(name):
            pytest.importorskip("zarr")
            write, engine = write_zarr, "zarr"
        else:
            write, engine = write_netcdf, "netcdf4"
        write(small, path)
        link.symlink_to(path)
        for place in (path, link):
            with (
                xr.open_dataset(path, engine=engine, chunks={}) as lazy,
                pytest.raises(ValueError, match=r"is read from, .* or `load` the Dataset first"),
            ):
                write(lazy, place, overwrite=True)
        with xr.open_dataset(path, engine=engine) as lazy:
            loaded = lazy.load()
        write(loaded, link, overwrite=True)


class TestReplacing:
    def test_permissions_are_kept(self, small, tmp_path):
        """A private file stays private; a new one follows the umask."""
        path = write_netcdf(small, tmp_path / "out.nc")
        mask = os.umask(0)
        os.umask(mask)
        assert path.stat().st_mode & 0o777 == 0o666 & ~mask
        path.chmod(0o600)
        write_netcdf(small, path, overwrite=True)
        assert path.stat().st_mode & 0o777 == 0o600

    def test_a_link_keeps_leading_to_its_file(self, small, tmp_path):
        """The file behind a link is replaced, not the link."""
        real = write_netcdf(small, tmp_path / "real.nc")
        link = tmp_path / "link.nc"
        link.symlink_to(real)
        with pytest.raises(FileExistsError, match=r"link.nc exists"):
            write_netcdf(small, link)
        write_netcdf(small.assign_attrs(title="new"), link, overwrite=True)
        assert link.is_symlink()
        with xr.open_dataset(real) as read:
            assert read.attrs["title"] == "new"

    def test_a_link_that_leads_nowhere_is_not_replaced_unasked(self, small, tmp_path):
        """It is something that is there."""
        link = tmp_path / "link.nc"
        link.symlink_to(tmp_path / "nowhere.nc")
        with pytest.raises(FileExistsError, match=r"leads nowhere"):
            check_free(link)  # before the work that leads to a result
        with pytest.raises(FileExistsError, match=r"leads nowhere"):
            write_netcdf(small, link)
        assert link.is_symlink()
        write_netcdf(small, link, overwrite=True)
        assert link.is_file()
        assert not link.is_symlink()

    @pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
    def test_of_two_writers_one_succeeds(self, small, tmp_path, monkeypatch, links):
        """Both saw a free name; only one may say that the file is its own."""
        path = tmp_path / "out.nc"
        monkeypatch.setattr("xcopula.storage.whole.check_free", lambda p, **_: Path(p))
        if not links:

            def refuse(*_):
                raise OSError(errno.EPERM, "no links here")

            monkeypatch.setattr(os, "link", refuse)

        def write(title):
            try:
                write_netcdf(small.assign_attrs(title=title), path)
            except FileExistsError:
                return None
            return title

        with ThreadPoolExecutor(4) as pool:
            winners = [t for t in pool.map(write, "abcdefgh") if t]
        assert len(winners) == 1
        with xr.open_dataset(path) as read:
            assert read.attrs["title"] == winners[0]
        assert list(tmp_path.iterdir()) == [path]

    def test_a_full_disk_is_said_to_be_one(self, small, tmp_path, monkeypatch):
        """HDF5 reports an error of its own; the message says what is the matter."""

        def fail(*_, **__):
            raise RuntimeError("NetCDF: HDF error")

        monkeypatch.setattr(xr.Dataset, "to_netcdf", fail)
        with pytest.raises(RuntimeError, match=r"HDF error"):
            write_netcdf(small, tmp_path / "out.nc")
        usage = type("Usage", (), {"free": 4096})
        monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
        with pytest.raises(OSError, match=r"is full: 4,096 bytes") as caught:
            write_netcdf(small, tmp_path / "out.nc")
        assert caught.value.errno == errno.ENOSPC
        assert list(tmp_path.iterdir()) == []


@pytest.fixture
def tree(small) -> xr.DataTree:
    """Two groups, one of them with a text."""
    names = xr.Dataset({"name": ("k", ["a", "bc"])})
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"title": "t"}), "/a": small, "/b": names})


def zarr_too(name):
    """Skip what needs zarr where there is none."""
    if is_zarr(name):
        pytest.importorskip("zarr")
    return name


both = pytest.mark.parametrize("name", ["out.nc", "out.zarr"])


class TestTree:
    @both
    @pytest.mark.filterwarnings("error")
    def test_there_and_back(self, tree, tmp_path, name):
        """Groups, attributes, a line of history, and no warning on the way."""
        before = tree.copy(deep=True)
        path = write_tree(tree, tmp_path / zarr_too(name), encoding={"/a": {"v": {"dtype": "f4"}}})
        with xr.open_datatree(path, engine="zarr" if is_zarr(name) else "netcdf4") as read:
            xr.testing.assert_equal(read["a"].to_dataset(), tree["a"].to_dataset())
            xr.testing.assert_equal(read["b"].to_dataset(), tree["b"].to_dataset())
            assert read["a/v"].encoding["dtype"] == np.float32
            assert read.attrs["title"] == "t"
            assert "written by xcopula" in read.attrs["history"]
        xr.testing.assert_identical(tree, before)
        assert list(tmp_path.iterdir()) == [path]

    @both
    def test_what_is_there_stays(self, tree, tmp_path, name):
        """It is replaced on request only, with its permissions, behind its link."""
        path = write_tree(tree, tmp_path / zarr_too(name))
        with pytest.raises(FileExistsError, match=f"{name} exists"):
            write_tree(tree, path)
        path.chmod(0o700)
        link = tmp_path / f"link{path.suffix}"
        link.symlink_to(path)
        tree.attrs["title"] = "new"
        assert write_tree(tree, link, overwrite=True) == link
        assert link.is_symlink()
        assert path.stat().st_mode & 0o777 == 0o700
        with xr.open_datatree(path, engine="zarr" if is_zarr(name) else "netcdf4") as read:
            assert read.attrs["title"] == "new"
        assert sorted(tmp_path.iterdir()) == sorted([path, link])

    @both
    @pytest.mark.parametrize("overwrite", [False, True])
    def test_a_failure_leaves_no_trace(self, tree, tmp_path, monkeypatch, name, overwrite):
        """What was there before is still there."""
        path = tmp_path / zarr_too(name)
        if overwrite:
            write_tree(tree, path)

        def fail(self, to, **_):
            if is_zarr(name):
                (to / ".zgroup").write_text("half")
            raise OSError(errno.ENOSPC, "no")

        monkeypatch.setattr(xr.DataTree, "to_zarr", fail)
        monkeypatch.setattr(xr.DataTree, "to_netcdf", fail)
        with pytest.raises(OSError, match="is full"):
            write_tree(tree, path, overwrite=overwrite)
        assert list(tmp_path.iterdir()) == [path] * overwrite
        if overwrite:
            xr.open_datatree(path, engine="zarr" if is_zarr(name) else "netcdf4").close()

    @pytest.mark.parametrize("overwrite", [False, True])
    def test_of_two_writers_of_a_folder(self, tree, tmp_path, monkeypatch, overwrite):
        """Both saw a free name: one succeeds, or both one after the other if they may replace."""
        pytest.importorskip("zarr")
        path, done = tmp_path / "out.zarr", []
        to_zarr = xr.DataTree.to_zarr

        def slow(self, to, **options):
            to_zarr(self, to, **options)
            if not done:  # the other is done first
                done.append(to)
                write_tree(tree, path, overwrite=overwrite)

        monkeypatch.setattr(xr.DataTree, "to_zarr", slow)
        if overwrite:
            write_tree(tree, path, overwrite=True)
        else:
            with pytest.raises(FileExistsError, match=r"out.zarr exists"):
                write_tree(tree, path)
        assert list(tmp_path.iterdir()) == [path]
        xr.open_datatree(path, engine="zarr").close()

    @pytest.mark.parametrize("times", [1, 9])
    def test_a_name_that_is_taken_again(self, tree, tmp_path, monkeypatch, times):
        """Another writer takes the name between two steps: it is replaced too, but not for ever."""
        pytest.importorskip("zarr")
        path, rename, left = write_tree(tree, tmp_path / "out.zarr"), Path.rename, [times]

        def late(self, to):
            if to == path and left[0]:
                left[0] -= 1
                (to / "x").mkdir(parents=True)
            return rename(self, to)

        monkeypatch.setattr(Path, "rename", late)
        if times == 1:
            write_tree(tree, path, overwrite=True)
            xr.open_datatree(path, engine="zarr").close()
        else:
            with pytest.raises(FileExistsError, match=r"out.zarr exists"):
                write_tree(tree, path, overwrite=True)

    def test_a_rename_that_fails(self, tree, tmp_path, monkeypatch):
        """The old folder is put back."""
        pytest.importorskip("zarr")
        path, rename = write_tree(tree, tmp_path / "out.zarr"), Path.rename

        def fail(self, to):
            if to == path and self.name == path.name:
                raise PermissionError("no")
            return rename(self, to)

        monkeypatch.setattr(Path, "rename", fail)
        with pytest.raises(PermissionError, match="no"):
            write_tree(tree, path, overwrite=True)
        xr.open_datatree(path, engine="zarr").close()
        assert list(tmp_path.iterdir()) == [path]

    def test_a_link_that_leads_nowhere(self, tree, tmp_path):
        """It is replaced on request."""
        pytest.importorskip("zarr")
        link = tmp_path / "out.zarr"
        link.symlink_to(tmp_path / "nowhere")
        with pytest.raises(FileExistsError, match="leads nowhere"):
            write_tree(tree, link)
        write_tree(tree, link, overwrite=True)
        assert link.is_dir()
        assert not link.is_symlink()

    def test_what_is_no_store_is_never_replaced(self, tree, tmp_path):
        """A folder of something else, or a file."""
        pytest.importorskip("zarr")
        folder, file = tmp_path / "letters.zarr", tmp_path / "file.zarr"
        folder.mkdir()
        (folder / "letter.txt").write_text("dear")
        file.write_text("x")
        with pytest.raises(FileExistsError, match="is a folder, but no Zarr store"):
            write_tree(tree, folder, overwrite=True)
        with pytest.raises(NotADirectoryError, match="a Zarr store is a folder"):
            write_tree(tree, file, overwrite=True)
        assert (folder / "letter.txt").read_text() == "dear"

    def test_without_zarr(self, tree, tmp_path, monkeypatch):
        """The message says what to install."""
        monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
        with pytest.raises(ImportError, match=r"pip install 'xcopula\[zarr\]'"):
            write_tree(tree, tmp_path / "out.zarr")


class Picture:
    """What a figure is to a writer; it can fail half way."""

    def __init__(self, error=None):
        self.error, self.options = error, {}

    def savefig(self, path, **options):
        """Write something, and perhaps fail."""
        self.options = options
        path.write_bytes(b"half")
        if self.error is not None:
            raise self.error
        path.write_bytes(b"whole")


class TestFigure:
    def test_complete_under_its_name(self, tmp_path):
        """Its ending says the format; options go to the figure."""
        picture = Picture()
        path = write_figure(picture, tmp_path / "map.png", dpi=70)
        assert path.read_bytes() == b"whole"
        assert picture.options == {"dpi": 70}
        with pytest.raises(FileExistsError):
            write_figure(picture, path)
        path.chmod(0o600)
        write_figure(picture, path, overwrite=True)
        assert path.stat().st_mode & 0o777 == 0o600
        assert list(tmp_path.iterdir()) == [path]

    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
    def test_a_full_disk_leaves_no_trace(self, tmp_path, number):
        """What was there before is still there."""
        path = tmp_path / "map.png"
        path.write_bytes(b"old")
        with pytest.raises(OSError, match="is full") as caught:
            write_figure(Picture(OSError(number, "no")), path, overwrite=True)
        assert caught.value.errno == errno.ENOSPC
        assert path.read_bytes() == b"old"
        assert list(tmp_path.iterdir()) == [path]

    def test_something_else_than_a_figure(self, tmp_path):
        """What cannot be saved is named."""
        with pytest.raises(TypeError, match=r"A figure is written, found int"):
            write_figure(3, tmp_path / "map.png")

    def test_a_real_one(self, tmp_path):
        """Matplotlib takes the path that it is given."""
        figure = pytest.importorskip("matplotlib.figure").Figure()
        path = write_figure(figure, tmp_path / "empty.png", dpi=20)
        assert path.read_bytes().startswith(b"\x89PNG")


WRITERS = """
import errno, sys
from pathlib import Path
import numpy as np, xarray as xr
from matplotlib.figure import Figure
from xcopula.storage import write_figure, write_netcdf

folder = Path(sys.argv[1])
{limit}
data = xr.Dataset({{"v": ("x", np.random.default_rng(0).normal(size=400_000))}})
figure = Figure(figsize=(9, 9))
figure.add_subplot().imshow(np.random.default_rng(0).normal(size=(600, 600)))
lazy = data.chunk(x=10_000)
for write, what, name in (
    (write_netcdf, data, "v.nc"), (write_netcdf, lazy, "v.nc"), (write_figure, figure, "v.png")
):
    (folder / name).write_bytes(b"old")
    try:
        write(what, folder / name, overwrite=True)
    except (OSError, RuntimeError) as error:
        assert "{says}" in str(error), error
    else:
        raise AssertionError("there was room")
    assert (folder / name).read_bytes() == b"old"
    (folder / "other").write_bytes(bytes(90_000))  # there is room again in the same process
    (folder / "other").unlink()
write_netcdf(data.isel(x=slice(100)), folder / "v.nc", overwrite=True)
assert sorted(p.name for p in folder.iterdir()) == ["v.nc", "v.png"], list(folder.iterdir())
"""


def test_a_disk_that_is_really_full(tmp_path):
    """Of 256 KiB: Datasets and figures say so, leave no trace, and what was there stays."""
    pytest.importorskip("matplotlib")
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare")
    own = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    mount = f"mount -t tmpfs -o size=256k none '{tmp_path}'"
    if subprocess.run([*own, mount], capture_output=True).returncode:
        pytest.skip("this user may not mount a file system of their own")
    script = WRITERS.format(limit="", says="is full")
    done = subprocess.run(
        [*own, f'{mount} && exec "$0" -c "$1" "$2"', sys.executable, script, str(tmp_path)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_a_file_that_may_not_grow(tmp_path):
    """The system stops a writer half way: no trace either."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("resource")
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))"
    script = WRITERS.format(limit=limit, says="")
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
