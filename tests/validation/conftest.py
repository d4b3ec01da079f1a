"""Data for cross-validation: tiny, with given laws and kernels."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

LAWS = {"metal": "lognormal", "proxy": "normal"}
QUICK = {"marginals": LAWS, "kernels": "matern32", "restarts": 0, "method": "full"}


@pytest.fixture(scope="session")
def network() -> xr.Dataset:
    """Eight named stations with six days each; level is secondary, known everywhere."""
    rng = np.random.default_rng(1)
    level = rng.normal(size=(8, 6)) + rng.normal(size=(8, 1))
    flow = level + 0.5 * rng.normal(size=(8, 6))
    flow[2, 3] = np.nan
    return xr.Dataset(
        {
            "flow": (("station", "time"), flow, {"units": "m3 s-1"}),
            "level": (("station", "time"), level, {"units": "m"}),
        },
        coords={
            "station": [f"s{k}" for k in range(8)],
            "time": np.datetime64("2024-05-01", "ns") + np.arange(6) * np.timedelta64(1, "D"),
            "x": ("station", rng.uniform(0, 10, 8), {"units": "km", "axis": "X"}),
            "y": ("station", rng.uniform(0, 10, 8), {"units": "km", "axis": "Y"}),
        },
    )
