"""Whether a method and its laws can take values that are known as intervals: asked before work."""

from __future__ import annotations

from collections.abc import Sequence

from xcopula.labels.observations import Observations
from xcopula.marginals import Law, Marginal
from xcopula.marginals.intervals import check_limits
from xcopula.methods import Method

__all__ = ["check_intervals"]


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
        if isinstance(law, Marginal | type):
            check_limits(law, sample.limits_of(i), name)
