"""A fit that is interrupted hands over what it has reached."""

from __future__ import annotations

import signal
import threading
import time

import numpy as np
import pytest

import xcopula
from xcopula.errors import FitInterrupted
from xcopula.fitting import together
from xcopula.methods import Transductive
from xcopula.solvers import Neighbours

FIXED = {"marginals": "normal", "kernels": "matern32", "restarts": 1}


class Stop:
    """Presses ctrl-C, in the main thread, at the n-th event of a kind; and counts what follows."""

    def __init__(self, what, state="go", number=1):
        self.what, self.state, self.left = what, state, number
        self.before = None

    def __enter__(self):
        # A ctrl-C counts here, as it does in no background job.
        self.before = signal.signal(signal.SIGINT, signal.default_int_handler)
        return self

    def __exit__(self, *failure):
        signal.signal(signal.SIGINT, self.before)

    def __call__(self, event):
        if (event.what, event.state) == (self.what, self.state):
            self.left -= 1
            if self.left == 0:
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
                if threading.current_thread() is not threading.main_thread():
                    time.sleep(0.05)  # so that it arrives


def interrupted(data, secondary, stop, **options):
    """Fit until a stop, and return the exception."""
    with stop, pytest.raises(KeyboardInterrupt) as caught:
        xcopula.fit(data, "metal", secondary, progress=stop, **FIXED | options)
    assert isinstance(caught.value, FitInterrupted)
    return caught.value


def check(model, names):
    """Its likelihood is that of its parameters, and it predicts."""
    assert model.tasks == tuple(names)
    assert -model.objective(model.theta)[0] == pytest.approx(model.log_likelihood, rel=1e-12)
    assert not model.converged
    assert model.message == "it was interrupted"
    assert np.isfinite(model.loo()["crps"]).all()


@pytest.mark.parametrize(
    ("method", "secondary", "solver"),
    [
        ("full", ["proxy"], "exact"),
        ("full", [], "exact"),
        ("transductive", ["proxy", "other"], "exact"),
        ("full", ["proxy"], Neighbours(8)),
        ("transductive", ["proxy", "other"], Neighbours(8)),
    ],
    ids=str,
)
def test_all_variables_together(trio, method, secondary, solver):
    """The best point so far is kept: no worse than where step two began, no better than its end."""
    options = {"method": method, "solver": solver, "coupling": "icm"}
    early = interrupted(trio, secondary, Stop("together", number=1), **options)
    late = interrupted(trio, secondary, Stop("together", number=2), **options)
    assert "all variables together, log posterior" in str(late)
    assert "`stop.model`" in str(late)
    names = ["metal", *secondary]
    for stop in (early, late):
        check(stop.model, names)
    done = xcopula.fit(trio, "metal", secondary, **FIXED | options)
    # With weak priors, which the fit has.
    values = [done.objective(m.theta, prior=True)[0] for m in (early.model, late.model, done)]
    slack = 0.3 if isinstance(solver, Neighbours) else 1e-9
    assert values[0] >= values[1] - slack
    assert values[1] >= values[2] - slack
    assert late.model.evaluations > 0


@pytest.mark.parametrize("polish", [True, False])
def test_pairs(trio, polish):
    """Those that were begun have their parameters, the others what step one suggests."""
    options = {"method": Transductive(polish=polish), "coupling": "icm"}
    stop = interrupted(trio, ["proxy", "other"], Stop("pair", number=6), **options)
    assert "pairs of metal and" in str(stop)
    check(stop.model, ["metal", "proxy", "other"])


def test_at_the_beginning_of_step_two(trio):
    """Step one suggests the parameters."""
    stop = interrupted(trio, ["proxy"], Stop("together", "begin"), method="full")
    assert "as step one suggests them" in str(stop)
    check(stop.model, ["metal", "proxy"])


@pytest.mark.parametrize("method", ["full", "transductive"])
def test_step_one_leaves_nothing(trio, method):
    """There is no model, and the message says why."""
    stop = interrupted(trio, ["proxy"], Stop("alone", "end", 1), method=method)
    assert stop.model is None
    assert "as soon as every variable has been fitted alone" in str(stop)
    assert " of 3 steps were done" in str(stop) or " of 4 steps were done" in str(stop)


def test_other_exceptions_are_what_they_are(trio):
    """Only an interruption carries a model."""

    def fail(event):
        if event.what == "together":
            raise OSError("a full disk")

    with pytest.raises(OSError, match="full disk"):
        xcopula.fit(trio, "metal", "proxy", progress=fail, **FIXED)


@pytest.mark.parametrize("state", ["go", "end"])
def test_on_some_terms_and_on_all(trio, monkeypatch, state):
    """Some terms stand for all at first; the likelihood of the model is that of all."""
    monkeypatch.setattr(together, "_TERMS", 30)
    options = {"method": "full", "solver": Neighbours(4), "coupling": "icm"}
    stop = interrupted(trio, ["proxy"], Stop("together", state), **options)
    check(stop.model, ["metal", "proxy"])
