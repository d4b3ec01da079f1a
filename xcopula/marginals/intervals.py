"""Values that are known as intervals only: below a limit, above one, or rounded.

A value counts by its density if it is known, and else by the probability of its interval. Limits
(2, n) are those of :class:`xcopula.process.Sample`: equal where a value is known.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xcopula.errors import SupportError
from xcopula.marginals.base import Marginal, wider
from xcopula.marginals.tails import Array, log_between, log_phi

__all__ = [
    "check_limits",
    "interval_pullback",
    "interval_scores",
    "is_interval",
    "log_evidence",
    "starting_values",
]

# What classes of laws say that they need, before they have parameters and thus a support.
_POSITIVE = ("positive values", "non-negative values")


def is_interval(limits: Array) -> npt.NDArray[np.bool_]:
    """Tell which values (n,) are known as intervals only."""
    return np.asarray(limits[0] < limits[1])


def interval_scores(law: Marginal, limits: Array) -> Array:
    """Return the normal scores (2, n) of limits; an interval from an atom on includes it.

    An open side stays open, and costs nothing where all are.
    """
    if law.atom is not None:
        limits = np.stack([np.where(limits[0] <= law.atom, -np.inf, limits[0]), limits[1]])
    is_open = np.isinf(limits)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scores = [
            ends if open_.all() else law.to_normal(ends)
            for ends, open_ in zip(limits, is_open, strict=True)
        ]
    return np.where(is_open, limits, np.stack(scores))


def log_evidence(law: Marginal, values: Array, limits: Array) -> Array:
    """Evaluate the log density of each value (n,), or the log probability of its interval."""
    open_ = is_interval(limits)
    each = law.log_density(_known(law, values, open_))
    return np.where(open_, log_between(*interval_scores(law, limits)), each)


def interval_pullback(
    law: Marginal, values: Array, limits: Array, weights: Array | None = None
) -> Array:
    """Evaluate the sum over values of the derivatives (p,) of :func:`log_evidence`, weighted."""
    counts = np.ones(values.size) if weights is None else weights
    open_, scores = is_interval(limits), interval_scores(law, limits)
    out = law.density_pullback(_known(law, values, open_), np.where(open_, 0.0, counts))
    total = log_between(*scores)
    for sign, end, z in zip((-1.0, 1.0), limits, scores, strict=True):
        moves = open_ & np.isfinite(z) & (counts != 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            pull = np.where(moves, sign * counts * np.exp(log_phi(z) - total), 0.0)
        out = out + law.score_pullback(_known(law, end, ~moves), pull)
    return out


def _known(law: Marginal, values: Array, unknown: npt.NDArray[np.bool_]) -> Array:
    """Return values with medians in place of those that do not count."""
    if not unknown.any():
        return values
    return np.where(unknown, law.from_normal(np.zeros(values.size)), values)


def starting_values(values: Array, limits: Array) -> Array:
    """Return values with one number for each interval: where a climb starts, and no more.

    The middle of an interval; half of an upper limit of positive values; half a standard deviation
    beyond any other open end.
    """
    open_ = is_interval(limits)
    if not open_.any():
        return values
    low, high = limits
    ends = np.concatenate([values[~open_], low[open_], high[open_]])
    ends = ends[np.isfinite(ends)]
    none_below = (values[~open_] >= 0.0).all() and not ((low < 0.0) & np.isfinite(low)).any()
    positive = bool(none_below and (high[open_] > 0.0).all())
    step = 0.5 * float(ends.std()) or 0.5 * float(np.abs(ends).max(initial=0.0)) or 1.0
    with np.errstate(invalid="ignore"):
        low = np.maximum(low, 0.0) if positive else np.where(np.isinf(low), high - 2 * step, low)
        middle = np.where(np.isinf(high), low + step, 0.5 * (low + high))
    return np.where(open_, middle, values)


def check_limits(law: Marginal | type[Marginal], limits: Array, variable: str = "") -> None:
    """Refuse intervals that have no probability under a law, bound to their rows or not fitted yet.

    Raises
    ------
    SupportError
        It counts them, shows the first, and says what to do.
    """
    if isinstance(law, Marginal):
        start, stop = law.ends()
    elif law.needs in _POSITIVE:
        start, stop = np.zeros(()), np.full((), np.inf)
    else:
        return
    low, high = limits
    atom = isinstance(law, Marginal) and law.atom is not None
    below = high < start if atom else high <= start
    outside = np.flatnonzero(is_interval(limits) & (below | (low >= stop)))
    if outside.size:
        k = outside[0]
        first, last = (float(np.broadcast_to(end, low.shape)[k]) for end in (start, stop))
        prefix = f"Variable {variable!r}: " if variable else ""
        raise SupportError(
            f"{prefix}{outside.size} of its limits lie outside the support of the {law.name} law, "
            f"from {first:g} to {last:g} (first: between {low[k]:g} and {high[k]:g}). Correct the "
            f"limits, or choose a law with wider support ({wider(law)})."
        )
