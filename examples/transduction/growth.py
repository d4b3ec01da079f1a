"""Time fits against the number of tasks, the full model beside the transductive one.

Run as ``python examples/transduction/growth.py``. The data are simulated: a primary, and
secondaries that share it and have a part of their own, at the same sites or each at its own. Times
are of the processor, with one thread of BLAS: they count what all threads of a fit did, and so
hardly depend on what else the machine does. Rows already in the table are kept.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import xcopula
from xcopula import CopulaModel
from xcopula.methods import METHODS

FloatArray = npt.NDArray[np.float64]

COMPARED = ("full", "transductive")
PLACES = {"same": "all tasks at the same sites", "own": "each task at its own sites"}
LENGTH, NUGGET, SHARED = 0.2, 0.2, 0.7
FROM = 3  # slopes are taken from that many secondaries on
OPTIONS: dict[str, object] = {"kernels": "matern32", "marginals": "normal"}
STYLES = {"full": ("#c1440e", "s"), "transductive": ("#31688e", "o")}
PANELS = {"fit_seconds": "a whole fit", "evaluation_seconds": "likelihood and gradient"}


def simulate(tasks: int, size: int, places: str, seed: int = 0) -> dict[str, xr.DataArray]:
    """Draw a primary and secondaries, each of them the primary in part."""
    rng = np.random.default_rng(seed)
    count = size if places == "same" else size * tasks
    sites = rng.random((count, 2))
    r = np.sqrt(3.0) * np.linalg.norm(sites[:, None] - sites[None], axis=-1) / LENGTH
    factor = np.linalg.cholesky((1.0 + r) * np.exp(-r) + 1e-9 * np.eye(count))
    parts = np.sqrt(1.0 - NUGGET) * factor @ rng.normal(size=(count, tasks))
    parts += np.sqrt(NUGGET) * rng.normal(size=(count, tasks))
    values = SHARED * parts[:, :1] + np.sqrt(1.0 - SHARED**2) * parts
    values[:, 0] = parts[:, 0]
    data = {}
    for k in range(tasks):
        where = slice(None) if places == "same" else slice(k * size, (k + 1) * size)
        coords = {"x": ("site", sites[where, 0]), "y": ("site", sites[where, 1])}
        data[f"task{k}"] = xr.DataArray(values[where, k], dims="site", coords=coords)
    return data


def timed(function: Callable[[], CopulaModel]) -> tuple[CopulaModel, float, float]:
    """Return a result with the time on the clock and on the processors."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def evaluation_seconds(model: CopulaModel, method: str, repeats: int) -> float:
    """Return the shortest processor time of the likelihood and its gradient."""
    model, best = replace(model, method=METHODS[method]), np.inf
    for _ in range(repeats):
        began = time.process_time()
        model.objective(model.theta)
        best = min(best, time.process_time() - began)
    return best


def measure(tasks: int, size: int, places: str, with_full: bool) -> list[dict[str, object]]:
    """Time both methods at one size, the fit of the full one only where it is asked for."""
    names = [f"task{k}" for k in range(tasks)]
    data = simulate(tasks, size, places)

    def fit(method: str) -> CopulaModel:
        return xcopula.fit(data, names[0], names[1:], method=method, **OPTIONS)

    model, wall, cpu = timed(lambda: fit("transductive"))
    rows = []
    for method in COMPARED:
        row: dict[str, object] = {"sites": places, "tasks": tasks, "size": size, "method": method}
        row["evaluation_seconds"] = evaluation_seconds(model, method, 3)
        if method == "transductive":
            row |= _fitted(model, wall, cpu)
        elif with_full:
            row |= _fitted(*timed(lambda: fit("full")))
        rows.append(row)
    return rows


def _fitted(model: CopulaModel, wall: float, cpu: float) -> dict[str, object]:
    return {
        "fit_seconds": cpu,
        "wall_seconds": wall,
        "parameters": model.theta.size,
        "evaluations": model.evaluations,
        "converged": model.converged,
    }


def expected_seconds(table: pd.DataFrame, tasks: int) -> float:
    """Extrapolate the time of a full fit by its last slope; infinite once one was left out."""
    full = table[table["method"] == "full"].sort_values("tasks")
    if full["fit_seconds"].isna().any():
        return np.inf
    if len(full) < 2:
        return 0.0
    (t1, t2), (s1, s2) = full["tasks"].iloc[-2:], full["fit_seconds"].iloc[-2:]
    slope = max(3.0, np.log(s2 / s1) / np.log(t2 / t1))
    return float(s2 * (tasks / t2) ** slope)


def run_all(most: int, size: int, limit: float, path: Path) -> pd.DataFrame:
    """Measure what is not in the table yet, and append it size by size."""
    columns = ["sites", "tasks", "method", "fit_seconds"]
    table = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=columns)
    measure(2, 20, "same", True)  # compiles
    for places in PLACES:
        for tasks in range(2, most + 1):
            own = table[table["sites"] == places]
            if tasks in set(own["tasks"]):
                continue
            expected = expected_seconds(own, tasks)
            rows = measure(tasks, size, places, expected <= limit)
            new = pd.DataFrame(rows)
            table = new if table.empty else pd.concat([table, new], ignore_index=True)
            table.to_csv(path, index=False, float_format="%.4g")
            print(_progress(rows, expected), flush=True)
    return table


def _progress(rows: list[dict[str, object]], expected: float) -> str:
    times = [
        f"{row['method']} fit {row['fit_seconds']:.1f} s"
        if "fit_seconds" in row
        else f"{row['method']} fit left out (expected {expected:.0f} s)"
        for row in rows
    ]
    return f"{rows[0]['tasks']} tasks, {rows[0]['sites']} sites: {', '.join(times)}"


def slope(tasks: FloatArray, seconds: FloatArray) -> float:
    """Return the slope of log time against the log of the number of secondaries."""
    keep = (tasks - 1 >= FROM) & np.isfinite(seconds)
    if keep.sum() < 2:
        return np.nan
    return float(np.polyfit(np.log(tasks[keep] - 1), np.log(seconds[keep]), 1)[0])


def draw_figure(table: pd.DataFrame) -> Figure:
    """Draw fits above evaluations, a column for each kind of sites."""
    figure = Figure(figsize=(7.4, 6.2), layout="constrained", dpi=130)
    axes = figure.subplots(len(PANELS), len(PLACES), sharex=True, sharey="row")
    for column, places in zip(axes.T, PLACES, strict=True):
        for ax, quantity in zip(column, PANELS, strict=True):
            _panel(ax, table[table["sites"] == places], quantity)
        column[0].set_title(PLACES[places], fontsize=10)
        column[-1].set_xlabel("number of secondaries")
    for ax, label in zip(axes[:, 0], PANELS.values(), strict=True):
        ax.set_ylabel(f"{label}:\nprocessor time (s)")
    return figure


def _panel(ax: Axes, own: pd.DataFrame, quantity: str) -> None:
    for method, (colour, marker) in STYLES.items():
        part = own[own["method"] == method].sort_values("tasks")
        tasks, seconds = part["tasks"].to_numpy(float), part[quantity].to_numpy(float)
        label = f"{method}, slope {slope(tasks, seconds):.1f}"
        ax.loglog(tasks - 1, seconds, color=colour, marker=marker, markersize=4.5, label=label)
    ticks = sorted({int(t) - 1 for t in own["tasks"]} & {1, 2, 3, 4, 6, 8, 11})
    ax.set_xticks(ticks, [str(t) for t in ticks])
    ax.minorticks_off()
    ax.grid(color="#000000", alpha=0.1, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8.5, loc="upper left")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the measurements."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("docs/transduction"))
    parser.add_argument("--tasks", type=int, default=12, help="the largest number of tasks")
    parser.add_argument("--size", type=int, default=300, help="observations of each task")
    parser.add_argument("--limit", type=float, default=120.0, help="longest full fit, seconds")
    parser.add_argument("--quick", action="store_true", help="up to 4 tasks of 25 observations")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    most, size = (4, 25) if options.quick else (options.tasks, options.size)
    table = run_all(most, size, options.limit, options.output / "growth.csv")
    draw_figure(table).savefig(options.output / "growth.png")
    print(table.to_string(index=False, float_format="%.3g"))


if __name__ == "__main__":
    main()
