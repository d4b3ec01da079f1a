"""Stop what a fit has started when it is interrupted, or when one of its steps fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from xcopula.fitting.optimiser import Loss, Objective, each_way
from xcopula.model.running import Interrupted, run_of, stop_together, stopped

__all__ = ["Interrupted", "interruptible", "run_of", "stop_together"]

FloatArray = npt.NDArray[np.float64]


def interruptible(objective: Objective, ticket: int) -> Loss:
    """Return an objective that raises once the fit with this ticket has ended.

    Threads cannot be stopped from outside: each asks before it evaluates.
    """
    ended = stopped(ticket)

    def checked(function: Callable[[FloatArray], Any]) -> Callable[[FloatArray], Any]:
        def value(theta: FloatArray) -> Any:
            if ended():
                raise Interrupted("The fit was interrupted.")
            return function(theta)

        return value

    return each_way(objective, checked)
