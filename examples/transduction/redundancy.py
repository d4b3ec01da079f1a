"""Show what redundant secondaries do to intervals when all parameters are known.

Run as ``python examples/transduction/redundancy.py``. A primary is known at some sites, its
secondaries there and at the sites to predict. In one scene the secondaries are near-copies of one
another, in the next each has an error of its own, so that the theorem's assumption is true; in the
last they are known only where the primary is, and so say nothing of the sites to predict. Nothing
is fitted: models condition on the parameters that drew the data. Rows in the table are kept.
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import ndtri

from xcopula.kernels import resolve_kernel
from xcopula.kernels.correlation import parameters_of
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import resolve as resolve_marginal
from xcopula.methods import Full, Method, Transductive
from xcopula.process import Moments, Process, Sample, Targets
from xcopula.solvers import Exact

FloatArray = npt.NDArray[np.float64]

KNOWN, TESTS = 100, 100  # sites with the primary, and sites at which it is predicted
LENGTH, SIGNAL = 0.2, 0.8  # length scale, in extents of the field; share of the signal in variance
WITH_PRIMARY = 0.8  # correlation of a secondary with the primary
SCENES = {
    # correlation between secondaries, and whether they are known where the primary is predicted
    "near-copies": (0.98, True),
    "errors of their own": (WITH_PRIMARY**2, True),
    "not where predicted": (WITH_PRIMARY**2, False),
}
RULES = ("report", "calibrated")
METHODS: dict[str, Method] = {"full": Full(), **{rule: Transductive(rule) for rule in RULES}}
STYLES = {
    "full": ("#222222", "o", "-"),
    "report": ("#c1440e", "s", "-"),
    "calibrated": ("#31688e", "^", "-"),
}


def known_process(tasks: int, between: float) -> tuple[Process, FloatArray]:
    """Return a process whose secondaries correlate so much between each other, and its theta."""
    matrix = np.full((tasks, tasks), between)
    matrix[0, :] = matrix[:, 0] = WITH_PRIMARY
    np.fill_diagonal(matrix, 1.0)
    kernels = (resolve_kernel("matern32"),) * tasks
    covariance = Covariance(kernels, (InputGroup(2),), coupling="icm")
    theta = np.zeros(covariance.size)
    covariance.part(theta, "length")[:] = np.log(LENGTH)
    covariance.part(theta, "logit")[:] = np.log(SIGNAL / (1.0 - SIGNAL))
    covariance.part(theta, "correlation")[:] = parameters_of(matrix)
    covariance.part(theta, "noise_correlation")[:] = parameters_of(matrix)
    process = Process(covariance, (resolve_marginal("normal")(0.0, 1.0),) * tasks)
    return process, process.join(theta)


def draw(process: Process, theta: FloatArray, seed: int) -> tuple[FloatArray, FloatArray]:
    """Draw sites (n, 2), and the scores (t, n) of all tasks at them."""
    rng = np.random.default_rng(seed)
    sites = rng.random((KNOWN + TESTS, 2)) - 0.5
    r = np.sqrt(3.0) * np.linalg.norm(sites[:, None] - sites[None], axis=-1) / LENGTH
    space = SIGNAL * (1.0 + r) * np.exp(-r) + (1.0 - SIGNAL) * np.eye(len(sites))
    tasks = process.covariance.matrices(process.split(theta)[0]).sum(axis=0)
    # Rows are drawn in order: with more tasks the first ones stay as they were.
    noise = rng.normal(size=(len(tasks), len(sites)))
    return sites, np.linalg.cholesky(tasks) @ noise @ np.linalg.cholesky(space).T


def predictions(tasks: int, scene: str, seed: int) -> tuple[dict[str, Moments], FloatArray]:
    """Predict the primary at the test sites by every rule; return the truth too."""
    between, everywhere = SCENES[scene]
    process, theta = known_process(tasks, between)
    sites, scores = draw(process, theta, seed)
    sizes = [KNOWN] + [len(sites) if everywhere else KNOWN] * (tasks - 1)
    numbers = np.arange(len(sites))
    sample = Sample.of(
        [sites[:n] for n in sizes],
        [w[:n] for w, n in zip(scores, sizes, strict=True)],
        sites=np.concatenate([numbers[:n] for n in sizes]),
    )
    targets = Targets(np.ascontiguousarray(sites[KNOWN:].T), numbers[KNOWN:])
    moments = {}
    for rule, method in METHODS.items():
        structure = method.prepare(Exact(), process, theta, sample)
        conditioned = method.condition(process, sample, structure, theta)
        moments[rule] = conditioned.moments(targets)
    return moments, scores[0, KNOWN:]


def replicate(tasks: int, scene: str, seed: int) -> Iterator[dict[str, object]]:
    """Yield the coverage and the error of every rule on one simulated data set."""
    half = ndtri(0.95)
    moments, truth = predictions(tasks, scene, seed)
    for rule, (mean, variance) in moments.items():
        error = truth - mean
        yield {
            "rule": rule,
            "coverage": 100.0 * np.mean(np.abs(error) <= half * np.sqrt(variance)),
            "mse": np.mean(error**2),
            "claimed": np.mean(variance),
        }


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Average over replicates; standard errors are over replicates as well."""
    groups = rows.groupby("rule", sort=False)
    count, rmse = groups.size(), np.sqrt(groups["mse"].mean())
    table = pd.DataFrame(
        {
            "replicates": count,
            "coverage": groups["coverage"].mean(),
            "coverage_se": groups["coverage"].std() / np.sqrt(count),
            "rmse": rmse,
            "rmse_se": groups["mse"].std() / np.sqrt(count) / (2.0 * rmse),
            "claimed_rmse": np.sqrt(groups["claimed"].mean()),
        }
    )
    return table.reset_index()


def run_all(most: int, replicates: int, path: Path) -> pd.DataFrame:
    """Run the scenes and numbers of tasks that are not in the table yet, and append them."""
    table = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["scene", "tasks"])
    done = set(zip(table["scene"], table["tasks"], strict=True))
    for scene, tasks in itertools.product(SCENES, range(2, most + 1)):
        if (scene, tasks) in done:
            continue
        rows = [row for seed in range(replicates) for row in replicate(tasks, scene, seed)]
        new = summarise(pd.DataFrame(rows))
        new.insert(0, "tasks", tasks)
        new.insert(0, "scene", scene)
        table = new if table.empty else pd.concat([table, new], ignore_index=True)
        table.to_csv(path, index=False, float_format="%.4f")
        print(f"{scene}: {tasks} tasks, {replicates} replicates", flush=True)
    return table


def draw_figure(table: pd.DataFrame) -> Figure:
    """Draw coverage above error, a column for each scene."""
    figure = Figure(figsize=(9.0, 5.2), layout="constrained", dpi=130)
    axes = figure.subplots(2, len(SCENES), sharex=True)
    for column, scene in zip(axes.T, SCENES, strict=True):
        own = table[table["scene"] == scene]
        for rule, (colour, marker, line) in STYLES.items():
            part = own[own["rule"] == rule]
            style = {"color": colour, "marker": marker, "linestyle": line, "markersize": 4.5}
            style |= {"linewidth": 1.4, "capsize": 2, "label": rule}
            if rule == "full":  # a ring that shows around what lies on it
                style |= {"markersize": 9.0, "markerfacecolor": "none"}
            column[0].errorbar(part["tasks"], part["coverage"], part["coverage_se"], **style)
            column[1].errorbar(part["tasks"], part["rmse"], part["rmse_se"], **style)
        column[0].axhspan(87.0, 93.0, color="#000000", alpha=0.07, linewidth=0)
        column[0].axhline(90.0, color="#777777", linewidth=0.8)
        column[0].set_title(f"secondaries: {scene}", fontsize=9.5)
        column[1].set_xlabel("number of tasks")
        column[0].set_ylim(min(85.0, table["coverage"].min() - 4.0), 95.0)
        centre, half = np.mean(column[1].get_ylim()), 0.5 * np.ptp(column[1].get_ylim())
        column[1].set_ylim(centre - max(half, 0.05), centre + max(half, 0.05))
        for ax in column:
            _tidy(ax)
    axes[0, 0].set_ylabel("coverage of the\n90 % interval (%)")
    axes[1, 0].set_ylabel("root mean square error\n(latent standard deviations)")
    axes[0, 0].legend(frameon=False, fontsize=8.5, loc="lower left")
    return figure


def _tidy(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#000000", alpha=0.1, linewidth=0.6)
    ax.xaxis.get_major_locator().set_params(integer=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("docs/transduction"))
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="few replicates, up to 3 tasks")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    most, replicates = (3, 3) if options.quick else (6, options.replicates)
    table = run_all(most, replicates, options.output / "redundancy.csv")
    draw_figure(table).savefig(options.output / "redundancy.png")
    print(table.to_string(index=False, float_format="%.3f"))


if __name__ == "__main__":
    main()
