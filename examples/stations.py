"""From a CSV file of stations to a map: the pictures of ``docs/stations.md``.

Run as ``python examples/stations.py``; it takes some seconds. The file holds the precipitation of
May 1985 at 277 gauges in Colorado, one row each. One model knows the places of the gauges, the
other their elevation too.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

import xcopula
from xcopula import regress

COLUMNS = ["station", "lon", "lat", "elevation", "ppt"]


def write_table(path: Path) -> None:
    """Write the gauges of one month as a CSV file."""
    month = xcopula.datasets.colorado().sel(time="1985-05-01")
    month.to_dataframe().reset_index()[COLUMNS].dropna().to_csv(path, index=False)


def read_table(path: Path) -> xr.Dataset:
    """Return the rows of the CSV file as a Dataset, with units."""
    table = pd.read_csv(path, dtype={"station": str})
    stations = table.set_index("station").to_xarray()
    stations["ppt"].attrs = {"units": "mm", "long_name": "precipitation"}
    stations["elevation"].attrs = {"units": "m"}
    return stations


def compare(stations: xr.Dataset, models: dict[str, Any], grid: xr.Dataset) -> Figure:
    """Draw the medians of several models side by side, in the same colours."""
    figure = Figure(figsize=(4.8 * len(models), 3.9), layout="compressed")
    panels = figure.subplots(1, len(models), squeeze=False)[0]
    top = float(stations["ppt"].quantile(0.98))
    style = {"cmap": "viridis", "vmin": 0.0, "vmax": top}
    for ax, (title, model) in zip(panels, models.items(), strict=True):
        median = model.predict(grid, 0.5)["ppt"].squeeze(drop=True)
        image = ax.pcolormesh(grid["lon"], grid["lat"], median, rasterized=True, **style)
        dots = {"c": stations["ppt"], "s": 9, "edgecolors": "white", "linewidths": 0.4}
        ax.scatter(stations["lon"], stations["lat"], **dots, **style)
        ax.set_title(title, loc="left", fontsize=10)
        ax.set(xlabel="longitude, °", ylabel="latitude, °", aspect=1.29)
        ax.set(ylim=(float(grid["lat"].min()), float(grid["lat"].max())))
        ax.tick_params(labelsize=8)
    figure.colorbar(image, ax=panels, label="median, mm", shrink=0.8, extend="max")
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the table, fit, print the scores and draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("docs/stations"), help="folder")
    parser.add_argument("--quick", action="store_true", help="few stations, a coarse grid")
    given = parser.parse_args(arguments)
    given.output.mkdir(parents=True, exist_ok=True)
    table = given.output / "stations.csv"
    write_table(table)
    stations, grid = read_table(table), xcopula.datasets.colorado_grid()
    options: dict[str, Any] = {}
    if given.quick:
        stations, grid = stations.thin(station=4), grid.thin(lat=8, lon=8)
        options = {"anisotropy": False}
    laws = {"places alone": "flexible", "with elevation": regress(on="elevation")}
    models = {}
    for title, law in laws.items():
        found = xcopula.cross_validate(stations, "ppt", marginals=law, refit=False, **options)
        print(f"{title}\n{xcopula.format_validation(found)}\n")
        models[title] = stations.mtcopula.fit("ppt", marginals=law, **options)
    print(models["with elevation"].summary())
    compare(stations, models, grid).savefig(given.output / "elevation.png", dpi=90)
    picture = models["with elevation"].posterior(grid).plot.map(sites=stations)
    picture.savefig(given.output / "map.png", dpi=90)
    table.unlink()


if __name__ == "__main__":
    main()
