"""Compare rules of choice among candidates: picks, and weights with which they share predictions.

Run as ``python benchmarks/bench_choices.py`` (``--quick`` for a world or two; the names of stages
choose among them).

``rules`` simulates worlds of one variable in the plane, of many kinds. Candidates are fitted as the
library does: laws that are close, all kernels with the best law, and each of them with two
structures. Each rule gives them weights by what the data say; the mixture predicts 200 values that
it has not seen. Weights below 5 % are dropped, as the library does.

``fits`` are whole fits of two variables by `xcopula.fit`, with the coupling and the number of
structures given or left open.

Every row is kept in ``--rows`` as it comes, and a run that was cut off goes on where it ended.
``--rows`` and ``--out`` are folders; the tables of the documentation are in ``docs/choices``.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pandas as pd
from bench_calibration import draw
from rules_of_choice import BEFORE, CHOSEN, KINDS, RULES, tried, world

import xcopula
from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import LogNormal, Normal
from xcopula.prediction.predictor import mixed
from xcopula.process import Predictive, Process

FloatArray = np.ndarray
Row = dict[str, object]

SIZES = (50, 100, 200)
# A value beyond the end of a law has no density: it counts as one that is very small.
LEAST_LOG_DENSITY = -20.0


def judged(predicted: Predictive, hidden: FloatArray) -> Row:
    """Return mean scores of a prediction, and its coverage by the probabilities of values."""
    log_density = np.maximum(predicted.log_density(hidden), LEAST_LOG_DENSITY)
    inside = np.abs(predicted.cdf(hidden) - 0.5) <= 0.45
    return {
        "crps": predicted.crps(hidden).mean(),
        "log_score": log_density.mean(),
        "coverage": inside.mean(),
        "components": len(predicted.laws),
    }


def rows_of_rules(about: tuple[str, int, int]) -> list[Row]:
    """Return how each rule did in one world."""
    began = time.process_time()
    warnings.simplefilter("ignore")
    found = tried(world(*about))
    key = dict(zip(("kind", "sites", "seed"), about, strict=True))
    rows = [
        {**key, "rule": name, **judged(found.mixture(rule(found)), found.hidden)}
        for name, rule in RULES.items()
    ]
    return [{**row, "seconds": time.process_time() - began} for row in rows]


# Coupling of the truth, lengths of the primary and the secondary, and the range of the parameter of
# their correlation, which is its hyperbolic tangent.
TRUTHS = {
    "convolution, unequal ranges": ("convolution", (0.12, 0.35), (1.0, 1.6)),
    "ICM": ("icm", (0.2,), (1.0, 1.6)),
    "independent": ("convolution", (0.2, 0.2), (0.0, 0.0)),
    "ICM, correlation 0.98": ("icm", (0.2,), (2.2, 2.6)),
}
GIVEN, STRUCTURES, OPEN = "both given", "structures open", "both open"
OPTIONS = {
    GIVEN: {"coupling": "convolution", "structures": 1},
    STRUCTURES: {"coupling": "convolution", "structures": "auto"},
    OPEN: {"coupling": "auto", "structures": "auto"},
}


def rows_of_fits(kind: str, seed: int, sites: int, **options: object) -> Iterator[Row]:
    """Yield how each of the options did in one world of two variables."""
    rng = np.random.default_rng([seed, list(TRUTHS).index(kind)])
    coupling, lengths, (low, high) = TRUTHS[kind]
    covariance = Covariance((KERNELS["matern32"],) * 2, (InputGroup(2),), coupling=coupling)
    theta = np.zeros(covariance.size)
    covariance.part(theta, "length")[:] = np.log(lengths) + rng.uniform(-0.2, 0.2)
    covariance.part(theta, "logit")[:] = np.log(0.9 / 0.1)
    covariance.part(theta, "correlation")[:] = rng.uniform(low, high)
    law = LogNormal(0.3, 0.7) if seed % 2 else Normal(10.0, 2.0)
    process = Process(covariance, (law, law))
    data, truth, _ = draw(rng, process, process.join(theta), sites)
    for name, own in OPTIONS.items():
        began = time.process_time()
        model = xcopula.fit(data, "primary", "secondary1", **own, **options)
        spent = time.process_time() - began
        targets = model.observations.targets([truth["x"].values, truth["y"].values])
        moments = [c.conditioned.moments(targets) for c in model.components]
        about = {"kind": kind, "law": law.name, "seed": seed, "rule": name}
        predicted = mixed(model.components, 0, moments)
        others = [t for t in model.trials if "icm" in t.name or "lmc" in t.name]
        yield {
            **about,
            **judged(predicted, truth["primary"].values),
            "other_coupling": sum(t.weight for t in others),
            "seconds": spent,
        }


def paired(rows: pd.DataFrame, worlds: list[str], base: str) -> pd.DataFrame:
    """Return what each rule gains on another in each world: CRPS in per cent, and log score."""
    known = rows[rows["rule"] == base].set_index(worlds)[["crps", "log_score"]]
    both = rows.merge(known, left_on=worlds, right_index=True, suffixes=("", "_base"))
    return both.assign(
        change=100.0 * (both["crps"] / both["crps_base"] - 1.0),
        gain=both["log_score"] - both["log_score_base"],
    )


def means(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return means over worlds with the standard errors of differences, in the order of rows."""
    found = rows.groupby(by, sort=False).agg(
        worlds=("change", "size"),
        change=("change", "mean"),
        change_error=("change", "sem"),
        gain=("gain", "mean"),
        gain_error=("gain", "sem"),
        coverage=("coverage", lambda c: 100.0 * c.mean()),
        components=("components", "mean"),
    )
    return found.reset_index()


def to_text(table: pd.DataFrame, by: dict[str, str]) -> str:
    """Return a table as Markdown, with columns that tell rows apart and their heads."""
    heads = [*by.values(), "worlds", "CRPS", "log score", "coverage", "components"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in table.to_dict("records"):
        cells = [
            *(str(row[name]) for name in by),
            str(row["worlds"]),
            f"{row['change']:+.2f} ± {row['change_error']:.2f} %",
            f"{row['gain']:+.3f} ± {row['gain_error']:.3f}",
            f"{row['coverage']:.1f} %",
            f"{row['components']:.1f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def rules_tables(rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return the numbers and the text: all rules, and the chosen one by kind of world and size."""
    both = paired(rows, ["kind", "sites", "seed"], BEFORE).assign(all="all")
    found = {by: means(both, [by, "rule"]) for by in ("all", "kind", "sites")}
    texts = [to_text(found["all"], {"rule": "rule"})]
    for by, name in (("kind", "kind of world"), ("sites", "number of sites")):
        own = to_text(found[by][found[by]["rule"] == CHOSEN], {by: by})
        texts.append(f"{CHOSEN[0].upper()}{CHOSEN[1:]}, by {name}:\n\n{own}")
    numbers = pd.concat([t.rename(columns={by: "of"}) for by, t in found.items()])
    return numbers, "\n".join(texts)


def fits_tables(rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return the numbers and the text: what options gain, and what the open coupling adds."""
    found = []
    for base in (GIVEN, STRUCTURES):
        both = paired(rows, ["kind", "law", "seed"], base)
        for change in ({}, {"law": "both"}, {"law": "both", "kind": "all"}):
            found.append(means(both.assign(**change), ["kind", "law", "rule"]).assign(base=base))
    numbers = pd.concat(found)
    compared = [(STRUCTURES, GIVEN), (OPEN, GIVEN), (OPEN, STRUCTURES)]
    of_both = numbers[numbers["law"] == "both"]
    own = [
        of_both[(of_both["rule"] == rule) & (of_both["base"] == base)] for rule, base in compared
    ]
    heads = {"kind": "truth", "rule": "options", "base": "against"}
    weights = rows[rows["rule"] == OPEN].groupby("kind", sort=False)["other_coupling"].mean()
    seconds = rows.groupby("rule", sort=False)["seconds"].mean()
    notes = [
        "Mean weight of ICM or LMC by truth. "
        + "; ".join(f"{k}: {w:.2f}" for k, w in weights.items()),
        "CPU seconds of a fit by options. "
        + "; ".join(f"{k}: {t:.1f}" for k, t in seconds.items()),
    ]
    return numbers, "\n".join([to_text(pd.concat(own), heads), *(f"{n}.\n" for n in notes)])


def gather(
    path: Path | None, todo: Sequence[tuple], key: list[str], run: Callable, workers: int
) -> pd.DataFrame:
    """Run worlds that are not in the file yet, and add their rows as they come."""
    rows = [pd.read_csv(path)] if path is not None and path.exists() else []
    done = set(rows[0][key].itertuples(index=False, name=None)) if rows else set()
    missing = [about for about in todo if about not in done]
    with ExitStack() as pools:
        each: Callable = map
        if workers > 1:
            each = pools.enter_context(ProcessPoolExecutor(workers)).map
        for new in each(run, missing):
            rows.append(pd.DataFrame(new))
            if path is not None:
                rows[-1].to_csv(path, mode="a", header=not path.exists(), index=False)
    return pd.concat(rows, ignore_index=True)


def quick_fit(about: tuple[str, int]) -> list[Row]:
    """Fit a small world with given laws and kernels."""
    given = {"marginals": "normal", "kernels": "matern32", "restarts": 0, "anisotropy": False}
    return list(rows_of_fits(*about, sites=25, **given))


def whole_fit(about: tuple[str, int]) -> list[Row]:
    """Fit a world with the defaults."""
    warnings.simplefilter("ignore")
    return list(rows_of_fits(*about, sites=80))


def rules(quick: bool, seeds: list[int], path: Path | None, workers: int) -> tuple:
    """Compare rules on worlds of one variable."""
    kinds, sizes = (KINDS[:1], SIZES[:1]) if quick else (KINDS, SIZES)
    worlds = itertools.product(seeds, sizes, kinds)
    todo = [(kind, size, seed) for seed, size, kind in worlds]
    return rules_tables(gather(path, todo, ["kind", "sites", "seed"], rows_of_rules, workers))


def fits(quick: bool, seeds: list[int], path: Path | None, workers: int) -> tuple:
    """Compare options of whole fits."""
    kinds, run = (list(TRUTHS)[:1], quick_fit) if quick else (TRUTHS, whole_fit)
    worlds = itertools.product(seeds, kinds)
    todo = [(kind, seed) for seed, kind in worlds]
    return fits_tables(gather(path, todo, ["kind", "seed"], run, workers))


# What is run, and how many worlds of each kind: quickly, and as documented.
STAGES = {"rules": (rules, 2, 12), "fits": (fits, 1, 20)}


def main() -> None:
    """Run stages, print and write their tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, help="worlds of each kind; 12 of rules, 20 of fits")
    parser.add_argument("--first", type=int, default=0, help="the first of these seeds")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--rows", type=Path, help="a folder for a row of each world, to go on with")
    parser.add_argument("--out", type=Path, help="a folder for the tables")
    parser.add_argument("stage", nargs="*", help=f"of {', '.join(STAGES)}; all by default")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    for folder in filter(None, (asked.rows, asked.out)):
        folder.mkdir(parents=True, exist_ok=True)
    for name in asked.stage or STAGES:
        run, few, many = STAGES[name]
        seeds = np.arange(asked.seeds or (few if asked.quick else many)) + asked.first
        path = asked.rows and asked.rows / f"{name}.csv"
        numbers, text = run(asked.quick, seeds.tolist(), path, asked.workers)
        print(text)
        if asked.out is not None:
            (asked.out / f"{name}.md").write_text(text)
            numbers.round(4).to_csv(asked.out / f"{name}.csv", index=False)


if __name__ == "__main__":
    main()
