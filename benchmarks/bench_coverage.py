"""Measure what counting the parameters' uncertainty does: coverage and CRPS, paired world by world.

Run as ``python benchmarks/bench_coverage.py`` (``--quick`` for two worlds of one size). A world is
a draw of a multi-task process in the plane (``bench_calibration.py``). One fit of it is asked with
``uncertainty`` "plugin", "t" and "laplace" for the law of 200 held-out values; "true" has the
parameters that made the world. Laws and kernel are given, or all is chosen.

Every row is written to ``--rows`` as it comes; a run that was cut off goes on where it ended. The
table is that of ``docs/uncertainty/coverage.md``; ``--out`` writes it, with its numbers as CSV.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
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
            gain = numbers[:, 2] - base[:, 2]
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
    warnings.simplefilter("ignore")
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
    given = parser.parse_args()
    main(QUICK if given.quick else PLAN, given.rows, given.out)
