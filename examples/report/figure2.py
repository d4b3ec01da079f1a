"""Draw figure 2 of the report: three tasks by transduction, and the price of query points.

Run as ``python examples/report/figure2.py``. On the left the primary (middle) is predicted from
both co-tasks; on the right the error and the time of a prediction against the number of query
points that all cells share, over twenty data sets.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from common import BLUE, FAINT, GREEN, bare, new_figure, read_arguments, write_rows

# isort: split
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import xcopula

sys.path.append(str(Path(__file__).resolve().parents[1] / "transduction"))

from query_points import experiment, summarise

TASKS = ("primary", "upper", "lower")


def predict(cells: int, **options: object) -> pd.DataFrame:
    """Return the truth, the median and the 90 % band of the primary on a grid."""
    x = np.linspace(0.0, 1.0, cells)
    data = xcopula.datasets.toy(0, kind="triple")
    model = xcopula.fit(data, "primary", TASKS[1:], method="transductive", **options)
    bands = model.predict(xr.Dataset(coords={"x": ("x", x)}))["primary"].values
    truth = xcopula.datasets.toy_truth(x, kind="triple")["primary"].values
    columns = {"x": x, "truth": truth, "lower": bands[0], "median": bands[1], "upper": bands[2]}
    return pd.DataFrame(columns)


def draw_figure(curves: pd.DataFrame, costs: pd.DataFrame) -> Figure:
    """Draw the prediction on the left, error and time on the right."""
    figure = new_figure(9.8, 3.9)
    left, right = figure.subplots(1, 2, width_ratios=(1.1, 1.0))
    _draw_prediction(left, curves)
    _draw_costs(right, costs)
    return figure


def _draw_prediction(ax: Axes, curves: pd.DataFrame) -> None:
    x = curves["x"]
    data = xcopula.datasets.toy(0, kind="triple")
    truth = xcopula.datasets.toy_truth(x.to_numpy(), kind="triple")
    band = {"color": BLUE, "alpha": 0.22, "linewidth": 0, "label": "5 to 95 %"}
    ax.fill_between(x, curves["lower"], curves["upper"], **band)
    for task in TASKS:
        main = task == "primary"
        colour, marker = ("black", "o") if main else (FAINT, "^")
        label = "true primary" if main else None
        ax.plot(x, truth[task], "--" if main else ":", color=colour, label=label)
        ax.plot(data["x"], data[task], marker, color=colour, markersize=4)
    ax.plot(x, curves["median"], color=BLUE, linewidth=1.8, label="median")
    ax.set(xlabel="x", ylabel="y", title="(a) three tasks, transductive")
    ax.title.set_fontsize(10)
    _legend(ax)
    bare(ax)


def _draw_costs(left: Axes, costs: pd.DataFrame) -> None:
    own = costs[costs["model"] == "anchors"]
    place = np.arange(len(own))
    right = left.twinx()
    time = left.plot(place, own["milliseconds"], color=BLUE, marker="s", markersize=4)
    style = {"color": GREEN, "marker": "o", "markersize": 5, "capsize": 3}
    error = right.errorbar(place, own["rmse"], own["change_se"], linestyle="--", **style)
    apart = right.errorbar(
        place, own["approximation"], own["approximation_se"], linestyle=":", mfc="white", **style
    )
    left.set_xticks(place, [str(n) for n in own["anchors"]])
    left.set_xlabel("number of shared query points")
    left.set_ylim(0.0, 1.25 * own["milliseconds"].max())
    right.set_yscale("log")
    _colour(left, BLUE, "processor time of a prediction (ms)")
    _colour(right, GREEN, "root mean square")
    left.set_title(f"(b) time and error, {int(own['seeds'].iloc[0])} data sets", fontsize=10)
    labels = ["time", "error of the median", "distance from its limit"]
    _legend(left, [time[0], error, apart], labels)


def _legend(ax: Axes, *what: object) -> None:
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "ncols": 3}
    ax.legend(*what, frameon=False, fontsize=8.5, **place)


def _colour(ax: Axes, colour: str, label: str) -> None:
    ax.set_ylabel(label, color=colour)
    ax.tick_params(axis="y", colors=colour)
    ax.spines["top"].set_visible(False)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment."""
    trials_option = ("--trials", {"type": int, "default": 20, "help": "number of data sets"})
    options = read_arguments(__doc__, arguments, trials_option)
    output: Path = options.output
    if options.quick:
        fixed = {"marginals": "normal", "kernels": "matern52"}
        curves, rows = predict(101, **fixed), experiment(2, 101, 1, **fixed)
    else:
        curves, rows = predict(501), experiment(options.trials, 2001, 3)
    costs = summarise(pd.DataFrame(rows))
    write_rows(curves, output / "figure2a.csv")
    write_rows(costs, output / "figure2b.csv")
    draw_figure(curves, costs).savefig(output / "figure2.png")
    print(costs.to_string(index=False, float_format="%.4f"))


if __name__ == "__main__":
    main()
