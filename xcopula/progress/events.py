"""What is told of a fit or a prediction that is under way, and how a line of text says it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Event", "Listener", "Progress", "clock_time"]


@dataclass(frozen=True)
class Event:
    """One thing that happened in a fit or a prediction.

    ``str(event)`` is a line of text about it.

    Attributes
    ----------
    what : str
        "fit" or "predict": the whole. Steps of a fit: "alone" (one variable), "pair" (the primary
        with one secondary), "together" (all variables). Of a prediction: "condition" (on the data),
        "cells". And "compile".
    state : {"begin", "go", "end", "stop"}
        It began; it goes on (an iteration, or more cells); it ended; it ended by an exception.
    names : tuple of str
        The variables.
    label : str
        What is computed of cells, the function that is compiled.
    start, starts : int
        Which starting point of the optimiser, of how many.
    iteration : int
        Of the optimiser, from this start.
    log_posterior : float, optional
        Of this step, at its best point so far: the log-likelihood with weak priors.
    done, total : int
        How many steps of the fit, or cells, are done, and of how many. A total of 0 is not known.
    seconds : float
        Since the whole began.
    expected : float, optional
        Seconds that are still to come, where that can be told: cells take about the same time, and
        of a fit there is an estimate for one core. None once a fit takes longer than that.
    """

    what: str
    state: str
    names: tuple[str, ...] = ()
    label: str = ""
    start: int = 1
    starts: int = 1
    iteration: int = 0
    log_posterior: float | None = None
    done: int = 0
    total: int = 0
    seconds: float = 0.0
    expected: float | None = None

    @property
    def whole(self) -> bool:
        """Whether it is about all of a fit or a prediction."""
        return self.what in ("fit", "predict")

    def __str__(self) -> str:
        parts = [_DESCRIBED[self.what](self)]
        if self.starts > 1:
            parts.append(f"start {self.start} of {self.starts}")
        if self.iteration:
            parts.append(f"iteration {self.iteration}")
        if self.log_posterior is not None:
            parts.append(f"log posterior {self.log_posterior:.2f}")
        parts.append(clock_time(self.seconds))
        if self.expected:
            parts.append(f"about {clock_time(self.expected)} to go")
        return ", ".join(parts)

    def _count(self) -> str:
        of = f" of {self.total:,}" if self.total else ""
        return f"{self.done:,}{of}"


Listener = Callable[[Event], object]
# What users give: None to decide by where they are, True, False, or what hears every event.
Progress = bool | Listener | None


def _step(event: Event, doing: str) -> str:
    return f"fit, {event._count()} steps done: {doing}"


def _whole(event: Event) -> str:
    ended = {"end": " done", "stop": " stopped"}.get(event.state, "")
    if event.what == "fit" and (event.done or event.total):
        return f"fit{ended}, {event._count()} steps"
    return f"{event.what} {' '.join(event.names)}".rstrip() + ended


_DESCRIBED: dict[str, Callable[[Event], str]] = {
    "fit": _whole,
    "predict": _whole,
    "alone": lambda e: _step(e, f"{e.names[0]} alone"),
    "pair": lambda e: _step(e, " with ".join(e.names)),
    "together": lambda e: _step(e, f"{', '.join(e.names)} together" if e.names[1:] else e.names[0]),
    "condition": lambda e: f"predict {e.names[0]}: condition on the data",
    "cells": lambda e: f"predict {e.names[0]}: {e.label}, {e._count()} cells",
    "compile": lambda e: f"compiling {e.label} for its first use",
}


def clock_time(seconds: float) -> str:
    """Return a time as minutes and seconds, or with hours.

    Examples
    --------
    >>> clock_time(75), clock_time(3675)
    ('1:15', '1:01:15')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
