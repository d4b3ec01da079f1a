"""Make the embedded Jura files from the three CSV tables of the R package gstat.

Run ``python docs/data/make_jura.py FOLDER``, FOLDER holding ``jura_prediction.csv``,
``jura_validation.csv`` and ``jura_grid.csv``. Categories are stored as CF flags (one byte each);
``xcopula.datasets`` turns them into names when it loads the files.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

METALS = {
    "Cd": "cadmium",
    "Co": "cobalt",
    "Cr": "chromium",
    "Cu": "copper",
    "Ni": "nickel",
    "Pb": "lead",
    "Zn": "zinc",
}
SPLIT = ("prediction", "validation")
LANDUSE = ("Forest", "Pasture", "Meadow", "Tillage")
ROCK = ("Argovian", "Kimmeridgian", "Sequanian", "Portlandian", "Quaternary")
STEP = 0.05  # km between the centres of two cells

ATTRIBUTION = {
    "Conventions": "CF-1.11",
    "source": "R package gstat, data set 'jura'",
    "references": (
        "Goovaerts, P. (1997), Geostatistics for Natural Resources Evaluation, Oxford University "
        "Press; Atteia, O., Dubois, J.-P. & Webster, R. (1994), Geostatistical analysis of soil "
        "contamination in the Swiss Jura, Environmental Pollution 86, 315-327"
    ),
}
AXES = {
    "x": {"units": "km", "long_name": "easting", "axis": "X"},
    "y": {"units": "km", "long_name": "northing", "axis": "Y"},
}


def to_flags(codes: np.ndarray, names: tuple[str, ...], long_name: str) -> tuple[np.ndarray, dict]:
    """Return codes 1, 2, ... (0: missing) as bytes, with the CF attributes that name them."""
    attrs = {
        "long_name": long_name,
        "flag_values": np.arange(1, len(names) + 1, dtype=np.int8),
        "flag_meanings": " ".join(names),
    }
    return codes.astype(np.int8), attrs


def make_sites(folder: Path) -> xr.Dataset:
    """Return the 259 prediction sites followed by the 100 validation sites."""
    tables = [pd.read_csv(folder / f"jura_{name}.csv") for name in SPLIT]
    table = pd.concat(tables, ignore_index=True)
    split = np.repeat([1, 2], [len(each) for each in tables])
    codes = {
        "landuse": to_flags(table["Landuse"].to_numpy(), LANDUSE, "land use"),
        "rock": to_flags(table["Rock"].to_numpy(), ROCK, "rock type"),
    }
    split_codes, split_attrs = to_flags(split, SPLIT, "role in the published protocol")
    variables = {
        symbol: (
            "site",
            table[symbol].to_numpy(np.float64),
            {"units": "mg kg-1", "long_name": f"{metal} concentration in topsoil"},
        )
        for symbol, metal in METALS.items()
    }
    return xr.Dataset(
        variables | {name: ("site", *flags) for name, flags in codes.items()},
        coords={
            "x": ("site", table["Xloc"].to_numpy(np.float64), AXES["x"]),
            "y": ("site", table["Yloc"].to_numpy(np.float64), AXES["y"]),
            "split": ("site", split_codes, split_attrs),
        },
        attrs={"title": "Heavy metals in the topsoil of the Swiss Jura", **ATTRIBUTION},
    )


def make_grid(folder: Path) -> xr.Dataset:
    """Return the map grid as a raster; cells outside the region are 0 / False."""
    table = pd.read_csv(folder / "jura_grid.csv")
    columns = np.rint(table["Xloc"].to_numpy() / STEP).astype(int)
    rows = np.rint(table["Yloc"].to_numpy() / STEP).astype(int)
    shape = (int(np.ptp(rows)) + 1, int(np.ptp(columns)) + 1)
    index = (rows - rows.min(), columns - columns.min())

    def raster(values: np.ndarray) -> np.ndarray:
        out = np.zeros(shape, values.dtype)
        out[index] = values
        return out

    def flags(column: str, names: tuple[str, ...], long_name: str) -> tuple[np.ndarray, dict]:
        codes = table[column].map({name: i for i, name in enumerate(names, 1)})
        return to_flags(raster(codes.to_numpy()), names, long_name)

    def axis(first: int, size: int) -> np.ndarray:
        return np.round((first + np.arange(size)) * STEP, 2)

    inside = raster(np.ones(len(table), bool))
    return xr.Dataset(
        {
            "inside": (("y", "x"), inside, {"long_name": "cell belongs to the study region"}),
            "landuse": (("y", "x"), *flags("Landuse", LANDUSE, "land use")),
            "rock": (("y", "x"), *flags("Rock", ROCK, "rock type")),
        },
        coords={
            "y": ("y", axis(rows.min(), shape[0]), AXES["y"]),
            "x": ("x", axis(columns.min(), shape[1]), AXES["x"]),
        },
        attrs={"title": "Map grid of the Swiss Jura study region, 50 m cells", **ATTRIBUTION},
    )


def write(dataset: xr.Dataset, path: Path) -> None:
    """Write one compressed file; no fill values, nothing is missing in these tables."""
    encoding = {name: {"zlib": True, "complevel": 9} for name in dataset.data_vars}
    encoding |= {name: {"_FillValue": None} for name in dataset.coords}
    for name in dataset.data_vars:
        if dataset[name].dtype.kind == "f":
            encoding[name]["_FillValue"] = None
    dataset.to_netcdf(path, engine="netcdf4", encoding=encoding)


def main() -> None:
    """Read the folder named on the command line and write both files beside the package."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder of the three CSV files")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).resolve().parents[2] / "xcopula" / "datasets",
        help="folder to write jura.nc and jura_grid.nc to",
    )
    arguments = parser.parse_args()
    write(make_sites(arguments.folder), arguments.output / "jura.nc")
    write(make_grid(arguments.folder), arguments.output / "jura_grid.nc")


if __name__ == "__main__":
    main()
