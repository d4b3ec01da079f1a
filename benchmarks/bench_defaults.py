"""Compare the defaults of whole fits with those of before: one isotropic model, taken for certain.

Run as ``python benchmarks/bench_defaults.py`` (``--quick`` for a world or two; the names of stages
choose among them).

Before: the law and the kernel that AIC picks, one structure, no directions, parameters plugged in.
Now: all that `xcopula.fit` does by default.

``worlds`` simulates worlds of one variable. Those of the plane are the kinds of
`rules_of_choice.py`, with 50 to 500 sites and 200 hidden values. Those of space and time have 30
stations and 10 days of a covariance that is separable or not (Gneiting, 2002), and 10 stations that
are hidden as a whole.

``splits`` leaves out random halves of the Jura samples' cadmium (others known), and squares of
Colorado's gauges in spring (temperatures known).

Every row is kept in ``--rows`` as it comes, and a run that was cut off goes on where it ended.
The tables of the documentation are in ``docs/defaults``.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from plane_worlds import (
    KINDS,
    LEAST_LOG_DENSITY,
    Row,
    World,
    gather,
    means,
    paired,
    to_text,
    world,
)

import xcopula
from xcopula import CopulaModel, regress
from xcopula.process import Predictive

BEFORE, NOW = "before", "now"
OLD = {"anisotropy": False, "uncertainty": "plugin", "structures": 1}
# Worlds of each kind, by the number of sites.
SEEDS = {50: 8, 120: 5, 500: 2}
SPACE_TIME = ("separable in space and time", "not separable")
STATIONS, HIDDEN_STATIONS, DAYS = 30, 10, 10
SPLITS = {"Jura, cadmium": 10, "Colorado, spring": 16}
KM = {"units": "km"}


def plane(kind: str, sites: int, seed: int) -> tuple[xr.Dataset, xr.Dataset]:
    """Return the data and the hidden values of a world in the plane, as a user has them."""
    found: World = world(kind, sites, seed)

    def labelled(places: np.ndarray, values: np.ndarray) -> xr.Dataset:
        coords = {c: ("site", 100.0 * places[:, k], KM) for k, c in enumerate("xy")}
        return xr.Dataset({"value": ("site", values)}, coords)

    return labelled(found.sites, found.values), labelled(found.hidden_sites, found.hidden)


def space_time(kind: str, seed: int) -> tuple[xr.Dataset, xr.Dataset]:
    """Return stations by days, and those of stations that are hidden."""
    rng = np.random.default_rng([seed, SPACE_TIME.index(kind)])
    places = 100.0 * rng.random((STATIONS + HIDDEN_STATIONS, 2))
    apart = np.linalg.norm(places[:, None] - places, axis=-1) / 40.0
    lag = np.abs(np.subtract.outer(np.arange(DAYS), np.arange(DAYS))) / 3.0
    wider = 1.0 + lag[None, :, None, :] ** 2
    distance = np.broadcast_to(apart[:, None, :, None], (len(places), DAYS, len(places), DAYS))
    signal = np.exp(-distance / np.sqrt(wider if kind == "not separable" else 1.0)) / wider
    size = len(places) * DAYS
    covariance = 0.9 * signal.reshape(size, size) + 0.1 * np.eye(size)
    z = np.linalg.cholesky(covariance + 1e-9 * np.eye(size)) @ rng.normal(size=size)
    coords = {c: ("station", places[:, k], KM) for k, c in enumerate("xy")}
    coords["time"] = np.datetime64("2020-01-01", "ns") + np.arange(DAYS) * np.timedelta64(1, "D")
    values = (("station", "time"), np.exp(0.5 * z).reshape(-1, DAYS))
    both = xr.Dataset({"value": values}, coords)
    return both.isel(station=slice(STATIONS)), both.isel(station=slice(STATIONS, None))


def jura(seed: int) -> tuple[xr.Dataset, xr.Dataset]:
    """Return the samples with half of the cadmium, and the other half."""
    data = xcopula.datasets.jura()
    known = data["Cd"].notnull().values
    chosen = np.random.default_rng(seed).permutation(np.flatnonzero(known))
    hidden = np.isin(np.arange(known.size), chosen[: chosen.size // 2])
    (dim,) = data["Cd"].dims
    return data.assign(Cd=data["Cd"].where(~xr.DataArray(hidden, dims=dim))), data.isel(
        {dim: hidden}
    )


def colorado(seed: int) -> tuple[xr.Dataset, xr.Dataset]:
    """Return the springs of a year without the gauges of some squares, and these."""
    sys.path.append(str(Path(__file__).parents[1] / "examples" / "colorado"))
    from common import draw_blocks, read_spring

    data = read_spring(1980 + seed % 8)
    hidden = draw_blocks(data, "ppt", seed)
    tests = data.isel(station=hidden).dropna("station", subset=["ppt"])
    return data.assign(ppt=data["ppt"].where(~xr.DataArray(hidden, dims="station"))), tests


def score(model: CopulaModel, tests: xr.Dataset) -> Row:
    """Return mean scores of what a model says of hidden values, one by one."""
    truth = tests[model.tasks[0]]
    posterior = model.posterior(tests.drop_vars(truth.name))
    crps, level = posterior.crps(truth).values, posterior.cdf(truth).values
    log_density = posterior._apply(Predictive.log_density, field=truth).values
    return {
        "crps": crps.mean(),
        "log_score": np.maximum(log_density, LEAST_LOG_DENSITY).mean(),
        "coverage": (np.abs(level - 0.5) <= 0.45).mean(),
    }


def both(data: xr.Dataset, tests: xr.Dataset, about: Row, *args: object, **options: object) -> list:
    """Fit by the defaults of before and of now, and score both."""
    rows = []
    for rule, own in ((BEFORE, OLD), (NOW, {})):
        began = time.process_time()
        model = xcopula.fit(data, *args, **options, **own)
        seconds = time.process_time() - began
        rows.append({**about, "rule": rule, **score(model, tests), "seconds": seconds})
    return rows


def run_world(about: tuple[str, int, int]) -> list[Row]:
    """Compare on one world."""
    kind, sites, seed = about
    found = space_time(kind, seed) if kind in SPACE_TIME else plane(kind, sites, seed)
    return both(*found, {"kind": kind, "sites": sites, "seed": seed}, "value")


def run_split(about: tuple[str, int, int]) -> list[Row]:
    """Compare on one split of real data."""
    kind, sites, seed = about
    known: Row = {"kind": kind, "sites": sites, "seed": seed}
    if kind.startswith("Jura"):
        return both(*jura(seed), known, "Cd", ["Ni", "Zn"])
    laws = {"ppt": regress("auto", on="elevation")}
    laws |= dict.fromkeys(("tmin", "tmax"), regress("normal", on="elevation"))
    return both(*colorado(seed), known, "ppt", ["tmin", "tmax"], marginals=laws)


def worlds(quick: bool) -> list[tuple[str, int, int]]:
    """Return the worlds of the plane, then those of space and time."""
    if quick:
        return [("directional", 50, 0)]
    flat = [(k, n, s) for n, seeds in SEEDS.items() for s in range(seeds) for k in KINDS]
    return flat + [(k, STATIONS, s) for s in range(10) for k in SPACE_TIME]


def splits(quick: bool) -> list[tuple[str, int, int]]:
    """Return the splits of real data; the number of sites is theirs."""
    return [(k, 0, s) for k, count in SPLITS.items() for s in range(1 if quick else count)]


STAGES = {"worlds": (worlds, run_world), "splits": (splits, run_split)}


def table(rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return numbers and text: what the defaults of now change, by kind and by size."""
    change = paired(rows, ["kind", "sites", "seed"], BEFORE).assign(all="all")
    own = change[change["rule"] == NOW]
    old = change[change["rule"] == BEFORE]
    found, texts = [], []
    for by in ("kind", *(("sites", "all") if rows["sites"].nunique() > 1 else ())):
        part = means(own, [by])
        before = means(old, [by])["coverage"].map("{:.1f} %".format)
        found.append(part.rename(columns={by: "of"}))
        texts.append(to_text(part.assign(before=before), {by: by, "before": "coverage before"}))
    costs = rows.groupby("rule", sort=False)["seconds"].mean()
    spent = "; ".join(f"{rule}: {seconds:.1f}" for rule, seconds in costs.items())
    return pd.concat(found), "\n".join([*texts, f"Mean CPU seconds of a fit. {spent}.\n"])


def main() -> None:
    """Run the stages that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--rows", type=Path, help="a folder for a row of each world, to go on with")
    parser.add_argument("--out", type=Path, help="a folder for the tables")
    parser.add_argument("stage", nargs="*", help=f"of {', '.join(STAGES)}; all by default")
    asked = parser.parse_args()
    for name in asked.stage or STAGES:
        todo, run = STAGES[name]
        path = asked.rows and asked.rows / f"{name}.csv"
        rows = gather(path, todo(asked.quick), ["kind", "sites", "seed"], run, asked.workers)
        numbers, text = table(rows)
        print(f"\n== {name}\n{text}", flush=True)
        if asked.out is not None:
            asked.out.mkdir(parents=True, exist_ok=True)
            numbers.to_csv(asked.out / f"{name}.csv", index=False, float_format="%.5g")
            (asked.out / f"{name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
