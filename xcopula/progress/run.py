"""Runs: the steps of a fit or of a prediction, sent as events to one listener from any thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

__all__ = [
    "SILENT",
    "SILENT_STEP",
    "Event",
    "Listener",
    "Progress",
    "Run",
    "Step",
    "clock_time",
    "track",
]


@dataclass(frozen=True)
class Event:
    """One event of a fit or of a prediction; ``str(event)`` is a line of text.

    Attributes
    ----------
    what : str
        "fit" or "predict": the whole. Steps of a fit: "alone" (one variable), "pair" (the primary
        with one secondary), "together" (all variables). Of a prediction: "condition" (on the data),
        "cells". And "compile".
    state : {"begin", "go", "end", "stop"}
        Begin; progress (an iteration, or more cells); end; end by an exception.
    names : tuple of str
        The variables.
    label : str
        The quantity computed for the cells, or the function being compiled.
    start, starts : int
        Number of the starting point of the optimiser, and how many there are.
    iteration : int
        Of the optimiser, from this start.
    log_posterior : float, optional
        Best value of this step so far: the log-likelihood with weak priors.
    done, total : int
        Completed steps of the fit, or cells, and their number; 0 if it is unknown.
    seconds : float
        Since the begin of the whole.
    expected : float, optional
        Estimate of the remaining seconds: of cells from their pace, of a fit from its cost on one
        core. None once a fit takes longer than estimated.
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
        parts = [self._subject()]
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

    def _subject(self) -> str:
        names = ", ".join(self.names)
        count = f"{self.done:,}" + (f" of {self.total:,}" if self.total else "")
        if self.what == "compile":
            return f"compiling {self.label} for its first use"
        if self.what == "condition":
            return f"predict {names}: condition on the data"
        if self.what == "cells":
            return f"predict {names}: {self.label}, {count} cells"
        if self.whole:
            ended = {"end": " done", "stop": " stopped"}.get(self.state, "")
            if self.what == "fit" and (self.done or self.total):
                return f"fit{ended}, {count} steps"
            return f"{self.what} {' '.join(self.names)}".rstrip() + ended
        step = {
            "alone": f"{names} alone",
            "pair": " with ".join(self.names),
            "together": f"{names} together" if self.names[1:] else names,
        }[self.what]
        return f"fit, {count} steps done: {step}"


Listener = Callable[[Event], object]
Progress = bool | Listener | None


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


class Run:
    """A fit or a prediction under way.

    The listener gets one event at a time, whichever thread sends it, and none after the end.

    Parameters
    ----------
    what : {"fit", "predict"}
    listener : callable, optional
    names : tuple of str
        The variables.
    total : int
        Number of steps; 0 if it is unknown.
    """

    def __init__(
        self, what: str, listener: Listener | None, names: tuple[str, ...] = (), total: int = 0
    ) -> None:
        self.what, self.names, self.total, self.done = what, names, total, 0
        self._listener, self._ended = listener, False
        self._began, self._estimate = time.monotonic(), 0.0
        self._lock = threading.RLock()  # a listener may itself cause an event

    @property
    def seconds(self) -> float:
        """Time since the begin."""
        return time.monotonic() - self._began

    def expect(self, seconds: float) -> None:
        """Set the estimate of the whole time, from which events derive the rest."""
        self._estimate = seconds

    def report(self, what: str, state: str, **fields: Any) -> None:
        """Send an event to the listener, if there is one."""
        if self._listener is None:
            return
        # A compiling thread holds the compiler's lock, for which a listener may wait.
        if not self._lock.acquire(blocking=what != "compile"):
            return
        try:
            if not self._ended:
                seconds = self.seconds
                common: dict[str, Any] = {
                    "names": self.names,
                    "done": self.done,
                    "total": self.total,
                }
                if state in ("begin", "go") and seconds < self._estimate:
                    common["expected"] = self._estimate - seconds
                self._listener(Event(what, state, seconds=seconds, **(common | fields)))
        finally:
            self._lock.release()

    @contextmanager
    def step(self, what: str, names: tuple[str, ...], *, counts: bool = True) -> Iterator[Step]:
        """Report the begin and the end of a step; a step that fails is not done."""
        step = Step(self, what, names)
        step.report("begin")
        yield step
        if counts:
            with self._lock:
                self.done += 1
        step.report("end")

    def cells(self, names: tuple[str, ...], label: str) -> Callable[[int, int], None]:
        """Return a function that reports completed cells: ``tell(done, total)``."""
        began = self.seconds

        def tell(done: int, total: int) -> None:
            rest = (self.seconds - began) * (total - done) / done
            counts = {"done": done, "total": total, "expected": rest}
            self.report("cells", "go", names=names, label=label, **counts)

        return tell

    def compiles(self, function: str) -> None:
        """Report the compilation of a function."""
        self.report("compile", "begin", label=function)

    def end(self, state: str) -> None:
        """Report the end: the last event."""
        with self._lock:
            self.report(self.what, state)
            self._ended = True


@dataclass(frozen=True)
class Step:
    """One step of a run; the attributes are those of :class:`~xcopula.progress.Event`."""

    run: Run
    what: str
    names: tuple[str, ...] = ()
    start: int = 1
    starts: int = 1

    def begun_at(self, start: int, starts: int) -> Step:
        """Return the step at another starting point of the optimiser."""
        return replace(self, start=start, starts=starts)

    def report(self, state: str, **fields: Any) -> None:
        """Send an event of this step."""
        position = {"names": self.names, "start": self.start, "starts": self.starts}
        self.run.report(self.what, state, **position, **fields)


# For work without a listener.
SILENT = Run("fit", None)
SILENT_STEP = Step(SILENT, "together")


@contextmanager
def track(
    what: str, listener: Listener | None, names: tuple[str, ...] = (), total: int = 0
) -> Iterator[Run]:
    """Report the begin and the end of a run."""
    run = Run(what, listener, names, total)
    run.report(what, "begin")
    try:
        yield run
    except BaseException:
        run.end("stop")
        raise
    run.end("end")
