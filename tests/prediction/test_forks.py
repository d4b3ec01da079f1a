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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_after_use_does_not_hang():
    """The child fits and predicts lazily, with the same results to the last bit."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, timeout=180)
    assert done.returncode == 0, done.stderr.decode()
