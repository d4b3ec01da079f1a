"""Measure what counting the parameters' uncertainty does: coverage and CRPS, paired.

Run as ``python benchmarks/bench_coverage.py`` (``--quick`` for two worlds of one size). A world is
a draw of a multi-task process in the plane (``bench_calibration.py``). One fit of it is asked with
``uncertainty`` "plugin", "t" and "laplace" for the law of 200 held-out values; "true" has the
parameters that made the world. Laws and kernel are given, or all is chosen. Every row is written to
``--rows`` as it comes; a run that was cut off goes on where it ended. The table is that of
``docs/uncertainty/coverage.md``; ``--out`` writes it, with its numbers as CSV.

``--only jura`` does the same for random splits of the Jura samples, ``--only stations`` for whole
stations of Colorado that were held out in space and time, and ``--only cost`` measures the time of
a prediction.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import xarray as xr
from bench_calibration import LAW, world

import xcopula
from xcopula.prediction.predictor import mixed
from xcopula.process import Predictive, Targets, scores_of
from xcopula.solvers import Exact

KINDS = ("plugin", "t", "laplace")
WAYS = {"given": {"marginals": "lognormal", "kernels": "matern32", "restarts": 0}, "chosen": {}}
# Sites, variables, ways, worlds.
PLAN = [(n, v, "given", 50) for n in (35, 60, 120) for v in (1, 2, 3)]
PLAN += [(n, 2, "chosen", 50) for n in (35, 60)]
QUICK = [(35, 2, "given", 2)]
COLUMNS = ("sites", "variables", "way", "seed", "uncertainty", "coverage", "crps", "log_score")
COLUMNS += ("draws", "seconds")
Row = dict[str, object]


def judged(predicted: Predictive, observed: np.ndarray) -> dict[str, float]:
    """Return coverage of 90 % intervals, the mean CRPS and the mean log score."""
    found = scores_of(predicted, observed)
    inside = (observed >= found.lower) & (observed <= found.upper)
    return {
        "coverage": float(inside.mean()),
        "crps": float(found.crps.mean()),
        "log_score": float(found.log_score.mean()),
    }


def rows_of(sites: int, variables: int, way: str, seed: int) -> Iterator[Row]:
    """Yield how each kind did in one world."""
    about = {"sites": sites, "variables": variables, "way": way, "seed": seed}
    data, truth, (process, kept, theta) = world(seed, sites, variables - 1)
    observed = truth["primary"].values
    points = np.ascontiguousarray(np.stack([truth["x"].values, truth["y"].values]))
    exact = Exact().condition(process, kept, None, theta).moments(Targets.nowhere(points))
    true = {"uncertainty": "true", "draws": 1, "seconds": 0.0}
    yield about | true | judged(Predictive.of(exact, LAW), observed)
    others = [n for n in data.data_vars if n != "primary"]
    model = xcopula.fit(data, "primary", others, uncertainty="plugin", **WAYS[way])
    targets = model.observations.targets([truth["x"].values, truth["y"].values])
    for kind in KINDS:
        began = time.process_time()
        try:
            own = model.with_uncertainty(kind)
        except ValueError as error:
            print(f"{about}: {error}", flush=True)
            continue
        spent = time.process_time() - began
        moments = [c.conditioned.moments(targets) for c in own.components]
        found = judged(mixed(own.components, 0, moments), observed)
        draws = own.uncertainty.effective if own.uncertainty else 1.0
        yield about | {"uncertainty": kind, "draws": draws, "seconds": spent} | found


def judge_fit(model: xcopula.CopulaModel, truth: xr.Dataset, kinds: Sequence[str]) -> list[Row]:
    """Return how one fit did with each kind, at sites of the primary that it has not seen."""
    seen = model.observations
    axes = [axis.read(truth[axis.name]).values for axis in model.coordinates.axes]
    covariates = [truth[f.name].values for f in seen.variables[0].fields]
    rows = np.column_stack(covariates) if covariates else None
    found = []
    for kind in kinds:
        began = time.process_time()
        own = model.with_uncertainty(kind)
        spent = time.process_time() - began
        moments = [c.conditioned.moments(seen.targets(axes)) for c in own.components]
        predicted = mixed(own.components, 0, moments, rows)
        scores = judged(predicted, truth[model.tasks[0]].values)
        found.append({"uncertainty": kind, "seconds": spent} | scores)
    return found


def show(title: str, fits: list[list[Row]]) -> None:
    """Print means over fits of the same data."""
    print(f"{title}: {len(fits)} fits")
    base = np.array([float(each[0]["crps"]) for each in fits])
    for own in zip(*fits, strict=True):
        cover = 100.0 * np.array([float(r["coverage"]) for r in own])
        change = 100.0 * (np.array([float(r["crps"]) for r in own]) / base - 1.0)
        root = np.sqrt(max(len(fits) - 1, 1))
        spent = np.mean([float(r["seconds"]) for r in own])
        print(
            f"  {own[0]['uncertainty']:8} coverage {cover.mean():.1f} +- {cover.std() / root:.1f} %"
            f"   CRPS {change.mean():+.2f} +- {change.std() / root:.2f} %   {spent:.2f} CPU s",
            flush=True,
        )


def jura(quick: bool) -> None:
    """Split the Jura samples at random, as often as there is time for."""
    fits = []
    whole = xcopula.datasets.jura()
    for seed in range(1 if quick else 6):
        hidden = np.random.default_rng(seed).permutation(whole.sizes["site"])[:100]
        kept = ~np.isin(np.arange(whole.sizes["site"]), hidden)
        data = whole.assign(Cd=whole["Cd"].where(xr.DataArray(kept, dims="site")))
        options = WAYS["given"] if quick else {}
        model = xcopula.fit(data, "Cd", ["Ni", "Zn"], uncertainty="plugin", **options)
        truth = whole[["Cd"]].isel(site=hidden)
        fits.append(judge_fit(model, truth, KINDS[: 2 if quick else 3]))
    show("Jura, Cd with Ni and Zn", fits)


def stations(quick: bool) -> None:
    """Hold out a quarter of 40 stations of Colorado, with all months of a year."""
    fits = []
    for year in (1985,) if quick else (1985, 1986, 1987, 1988):
        climate = xcopula.datasets.colorado()[["tmax"]].sel(time=str(year))
        known = np.flatnonzero(climate["tmax"].notnull().all("time"))
        drawn = np.random.default_rng(year).permutation(known)[: 12 if quick else 40]
        data = climate.isel(station=drawn).isel(time=slice(0, 3 if quick else 12))
        out = data.sizes["station"] // 4
        options = {"kernels": "matern32", "structures": 1 if quick else 2, "restarts": 0}
        law = xcopula.regress("normal", on="elevation")
        kept = data.isel(station=slice(out, None))
        model = xcopula.fit(kept, "tmax", marginals=law, uncertainty="plugin", **options)
        held = data.isel(station=slice(0, out))
        truth = held.stack(case=("station", "time"), create_index=False)
        fits.append(judge_fit(model, truth, KINDS[: 2 if quick else 3]))
    show("Colorado, whole stations in space and time", fits)


def cost(quick: bool) -> None:
    """Measure what a prediction of a mixture takes beside that of one component."""
    data = xcopula.datasets.jura(hide="Cd")
    if quick:
        data = data.isel(site=slice(0, 359, 4))
    model = xcopula.fit(data, "Cd", "Ni", uncertainty="plugin", **WAYS["given"])
    side = np.linspace(0.5, 5.5, 20 if quick else 120)
    grid = xr.Dataset(coords={"y": ("y", side), "x": ("x", side)})
    spent = {}
    for kind in KINDS:
        own = model.with_uncertainty(kind)
        own.predict(grid.isel(x=slice(0, 2)))  # conditioned, and compiled
        began = time.process_time()
        own.predict(grid)
        spent[kind] = time.process_time() - began
        count = len(own.components)
        ratio = spent[kind] / spent["plugin"]
        print(f"{kind:8} {count:3d} components   {spent[kind]:6.2f} CPU s   {ratio:5.1f} x plugin")


def table(rows: list[Row]) -> list[dict[str, object]]:
    """Return means over worlds, with standard errors: of the CRPS, of its ratio to plugin's."""
    found = []
    for key in dict.fromkeys((r["sites"], r["variables"], r["way"]) for r in rows):
        own = [r for r in rows if (r["sites"], r["variables"], r["way"]) == key]
        by_kind = {
            kind: {r["seed"]: r for r in own if r["uncertainty"] == kind}
            for kind in ("true", *KINDS)
        }
        seeds = sorted(set.intersection(*(set(k) for k in by_kind.values())), key=float)
        each = {
            kind: np.array(
                [
                    [float(by[s][c]) for c in ("coverage", "crps", "log_score", "draws", "seconds")]
                    for s in seeds
                ]
            )
            for kind, by in by_kind.items()
        }
        base = each["plugin"]
        for kind, numbers in each.items():
            change = numbers[:, 1] / base[:, 1] - 1.0
            both = np.isfinite(numbers[:, 2]) & np.isfinite(base[:, 2])
            gain = numbers[both, 2] - base[both, 2]  # a value beyond a law's support has none
            root = np.sqrt(max(len(seeds) - 1, 1))
            found.append(
                {
                    **dict(zip(("sites", "variables", "way"), key, strict=True)),
                    "worlds": len(seeds),
                    "uncertainty": kind,
                    "coverage": round(100.0 * numbers[:, 0].mean(), 1),
                    "coverage_error": round(100.0 * numbers[:, 0].std() / root, 1),
                    "crps_change": round(100.0 * change.mean(), 2),
                    "crps_change_error": round(100.0 * change.std() / root, 2),
                    "log_score_gain": round(gain.mean(), 3),
                    "draws": round(numbers[:, 3].mean(), 1),
                    "seconds": round(numbers[:, 4].mean(), 2),
                }
            )
    return found


def to_text(found: list[dict[str, object]]) -> str:
    """Return the table as Markdown: a row for each kind of world."""
    lines = [
        "| sites | variables | laws, kernels | worlds | true | plugin | t | laplace "
        "| CRPS t | CRPS laplace |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for key in dict.fromkeys((r["sites"], r["variables"], r["way"]) for r in found):
        own = {r["uncertainty"]: r for r in found if (r["sites"], r["variables"], r["way"]) == key}
        cover = [f"{own[k]['coverage']} ± {own[k]['coverage_error']}" for k in ("true", *KINDS)]
        crps = [
            f"{float(own[k]['crps_change']):+.1f} ± {own[k]['crps_change_error']} %"
            for k in KINDS[1:]
        ]
        cells = [*map(str, key), str(own["true"]["worlds"]), *cover, *crps]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(plan: list[tuple[int, int, str, int]], path: Path | None, out: Path | None) -> None:
    """Run what is missing, and print the table."""
    rows: list[Row] = []
    if path is not None and path.exists():
        with path.open() as file:
            rows = [dict(r) for r in csv.DictReader(file)]
    done = {(str(r["sites"]), str(r["variables"]), r["way"], str(r["seed"])) for r in rows}
    for sites, variables, way, worlds in plan:
        for seed in range(worlds):
            if (str(sites), str(variables), way, str(seed)) in done:
                continue
            new = list(rows_of(sites, variables, way, seed))
            rows += new
            if path is not None:
                fresh = not path.exists()
                with path.open("a", newline="") as file:
                    writer = csv.DictWriter(file, COLUMNS)
                    if fresh:
                        writer.writeheader()
                    writer.writerows(new)
    found = table(rows)
    print(to_text(found))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "coverage.md").write_text(to_text(found))
        with (out / "coverage.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(found[0]))
            writer.writeheader()
            writer.writerows(found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rows", type=Path, help="a CSV file for every world, to go on with")
    parser.add_argument("--out", type=Path, help="a folder for the table")
    parser.add_argument("--only", choices=("worlds", "jura", "stations", "cost"), default="worlds")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    stages = {"jura": jura, "stations": stations, "cost": cost}
    if given.only in stages:
        stages[given.only](given.quick)
    else:
        main(QUICK if given.quick else PLAN, given.rows, given.out)
