"""Exceptions and warnings that a caller may want to catch.

Each is a subclass of a built-in one, so code that does not know this package still catches it.
Messages say what was wrong, what was found, and what to do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = [
    "CoordinateError",
    "CostError",
    "FieldError",
    "FitInterrupted",
    "MarginalWarning",
    "ModelFormatError",
    "NotPositiveDefiniteError",
    "PerformanceWarning",
    "SupportError",
]


class CoordinateError(ValueError):
    """A coordinate is missing, ambiguous, or not usable as an input of the model."""


class FieldError(ValueError):
    """A field or group key that a marginal law varies with is missing or not usable."""


class CostError(ValueError):
    """A request would take more memory or time than is sensible; the message says what to do."""


class ModelFormatError(ValueError):
    """A file is not a model, is damaged, or needs another version or a class of one's own."""


class FitInterrupted(KeyboardInterrupt):
    """A fit was interrupted; its attribute ``model`` is what had been reached.

    To another process the message travels, the model does not.
    """

    def __init__(self, message: str = "", make: Callable[[], Any] | None = None) -> None:
        super().__init__(message)
        self._make = make

    @functools.cached_property
    def model(self) -> Any:
        """The model at the best parameters so far, made when it is asked for.

        None if the second step, in which variables are fitted together, had not begun.
        """
        return None if self._make is None else self._make()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self),)


class SupportError(ValueError):
    """Values lie outside the support of the marginal law they were given."""


class NotPositiveDefiniteError(ValueError):
    """A covariance could not be factorised within the bounded jitter, or EP does not settle."""


class MarginalWarning(UserWarning):
    """A marginal law fits its data badly enough to distort predictions."""


class PerformanceWarning(UserWarning):
    """A request is legal but will be slow or large; the message says what to change."""
