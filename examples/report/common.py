"""What the scripts of this folder share: arguments, clocks, resumable tables, Markdown."""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

# Before numpy: times are of one thread of BLAS.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import xcopula
from xcopula import CopulaModel

SECONDARIES = {"Cd": ["Ni", "Zn"], "Cu": ["Pb", "Ni", "Zn"]}
# What the report says it used on the Jura data.
REPORT_KERNELS = {"Cd": "matern32", "Ni": "matern32", "Cu": "matern32", "Zn": "se", "Pb": "se"}
REPORT_LAWS = {"Cd": "gev", "Ni": "gev", "Cu": "gev", "Zn": "gamma", "Pb": "gamma"}

BLUE, RED, GREEN, FAINT = "#31688e", "#c1440e", "#3b7d3b", "#777777"
Row = dict[str, object]
Option = tuple[str, dict[str, object]]


def read_arguments(
    doc: str | None, arguments: Sequence[str] | None, *extra: Option
) -> argparse.Namespace:
    """Read the options that all scripts have, and some of their own; make the folder."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--output", type=Path, help="folder to write to; default docs/report")
    parser.add_argument("--quick", action="store_true", help="a small version, in build/report")
    for name, settings in extra:
        parser.add_argument(name, **settings)
    options = parser.parse_args(arguments)
    options.output = options.output or Path("build/report" if options.quick else "docs/report")
    options.output.mkdir(parents=True, exist_ok=True)
    return options


@dataclass
class Clock:
    """Seconds on the clock and of the processors, filled when the measurement ends."""

    wall: float = np.nan
    cpu: float = np.nan


@contextmanager
def timed() -> Iterator[Clock]:
    """Measure a block; processor time counts what all its threads did."""
    clock = Clock()
    wall, cpu = time.perf_counter(), time.process_time()
    yield clock
    clock.wall, clock.cpu = time.perf_counter() - wall, time.process_time() - cpu


def time_evaluation(model: CopulaModel, repeats: int) -> Clock:
    """Return the median time of the likelihood with its gradient, at the model's parameters."""
    model.objective(model.theta)  # makes what is made once of the data
    clocks = []
    for _ in range(repeats):
        with timed() as clock:
            model.objective(model.theta)
        clocks.append(clock)
    return Clock(
        float(np.median([c.wall for c in clocks])), float(np.median([c.cpu for c in clocks]))
    )


@contextmanager
def heard() -> Iterator[list[str]]:
    """Collect the first sentence of each warning instead of printing it."""
    found: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
    found += dict.fromkeys(str(w.message).split(". ")[0] for w in caught)


def score(model: CopulaModel, tests: object, truth: np.ndarray) -> dict[str, float]:
    """Return errors of the median and the coverage of the 90 % interval at test points."""
    posterior = model.posterior(tests)
    errors = np.abs(posterior.median().values - truth)
    lower, upper = posterior.interval(0.9).values
    return {
        "mae": errors.mean(),
        "sd": errors.std(ddof=1),
        "se": errors.std(ddof=1) / np.sqrt(errors.size),
        "rmse": np.sqrt(np.mean(errors**2)),
        "coverage": 100.0 * np.mean((lower <= truth) & (truth <= upper)),
    }


def describe_choice(model: CopulaModel) -> dict[str, str]:
    """Return kernels and laws by variable, and how a transductive model combines its parts."""
    kernels, laws = model.process.covariance.kernels, model.marginals
    rule = getattr(model.conditioned, "rule", None)
    return {
        "kernels": " ".join(k.name for k in kernels),
        "laws": " ".join(m.name.split()[0] for m in laws),  # without the support
        "rule": "" if rule is None or len(model.tasks) < 3 else rule.kind,
    }


def read_rows(path: Path, keys: Sequence[str]) -> pd.DataFrame:
    """Read the whole rows that an earlier run left; one that was cut off does not count."""
    if not path.exists():
        return pd.DataFrame(columns=list(keys))
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    table = pd.read_csv(StringIO(whole), keep_default_na=False, na_values=["nan"])
    return table.drop_duplicates(list(keys), keep="last")


def missing(table: pd.DataFrame, keys: Sequence[str], wanted: Sequence[Hashable]) -> list[Hashable]:
    """Return the wanted keys that are not in the table."""
    done = set(table[list(keys)].itertuples(index=False, name=None))
    return [key for key in wanted if key not in done]


def write_rows(table: pd.DataFrame, path: Path) -> None:
    """Replace a table of rows, at once: an interruption leaves the old one or the new one."""
    write_text(path, table.to_csv(index=False, float_format="%.6g", na_rep="nan"))


def write_text(path: Path, text: str) -> None:
    """Replace a file at once."""
    part = path.with_suffix(path.suffix + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def append(table: pd.DataFrame, rows: Sequence[Row], path: Path) -> pd.DataFrame:
    """Add rows to a table and to its file."""
    new = pd.DataFrame(rows)
    table = new if table.empty else pd.concat([table, new], ignore_index=True)
    write_rows(table, path)
    return table


def run_missing(
    path: Path,
    keys: Sequence[str],
    wanted: Sequence[tuple[object, ...]],
    run: Callable[[tuple[object, ...]], Row],
) -> pd.DataFrame:
    """Run what is not in the table yet, one row at a time, each written at once."""
    table = read_rows(path, keys)
    todo = missing(table, keys, wanted)
    print(f"{len(wanted) - len(todo)} rows are in {path.name}, {len(todo)} to run", flush=True)
    for count, key in enumerate(todo, start=1):
        with timed() as clock:
            row = run(key)
        table = append(table, [row], path)
        print(f"[{count}/{len(todo)}] {' '.join(map(str, key))}: {clock.wall:.1f} s", flush=True)
    return in_order(table, keys, wanted)


def in_order(
    table: pd.DataFrame, keys: Sequence[str], wanted: Sequence[tuple[object, ...]]
) -> pd.DataFrame:
    """Return the wanted rows, in the order of the keys."""
    index = pd.MultiIndex.from_tuples(wanted, names=list(keys))
    return table.set_index(list(keys)).loc[index].reset_index()


def markdown(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Lay cells out as a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def warm_up() -> None:
    """Compile and load, so that no measured fit is charged for it."""
    data = xcopula.datasets.toy(0, kind="triple")
    for method in ("full", "transductive"):
        xcopula.fit(
            data,
            "primary",
            ["upper", "lower"],
            method=method,
            kernels="matern32",
            marginals="gev",
        )


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of so many inches."""
    return Figure(figsize=(width, height), layout="constrained", dpi=130)


def bare(ax: Axes) -> None:
    """Leave only the axes that carry numbers."""
    ax.spines[["top", "right"]].set_visible(False)
