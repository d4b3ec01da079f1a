"""What the scripts of this folder share: seasons, spatial blocks, scores, tables."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

# Before numpy: fits run side by side, with one thread of BLAS each.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import xarray as xr

import xcopula
from xcopula import CopulaModel

SPRING = (3, 4, 5)
_LEVELS = (np.arange(100) + 0.5) / 100.0


def read_spring(year: int) -> xr.Dataset:
    """Return spring totals of precipitation and spring means of temperature at the stations."""
    climate = xcopula.datasets.colorado().sel(time=str(year))
    climate = climate.sel(time=climate["time"].dt.month.isin(SPRING))
    total = climate[["ppt"]].sum("time", skipna=False, keep_attrs=True)
    return total.merge(climate[["tmin", "tmax"]].mean("time", skipna=False, keep_attrs=True))


def draw_blocks(data: xr.Dataset, variable: str, seed: int, size: float = 1.0) -> np.ndarray:
    """Mark the stations to leave out: squares of a degree, until they hold a quarter of the values.

    The squares' origin and their order are drawn at random.
    """
    rng = np.random.default_rng(seed)
    origin = rng.uniform(0.0, size, 2)
    corners = np.floor((np.column_stack([data["lon"], data["lat"]]) + origin) / size)
    _, square = np.unique(corners, axis=0, return_inverse=True)
    known = data[variable].notnull().values
    left_out = np.zeros(known.size, bool)
    for chosen in rng.permutation(np.unique(square[known])):
        left_out |= square == chosen
        if (left_out & known).sum() >= known.sum() / 4:
            break
    return left_out


def score(model: CopulaModel, tests: xr.Dataset) -> dict[str, float]:
    """Return mean CRPS, mean absolute error and coverage of the 90 % interval, in per cent."""
    name = model.tasks[0]
    truth = tests[name].values
    posterior = model.posterior(tests)
    gaps = posterior.quantile(_LEVELS).values - truth
    # The CRPS is twice the mean over levels of the quantile score.
    losses = np.where(gaps > 0.0, 1.0 - _LEVELS[:, None], -_LEVELS[:, None]) * gaps
    lower, upper = posterior.interval(0.9).values
    return {
        "crps": float(2.0 * losses.mean()),
        "mae": float(np.abs(posterior.median().values - truth).mean()),
        "coverage": float(100.0 * ((lower <= truth) & (truth <= upper)).mean()),
    }


def run_all(function: Any, jobs: Sequence[Any], workers: int) -> pd.DataFrame:
    """Run jobs, each of which gives rows of a table, in order."""
    if workers == 1:
        results: Iterable[Any] = map(function, jobs)
        return pd.DataFrame([row for rows in results for row in rows])
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return pd.DataFrame([row for rows in pool.map(function, jobs) for row in rows])


def mean_and_error(values: pd.Series, digits: int, sign: str = "") -> str:
    """Return a mean with its standard error."""
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():{sign}.{digits}f} ± {error:.{digits}f}"


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    return [
        "| " + " | ".join(map(str, line)) + " |" for line in [heads, ["---"] * len(heads), *rows]
    ]


def read_arguments(
    doc: str | None, arguments: Sequence[str] | None, *extra: tuple[str, dict[str, Any]]
) -> argparse.Namespace:
    """Read the options that the scripts have, and some of their own; make the folder."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--output", type=Path, help="folder to write to; default docs/colorado")
    parser.add_argument("--workers", type=int, default=2, help="processes that run side by side")
    parser.add_argument("--quick", action="store_true", help="a small version, in build/colorado")
    for name, settings in extra:
        parser.add_argument(name, **settings)
    options = parser.parse_args(arguments)
    options.output = options.output or Path("build/colorado" if options.quick else "docs/colorado")
    options.output.mkdir(parents=True, exist_ok=True)
    return options
