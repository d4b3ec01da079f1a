"""Worlds whose correlation is longer in one direction, drawn from the definition."""

from __future__ import annotations

import numpy as np
import xarray as xr

KM = {"units": "km"}


def turned_signal(places, bearing, ratio, length):
    """Return Matern 3/2 correlations of places (n, 2), east and north, longer along a bearing."""
    b = np.deg2rad(bearing)
    along, across = places @ [np.sin(b), np.cos(b)], places @ [np.cos(b), -np.sin(b)]
    root = np.sqrt(ratio)
    mapped = np.stack([along / (length * root), across / (length / root)], axis=1)
    r = np.sqrt(3.0) * np.linalg.norm(mapped[:, None] - mapped[None], axis=2)
    return (1.0 + r) * np.exp(-r)


def turned_field(places, bearing, ratio, *, length, nugget=0.05, draws=1, seed=0):
    """Draw scores (n, draws) of such a correlation and a nugget."""
    signal = turned_signal(places, bearing, ratio, length)
    matrix = (1.0 - nugget) * signal + nugget * np.eye(len(places))
    noise = np.random.default_rng(seed).normal(size=(len(places), draws))
    return np.linalg.cholesky(matrix) @ noise


def world(size, bearing, ratio, *, seed=0, length=15.0, extent=100.0, variables=1, units=KM):
    """Return variables v0, v1, ... at sites of a square plane, each a field of its own."""
    places = np.random.default_rng(seed).uniform(0.0, extent, (size, 2))
    z = turned_field(places, bearing, ratio, length=length, draws=variables, seed=seed + 1)
    return xr.Dataset(
        {f"v{k}": ("site", np.exp(0.5 * z[:, k])) for k in range(variables)},
        coords={"x": ("site", places[:, 0], units), "y": ("site", places[:, 1], units)},
    )
