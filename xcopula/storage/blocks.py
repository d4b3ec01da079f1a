"""Write a lazy Dataset to a Zarr store block by block, and go on where a write was interrupted.

The store is filled in a folder beside its place, with a plan of what is written there and a mark
for each block that is complete. When all blocks are, the store gets its name and the folder goes.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.arguments import check_flag, check_options
from xcopula.storage.netcdf import check_names, load_labels
from xcopula.storage.whole import (
    check_free,
    check_source,
    fill,
    put_in_place,
    require_zarr,
    stamped,
)

__all__ = ["write_zarr"]

Block = tuple[int, ...]

_PLAN, _MARKS, _LOCK = "plan.json", "finished", "lock"


@check_options
def write_zarr(
    dataset: xr.Dataset,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    resume: bool = False,
    made_from: Mapping[str, str] | None = None,
) -> Path:
    """Write a Dataset to a Zarr store (format 2): complete, or not at all under its name.

    Blocks of dask are written as they are computed, and become the chunks of the store. A write
    that was interrupted or killed leaves a hidden folder beside the path, and goes on with
    ``resume``: complete blocks are skipped.

    Parameters
    ----------
    dataset : Dataset
    path : str or path
        Its name ends in ``.zarr``.
    overwrite : bool
        Whether a store of that name, and what an interrupted write has left, are replaced.
    resume : bool
        Whether to go on with an interrupted write, if there is one.
    made_from : mapping of str to str, optional
        What the values depend on, such as checksums of files, by names for a message. A write
        goes on only if they are the same.

    Raises
    ------
    FileExistsError
        If there is something under the name; if an interrupted write is there, and neither
        ``resume`` nor ``overwrite`` is set; or if another process is writing it.
    ImportError
        If zarr is not installed.
    OSError
        If the disk is full.
    ValueError
        If what was interrupted was made from something else, or has other blocks; if a store
        cannot hold a name; or if the Dataset is lazy and read from the store.
    """
    require_zarr()
    path = check_free(path, overwrite=overwrite)
    check_flag("resume", resume)
    check_names(dataset)
    check_source(dataset, path)
    place = path.resolve() if path.is_symlink() and path.exists() else path
    aside = place.parent / f".{place.name}.partial"
    dated = _bare(dataset.assign_attrs(stamped(dataset.attrs)))
    partial = _Partial(aside, aside / place.name, _plan(dated, made_from or {}))
    with _alone(aside, path):
        partial.begin(dated, path, overwrite=overwrite, resume=resume)
        try:
            fill(lambda _: partial.write(dated), partial.store, place.parent)
            put_in_place(partial.store, place, aside, overwrite=overwrite)
        except BaseException as error:
            partial.leave(error, path)
            raise
        partial.end()
    return path


def _bare(dataset: xr.Dataset) -> xr.Dataset:
    """Return the Dataset as it is stored: lazy numbers as they are, all else in memory.

    How a variable was packed in another file is forgotten: blocks are written without a codec of
    xarray's.
    """
    return load_labels(dataset).drop_encoding()


def _lazy(dataset: xr.Dataset) -> dict[str, xr.Variable]:
    return {str(n): v for n, v in dataset.variables.items() if v.chunks is not None}


def _plan(dataset: xr.Dataset, made_from: Mapping[str, str]) -> dict[str, str]:
    """Return what must be the same for a write to go on, by names for a message."""
    blocks = {n: [v.dims, str(v.dtype), v.chunks] for n, v in _lazy(dataset).items()}
    return {
        **made_from,
        "the version of xcopula": importlib.import_module("xcopula").__version__,
        "the variables or their blocks": json.dumps(blocks, sort_keys=True, default=str),
    }


@contextmanager
def _alone(aside: Path, path: Path) -> Iterator[None]:
    """Let one process at a time fill the folder; the system frees it for one that was killed.

    A folder without a plan is removed at the end, when its lock is closed: an open file cannot be
    removed on Windows.
    """
    aside.mkdir(exist_ok=True)
    locked = False
    try:
        with open(aside / _LOCK, "w") as lock:
            if os.name == "posix":  # elsewhere two processes that resume one write can do it twice
                import fcntl

                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise FileExistsError(
                        f"Another process is writing {path}. Wait for it, or choose another name."
                    ) from None
            locked = True
            yield
    finally:
        if locked and not (aside / _PLAN).exists():
            shutil.rmtree(aside, ignore_errors=True)


@dataclass(frozen=True)
class _Partial:
    """A store that is not complete.

    Attributes
    ----------
    aside : Path
        The folder of the store, its plan and its marks.
    store : Path
    plan : dict of str to str
        What the store is, for comparison.
    """

    aside: Path
    store: Path
    plan: dict[str, str]

    @property
    def marks(self) -> Path:
        """Folder with an empty file for each block that is complete."""
        return self.aside / _MARKS

    def begin(self, dataset: xr.Dataset, path: Path, *, overwrite: bool, resume: bool) -> None:
        """Make an empty store with all but lazy values, unless there is one to go on with."""
        try:
            before = json.loads((self.aside / _PLAN).read_text())
        except (FileNotFoundError, json.JSONDecodeError):  # ended before it had begun
            before = None
        if before is not None and resume:
            changed = [k for k in {**before, **self.plan} if before.get(k) != self.plan.get(k)]
            if changed:
                raise ValueError(
                    f"The interrupted write of {path} cannot go on: {', '.join(changed)} changed "
                    "since. Begin anew with overwrite."
                )
            return
        if before is not None and not overwrite:
            raise FileExistsError(
                f"A write of {path} was interrupted; its blocks are in {self.aside}. Go on with "
                "resume, or begin anew with overwrite."
            )
        for folder in (self.store, self.marks):
            shutil.rmtree(folder, ignore_errors=True)
        self.marks.mkdir()
        # Format 2 is what every version of zarr reads.
        options: dict[str, Any] = {"mode": "w", "consolidated": True, "zarr_format": 2}
        dataset.to_zarr(self.store, compute=False, **options)
        (self.aside / _PLAN).write_text(json.dumps(self.plan))

    def write(self, dataset: xr.Dataset) -> None:
        """Compute and write the blocks that are not complete, in one graph."""
        import dask.array as da

        sources, targets, regions = [], [], []
        for name, variable in _lazy(dataset).items():
            target = _Target(str(self.store), name, str(self.marks), _chunks(variable))
            for box in _boxes(self._missing(name, variable)):
                sources.append(variable.data.blocks[box])
                targets.append(target)
                regions.append(_region(box, variable))
        if sources:
            da.store(sources, targets, regions=regions, lock=False)

    def end(self) -> None:
        """Remove the plan: nothing is left to go on with."""
        (self.aside / _PLAN).unlink(missing_ok=True)

    def leave(self, error: BaseException, path: Path) -> None:
        """End a write without a complete block; of any other, say that it is there."""
        done = len(list(self.marks.iterdir())) if self.marks.is_dir() else 0
        if not done:
            self.end()
            return
        error.add_note(f"{done} blocks of {path} are written. Go on with resume.")

    def _missing(self, name: str, variable: xr.Variable) -> npt.NDArray[np.bool_]:
        """Tell for each block of a variable whether it is still to be written."""
        missing = np.ones([len(pieces) for pieces in variable.chunks or ()], bool)
        there = {mark.name for mark in self.marks.iterdir()}
        for block in np.ndindex(missing.shape):
            missing[block] = _mark(name, block) not in there
        return missing


def _mark(name: str, block: Block) -> str:
    # In hexadecimal: the name of a variable may be no name of a file.
    return f"{name.encode().hex()}-{'.'.join(map(str, block))}"


def _boxes(missing: npt.NDArray[np.bool_]) -> Iterator[tuple[slice, ...]]:
    """Yield boxes of blocks that hold all that are missing, and no other.

    A graph of a few boxes is made much faster than one of each block.
    """
    waiting = [tuple(slice(0, n) for n in missing.shape)]
    while waiting:
        box = waiting.pop()
        if missing[box].all():
            yield box
        elif missing[box].any():
            axis = int(np.argmax(missing[box].shape))
            start, stop = box[axis].start, box[axis].stop
            middle = (start + stop) // 2
            for part in (slice(middle, stop), slice(start, middle)):  # the first half comes next
                waiting.append((*box[:axis], part, *box[axis + 1 :]))


def _chunks(variable: xr.Variable) -> tuple[int, ...]:
    """Return the size of all blocks but the last, along each dim."""
    return tuple(pieces[0] for pieces in variable.chunks or ())


def _region(box: tuple[slice, ...], variable: xr.Variable) -> tuple[slice, ...]:
    """Return where in the variable a box of blocks lies."""
    edges = zip(box, _chunks(variable), variable.shape, strict=True)
    return tuple(slice(b.start * size, min(b.stop * size, n)) for b, size, n in edges)


@dataclass(frozen=True)
class _Target:
    """An array of a store that marks each block once it is written; it may travel to workers."""

    store: str
    name: str
    marks: str
    chunks: tuple[int, ...]

    def __setitem__(self, region: tuple[slice, ...], values: npt.NDArray[Any]) -> None:
        _array(self.store, self.name)[region] = np.asarray(values)
        block = tuple(s.start // size for s, size in zip(region, self.chunks, strict=True))
        (Path(self.marks) / _mark(self.name, block)).touch()


@functools.lru_cache(maxsize=64)
def _array(store: str, name: str) -> Any:
    import zarr

    return zarr.open_array(f"{store}/{name}", mode="r+")
