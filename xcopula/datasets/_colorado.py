"""Monthly climate of Colorado in the 1980s, with the elevation grid on which it is mapped."""

from __future__ import annotations

from importlib.resources import as_file, files

import numpy as np
import xarray as xr

from xcopula.storage import NETCDF_LOCK

__all__ = ["colorado", "colorado_grid"]


def colorado() -> xr.Dataset:
    """Load ten years of monthly climate at 314 stations in and around Colorado.

    Returns
    -------
    Dataset
        Dims ``station`` (314) and ``time`` (120 months from January 1980, each given by its first
        day). Variables ``ppt``, the total precipitation in mm, ``tmin`` and ``tmax``, the means
        of the daily minima and maxima in degrees Celsius; NaN where there is no value. Coords
        ``station`` (identifier), ``lon`` and ``lat`` in degrees and ``elevation`` in m.

    Notes
    -----
    Data of the US Historical Climatology Network and the National Weather Service via NCAR, taken
    from the R package fields (``COmonthlyMet``). Its documentation says that precipitation is in
    millimetres, but its numbers are centimetres; they are converted to millimetres here, times
    10. The evidence: the totals that the National Weather Service publishes for Alamosa agree
    with the converted numbers within 1 mm in every summer of the decade. Values are whole
    millimetres; a zero means less than 0.5 mm.

    Examples
    --------
    >>> ds = colorado()
    >>> dict(ds.sizes), ds["ppt"].attrs["units"]
    ({'station': 314, 'time': 120}, 'mm')

    One month is a selection; its dim ``time`` goes away with ``squeeze``.

    >>> may = ds.sel(time="1985-05").squeeze("time")
    >>> {str(name): int(array.count()) for name, array in may.data_vars.items()}
    {'ppt': 277, 'tmin': 231, 'tmax': 231}
    """
    dataset = _load("colorado.nc", decimals=1)
    return dataset.assign_coords(station=dataset["station"].astype(str))


def colorado_grid() -> xr.Dataset:
    """Load the elevation of Colorado on a grid of 1/24 degree.

    Returns
    -------
    Dataset
        Dims ``lat`` (119) and ``lon`` (205), in degrees. Variable ``elevation`` in m, known on
        every cell.

    Examples
    --------
    >>> grid = colorado_grid()
    >>> dict(grid.sizes), int(grid["elevation"].max())
    ({'lat': 119, 'lon': 205}, 4005)
    """
    return _load("colorado_grid.nc", decimals=4)


def _load(name: str, decimals: int) -> xr.Dataset:
    """Read an embedded file into memory; rounding removes the noise of its scale factors."""
    with (
        as_file(files("xcopula.datasets") / name) as path,
        NETCDF_LOCK,
        xr.open_dataset(path, engine="netcdf4") as file,
    ):
        dataset = file.load().drop_encoding()
    return dataset.assign(
        {
            key: array.copy(data=np.round(array.values.astype(np.float64), decimals))
            for key, array in dataset.data_vars.items()
        }
    )
