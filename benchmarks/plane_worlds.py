"""Simulated worlds of one variable in the plane, and tables of paired scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from xcopula.kernels import KERNELS

FloatArray = np.ndarray
Row = dict[str, object]

HIDDEN = 200
# One kernel each; of the others it is drawn.
ROUGHNESS = {"rough": "matern12", "middle": "matern32", "smooth": "matern52", "smoothest": "se"}
KINDS = (*ROUGHNESS, "two ranges", "two ranges, rough and smooth", "directional", "log-normal")
KINDS += ("gap", "clustered")
# A value beyond the end of a law has no density: it counts as one that is very small.
LEAST_LOG_DENSITY = -20.0


@dataclass(frozen=True)
class World:
    """Values at sites (n, 2) in the unit square, and values that are hidden."""

    sites: FloatArray
    values: FloatArray
    hidden_sites: FloatArray
    hidden: FloatArray


def correlations(kind: str, drawn: str, distance: FloatArray, length: float) -> FloatArray:
    """Return the correlations of a kind of world at distances (n, n)."""

    def of(kernel: str, scale: float) -> FloatArray:
        return KERNELS[kernel].profile((distance / scale).ravel())[0].reshape(distance.shape)

    if kind == "two ranges":
        return 0.5 * of("matern32", 0.4 * length) + 0.5 * of("matern32", 4.0 * length)
    if kind == "two ranges, rough and smooth":
        return 0.5 * of("matern12", 0.5 * length) + 0.5 * of("matern52", 4.0 * length)
    return of(ROUGHNESS.get(kind, drawn), length)


def world(kind: str, size: int, seed: int) -> World:
    """Simulate a world of a kind."""
    rng = np.random.default_rng([seed, size, KINDS.index(kind)])
    sites, hidden = rng.random((size, 2)), rng.random((HIDDEN, 2))
    if kind == "gap":  # a disc without sites, where all that is hidden lies
        many = rng.random((4 * size, 2))
        sites = many[np.hypot(*(many - 0.5).T) > 0.3][:size]
        angle, radius = 2.0 * np.pi * rng.random(HIDDEN), 0.3 * np.sqrt(rng.random(HIDDEN))
        hidden = 0.5 + np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    if kind == "clustered":
        centres = rng.random((max(4, size // 12), 2))
        around = centres[rng.integers(len(centres), size=size)]
        sites = np.clip(around + 0.03 * rng.normal(size=(size, 2)), 0.0, 1.0)
    places = np.vstack([sites, hidden])
    length, nugget = 0.08 * 4.0 ** rng.random(), 0.02 * 10.0 ** rng.random()
    if kind == "directional":
        angle = np.pi * rng.random()
        turned = places @ [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        places = turned * [1.0, 3.0]
    distance = np.linalg.norm(places[:, None] - places, axis=-1)
    kernel = ("matern12", "matern32", "matern52")[rng.integers(3)]
    signal = correlations(kind, kernel, distance, length)
    covariance = (1.0 - nugget) * signal + (nugget + 1e-9) * np.eye(len(places))
    z = np.linalg.cholesky(covariance) @ rng.normal(size=len(places))
    values = np.exp(0.7 * z) if kind == "log-normal" else 10.0 + 2.0 * z
    return World(sites, values[: len(sites)], hidden, values[len(sites) :])


def paired(rows: pd.DataFrame, worlds: list[str], base: str) -> pd.DataFrame:
    """Return what each rule gains on another in each world: CRPS in per cent, and log score."""
    known = rows[rows["rule"] == base].set_index(worlds)[["crps", "log_score"]]
    both = rows.merge(known, left_on=worlds, right_index=True, suffixes=("", "_base"))
    return both.assign(
        change=100.0 * (both["crps"] / both["crps_base"] - 1.0),
        gain=both["log_score"] - both["log_score_base"],
    )


def means(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return means over worlds with the standard errors of differences, in the order of rows."""
    found = rows.groupby(by, sort=False).agg(
        worlds=("change", "size"),
        change=("change", "mean"),
        change_error=("change", "sem"),
        gain=("gain", "mean"),
        gain_error=("gain", "sem"),
        coverage=("coverage", lambda c: 100.0 * c.mean()),
    )
    return found.reset_index()


def to_text(table: pd.DataFrame, by: dict[str, str]) -> str:
    """Return a table as Markdown, with columns that tell rows apart and their heads."""
    heads = [*by.values(), "worlds", "CRPS", "log score", "coverage"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in table.to_dict("records"):
        cells = [
            *(str(row[name]) for name in by),
            str(row["worlds"]),
            f"{row['change']:+.2f} ± {row['change_error']:.2f} %",
            f"{row['gain']:+.3f} ± {row['gain_error']:.3f}",
            f"{row['coverage']:.1f} %",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def gather(
    path: Path | None, todo: Sequence[tuple], key: list[str], run: Callable, workers: int
) -> pd.DataFrame:
    """Run worlds that are not in the file yet, and add their rows as they come."""
    rows = [pd.read_csv(path)] if path is not None and path.exists() else []
    done = set(rows[0][key].itertuples(index=False, name=None)) if rows else set()
    missing = [about for about in todo if about not in done]
    with ExitStack() as pools:
        each: Callable = map
        if workers > 1:
            each = pools.enter_context(ProcessPoolExecutor(workers)).map
        for new in each(run, missing):
            rows.append(pd.DataFrame(new))
            if path is not None:
                rows[-1].to_csv(path, mode="a", header=not path.exists(), index=False)
    return pd.concat(rows, ignore_index=True)
