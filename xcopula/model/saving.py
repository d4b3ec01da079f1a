"""Write a fitted model to a file: NetCDF or Zarr, whole or not at all."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from xcopula.model.tree import to_tree
from xcopula.storage import check_free, is_zarr, require_zarr, write_tree

if TYPE_CHECKING:
    from xcopula.model.record import CopulaModel

__all__ = ["save"]

_ENDINGS = (".nc", ".zarr")
# Variables longer than this are compressed.
_COMPRESSED = 1024


def save(model: CopulaModel, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a model to a file; see :meth:`~xcopula.CopulaModel.save`."""
    path = check_free(path, overwrite=overwrite)
    if path.suffix not in _ENDINGS:
        raise ValueError(
            f"`path` must end in .nc (NetCDF) or .zarr (Zarr), found {path.name!r}. The ending "
            "says which format it is."
        )
    if is_zarr(path):
        require_zarr()
    tree = to_tree(model)
    tree.attrs |= {
        "date_created": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "numpy_version": np.__version__,
        "xarray_version": xr.__version__,
    }
    groups = {node.path: _encoding(node, zarr=is_zarr(path)) for node in tree.subtree}
    return write_tree(tree, path, overwrite=overwrite, encoding=groups)


def _encoding(node: xr.DataTree, *, zarr: bool) -> dict[str, Any]:
    """Return how the variables of a group are stored: as they are, the longer ones compressed."""
    found: dict[str, Any] = {}
    for name, variable in node.to_dataset(inherit=False).variables.items():
        if variable.dtype.kind in "biuf":
            found[str(name)] = {"_FillValue": None}  # with one, a chunk of it would not be written
            if not zarr and variable.size > _COMPRESSED:
                found[str(name)] |= {"zlib": True, "complevel": 4, "shuffle": True}
    return found
