"""Warn users where they look, at the line of their own code; show what was found, in short."""

from __future__ import annotations

import os
import sys
import warnings

__all__ = ["shown", "warn_user"]

_PACKAGE = os.path.dirname(__file__)
_LONGEST = 80


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the caller's own code, however deep in the package this is called."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def shown(value: object) -> str:
    """Return what a message shows of a value: itself if that is short, else what kind it is.

    Examples
    --------
    >>> shown([5]), shown("x" * 200)
    ('[5]', 'a str')
    """
    text = repr(value)
    if len(text) <= _LONGEST and "\n" not in text:
        return text
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"
