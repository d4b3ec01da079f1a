"""Zarr stores block by block: whole under their name, and resumed after an interruption."""

from __future__ import annotations

import json
import os
import shutil
import threading

import numpy as np
import pytest
import xarray as xr

from xcopula.storage import blocks, write_zarr

da = pytest.importorskip("dask.array")
pytest.importorskip("zarr")

COUNT = [0]
META = np.empty((0, 0))  # without it, dask calls functions once more to see what they return


def counted(values):
    """Return the values, and count that they were computed."""
    COUNT[0] += 1
    return values


def failing(values, *, last):
    """Fail once so many blocks are computed."""
    if COUNT[0] >= last:
        raise OSError("the plug was pulled")
    return counted(values)


def dataset(last: int | None = None) -> xr.Dataset:
    """Seven blocks of a variable and of a 2-D coordinate, beside what is in memory."""
    COUNT[0] = 0
    values = da.from_array(np.arange(7.0 * 4 * 5).reshape(2, 14, 5), chunks=(2, 2, 5))
    first = values[0] if last is None else values[0].map_blocks(failing, last=last, meta=META)
    field = first.map_blocks(counted, meta=META) if last is None else first
    return xr.Dataset(
        {
            "v": (("y", "x"), field, {"units": "mm"}),
            "flag": (("y", "x"), values[0] > 3.0),
            "name/of it": ("y", np.arange(14)),
        },
        coords={
            "y": np.arange(14.0),
            "lon": (("y", "x"), values[1]),
            "when": ("y", da.from_array(np.full(14, np.datetime64("2024-05-31", "ns")), chunks=2)),
            "time": np.datetime64("2024-05-31", "ns"),
        },
        attrs={"title": "blocks"},
    ).rename({"name/of it": "number"})


def interrupt(path, **options) -> pytest.ExceptionInfo:
    """Write until the fourth block fails."""
    import dask

    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(OSError, match="plug") as caught,
    ):
        write_zarr(dataset(3), path, **options)
    return caught


def partial(path):
    return path.parent / f".{path.name}.partial"


def test_there_and_back(tmp_path):
    """The store holds all variables, in the chunks of dask, and nothing is left beside it."""
    path = write_zarr(dataset(), tmp_path / "out.zarr")
    assert [p.name for p in tmp_path.iterdir()] == ["out.zarr"]
    found = xr.open_zarr(path)
    assert found["v"].chunks == ((2,) * 7, (5,))
    assert found.attrs["title"] == "blocks"
    assert "written by xcopula" in found.attrs["history"]
    xr.testing.assert_equal(found.compute(), dataset().compute())
    assert found["v"].attrs == {"units": "mm"}


def test_what_is_in_memory_is_written_too(tmp_path):
    """A Dataset without blocks is a store as well."""
    small = xr.Dataset({"v": ("x", [1.0, np.nan])}, coords={"x": [1, 2]})
    xr.testing.assert_equal(xr.open_zarr(write_zarr(small, tmp_path / "o.zarr")).load(), small)


def test_packing_of_another_file_is_forgotten(tmp_path):
    """Blocks are written as they are, whatever their source did with them."""
    packed = dataset()
    packed["v"].encoding = {"scale_factor": 0.5, "dtype": "int16", "chunks": (3, 3)}
    found = xr.open_zarr(write_zarr(packed, tmp_path / "o.zarr"))
    xr.testing.assert_equal(found.compute(), dataset().compute())


def test_goes_on_after_an_interruption(tmp_path):
    """Complete blocks are not computed again, and the store equals one written in one go."""
    path = tmp_path / "out.zarr"
    caught = interrupt(path, made_from={"the grid": "a"})
    assert any("Go on with resume" in note for note in caught.value.__notes__)
    assert not path.exists()
    kept = {p.name for p in (partial(path) / "finished").iterdir()}
    done = sum(name.startswith(f"{b'v'.hex()}-") for name in kept)
    assert 0 < done < 7
    whole = dataset()
    write_zarr(whole, path, resume=True, made_from={"the grid": "a"})
    assert COUNT[0] == 7 - done
    one_go = write_zarr(dataset(), tmp_path / "other.zarr")
    xr.testing.assert_identical(
        xr.open_zarr(path).load().drop_attrs(deep=False),
        xr.open_zarr(one_go).load().drop_attrs(deep=False),
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other.zarr", "out.zarr"]


def test_what_was_interrupted_is_not_touched_unasked(tmp_path):
    """It is neither continued nor removed without a word; overwrite begins anew."""
    path = tmp_path / "out.zarr"
    interrupt(path)
    with pytest.raises(FileExistsError, match=r"was interrupted.* resume, or .* overwrite"):
        write_zarr(dataset(), path)
    assert partial(path).is_dir()
    write_zarr(dataset(), path, overwrite=True)
    assert COUNT[0] == 7
    assert not partial(path).exists()


@pytest.mark.parametrize("changed", ["grid", "blocks", "version"])
def test_what_has_changed_is_not_continued(tmp_path, monkeypatch, changed):
    """Another grid, other blocks or another version are refused, by name."""
    path = tmp_path / "out.zarr"
    interrupt(path, made_from={"the grid": "a"})
    data, grid, what = dataset(), "a", "the grid"
    if changed == "grid":
        grid = "b"
    elif changed == "blocks":
        data, what = data.chunk(y=7), "the variables or their blocks"
    else:
        monkeypatch.setattr("xcopula.__version__", "0.0.7")
        what = "the version of xcopula"
    with pytest.raises(ValueError, match=f"cannot go on: {what} changed"):
        write_zarr(data, path, resume=True, made_from={"the grid": grid})
    assert partial(path).is_dir()


def test_resume_without_an_interruption_begins(tmp_path):
    """A job that is started again and again may always say so; a broken plan is none."""
    path = tmp_path / "out.zarr"
    partial(path).mkdir()
    (partial(path) / "plan.json").write_text('{"the gr')
    write_zarr(dataset(), path, resume=True)
    assert COUNT[0] == 7
    with pytest.raises(FileExistsError, match="exists"):
        write_zarr(dataset(), path, resume=True)


def test_a_failure_before_the_first_block_leaves_no_trace(tmp_path):
    """There is nothing to go on with."""
    with pytest.raises(OSError, match="plug"):
        write_zarr(dataset(0)["v"].reset_coords(drop=True).to_dataset(), tmp_path / "out.zarr")
    assert list(tmp_path.iterdir()) == []


def test_one_process_at_a_time(tmp_path):
    """A second writer is told that there is a first, which goes on unharmed."""
    pytest.importorskip("fcntl")
    path, inside, go = tmp_path / "out.zarr", threading.Event(), threading.Event()

    def slow(values):
        inside.set()
        assert go.wait(30)
        return values

    data = dataset()[["flag"]]
    waiting = data.assign(
        flag=data["flag"].copy(data=data["flag"].data.map_blocks(slow, meta=META.astype(bool)))
    )
    first = threading.Thread(target=write_zarr, args=(waiting, path))
    first.start()
    assert inside.wait(30)
    with pytest.raises(FileExistsError, match="Another process is writing"):
        write_zarr(data, path, resume=True)
    go.set()
    first.join()
    xr.testing.assert_equal(xr.open_zarr(path).load(), data.load())


def test_boxes_hold_what_is_missing_and_no_more():
    """Drawn patterns are covered once, in boxes."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        missing = rng.random(rng.integers(1, 6, size=3)) < 0.6
        covered = np.zeros(missing.shape, int)
        for box in blocks._boxes(missing):
            covered[box] += 1
        np.testing.assert_array_equal(covered, missing)
    assert len(list(blocks._boxes(np.ones((9, 9), bool)))) == 1


def test_the_plan_is_text(tmp_path):
    """It can be read, and says what the store was made from."""
    path = tmp_path / "out.zarr"
    interrupt(path, made_from={"the grid": "abc"})
    assert json.loads((partial(path) / "plan.json").read_text())["the grid"] == "abc"


@pytest.mark.skipif(os.name != "posix", reason="asks the system who has locked a file")
def test_the_folder_is_removed_when_its_lock_is_closed(tmp_path, monkeypatch):
    """On Windows an open file cannot be removed, nor the folder that it is in."""
    import fcntl

    rmtree = shutil.rmtree

    def strict(folder, **options):
        if (folder / "lock").exists():
            with open(folder / "lock") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises where another is open
        rmtree(folder, **options)

    monkeypatch.setattr(shutil, "rmtree", strict)
    path = write_zarr(dataset(), tmp_path / "out.zarr")
    write_zarr(dataset(), path, overwrite=True)
    assert list(tmp_path.iterdir()) == [path]
