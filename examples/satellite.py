"""Fill the gaps that clouds leave in a satellite image: 105,000 values, one call each way.

Run as ``python examples/satellite.py``; it takes some minutes. The image is simulated, so the truth
under the clouds is known: chlorophyll on 500 x 300 cells of a kilometre, log-normal, with a short
and a long range and a nugget, of which clouds hide 30 %. The image is chunked, as if it were read
from a file. One call fits, and one predicts on the image itself: cells that were seen keep their
values.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Sequence
from pathlib import Path

# Before numpy: CPU seconds are those of one thread.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.colors import LogNorm
from scipy.ndimage import distance_transform_edt

import xcopula  # noqa: F401, registers the accessor .mtcopula

RANGES = {6.0: 0.4, 50.0: 0.55}  # km: share of the variance; the rest is nugget
CLOUDS = 0.3
EDGES = (1, 2, 4, 8, 16, np.inf)  # km from the nearest cell that was seen
LEVELS = (np.arange(40) + 0.5) / 40
STRUCTURES = (1, 2)


def simulate(rng: np.random.Generator, shape: tuple[int, int], length: float) -> np.ndarray:
    """Simulate a Matern 3/2 field of unit variance on cells of a kilometre, by its spectrum."""
    # Twice the size, because a field that is made by FFT repeats itself.
    size = tuple(2 * n for n in shape)
    frequency = np.hypot(*np.meshgrid(*(np.fft.fftfreq(n) for n in size), indexing="ij"))
    density = (3.0 / length**2 + (2.0 * np.pi * frequency) ** 2) ** -2.5
    density *= density.size / density.sum()
    noise = np.fft.fft2(rng.normal(size=size))
    return np.fft.ifft2(noise * np.sqrt(density)).real[: shape[0], : shape[1]]


def make_image(seed: int, shape: tuple[int, int]) -> xr.Dataset:
    """Return the chlorophyll that is there, and what the satellite saw of it."""
    rng = np.random.default_rng(seed)
    z = np.sqrt(1.0 - sum(RANGES.values())) * rng.normal(size=shape)
    for length, share in RANGES.items():
        z += np.sqrt(share) * simulate(rng, shape, length)
    cover = simulate(rng, shape, 25.0) + 0.3 * simulate(rng, shape, 6.0)
    truth = np.exp(-0.5 + 0.6 * z)
    seen = np.where(cover > np.quantile(cover, 1.0 - CLOUDS), np.nan, truth)
    attrs = {"units": "mg m-3", "long_name": "chlorophyll a"}
    km = {"units": "km"}
    return xr.Dataset(
        {"truth": (("y", "x"), truth, attrs), "chlorophyll": (("y", "x"), seen, attrs)},
        {
            "y": ("y", np.arange(shape[0], dtype=float), {**km, "axis": "Y"}),
            "x": ("x", np.arange(shape[1], dtype=float), {**km, "axis": "X"}),
        },
    )


def fill(image: xr.Dataset, **options: object) -> tuple[xr.DataArray, dict[str, float]]:
    """Fit the image and predict it: quantiles of every cell, and the CPU seconds of both."""
    began = time.process_time()
    model = image.mtcopula.fit("chlorophyll", **options)
    fitted = time.process_time()
    # The image is chunked, so the prediction is too.
    quantiles = model.posterior(image).quantile(LEVELS).compute()
    print(model.summary(), "\n")
    return quantiles, {"fit": fitted - began, "predict": time.process_time() - fitted}


def score(quantiles: xr.DataArray, image: xr.Dataset) -> pd.DataFrame:
    """Score the cells under clouds, by their distance from the nearest cell that was seen."""
    hidden = image["chlorophyll"].isnull().values
    truth = image["truth"].values
    distance = distance_transform_edt(hidden)
    gaps = quantiles.values - truth
    level = LEVELS[:, None, None]
    # The CRPS is twice the mean over levels of the quantile score.
    crps = 2.0 * np.mean(np.where(gaps > 0.0, 1.0 - level, -level) * gaps, axis=0)
    lower, median, upper = quantiles.interp(quantile=[0.05, 0.5, 0.95]).values
    inside = (lower <= truth) & (truth <= upper)
    rows = []
    for low, high in [*itertools.pairwise(EDGES), (1, np.inf)]:
        which = hidden & (distance >= low) & (distance < high)
        if which.any():
            rows.append(
                {
                    "from": low,
                    "to": high,
                    "cells": int(which.sum()),
                    "rmse": float(np.sqrt(np.mean((median - truth)[which] ** 2))),
                    "crps": float(crps[which].mean()),
                    "coverage": float(100.0 * inside[which].mean()),
                    "width": float((upper - lower)[which].mean()),
                }
            )
    return pd.DataFrame(rows)


def describe(table: pd.DataFrame, spent: dict[str, dict[str, float]]) -> str:
    """Write the scores of both models as Markdown."""
    heads = ["km from what was seen", "cells", "RMSE", "CRPS", "coverage of 90 % (%)"]
    heads = [*heads[:2], *(f"{h}, {s}" for h in heads[2:] for s in spent)]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for (low, high), part in table.groupby(["from", "to"], sort=False):
        name = f"{low:g} to {high:g}" if np.isfinite(high) else f"{low:g} or more"
        cells = ["all gaps" if (low, high) == (1, np.inf) else name]
        cells.append(f"{part['cells'].iloc[0]:,}")
        by_model = part.set_index("model")
        for column, digits in (("rmse", 3), ("crps", 4), ("coverage", 1)):
            cells += [f"{by_model.loc[s, column]:.{digits}f}" for s in spent]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "CPU seconds, one thread:", ""]
    lines += [f"- {s}: fit {t['fit']:.0f}, predict {t['predict']:.0f}" for s, t in spent.items()]
    return "\n".join(lines) + "\n"


def draw(image: xr.Dataset, quantiles: xr.DataArray) -> plt.Figure:
    """Draw what was seen, the filled image, the width of its intervals, and the truth."""
    lower, median, upper = quantiles.interp(quantile=[0.05, 0.5, 0.95])
    low, high = np.nanquantile(image["truth"], [0.01, 0.99])
    colours = {"cmap": "viridis", "norm": LogNorm(low, high)}
    panels = [
        ("Seen between clouds", image["chlorophyll"], colours, "mg m$^{-3}$"),
        ("Filled: median", median, colours, "mg m$^{-3}$"),
        ("The truth", image["truth"], colours, "mg m$^{-3}$"),
        (
            "90 % interval: upper end over lower end",
            (upper / lower).where(image["chlorophyll"].isnull()),
            {"cmap": "magma_r", "vmin": 1.0},
            "ratio",
        ),
    ]
    figure, axes = plt.subplots(2, 2, figsize=(11.5, 7.2), layout="constrained")
    for ax, (title, values, style, label) in zip(axes.flat, panels, strict=True):
        ax.set_facecolor("0.85")
        drawn = ax.pcolormesh(image["x"], image["y"], values, rasterized=True, **style)
        figure.colorbar(drawn, ax=ax, label=label, shrink=0.85)
        ax.set(title=title, xlabel="x (km)", ylabel="y (km)", aspect="equal")
    figure.suptitle("Chlorophyll under clouds: a simulated image, 30 % hidden")
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, fill, score and draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, help="folder to write to; default docs/satellite")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a small image, in build/satellite")
    options = parser.parse_args(arguments)
    output = options.output or Path("build/satellite" if options.quick else "docs/satellite")
    output.mkdir(parents=True, exist_ok=True)
    image = make_image(options.seed, (60, 100) if options.quick else (300, 500))
    fixed = {"marginals": "lognormal", "kernels": "matern32"} if options.quick else {}
    chunked = image.chunk({"y": 100, "x": 100})
    tables, spent = [], {}
    for structures in STRUCTURES:
        name = f"structures={structures!r}"
        quantiles, spent[name] = fill(chunked, structures=structures, **fixed)
        tables.append(score(quantiles, image).assign(model=name))
    table = pd.concat(tables)
    table.to_csv(output / "gaps.csv", index=False, float_format="%.5g")
    text = describe(table, spent)
    (output / "gaps.md").write_text(text, encoding="utf-8")
    print(text)
    draw(image, quantiles).savefig(output / "gaps.png", dpi=110)
    print(f"Wrote {output / 'gaps.png'}.")


if __name__ == "__main__":
    main()
