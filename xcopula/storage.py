"""Write results to files: all or nothing, and never over an existing file unless asked to."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import xarray as xr

import xcopula
from xcopula.warn import shown

__all__ = ["check_free", "write_figure", "write_netcdf"]

# With less room than this, a write that failed has most likely failed for want of it.
_FULL_BYTES = 2**20
_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))  # the disk, or one's share of it


def check_free(path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Return the path if it may be written.

    Raises
    ------
    FileExistsError
        If the path exists, even as a broken link, and ``overwrite`` is not set.
    FileNotFoundError
        If its folder does not exist.
    IsADirectoryError, NotADirectoryError
        If the path is a folder, or its parent is a file.
    TypeError
        If it is not a path.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"`path` must be a string or a path, found {shown(path)}.")
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder. Give the name of a file in it.")
    if os.path.lexists(path) and not overwrite:
        raise _taken(path)
    if path.parent.is_file():
        raise NotADirectoryError(f"{path.parent} is a file, not a folder. Choose another name.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} does not exist. Create it first.")
    return path


def _taken(path: Path) -> FileExistsError:
    what = "exists" if path.exists() else "is a symbolic link that leads nowhere"
    return FileExistsError(f"{path} {what}. Choose another name, or pass overwrite.")


def write_netcdf(
    dataset: xr.Dataset, path: str | os.PathLike[str], *, overwrite: bool = False
) -> Path:
    """Write a Dataset to NetCDF through a temporary file beside it: a failure leaves no trace.

    The attributes ``history`` and ``xcopula_version`` of the file say when and by what it was
    written; the Dataset in memory does not change. A file that is replaced keeps its permissions,
    and a symbolic link still leads to it. Without ``overwrite``, if several processes write the
    same file, exactly one succeeds.

    Raises
    ------
    FileExistsError
        If the file exists, or another writer was faster.
    OSError
        If the disk is full.
    """
    if not isinstance(dataset, xr.Dataset):
        raise TypeError(
            f"`dataset` must be a Dataset, found {type(dataset).__name__}. Convert a DataArray "
            "with `to_dataset`."
        )
    stamped = _stamped(dataset)
    return _write(lambda to: stamped.to_netcdf(to, engine="netcdf4"), path, overwrite=overwrite)


def write_figure(
    figure: Any, path: str | os.PathLike[str], *, overwrite: bool = False, **options: Any
) -> Path:
    """Write a figure as :func:`write_netcdf` writes a Dataset: complete, or not at all.

    Options go to the figure's ``savefig``; the ending of the name says which format it is.
    """
    if not callable(getattr(figure, "savefig", None)):
        raise TypeError(f"A figure is written, found {type(figure).__name__}.")
    return _write(lambda to: figure.savefig(to, **options), path, overwrite=overwrite)


def _write(
    write: Callable[[Path], object], path: str | os.PathLike[str], *, overwrite: bool
) -> Path:
    """Write to a temporary sibling, and give it its name when it is complete."""
    path = check_free(path, overwrite=overwrite)
    place = path.resolve() if path.is_symlink() and path.exists() else path
    ending = place.suffix or ".tmp"
    handle, name = tempfile.mkstemp(suffix=ending, prefix=f".{place.stem}-", dir=place.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        _fill(write, temporary)
        temporary.chmod(_mode(place))
        if overwrite:
            temporary.replace(place)
        else:
            _create(temporary, place)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def _fill(write: Callable[[Path], object], path: Path) -> None:
    try:
        write(path)
    except (OSError, RuntimeError) as error:
        # The HDF5 library calls every failed write the same: ask the disk itself.
        free = shutil.disk_usage(path.parent).free
        if getattr(error, "errno", None) in _FULL or free < _FULL_BYTES:
            raise OSError(
                errno.ENOSPC,
                f"The disk of {path.parent} is full: {free:,} bytes are left. Nothing was "
                "written. Make room, or write elsewhere",
            ) from error
        raise


def _create(temporary: Path, path: Path) -> None:
    """Give a finished file its name, unless the name is taken: check and creation are one act."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise _taken(path) from None
    except OSError:  # a file system without links: take the name first, then fill it
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            raise _taken(path) from None
        temporary.replace(path)


def _mode(path: Path) -> int:
    """Return the permissions of the file that is replaced, or those of a new one."""
    try:
        return path.stat().st_mode & 0o7777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _stamped(dataset: xr.Dataset) -> xr.Dataset:
    """Return the Dataset with a line of history, the newest first, as is the custom."""
    version = xcopula.__version__
    line = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}: written by xcopula {version}"
    earlier = str(dataset.attrs.get("history", ""))
    history = f"{line}\n{earlier}" if earlier else line
    return dataset.assign_attrs(history=history, xcopula_version=version)
