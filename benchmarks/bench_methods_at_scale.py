"""Compare the full and the transductive method where samples are large; count neighbours.

Run as ``python benchmarks/bench_methods_at_scale.py`` (``--quick`` takes small samples; names of
stages choose among them). ``methods`` fits simulated worlds of several variables by both methods
and scores values of the primary that were hidden; ``neighbours`` fits one sample exactly and by
more and more neighbours. Seconds are those of processors.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import worlds
import xarray as xr

import xcopula
from xcopula.process import Moments, scores
from xcopula.solvers import Neighbours

GIVEN = {"marginals": "lognormal", "kernels": "matern32", "solver": "neighbours"}
METHODS = ("full", "transductive")
SCORES = ("crps", "log_score", "coverage")


@dataclass(frozen=True)
class Job:
    """One world and how it is fitted."""

    seed: int
    variables: int
    sites: int
    shared: float
    known: float
    method: str


def jobs(quick: bool) -> Iterator[Job]:
    """Yield worlds: numbers of variables, ties between secondaries, shares of the primary."""
    seeds = 1 if quick else 2
    # Sites so that all variables together have 11,000 to 25,000 values.
    sizes = {2: 600, 3: 500} if quick else {2: 10_000, 3: 8_000, 5: 6_000}
    for variables, sites in sizes.items():
        ties = (0.0,) if variables == 2 else (0.0, 0.8)
        for shared, known, method in itertools.product(ties, (0.1, 1.0), METHODS):
            if known == 1.0 and shared:
                continue
            for seed in range(seeds):
                yield Job(seed, variables, sites, shared, known, method)


def run(job: Job) -> list[dict[str, Any]]:
    """Fit a world once; score hidden values at the sites of secondaries, and away from all."""
    world = worlds.scattered(job.seed, job.sites, job.variables, shared=job.shared)
    rng = np.random.default_rng(1000 + job.seed)
    known = rng.random(job.sites) < job.known
    data = world.data.assign(v0=world.data["v0"].where(known))
    names = list(data.data_vars)
    xcopula.fit(data.isel(site=slice(200)), names[0], names[1:], method=job.method, **GIVEN)
    began = time.process_time()
    model = xcopula.fit(data, names[0], names[1:], method=job.method, **GIVEN)
    fitted = time.process_time() - began
    places = {"away": away(world, rng)}
    if job.known < 1.0:
        places["beside"] = world.data.isel(site=np.flatnonzero(~known)[:3000])
    rows = []
    for place, tests in places.items():
        began = time.process_time()
        found = score(model, tests)
        rows.append(
            {**vars(job), "place": place, **found, "fit": fitted, "cells": tests.sizes["site"]}
        )
        rows[-1]["predict"] = time.process_time() - began
    return rows


def away(world: worlds.World, rng: np.random.Generator) -> xr.Dataset:
    """Return the truth at 3,000 nodes of the grid where nothing was observed."""
    truth = world.truth.stack(site=["y", "x"])
    node = truth["y"].values + 1j * truth["x"].values
    free = np.flatnonzero(~np.isin(node, world.data["y"].values + 1j * world.data["x"].values))
    some = truth.isel(site=rng.permutation(free)[:3000]).reset_index("site")
    for name in ("x", "y"):
        some[name].attrs = world.truth[name].attrs
    return some


def score(model: xcopula.CopulaModel, tests: xr.Dataset) -> dict[str, float]:
    """Return mean scores of the primary, with the coverage of the 90 % interval in per cent."""
    name = model.tasks[0]
    latent = model.posterior(tests[["x", "y"]]).latent
    moments = Moments(latent["mean"].values, latent["std"].values ** 2)
    found = scores(moments, model.marginals[0], tests[name].values)
    inside = (found.lower <= found.observed) & (found.observed <= found.upper)
    return {
        "crps": float(found.crps.mean()),
        "log_score": float(found.log_score.mean()),
        "coverage": float(100.0 * inside.mean()),
    }


def compare_methods(quick: bool, output: Path, workers: int) -> None:
    """Run all worlds, write the rows, print and write a table of means."""
    todo = list(jobs(quick))
    if quick or workers == 1:
        done = [run(job) for job in todo]
    else:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            done = list(pool.map(run, todo))
    table = pd.DataFrame([row for rows in done for row in rows])
    table.to_csv(output / "methods.csv", index=False, float_format="%.5g")
    text = describe(table)
    (output / "methods.md").write_text(text, encoding="utf-8")
    print(text, flush=True)


def describe(table: pd.DataFrame) -> str:
    """Write the means over seeds, both methods side by side, as Markdown."""
    keys = ["variables", "known", "shared", "place"]
    heads = ["variables", "values", "secondaries", "hidden values", "method"]
    heads += ["CRPS", "log score", "coverage of 90 % (%)", "fit, CPU s"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for (variables, known, shared, place), part in table.groupby(keys, sort=True):
        sites = int(part["sites"].iloc[0])
        wide = part.pivot(index="seed", columns="method")
        for method in METHODS:
            own = wide.xs(method, axis=1, level=1)
            cells = [
                f"{variables}",
                f"{sites * (known + variables - 1):,.0f}",
                "tied" if shared else "not tied",
                "at their sites" if place == "beside" else "away from all sites",
                method,
                f"{own['crps'].mean():.4f}",
                f"{own['log_score'].mean():.3f}",
                f"{own['coverage'].mean():.1f}",
                f"{own['fit'].mean():.0f}",
            ]
            lines.append(f"| {' | '.join(cells)} |")
        gap = wide["crps"]["transductive"] / wide["crps"]["full"] - 1.0
        error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.nan
        lines[-1] = lines[-1][:-2] + f" (CRPS {100 * gap.mean():+.1f} ± {100 * error:.1f} %) |"
    return "\n".join(lines) + "\n"


def count_neighbours(quick: bool, output: Path, workers: int) -> None:
    """Fit one sample exactly and by more and more neighbours, and print how far they are apart."""
    world = worlds.scattered(0, 200 if quick else 1200, 3)
    names = list(world.data.data_vars)
    options = {**GIVEN, "method": "full", "structures": 1}
    tests = away(world, np.random.default_rng(0))[["x", "y"]]
    exact = xcopula.fit(world.data, names[0], names[1:], **{**options, "solver": "exact"})
    best = exact.objective(exact.theta)[0]
    truth = exact.posterior(tests).latent
    print(f"| neighbours | log-likelihood lost | predicted from | off by, sd |\n|{'---|' * 4}")
    for most, near in ((5, 15), (10, 30), (20, 60), (30, 100), (60, 200)):
        solver = Neighbours(neighbours=most, predict=near)
        model = xcopula.fit(world.data, names[0], names[1:], **{**options, "solver": solver})
        lost = exact.objective(model.theta)[0] - best
        # The same parameters, so that the prediction alone is compared.
        same = replace(model, theta=exact.theta, prepared=exact.theta)
        latent = same.posterior(tests).latent
        off = np.sqrt((((latent["mean"] - truth["mean"]) / truth["std"]) ** 2).mean())
        print(f"| {most} | {lost:.2f} | {near} | {float(off):.3f} |", flush=True)


STAGES = {"methods": compare_methods, "neighbours": count_neighbours}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small samples")
    parser.add_argument("--output", type=Path, help="folder for the tables; default docs/large")
    parser.add_argument("--workers", type=int, default=2, help="processes side by side")
    parser.add_argument("stage", nargs="*", help=f"of {', '.join(STAGES)}; all by default")
    asked = parser.parse_args()
    output = asked.output or Path("build/large" if asked.quick else "docs/large")
    output.mkdir(parents=True, exist_ok=True)
    for name in asked.stage or STAGES:
        print(f"\n== {name}")
        STAGES[name](asked.quick, output, asked.workers)


if __name__ == "__main__":
    main()
