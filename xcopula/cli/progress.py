"""What a command says while it works: one line that changes on a terminal, a few lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

__all__ = ["fit_options", "told", "watched"]

# Shorter work than this shows no bar; in seconds.
SHORTEST = 1.0


def _on_terminal() -> bool:
    return sys.stdout.isatty()


def fit_options(*, on_cluster: bool) -> dict[str, Any]:
    """Return the options of a fit that let it be watched.

    A cluster would call a copy of what it is given: there a fit is silent.
    """
    return {} if on_cluster else {"callback": _show_iteration}


def _show_iteration(iteration: int, log_likelihood: float, theta: object) -> None:
    """Rewrite one line on a terminal; in a log, say something now and then.

    The value is that of the step that is running (one pair, or all parameters together), and has
    weak priors in it.
    """
    line = f"  iteration {iteration:3d}   log posterior of this step {log_likelihood:10.2f}"
    if _on_terminal():
        click.echo(f"\r{line}", nl=False)
    elif iteration % 10 == 0:
        click.echo(line)


def told(model: Any, began: float) -> None:
    """Say how long a fit took and how it ended, in the place of its last line."""
    done = (
        f"Fitted in {time.perf_counter() - began:.1f} s: "
        f"{model.method.likelihood} {model.log_likelihood:.2f}, without priors."
    )
    click.echo(f"\r{done:<70}\n" if _on_terminal() else f"{done}\n")


@contextmanager
def watched(*, on_cluster: bool) -> Iterator[None]:
    """Show a bar for blocks that are computed in this process, on a terminal."""
    if on_cluster or not _on_terminal():
        yield
        return
    from dask.diagnostics import ProgressBar

    with ProgressBar(minimum=SHORTEST):
        yield
