"""Exceptions and warnings that a caller may want to catch.

Each is a subclass of a built-in one, so code that does not know this package still catches it.
Messages say what was wrong, what was found, and what to do.
"""

from __future__ import annotations

__all__ = [
    "CoordinateError",
    "CostError",
    "FieldError",
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


class SupportError(ValueError):
    """Values lie outside the support of the marginal law they were given."""


class NotPositiveDefiniteError(ValueError):
    """A covariance matrix could not be factorised within the bounded jitter."""


class MarginalWarning(UserWarning):
    """A marginal law fits its data badly enough to distort predictions."""


class PerformanceWarning(UserWarning):
    """A request is legal but will be slow or large; the message says what to change."""
