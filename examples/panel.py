"""A panel of stations and months: predict stations that were never seen.

Run as ``python examples/panel.py``; it takes some seconds. The mean daily maximum temperature of
1985 at 60 stations in Colorado, month by month. Four stations are withheld with all their months.
The marginal varies with elevation. Of the two structures that a model of space and time has, one is
the course of the year, which is alike everywhere, and one the weather of a month.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import xcopula
from xcopula import regress

WITHHELD = 4


def read_year(year: int, stations: int) -> tuple[xr.Dataset, xr.Dataset]:
    """Return the stations to train on, and those that are withheld."""
    climate = xcopula.datasets.colorado()[["tmax"]].sel(time=str(year))
    whole = np.flatnonzero(climate["tmax"].notnull().all("time"))
    drawn = np.random.default_rng(0).permutation(whole)[:stations]
    return climate.isel(station=drawn[WITHHELD:]), climate.isel(station=drawn[:WITHHELD])


def draw(found: xr.DataArray, truth: xr.DataArray) -> Figure:
    """Draw the months of each withheld station: the band, the median, and what was measured."""
    figure = Figure(figsize=(9.5, 5.6), layout="constrained")
    panels = figure.subplots(2, WITHHELD // 2, sharex=True, sharey=True).flat
    months = truth["time"].dt.month.values
    for number, ax in enumerate(panels):
        lower, median, upper = found.isel(station=number).transpose("quantile", "time").values
        measured = truth.isel(station=number)
        ax.fill_between(months, lower, upper, color="#9ecae1", label="90 % band")
        ax.plot(months, median, color="#08519c", label="median")
        ax.plot(months, measured, "o", color="#d95f0e", ms=4, label="measured, withheld")
        place = f"station {measured['station'].item()}, {float(measured['elevation']):.0f} m"
        ax.set_title(place, loc="left", fontsize=10)
        ax.tick_params(labelsize=8)
        ax.spines[["top", "right"]].set_visible(False)
    figure.supylabel("mean daily maximum, °C", fontsize=9)
    figure.supxlabel("month of 1985", fontsize=9)
    panels[0].legend(frameon=False, fontsize=8)
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit the panel, predict the withheld stations, draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("docs/gallery"), help="folder")
    parser.add_argument("--quick", action="store_true", help="few stations")
    given = parser.parse_args(arguments)
    given.output.mkdir(parents=True, exist_ok=True)
    training, withheld = read_year(1985, 14 if given.quick else 60)
    model = training.mtcopula.fit("tmax", marginals=regress(on="elevation"))
    print(model.summary())
    found = model.predict(withheld, [0.05, 0.5, 0.95])["tmax"]
    error = np.abs(found.sel(quantile=0.5) - withheld["tmax"])
    print(f"mean error at the withheld stations: {float(error.mean()):.2f} °C")
    draw(found, withheld["tmax"]).savefig(given.output / "panel.png", dpi=90)


if __name__ == "__main__":
    main()
