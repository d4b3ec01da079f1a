"""Compare single, full and transductive models on random re-splits of the Jura samples.

Run as ``python examples/transduction/resplits.py``. Each split trains the primary metal on 259 of
the 359 sites and predicts it at the other 100; secondaries are known at all 359. Rows already in
the table are kept, so a run that was stopped goes on where it was; ``--redo transductive`` drops
the rows of that fit first.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import xarray as xr

import xcopula
from xcopula import CopulaModel
from xcopula.process import Moments, scores

SECONDARIES = {"Cd": ["Ni", "Zn"], "Cu": ["Pb", "Ni", "Zn"]}
RULES = ("report", "calibrated")
FITS = {
    "single": ("single",),
    "full": ("full",),
    "transductive": tuple(f"transductive {rule}" for rule in RULES),
}
SYSTEMS = tuple(system for systems in FITS.values() for system in systems)
REFERENCE = "full"
SCORES = {"mae": "MAE (mg/kg)", "crps": "CRPS (mg/kg)", "coverage": "coverage of 90 % (%)"}
DIGITS = {"Cd": 4, "Cu": 3}  # of the two scores in mg/kg
PUBLISHED = "published"
HEADING = (
    "# Re-splits of the Jura samples",
    "",
    "Made by `python examples/transduction/resplits.py`, with its default options. The primary is",
    "known at 259 of 359 sites drawn at random, the secondaries at all, and the other 100 are",
    "predicted by fits without options. A standard error is the standard deviation over re-splits",
    "divided by the root of their number; re-splits share sites, so it is rather too small.",
    "Every transductive row has the same fitted parameters and so the same time.",
)
QUICK_OPTIONS: dict[str, object] = {
    "kernels": "matern32",
    "marginals": "lognormal",
}


@dataclass(frozen=True)
class Job:
    """One metal, one division of the sites, one of the fits, and options to pass on to it."""

    metal: str
    seed: str
    fit: str
    sites: int | None = None  # use the first sites only
    options: tuple[tuple[str, object], ...] = ()


def draw_training(samples: xr.Dataset, seed: str) -> np.ndarray:
    """Return where the primary is known: 259 of the 359 sites, or that share of fewer."""
    if seed == PUBLISHED:
        return samples["split"].values == "prediction"
    size = samples.sizes["site"]
    count = round(size * 259 / 359)
    known = np.zeros(size, bool)
    known[np.random.default_rng(int(seed)).permutation(size)[:count]] = True
    return known


def score(model: CopulaModel, tests: xr.Dataset) -> dict[str, float]:
    """Return the scores of a model at sites where the truth is known."""
    posterior = model.posterior(tests)
    truth = tests[model.tasks[0]].values
    latent = posterior.latent
    lower, upper = posterior.interval(0.9).values
    moments = Moments(latent["mean"].values, latent["std"].values ** 2)
    return {
        "mae": float(np.abs(posterior.median().values - truth).mean()),
        "crps": float(scores(moments, model.marginals[0], truth).crps.mean()),
        "coverage": float(100.0 * ((lower <= truth) & (truth <= upper)).mean()),
    }


def timed_fit(
    data: xr.Dataset, metal: str, secondaries: Sequence[str], **options: object
) -> tuple[CopulaModel, dict[str, float]]:
    """Fit a model; return it with the time on the clock and on the processors."""
    wall, cpu = time.perf_counter(), time.process_time()
    model = xcopula.fit(data, metal, secondaries, **options)
    return model, {
        "fit_seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - cpu,
    }


def run(job: Job) -> list[dict[str, object]]:
    """Fit a model of a split and score its systems; one fit serves all rules of combination."""
    samples = xcopula.datasets.jura()
    if job.sites is not None:
        samples = samples.isel(site=slice(job.sites))
    metal, known = job.metal, draw_training(samples, job.seed)
    data = samples.assign({metal: samples[metal].where(known)})
    options = dict(job.options)
    if job.fit != "single":
        options["method"] = job.fit
    others = () if job.fit == "single" else SECONDARIES[metal]
    model, seconds = timed_fit(data, metal, others, **options)
    rows = []
    for system, variant in _variants(model, job.fit):
        row = {"metal": metal, "seed": job.seed, "system": system}
        row |= score(variant, samples.isel(site=~known)) | seconds
        row |= {"converged": model.converged}
        rows.append(row)
    return rows


def _variants(model: CopulaModel, fit: str) -> list[tuple[str, CopulaModel]]:
    if fit != "transductive":
        return [(fit, model)]
    methods = [replace(model.method, weights=rule) for rule in RULES]
    models = [replace(model, method=method) for method in methods]
    return list(zip(FITS[fit], models, strict=True))


def warm_up() -> None:
    """Compile, so that the first fit of a process is not charged for it."""
    for fit in FITS:
        run(Job("Cd", "0", fit, 40, tuple(QUICK_OPTIONS.items())))


def read_rows(path: Path) -> pd.DataFrame:
    """Read what an earlier run left."""
    if not path.exists():
        return pd.DataFrame(columns=["metal", "seed", "system"])
    return pd.read_csv(path, dtype={"seed": str})


def run_all(jobs: Iterable[Job], path: Path, workers: int, redo: Sequence[str] = ()) -> None:
    """Run what is not in the table yet, and append it fit by fit."""
    table = read_rows(path)
    table = table[~table["system"].isin([s for fit in redo for s in FITS[fit]])]
    done = set(zip(table["metal"], table["seed"], table["system"], strict=True))
    missing = [j for j in jobs if any((j.metal, j.seed, s) not in done for s in FITS[j.fit])]
    print(f"{len(done)} rows are in {path.name}, {len(missing)} fits to run", flush=True)
    for count, rows in enumerate(_results(missing, workers), start=1):
        new = pd.DataFrame(rows)
        table = new if table.empty else pd.concat([table, new], ignore_index=True)
        _write(table, path)
        row = rows[0]
        what = f"{row['metal']} {row['seed']} {row['system']}, {row['fit_seconds']:.1f} s"
        print(f"[{count}/{len(missing)}] {what}", flush=True)


def _results(jobs: list[Job], workers: int) -> Iterable[list[dict[str, object]]]:
    if workers == 1:
        warm_up()
        yield from map(run, jobs)
        return
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=warm_up) as pool:
        for future in as_completed([pool.submit(run, job) for job in jobs]):
            yield future.result()


def _write(table: pd.DataFrame, path: Path) -> None:
    order = {name: k for k, name in enumerate(SYSTEMS)}
    rank = table["seed"].map(lambda s: -1 if s == PUBLISHED else int(s))
    table = table.assign(_seed=rank, _system=table["system"].map(order))
    table = table.sort_values(["metal", "_seed", "_system"]).drop(columns=["_seed", "_system"])
    table.to_csv(path, index=False, float_format="%.5g")


def mean_and_error(values: pd.Series, digits: int, sign: str = "") -> str:
    """Return a mean over splits with its standard error."""
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():{sign}.{digits}f} ± {error:.{digits}f}"


def describe(table: pd.DataFrame) -> str:
    """Write the tables of one metal and the other as Markdown."""
    lines = [*HEADING, ""]
    for metal, own in table[table["seed"] != PUBLISHED].groupby("metal"):
        name = str(metal)
        lines += [f"## {name} with {', '.join(SECONDARIES[name])}", "", *_means(own, name), ""]
        lines += [*_differences(own, name, REFERENCE), ""]
    lines += _published(table[table["seed"] == PUBLISHED])
    return "\n".join(lines).rstrip() + "\n"


def _means(own: pd.DataFrame, metal: str) -> list[str]:
    rows = []
    for system in SYSTEMS:
        part = own[own["system"] == system]
        scores = [mean_and_error(part[s], _digits(s, metal)) for s in SCORES]
        rows.append([system, *scores, f"{part['cpu_seconds'].mean():.1f}"])
    title = f"Means over {own['seed'].nunique()} re-splits, with standard errors:"
    heads = ["system", *SCORES.values(), "fit, CPU s"]
    return [title, "", *_markdown(heads, rows)]


def _differences(own: pd.DataFrame, metal: str, reference: str) -> list[str]:
    wide = own.pivot(index="seed", columns="system", values=list(SCORES))
    rows = []
    for system in SYSTEMS:
        if system != reference:
            gaps = {s: wide[s][system] - wide[s][reference] for s in SCORES}
            cells = [mean_and_error(gap, _digits(s, metal), "+") for s, gap in gaps.items()]
            rows.append([system, *cells])
    title = f"Paired differences from *{reference}* over the same re-splits:"
    return [title, "", *_markdown(["system", *SCORES.values()], rows)]


def _published(own: pd.DataFrame) -> list[str]:
    if own.empty:
        return []
    heads = ["metal", "system", *SCORES.values(), "fit, CPU s"]
    rows = []
    for r in own.itertuples():
        digits = DIGITS[str(r.metal)]
        scores = [f"{r.mae:.{digits}f}", f"{r.crps:.{digits}f}", f"{r.coverage:.0f}"]
        rows.append([r.metal, r.system, *scores, f"{r.cpu_seconds:.1f}"])
    return ["## The published split", "", *_markdown(heads, rows)]


def _digits(score: str, metal: str) -> int:
    return 1 if score == "coverage" else DIGITS[metal]


def _markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("docs/transduction"))
    parser.add_argument("--splits", type=int, default=20, help="number of random re-splits")
    parser.add_argument("--workers", type=int, default=2, help="processes that run side by side")
    parser.add_argument("--redo", action="append", default=[], choices=list(FITS))
    parser.add_argument("--quick", action="store_true", help="two splits of few sites, fixed law")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    seeds = [PUBLISHED, *map(str, range(options.splits))]
    sites, fixed, workers = None, (), options.workers
    if options.quick:
        seeds, sites, fixed, workers = ["0", "1"], 70, tuple(QUICK_OPTIONS.items()), 1
    cases = itertools.product(seeds, SECONDARIES, FITS)
    jobs = [Job(metal, seed, fit, sites, fixed) for seed, metal, fit in cases]
    path = options.output / "resplits.csv"
    run_all(jobs, path, workers, options.redo)
    text = describe(read_rows(path))
    (options.output / "resplits.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
