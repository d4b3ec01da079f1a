"""Make table 2 of the report: times of the full and the transductive fit on the Jura data.

Run as ``python examples/report/table2.py``, on a machine that does nothing else. Kernels and laws
are fixed and BLAS has one thread, so both methods do the same work but for
what the approximation saves. Also compares the optimisers of the report on cadmium.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from common import (
    BLUE,
    FAINT,
    GREEN,
    RED,
    REPORT_KERNELS,
    REPORT_LAWS,
    SECONDARIES,
    Row,
    append,
    bare,
    describe_choice,
    heard,
    in_order,
    markdown,
    missing,
    new_figure,
    read_arguments,
    read_rows,
    run_missing,
    time_evaluation,
    timed,
    warm_up,
    write_rows,
    write_text,
)

# isort: split
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

import xcopula
from xcopula.methods import Full, Method, Sparse, Transductive

KEYS = ("metal", "choices", "system")
METHODS: dict[str, Method] = {
    "MtGCP": Full(),
    "TransGCP": Transductive(),
    # The report's own procedure: pairs, and nothing after them.
    "TransGCP pairs": Transductive(polish=False),
    "DTC-200": Sparse("dtc", inducing=200),
    "FITC-359": Sparse("fitc", inducing=359),
    "PITC-200": Sparse("pitc", inducing=200),
}
CHOICES = ("report", "select")
# Seconds of an optimisation and of an evaluation; the report quotes the sparse ones.
PUBLISHED = {
    ("Cd", "MtGCP"): (898, "0.517"),
    ("Cd", "TransGCP"): (429, "0.363"),
    ("Cd", "TransGCP pairs"): (429, "0.363"),
    ("Cu", "MtGCP"): (1046, "0.625"),
    ("Cu", "TransGCP"): (621, "0.409"),
    ("Cu", "TransGCP pairs"): (621, "0.409"),
    ("Cd", "DTC-200"): (185, ""),
    ("Cd", "FITC-359"): (691, ""),
    ("Cd", "PITC-200"): (385, ""),
}
OPTIMIZERS = [("l-bfgs", 0), ("l-bfgs", 2), ("cg", 0), ("cg", 2), ("annealing", 0)]
COMMAND = "python examples/report/table2.py"


def load(metal: str, quick: bool) -> xr.Dataset:
    """Return the samples, the metal hidden at the validation sites."""
    data = xcopula.datasets.jura(hide=metal)
    return data.isel(site=slice(219, 274)) if quick else data


@functools.cache
def fixed_choices(metal: str, choices: str, quick: bool) -> tuple[dict[str, str], dict[str, str]]:
    """Return the kernel and the law of each variable: the report's, or the selected ones."""
    names = [metal, *SECONDARIES[metal]]
    if choices == "report":
        return {n: REPORT_KERNELS[n] for n in names}, {n: REPORT_LAWS[n] for n in names}
    if quick:
        return dict.fromkeys(names, "matern32"), dict.fromkeys(names, "lognormal")
    model = xcopula.fit(
        load(metal, quick), metal, SECONDARIES[metal], marginals="select", kernels="select"
    )
    kernels = (k.name for k in model.process.covariance.kernels)
    laws = (m.name for m in model.marginals)
    return dict(zip(names, kernels, strict=True)), dict(zip(names, laws, strict=True))


def run_row(metal: str, choices: str, system: str, repeats: int, quick: bool) -> Row:
    """Time a fit and an evaluation of the likelihood, each as the median of repetitions."""
    data = load(metal, quick)
    kernels, laws = fixed_choices(metal, choices, quick)
    method = METHODS[system]
    if quick and isinstance(method, Sparse):
        method = replace(method, inducing=30)
    options = {"method": method, "kernels": kernels, "marginals": laws, "anisotropy": False}
    clocks = []
    for _ in range(repeats):
        with heard(), timed() as clock:
            model = xcopula.fit(data, metal, SECONDARIES[metal], **options)
        clocks.append(clock)
    evaluation = time_evaluation(model, 3 * repeats)
    seconds, each = PUBLISHED.get((metal, system), ("", ""))
    return {
        "metal": metal,
        "choices": choices,
        "system": system,
        "secondaries": " ".join(SECONDARIES[metal]),
        "fit_cpu_seconds": float(np.median([c.cpu for c in clocks])),
        "fit_wall_seconds": float(np.median([c.wall for c in clocks])),
        "fit_cpu_spread": float(np.ptp([c.cpu for c in clocks])),
        "published_fit_seconds": seconds,
        "evaluation_cpu_seconds": evaluation.cpu,
        "evaluation_wall_seconds": evaluation.wall,
        "published_evaluation_seconds": each,
        "evaluations": model.evaluations,
        "observations": model.observations.sample.size,
        "parameters": model.theta.size,
        "converged": model.converged,
        "log_likelihood": model.log_likelihood,
        **describe_choice(model),
        "repeats": repeats,
        "version": xcopula.__version__,
    }


def run_optimizer(optimizer: str, restarts: int, quick: bool) -> tuple[Row, list[Row]]:
    """Fit the full model of cadmium; return where it ended and how it got there."""
    kernels, laws = fixed_choices("Cd", "select", quick)
    trace: list[Row] = []
    began = time.process_time()

    def note(iteration: int, value: float, theta: object) -> None:
        seconds = time.process_time() - began
        place = {"optimizer": optimizer, "restarts": restarts, "iteration": iteration}
        trace.append(place | {"cpu_seconds": seconds, "penalised": value})

    with timed() as clock:
        model = xcopula.fit(
            load("Cd", quick),
            "Cd",
            SECONDARIES["Cd"],
            method="full",
            kernels=kernels,
            marginals=laws,
            optimizer=optimizer,
            restarts=restarts,
            callback=note,
        )
    prior, _ = model.process.log_prior(model.theta)
    return {
        "optimizer": optimizer,
        "restarts": restarts,
        "penalised": model.log_likelihood + prior,
        "log_likelihood": model.log_likelihood,
        "evaluations": model.evaluations,
        "cpu_seconds": clock.cpu,
        "wall_seconds": clock.wall,
        "converged": model.converged,
        "version": xcopula.__version__,
    }, trace


def compare_optimizers(output: Path, quick: bool) -> pd.DataFrame:
    """Run the optimisers that are not in the table yet; annealing is not quick."""
    keys, path, trace_path = ("optimizer", "restarts"), *_files(output)
    table, traces = read_rows(path, keys), read_rows(trace_path, (*keys, "iteration"))
    wanted = [key for key in OPTIMIZERS if not (quick and key[0] == "annealing")]
    for optimizer, restarts in missing(table, keys, wanted):
        row, trace = run_optimizer(optimizer, restarts, quick)
        again = (traces["optimizer"] == optimizer) & (traces["restarts"] == restarts)
        traces = append(traces[~again], trace, trace_path)
        table = append(table, [row], path)
        print(f"{optimizer}, {restarts} restarts: {row['cpu_seconds']:.1f} s", flush=True)
    table = in_order(table, keys, wanted)
    write_rows(table, path)
    draw_optimizers(table, traces).savefig(output / "optimizers.png")
    return table


def _files(output: Path) -> tuple[Path, Path]:
    return output / "optimizers.csv", output / "optimizers_trace.csv"


def describe(table: pd.DataFrame) -> str:
    """Write the times as Markdown, beside the report's and the ratio of the two methods."""
    heads = ["system", "choices", "fit, CPU s", "fit, wall s", "report, s"]
    heads += ["evaluation, CPU ms", "wall ms", "report, ms", "converged"]
    rows = []
    for r in table.itertuples():
        each = r.published_evaluation_seconds
        rows.append(
            [
                f"{r.system} {r.metal} [{', '.join(r.secondaries.split())}]",
                r.choices,
                f"{r.fit_cpu_seconds:.1f}",
                f"{r.fit_wall_seconds:.1f}",
                r.published_fit_seconds,
                f"{1e3 * r.evaluation_cpu_seconds:.1f}",
                f"{1e3 * r.evaluation_wall_seconds:.1f}",
                f"{1e3 * float(each):.0f}" if each else "",
                "yes" if r.converged else "no",
            ]
        )
    return "\n".join([markdown(heads, rows), "", *_ratios(table), f"Made by `{COMMAND}`."]) + "\n"


def _ratios(table: pd.DataFrame) -> list[str]:
    """Say how many times the work of the transductive method the full one takes."""
    lines = []
    for (metal, choices), own in table.groupby(["metal", "choices"], sort=False):
        part = own.set_index("system")
        fit = part.loc["MtGCP", "fit_cpu_seconds"] / part["fit_cpu_seconds"]
        each = part.loc["MtGCP", "evaluation_cpu_seconds"] / part["evaluation_cpu_seconds"]
        lines.append(
            f"{metal}, {choices} choices: the full fit takes {fit['TransGCP']:.2f} times the "
            f"processor time of the transductive one, {fit['TransGCP pairs']:.2f} times that of "
            f"its pairs alone, and {each['TransGCP']:.2f} times in one evaluation."
        )
    return ["  \n".join(lines), ""]


def describe_optimizers(table: pd.DataFrame) -> str:
    """Write the optimisers as Markdown."""
    heads = ["optimizer", "restarts", "penalised log-likelihood", "log-likelihood"]
    heads += ["evaluations", "CPU s", "converged"]
    rows = [
        [
            r.optimizer,
            r.restarts,
            f"{r.penalised:.2f}",
            f"{r.log_likelihood:.2f}",
            r.evaluations,
            f"{r.cpu_seconds:.1f}",
            "yes" if r.converged else "no",
        ]
        for r in table.itertuples()
    ]
    return "\n".join([markdown(heads, rows), "", f"Made by `{COMMAND}`."]) + "\n"


def draw_figure(table: pd.DataFrame) -> Figure:
    """Draw fits and evaluations, ours and the report's, on logarithmic scales."""
    figure = new_figure(9.4, 4.2)
    axes = figure.subplots(1, 2, sharey=True)
    _draw_times(axes[0], table, "fit", "an optimisation (s)")
    _draw_times(axes[1], table, "evaluation", "an evaluation of the likelihood (s)")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def _draw_times(ax: Axes, table: pd.DataFrame, what: str, label: str) -> None:
    place = np.arange(len(table))[::-1]
    ax.plot(table[f"{what}_cpu_seconds"], place, "o", color=BLUE, label="processor time")
    wall = table[f"{what}_wall_seconds"]
    ax.plot(wall, place, "|", color=GREEN, markersize=11, mew=2, label="time on the clock")
    report = pd.to_numeric(table[f"published_{what}_seconds"])
    ax.plot(report, place, "D", color=RED, mfc="none", label="report, on its machine")
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if what == "evaluation" else (1,)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter("")
    ax.set_yticks(place, [f"{r.system} {r.metal}  ({r.choices})" for r in table.itertuples()])
    ax.set_xlabel(label)
    ax.grid(axis="y", color=FAINT, alpha=0.2, linewidth=0.6)
    bare(ax)


def draw_optimizers(table: pd.DataFrame, traces: pd.DataFrame) -> Figure:
    """Draw how far each optimiser is from the best end, against its processor time."""
    figure = new_figure(6.4, 4.2)
    ax = figure.subplots()
    best = max(table["penalised"].max(), traces["penalised"].max())
    # All begin at one point, which is no better than what the first iteration leads to.
    first = traces[traces["restarts"] == 0].groupby("optimizer").first()
    start = first["cpu_seconds"].min(), best - first["penalised"].min()
    colours = {"l-bfgs": BLUE, "cg": RED, "annealing": GREEN}
    for (optimizer, restarts), own in traces.groupby(["optimizer", "restarts"], sort=False):
        gap = np.maximum(best - own["penalised"].cummax(), 0.01)  # what the file resolves
        x, y = np.append(start[0], own["cpu_seconds"]), np.append(start[1], gap)
        style = {"color": colours[str(optimizer)], "linestyle": "--" if restarts else "-"}
        ax.step(x, y, where="post", label=f"{optimizer}, {restarts} restarts", **style)
        ax.plot(x[-1], y[-1], "o", markersize=5, color=style["color"])
    ax.set(xscale="log", yscale="log", xlabel="processor time (s)")
    ax.set_ylabel("nats below the best penalised likelihood")
    ax.legend(frameon=False, fontsize=9, loc="center", bbox_to_anchor=(0.7, 0.55))
    bare(ax)
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the measurements."""
    repeats_option = ("--repeats", {"type": int, "default": 3, "help": "fits of each system"})
    options = read_arguments(__doc__, arguments, repeats_option)
    repeats = 1 if options.quick else options.repeats
    wanted = [
        (metal, choices, system)
        for metal in SECONDARIES
        for choices in CHOICES
        for system in METHODS
        if "GCP" in system or (metal, choices) == ("Cd", "select")
    ]
    warm_up()
    path = options.output / "table2.csv"
    table = run_missing(path, KEYS, wanted, lambda key: run_row(*key, repeats, options.quick))
    write_text(options.output / "table2.md", describe(table))
    draw_figure(table).savefig(options.output / "table2.png")
    optimizers = compare_optimizers(options.output, options.quick)
    write_text(options.output / "optimizers.md", describe_optimizers(optimizers))
    print(describe(table), describe_optimizers(optimizers), sep="\n")


if __name__ == "__main__":
    main()
