"""The group of all commands, with errors and warnings of one line each.

Exit codes are 1 for an error, 2 for wrong usage, 130 for ctrl-C, and 143 for SIGTERM.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from xcopula.cli.demo import demo
from xcopula.cli.fit import condition, fit, validate
from xcopula.cli.inspect import info, plot
from xcopula.cli.predict import predict

__all__ = ["Commands", "main", "message_of"]

# Errors of the library, of files and of disks. Any other error is a bug, with a traceback.
_EXPECTED = (ValueError, TypeError, KeyError, OSError, ImportError, MemoryError, RuntimeError)
_INTERRUPTED, _TERMINATED = 130, 143
# Seconds that a command has to end after SIGTERM; schedulers kill it some time later.
_GRACE = 5.0


class Commands(click.Group):
    """Commands whose errors and warnings are one line each."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with _plain_warnings(), _sigterm_interrupts() as signals:
            try:
                return super().invoke(ctx)
            except (click.ClickException, click.Abort, click.exceptions.Exit):
                raise
            except KeyboardInterrupt as error:
                click.echo(_one_line("Interrupted.", error), err=True)
                ctx.exit(_TERMINATED if signals else _INTERRUPTED)
            except _EXPECTED as error:
                if ctx.params["traceback"]:
                    raise
                raise click.ClickException(message_of(error)) from None


def message_of(error: BaseException) -> str:
    """Return an error as one line, with options as the command line spells them."""
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    elif isinstance(error, MemoryError):
        text = f"There is not enough memory. {error}"
    else:
        # str() of a KeyError is the repr of its message.
        text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    text = text or type(error).__name__
    return _one_line(text if text.rstrip().endswith((".", ")")) else f"{text}.", error)


def _one_line(text: str, error: BaseException | None = None) -> str:
    """Return a text and the notes of an error."""
    line = " ".join(" ".join([text, *getattr(error, "__notes__", [])]).split())
    return re.sub(r"\b(with|pass) (overwrite|resume)\b", r"\1 --\2", line)


@contextmanager
def _sigterm_interrupts() -> Iterator[list[int]]:
    """Let SIGTERM, the signal of schedulers, act as ctrl-C; yield the signals received."""
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def end() -> None:
        from xcopula.storage.whole import remove_unfinished

        remove_unfinished()
        os._exit(_TERMINATED)

    # An exception that a signal raises may leave a lock of a library held, or a thread that nothing
    # wakes, and the end of the process would wait for it.
    watchdog = threading.Timer(_GRACE, end)
    watchdog.daemon = True

    def stop(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_IGN)  # temporary files are removed now
        received.append(number)
        watchdog.start()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        click.echo(f"Warning: {_one_line(str(message))}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="xcopula")
@click.option("--traceback", is_flag=True, help="Show where in the code an error came up.")
def main(traceback: bool) -> None:
    """Multi-task Gaussian copula processes for gridded and scattered data.

    From a table of measurements to a map:

    \b
      xcopula info samples.csv
      xcopula fit samples.csv --primary Cd --secondary Ni -o model.nc
      xcopula predict model.nc --axis x=0:6:0.1 --axis y=0:6:0.1 -o out.nc
      xcopula plot out.nc -o map.png

    Each command explains itself: xcopula fit --help.
    """


for _command in (fit, predict, info, validate, plot, condition, demo):
    main.add_command(_command)
