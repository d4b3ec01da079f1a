"""What runs in this process, and what of it has been stopped."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Interrupted", "stop_together", "stopped"]

_tickets = itertools.count(1)
_running: set[int] = set()
_stopped: set[int] = set()


class Interrupted(RuntimeError):
    """The fit that this step belongs to has ended."""


@contextmanager
def stop_together() -> Iterator[int]:
    """Give a run a ticket: when it ends by an exception, all that has the ticket stops."""
    ticket = next(_tickets)
    _running.add(ticket)
    try:
        yield ticket
    except BaseException:
        _stopped.add(ticket)
        raise
    finally:
        _running.discard(ticket)


def stopped(ticket: int) -> Callable[[], bool]:
    """Return a function that tells whether the run with this ticket was stopped.

    A step of a recorded fit has ticket 0: its graph knows no run. It belongs to one of those that
    are under way here and now, and is stopped once one of them was and none is left.
    """
    if ticket:
        return lambda: ticket in _stopped
    mine = frozenset(_running)
    return lambda: not mine.isdisjoint(_stopped) and mine.isdisjoint(_running)
