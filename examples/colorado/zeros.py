"""Months of no rain in Colorado: zeros as censored values, as numbers, and as half a millimetre.

Run as ``python examples/colorado/zeros.py``; it takes some minutes. Some months of autumn and of
winter are dry at many gauges. The gauges of random squares are left out, and predicted by three
models, whose flexible marginals follow elevation. Zeros are censored values, the default; they are
numbers; or each is 0.5 mm, half of what a gauge resolves.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr
from common import draw_blocks, markdown, mean_and_error, read_arguments, run_all

import xcopula
from xcopula import CopulaModel, regress

ATOM, HALVED = "zeros censored (the default)", "half of what a gauge resolves"
NUMBERS = "zeros as numbers"
COORDS = {"space": ["lon", "lat"], "elevation": "elevation"}
LEVELS = (0.0, 0.02, 0.1, 0.3, 0.7, 1.0)


@dataclass(frozen=True)
class Job:
    """One month, and one draw of squares."""

    month: int  # its number in the decade
    seed: int
    quick: bool = False


def dry_months(climate: xr.Dataset, count: int) -> list[int]:
    """Return the months with the most zeros, in order of time."""
    zeros = (climate["ppt"] == 0.0).sum("station").values
    return sorted(np.argsort(-zeros, kind="stable")[:count].tolist())


def fit(month: xr.Dataset, treatment: str) -> CopulaModel:
    """Fit one month with one of the treatments."""
    ppt = month["ppt"]
    if treatment == HALVED:
        month = month.assign(ppt=ppt.where(ppt != 0.0, 0.5))
    return month.mtcopula.fit(
        "ppt",
        coords=COORDS,
        marginals=regress(on="elevation"),
        support=(None, None) if treatment == NUMBERS else None,
    )


def run(job: Job) -> list[dict[str, Any]]:
    """Leave out squares of one month, and score all treatments gauge by gauge."""
    climate = xcopula.datasets.colorado().isel(time=job.month).drop_vars("time")
    if job.quick:
        climate = climate.thin(station=2)
    hidden = xr.DataArray(draw_blocks(climate, "ppt", job.seed), dims="station")
    training = climate.assign(ppt=climate["ppt"].where(~hidden))
    tests = climate.isel(station=hidden.values).dropna("station", subset=["ppt"])
    truth = tests["ppt"]
    rows = []
    for treatment in (ATOM, NUMBERS, HALVED):
        posterior = fit(training, treatment).posterior(tests.drop_vars("ppt"))
        crps = posterior.crps(truth).values
        lower, upper = posterior.interval(0.9).values
        # Up to half of what a gauge resolves is a zero.
        dry = posterior.cdf(0.0 if treatment == ATOM else 0.5).values
        rows += [
            {
                "month": job.month,
                "seed": job.seed,
                "treatment": treatment,
                "observed": float(truth[k]),
                "crps": crps[k],
                "inside": lower[k] <= max(float(truth[k]), 0.0) <= upper[k],
                "dry": dry[k],
            }
            for k in range(truth.size)
        ]
    return rows


def describe(table: pd.DataFrame) -> str:
    """Write scores, paired by month and draw, and how reliable the probability of zero is."""
    table = table.assign(brier=(table["dry"] - (table["observed"] == 0.0)) ** 2)
    each = table.groupby(["month", "seed", "treatment"])[["crps", "brier"]].mean().unstack()

    def against(score: str, other: str) -> str:
        gap = each[score, ATOM] - each[score, other]
        return mean_and_error(100.0 * gap / each[score, other].mean(), 1, "+") + " %"

    rows = []
    for name in (ATOM, NUMBERS, HALVED):
        own = table[table["treatment"] == name]
        covered = 100.0 * own["inside"].mean()
        crps, brier = each["crps", name].mean(), own["brier"].mean()
        rows.append([name, f"{crps:.3f}", f"{covered:.1f}", f"{brier:.4f}"])
    own = table[table["treatment"] == ATOM]
    bins = pd.cut(own["dry"], LEVELS, include_lowest=True)
    reliability = [
        [
            f"{100 * max(group.left, 0.0):.0f} to {100 * group.right:.0f} %",
            str(len(part)),
            f"{100 * part['dry'].mean():.1f} %",
            f"{100 * (part['observed'] == 0.0).mean():.1f} %",
        ]
        for group, part in own.groupby(bins, observed=True)
    ]
    months, draws = table["month"].nunique(), table["seed"].nunique()
    heads = ["zeros", "CRPS (mm)", "coverage of 90 % (%)", "Brier score of a dry month"]
    lines = [
        "# Months of no rain",
        "",
        "Made by `python examples/colorado/zeros.py`, with its default options: gauges of random "
        "squares left",
        f"out, in the {months} driest months of the decade, {draws} draws each.",
        "",
        *markdown(heads, rows),
        "",
        f"Censored zeros against 0.5 mm in their place: CRPS {against('crps', HALVED)}, Brier",
        f"score {against('brier', HALVED)}; against zeros as numbers: CRPS "
        f"{against('crps', NUMBERS)}, Brier score {against('brier', NUMBERS)}.",
        "Pairs are months and draws.",
        "",
        "How reliable the probability of a dry month is:",
        "",
        *markdown(["P(0) said", "gauges", "mean of P(0)", "dry"], reliability),
    ]
    return "\n".join(lines) + "\n"


def draw(options: Any) -> None:
    """Map the driest month: its median, exactly zero where that is most probable, and P(0)."""
    climate = xcopula.datasets.colorado()
    (number,) = dry_months(climate, 1)
    month = climate.isel(time=number).drop_vars("time")
    model = fit(month, ATOM)
    grid = xcopula.datasets.colorado_grid().set_coords("elevation")
    if options.quick:
        grid = grid.thin(lat=8, lon=8)
    posterior = model.posterior(grid)
    median, dry = posterior.median(), posterior.cdf(0.0).squeeze(drop=True)
    share = 100.0 * float((median == 0.0).mean())
    print(
        f"{str(climate['time'].values[number])[:7]}: median exactly zero in {share:.0f} % of cells"
    )
    figure, axes = plt.subplots(1, 2, figsize=(11.0, 4.4), sharey=True, layout="compressed")
    seen = month.dropna("station", subset=["ppt"])
    is_dry = (seen["ppt"] == 0.0).values
    panels = (
        (axes[0], median.where(median > 0.0), "median (mm); white is exactly zero", "YlGnBu", 40.0),
        (axes[1], dry, "probability of no rain", "YlOrBr", 1.0),
    )
    for ax, field, title, colours, top in panels:
        image = ax.pcolormesh(
            grid["lon"], grid["lat"], field, cmap=colours, vmin=0.0, vmax=top, rasterized=True
        )
        for which, style in ((is_dry, {"mfc": "white"}), (~is_dry, {"mfc": "black"})):
            at = seen.isel(station=which)
            ax.plot(at["lon"], at["lat"], "o", ms=3.5, mec="black", mew=0.5, **style)
        ax.set_aspect(1.0 / np.cos(np.deg2rad(39.0)))
        ax.set_title(title, loc="left", fontsize=11)
        ax.set_xlabel("longitude (°E)")
        figure.colorbar(image, ax=ax, shrink=0.85)
    axes[0].set_ylabel("latitude (°N)")
    figure.savefig(options.output / "zeros.png", dpi=110)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Score all treatments, and draw the map."""
    options = read_arguments(__doc__, arguments)
    climate = xcopula.datasets.colorado()
    months, seeds = (dry_months(climate, 1), 1) if options.quick else (dry_months(climate, 8), 4)
    jobs = [Job(month, seed, options.quick) for month in months for seed in range(seeds)]
    table = run_all(run, jobs, 1 if options.quick else options.workers)
    text = describe(table)
    (options.output / "zeros.md").write_text(text, encoding="utf-8")
    print(text)
    draw(options)


if __name__ == "__main__":
    main()
