"""Stop what a fit has started when it is interrupted, or when one of its steps fails."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xcopula.fitting.optimiser import Objective
from xcopula.model.running import Interrupted, run_of, stop_together, stopped

__all__ = ["Interrupted", "interruptible", "run_of", "stop_together"]

FloatArray = npt.NDArray[np.float64]


def interruptible(objective: Objective, ticket: int) -> Objective:
    """Return an objective that raises once the fit with this ticket has ended.

    Threads cannot be stopped from outside: each asks before it evaluates.
    """
    ended = stopped(ticket)

    def value(theta: FloatArray) -> tuple[float, FloatArray]:
        if ended():
            raise Interrupted("The fit was interrupted.")
        return objective(theta)

    return value
