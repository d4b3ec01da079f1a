"""Where to measure next: sites that were chosen against sites that were drawn, on the Jura.

Run as ``python examples/planning.py``; it takes four minutes. Two campaigns are played with metals
that were really measured. Early: 40 of the 259 prediction sites are known, and five of the other
219 are measured next; the 100 validation sites tell how good the map has become. Late: all 259 are
known, and five of 50 validation sites are measured; the other 50 tell. The five that are chosen for
the map are compared with fives that are drawn.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

import xcopula

METALS = ("Co", "Ni", "Zn", "Cd")
FIVE, FIRST = 5, 40
GIVEN: dict[str, Any] = {
    "marginals": "gamma",
    "kernels": "matern12",
    "anisotropy": False,
    "uncertainty": "plugin",
}
MAPPED, LIMIT = "Ni", 25.0  # of the picture


def split(campaign: str, seed: int) -> tuple[xr.Dataset, xr.Dataset, xr.Dataset]:
    """Return what is known, where the next sites may be, and where the map is scored."""
    data, rng = xcopula.datasets.jura(), np.random.default_rng(seed)
    known, validation = data.isel(site=slice(259)), data.isel(site=slice(259, None))
    if campaign == "early":
        order = rng.permutation(259)
        return known.isel(site=order[:FIRST]), known.isel(site=order[FIRST:]), validation
    order = rng.permutation(100)
    return known, validation.isel(site=order[:50]), validation.isel(site=order[50:])


def score(model: xcopula.CopulaModel, held: xr.Dataset) -> float:
    """Return the mean CRPS at sites that were held out."""
    (name,) = model.tasks
    posterior = model.posterior(held[["x", "y"]])
    return float(posterior.crps(held[name]).mean())


def play(campaign: str, metal: str, seed: int, draws: int) -> dict[str, Any]:
    """Choose five sites and draw fives, measure them, and score each map."""
    known, candidates, held = split(campaign, seed)
    model = xcopula.fit(known[[metal]], metal, **GIVEN)
    grid = xcopula.datasets.jura_grid().isel(x=slice(None, None, 3), y=slice(None, None, 3))
    plan = model.design(candidates, FIVE, grid, of="signal", mask="inside")
    rng = np.random.default_rng(1000 + seed)
    fives = [rng.permutation(candidates.sizes["site"])[:FIVE] for _ in range(draws)]
    left, scores = [], []
    for which in [plan["candidate"].values, *fives]:
        after = model.condition(candidates[[metal]].isel(site=which))
        scores.append(score(after, held))
        latent = after.posterior(grid, of="signal", mask="inside").latent["std"]
        left.append(float((latent**2).mean() / plan["criterion_before"]))
    return {
        "campaign": campaign,
        "metal": metal,
        "before": score(model, held),
        "chosen": scores[0],
        "drawn": np.mean(scores[1:]),
        "left_chosen": left[0],
        "left_drawn": np.mean(left[1:]),
    }


def tabulate(rows: pd.DataFrame) -> str:
    """Return the scores as a table of a page."""
    lines = [
        "| campaign | metal | CRPS before | five chosen | five drawn | difference | better in "
        "| variance left: chosen, drawn |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (campaign, metal), own in rows.groupby(["campaign", "metal"], sort=False):
        gain = own["chosen"] - own["drawn"]
        error = gain.std() / np.sqrt(len(gain)) if len(gain) > 1 else np.nan
        digits = 4 if own["before"].mean() < 1.0 else 3
        crps = " | ".join(f"{own[c].mean():.{digits}f}" for c in ("before", "chosen", "drawn"))
        lines.append(
            f"| {campaign} | {metal} | {crps} | {gain.mean():+.{digits}f} ± {error:.{digits}f} "
            f"| {(gain < 0.0).sum()} of {len(gain)} "
            f"| {own['left_chosen'].mean():.3f}, {own['left_drawn'].mean():.3f} |"
        )
    return "\n".join(lines) + "\n"


def draw() -> Figure:
    """Draw what is unsure before and after ten sites, by variance and by decision."""
    known, candidates, _ = split("early", 0)
    model = xcopula.fit(known[[MAPPED]], MAPPED, **GIVEN)
    grid = xcopula.datasets.jura_grid()
    options: dict[str, Any] = {"of": "signal", "mask": "inside"}
    plans = {
        "variance": model.design(candidates, 10, grid, **options),
        "misclassification": model.design(candidates, 10, grid, threshold=LIMIT, **options),
    }
    titles = {
        "variance": "latent variance",
        "misclassification": f"wrong decisions at {LIMIT:g} mg/kg",
    }
    figure = Figure(figsize=(9.5, 9.0), layout="compressed")
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for row, (name, plan) in zip(panels, plans.items(), strict=True):
        top = 1.0 if name == "variance" else 0.5
        for ax, when in zip(row, ("before", "after"), strict=True):
            style = {"cmap": "viridis", "vmin": 0.0, "vmax": top, "rasterized": True}
            mesh = ax.pcolormesh(grid["x"], grid["y"], plan[f"{name}_{when}"], **style)
            ax.plot(known["x"], known["y"], ".", color="white", ms=4)
            ax.set_title(f"{titles[name]}, {when}".capitalize(), loc="left", fontsize=10)
            ax.set_aspect("equal")
            ax.tick_params(labelsize=8)
        row[0].plot(candidates["x"], candidates["y"], ".", color="black", ms=1.5)
        row[1].plot(plan["site_x"], plan["site_y"], "o", ms=11, mfc="white", mec="black")
        for place in plan["choice"].values:
            own = plan.sel(choice=place)
            at = (float(own["site_x"]), float(own["site_y"]))
            row[1].annotate(str(place), at, ha="center", va="center", fontsize=7)
        figure.colorbar(mesh, ax=list(row), shrink=0.8)
    for ax in panels[1]:
        ax.set_xlabel("km")
    for ax in panels[:, 0]:
        ax.set_ylabel("km")
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Play both campaigns with each metal, write the table and the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("docs/planning"), help="folder")
    parser.add_argument("--quick", action="store_true", help="one metal, two seeds")
    given = parser.parse_args(arguments)
    given.output.mkdir(parents=True, exist_ok=True)
    metals, seeds, draws = (METALS[:1], 2, 3) if given.quick else (METALS, 20, 20)
    rows = [
        play(campaign, metal, seed, draws)
        for campaign in ("early", "late")
        for metal in metals
        for seed in range(seeds)
    ]
    table = tabulate(pd.DataFrame(rows))
    (given.output / "scores.md").write_text(table, encoding="utf-8")
    print(table)
    draw().savefig(given.output / "map.png", dpi=80)


if __name__ == "__main__":
    main()
