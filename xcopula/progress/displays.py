"""Who listens: a line of a terminal, an output of a notebook, a logger. And who does by default."""

from __future__ import annotations

import html
import logging
import shutil
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TextIO

import numpy as np

from xcopula.progress.events import Event, Listener, Progress
from xcopula.warn import shown

__all__ = ["check_progress", "choose_listener", "to_logger", "to_notebook", "to_terminal"]

Clock = Callable[[], float]

# A line is drawn anew so many seconds after the last time; what takes less in all shows nothing.
_REDRAW = 0.1
_PATIENCE = 0.5
# Where lines stay, steps that end have one; iterations one in so many seconds. A script that asked
# for nothing logs one line in a minute, and none if it takes less.
_SELDOM, _MINUTE = 10.0, 60.0


def check_progress(progress: object) -> None:
    """Refuse what says nothing about progress.

    Raises
    ------
    TypeError
        If it is neither True, False, None nor a function.
    """
    if progress is None or callable(progress) or isinstance(progress, bool | np.bool_):
        return
    raise TypeError(
        f"`progress` must be True, False, None or a function of one event, found {shown(progress)}."
    )


def choose_listener(progress: Progress) -> Listener | None:
    """Return the listener that was given, or the one that suits the surroundings.

    None shows progress to a person who waits: in a notebook, or at a prompt of a terminal. A
    script, a pipe and a thread log a line a minute at the level INFO.
    """
    check_progress(progress)
    if callable(progress):
        return progress
    if progress is None and not _is_watched():
        log = logging.getLogger("xcopula")
        return _Lines(lambda line: log.info("%s", line), time.monotonic, every=_MINUTE, steps=False)
    if progress is None or progress:
        return to_notebook() if _in_notebook() else to_terminal()
    return None


def _is_watched() -> bool:
    """Tell whether a person waits for this thread, and sees what it writes."""
    if threading.current_thread() is not threading.main_thread():
        return False  # one of several, which would write over each other
    prompts = hasattr(sys, "ps1") or bool(sys.flags.interactive)
    return _in_notebook() or (prompts and _is_terminal(sys.stderr))


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # it is closed
        return False


def _in_notebook() -> bool:
    """Tell whether this is a kernel of Jupyter; a process that is one has IPython loaded."""
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def to_terminal(stream: TextIO | None = None, *, clock: Clock = time.monotonic) -> Listener:
    """Return a listener that rewrites one line of a terminal, and clears it at the end.

    Where the stream is no terminal, it writes a line for each step and now and then one between.

    Parameters
    ----------
    stream : file, optional
        Standard error by default.
    clock : callable
        Seconds.
    """
    out = sys.stderr if stream is None else stream
    return _Line(out, clock) if _is_terminal(out) else _Lines(_writer(out), clock)


def to_logger(
    logger: logging.Logger | str = "xcopula",
    level: int = logging.INFO,
    *,
    clock: Clock = time.monotonic,
) -> Listener:
    """Return a listener that logs each step that ends, and now and then an iteration.

    Parameters
    ----------
    logger : Logger or str
        Or its name.
    level : int
        Of the messages.
    clock : callable
        Seconds.
    """
    log = logging.getLogger(logger) if isinstance(logger, str) else logger
    return _Lines(lambda line: log.log(level, "%s", line), clock)


def to_notebook(*, clock: Clock = time.monotonic) -> Listener:
    """Return a listener that shows a bar in a notebook, under the cell that runs."""
    return _Output(clock)


def _writer(stream: TextIO | None) -> Callable[[str], object]:
    """Return what writes lines, and gives up where nobody can read them any more."""
    broken = stream is None  # no console, as under pythonw

    def write(text: str) -> None:
        nonlocal broken
        if stream is None or broken:
            return
        try:
            stream.write(text if text.startswith("\r") else f"{text}\n")
            stream.flush()
        except (OSError, ValueError):
            broken = True  # the window was closed: no reason to lose a fit of hours

    return write


def _is_due(event: Event, since: float) -> bool:
    """Tell whether to draw an event, so many seconds after the last one.

    A compilation takes seconds in which nothing else is told.
    """
    return event.what == "compile" or (event.seconds >= _PATIENCE and since >= _REDRAW)


def _printable(text: str) -> str:
    """Return text that stays on its line: names of variables may hold anything."""
    return "".join(c if c.isprintable() else "?" for c in text)


class _Line:
    """One line of a terminal."""

    def __init__(self, stream: TextIO, clock: Clock) -> None:
        self._write, self._clock = _writer(stream), clock
        self._drawn, self._length = -np.inf, 0

    def __call__(self, event: Event) -> None:
        if event.whole:
            if event.state != "begin":
                self._draw("")
            return
        if _is_due(event, self._clock() - self._drawn):
            self._draw(str(event))

    def _draw(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1  # a full line would begin another one
        text = _printable(text)[:width]
        if text or self._length:
            blank = " " * min(max(self._length - len(text), 0), width)
            self._write(f"\r{text}{blank}\r" if not text else f"\r{text}{blank}")
            self._drawn, self._length = self._clock(), len(text)


class _Lines:
    """Lines that stay: one for each step that ended, or none, and few between."""

    def __init__(
        self,
        write: Callable[[str], object],
        clock: Clock,
        *,
        every: float = _SELDOM,
        steps: bool = True,
    ) -> None:
        self._write, self._clock, self._every = write, clock, every
        self._last, self._compiled, self._steps = clock(), not steps, steps

    def __call__(self, event: Event) -> None:
        now = self._clock()
        ended = event.state in ("end", "stop") and event.what not in ("compile", "condition")
        compiles = event.what == "compile" and not self._compiled
        due = event.state == "go" and now - self._last >= self._every
        if (ended and self._steps) or compiles or due:
            self._write(_printable(str(event)))
            self._last, self._compiled = now, self._compiled or compiles


class _Output:
    """One output of a notebook, rewritten by its id: whichever thread writes, it stays in place."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._drawn = clock, -np.inf
        self._handle: Any = None

    def __call__(self, event: Event) -> None:
        # A fit shows itself at once, while it is in the thread of the cell.
        first = event.whole and event.state == "begin"
        if first and event.what == "fit":
            self._draw(event)
        elif event.whole:
            if self._handle is not None:
                self._draw(event)
        elif _is_due(event, self._clock() - self._drawn):
            self._draw(event)

    def _draw(self, event: Event) -> None:
        from IPython.display import display

        text = _printable(str(event))
        share = f'value="{event.done}" max="{event.total}"' if event.total else 'value="0"'
        bar = "" if event.whole and event.state != "begin" else f"<progress {share}></progress> "
        page = {"text/plain": text, "text/html": f"<div>{bar}{html.escape(text)}</div>"}
        if self._handle is None:
            self._handle = display(page, raw=True, display_id=True)
        else:
            self._handle.update(page, raw=True)
        self._drawn = self._clock()
