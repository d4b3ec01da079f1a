"""What runs in this process, what of it has been stopped, and who is told of it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from xcopula.progress.run import SILENT, Run

__all__ = ["Interrupted", "run_of", "stop_together", "stopped"]

_running: dict[int, Run] = {}
_recorded: set[int] = set()
_stopped: set[int] = set()


class Interrupted(RuntimeError):
    """The fit that this step belongs to has ended."""


@contextmanager
def stop_together(run: Run = SILENT, *, recorded: bool = False) -> Iterator[int]:
    """Give a run a ticket: when it ends by an exception, all that has the ticket stops.

    Parameters
    ----------
    run : Run
        Its steps tell of themselves there.
    recorded : bool
        Whether its steps are those of a graph, which has no ticket.
    """
    # No number that another process may give: a step finds its run in its own process, or none.
    ticket = 1 + secrets.randbits(62)
    _running[ticket] = run
    if recorded:
        _recorded.add(ticket)
    try:
        yield ticket
    except BaseException:
        _stopped.add(ticket)
        raise
    finally:
        del _running[ticket]
        _recorded.discard(ticket)


def stopped(ticket: int) -> Callable[[], bool]:
    """Return a function that tells whether the run with this ticket was stopped.

    A step of a recorded fit has ticket 0: its graph knows no run. It belongs to one of those that
    are under way here and now, and is stopped once one of them was and none is left.
    """
    if ticket:
        return lambda: ticket in _stopped
    mine = frozenset(_running)
    return lambda: not mine.isdisjoint(_stopped) and mine.isdisjoint(_running)


def run_of(ticket: int) -> Run:
    """Return the run with this ticket; a silent one if it is in another process.

    A step of a recorded fit belongs to the only run of such a fit. Where there are several, nobody
    knows whose it is, and nobody is told.
    """
    if not ticket:
        tickets = list(_recorded)
        ticket = tickets[0] if len(tickets) == 1 else 0
    return _running.get(ticket, SILENT)
