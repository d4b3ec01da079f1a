"""Small labelled data for tests of the labels layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

TEN = np.linspace(0.0, 9.0, 10)
DATES = np.datetime64("2000-01-01", "ns") + np.arange(10) * np.timedelta64(1, "D")

EAST = {"units": "degrees_east", "standard_name": "longitude"}
NORTH = {"units": "degrees_north", "standard_name": "latitude"}


def dataset(attrs: dict[str, dict[str, Any]] | None = None, **coords: Any) -> xr.Dataset:
    """Ten sites with the named coordinates, and a variable ``v``."""
    attrs = attrs or {}
    columns = {n: ("site", np.asarray(v), attrs.get(n, {})) for n, v in coords.items()}
    return xr.Dataset({"v": ("site", np.arange(10.0))}, coords=columns)


def turned(lon: np.ndarray, lat: np.ndarray, rotation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Turn places on the globe, in degrees, by a rotation matrix."""
    u, v = np.deg2rad(lon), np.deg2rad(lat)
    points = rotation @ np.stack([np.cos(v) * np.cos(u), np.cos(v) * np.sin(u), np.sin(v)])
    return (
        np.rad2deg(np.arctan2(points[1], points[0])),
        np.rad2deg(np.arctan2(points[2], np.hypot(points[0], points[1]))),
    )


def random_rotation(seed: int) -> np.ndarray:
    """Draw a rotation of space."""
    q, r = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    q *= np.sign(np.diag(r))
    return q * np.linalg.det(q)


def stations(seed: int = 0, size: int = 40) -> xr.Dataset:
    """Draw ``rain`` (gamma-like) and ``warmth`` at stations of 8 x 6 degrees, with elevation."""
    rng = np.random.default_rng(seed)
    lon, lat = rng.uniform([4.0, 44.0], [12.0, 50.0], (size, 2)).T
    elevation = np.round(rng.uniform(100.0, 2500.0, size), 1)
    field = np.sin(lon) + np.cos(0.8 * lat)
    warmth = 25.0 - 0.006 * elevation + 1.5 * field + rng.normal(scale=0.4, size=size)
    rain = np.exp(3.0 + 0.0003 * elevation + 0.4 * field + rng.normal(scale=0.2, size=size))
    return xr.Dataset(
        {
            "rain": (
                "station",
                rain,
                {
                    "units": "mm",
                    "long_name": "precipitation",
                    "standard_name": "precipitation_amount",
                    "cell_methods": "time: sum",
                    "history": "made up",
                },
            ),
            "warmth": ("station", warmth, {"units": "degree_Celsius"}),
        },
        coords={
            "station": [f"s{k:02d}" for k in range(size)],
            "lon": ("station", lon, EAST),
            "lat": ("station", lat, NORTH),
            "elevation": ("station", elevation, {"units": "m"}),
        },
    )


def daily(seed: int = 0, size: int = 12, days: int = 8) -> xr.Dataset:
    """Draw ``level`` at stations over days, smooth in space and time."""
    rng = np.random.default_rng(seed)
    lon, lat = rng.uniform([4.0, 44.0], [12.0, 50.0], (size, 2)).T
    when = np.arange(days) * np.timedelta64(3, "D") + np.datetime64("2001-03-01", "ns")
    wave = np.cos(np.arange(days) / 2.0)
    level = np.add.outer(np.sin(lon) + np.cos(lat), wave) + rng.normal(scale=0.2, size=(size, days))
    return xr.Dataset(
        {"level": (("station", "time"), level)},
        coords={"lon": ("station", lon, EAST), "lat": ("station", lat, NORTH), "time": when},
    )
