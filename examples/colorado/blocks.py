"""Predict spring precipitation in Colorado where squares of stations were left out.

Run as ``python examples/colorado/blocks.py``; it takes some ten minutes on two cores. For each
spring of the 1980s and each of five seeds, the gauges of random one-degree squares that hold a
quarter of them are left out and predicted. Temperatures stay known there, as where thermometers are
denser than gauges, or are left out too, as where whole stations are missing.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pandas as pd
import xarray as xr
from common import (
    draw_blocks,
    markdown,
    mean_and_error,
    read_arguments,
    read_spring,
    run_all,
    score,
)

import xcopula
from xcopula import regress

TEMPERATURES = ("tmin", "tmax")
BEST = "several variables, with elevation"
WHOLE = ", whole stations left out"
SYSTEMS = (
    BEST,
    "several variables",
    BEST + WHOLE,
    "several variables" + WHOLE,
    "precipitation alone, with elevation",
    "precipitation alone",
    "ordinary kriging",
)
SCORES = {"crps": "CRPS (mm)", "mae": "MAE (mm)", "coverage": "coverage of 90 % (%)"}
DIGITS = {"crps": 2, "mae": 2, "coverage": 1}


@dataclass(frozen=True)
class Job:
    """One spring, one draw of squares."""

    year: int
    seed: int
    quick: bool = False


def options_of(system: str, *, quick: bool) -> dict[str, object]:
    """Return the variables and options of a fit."""
    options: dict[str, object] = {"kernels": "matern32"} if quick else {}
    if system == "ordinary kriging":
        return {**options, "method": "cokriging"}
    law = "gamma" if quick else "flexible"
    system = system.removesuffix(WHOLE)
    several = system.startswith("several")
    if system.endswith("elevation"):
        laws = {"ppt": regress(law, on="elevation")}
        options["marginals"] = laws | dict.fromkeys(
            TEMPERATURES if several else (), regress("normal", on="elevation")
        )
    elif quick:
        options["marginals"] = law if not several else {"ppt": law}
    return {**options, "secondary": TEMPERATURES if several else ()}


def run(job: Job) -> list[dict[str, object]]:
    """Fit and score each system on one split."""
    data = read_spring(job.year)
    if job.quick:
        data = data.isel(station=slice(None, None, 3))
    left_out = draw_blocks(data, "ppt", job.seed)
    gauges = data.assign(ppt=data["ppt"].where(~left_out))
    stations = data.where(~xr.DataArray(left_out, dims="station"))
    tests = data.isel(station=left_out).dropna("station", subset=["ppt"])
    rows = []
    for system in SYSTEMS:
        began = time.perf_counter()
        training = stations if system.endswith(WHOLE) else gauges
        model = xcopula.fit(training, "ppt", **options_of(system, quick=job.quick))
        row: dict[str, object] = {"year": job.year, "seed": job.seed, "system": system}
        row |= {"gauges": tests.sizes["station"], **score(model, tests)}
        row["seconds"] = time.perf_counter() - began
        rows.append(row)
    return rows


def describe(table: pd.DataFrame) -> str:
    """Write the scores and their paired differences as Markdown."""
    wide = table.pivot(index=["year", "seed"], columns="system", values=list(SCORES))
    means = [
        [s, *(mean_and_error(wide[score_][s], DIGITS[score_]) for score_ in SCORES)]
        for s in SYSTEMS
    ]
    gaps = [
        [s, *(mean_and_error(wide[k][s] - wide[k][BEST], DIGITS[k], "+") for k in SCORES)]
        for s in SYSTEMS[1:]
    ]
    heads = ["system", *SCORES.values()]
    springs, seeds = table["year"].nunique(), table["seed"].nunique()
    lines = [
        "# Spring precipitation in Colorado, by spatial blocks",
        "",
        "Made by `python examples/colorado/blocks.py`, with its default options: springs (March to",
        f"May) of {springs} years, {seeds} draws of one-degree squares that hold a quarter of the "
        "gauges,",
        "which are left out and predicted. Temperatures stay known at these places, unless whole "
        "stations",
        f"are left out. Standard errors are over these {len(wide)} splits; splits of one spring "
        "share gauges,",
        "so they are rather too small.",
        "",
        *markdown(heads, means),
        "",
        f"Paired differences from *{BEST}*; a plus is worse:",
        "",
        *markdown(heads, gaps),
    ]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison."""
    options = read_arguments(__doc__, arguments)
    years, seeds = (range(1985, 1986), range(2)) if options.quick else (range(1980, 1990), range(5))
    jobs = [Job(y, s, options.quick) for y, s in itertools.product(years, seeds)]
    table = run_all(run, jobs, 1 if options.quick else options.workers)
    table.to_csv(options.output / "blocks.csv", index=False, float_format="%.5g")
    text = describe(table)
    (options.output / "blocks.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
