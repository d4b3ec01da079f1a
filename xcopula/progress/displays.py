"""Displays of progress: a line of a terminal, an output of a notebook, lines of a log."""

from __future__ import annotations

import html
import logging
import shutil
import sys
import threading
from collections.abc import Callable
from math import inf
from time import monotonic
from typing import Any, TextIO

import numpy as np

from xcopula.progress.run import Event, Listener, Progress
from xcopula.warn import shown

__all__ = ["check_progress", "choose_listener", "to_logger", "to_notebook", "to_terminal"]

# Seconds between two drawings, and before the first one.
_REDRAW, _PATIENCE = 0.1, 0.5
# Seconds between lines of iterations, where lines stay: on request, and by default in a script.
_SELDOM, _MINUTE = 10.0, 60.0


def check_progress(progress: object) -> None:
    """Raise a TypeError unless ``progress`` is True, False, None or a function."""
    if progress is None or callable(progress) or isinstance(progress, bool | np.bool_):
        return
    raise TypeError(
        f"`progress` must be True, False, None or a function of one event, found {shown(progress)}."
    )


def choose_listener(progress: Progress) -> Listener | None:
    """Return the listener for an option ``progress``.

    None displays progress in a notebook and at a prompt of a terminal. A script, a pipe and a
    thread log a line a minute at the level INFO, and nothing if they take less.
    """
    check_progress(progress)
    if callable(progress):
        return progress
    if progress is None and not _is_interactive():
        log = logging.getLogger("xcopula")
        return _Lines(lambda line: log.info("%s", line), every=_MINUTE, steps=False)
    if progress is None or progress:
        return to_notebook() if _in_notebook() else to_terminal()
    return None


def _is_interactive() -> bool:
    if threading.current_thread() is not threading.main_thread():
        return False  # threads would write over each other
    prompts = hasattr(sys, "ps1") or bool(sys.flags.interactive)
    return _in_notebook() or (prompts and _is_terminal(sys.stderr))


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def to_terminal(stream: TextIO | None = None) -> Listener:
    """Return a listener that rewrites one line of a terminal, and clears it at the end.

    Where the stream is no terminal, it writes a line for each step and now and then one between.

    Parameters
    ----------
    stream : file, optional
        Standard error by default.
    """
    out = sys.stderr if stream is None else stream
    return _Line(out) if _is_terminal(out) else _Lines(_writer(out))


def to_logger(logger: logging.Logger | str = "xcopula", level: int = logging.INFO) -> Listener:
    """Return a listener that logs each step that ends, and now and then an iteration.

    Parameters
    ----------
    logger : Logger or str
        Or its name.
    level : int
        Of the messages.
    """
    log = logging.getLogger(logger) if isinstance(logger, str) else logger
    return _Lines(lambda line: log.log(level, "%s", line))


def to_notebook() -> Listener:
    """Return a listener that shows a bar in a notebook, under the cell that runs."""
    return _Output()


def _writer(stream: TextIO | None) -> Callable[[str], object]:
    """Return a function that writes lines, and stops at the first failure."""
    broken = stream is None  # no console, as under pythonw

    def write(text: str) -> None:
        nonlocal broken
        if stream is None or broken:
            return
        try:
            stream.write(text if text.startswith("\r") else f"{text}\n")
            stream.flush()
        except (OSError, ValueError):
            broken = True  # a closed window is no reason to lose a fit of hours

    return write


def _is_due(event: Event, drawn: float) -> bool:
    """Tell whether to draw an event; there is no other event during a compilation."""
    due = event.seconds >= _PATIENCE and monotonic() - drawn >= _REDRAW
    return event.what == "compile" or due


def _printable(text: object) -> str:
    """Return text for one line: names of variables may hold line breaks and escapes."""
    return "".join(c if c.isprintable() else "?" for c in str(text))


class _Line:
    """One line of a terminal, rewritten."""

    def __init__(self, stream: TextIO) -> None:
        self._write = _writer(stream)
        self._drawn, self._length = -inf, 0

    def __call__(self, event: Event) -> None:
        if event.whole:
            if event.state != "begin" and self._length:
                self._draw("")
                self._write("\r")
        elif _is_due(event, self._drawn):
            self._draw(_printable(event))

    def _draw(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1  # a full line would begin another one
        text = text[:width]
        self._write(f"\r{text.ljust(min(self._length, width))}")
        self._drawn, self._length = monotonic(), len(text)


class _Lines:
    """Lines that stay: of completed steps, and of an iteration now and then."""

    def __init__(
        self, write: Callable[[str], object], *, every: float = _SELDOM, steps: bool = True
    ) -> None:
        self._write, self._every, self._steps = write, every, steps
        self._last, self._compiled = monotonic(), not steps

    def __call__(self, event: Event) -> None:
        now = monotonic()
        ended = event.state in ("end", "stop") and event.what not in ("compile", "condition")
        compiles = event.what == "compile" and not self._compiled
        due = event.state == "go" and now - self._last >= self._every
        if (ended and self._steps) or compiles or due:
            self._write(_printable(event))
            self._last, self._compiled = now, self._compiled or compiles


class _Output:
    """One output of a notebook, rewritten by its id from any thread."""

    def __init__(self) -> None:
        self._drawn = -inf
        self._handle: Any = None

    def __call__(self, event: Event) -> None:
        # A fit is displayed at its begin, while it is in the thread of the cell.
        begins = event.what == "fit" and event.state == "begin"
        if begins or (self._handle if event.whole else _is_due(event, self._drawn)):
            self._draw(event)

    def _draw(self, event: Event) -> None:
        from IPython.display import display

        text = _printable(event)
        share = f'value="{event.done}" max="{event.total}"' if event.total else 'value="0"'
        bar = "" if event.whole and event.state != "begin" else f"<progress {share}></progress> "
        page = {"text/plain": text, "text/html": f"<div>{bar}{html.escape(text)}</div>"}
        if self._handle is None:
            self._handle = display(page, raw=True, display_id=True)
        else:
            self._handle.update(page, raw=True)
        self._drawn = monotonic()
