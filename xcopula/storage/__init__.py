"""Write results to files: all or nothing, and never over an existing file unless asked to."""

from __future__ import annotations

from xcopula.storage.blocks import write_zarr
from xcopula.storage.netcdf import NETCDF_LOCK
from xcopula.storage.whole import (
    check_free,
    is_zarr,
    require_zarr,
    write_figure,
    write_netcdf,
    write_tree,
)

__all__ = [
    "NETCDF_LOCK",
    "check_free",
    "is_zarr",
    "require_zarr",
    "write_figure",
    "write_netcdf",
    "write_tree",
    "write_zarr",
]
