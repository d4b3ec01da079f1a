"""What all tests share: this file's folder on the path, so that ``reference`` can be imported."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from threadpoolctl import threadpool_limits

import xcopula

FIXED = {"method": "full", "kernels": "matern32", "restarts": 0}


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Keep BLAS threads from waiting for each other over small matrices."""
    with threadpool_limits(1, user_api="blas"):
        yield


def simulate_pair(
    seed: int,
    size: int = 60,
    known: int = 40,
    *,
    length: float = 0.6,
    correlation: float = 0.85,
    nugget: float = 0.1,
) -> tuple[xr.Dataset, xr.Dataset]:
    """Draw ``metal`` (log-normal) and ``proxy`` (normal scale 2) on a 4 km x 3 km field.

    Returns the data, in which the metal is known at the first sites only, and the truth.
    """
    rng = np.random.default_rng(seed)
    sites = rng.uniform([0.0, 0.0], [4.0, 3.0], (size, 2))
    r = np.sqrt(3.0) * np.linalg.norm(sites[:, None] - sites[None], axis=-1) / length
    tasks = np.array([[1.0, correlation], [correlation, 1.0]])
    covariance = (1.0 - nugget) * np.kron(tasks, (1.0 + r) * np.exp(-r))
    z = np.linalg.cholesky(covariance + nugget * np.eye(2 * size)) @ rng.normal(size=2 * size)
    km = {"units": "km"}
    metal = {"units": "mg kg-1", "long_name": "metal in topsoil", "standard_name": "metal"}
    truth = xr.Dataset(
        {
            "metal": ("site", np.exp(0.3 + 0.5 * z[:size]), metal | {"history": "simulated"}),
            "proxy": ("site", 10.0 + 2.0 * z[size:], {"units": "1"}),
        },
        coords={
            "x": ("site", sites[:, 0], km | {"axis": "X"}),
            "y": ("site", sites[:, 1], km | {"axis": "Y"}),
        },
    )
    hidden = truth.assign(metal=truth["metal"].where(np.arange(size) < known))
    return hidden.assign(metal=hidden["metal"].assign_attrs(truth["metal"].attrs)), truth


@pytest.fixture(scope="session")
def simulate():
    """Give tests the simulator."""
    return simulate_pair


@pytest.fixture(scope="session")
def sites() -> xr.Dataset:
    """60 sites in the plane; the metal is known at 40 of them."""
    return simulate_pair(0)[0]


@pytest.fixture(scope="session")
def model(sites):
    """A two-task model on ``sites``; 100 observations in the plane."""
    return xcopula.fit(
        sites, "metal", "proxy", marginals={"metal": "lognormal", "proxy": "normal"}, **FIXED
    )


@pytest.fixture(scope="session")
def alone(sites):
    """A single-task model on ``sites``."""
    return xcopula.fit(sites, "metal", marginals="lognormal", **FIXED)


@pytest.fixture(scope="session")
def grid() -> xr.Dataset:
    """A small grid of the field, with dims (y, x) and no data."""
    return xr.Dataset(
        coords={
            "y": ("y", np.linspace(0.1, 2.9, 6), {"units": "km"}),
            "x": ("x", np.linspace(0.2, 3.8, 7), {"units": "km"}),
        }
    )
