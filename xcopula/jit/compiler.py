"""The one decorator by which the package compiles its loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
from numba.core import event

__all__ = ["compilations", "compiled", "vectorised"]

# Numba's cache does not see a change of this file: compiled functions keep the options that they
# were compiled with until their own file changes.
_OPTIONS = {"nogil": True, "error_model": "numpy"}


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile a function on its first call, and keep the result on disk where that is possible.

    The compiled function releases the GIL and follows numpy where a number is divided by zero.
    Where no cache directory is writable (read-only installs, containers) it is compiled anew in
    each process; the environment variable ``NUMBA_CACHE_DIR`` names another directory.
    """
    loop: Callable[..., Any]
    options = _OPTIONS | options
    try:
        loop = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # "cannot cache function: no locator available"
        loop = numba.njit(**options)(function)
    return loop


def vectorised(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function whose sums may be taken in any order.

    Only so can several terms be added at a time. Multiplications are fused with additions too.
    NaN and infinity are what they are elsewhere.
    """
    return compiled(function, fastmath={"contract", "reassoc"})


class _Told(event.Listener):  # type: ignore[misc]
    """Hears of every function that numba compiles, and passes on the package's own."""

    def __init__(self, tell: Callable[[str], object]) -> None:
        self.tell = tell

    def on_start(self, event: event.Event) -> None:
        """Tell which function it is."""
        function = event.data["dispatcher"].py_func
        if function.__module__.startswith("xcopula."):
            self.tell(function.__name__)

    def on_end(self, event: event.Event) -> None:
        """Say nothing."""


@contextmanager
def compilations(tell: Callable[[str], object]) -> Iterator[None]:
    """Call ``tell(name)`` for each function of the package that is compiled meanwhile.

    One that is found on disk is not: that takes no time.
    """
    with event.install_listener("numba:compile", _Told(tell)):
        yield
