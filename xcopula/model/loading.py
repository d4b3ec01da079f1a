"""Read a fitted model from a file. Nothing in a file is run, and nothing of it is trusted.

Before anything is read, the file must declare arrays of plain numbers and texts, of a size that it
can hold.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from xcopula.arguments import check_options
from xcopula.errors import ModelFormatError
from xcopula.model.reading import from_tree
from xcopula.model.record import CopulaModel
from xcopula.storage import NETCDF_LOCK, is_zarr, require_zarr
from xcopula.warn import shown

__all__ = ["load"]

Given = Mapping[str, Any] | None

# More than this, in bytes and for each byte of the file, is not in a model, however it compresses.
_ALWAYS, _RATIO = 2**24, 200
# Of Zarr: the others may run code, or are not needed.
_COMPRESSORS = ("blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd")
_KINDS = "biufU"


@check_options
def load(
    path: str | os.PathLike[str],
    *,
    laws: Given = None,
    kernels: Given = None,
    methods: Given = None,
    solvers: Given = None,
) -> CopulaModel:
    """Read a model that :meth:`CopulaModel.save` has written.

    Its predictions are those of the model that was saved, to the last bit on the same machine. The
    data need not be there. A file is not a program: no code in it is run.

    Parameters
    ----------
    path : path-like
        A NetCDF file, or a Zarr store if the name ends in ``.zarr``.
    laws, kernels, methods, solvers : mapping of str to type, optional
        Classes of your own that the model holds, by the names that they had when it was saved:
        ``laws={"Logistic": Logistic}``. They are not in the file.

    Returns
    -------
    CopulaModel

    Raises
    ------
    FileNotFoundError
        If there is nothing under this name.
    ModelFormatError
        If it is not a model, is damaged, was written by a newer version, or holds a class that was
        not given.
    ImportError
        If it is a Zarr store and zarr is not installed.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"`path` must be a string or a path, found {shown(path)}.")
    path = Path(path)
    own = {
        f"{kind}:{name}": _class(argument, name, each)
        for kind, argument, given in (
            ("law", "laws", laws),
            ("kernel", "kernels", kernels),
            ("method", "methods", methods),
            ("solver", "solvers", solvers),
        )
        for name, each in _items(argument, given)
    }
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if not (path.is_file() or path.is_dir()):  # to open a pipe may take for ever
        raise ModelFormatError(f"{path} must be a file or a Zarr store, found a device or a pipe.")
    if is_zarr(path):
        require_zarr()
    try:
        with nullcontext() if is_zarr(path) else NETCDF_LOCK:
            _check_sizes(path)
            with _opened(path) as tree:
                return from_tree(tree, own)
    except ModelFormatError as error:
        raise ModelFormatError(f"{path} cannot be read. {error}") from error.__cause__
    except Exception as error:  # whatever is wrong with a file, it ends here
        raise ModelFormatError(
            f"{path} cannot be read as a model: it is damaged, or no file of this kind "
            f"({type(error).__name__}: {error})."
        ) from error


def _items(argument: str, given: Given) -> Iterator[tuple[str, Any]]:
    if given is None:
        return iter(())
    if not isinstance(given, Mapping):
        raise TypeError(
            f"`{argument}` must map names to classes, as in {{'Mine': Mine}}, found {shown(given)}."
        )
    return iter(given.items())


def _class(argument: str, name: str, given: Any) -> type:
    """Return a class that was given, itself or by an instance."""
    kind = given if isinstance(given, type) else type(given)
    if kind.__module__ == "builtins":
        raise TypeError(f"`{argument}` must hold classes, found {shown(given)} for {name!r}.")
    return kind


def _opened(path: Path) -> xr.DataTree:
    """Open a file as it is: nothing decoded, nothing but coordinates read."""
    # Each by its name: earlier versions of xarray do not hand `decode_cf` down to the groups.
    names = ("mask_and_scale", "decode_coords", "decode_times", "decode_timedelta")
    options: dict[str, Any] = dict.fromkeys(names, False)
    if is_zarr(path):
        # Consolidated metadata are a copy of what was checked.
        return xr.open_datatree(path, engine="zarr", consolidated=False, **options)
    return xr.open_datatree(path, engine="netcdf4", **options)


def _check_sizes(path: Path) -> None:
    """Refuse arrays of objects, or larger than the file can hold, before any is read."""
    declared, size = _zarr_arrays(path) if is_zarr(path) else _netcdf_arrays(path)
    total = 0
    for name, dtype, shape in declared:
        if dtype.kind not in _KINDS:
            raise ModelFormatError(f"The array {name!r} must hold numbers, found {dtype}.")
        total += math.prod(shape) * dtype.itemsize
    if total > _ALWAYS + _RATIO * size:
        raise ModelFormatError(
            f"Its arrays would take {total:,} bytes, but the file has no more than {size:,}."
        )


Declared = list[tuple[str, np.dtype[Any], tuple[int, ...]]]


def _netcdf_arrays(path: Path) -> tuple[Declared, int]:
    import netCDF4

    found: Declared = []
    with netCDF4.Dataset(str(path), "r") as root:
        groups = [root]
        while groups:
            group = groups.pop()
            groups += group.groups.values()
            for name, variable in group.variables.items():
                if variable.dtype is str:
                    dtype = np.dtype("U16")  # texts have any length; as long as the file, in all
                elif isinstance(variable.datatype, np.dtype):
                    dtype = variable.datatype
                else:
                    raise ModelFormatError(f"The array {name!r} has a type of its own.")
                found.append((name, dtype, variable.shape))
    return found, path.stat().st_size


def _zarr_arrays(path: Path) -> tuple[Declared, int]:
    found: Declared = []
    size = 0
    for folder, names, files in os.walk(path):
        here = Path(folder)
        if any((here / name).is_symlink() for name in (*names, *files)):
            raise ModelFormatError("A symbolic link is in it.")
        if not all((here / name).is_file() for name in files):
            raise ModelFormatError("A device or a pipe is in it.")
        if "zarr.json" in files:
            raise ModelFormatError("It has Zarr format 3; a model has format 2.")
        size += sum((here / name).stat().st_size for name in files)
        if ".zarray" in files:
            about = json.loads((here / ".zarray").read_text())
            dtype, name = np.dtype(str(about["dtype"])), here.name
            codecs = [about["compressor"] or {"id": "zlib"}]
            if about["filters"] or codecs[0]["id"] not in _COMPRESSORS:
                raise ModelFormatError(
                    f"The array {name!r} is packed in a way that models are not."
                )
            found += [(name, dtype, tuple(about["shape"])), (name, dtype, tuple(about["chunks"]))]
    return found, size
