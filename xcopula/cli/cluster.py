"""Workers and progress of a command: threads of this process, or a cluster on request."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

__all__ = ["block_progress", "cluster", "cluster_options", "on_terminal"]

# Shorter work shows no bar; in seconds.
SHORTEST = 1.0


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options --workers and --scheduler to a command."""
    scheduler = click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Work on a dask cluster, such as tcp://10.0.0.1:8786. Its workers must see the "
        "same files.",
    )
    workers = click.option(
        "--workers",
        type=click.IntRange(min=1),
        help="Work in so many processes of this machine; in threads by default.",
    )
    return workers(scheduler(command))


@contextmanager
def cluster(scheduler: str | None, workers: int | None) -> Iterator[bool]:
    """Work on a cluster while this is open, and yield whether there is one."""
    if scheduler is not None and workers is not None:
        raise click.UsageError("Give --scheduler or --workers, not both.")
    if scheduler is None and workers is None:
        yield False
        return
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise ImportError(
            "--scheduler and --workers need the package distributed. Install it with "
            "`pip install 'xcopula[distributed]'`."
        ) from None
    if workers is None:
        with Client(scheduler):
            yield True
    else:
        # Any free port of this machine: the usual one may be taken by another cluster.
        options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
        with LocalCluster(n_workers=workers, **options) as local, Client(local):
            yield True


def on_terminal() -> bool:
    """Tell whether standard error is a terminal: a log shows no progress."""
    return sys.stderr.isatty()


@contextmanager
def block_progress(*, on_cluster: bool) -> Iterator[None]:
    """Show a bar on a terminal for blocks that are computed in this process."""
    if on_cluster or not on_terminal():
        yield
        return
    from dask.diagnostics import ProgressBar

    with ProgressBar(minimum=SHORTEST, out=sys.stderr):
        yield
