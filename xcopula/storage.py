"""Write results to files: all or nothing, and never over what is there unasked."""

from __future__ import annotations

import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import xarray as xr

import xcopula

__all__ = ["check_free", "write_netcdf"]


def check_free(path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Return the path if it may be written.

    Raises
    ------
    FileExistsError
        If something is there and ``overwrite`` is not set.
    FileNotFoundError
        If its folder does not exist.
    """
    path = Path(path)
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists. Choose another name, or pass overwrite.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} does not exist. Create it first.")
    return path


def write_netcdf(
    dataset: xr.Dataset, path: str | os.PathLike[str], *, overwrite: bool = False
) -> Path:
    """Write a Dataset to NetCDF through a temporary sibling, so that a failure leaves no trace.

    The file tells when and by what it was written, in ``history`` and ``xcopula_version``; the
    Dataset in memory stays as it is.
    """
    path = check_free(path, overwrite=overwrite)
    handle, name = tempfile.mkstemp(suffix=".nc", prefix=f".{path.stem}-", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        _stamped(dataset).to_netcdf(temporary, engine="netcdf4")
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def _stamped(dataset: xr.Dataset) -> xr.Dataset:
    """Return the Dataset with a line of history, the newest first, as is the custom."""
    version = xcopula.__version__
    line = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}: written by xcopula {version}"
    earlier = str(dataset.attrs.get("history", ""))
    history = f"{line}\n{earlier}" if earlier else line
    return dataset.assign_attrs(history=history, xcopula_version=version)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
