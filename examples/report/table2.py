"""Make table 2 of the report: times of the full and the transductive fit on the Jura data.

Run as ``python examples/report/table2.py``, on a machine that does nothing else. Kernels and laws
are fixed and BLAS has one thread, so both methods do the same work but for
what the approximation saves. Also compares the library's search for the parameters of the full
model of cadmium with searches of scipy, among them those that the report names.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
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
    markdown,
    missing,
    new_figure,
    read_arguments,
    read_rows,
    run_missing,
    time_evaluation,
    timed,
    warm_up,
    write_text,
)

# isort: split
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from scipy.optimize import dual_annealing, minimize

import xcopula
from xcopula.errors import NotPositiveDefiniteError
from xcopula.fitting.maximise import penalised
from xcopula.fitting.newton import Loss, minimise, units
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
# Starts lie so far from the fitted parameters, in units of their boxes (standard deviation).
SPREAD = 0.5
STARTS = 5
# Annealing looks at so many points before L-BFGS-B goes on from the best.
ANNEALED = 3000
# Searches are compared by how soon they are so near the best end, in nats.
NEAR = 0.1
ORANGE = "#d9a441"
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


@functools.cache
def cadmium(quick: bool) -> xcopula.CopulaModel:
    """Fit the full model of cadmium, with the selected kernels and laws."""
    kernels, laws = fixed_choices("Cd", "select", quick)
    options = {"method": "full", "kernels": kernels, "marginals": laws}
    return xcopula.fit(load("Cd", quick), "Cd", SECONDARIES["Cd"], **options)


def loss_of(model: xcopula.CopulaModel) -> Loss:
    """Return the penalised negative log-likelihood with its gradient and information matrix."""
    given = model.process, model.observations.sample, model.structure
    information = functools.partial(model.method.information, *given)
    return penalised(model.process, model.objective, information)


def newton(loss: Loss, start: np.ndarray, bounds: np.ndarray, quick: bool) -> None:
    """Search as the library does."""
    minimise(loss, start, bounds)


def newton_without(loss: Loss, start: np.ndarray, bounds: np.ndarray, quick: bool) -> None:
    """Search as the library does for methods without an information matrix."""
    minimise(lambda theta: (*loss(theta)[:2], None), start, bounds)


def finite(loss: Loss, theta: np.ndarray) -> tuple[float, np.ndarray]:
    """Return value and gradient for scipy, whose line searches go astray at infinite values."""
    value, gradient, _ = loss(theta)
    return min(value, 1e8), gradient


def quasi_newton(loss: Loss, start: np.ndarray, bounds: np.ndarray, quick: bool) -> None:
    """Search by scipy's L-BFGS-B, each parameter in its unit."""
    unit = units(bounds)

    def scaled(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = finite(loss, unit * x)
        return value, unit * gradient

    minimize(scaled, start / unit, jac=True, method="L-BFGS-B", bounds=bounds / unit[:, None])


def conjugate_gradients(loss: Loss, start: np.ndarray, bounds: np.ndarray, quick: bool) -> None:
    """Search by scipy's conjugate gradients; a sine keeps parameters in their box."""
    middle, half = bounds.mean(axis=1), 0.5 * np.ptp(bounds, axis=1)

    def bent(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = finite(loss, middle + half * np.sin(x))
        return value, gradient * half * np.cos(x)

    minimize(bent, np.arcsin((start - middle) / half), jac=True, method="CG")


def annealing(loss: Loss, start: np.ndarray, bounds: np.ndarray, quick: bool) -> None:
    """Search by scipy's dual annealing, then by L-BFGS-B."""
    options = {"maxfun": 100 if quick else ANNEALED, "no_local_search": True, "seed": 0}
    end = dual_annealing(lambda theta: finite(loss, theta)[0], bounds, x0=start, **options)
    quasi_newton(loss, end.x, bounds, quick)


SEARCHES: dict[str, Callable[[Loss, np.ndarray, np.ndarray, bool], None]] = {
    "the library's": newton,
    "the same without information": newton_without,
    "L-BFGS-B": quasi_newton,
    "conjugate gradients": conjugate_gradients,
    "annealing, then L-BFGS-B": annealing,
}
# Those that need the value and the gradient only.
PLAIN = [name for name in SEARCHES if name != "the library's"]


def run_search(name: str, number: int, quick: bool) -> list[Row]:
    """Search from a start, and return the evaluations that were better than all before."""
    model = cadmium(quick)
    bounds = model.process.bounds()
    rng = np.random.default_rng(number)
    start = model.theta + SPREAD * units(bounds) * rng.normal(size=model.theta.size)
    start = np.clip(start, *(bounds.T + 1e-6 * np.outer([1.0, -1.0], units(bounds))))
    loss, rows = loss_of(model), [{"penalised": -np.inf}]
    count, began = 0, time.process_time()

    def noted(theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray | None]:
        nonlocal count
        count += 1
        try:
            plain = name in PLAIN
            found = (*model.objective(theta, prior=True), None) if plain else loss(theta)
        except NotPositiveDefiniteError:
            found = np.inf, np.zeros(theta.size), None
        if -found[0] > rows[-1]["penalised"]:
            seconds = time.process_time() - began
            rows.append({"evaluation": count, "cpu_seconds": seconds, "penalised": -found[0]})
        return found

    SEARCHES[name](noted, start, bounds, quick)
    return [{"search": name, "start": number, **row, "evaluations": count} for row in rows[1:]]


def compare_searches(output: Path, quick: bool) -> pd.DataFrame:
    """Run the searches that are not in the table yet; annealing has one start only."""
    keys, path = ("search", "start"), output / "optimizers.csv"
    trace = read_rows(path, (*keys, "evaluation"))
    starts = 2 if quick else STARTS
    wanted = [(name, k) for name in SEARCHES for k in range(1 if "ann" in name else starts)]
    for name, number in missing(trace, keys, wanted):
        rows = run_search(name, number, quick)
        trace = append(trace, rows, path)
        print(f"{name}, start {number}: {rows[-1]['evaluations']} evaluations", flush=True)
    draw_searches(trace).savefig(output / "optimizers.png")
    return trace


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


def describe_searches(trace: pd.DataFrame) -> str:
    """Write as Markdown how soon searches are near the best end, as medians over the starts."""
    heads = ["search", "starts", f"ends within {NEAR} nats", "evaluations until then"]
    heads += ["CPU s until then", "evaluations in all", "worst end, nats below the best"]
    best, rows = trace["penalised"].max(), []
    for name, part in trace.groupby("search", sort=False):
        ends = part.groupby("start").last()
        near = part[part["penalised"] > best - NEAR].groupby("start").first()
        rows.append(
            [
                name,
                len(ends),
                len(near),
                f"{near['evaluation'].median():.0f}" if len(near) else "",
                f"{near['cpu_seconds'].median():.1f}" if len(near) else "",
                f"{ends['evaluations'].median():.0f}",
                f"{best - ends['penalised'].min():.2f}",
            ]
        )
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


def draw_searches(trace: pd.DataFrame) -> Figure:
    """Draw how far each search is from the best end, against its evaluations."""
    figure = new_figure(6.4, 4.2)
    ax = figure.subplots()
    best = trace["penalised"].max()
    colours = dict(zip(SEARCHES, (BLUE, FAINT, GREEN, RED, ORANGE), strict=True))
    for (name, number), part in trace.groupby(["search", "start"], sort=False):
        gap = np.maximum(best - part["penalised"], 0.01)  # what the file resolves
        label = None if number else name
        ax.step(part["evaluation"], gap, where="post", label=label, color=colours[name], lw=1.2)
        ax.plot(part["evaluation"].iloc[-1], gap.iloc[-1], "o", markersize=4, color=colours[name])
    ax.set(xscale="log", yscale="log", xlabel="evaluations of the likelihood")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_ylabel("nats below the best penalised likelihood")
    ax.legend(frameon=False, fontsize=9, loc="center right", bbox_to_anchor=(0.94, 0.5))
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
    searches = describe_searches(compare_searches(options.output, options.quick))
    write_text(options.output / "optimizers.md", searches)
    print(describe(table), searches, sep="\n")


if __name__ == "__main__":
    main()
