"""Tell of a prediction that is computed in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from xcopula.jit.compiler import compilations
from xcopula.progress import Progress
from xcopula.progress.displays import choose_listener
from xcopula.progress.run import Run, track

__all__ = ["telling"]


@contextmanager
def telling(progress: Progress | Run, variable: str) -> Iterator[Run]:
    """Begin to tell of a prediction of a variable; a part of one that was begun goes on with it."""
    if isinstance(progress, Run):
        yield progress
        return
    listener = choose_listener(progress)
    with track("predict", listener, (variable,)) as run, compilations(run.compiles):
        yield run
