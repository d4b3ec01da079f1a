"""The number of threads, of BLAS or of dask, moves nothing but the last digits."""

from __future__ import annotations

import os
import re

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import xcopula

# What docs/promises.md promises of latent means and deviations.
PROMISED = 1e-10


@pytest.fixture(scope="module")
def fitted():
    """A model of all the Jura's sites: matrices that BLAS divides between threads."""
    data = xcopula.datasets.jura(hide="Cd")
    options = {"marginals": "lognormal", "kernels": "matern32", "restarts": 0}
    return xcopula.fit(data, "Cd", ["Ni"], method="full", **options)


def skip_what_crashes(threads: int) -> None:
    """Skip what OpenBLAS 0.3.28 cannot do: scipy's own dpotrf ends the process, too."""
    old = [
        library["version"]
        for library in threadpool_info()
        if library["internal_api"] == "openblas"
        and [int(n) for n in re.findall(r"\d+", library["version"] or "")[:3]] < [0, 3, 29]
    ]
    if old and threads > (os.cpu_count() or 1):
        pytest.skip(f"OpenBLAS {old} crashes with more threads than there are cores")


@pytest.mark.parametrize("threads", [2, 4])
def test_predictions(fitted, threads):
    """Latent means and deviations agree to 1e-10, and so do leave-one-out and the likelihood."""
    skip_what_crashes(threads)
    grid = xcopula.datasets.jura_grid().isel(x=slice(None, None, 4), y=slice(None, None, 4))
    sample = fitted.observations.sample

    def compute(limit):
        with threadpool_limits(limit, user_api="blas"):
            conditioned = fitted.method.condition(
                fitted.process, sample, fitted.structure, fitted.theta
            )
            x, y = np.meshgrid(grid["x"].values, grid["y"].values)
            cells = fitted.observations.targets([x.ravel(), y.ravel()])
            found = [*conditioned.moments(cells), *conditioned.leave_one_out()]
            return np.concatenate(found), fitted.objective(fitted.theta)

    (one, (value, gradient)), (many, (other, slope)) = compute(1), compute(threads)
    np.testing.assert_allclose(many, one, rtol=0, atol=PROMISED)
    assert other == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(slope, gradient, rtol=1e-9, atol=1e-7)


def test_threads_of_dask():
    """A recorded fit and its prediction are the same on one thread and on several."""
    data = xcopula.datasets.jura(hide="Cd").isel(site=slice(0, 359, 9))
    grid = xcopula.datasets.jura_grid().isel(x=slice(None, None, 8), y=slice(None, None, 8))
    options = {"marginals": "lognormal", "kernels": "matern32", "restarts": 1, "compute": False}
    lazy = xcopula.fit(data, "Cd", ["Ni", "Zn"], **options)
    cells = lazy.posterior(grid, chunks={"x": 4}).latent
    one, *others = (cells.compute(scheduler="threads", num_workers=n) for n in (1, 2, 4))
    for other in others:
        for name in ("mean", "std"):
            np.testing.assert_allclose(other[name], one[name], rtol=0, atol=PROMISED)
