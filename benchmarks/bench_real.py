"""Judge the defaults by real data sets: each axis of the options, and other libraries.

Run as ``python benchmarks/bench_real.py`` (``--quick`` for three tiny tasks). Rows are added to
``--out`` as they come, and a run that was cut off goes on where it ended; rows of another version
of the package stay in the file, and are made again for this one. ``--fresh`` starts over.

``--small`` runs the small tasks (groups small, published, zeros, limesoda and worlds), ``--large``
panels and a grid; without either the small ones. ``--only`` takes groups or sets, ``--settings``
takes settings, ``--peers`` adds other libraries on the same splits, ``--page`` writes
``docs/real.md`` with its picture. ``--report`` runs nothing.

A third of the sites is hidden (`real_data.py`). Scores are CRPS, log score, absolute error of the
median and coverage of the 90 % interval, means over hidden values. The log score of tasks with many
zeros is left out: a density and a probability cannot be compared. Seconds are CPU seconds of the
fit, on one thread, after a fit that compiles.
"""

from __future__ import annotations

import os

# Before numpy: one thread, so that CPU seconds can be compared.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

import argparse
import csv
import hashlib
import json
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import peers
import real_report
import xarray as xr
from real_data import GROUPS, LARGE, Absent, Cut, Task, cut
from real_data import quick_tasks as tiny_tasks

import xcopula
from xcopula.methods import Transductive
from xcopula.process import Predictive

FloatArray = np.ndarray
ROOT = Path(__file__).parents[1]
COLUMNS = (
    *("version", "group", "set", "task", "split", "setting", "n"),
    *("crps", "log_score", "mae", "coverage", "cpu_seconds", "message"),
)
KEY = ("version", "set", "task", "split", "setting")
# A value beyond the end of a law has no density: it counts as one that is very small.
LEAST_LOG_DENSITY = -20.0
DEFAULT = "default"


# --- settings -----------------------------------------------------------------------------------


def always(work: Cut) -> bool:
    """Hold for all tasks."""
    return True


def with_secondaries(work: Cut) -> bool:
    """Hold for tasks with secondaries."""
    return bool(work.task.secondaries)


def above_zero(work: Cut) -> bool:
    """Hold where all values are above zero."""
    return work.positive


def with_time(work: Cut) -> bool:
    """Hold for panels, whose default has two structures."""
    return work.panel


def with_zeros(work: Cut) -> bool:
    """Hold where many values are zero."""
    return work.task.zeros


def without_zeros(work: Cut) -> bool:
    """Hold where few values are zero."""
    return not work.task.zeros


@dataclass(frozen=True)
class Setting:
    """Options of `xcopula.fit`, the axis they are on, and the tasks for which they make sense."""

    axis: str
    options: dict[str, Any]
    applies: Callable[[Cut], bool] = always


def setting(axis: str, applies: Callable[[Cut], bool] = always, **options: Any) -> Setting:
    """Return a setting of these options."""
    return Setting(axis, options, applies)


SETTINGS: dict[str, Setting] = {
    DEFAULT: setting(""),
    "normal": setting("marginal", marginals="normal"),
    "lognormal": setting("marginal", above_zero, marginals="lognormal"),
    "parzen": setting("marginal", without_zeros, marginals="parzen"),
    "select marginal": setting("marginal", without_zeros, marginals="select"),
    "no truncation": setting("marginal", above_zero, support=(None, None)),
    "zeros as numbers": setting("marginal", with_zeros, support=(None, None)),
    "matern32": setting("kernel", kernels="matern32"),
    "matern52": setting("kernel", kernels="matern52"),
    "select both": setting("kernel", without_zeros, kernels="select", marginals="select"),
    "two structures": setting("structures", structures=2),
    "two matern12": setting("structures", structures=2, kernels="matern12"),
    "one structure": setting("structures", with_time, structures=1),
    "isotropic": setting("directions", anisotropy=False),
    "plugin": setting("uncertainty", uncertainty="plugin"),
    "full": setting("method", with_secondaries, method="full"),
    "icm": setting("method", with_secondaries, coupling="icm", structures=1),
    "report's weights": setting("method", with_secondaries, method=Transductive(weights="report")),
    "restarts": setting("search", restarts=2),
}
# Of large tasks: what could matter there, since each of them is long.
FEW = (DEFAULT, "normal", "matern32", "one structure", "two matern12", "isotropic")
QUICK = (DEFAULT, "plugin")


# --- versions -----------------------------------------------------------------------------------


def git(*arguments: str) -> str:
    """Return what git prints in the repository, or nothing."""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


@cache
def version() -> str:
    """Return the version of the package: its number, last commit, and a hash of later changes."""
    commit = git("log", "-1", "--format=%h", "--", "xcopula")
    changes = git("diff", "HEAD", "--", "xcopula")
    mark = "+" + hashlib.sha256(changes.encode()).hexdigest()[:6] if changes else ""
    return f"xcopula {xcopula.__version__}" + (f" {commit}{mark}" if commit else "")


# --- scores -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scores:
    """Scores of hidden values, (m,) each; the log score may be missing."""

    crps: FloatArray
    log_score: FloatArray | None
    error: FloatArray
    inside: FloatArray

    def row(self) -> dict[str, Any]:
        """Return means."""
        log_score = self.log_score
        return {
            "crps": self.crps.mean(),
            "log_score": np.nan if log_score is None else log_score.mean(),
            "mae": self.error.mean(),
            "coverage": self.inside.mean(),
        }


def within(truth: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Mark values in an interval; its ends may be atoms, which rounding must not exclude."""
    slack = 1e-9 * (1.0 + np.abs(truth))
    return (lower - slack <= truth) & (truth <= upper + slack)


def log_scores(density: FloatArray | None, task: Task) -> FloatArray | None:
    """Return log scores with a floor, but for tasks with zeros."""
    if density is None or task.zeros:
        return None
    return np.maximum(np.nan_to_num(density, nan=LEAST_LOG_DENSITY), LEAST_LOG_DENSITY)


def scores_of_posterior(posterior: Any, work: Cut) -> Scores:
    """Score a posterior of the package."""
    truth = work.truth.values
    lower, median, upper = posterior.quantile([0.05, 0.5, 0.95]).values
    density = posterior._apply(Predictive.log_density, field=work.truth).values
    return Scores(
        posterior.crps(work.truth).values,
        log_scores(density, work.task),
        np.abs(median - truth),
        within(truth, lower, upper),
    )


def scores_of_quantiles(prediction: peers.Prediction, work: Cut) -> Scores:
    """Score the quantiles of a peer."""
    truth = work.truth.values
    lower, median, upper = (peers.quantile_of(prediction, q) for q in (0.05, 0.5, 0.95))
    return Scores(
        peers.crps_of_quantiles(prediction.quantiles, truth),
        log_scores(prediction.log_density, work.task),
        np.abs(median - truth),
        within(truth, lower, upper),
    )


# --- runs ---------------------------------------------------------------------------------------


@cache
def compile_for(name: str, variables: int, panel: bool) -> None:
    """Fit a few values, so that loops are compiled before time is taken."""
    rng = np.random.default_rng(0)
    dims = ("station", "time") if panel else ("station",)
    shape = (12, 4) if panel else (40,)
    coords: dict[str, Any] = {c: ("station", rng.random(shape[0]), {"units": "km"}) for c in "xy"}
    if panel:
        coords["time"] = np.arange(4) * np.timedelta64(1, "D") + np.datetime64("2020-01-01", "ns")
    data = xr.Dataset(
        {f"v{k}": (dims, np.exp(rng.normal(size=shape))) for k in range(variables)}, coords
    )
    options = SETTINGS[name].options
    for solver in ("exact", "neighbours") if panel else ("exact",):
        secondaries = [f"v{k}" for k in range(1, variables)]
        try:
            xcopula.fit(data, "v0", secondaries, solver=solver, **{"restarts": 0, **options})
        except Exception:
            return  # what goes wrong is said by the fit that counts


def run_setting(name: str, work: Cut) -> tuple[Scores, float]:
    """Fit with a setting and score it; return the CPU seconds of the fit too."""
    task = work.task
    compile_for(name, min(1 + len(task.secondaries), 3), work.panel)
    options = SETTINGS[name].options
    began = time.process_time()
    model = xcopula.fit(work.train, task.primary, list(task.secondaries), **work.options, **options)
    seconds = time.process_time() - began
    return scores_of_posterior(model.posterior(work.targets), work), seconds


def run_peer(name: str, work: Cut) -> tuple[Scores, float]:
    """Fit a peer and score it; return the CPU seconds of the fit too."""
    peers.warm(name)
    began = time.process_time()
    predict = peers.PEERS[name][0](work)
    seconds = time.process_time() - began
    return scores_of_quantiles(predict(), work), seconds


def attempt(name: str, work: Cut) -> tuple[dict[str, Any], Scores | None]:
    """Return scores of a setting or a peer, or the message of what went wrong."""
    run = run_peer if name in peers.PEERS else run_setting
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            scores, seconds = run(name, work)
    except peers.Missing as error:
        return {"message": str(error)}, None
    except Exception as error:
        return {"message": f"{type(error).__name__}: {' '.join(str(error).split())}"}, None
    if not np.isfinite(scores.crps).all():
        missing = int((~np.isfinite(scores.crps)).sum())
        return {"message": f"{missing} of {scores.crps.size} hidden values have no CRPS"}, None
    return {**scores.row(), "cpu_seconds": seconds, "message": ""}, scores


def applies(name: str, work: Cut) -> bool:
    """Return whether a setting or a peer makes sense for a task."""
    if name in peers.PEERS:
        return (
            work.panel
            if name in peers.PANELS_ONLY
            else not (work.panel and name in peers.PLANES_ONLY)
        )
    return SETTINGS[name].applies(work)


def stamp(name: str) -> str:
    """Return the version that a row is of: of the package, or of a peer's."""
    return peers.stamp(name) if name in peers.PEERS else version()


# --- files --------------------------------------------------------------------------------------


def read_rows(path: Path) -> pd.DataFrame:
    """Read rows, or none."""
    if not path.exists():
        return pd.DataFrame(columns=list(COLUMNS))
    return pd.read_csv(path, dtype={"message": str}, keep_default_na=True).fillna({"message": ""})


def values_path(path: Path) -> Path:
    """Return where the CRPS of single values is kept."""
    return path.with_suffix(".values.jsonl")


def add_row(path: Path, row: dict[str, Any]) -> None:
    """Add a row to a CSV file."""
    begins = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if begins:
            writer.writeheader()
        writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})


def add_values(path: Path, row: dict[str, Any], crps: FloatArray) -> None:
    """Keep the CRPS of single values, for errors of differences within a task."""
    line = {name: row[name] for name in KEY} | {"crps": [float(f"{c:.5g}") for c in crps]}
    with values_path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def about(task: Task) -> dict[str, Any]:
    """Return what rows of a task have in common."""
    return {"group": task.group, "set": task.set, "task": task.name, "split": task.split}


def run_all(
    tasks: Sequence[Task],
    names: Sequence[str],
    folder: Path,
    path: Path,
    tell: Callable[[str], None],
    few: bool = False,
) -> dict[str, str]:
    """Run what is not in the file yet; return the sets that are absent, with reasons.

    With ``few`` large tasks have few settings.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    done = set(read_rows(path)[list(KEY)].astype(str).itertuples(index=False, name=None))
    absent: dict[str, str] = {}
    for number, task in enumerate(tasks, 1):
        keys = {n: (stamp(n), task.set, task.name, str(task.split), n) for n in names}
        skipped = set(SETTINGS) - set(FEW) if few and task.group == LARGE else set()
        todo = [n for n in names if keys[n] not in done and n not in skipped]
        if not todo or task.set in absent:
            continue
        try:
            work = cut(folder, task)
        except Absent as error:
            absent[task.set] = str(error)
            tell(f"skipped {task.set}: {error}")
            continue
        for name in filter(lambda n: applies(n, work), todo):
            outcome, scores = attempt(name, work)
            row = {"version": stamp(name), **about(task), "setting": name, "n": len(work.known)}
            add_row(path, {**row, **outcome})
            if scores is not None and (name == DEFAULT or name in peers.PEERS):
                add_values(path, {**row, "split": task.split}, scores.crps)
            said = outcome["message"] or f"{outcome['crps']:.4g}, {outcome['cpu_seconds']:.2f} s"
            tell(
                f"{number}/{len(tasks)} {task.set}: {task.name}, split {task.split}, {name}: {said}"
            )
    return absent


# --- command line -------------------------------------------------------------------------------


def tasks_of(options: argparse.Namespace) -> list[Task]:
    """Return the tasks that the options name."""
    if options.quick:
        return tiny_tasks()
    small = [group for group in GROUPS if group != LARGE]
    groups = small if options.small or not options.large else []
    groups += [LARGE] if options.large else []
    if options.only:
        groups = list(GROUPS)
    tasks = [task for group in groups for task in GROUPS[group]()]
    if options.only:
        tasks = [t for t in tasks if {t.group, t.set} & set(options.only)]
    if options.only and not tasks:
        known = sorted({t.set for group in GROUPS for t in GROUPS[group]()} | set(GROUPS))
        raise SystemExit(f"`--only` must name groups or sets, found {options.only}; of {known}.")
    return tasks[:: options.every]


def names_of(options: argparse.Namespace) -> list[str]:
    """Return the settings and peers that the options name; all settings without them."""
    if options.quick:
        return [*QUICK, "GPR of normal scores"]
    names = options.settings or list(SETTINGS)
    unknown = [n for n in names if n not in SETTINGS and n not in peers.PEERS]
    if unknown:
        raise SystemExit(f"`--settings` has no {unknown}; choose from {[*SETTINGS, *peers.PEERS]}.")
    return [*names, *(p for p in peers.PEERS if options.peers and p not in names)]


def comma(text: str) -> list[str]:
    """Return names between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three tiny tasks of shipped data")
    parser.add_argument("--small", action="store_true", help="small tasks; the default")
    parser.add_argument("--large", action="store_true", help="panels and a grid")
    parser.add_argument("--only", type=comma, help="groups or sets, between commas")
    parser.add_argument("--every", type=int, default=1, help="every n-th task only")
    parser.add_argument("--settings", type=comma, help="settings or peers, between commas")
    parser.add_argument("--peers", action="store_true", help="other libraries too")
    parser.add_argument("--data", type=Path, default=ROOT / "../shared/data", help="the folder")
    parser.add_argument("--out", type=Path, help="rows; default build/real.csv")
    parser.add_argument("--fresh", action="store_true", help="forget the rows of the file")
    parser.add_argument("--report", action="store_true", help="run nothing, write the tables")
    parser.add_argument(
        "--page", nargs="?", type=Path, const=ROOT / "docs/real.md", help="write the page"
    )
    options = parser.parse_args(arguments)
    name = "real-quick.csv" if options.quick else "real.csv"
    options.out = options.out or ROOT / "build" / name
    return options


def axes() -> Iterator[tuple[str, str]]:
    """Yield settings with their axes, in order."""
    for name, about_it in SETTINGS.items():
        yield name, about_it.axis


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the options name, print the tables and write the page."""
    options = parse(arguments)
    if options.fresh:
        for path in (options.out, values_path(options.out)):
            path.unlink(missing_ok=True)
    tasks, names, absent = tasks_of(options), names_of(options), {}
    if not options.report:
        absent = run_all(
            tasks,
            names,
            options.data,
            options.out,
            lambda line: print(line, flush=True),
            few=options.settings is None,
        )
    report = real_report.Report(
        rows=read_rows(options.out),
        values=real_report.read_values(values_path(options.out)),
        version=version(),
        axes=dict(axes()),
        peers={name: peers.stamp(name) for name in peers.PEERS},
        absent=absent,
    )
    print("\n" + real_report.text(report))
    if options.page is not None:
        real_report.write_page(report, options.page)
        print(f"wrote {options.page.name} and its picture")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
