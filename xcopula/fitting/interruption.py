"""Stop what a fit has started when it is interrupted, or when one of its steps fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xcopula.model.running import Interrupted, run_of, stop_together, stopped

__all__ = ["Interrupted", "interruptible", "run_of", "stop_together"]


def interruptible(evaluate: Callable[..., Any], ticket: int) -> Callable[..., Any]:
    """Return a function that raises once the fit with this ticket has ended.

    Threads cannot be stopped from outside: they check before each evaluation.
    """
    ended = stopped(ticket)

    def checked(*arguments: Any) -> Any:
        if ended():
            raise Interrupted("The fit was interrupted.")
        return evaluate(*arguments)

    return checked
