"""A fit that ends early takes what it has started with it."""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest

import xcopula
from xcopula.fitting.interruption import Interrupted, interruptible, stop_together
from xcopula.solvers import Exact

# Objects of their own: `dataclass` fields would be part of what a fit is.
SEEN: list[float] = []
READY = threading.Event()


@dataclass(frozen=True)
class Slow(Exact):
    """The exact solver, which says when it is at work, and takes its time."""

    def objective(self, process, sample, structure, theta):
        """Count, wait, evaluate."""
        SEEN.append(time.monotonic())
        if len(SEEN) > 6:
            READY.set()
        time.sleep(0.02)
        return super().objective(process, sample, structure, theta)


@pytest.fixture
def data():
    """Forty sites with three metals."""
    SEEN.clear()
    READY.clear()
    return xcopula.datasets.jura().isel(site=slice(0, 359, 9))


def test_an_objective_stops_with_its_fit():
    """It answers while the fit is under way, and raises once an exception has ended it."""

    def objective(theta):
        return float(theta @ theta), 2.0 * theta

    kept = []

    def fit():
        with stop_together() as ticket:
            kept.append(interruptible(objective, ticket))
            assert kept[0](np.ones(2))[0] == 2.0
            raise KeyError

    with pytest.raises(KeyError):
        fit()
    with pytest.raises(Interrupted):
        kept[0](np.ones(2))
    assert interruptible(objective, 0)(np.ones(2))[0] == 2.0


def test_an_end_without_an_exception_stops_nothing():
    """Tickets are told apart."""
    with stop_together() as first:
        pass
    with pytest.raises(KeyError), stop_together() as second:
        raise KeyError
    assert first != second
    assert interruptible(lambda theta: (0.0, theta), first)(np.ones(1))[0] == 0.0


@pytest.fixture
def ctrl_c():
    """Let SIGINT raise: a shell starts what runs in the background with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("method", ["transductive", "full"])
def test_nothing_is_at_work_after_ctrl_c(data, method):
    """Threads end at their next evaluation, and the next fit has the cores for itself."""

    def interrupt():
        READY.wait(60.0)
        signal.raise_signal(signal.SIGINT)

    killer = threading.Thread(target=interrupt)
    killer.start()
    with pytest.raises(KeyboardInterrupt):
        xcopula.fit(data, "Cd", ["Ni", "Zn"], method=method, solver=Slow())
    killer.join()
    time.sleep(0.5)
    count = len(SEEN)
    time.sleep(0.5)
    assert len(SEEN) == count
    model = xcopula.fit(
        data, "Cd", ["Ni"], marginals="lognormal", kernels="matern32", restarts=0, method=method
    )
    assert model.converged
