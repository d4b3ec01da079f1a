"""What a command says while it works: a line that changes on a terminal, nothing in a log."""

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
    return sys.stderr.isatty()


def fit_options(*, on_cluster: bool) -> dict[str, Any]:
    """Return the options of a fit that let it be watched, on a terminal and in this process."""
    return {"progress": _on_terminal() and not on_cluster}


def told(model: Any, began: float) -> None:
    """Say how long a fit took and how it ended."""
    from xcopula.model.summary import likelihood_of

    click.echo(
        f"Fitted in {time.perf_counter() - began:.1f} s: "
        f"{likelihood_of(model)} {model.log_likelihood:.2f}, without priors.\n"
    )


@contextmanager
def watched(*, on_cluster: bool) -> Iterator[None]:
    """Show a bar for blocks that are computed in this process, on a terminal."""
    if on_cluster or not _on_terminal():
        yield
        return
    from dask.diagnostics import ProgressBar

    with ProgressBar(minimum=SHORTEST, out=sys.stderr):
        yield
