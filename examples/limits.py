"""Heavy metals with detection limits that changed over the years: the page ``docs/limits.md``.

Run as ``python examples/limits.py``; it takes some minutes. The Jura samples have no values below a
limit. So we pretend that three laboratories worked on them, year after year, with limits for
cadmium of 1.2, 0.8 and 0.4 mg/kg: a third of the values at the 259 prediction sites become "<1.2"
and the like, in a file such as a laboratory sends. What each treatment of these cells says of the
100 validation sites can then be judged by the values that were measured there.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

import xcopula
from xcopula import CopulaModel

LIMITS = {1992: 1.2, 1993: 0.8, 1994: 0.4}  # mg/kg
GUIDE = 0.8  # mg/kg, the Swiss guide value of cadmium in soil
AS_INTERVALS, HALVED, DROPPED = "below the limit", "half the limit", "dropped"
TREATMENTS = (AS_INTERVALS, HALVED, DROPPED)
KM = {"units": "km"}


def write_table(path: Path, seed: int) -> None:
    """Write the samples as a laboratory would: a text such as "<0.8" where a value is too low."""
    known = xcopula.datasets.jura().to_dataframe().query("split == 'prediction'")
    years = np.random.default_rng(seed).choice(list(LIMITS), len(known))
    limits = pd.Series(years).map(LIMITS).to_numpy()
    cadmium = [
        f"<{low}" if value < low else f"{value}"
        for value, low in zip(known["Cd"], limits, strict=True)
    ]
    table = known[["x", "y"]].assign(year=years, Cd=cadmium, Ni=known["Ni"], Zn=known["Zn"])
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path, index=False)


def read_table(path: Path) -> xr.Dataset:
    """Return the table as a Dataset, with a flag beside the cadmium."""
    table = pd.read_csv(path, dtype={"Cd": str})
    below = table["Cd"].str.startswith("<")
    cadmium = table["Cd"].str.lstrip("<").astype(float)
    samples = table.assign(Cd=cadmium, Cd_below=below).to_xarray().rename(index="site")
    samples = samples.set_coords(["x", "y"]).drop_vars("site")
    for axis in "xy":
        samples[axis].attrs |= KM
    for metal in ("Cd", "Ni", "Zn"):
        samples[metal].attrs["units"] = "mg kg-1"
    return samples


def fit(samples: xr.Dataset, treatment: str, *, quick: bool) -> CopulaModel:
    """Fit cadmium, with the cells below a limit treated in one of three ways."""
    options = {"kernels": "matern12", "marginals": "lognormal"} if quick else {}
    below = samples["Cd_below"]
    if treatment == AS_INTERVALS:
        options["censored"] = {"Cd": "Cd_below"}
    elif treatment == HALVED:
        samples = samples.assign(Cd=samples["Cd"].where(~below, 0.5 * samples["Cd"]))
    else:
        samples = samples.assign(Cd=samples["Cd"].where(~below))
    return samples.mtcopula.fit("Cd", ["Ni", "Zn"], **options)


def score(model: CopulaModel, tests: xr.Dataset) -> dict[str, float]:
    """Return scores of the validation sites, where metals are not known."""
    posterior = model.posterior(tests[["x", "y"]])
    truth = tests["Cd"]
    crps = posterior.crps(truth)
    lower, upper = posterior.interval(0.9)
    inside = (lower <= truth) & (truth <= upper)
    low = truth < max(LIMITS.values())
    above = posterior.exceedance(GUIDE)
    return {
        "crps": float(crps.mean()),
        "crps_low": float(crps.where(low).mean()),
        "coverage": 100.0 * float(inside.mean()),
        "brier": float(((above - (truth > GUIDE)) ** 2).mean()),
        "bias": 100.0 * float(above.mean() - (truth > GUIDE).mean()),
    }


def describe(rows: pd.DataFrame) -> str:
    """Return the scores as Markdown; differences are paired by draw of the years."""
    heads = ["values below a limit", "CRPS (mg/kg)", "against intervals"]
    heads += ["CRPS of values below 1.2", "coverage of 90 %", f"Brier score of Cd > {GUIDE}"]
    heads += ["share above it, too many (points)"]
    wide = rows.pivot(index="seed", columns="treatment", values="crps")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in TREATMENTS:
        own = rows[rows["treatment"] == name]
        gap = 100.0 * (wide[name] / wide[AS_INTERVALS] - 1.0)
        cells = [
            name,
            f"{own['crps'].mean():.4f}",
            f"{gap.mean():+.1f} ± {gap.sem():.1f} %" if gap.any() else "",
            f"{own['crps_low'].mean():.4f}",
            f"{own['coverage'].mean():.1f} %",
            f"{own['brier'].mean():.3f}",
            f"{own['bias'].mean():+.1f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def draw(maps: Mapping[str, xr.DataArray], samples: xr.Dataset) -> Figure:
    """Draw the probability of more than the guide value, by treatment."""
    figure = Figure(figsize=(3.5 * len(maps), 4.2), layout="compressed")
    axes = figure.subplots(1, len(maps), sharey=True)
    below = samples["Cd_below"].values
    for ax, (title, field) in zip(axes, maps.items(), strict=True):
        image = ax.pcolormesh(
            field["x"], field["y"], field, vmin=0.0, vmax=1.0, cmap="RdYlBu_r", rasterized=True
        )
        seen = slice(None) if title != DROPPED else ~below
        for which, style in ((below, "v"), (~below, "o")):
            shown = which if title != DROPPED else which & seen
            ax.plot(
                samples["x"][shown],
                samples["y"][shown],
                style,
                ms=3.2,
                mfc="none",
                mec="k",
                mew=0.5,
            )
        ax.set_title(title, loc="left", fontsize=10)
        ax.set_aspect("equal")
        ax.set_xlabel("x (km)")
    axes[0].set_ylabel("y (km)")
    label = f"probability of more than {GUIDE} mg/kg of cadmium"
    figure.colorbar(image, ax=list(axes), label=label, orientation="horizontal", shrink=0.5)
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the table of the laboratory, fit, score and map."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one draw of the years, laws given")
    parser.add_argument("--output", type=Path, default=Path("docs/limits"))
    asked = parser.parse_args(arguments)
    asked.output.mkdir(parents=True, exist_ok=True)
    jura = xcopula.datasets.jura()
    tests = jura.isel(site=(jura["split"] == "validation").values)
    grid = xcopula.datasets.jura_grid()
    rows, maps = [], {}
    for seed in range(1 if asked.quick else 5):
        path = Path("build/limits/cadmium.csv")
        write_table(path, seed)
        samples = read_table(path)
        for treatment in TREATMENTS:
            model = fit(samples, treatment, quick=asked.quick)
            about = {"seed": seed, "treatment": treatment}
            rows.append({**about, **score(model, tests)})
            if seed == 0:
                target = grid.thin(x=8, y=8) if asked.quick else grid
                posterior = model.posterior(target, mask="inside")
                maps[treatment] = posterior.exceedance(GUIDE).squeeze(drop=True)
                first = samples
    table = describe(pd.DataFrame(rows))
    draw(maps, first).savefig(asked.output / "map.png", dpi=110)
    (asked.output / "scores.md").write_text(table, encoding="utf-8")
    print(table)
    print(f"Wrote {asked.output / 'map.png'} and {asked.output / 'scores.md'}.")


if __name__ == "__main__":
    main()
