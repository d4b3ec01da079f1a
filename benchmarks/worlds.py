"""Simulated worlds of any size, with known parameters: Gaussian fields made of random waves.

A wave has a frequency drawn from the spectral density of the kernel, so that many of them have its
correlation. On an outer product of places (rows and columns of a grid, stations and times) a sum of
waves is a matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

WAVES = 4096
KM = {"units": "km"}


def frequencies(rng: np.random.Generator, nu: float, length: float, dimension: int) -> np.ndarray:
    """Draw frequencies (waves, dimension) of a Matern kernel: its spectral density is a t law."""
    normal = rng.normal(size=(WAVES, dimension))
    return normal / np.sqrt(rng.chisquare(2.0 * nu, (WAVES, 1)) / (2.0 * nu)) / length


def waves(rng: np.random.Generator, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Sum waves over an outer product, given their phases (waves, r) and (waves, c) there."""
    amplitude = rng.normal(size=WAVES) + 1j * rng.normal(size=WAVES)
    left = np.exp(1j * rows.T) * amplitude
    return np.asarray((left @ np.exp(1j * columns)).real / np.sqrt(WAVES))


def plane(rng: np.random.Generator, size: int, nu: float, length: float) -> np.ndarray:
    """Simulate a field (size, size) on the unit square."""
    w = frequencies(rng, nu, length, 2)
    axis = (np.arange(size) + 0.5) / size
    return waves(rng, w[:, :1] * axis, w[:, 1:] * axis)


def panel(
    rng: np.random.Generator, places: np.ndarray, times: np.ndarray, nu: float, lengths: tuple
) -> np.ndarray:
    """Simulate a field (stations, times) whose correlation is a product of space and time."""
    space, time = frequencies(rng, nu, lengths[0], 2), frequencies(rng, nu, lengths[1], 1)
    return waves(rng, space @ places.T, time * times)


def mix(
    rng: np.random.Generator,
    fields: list[np.ndarray],
    correlation: float,
    common: np.ndarray | None = None,
    shared: float = 0.0,
) -> list[np.ndarray]:
    """Return fields whose correlation with the first, and through it with each other, is given.

    A common field takes a share of the variance that the first does not explain: the others are
    then correlated beyond what the first tells of them.
    """
    rest = np.sqrt(1.0 - correlation**2)
    own = fields[1:]
    if common is not None:
        own = [np.sqrt(shared) * common + np.sqrt(1.0 - shared) * f for f in own]
    return [fields[0], *(correlation * fields[0] + rest * f for f in own)]


@dataclass(frozen=True)
class World:
    """Scattered values of several variables, the truth on the grid that they come from."""

    data: xr.Dataset
    truth: xr.Dataset


def scattered(
    seed: int,
    values: int,
    variables: int = 1,
    *,
    length: float = 0.05,
    nugget: float = 0.1,
    correlation: float = 0.8,
    scale: float = 0.5,
    nu: float = 1.5,
    shared: float = 0.0,
) -> World:
    """Take values of each variable at common sites, chosen among the nodes of a grid.

    Variables are log-normal, with this scale; sites are in a square of 100 km. What the first
    variable does not explain of the others, these share to this part.
    """
    rng = np.random.default_rng(seed)
    size = max(300, int(1.5 * np.sqrt(values)))
    fields = [plane(rng, size, nu, length) for _ in range(variables)]
    common = plane(rng, size, nu, length) if shared else None
    signals = mix(rng, fields, correlation, common, shared)
    chosen = rng.permutation(size * size)[:values]
    axis = 100.0 * (np.arange(size) + 0.5) / size
    y, x = np.unravel_index(chosen, (size, size))
    coords = {
        "x": ("site", axis[x], {**KM, "axis": "X"}),
        "y": ("site", axis[y], {**KM, "axis": "Y"}),
    }
    noisy = {}
    for k, signal in enumerate(signals):
        z = np.sqrt(1.0 - nugget) * signal + np.sqrt(nugget) * rng.normal(size=signal.shape)
        noisy[f"v{k}"] = np.exp(scale * z)
    return World(
        xr.Dataset({n: ("site", f.flat[chosen]) for n, f in noisy.items()}, coords),
        xr.Dataset(
            {n: (("y", "x"), f) for n, f in noisy.items()},
            {"x": ("x", axis, {**KM, "axis": "X"}), "y": ("y", axis, {**KM, "axis": "Y"})},
        ),
    )


def stations(
    seed: int,
    count: int,
    days: int,
    variables: int = 1,
    *,
    lengths: tuple[float, float] = (0.15, 12.0),
    nugget: float = 0.1,
    correlation: float = 0.8,
    nu: float = 1.5,
) -> xr.Dataset:
    """Simulate daily values at stations in a square of 100 km, on dims (station, time)."""
    rng = np.random.default_rng(seed)
    places, times = rng.random((count, 2)), np.arange(days, dtype=float)
    fields = [panel(rng, places, times, nu, lengths) for _ in range(variables)]
    data = {}
    for k, signal in enumerate(mix(rng, fields, correlation)):
        noise = rng.normal(size=signal.shape)
        z = np.sqrt(1.0 - nugget) * signal + np.sqrt(nugget) * noise
        data[f"v{k}"] = (("station", "time"), 10.0 + 3.0 * z)
    return xr.Dataset(
        data,
        {
            "x": ("station", 100.0 * places[:, 0], {**KM, "axis": "X"}),
            "y": ("station", 100.0 * places[:, 1], {**KM, "axis": "Y"}),
            "time": np.datetime64("2001-01-01", "ns") + np.arange(days) * np.timedelta64(1, "D"),
        },
    )
