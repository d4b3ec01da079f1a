"""Where work is done: in this process, or on a cluster if one is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

__all__ = ["cluster", "cluster_options"]


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options --workers and --scheduler to a command."""
    for option in (
        click.option(
            "--scheduler",
            metavar="ADDRESS",
            help="Work on a dask cluster, such as tcp://10.0.0.1:8786. Its workers must see the "
            "same files.",
        ),
        click.option(
            "--workers",
            type=click.IntRange(min=1),
            help="Work in so many processes of this machine; in threads by default.",
        ),
    ):
        command = option(command)
    return command


@contextmanager
def cluster(scheduler: str | None, workers: int | None) -> Iterator[bool]:
    """Give work to a cluster while this is open; say whether there is one.

    Raises
    ------
    ImportError
        If distributed is not installed.
    OSError
        If the scheduler does not answer.
    """
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
