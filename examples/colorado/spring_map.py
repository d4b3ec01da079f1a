"""Map a spring month of precipitation in Colorado from gauges, temperatures and elevation.

Run as ``python examples/colorado/spring_map.py``. Precipitation is the primary variable, the means
of daily minima and maxima are secondaries, and the marginal law of each varies with elevation. The
prediction is chunked: each block of the elevation grid is computed on its own and written to a
NetCDF file, with a picture beside it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes

import xcopula
from xcopula import regress
from xcopula.storage import write_netcdf

THRESHOLD = 60.0  # mm
SECONDARIES = ["tmin", "tmax"]


def read_month(month: str) -> xr.Dataset:
    """Return the stations' values of one month."""
    return xcopula.datasets.colorado().sel(time=month).squeeze("time", drop=True)


def map_month(stations: xr.Dataset, grid: xr.Dataset, **options: object) -> xr.Dataset:
    """Fit the stations and predict on the grid: nothing is computed yet but the fit."""
    marginals = regress(on="elevation")
    model = stations.mtcopula.fit("ppt", SECONDARIES, marginals=marginals, **options)
    print(model.summary())
    posterior = model.posterior(grid, chunks={"lat": 40, "lon": 70})
    lower, upper = posterior.interval(0.9)
    return xr.Dataset(
        {
            "ppt": posterior.median(),
            "ppt_width": (upper - lower).drop_vars("bound", errors="ignore"),
            "ppt_exceedance": posterior.exceedance(THRESHOLD),
            "elevation": grid["elevation"],
        },
        attrs={"title": "Precipitation of one month in Colorado: median, width, exceedance"},
    )


def draw(result: xr.Dataset, stations: xr.Dataset, month: str) -> plt.Figure:
    """Draw elevation with the gauges, the median, the width and the exceedance."""
    figure, axes = plt.subplots(2, 2, figsize=(11.5, 8.2), layout="constrained")
    known = stations["ppt"].notnull()
    top = float(result["ppt"].quantile(0.99))
    panels = [
        ("elevation", "Elevation and gauges", "m", {"cmap": "gist_earth", "vmin": 0.0}),
        ("ppt", "Median", "mm", {"cmap": "YlGnBu", "vmin": 0.0, "vmax": top}),
        ("ppt_width", "Width of the 90 % interval", "mm", {"cmap": "Purples", "vmin": 0.0}),
        (
            "ppt_exceedance",
            f"Probability of more than {THRESHOLD:g} mm",
            "",
            {"cmap": "YlGnBu", "vmin": 0.0, "vmax": 1.0},
        ),
    ]
    for ax, (name, title, units, style) in zip(axes.flat, panels, strict=True):
        image = result[name].plot.pcolormesh(ax=ax, add_colorbar=False, rasterized=True, **style)
        figure.colorbar(image, ax=ax, label=units, shrink=0.85)
        _tidy(ax, title, float(result["lat"].mean()))
    lon, lat = stations["lon"], stations["lat"]
    axes[0, 0].plot(lon[known], lat[known], "o", ms=2.5, color="black")
    axes[0, 1].scatter(
        lon[known],
        lat[known],
        c=stations["ppt"][known],
        s=14,
        cmap="YlGnBu",
        vmin=0.0,
        vmax=top,
        edgecolors="black",
        linewidths=0.4,
    )
    figure.suptitle(f"Precipitation in Colorado, {month}, from {int(known.sum())} gauges")
    return figure


def _tidy(ax: Axes, title: str, latitude: float) -> None:
    ax.set_aspect(1.0 / np.cos(np.deg2rad(latitude)))
    ax.set(title=title, xlabel="longitude (°E)", ylabel="latitude (°N)")
    # The border of the state, a rectangle on the globe.
    west, east, south, north = -109.05, -102.05, 37.0, 41.0
    ax.plot([west, east, east, west, west], [south, south, north, north, south], "k-", lw=0.8)


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit, predict, write and draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--month", default="1983-05", help="a month of the 1980s")
    parser.add_argument("--output", type=Path, default=Path("build/colorado"))
    parser.add_argument("--quick", action="store_true", help="few gauges, a coarse grid")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    stations, grid = read_month(options.month), xcopula.datasets.colorado_grid()
    fixed: dict[str, object] = {}
    if options.quick:
        stations, grid = stations.thin(station=4), grid.thin(lat=4, lon=4)
        fixed = {"kernels": "matern32"}
    result = map_month(stations, grid, **fixed).compute()
    write_netcdf(result, options.output / "spring_map.nc", overwrite=True)
    picture = options.output / "spring_map.png"
    draw(result, stations, options.month).savefig(picture, dpi=110)
    print(f"Wrote {picture} and {picture.with_suffix('.nc')}.")


if __name__ == "__main__":
    main()
