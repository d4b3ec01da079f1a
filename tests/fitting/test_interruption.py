"""A fit that ends early takes what it has started with it."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest

import xcopula
from xcopula.fitting.interruption import Interrupted, interruptible, run_of, stop_together
from xcopula.progress.run import SILENT, Run
from xcopula.solvers import Exact

# Objects of their own: `dataclass` fields would be part of what a fit is.
SEEN: list[float] = []
READY = threading.Event()


@dataclass(frozen=True)
class Slow(Exact):
    """The exact solver, which says when it is at work, and takes its time."""

    def objective(self, process, sample, structure, theta):
        """Count, wait, evaluate."""
        wait()
        return super().objective(process, sample, structure, theta)

    def information(self, process, sample, structure, theta):
        """Count, wait, evaluate."""
        wait()
        return super().information(process, sample, structure, theta)


def wait():
    """Count an evaluation, and wait."""
    SEEN.append(time.monotonic())
    if len(SEEN) > 6:
        READY.set()
    time.sleep(0.02)


@pytest.fixture
def data():
    """Forty sites with three metals; a ctrl-C counts here, as it does in no background job."""
    SEEN.clear()
    READY.clear()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield xcopula.datasets.jura().isel(site=slice(0, 359, 9))
    signal.signal(signal.SIGINT, before)


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


def interrupted(run):
    """Press ctrl-C while something runs, and return how many evaluations came too late."""

    def interrupt():
        READY.wait(60.0)
        signal.raise_signal(signal.SIGINT)

    killer = threading.Thread(target=interrupt)
    killer.start()
    with pytest.raises(KeyboardInterrupt):
        run()
    killer.join()
    time.sleep(0.5)
    count = len(SEEN)
    time.sleep(0.5)
    return len(SEEN) - count


@pytest.mark.parametrize("method", ["transductive", "full"])
def test_nothing_is_at_work_after_ctrl_c(data, method):
    """Threads end at their next evaluation, and the next fit has the cores for itself."""
    options = {"method": method, "solver": Slow()}
    assert interrupted(lambda: xcopula.fit(data, "Cd", ["Ni", "Zn"], **options)) == 0
    model = xcopula.fit(
        data, "Cd", ["Ni"], marginals="lognormal", kernels="matern32", restarts=0, method=method
    )
    assert model.converged


@pytest.mark.parametrize("run", ["compute", "persist"])
def test_nothing_of_a_lazy_fit_is_at_work_after_ctrl_c(data, run):
    """The steps of a recorded fit stop with the run that they belong to; another run is free."""
    lazy = xcopula.fit(
        data, "Cd", ["Ni", "Zn"], kernels="matern32", restarts=0, solver=Slow(), compute=False
    )
    assert interrupted(getattr(lazy, run)) == 0
    short = xcopula.fit(
        data, "Cd", ["Ni"], marginals="lognormal", kernels="matern32", restarts=0, compute=False
    )
    assert short.compute().converged


def test_a_recorded_fit_stops_with_all_runs_that_it_may_belong_to():
    """Of two runs at once nobody knows whose step it is: it goes on while one of them does."""

    def objective(theta):
        return 0.0, theta

    def fail():
        raise KeyError

    outside = interruptible(objective, 0)
    with stop_together():
        with contextlib.suppress(KeyError), stop_together():
            either = interruptible(objective, 0)
            fail()
        assert either(np.ones(1))[0] == 0.0
    with pytest.raises(Interrupted):
        either(np.ones(1))
    assert outside(np.ones(1))[0] == 0.0
    with stop_together():
        fine = interruptible(objective, 0)
    assert fine(np.ones(1))[0] == 0.0


def test_a_step_finds_the_run_that_it_belongs_to():
    """By its ticket; a recorded one if there is one such run only. Else nobody hears it."""
    first, second, third = (Run("fit", None) for _ in range(3))
    with stop_together(first) as ticket, stop_together(second, recorded=True):
        assert run_of(ticket) is first
        assert run_of(0) is second
        with stop_together(third, recorded=True) as other:
            assert run_of(other) is third
            assert run_of(0) is SILENT
        assert run_of(0) is second
    assert run_of(ticket) is SILENT
    assert run_of(0) is SILENT
