"""Warn users where they look: at the line of their own code."""

from __future__ import annotations

import os
import sys
import warnings

__all__ = ["warn_user"]

_PACKAGE = os.path.dirname(__file__)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the caller's own code, however deep in the package this is called."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)
