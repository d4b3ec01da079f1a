"""Heavy metals in the topsoil of the Swiss Jura, with the grid on which they are mapped."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import as_file, files

import numpy as np
import xarray as xr

from xcopula.storage import NETCDF_LOCK
from xcopula.warn import shown

__all__ = ["jura", "jura_grid"]


def jura(hide: str | Iterable[str] | None = None) -> xr.Dataset:
    """Load the 359 topsoil samples of the Swiss Jura.

    The published protocol predicts a *primary* metal at the 100 validation sites from its values
    at the 259 prediction sites and from the secondary metals at all 359: ``hide`` the primary.

    Parameters
    ----------
    hide : str or iterable of str, optional
        Metals to set to NaN at the validation sites.

    Returns
    -------
    Dataset
        Dim ``site`` (359; the 259 prediction sites come first). Coords ``x`` and ``y`` in km on a
        local grid, and ``split``, "prediction" or "validation". Variables ``Cd``, ``Co``, ``Cr``,
        ``Cu``, ``Ni``, ``Pb`` and ``Zn`` in mg/kg, ``landuse`` and ``rock`` as names.

    Raises
    ------
    KeyError
        If ``hide`` names something that is not one of the seven metals.

    Notes
    -----
    Data of Atteia, Dubois & Webster (1994) as published by Goovaerts (1997), taken from the R
    package gstat.

    Examples
    --------
    >>> ds = jura(hide="Cd")
    >>> dict(ds.sizes), int(ds["Cd"].count()), int(ds["Ni"].count())
    ({'site': 359}, 259, 359)
    """
    dataset = _load("jura.nc")
    known = dataset["split"].values == "prediction"
    for name in _check_metals(hide, dataset):
        dataset[name] = dataset[name].copy(data=np.where(known, dataset[name].values, np.nan))
    return dataset


def jura_grid() -> xr.Dataset:
    """Load the grid of 50 m cells on which the Jura metals are mapped.

    Returns
    -------
    Dataset
        Dims ``y`` (117) and ``x`` (97), in km on the local grid of :func:`jura`. Boolean
        ``inside`` is True on the 5,957 cells of the study region; ``landuse`` and ``rock`` are
        names, empty outside of it.

    Examples
    --------
    >>> grid = jura_grid()
    >>> dict(grid.sizes), int(grid["inside"].sum())
    ({'y': 117, 'x': 97}, 5957)
    """
    return _load("jura_grid.nc")


def _check_metals(hide: str | Iterable[str] | None, dataset: xr.Dataset) -> list[str]:
    """Return the names to hide as a list; raise on an unknown one."""
    if not isinstance(hide, Iterable | None):
        raise TypeError(f"`hide` must be the name of a metal, or several, found {shown(hide)}.")
    names = [] if hide is None else [hide] if isinstance(hide, str) else list(hide)
    metals = [str(name) for name, array in dataset.data_vars.items() if array.dtype.kind == "f"]
    unknown = [name for name in names if name not in metals]
    if unknown:
        raise KeyError(
            f"Cannot hide {unknown}: the Jura data have no such metal. Choose from {metals}."
        )
    return names


def _load(name: str) -> xr.Dataset:
    """Read an embedded file into memory, with its flags turned into names."""
    with (
        as_file(files("xcopula.datasets") / name) as path,
        NETCDF_LOCK,
        xr.open_dataset(path, engine="netcdf4") as file,
    ):
        dataset = file.load().drop_encoding()
    flagged = {
        key: array for key, array in dataset.variables.items() if "flag_values" in array.attrs
    }
    return dataset.assign({key: _to_names(array) for key, array in flagged.items()})


def _to_names(flags: xr.Variable) -> xr.Variable:
    """Replace the codes 1, 2, ... by their CF flag meanings; 0 becomes the empty string."""
    attrs = dict(flags.attrs)
    del attrs["flag_values"]
    names = np.array(["", *attrs.pop("flag_meanings").split()])
    return xr.Variable(flags.dims, names[flags.values], attrs)
