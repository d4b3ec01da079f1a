"""Make the embedded Colorado files from three CSV tables taken from the R package fields.

Run ``python docs/data/make_colorado.py FOLDER``, FOLDER holding ``colorado_stations.csv``,
``colorado_monthly_1980s.csv.gz`` and ``colorado_elevation_grid.csv.gz``. Values are packed as
16-bit integers: whole millimetres and tenths of a degree at the stations, whole feet on the
grid. Nothing is lost; ``xcopula.datasets`` rounds them when it loads the files.

The table's precipitation is in centimetres, whatever the documentation of fields says, and is
turned into millimetres.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

MONTHS = pd.date_range("1980-01-01", "1989-12-01", freq="MS")
GAP = np.int16(-32768)
FOOT = 0.3048  # m
FACTORS = {"ppt": 10.0}  # cm to mm
STEPS = {"ppt": 1.0, "tmin": 0.1, "tmax": 0.1}

ATTRIBUTION = {
    "Conventions": "CF-1.11",
    "source": "R package fields, data set 'COmonthlyMet'; US HCN/NWS stations via NCAR",
    "references": (
        "Nychka, D., Furrer, R., Paige, J. & Sain, S., fields: Tools for Spatial Data, R package; "
        "Observed monthly precipitation, min and max temperatures for the conterminous US "
        "1895-1997, National Center for Atmospheric Research"
    ),
}
VARIABLES = {
    "ppt": {
        "units": "mm",
        "long_name": "monthly precipitation",
        "standard_name": "lwe_thickness_of_precipitation_amount",
        "cell_methods": "time: sum",
        "comment": (
            "total of the month; the numbers of fields times 10: its documentation says "
            "millimetres, but totals published by the National Weather Service show that they "
            "are centimetres"
        ),
    },
    "tmin": {
        "units": "degree_Celsius",
        "long_name": "monthly mean of the daily minimum temperature",
        "standard_name": "air_temperature",
        "cell_methods": "time: mean",
        "comment": "mean over the month of the daily minima",
    },
    "tmax": {
        "units": "degree_Celsius",
        "long_name": "monthly mean of the daily maximum temperature",
        "standard_name": "air_temperature",
        "cell_methods": "time: mean",
        "comment": "mean over the month of the daily maxima",
    },
}
ELEVATION = {"units": "m", "long_name": "elevation", "standard_name": "surface_altitude"}
LON = {"units": "degrees_east", "long_name": "longitude", "standard_name": "longitude"}
LAT = {"units": "degrees_north", "long_name": "latitude", "standard_name": "latitude"}


def make_stations(folder: Path) -> xr.Dataset:
    """Return the stations that have a value in the decade, by id, with all 120 months."""
    ids = {"CO.id": str, "station_id": str}
    stations = pd.read_csv(folder / "colorado_stations.csv", dtype=ids).set_index("CO.id")
    table = pd.read_csv(folder / "colorado_monthly_1980s.csv.gz", dtype=ids)
    table["time"] = pd.to_datetime(table[["year", "month"]].assign(day=1))
    values = table.set_index(["station_id", "time"])[list(VARIABLES)].dropna(how="all")
    known = sorted(set(values.index.get_level_values("station_id")))
    places = stations.loc[known]
    if places.duplicated(["lon", "lat"]).any():
        raise ValueError("Two stations have one place; a site has one value.")

    def by_month(name: str) -> np.ndarray:
        months = values[name].unstack("time").reindex(index=known, columns=MONTHS)
        return FACTORS.get(name, 1.0) * months.to_numpy()

    return xr.Dataset(
        {name: (("station", "time"), by_month(name), attrs) for name, attrs in VARIABLES.items()},
        coords={
            "station": (
                "station",
                np.array(known),
                {"long_name": "station identifier", "cf_role": "timeseries_id"},
            ),
            "time": (
                "time",
                MONTHS,
                {"long_name": "first day of the month", "standard_name": "time", "axis": "T"},
            ),
            "lon": ("station", places["lon"].to_numpy(np.float64), LON),
            "lat": ("station", places["lat"].to_numpy(np.float64), LAT),
            "elevation": ("station", places["CO.elev"].to_numpy(np.float64), ELEVATION),
        },
        attrs={
            "title": "Monthly climate of Colorado, 1980-1989",
            "featureType": "timeSeries",
            **ATTRIBUTION,
        },
    )


def make_grid(folder: Path) -> xr.Dataset:
    """Return the elevation grid as a raster; every cell has a value."""
    table = pd.read_csv(folder / "colorado_elevation_grid.csv.gz")
    raster = table.pivot(index="lat", columns="lon", values="elev")
    if raster.isna().any(axis=None):
        raise ValueError("The table is not a full grid.")
    return xr.Dataset(
        {"elevation": (("lat", "lon"), raster.to_numpy(), ELEVATION)},
        coords={
            "lat": ("lat", raster.index.to_numpy(), LAT | {"axis": "Y"}),
            "lon": ("lon", raster.columns.to_numpy(), LON | {"axis": "X"}),
        },
        attrs={"title": "Elevation of Colorado on a grid of 1/24 degree", **ATTRIBUTION},
    )


def write(dataset: xr.Dataset, path: Path, steps: dict[str, float]) -> None:
    """Write one compressed file, each variable packed in its step."""
    packed = {"zlib": True, "complevel": 9, "shuffle": True, "dtype": "int16", "_FillValue": GAP}
    encoding = {name: {**packed, "scale_factor": steps[name]} for name in dataset.data_vars}
    encoding |= {name: {"_FillValue": None} for name in dataset.coords}
    if "time" in dataset.coords:
        encoding["time"] |= {"units": "days since 1980-01-01", "dtype": "int16"}
        encoding["station"] = {"dtype": "S1"}
    dataset.to_netcdf(path, engine="netcdf4", encoding=encoding)


def main() -> None:
    """Read the folder named on the command line and write both files beside the package."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder of the three CSV files")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).resolve().parents[2] / "xcopula" / "datasets",
        help="folder to write colorado.nc and colorado_grid.nc to",
    )
    arguments = parser.parse_args()
    write(make_stations(arguments.folder), arguments.output / "colorado.nc", STEPS)
    write(make_grid(arguments.folder), arguments.output / "colorado_grid.nc", {"elevation": FOOT})


if __name__ == "__main__":
    main()
