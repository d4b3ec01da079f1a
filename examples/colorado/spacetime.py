"""Fit a year of monthly maxima at 60 stations in space and time, and predict what was held out.

Run as ``python examples/colorado/spacetime.py``; it takes some minutes. Of the 60 stations a
quarter is held out altogether, of the others two whole months and 15 % of the station-months. The
law of the temperature varies with elevation; two nested structures in space and time, Matern 3/2,
tell the course of the year from the weather of a month. That model was chosen on the years 1980 to
1984; the years after are what it is judged by.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import pandas as pd
import xarray as xr
from common import markdown, mean_and_error, read_arguments, run_all

import xcopula
from xcopula import regress

KINDS = {"station": "stations", "month": "whole months", "gap": "gaps"}
YEARS = {"chosen on": range(1980, 1985), "judged by": range(1985, 1990)}


@dataclass(frozen=True)
class Job:
    """One year, one draw of stations and of what is held out."""

    year: int
    seed: int
    stations: int = 60
    kernels: str = "matern32"
    quick: bool = False


def read_year(job: Job) -> xr.Dataset:
    """Return a year of ``tmax`` at stations that have all of its months."""
    climate = xcopula.datasets.colorado()[["tmax"]].sel(time=str(job.year))
    whole = np.flatnonzero(climate["tmax"].notnull().all("time"))
    drawn = np.random.default_rng(job.seed).permutation(whole)[: job.stations]
    return climate.isel(station=np.sort(drawn))


def hold_out(data: xr.Dataset, seed: int) -> np.ndarray:
    """Return why each (station, month) is held out: a kind, or an empty string."""
    rng = np.random.default_rng(100 + seed)
    stations, months = data.sizes["station"], data.sizes["time"]
    kinds = np.where(rng.random((stations, months)) < 0.15, "gap", "").astype("U7")
    kinds[:, rng.permutation(np.arange(1, months - 1))[:2]] = "month"
    kinds[rng.permutation(stations)[: stations // 4]] = "station"
    return kinds


def run(job: Job) -> list[dict[str, object]]:
    """Fit one year and score what was held out."""
    data = read_year(job)
    kinds = hold_out(data, job.seed)
    training = data.assign(tmax=data["tmax"].where(kinds == ""))
    model = xcopula.fit(
        training,
        "tmax",
        marginals=regress("normal", on="elevation"),
        kernels=job.kernels,
        structures=2,
    )
    lower, median, upper = model.predict(data, [0.05, 0.5, 0.95])["tmax"].values
    truth = data["tmax"].values
    inside, error = (lower <= truth) & (truth <= upper), np.abs(median - truth)
    return [
        {
            "year": job.year,
            "seed": job.seed,
            "kind": kind,
            "values": int(which.sum()),
            "coverage": 100.0 * inside[which].mean(),
            "mae": error[which].mean(),
            "width": (upper - lower)[which].mean(),
        }
        for kind, which in [*((k, kinds == k) for k in KINDS), ("all", kinds != "")]
    ]


def describe(table: pd.DataFrame) -> str:
    """Write coverage, errors and widths as Markdown."""
    spread = table.loc[table["kind"] == "month", "coverage"].std(ddof=1)
    lines = [
        "# A year of monthly maxima in space and time",
        "",
        "Made by `python examples/colorado/spacetime.py`, with its default options: each year and",
        "seed is a fit to 60 stations and 12 months, from which whole stations, whole months and",
        "single gaps were held out. Standard errors are over these fits. Errors within a station",
        "or a month go together, so one fit says little: the coverage of its held-out months has a",
        f"standard deviation of {spread:.0f} points.",
        "",
    ]
    heads = ["held out", "coverage of 90 % (%)", "MAE (°C)", "width of 90 % (°C)"]
    for what, years in YEARS.items():
        own = table[table["year"].isin(list(years))]
        if own.empty:
            continue
        rows = []
        for kind, title in [*KINDS.items(), ("all", "all together")]:
            part = own[own["kind"] == kind]
            cells = [mean_and_error(part[c], d) for c, d in [("coverage", 1), ("mae", 2)]]
            rows.append([title, *cells, f"{part['width'].mean():.1f}"])
        fits = len(own) // (len(KINDS) + 1)
        lines += [
            f"Years that the model was {what}, {own['year'].min()} to {own['year'].max()} "
            f"({fits} fits):",
            "",
            *markdown(heads, rows),
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the fits."""
    options = read_arguments(
        __doc__, arguments, ("--kernels", {"default": "matern32", "help": "or auto, for one"})
    )
    years = [1985, 1986] if options.quick else [y for span in YEARS.values() for y in span]
    seeds, stations = (range(1), 30) if options.quick else (range(4), 60)
    cases = itertools.product(years, seeds)
    jobs = [Job(y, s, stations, options.kernels, options.quick) for y, s in cases]
    table = run_all(run, jobs, 1 if options.quick else options.workers)
    table.to_csv(options.output / "spacetime.csv", index=False, float_format="%.5g")
    text = describe(table)
    (options.output / "spacetime.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
