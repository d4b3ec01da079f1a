"""Values that are equal too often: what becomes of them is said before any work.

Zeros have laws of their own, which some methods cannot take. A heap at another end of the values is
as a rule a limit that was stored as a value.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xcopula.errors import MarginalWarning, SupportError
from xcopula.fitting.defaults import Support, is_flexible
from xcopula.labels.fill import find_fill
from xcopula.labels.observations import Variable
from xcopula.marginals import Law
from xcopula.methods import Method
from xcopula.process import Sample
from xcopula.warn import warn_user

__all__ = ["refuse_zeros", "warn_of_numbers", "warn_of_ties"]

# A heap has at least so many values, and this share of all. It has so many times as many as the
# next values lead one to expect, of which so many are looked at. Of fewer values than the last
# number, one cannot tell whether they are rounded.
_FEWEST, _SHARE, _TIMES, _NEXT, _MANY = 5, 0.05, 3.0, 3, 50

_METHODS = "Use method='full', 'transductive' or 'bcm', which take zeros for values at or below 0"


def warn_of_numbers(method: Method, sample: Sample, variable: str) -> None:
    """Warn of zeros that a method takes for numbers, since it takes no intervals."""
    warn_user(
        f"{_counted(sample, variable)}. method={method.name!r} takes numbers only, so zeros are "
        f"values like others, and negative values are possible. {_METHODS}.",
        MarginalWarning,
    )


def refuse_zeros(method: Method, sample: Sample, variable: str) -> None:
    """Say that no law holds the zeros of one task, if a method takes numbers only.

    Raises
    ------
    SupportError
        If there are zeros, and no negative values.
    """
    if method.intervals or not sample.values.size or sample.values.min() != 0.0:
        return
    raise SupportError(
        f"{_counted(sample, variable)}, which this law does not hold, and "
        f"method={method.name!r} takes numbers only. {_METHODS}, or a law of all numbers "
        "('flexible', 'normal', 'gev', 't') without `support` and without link='log'."
    )


def _counted(sample: Sample, variable: str) -> str:
    zeros = int((sample.values == 0.0).sum())
    return f"Variable {variable!r}: {zeros} of {sample.size} values are 0"


def warn_of_ties(law: Law, sample: Sample, variable: Variable, support: Support) -> None:
    """Warn of many equal values at an end of those of one task, under the default law.

    Values that are rounded have heaps everywhere, and so have no more at the end than the next ones
    lead one to expect. Values at the lower end of the support are no such heap, nor are zeros where
    a wider one was stated.
    """
    known = sample.values[~sample.is_interval]
    if not is_flexible(law) or known.size == 0:
        return
    values, counts = np.unique(known[known != find_fill(known)], return_counts=True)
    expected = support is not None and values[0] in (support[0], 0.0)
    if not expected and _is_heap(counts):
        _warn(variable.name, float(values[0]), int(counts[0]), known.size, at_most=True)
    if _is_heap(counts[::-1]):
        _warn(variable.name, float(values[-1]), int(counts[-1]), known.size, at_most=False)


def _is_heap(counts: npt.NDArray[np.intp]) -> bool:
    """Tell whether the first of some counts is a heap, next to those that follow."""
    first, total = int(counts[0]), int(counts.sum())
    following = counts[1 : 1 + _NEXT]
    if following.size == 0 or first < max(_FEWEST, _SHARE * total):
        return False
    expected = float(following.max())
    rest = counts[1:]
    if total < _MANY or rest.size < 0.5 * rest.sum():
        # values are rounded: where a density falls steeply, each count is a fraction of the last
        expected = max(expected, expected**2 / float(following.min()))
    return first > _TIMES * expected


def _warn(name: str, value: float, count: int, total: int, *, at_most: bool) -> None:
    if at_most:
        which, means, limit = "smallest", "or less", f"{value:g}"
    else:
        which, means, limit = "largest", "or more", f"({value:g}, None)"
    warn_user(
        f"Variable {name!r}: {count} of {total} values are exactly {value:g}, the {which}. If they "
        f"mean '{value:g} {means}', say so: `censored={{{name!r}: {limit}}}`. As numbers they bend "
        "the law. `marginals` with a named law takes them as they are.",
        MarginalWarning,
    )
