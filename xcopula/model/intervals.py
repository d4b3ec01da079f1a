"""Whether a method and its laws can take values that are known as intervals: asked before work."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from xcopula.errors import SupportError
from xcopula.labels.observations import Observations
from xcopula.marginals import Law, Marginal
from xcopula.methods import Method

__all__ = ["check_intervals", "refuse_outside"]

FloatArray = npt.NDArray[np.float64]

# What classes of laws say that they need, before they have parameters and thus a support.
_POSITIVE = ("positive values", "non-negative values")


def check_intervals(observations: Observations, method: Method, laws: Sequence[Law | None]) -> None:
    """Refuse intervals that a method cannot take, or that a law calls impossible.

    Raises
    ------
    ValueError
        If the method takes numbers only.
    SupportError
        If an interval lies outside the support of the law that was asked for.
    """
    sample = observations.sample
    if sample.limits is None:
        return
    method.check_intervals(sample, [None] * sample.tasks, observations.names)
    for i, (name, law) in enumerate(zip(observations.names, laws, strict=True)):
        lower, upper = sample.limits_of(i)
        if isinstance(law, type) and law.needs in _POSITIVE:
            refuse_outside(name, law, (lower, upper), np.array(0.0), np.array(np.inf))
        elif isinstance(law, Marginal):
            refuse_outside(name, law, (lower, upper), *law.ends())


def refuse_outside(
    name: str,
    law: Marginal | type[Marginal],
    limits: tuple[FloatArray, FloatArray],
    start: FloatArray,
    stop: FloatArray,
) -> None:
    """Refuse intervals of a variable that have no probability under a law."""
    lower, upper = limits
    atom = isinstance(law, Marginal) and law.atom is not None
    below = upper < start if atom else upper <= start
    outside = np.flatnonzero((lower < upper) & (below | (lower >= stop)))
    if outside.size:
        k = outside[0]
        low, high = (float(np.broadcast_to(end, lower.shape)[k]) for end in (start, stop))
        raise SupportError(
            f"Variable {name!r}: {outside.size} of its limits lie outside the support of the "
            f"{law.name} law, from {low:g} to {high:g} (first: between {lower[k]:g} and "
            f"{upper[k]:g}). Correct the limits, or choose a law with wider support ('normal', "
            "'gev', 't', 'parzen')."
        )
