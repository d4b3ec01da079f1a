"""Draw figure 1 of the report: a copula process with and without a second task.

Run as ``python examples/report/figure1.py``. The primary task has few samples, noise of an extreme
value law and a gap; the co-task has more, with Gaussian noise. The picture is of one data set; the
errors are averaged over several.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from common import BLUE, FAINT, RED, Row, bare, new_figure, read_arguments, write_rows

# isort: split
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import xcopula

MODELS = {"single": (), "multi": ("cotask",)}
TITLES = {"single": "(a) single-task", "multi": "(b) multi-task"}
COLOURS = {"single": RED, "multi": BLUE}
LEVELS = (0.05, 0.5, 0.95)


def predict(data: xr.Dataset, x: np.ndarray, model: str, **options: object) -> np.ndarray:
    """Return the lower bound, median and upper bound of the primary at x."""
    fitted = xcopula.fit(data, "primary", MODELS[model], method="full", **options)
    grid = xr.Dataset(coords={"x": ("x", x)})
    return fitted.predict(grid, quantiles=LEVELS)["primary"].values


def run_trials(seeds: int, cells: int, **options: object) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the curves of seed 0, and the error of both models for every seed."""
    x = np.linspace(0.0, 1.0, cells)
    truth = xcopula.datasets.toy_truth(x)["primary"].values
    curves, rows = {"x": x, "truth": truth}, []
    for seed in range(seeds):
        data = xcopula.datasets.toy(seed)
        for model in MODELS:
            lower, median, upper = predict(data, x, model, **options)
            rmse = float(np.sqrt(np.mean((median - truth) ** 2)))
            width = float(np.mean(upper - lower))
            row: Row = {"seed": seed, "model": model, "rmse": rmse, "width": width}
            rows.append(row)
            if seed == 0:
                curves |= {f"{model}_lower": lower, f"{model}_median": median}
                curves[f"{model}_upper"] = upper
        print(f"[{seed + 1}/{seeds}] RMSE {rows[-2]['rmse']:.3f} and {rmse:.3f}", flush=True)
    return pd.DataFrame(curves), pd.DataFrame(rows)


def summarise(trials: pd.DataFrame) -> str:
    """Say the errors of both models and their paired difference, with standard errors."""
    wide = trials.pivot(index="seed", columns="model", values="rmse")
    wide["multi - single"] = wide["multi"] - wide["single"]
    error = wide.std(ddof=1) / np.sqrt(len(wide))
    parts = [f"{name} {wide[name].mean():.3f} ± {error[name]:.3f}" for name in wide]
    return f"RMSE of the median over {len(wide)} seeds: {', '.join(parts)}"


def draw_figure(curves: pd.DataFrame, data: xr.Dataset) -> Figure:
    """Draw both models side by side."""
    figure = new_figure(9.4, 3.9)
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    for ax, model in zip(axes, MODELS, strict=True):
        _draw_panel(ax, curves, data, model)
    axes[0].set_ylabel("y")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    return figure


def _draw_panel(ax: Axes, curves: pd.DataFrame, data: xr.Dataset, model: str) -> None:
    x, colour = curves["x"], COLOURS[model]
    truth = xcopula.datasets.toy_truth(x.to_numpy())
    lower, upper = curves[f"{model}_lower"], curves[f"{model}_upper"]
    ax.fill_between(x, lower, upper, color="black", alpha=0.12, linewidth=0, label="5 to 95 %")
    ax.fill_between(x, lower, upper, color=colour, alpha=0.18, linewidth=0)
    ax.plot(x, truth["primary"], "--", color="black", linewidth=1.1, label="true primary")
    ax.plot(x, truth["cotask"], ":", color=FAINT, linewidth=1.3, label="true co-task")
    ax.plot(x, curves[f"{model}_median"], color="black", linewidth=0, label="_")
    ax.plot(x, curves[f"{model}_median"], color=colour, linewidth=1.8)
    ax.plot([], [], color="black", linewidth=1.8, label="median")
    ax.plot(data["x"], data["primary"], "o", color="black", markersize=4.5, label="primary samples")
    ax.plot(data["x"], data["cotask"], "^", color=FAINT, markersize=4.5, label="co-task samples")
    error = np.sqrt(np.mean((curves[f"{model}_median"] - curves["truth"]) ** 2))
    ax.set_title(f"{TITLES[model]}, RMSE {error:.2f}", fontsize=10)
    ax.set_xlabel("x")
    bare(ax)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment."""
    trials_option = ("--trials", {"type": int, "default": 20, "help": "number of data sets"})
    options = read_arguments(__doc__, arguments, trials_option)
    output: Path = options.output
    if options.quick:
        fixed = {"marginals": "gev", "kernels": "matern52"}
        curves, trials = run_trials(2, 101, **fixed)
    else:
        curves, trials = run_trials(options.trials, 501)
    write_rows(curves, output / "figure1.csv")
    write_rows(trials, output / "figure1_trials.csv")
    draw_figure(curves, xcopula.datasets.toy(0)).savefig(output / "figure1.png")
    print(summarise(trials))


if __name__ == "__main__":
    main()
