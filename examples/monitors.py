"""Monitors with a dense secondary: fine dust from 40 monitors and a satellite.

Run as ``python examples/monitors.py``; it takes half a minute. Ten worlds are simulated, so the
truth is known everywhere. Dust was measured at 40 places. A satellite saw the optical depth of the
air on a coarser grid, with gaps under clouds. The two come in Datasets of their own, at places of
their own.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from satellite import simulate

import xcopula

MONITORS = 40
SECONDARIES: dict[str, tuple[str, ...]] = {"Monitors alone": (), "Monitors and satellite": ("aod",)}
SIGHT = 3  # the satellite sees every third cell of a kilometre
GIVEN: dict[str, Any] = {"marginals": "lognormal", "kernels": "matern32"}


def make_data(seed: int, shape: tuple[int, int]) -> tuple[xr.Dataset, xr.Dataset, xr.Dataset]:
    """Return the true dust, the monitors and what the satellite saw."""
    rng = np.random.default_rng(seed)
    dust, air, cover = (simulate(rng, shape, length) for length in (12.0, 12.0, 15.0))
    noise = rng.normal(size=(2, *shape))
    coords = {
        name: (name, np.arange(n, dtype=float), {"units": "km"})
        for name, n in zip(("y", "x"), shape, strict=True)
    }
    attrs = {"units": "ug m-3", "long_name": "PM10"}
    pm10 = np.exp(3.4 + 0.5 * (0.97 * dust + 0.25 * noise[0]))
    truth = xr.Dataset({"pm10": (("y", "x"), pm10, attrs)}, coords)
    depth = np.exp(-1.2 + 0.4 * (0.85 * dust + 0.45 * air + 0.25 * noise[1]))
    seen = np.where(cover < np.quantile(cover, 0.7), depth, np.nan)
    image = xr.Dataset({"aod": (("y", "x"), seen, {"long_name": "optical depth"})}, coords)
    cells = rng.permutation(pm10.size)[:MONITORS]
    stations = truth.stack(station=("y", "x")).isel(station=cells).reset_index("station")
    return truth, stations, image.isel(y=slice(None, None, SIGHT), x=slice(None, None, SIGHT))


def score(found: xr.DataArray, truth: xr.DataArray) -> tuple[float, float, float]:
    """Return the mean error of the median, the width of the 90 % intervals, and what they hold."""
    lower, median, upper = found.values
    inside = (lower <= truth.values) & (truth.values <= upper)
    return np.abs(median - truth.values).mean(), (upper - lower).mean(), 100.0 * inside.mean()


def draw(stations: xr.Dataset, image: xr.Dataset, maps: dict[str, xr.DataArray]) -> Figure:
    """Draw what was seen, the medians and the truth."""
    figure = Figure(figsize=(9.5, 6.2), layout="compressed")
    panels = list(figure.subplots(2, 2, sharex=True, sharey=True).flat)
    mesh = panels[0].pcolormesh(image["x"], image["y"], image["aod"], cmap="cividis")
    panels[0].plot(stations["x"], stations["y"], "o", ms=4, mfc="none", mec="black")
    panels[0].set_title("Optical depth, and where the monitors are", loc="left", fontsize=10)
    figure.colorbar(mesh, ax=panels[0], label="optical depth", shrink=0.8)
    style = {"cmap": "viridis", "vmin": 0.0, "vmax": 90.0, "rasterized": True}
    for ax, (title, field) in zip(panels[1:], maps.items(), strict=True):
        mesh = ax.pcolormesh(field["x"], field["y"], field.transpose("y", "x"), **style)
        ax.set_title(title, loc="left", fontsize=10)
        figure.colorbar(mesh, ax=ax, label="PM10, µg/m³", shrink=0.8, extend="max")
    for number, ax in enumerate(panels):
        ax.set_aspect("equal")
        ax.set(xlabel="km" if number > 1 else "", ylabel="" if number % 2 else "km")
        ax.tick_params(labelsize=8)
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit with and without the satellite, score both, draw the first world."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("docs/gallery"), help="folder")
    parser.add_argument("--quick", action="store_true", help="one world, and a small one")
    given = parser.parse_args(arguments)
    given.output.mkdir(parents=True, exist_ok=True)
    scores: dict[str, list[tuple[float, float, float]]] = {title: [] for title in SECONDARIES}
    for seed in range(1 if given.quick else 10):
        truth, stations, image = make_data(seed, (24, 36) if given.quick else (60, 90))
        data = {"pm10": stations["pm10"], "aod": image["aod"]}
        maps = {}
        for title, secondary in SECONDARIES.items():
            model = xcopula.fit(data, "pm10", secondary, **GIVEN)
            found = model.predict(truth[["y", "x"]], [0.05, 0.5, 0.95])["pm10"]
            found = found.transpose("quantile", "y", "x")
            scores[title].append(score(found, truth["pm10"]))
            maps[title] = found.sel(quantile=0.5)
        if seed == 0:
            picture = draw(stations, image, maps | {"Truth": truth["pm10"]})
            picture.savefig(given.output / "monitors.png", dpi=90)
    for title, rows in scores.items():
        error, width, held = np.mean(rows, axis=0)
        print(f"{title}: mean error {error:.1f}, 90 % intervals {width:.0f} µg/m³ wide, ", end="")
        print(f"which hold {held:.0f} %; {len(rows)} worlds")


if __name__ == "__main__":
    main()
