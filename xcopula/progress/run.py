"""One fit or prediction that is under way: its steps tell one listener, from any thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from xcopula.progress.events import Event, Listener

__all__ = ["SILENT", "UNHEARD", "Run", "Step", "told"]


class Run:
    """What is told of a fit or a prediction.

    Events come from several threads, and the listener hears them one at a time. Nothing is told
    after the end: threads that have not noticed it are not heard.

    Parameters
    ----------
    what : {"fit", "predict"}
    listener : callable, optional
        Without one, nothing costs anything.
    names : sequence of str
        The variables.
    total : int
        How many steps there are; 0 if that is not known.
    """

    def __init__(
        self,
        what: str,
        listener: Listener | None,
        names: tuple[str, ...] = (),
        total: int = 0,
    ) -> None:
        self.what, self.names, self.total, self.done = what, names, total, 0
        self._listener, self._ended = listener, False
        self._began, self._estimate = time.monotonic(), 0.0
        self._lock = threading.RLock()  # a listener may itself cause an event

    @property
    def seconds(self) -> float:
        """Time since it began."""
        return time.monotonic() - self._began

    def expect(self, seconds: float) -> None:
        """Estimate how long all of it takes: events tell what is left of that, while there is."""
        self._estimate = seconds

    def tell(self, what: str, state: str, **fields: Any) -> None:
        """Tell the listener of an event, if there is one."""
        if self._listener is None:
            return
        # One thread may hold the compiler's lock while the listener of another waits for it.
        if not self._lock.acquire(blocking=what != "compile"):
            return
        try:
            if not self._ended:
                seconds = self.seconds
                own: dict[str, Any] = {"names": self.names, "done": self.done, "total": self.total}
                if state in ("begin", "go") and seconds < self._estimate:
                    own["expected"] = self._estimate - seconds
                self._listener(Event(what, state, seconds=seconds, **(own | fields)))
        finally:
            self._lock.release()

    @contextmanager
    def step(
        self, what: str, names: tuple[str, ...], label: str = "", *, counts: bool = True
    ) -> Iterator[Step]:
        """Tell of a step that begins and ends; one that ends by an exception is not done."""
        step = Step(self, what, names, label)
        step.tell("begin")
        yield step
        if counts:
            with self._lock:
                self.done += 1
        step.tell("end")

    def cells(self, names: tuple[str, ...], label: str) -> Callable[[int, int], None]:
        """Return what tells how many cells are done, of how many: ``tell(done, total)``."""
        began = self.seconds

        def tell(done: int, total: int) -> None:
            expected = (self.seconds - began) * (total - done) / done
            self.tell(
                "cells",
                "go",
                names=names,
                label=label,
                done=done,
                total=total,
                expected=expected,
            )

        return tell

    def compiles(self, function: str) -> None:
        """Tell that a function is being compiled."""
        self.tell("compile", "begin", label=function)

    def end(self, state: str) -> None:
        """Tell how all of it ended; nothing is told afterwards."""
        with self._lock:
            self.tell(self.what, state)
            self._ended = True


@dataclass(frozen=True)
class Step:
    """One step of a run.

    Attributes
    ----------
    run : Run
    what, names, label
        As in :class:`~xcopula.progress.Event`.
    start, starts : int
        Which starting point of the optimiser, of how many.
    """

    run: Run
    what: str
    names: tuple[str, ...] = ()
    label: str = ""
    start: int = 1
    starts: int = 1

    def begun_at(self, start: int, starts: int) -> Step:
        """Return the step as a search from one of several points tells of it."""
        return replace(self, start=start, starts=starts)

    def tell(self, state: str, **fields: Any) -> None:
        """Tell that it began, goes on or ended."""
        self.run.tell(
            self.what,
            state,
            names=self.names,
            label=self.label,
            start=self.start,
            starts=self.starts,
            **fields,
        )


# A run that nobody listens to, and a step of it.
SILENT = Run("fit", None)
UNHEARD = Step(SILENT, "together")


@contextmanager
def told(
    what: str, listener: Listener | None, names: tuple[str, ...] = (), total: int = 0
) -> Iterator[Run]:
    """Begin a run, and tell how it ends."""
    run = Run(what, listener, names, total)
    run.tell(what, "begin")
    try:
        yield run
    except BaseException:
        run.end("stop")
        raise
    run.end("end")
