"""How time grows with the number of values: neighbours beside exact, FITC and GPBoost.

A stage of ``bench_neighbours.py``, which writes a figure and two tables. GPBoost, which is not
needed for anything else, is asked in a process of its own: ``--gpboost`` names the Python that has
it.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import worlds

import xcopula

GIVEN = {"marginals": "lognormal", "kernels": "matern32", "method": "full"}
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
QUICK = (400, 800)
# Options of each method, and the largest sample that it gets: what would take minutes is left out.
METHODS: dict[str, tuple[dict[str, Any], int]] = {
    "neighbours": ({"solver": "neighbours"}, 1_000_000),
    "exact": ({"solver": "exact"}, 3_000),
    "FITC": ({"method": "fitc"}, 30_000),
}
GPBOOST, MOST_GPBOOST = "GPBoost", 100_000
COLOURS = {"neighbours": "#0072b2", "exact": "#d55e00", "FITC": "#009e73", GPBOOST: "#7f7f7f"}
# A slope is measured from here on: below, time is that of compiled loops being loaded and the like.
FROM = 10_000

# What GPBoost does: the same kernel, 20 neighbours, the logarithms of the values.
SCRIPT = """
import sys, time
import gpboost
import numpy as np
data = np.load(sys.argv[1])
def seconds(call, *arguments, **options):
    began = time.process_time()
    call(*arguments, **options)
    return time.process_time() - began
model = gpboost.GPModel(
    gp_coords=data["x"], cov_function="matern", cov_fct_shape=1.5, gp_approx="vecchia",
    num_neighbors=20, num_parallel_threads=1,
)
fit = seconds(model.fit, y=data["y"])
given = {"cov_pars": np.array([0.03, 0.25, 5.0]), "y": data["y"]}
model.neg_log_likelihood(**given)
print(seconds(model.neg_log_likelihood, **given), fit)
"""


class Timed(NamedTuple):
    """Seconds of a processor: of a likelihood with its gradient, and of a whole fit."""

    method: str
    values: int
    likelihood: float
    fit: float


def cpu(call: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, float]:
    """Return the result of a call and the seconds of processors that it took."""
    began = time.process_time()
    result = call(*arguments, **options)
    return result, time.process_time() - began


def timed(method: str, values: int) -> Timed:
    """Fit one variable, laws and kernel given, and evaluate its likelihood once more."""
    options, _ = METHODS[method]
    data = worlds.scattered(0, values).data
    model, fit = cpu(xcopula.fit, data, "v0", **{**GIVEN, **options})
    model.objective(model.theta)  # neighbours are found, compiled loops loaded
    _, likelihood = cpu(model.objective, model.theta)
    return Timed(method, values, likelihood, fit)


def timed_gpboost(python: str, values: int) -> Timed:
    """Let GPBoost do the same in a process of its own."""
    data = worlds.scattered(0, values).data
    y = np.log(data["v0"].values)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, x=np.column_stack([data["x"], data["y"]]), y=y - y.mean())
        command = [python, "-c", SCRIPT, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    likelihood, fit = map(float, done.stdout.split()[-2:])
    return Timed(GPBOOST, values, likelihood, fit)


def _has_gpboost(python: str) -> bool:
    command = [python, "-c", "import gpboost"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def measure(sizes: Sequence[int], gpboost: str) -> Iterator[Timed]:
    """Time every method on samples up to its largest."""
    for method in METHODS:
        timed(method, QUICK[0])  # compiled loops are loaded
    asked = _has_gpboost(gpboost)
    if not asked:
        print(f"GPBoost is not installed for {Path(gpboost).name}: left out")
    for values in sizes:
        for method, (_, most) in METHODS.items():
            if values <= most:
                yield timed(method, values)
        if asked and values <= MOST_GPBOOST:
            yield timed_gpboost(gpboost, values)


def slope(found: Sequence[Timed], quantity: str, least: int = FROM) -> float:
    """Return the power of the number of values with which the neighbours' time grows."""
    own = [t for t in found if t.method == "neighbours" and t.values >= least]
    values, seconds = zip(*((t.values, getattr(t, quantity)) for t in own), strict=True)
    return float(np.polyfit(np.log(values), np.log(seconds), 1)[0])


def write_tables(found: Sequence[Timed], folder: Path, least: int = FROM) -> None:
    """Write the times as CSV, and as a table for the docs."""
    with (folder / "growth.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Timed._fields)
        writer.writerows((t.method, t.values, f"{t.likelihood:.4g}", f"{t.fit:.4g}") for t in found)
    methods = [m for m in (*METHODS, GPBOOST) if any(t.method == m for t in found)]
    by = {(t.method, t.values): f"{t.likelihood:.2g} / {t.fit:.3g}" for t in found}
    lines = [f"| values | {' | '.join(methods)} |", "|---:" * (1 + len(methods)) + "|"]
    for values in sorted({t.values for t in found}):
        row = [by.get((m, values), "") for m in methods]
        lines.append(f"| {values:,} | {' | '.join(row)} |")
    slopes = [slope(found, q, least) for q in ("likelihood", "fit")]
    lines += [
        "",
        "Seconds of one core: of a likelihood with its gradient / of a whole fit. From "
        f"{least:,} values on, the time by neighbours grows with the power {slopes[0]:.2f} of "
        f"their number for a likelihood, and {slopes[1]:.2f} for a fit.",
    ]
    (folder / "growth.md").write_text("\n".join(lines) + "\n")


def draw(found: Sequence[Timed], path: Path) -> None:
    """Draw both times against the number of values, with a line of slope one."""
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.2), sharex=True, layout="constrained")
    for axis, quantity, title in zip(
        axes, ("likelihood", "fit"), ("A likelihood with its gradient", "A whole fit"), strict=True
    ):
        for method in dict.fromkeys(t.method for t in found):
            own = [(t.values, getattr(t, quantity)) for t in found if t.method == method]
            # GPBoost shows no gradient.
            value_only = method == GPBOOST and quantity == "likelihood"
            label = f"{method}, value alone" if value_only else method
            axis.plot(*zip(*own, strict=True), "o-", color=COLOURS[method], label=label, ms=4)
        first, *_, last = [t for t in found if t.method == "neighbours"]
        ends = np.array([first.values, last.values])
        axis.plot(
            ends,
            0.5 * getattr(last, quantity) * ends / last.values,
            ":",
            color="0.4",
            label="in proportion",
        )
        axis.set(xscale="log", yscale="log", xlabel="values", title=title)
        axis.set_ylabel("seconds of one core")
        axis.grid(alpha=0.3)
        axis.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def growth(quick: bool, folder: Path, gpboost: str = sys.executable) -> None:
    """Measure, print, and write ``growth.csv``, ``growth.md`` and ``growth.png``."""
    found = []
    print(f"{'method':>12}{'values':>10}{'likelihood, s':>15}{'fit, s':>9}")
    for one in measure(QUICK if quick else SIZES, gpboost):
        print(f"{one.method:>12}{one.values:10d}{one.likelihood:15.3f}{one.fit:9.1f}", flush=True)
        found.append(one)
    folder.mkdir(parents=True, exist_ok=True)
    write_tables(found, folder, QUICK[0] if quick else FROM)
    draw(found, folder / "growth.png")
    print(f"written to {folder}")
