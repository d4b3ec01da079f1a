"""A process that was forked after use fits and predicts."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, signal, sys, warnings
import numpy as np
import xcopula

warnings.simplefilter("ignore", DeprecationWarning)  # of forks in threaded processes
data = xcopula.datasets.jura(hide="Cd").isel(site=slice(0, 359, 9))
options = dict(marginals="lognormal", kernels="matern32", restarts=0)
grid = xcopula.datasets.jura_grid().isel(x=slice(0, 20), y=slice(0, 20))

def work():
    model = data.mtcopula.fit("Cd", ["Ni", "Zn"], **options)
    return model.theta, model.predict(grid, chunks={"y": 5}).compute()["Cd"].values

theta, cells = work()
child = os.fork()
if child == 0:
    signal.alarm(60)
    again, mapped = work()
    same = np.array_equal(theta, again) and np.array_equal(cells, mapped, equal_nan=True)
    os._exit(0 if same else 1)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status) % 256)
"""

OTHERS = """
import os, signal, sys, warnings
import dask.array
import numpy as np
import xcopula

warnings.simplefilter("ignore", DeprecationWarning)
dask.array.ones(10, chunks=1).sum().compute()  # a pool that is no work of this package
child = os.fork()
if child == 0:
    signal.alarm(60)
    data = xcopula.datasets.jura(hide="Cd").isel(site=slice(0, 359, 9))
    options = dict(marginals="lognormal", kernels="matern32", restarts=0)
    model = xcopula.fit(data.chunk(site=10), "Cd", ["Ni", "Zn"], **options)
    os._exit(0 if model.converged else 1)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status) % 256)
"""

forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


@forking
def test_a_fork_after_others_used_dask_does_not_hang():
    """The child of a process that only imported the package fits data in chunks."""
    done = subprocess.run([sys.executable, "-c", OTHERS], capture_output=True, timeout=180)
    assert done.returncode == 0, done.stderr.decode()


@forking
def test_a_fork_after_use_does_not_hang():
    """The child fits and predicts lazily, with the same results to the last bit."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, timeout=180)
    assert done.returncode == 0, done.stderr.decode()
