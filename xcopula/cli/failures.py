"""What goes wrong is said in one line.

Exit codes are 1 for an error, 2 for wrong usage, 130 for ctrl-C, and 143 for SIGTERM.
"""

from __future__ import annotations

import re
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

__all__ = ["Commands", "message_of"]

# What the library, files and disks raise. Anything else is a mistake in the code, and shows where.
_EXPECTED = (ValueError, TypeError, KeyError, OSError, ImportError, MemoryError, RuntimeError)
_INTERRUPTED, _TERMINATED = 130, 143


class Commands(click.Group):
    """Commands whose errors and warnings are one line each."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with _plain_warnings(), _terminated() as signals:
            try:
                return super().invoke(ctx)
            except (click.ClickException, click.Abort, click.exceptions.Exit):
                raise
            except KeyboardInterrupt as error:
                click.echo(_one_line(["Interrupted.", *_notes(error)]), err=True)
                ctx.exit(_TERMINATED if signals else _INTERRUPTED)
            except _EXPECTED as error:
                if ctx.params["traceback"]:
                    raise
                raise click.ClickException(message_of(error)) from None


def message_of(error: BaseException) -> str:
    """Return an error as one line, with options called as they are on the command line."""
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    elif isinstance(error, MemoryError):
        text = f"There is not enough memory. {error}"
    else:
        # str() of a KeyError is the repr of its message.
        text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    text = text or type(error).__name__
    return _one_line([text if text.rstrip().endswith((".", ")")) else f"{text}.", *_notes(error)])


def _notes(error: BaseException) -> list[str]:
    return getattr(error, "__notes__", [])


def _one_line(parts: list[str]) -> str:
    text = " ".join(" ".join(parts).split())
    return re.sub(r"\b(with|pass) (overwrite|resume)\b", r"\1 --\2", text)


@contextmanager
def _terminated() -> Iterator[list[int]]:
    """Let SIGTERM, which schedulers send, end a command as ctrl-C does; yield what was received."""
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def stop(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_IGN)  # files are removed now
        received.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        click.echo(f"Warning: {_one_line([str(message)])}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
