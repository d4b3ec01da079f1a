"""Show how anchors, the query points that all cells share, change a transductive prediction.

Run as ``python examples/transduction/query_points.py``. After figure 2b of the report, on its toy
data: a sparse primary with a gap and two dense secondaries, each sampled at sites of its own. Each
data set is fitted once; then only the anchors change. Two errors are measured: that of the median
against the true function, and that of the approximation, which is the distance of the median from
the one with all sites of the secondaries as anchors, where the theorem holds as it stands.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
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
from xcopula.methods import Transductive

FloatArray = npt.NDArray[np.float64]

ANCHORS = (0, 1, 2, 5, 10, 20, 40, 80)
SECONDARIES = ["upper", "lower"]
ERROR, TIME, FAINT = "#31688e", "#c1440e", "#777777"


def spread(count: int) -> FloatArray:
    """Return points in the middle of equal parts of [0, 1]."""
    return (np.arange(count) + 0.5) / count if count else np.empty(0)


def with_anchors(model: CopulaModel, count: int) -> CopulaModel:
    """Return the model with so many anchors and the report's weights."""
    points = model.observations.targets([spread(count)]) if count else None
    return replace(model, method=Transductive("report", points))


def median(model: CopulaModel, grid: xr.Dataset) -> FloatArray:
    """Return the median of the signal."""
    values: FloatArray = model.posterior(grid, of="signal").median().values
    return values


def root_mean_square(difference: FloatArray) -> float:
    """Return the root mean square over the grid."""
    return float(np.sqrt(np.mean(difference**2)))


def seconds(model: CopulaModel, grid: xr.Dataset, repeats: int) -> float:
    """Return the shortest processor time of a prediction, the factorisations being there."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        median(model, grid)
        times.append(time.process_time() - began)
    return min(times)


def compare(
    data: xr.Dataset, grid: xr.Dataset, truth: FloatArray, repeats: int, **options: object
) -> Iterator[dict[str, object]]:
    """Yield a row for every number of anchors, and for the models to compare with."""
    model = xcopula.fit(data, "primary", SECONDARIES, method="transductive", **options)
    limit = median(replace(model, method=Transductive("report", "auto")), grid)
    variants = [("anchors", count, with_anchors(model, count)) for count in ANCHORS]
    single = xcopula.fit(data, "primary", **options)
    full = xcopula.fit(data, "primary", SECONDARIES, method="full", **options)
    for name, count, variant in [*variants, ("single", 0, single), ("full", 0, full)]:
        middle = median(variant, grid)
        yield {
            "model": name,
            "anchors": count,
            "rmse": root_mean_square(middle - truth),
            "approximation": root_mean_square(middle - limit),
            "seconds": seconds(variant, grid, repeats),
        }


def experiment(
    seeds: int, cells: int, repeats: int, **options: object
) -> Iterator[dict[str, object]]:
    """Yield the rows of every seed."""
    x = np.linspace(0.0, 1.0, cells)
    grid = xr.Dataset(coords={"x": ("x", x, {"units": "1"})})
    truth = xcopula.datasets.toy_truth(x, kind="triple")["primary"].values
    for seed in range(seeds):
        data = xcopula.datasets.toy(seed, kind="triple")
        for row in compare(data, grid, truth, repeats, **options):
            yield {"seed": seed} | row
        print(f"seed {seed}: {len(ANCHORS)} numbers of anchors, single and full", flush=True)


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Average over seeds, with standard errors and the paired change from no anchors."""
    start = rows[(rows["model"] == "anchors") & (rows["anchors"] == 0)].set_index("seed")
    rows = rows.assign(change=rows["rmse"] - rows["seed"].map(start["rmse"]))
    groups = rows.groupby(["model", "anchors"], sort=False)
    columns: dict[str, pd.Series] = {"seeds": groups.size()}
    for name in ("rmse", "change", "approximation"):
        columns[name] = groups[name].mean()
        columns[f"{name}_se"] = groups[name].std() / np.sqrt(groups.size())
    columns["milliseconds"] = 1e3 * groups["seconds"].mean()
    return pd.DataFrame(columns).reset_index()


def draw_figure(table: pd.DataFrame) -> Figure:
    """Draw the error and the time of a prediction, and beside them the approximation's error.

    Bars of the error are standard errors of the paired change from no anchors: data sets differ
    far more from one another than their own errors change with the anchors.
    """
    figure = Figure(figsize=(9.2, 3.9), layout="constrained", dpi=130)
    left, right = figure.subplots(1, 2, gridspec_kw={"wspace": 0.12})
    own = table[table["model"] == "anchors"]
    place = np.arange(len(own))
    _draw_error(left, table, own)
    style = {"color": ERROR, "marker": "o", "capsize": 3}
    right.errorbar(place, own["approximation"], own["approximation_se"], **style)
    _label(right, "error of the approximation\n(root mean square)", ERROR)
    for ax in (left, right):
        ax.set_xticks(place, [str(n) for n in own["anchors"]])
        ax.set_xlabel("number of anchors, evenly spread on [0, 1]")
    right.set_ylim(bottom=0.0)
    right.spines["right"].set_visible(False)
    return figure


def _draw_error(ax: Axes, table: pd.DataFrame, own: pd.DataFrame) -> None:
    place = np.arange(len(own))
    times = ax.twinx()
    ax.errorbar(place, own["rmse"], own["change_se"], color=ERROR, marker="o", capsize=3)
    times.plot(place, own["milliseconds"], color=TIME, marker="s", linestyle="--")
    levels = table.set_index("model")["rmse"]
    ax.axhline(levels["full"], color=FAINT, linestyle="-.", linewidth=1.2)
    style = {"ha": "right", "va": "bottom", "fontsize": 8.5, "color": FAINT}
    ax.annotate(
        "full model", (place[-1], levels["full"]), (0, 2), textcoords="offset points", **style
    )
    ax.set_title(f"primary alone: {levels['single']:.2f}, off the scale", fontsize=8.5, color=FAINT)
    _label(ax, "error of the median (root mean square)", ERROR)
    _label(times, "processor time of a prediction (ms)", TIME)
    times.set_ylim(bottom=0.0)


def _label(ax: Axes, label: str, colour: str) -> None:
    ax.set_ylabel(label, color=colour)
    ax.tick_params(axis="y", colors=colour)
    ax.spines["top"].set_visible(False)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("docs/transduction"))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--cells", type=int, default=2001, help="cells of the dense grid")
    parser.add_argument("--quick", action="store_true", help="two seeds, fixed law and kernel")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    if options.quick:
        fixed = {"marginals": "normal", "kernels": "matern32"}
        rows = experiment(2, 101, 1, **fixed)
    else:
        rows = experiment(options.seeds, options.cells, 3)
    table = summarise(pd.DataFrame(rows))
    table.to_csv(options.output / "query_points.csv", index=False, float_format="%.5f")
    draw_figure(table).savefig(options.output / "query_points.png")
    print(table.to_string(index=False, float_format="%.4f"))


if __name__ == "__main__":
    main()
