"""NetCDF: one lock for all threads, what a file can hold, and lazy values written by blocks.

Neither HDF5 nor the NetCDF library may be called by two threads at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from xarray.backends.netCDF4_ import NETCDF4_PYTHON_LOCK

from xcopula.warn import shown

__all__ = ["NETCDF_LOCK", "check_attributes", "check_names", "fill_netcdf", "load_labels"]

# Held while a file is opened, described, read or closed. Where values are read or written without
# it, as by lazy arrays of other files, xarray holds a lock of its own: blocks need both.
NETCDF_LOCK = RLock()

_KINDS = "iufSU"


def check_names(dataset: xr.Dataset) -> None:
    """Refuse names and indexes that no file can hold.

    Raises
    ------
    ValueError
    """
    for name, index in dataset.indexes.items():
        if isinstance(index, pd.MultiIndex):
            raise ValueError(
                f"A MultiIndex cannot be written to a file, found {shown(name)}. Use "
                f"`dataset.reset_index({name!r})`."
            )
    for name in (*dataset.variables, *dataset.dims):
        if not _is_name(name):
            raise ValueError(
                f"Names in a file must be text without '/' and without spaces at the ends, found "
                f"{shown(name)}. Use `dataset.rename`."
            )


def _is_name(name: object) -> bool:
    if not isinstance(name, str) or not name or "/" in name or name != name.strip():
        return False
    return name.isprintable()  # a lone surrogate is not


def check_attributes(dataset: xr.Dataset) -> None:
    """Refuse attributes that are neither numbers nor text, or sequences of these.

    Raises
    ------
    TypeError
        It says whose attribute it is.
    """
    holders = {"the Dataset": dataset.attrs}
    holders |= {repr(n): v.attrs for n, v in dataset.variables.items()}
    for holder, attrs in holders.items():
        for name, value in attrs.items():
            if not _is_name(name) or not _is_attribute(value):
                raise TypeError(
                    f"Attributes in a NetCDF file must be numbers or text, found {name!r} of "
                    f"{holder}: {shown(value)}. Convert it, as by `str`, or remove it."
                )


def _is_attribute(value: Any) -> bool:
    try:
        array = np.asarray(value)
    except ValueError:  # sequences of several lengths
        return False
    return array.dtype.kind in _KINDS and array.ndim < 2


def load_labels(dataset: xr.Dataset) -> xr.Dataset:
    """Return the Dataset with texts, dates and all else but numbers in memory."""
    return dataset.assign(
        {
            name: variable.compute()
            for name, variable in dataset.variables.items()
            if variable.chunks is not None and variable.dtype.kind not in "biuf"
        }
    )


def fill_netcdf(dataset: xr.Dataset, path: Path) -> None:
    """Write a Dataset to a new file. The lock is free while lazy values are computed."""
    dataset = load_labels(dataset)
    lazy = {
        str(name): xr.conventions.encode_cf_variable(variable, name=name)
        for name, variable in dataset.variables.items()
        if variable.chunks is not None
    }
    with NETCDF_LOCK:
        # What it returns would write lazy values under the lock of xarray alone; without it, the
        # file is closed.
        dataset.to_netcdf(path, engine="netcdf4", compute=not lazy)
    if not lazy:
        return
    import dask.array as da
    from dask.utils import get_scheduler_lock

    sources = [variable.data for variable in lazy.values()]
    targets = [_Target(str(path), name) for name in lazy]
    # Workers of a cluster take turns, as threads do.
    da.store(sources, targets, lock=get_scheduler_lock(sources[0]))


@dataclass(frozen=True)
class _Target:
    """A variable of a file, to which blocks are written; it may travel to workers."""

    path: str
    name: str

    def __setitem__(self, region: tuple[slice, ...], values: npt.NDArray[Any]) -> None:
        import netCDF4

        with NETCDF_LOCK, NETCDF4_PYTHON_LOCK:
            if not Path(self.path).exists():  # another block failed; opening would create it again
                raise FileNotFoundError(f"{self.path} was discarded.")
            with netCDF4.Dataset(self.path, "r+") as root:
                variable = root[self.name]
                variable.set_auto_maskandscale(False)
                variable[region] = values
