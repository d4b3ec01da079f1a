"""Write results to files: all or nothing, and never over an existing file unless asked to.

A Zarr store is a folder. It is filled under another name beside its place, then renamed.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import xarray as xr

from xcopula.arguments import check_flag, check_options
from xcopula.storage.netcdf import NETCDF_LOCK, check_attributes, check_names, fill_netcdf
from xcopula.warn import shown

__all__ = [
    "check_free",
    "check_source",
    "fill",
    "is_zarr",
    "put_in_place",
    "remove_unfinished",
    "require_zarr",
    "stamped",
    "write_figure",
    "write_netcdf",
    "write_tree",
]

# With less room than this, a write that failed has most likely failed for want of it.
_FULL_BYTES = 2**20
_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))  # the disk, or one's share of it
# Temporary names are a little longer; most file systems allow 255 bytes.
_LONGEST = 240
# What a system calls a folder that is to be renamed to something that is there.
_IN_THE_WAY = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)
# So often is a folder replaced that others replace at the same moment.
_ATTEMPTS = 5
# Temporary files and folders of this process.
_unfinished: set[Path] = set()


def check_free(path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Return the path if it may be written: a folder if its name ends in ``.zarr``, else a file.

    Raises
    ------
    FileExistsError
        If the path exists, even as a broken link, and ``overwrite`` is not set; or if it is a
        folder that is no Zarr store, which is never replaced.
    FileNotFoundError
        If its folder does not exist.
    IsADirectoryError, NotADirectoryError
        If the path is a folder and should be a file, or the reverse, or its parent is a file.
    PermissionError
        If nothing can be written in its folder.
    TypeError
        If it is not a path, or ``overwrite`` is neither True nor False.
    ValueError
        If the name is too long.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"`path` must be a string or a path, found {shown(path)}.")
    check_flag("overwrite", overwrite)
    path = Path(path)
    size = len(os.fsencode(path.name))
    if size > _LONGEST:
        raise ValueError(
            f"The name of a file must have at most {_LONGEST} bytes, found {size}: "
            f"{path.name[:30]}... Choose a shorter one."
        )
    if path.is_dir() and not is_zarr(path):
        raise IsADirectoryError(f"{path} is a folder. Give the name of a file in it.")
    if os.path.lexists(path) and not overwrite:
        raise _taken(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise FileExistsError(f"{path} is a device or a pipe. Choose another name.")
    if is_zarr(path) and path.is_file():
        raise NotADirectoryError(f"{path} is a file; a Zarr store is a folder. Remove it first.")
    if is_zarr(path) and path.is_dir() and not _is_store(path):
        raise FileExistsError(f"{path} is a folder, but no Zarr store. Choose another name.")
    if path.parent.is_file():
        raise NotADirectoryError(f"{path.parent} is a file, not a folder. Choose another name.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} does not exist. Create it first.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(
            f"The folder {path.parent} cannot be written to. Choose another, or change its "
            "permissions."
        )
    return path


def check_source(dataset: xr.Dataset, path: Path) -> None:
    """Refuse to replace the file that values of a lazy Dataset are read from.

    Raises
    ------
    ValueError
    """
    variables = dataset.variables.values()
    if all(variable._in_memory for variable in variables):
        return
    encodings = [dataset.encoding, *(variable.encoding for variable in variables)]
    for source in {str(encoding.get("source", "")) for encoding in encodings}:
        if source and path.exists() and os.path.exists(source) and os.path.samefile(source, path):
            raise ValueError(
                f"`path` is the file that the Dataset is read from, {path}. Choose another name, "
                "or `load` the Dataset first."
            )


def is_zarr(path: str | os.PathLike[str]) -> bool:
    """Tell whether the name of a path says that it is a Zarr store."""
    return Path(path).suffix == ".zarr"


def require_zarr() -> None:
    """Raise where Zarr stores can neither be written nor read.

    Raises
    ------
    ImportError
    """
    if importlib.util.find_spec("zarr") is None:
        raise ImportError(
            "Files that end in .zarr need the package zarr. Install it with `pip install "
            "'xcopula[zarr]'`, or choose a name that ends in .nc."
        )


def _is_store(folder: Path) -> bool:
    known = (".zgroup", ".zarray", "zarr.json")
    return any((folder / name).is_file() for name in known) or not any(folder.iterdir())


def _taken(path: Path) -> FileExistsError:
    what = "exists" if path.exists() else "is a symbolic link that leads nowhere"
    return FileExistsError(f"{path} {what}. Choose another name, or pass overwrite.")


@check_options
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
    TypeError, ValueError
        If a file cannot hold a name or an attribute, or the Dataset is lazy and read from the
        file.
    """
    if not isinstance(dataset, xr.Dataset):
        raise TypeError(
            f"`dataset` must be a Dataset, found {type(dataset).__name__}. Convert a DataArray "
            "with `to_dataset`."
        )
    check_names(dataset)
    check_attributes(dataset)
    check_source(dataset, check_free(path, overwrite=overwrite))
    dated = dataset.assign_attrs(stamped(dataset.attrs))
    return _write(lambda to: fill_netcdf(dated, to), path, overwrite=overwrite)


def write_tree(
    tree: xr.DataTree,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    encoding: Mapping[str, Any] | None = None,
) -> Path:
    """Write a DataTree as :func:`write_netcdf` writes a Dataset: complete, or not at all.

    A name that ends in ``.zarr`` makes a Zarr store (format 2, with consolidated metadata), any
    other a NetCDF file. A store that is replaced is moved aside, and removed when the new one is in
    its place.

    Parameters
    ----------
    encoding : mapping, optional
        For each group, that of its variables, as xarray takes it.

    Raises
    ------
    FileExistsError
        If there is something under the name, or another writer was faster.
    ImportError
        If a Zarr store is asked for and zarr is not installed.
    OSError
        If the disk is full.
    """
    dated = tree.copy()
    dated.attrs = stamped(tree.attrs)
    groups = dict(encoding or {})
    if not is_zarr(path):

        def write_file(to: Path) -> None:
            with NETCDF_LOCK:
                dated.to_netcdf(to, engine="netcdf4", encoding=groups)

        return _write(write_file, path, overwrite=overwrite)
    require_zarr()

    def write(to: Path) -> None:
        # Format 2 is what every version of zarr reads, texts and consolidated metadata included.
        dated.to_zarr(to, mode="w", encoding=groups, consolidated=True, zarr_format=2)

    return _write_folder(write, path, overwrite=overwrite)


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
    _unfinished.add(temporary)
    try:
        try:
            fill(write, temporary, place.parent)
        except BaseException:
            _discard(temporary)
            raise
        temporary.chmod(_mode(place))
        if overwrite:
            temporary.replace(place)
        else:
            _create(temporary, place)
    finally:
        temporary.unlink(missing_ok=True)
        _unfinished.discard(temporary)
    return path


def remove_unfinished() -> None:
    """Remove the temporary files of all that is being written: the process is about to end."""
    for path in list(_unfinished):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _discard(path: Path) -> None:
    """Remove a file that could not be written, and give its space back.

    The HDF5 library keeps it open until the process ends. Threads that still write a block are
    waited for.
    """
    with NETCDF_LOCK, suppress(OSError):
        os.truncate(path, 0)
        path.unlink()


def _write_folder(
    write: Callable[[Path], object], path: str | os.PathLike[str], *, overwrite: bool
) -> Path:
    """Fill a temporary folder beside the path, and give it its name when it is complete."""
    path = check_free(path, overwrite=overwrite)
    place = path.resolve() if path.is_symlink() and path.exists() else path
    aside = Path(tempfile.mkdtemp(prefix=f".{place.stem}-", dir=place.parent))
    temporary = aside / place.name
    _unfinished.add(aside)
    try:
        temporary.mkdir()
        fill(write, temporary, place.parent)
        put_in_place(temporary, place, aside, overwrite=overwrite)
    finally:
        shutil.rmtree(aside)
        _unfinished.discard(aside)
    return path


def put_in_place(temporary: Path, place: Path, aside: Path, *, overwrite: bool) -> None:
    """Give a finished folder its name; one that it replaces is moved aside.

    Raises
    ------
    FileExistsError
        If there is something under the name, and it is not to be replaced.
    """
    if place.is_dir():
        temporary.chmod(place.stat().st_mode & 0o7777)
    if overwrite:
        _swap(temporary, place, aside)
    else:
        _move(temporary, place)


def _swap(temporary: Path, place: Path, aside: Path) -> None:
    """Put a finished folder in the place of another, which is put back if that fails."""
    if place.is_symlink():  # it leads nowhere
        place.unlink()
    for attempt in range(_ATTEMPTS):
        old = aside / f"old-{attempt}"
        if place.is_dir():
            place.rename(old)
        try:
            return _move(temporary, place)
        except FileExistsError:  # another writer has replaced it just now
            continue
        except BaseException:
            if old.exists():
                old.rename(place)
            raise
    raise _taken(place)


def _move(temporary: Path, place: Path) -> None:
    """Give a finished folder its name: the system refuses where there is something in the way."""
    try:
        temporary.rename(place)
    except OSError as error:
        if error.errno in _IN_THE_WAY:
            raise _taken(place) from None
        raise


def fill(write: Callable[[Path], object], path: Path, folder: Path) -> None:
    """Write, and say of a full disk that it is one.

    Raises
    ------
    OSError
        If the disk of the folder is full.
    """
    try:
        write(path)
    except (OSError, RuntimeError) as error:
        # The HDF5 library calls every failed write the same: ask the disk itself.
        free = shutil.disk_usage(folder).free
        if getattr(error, "errno", None) in _FULL or free < _FULL_BYTES:
            raise OSError(
                errno.ENOSPC,
                f"The disk of {folder} is full: {free:,} bytes are left. Nothing was "
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
        with NETCDF_LOCK:  # the mask is that of the process: another thread would read the zero
            mask = os.umask(0)
            os.umask(mask)
        return 0o666 & ~mask


def stamped(attrs: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
    """Return attributes with a line of history, the newest first, as is the custom."""
    # By name: the package's own file imports what imports this one.
    version = importlib.import_module("xcopula").__version__
    line = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}: written by xcopula {version}"
    earlier = str(attrs.get("history", ""))
    history = f"{line}\n{earlier}" if earlier else line
    return {**attrs, "history": history, "xcopula_version": version}
