"""What all tests share: this file's folder on the path, so that ``reference`` can be imported."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import xarray as xr
from threadpoolctl import threadpool_limits

import xcopula
from xcopula.methods import CoKriging, Committee, Full, Method, Sparse, Transductive

# Models that are small and known: errors as they are, and one range in all directions.
PLAIN = {"kernels": "matern32", "uncertainty": "plugin", "anisotropy": False}
FIXED = {"method": "full", **PLAIN}

# Every method, with options for a hundred observations.
METHODS: dict[str, Method] = {
    "transductive": Transductive(),
    "full": Full(),
    "dtc": Sparse("dtc", inducing=40),
    "fitc": Sparse("fitc", inducing=40),
    "pitc": Sparse("pitc", inducing=40),
    "bcm": Committee(blocks=2),
    "cokriging": CoKriging(),
}


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Keep BLAS threads from waiting for each other over small matrices."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture
def no_search(monkeypatch):
    """Fail on any search for parameters: bad input must end the fit before it."""

    def refuse(*args, **kwargs):
        raise AssertionError("searched before the input was checked")

    for place in ("newton", "maximise"):
        monkeypatch.setattr(f"xcopula.fitting.{place}.minimise", refuse)


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


@pytest.fixture(scope="session")
def sloped(sites) -> xr.Dataset:
    """``sites`` with a height; the proxy grows with it."""
    height = np.random.default_rng(5).uniform(0.0, 2.0, sites.sizes["site"])
    proxy = sites["proxy"].copy(data=sites["proxy"].values + 3.0 * height)
    return sites.assign(
        proxy=proxy.assign_attrs(long_name="a proxy", history="made")
    ).assign_coords(height=("site", height, {"units": "km"}))


@pytest.fixture(scope="session")
def sloped_grid(grid) -> xr.Dataset:
    """The grid with a height."""
    height = 1.0 + np.cos(grid["y"]) * np.sin(grid["x"])
    return grid.assign(height=height.assign_attrs(units="km"))


@pytest.fixture(scope="session")
def fit_by(sloped):
    """Give tests a model of ``sloped`` by the name of its method, fitted once.

    The metal has a normal law, the proxy one that varies with height.
    """
    laws = {"metal": "normal", "proxy": xcopula.regress("normal", on="height")}
    options = {"marginals": laws, "coupling": "icm", **PLAIN}

    @functools.cache
    def fitted(name: str) -> xcopula.CopulaModel:
        return xcopula.fit(sloped, "metal", "proxy", method=METHODS[name], **options)

    return fitted


@pytest.fixture(scope="session")
def trio(sites) -> xr.Dataset:
    """``sites`` with a second secondary, ``other``, known at the last 50."""
    noise = np.random.default_rng(0).normal(size=sites.sizes["site"])
    other = sites["proxy"].copy(data=sites["proxy"].values + noise)
    return sites.assign(other=other.where(np.arange(60) >= 10).assign_attrs(units="K"))


@pytest.fixture(scope="session")
def triple(trio):
    """A transductive model of ``trio``: the metal is log-normal, the others normal."""
    laws = {"metal": "lognormal", "proxy": "normal", "other": "normal"}
    return xcopula.fit(trio, "metal", ["proxy", "other"], marginals=laws, coupling="icm", **PLAIN)
