"""Stop what a fit has started when it is interrupted, or when one of its steps fails."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from xcopula.fitting.optimiser import Objective

__all__ = ["Interrupted", "interruptible", "stop_together"]

FloatArray = npt.NDArray[np.float64]

_tickets = itertools.count(1)
_stopped: set[int] = set()


class Interrupted(RuntimeError):
    """The fit that this step belongs to has ended."""


@contextmanager
def stop_together() -> Iterator[int]:
    """Give a fit a ticket: when it ends by an exception, all that has the ticket stops."""
    ticket = next(_tickets)
    try:
        yield ticket
    except BaseException:
        _stopped.add(ticket)
        raise


def interruptible(objective: Objective, ticket: int) -> Objective:
    """Return an objective that raises once the fit with this ticket has ended.

    Threads cannot be stopped from outside: each asks before it evaluates.
    """

    def value(theta: FloatArray) -> tuple[float, FloatArray]:
        if ticket in _stopped:
            raise Interrupted("The fit was interrupted.")
        return objective(theta)

    return value
