"""Model a decade of monthly precipitation in Colorado at once, and map every month of it.

Run as ``python examples/colorado/decade.py``; it takes half an hour of processor time. All 314
stations and 120 months are one sample of 31,892 values, solved by neighbours. Each month of the
year has its own gamma law, whose scale follows elevation, and elevation is an input of the process
as well. Months of no rain, 830 of them, are set to 0.5 mm, half of what the gauges resolve;
``zeros.py`` takes them as they are.

``map`` maps the months to Zarr, block by block, and predicts a gauge that the model did not see.
``validate`` leaves out the gauges of random squares, for the whole decade or for two years of it,
and compares the decade's model with one exact fit for each month. To a month it makes no
difference how long they are missing. ``--temperatures`` adds these as secondaries, known at all
stations: 88,000 values, which take some ten times as long.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr
from common import draw_blocks, markdown, mean_and_error, read_arguments, run_all, score

import xcopula
from xcopula import CopulaModel, by, regress

SPACE, TIME = {"space": ["lon", "lat"]}, {"time": "time"}
HEIGHT = {"elevation": "elevation"}
DECADE, ALONE = "the decade at once", "each month alone"
NEVER, FAILED = "never stood there", "failed in the years that are scored"
TEMPERATURES = ("tmin", "tmax")
# The law and the inputs were chosen on 1980 to 1982, with the squares of seed 0. A third structure
# has 112 nats more than two have, with four more parameters: weather, local climate, elevation.
STRUCTURES = 3
SCORED = (1984, 1987)
SEEDS = (1, 2)
GAUGE = "055414"  # Marvine Ranch, 2,377 m, 20 km from the next gauge
SHOWN = ("1983-01", "1983-05", "1983-08", "1983-11")


@dataclass(frozen=True)
class Job:
    """One draw of squares, and one model or one month."""

    seed: int
    model: str
    gauges: str  # since when they are missing
    height: bool  # elevation as an input
    secondary: tuple[str, ...] = ()
    quick: bool = False


def read_decade(quick: bool) -> xr.Dataset:
    """Return the stations' months; no rain is half of what a gauge resolves."""
    climate = xcopula.datasets.colorado()
    if quick:
        # Every law of a month needs some values: all gauges of a winter month and a summer month.
        months = climate["time"].dt.month.isin([1, 7])
        climate = climate.isel(time=months & (climate["time"].dt.year < 1982)).thin(station=6)
    ppt = climate["ppt"]
    return climate.assign(ppt=ppt.where(ppt != 0.0, 0.5))


def judged(climate: xr.Dataset, quick: bool) -> list[int]:
    """Return the months to score: those of two years, after the years of choosing."""
    if quick:
        return [0, 3]
    return np.flatnonzero(climate["time"].dt.year.isin(SCORED)).tolist()


def fit_decade(
    climate: xr.Dataset,
    secondary: Sequence[str] = (),
    *,
    height: bool,
    quick: bool = False,
) -> CopulaModel:
    """Fit all stations and months as one sample."""
    families = {"ppt": "gamma", "tmin": "normal", "tmax": "normal"}
    months = {
        name: by("time.month", regress(families[name], on="elevation"))
        for name in ("ppt", *secondary)
    }
    return climate.mtcopula.fit(
        "ppt",
        secondary,
        coords={**SPACE, **(HEIGHT if height else {}), **TIME},
        marginals=months,
        kernels="matern32",
        structures=1 if quick else STRUCTURES,
        **({"solver": "neighbours"} if quick else {}),
    )


def fit_month(
    month: xr.Dataset, secondary: Sequence[str] = (), *, height: bool, quick: bool = False
) -> CopulaModel:
    """Fit one month exactly, by the same laws."""
    laws = dict.fromkeys(secondary, regress("normal", on="elevation"))
    laws["ppt"] = regress("gamma", on="elevation")
    return month.mtcopula.fit(
        "ppt",
        secondary,
        coords={**SPACE, **(HEIGHT if height else {})},
        marginals=laws,
        kernels="matern32",
    )


def run(job: Job) -> list[dict[str, Any]]:
    """Leave out the gauges of some squares, fit and score the months; temperatures stay known."""
    climate = read_decade(job.quick)
    mean = climate[["ppt"]].mean("time")
    hidden = xr.DataArray(draw_blocks(mean, "ppt", job.seed), dims="station")
    scored = judged(climate, job.quick)
    missing = hidden
    if job.gauges == FAILED:
        missing = hidden & climate["time"].isin(climate["time"][scored])
    training = climate.assign(ppt=climate["ppt"].where(~missing))
    rows = []
    for months in [scored] if job.model == DECADE else [[k] for k in scored]:
        began = time.process_time()
        if job.model == DECADE:
            model = fit_decade(training, job.secondary, height=job.height, quick=job.quick)
        else:
            alone = training.isel(time=months[0]).drop_vars("time")
            model = fit_month(alone, job.secondary, height=job.height, quick=job.quick)
        seconds = time.process_time() - began
        for k in months:
            tests = climate.isel(time=k, station=hidden.values).dropna("station", subset=["ppt"])
            rows.append(
                {
                    "seed": job.seed,
                    "month": str(climate["time"].values[k])[:7],
                    "model": job.model,
                    "gauges": job.gauges,
                    "elevation": "law and input" if job.height else "law",
                    "tests": tests.sizes["station"],
                    **score(model, tests),
                    "fit_seconds": seconds,
                }
            )
    print(pd.DataFrame(rows).drop(columns="model").to_string(header=False), flush=True)
    return rows


def describe(table: pd.DataFrame) -> str:
    """Write the scores as Markdown, with differences that are paired by month and draw."""
    keys = ["model", "gauges", "elevation"]
    wide = table.pivot(index=["seed", "month"], columns=keys, values="crps")
    alone = wide[ALONE, NEVER, "law and input"]
    rows = []
    for key, part in table.groupby(keys, sort=False):
        model, gauges, elevation = key
        gap = 100.0 * (wide[key] - alone) / alone.mean()
        # A fit is in the table once for each month that it scores.
        seconds = part["fit_seconds"].mean() * (1 if model == DECADE else 120)
        rows.append(
            [
                model,
                "either" if model == ALONE else gauges,
                elevation,
                f"{part['crps'].mean():.2f}",
                mean_and_error(gap, 1, "+") if gap.any() else "",
                f"{part['mae'].mean():.2f}",
                f"{part['coverage'].mean():.1f}",
                f"{seconds:,.0f}",
            ]
        )
    heads = ["fitted", "gauges of the squares", "elevation in", "CRPS (mm)"]
    heads += ["against a month alone (%)", "MAE (mm)", "coverage of 90 % (%)"]
    heads += ["CPU s for 120 months"]
    lines = [
        "# A decade at once, or month by month",
        "",
        "Made by `python examples/colorado/decade.py validate`, with its default options: the "
        "gauges of",
        f"random squares were left out, {table['seed'].nunique()} draws, and "
        f"{table['month'].nunique()} months scored. Standard errors are over",
        "months and draws, of paired differences in CRPS.",
        "",
        *markdown(heads, rows),
    ]
    return "\n".join(lines) + "\n"


def validate(options: Any) -> None:
    """Compare the models on gauges that were left out."""
    jobs = [
        Job(seed, model, gauges, height, TEMPERATURES * options.temperatures, options.quick)
        for seed in ((1,) if options.quick else SEEDS)
        for model, gauges, height in (
            (DECADE, FAILED, True),
            (DECADE, NEVER, True),
            (ALONE, NEVER, True),
            (ALONE, NEVER, False),
        )
    ]
    table = run_all(run, jobs, 1 if options.quick else options.workers)
    table.to_csv(options.output / "decade.csv", index=False, float_format="%.5g")
    text = describe(table)
    (options.output / "decade.md").write_text(text, encoding="utf-8")
    print(text)


def make_maps(options: Any) -> None:
    """Fit all but one gauge, map every month to Zarr, and draw some months and that gauge."""
    climate = read_decade(options.quick)
    left_out = climate["station"] == (climate["station"][5] if options.quick else GAUGE)
    training = climate.assign(ppt=climate["ppt"].where(~left_out))
    began = time.process_time()
    # No thermometer stands in a cell, and without one temperatures add nothing to elevation.
    model = fit_decade(training, height=True, quick=options.quick)
    print(model.summary())
    fitted = time.process_time()
    grid = xcopula.datasets.colorado_grid().set_coords("elevation")
    if options.quick:
        grid = grid.thin(lat=8, lon=8)
    target = grid.assign_coords(time=climate["time"])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # A block is a month: nothing is computed until it is written.
    maps = model.predict(target, chunks={"time": 1})
    store = Path("build/colorado/decade.zarr")
    store.parent.mkdir(parents=True, exist_ok=True)
    maps.to_zarr(store, mode="w", consolidated=False)
    written = time.process_time()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    cells = maps["ppt"].size // 3
    print(
        f"{sum(model.observations.sample.sizes):,} values fitted in {fitted - began:.0f} CPU s; "
        f"{cells:,} cells written in {written - fitted:.0f} CPU s "
        f"({cells / (written - fitted):,.0f} a second), {grown / 1024:.0f} MB beyond the fit's peak"
    )
    gauge = climate.isel(station=int(np.flatnonzero(left_out)[0]))
    series = model.predict(gauge)["ppt"]
    with xr.open_zarr(store, consolidated=False) as result:
        figure = draw(result["ppt"], gauge, series, climate, options.quick)
    figure.savefig(options.output / "decade.png", dpi=110)
    print(f"Wrote {store} and {options.output / 'decade.png'}.")


def draw(
    maps: xr.DataArray, gauge: xr.Dataset, series: xr.DataArray, climate: xr.Dataset, quick: bool
) -> plt.Figure:
    """Draw the median of four months, and the months of a gauge that the model did not see."""
    figure = plt.figure(figsize=(11.0, 10.2), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=[2.8, 1.0])
    axes = upper.subplots(2, 2, sharex=True, sharey=True)
    shown = climate["time"].values[:4] if quick else np.array(SHOWN, "datetime64[ns]")
    image = None
    for ax, month in zip(axes.flat, shown, strict=True):
        median = maps.sel(quantile=0.5, time=month)
        style = {"cmap": "YlGnBu", "vmin": 0.0, "vmax": 120.0}
        image = ax.pcolormesh(maps["lon"], maps["lat"], median, rasterized=True, **style)
        seen = climate.sel(time=month).dropna("station", subset=["ppt"])
        marks = {"s": 10, "edgecolors": "black", "linewidths": 0.3}
        ax.scatter(seen["lon"], seen["lat"], c=seen["ppt"], **marks, **style)
        ax.plot(gauge["lon"], gauge["lat"], "^", color="tab:red", mec="white", ms=9)
        ax.set_aspect(1.0 / np.cos(np.deg2rad(39.0)))
        ax.set_title(pd.Timestamp(month).strftime("%B %Y"), fontsize=11)
    for ax in axes[:, 0]:
        ax.set_ylabel("latitude (°N)")
    for ax in axes[1]:
        ax.set_xlabel("longitude (°E)")
    upper.colorbar(image, ax=axes, label="median of precipitation (mm)", extend="max", shrink=0.9)
    ax = lower.subplots()
    low, middle, high = series.transpose("quantile", "time").values
    when = gauge["time"].values
    ax.fill_between(when, low, high, color="tab:blue", alpha=0.25, lw=0, label="90 % interval")
    ax.plot(when, middle, color="tab:blue", lw=1.2, label="median")
    ax.plot(when, gauge["ppt"], "k.", ms=5, label="observed, not used")
    ax.set(ylabel="precipitation (mm)", xlim=(when[0], when[-1]), ylim=(0.0, None))
    ax.set_title(
        f"A gauge that was left out (triangle), {float(gauge['elevation']):,.0f} m", fontsize=11
    )
    ax.legend(ncols=3, loc="upper right", frameon=False)
    return figure


STAGES = {"map": make_maps, "validate": validate}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the stages."""
    stages = {"nargs": "*", "help": f"of {', '.join(STAGES)}; both by default"}
    temperatures = {"action": "store_true", "help": "as secondaries of `validate`"}
    options = read_arguments(
        __doc__, arguments, ("stage", stages), ("--temperatures", temperatures)
    )
    for name in options.stage or STAGES:
        STAGES[name](options)


if __name__ == "__main__":
    main()
