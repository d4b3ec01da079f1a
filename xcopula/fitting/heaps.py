"""Values that are equal too often: what becomes of them is said before any work.

Zeros have laws of their own, which some methods cannot take. A heap at another end of the values is
as a rule a limit that was stored as a value.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xcopula.errors import MarginalWarning, SupportError
from xcopula.fitting.alone import starting_law
from xcopula.fitting.selection import laws_to_try
from xcopula.fitting.suitability import Support, has_zeros, within
from xcopula.labels.observations import Variable
from xcopula.marginals import Law, Recipe
from xcopula.methods import Method
from xcopula.process import Sample
from xcopula.warn import warn_user

__all__ = ["refuse_zeros", "support_of_method", "warn_of_heap"]

FloatArray = npt.NDArray[np.float64]

# A heap has at least so many values, and this share of all. It has so many times as many as the
# next values lead one to expect, of which so many are looked at. Of fewer values than the last
# number, one cannot tell whether they are rounded.
_FEWEST, _SHARE, _TIMES, _NEXT, _MANY = 5, 0.05, 3.0, 3, 50

_METHODS = "Use method='full', 'transductive' or 'bcm' for a law with a probability of zero"


def _is_open(law: Law | None) -> bool:
    """Tell whether a family is yet to be chosen, with zeros or without."""
    return law is None or (
        isinstance(law, Recipe) and law.family is None and not law.includes_lower_end
    )


def support_of_method(
    method: Method, law: Law | None, sample: Sample, variable: Variable, stated: Support
) -> Support:
    """Return the support of the values of one task, in which a method can have a law.

    Where the choice of the law is open, zeros would have a probability of their own. If the method
    takes numbers only, they are values like others: all numbers are possible, and that is said.

    Raises
    ------
    SupportError
        If no law is left that holds them.
    """
    own = within(stated, variable.attrs)
    if method.intervals or not _is_open(law) or not has_zeros(sample, own):
        return stated
    rows = sample.values, sample.covariates_of(0), variable.labels, sample.limits
    laws = [] if own is not None else [each for each, _ in laws_to_try(law)]
    if not any(starting_law(each, *rows) is not None for each in laws):
        refuse_zeros(method, sample, variable.name)
    warn_user(
        f"{_counted(sample, variable.name)}. method={method.name!r} takes numbers only, so "
        f"`marginals='auto'` chooses among laws of all numbers, under which negative values are "
        f"possible. {_METHODS}.",
        MarginalWarning,
    )
    return -np.inf, np.inf


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
        f"{_counted(sample, variable)}, which no law that may be chosen here holds, and "
        f"method={method.name!r} takes numbers only. {_METHODS}, or a law of all numbers "
        "('normal', 'gev', 't', 'parzen') without `support` and without link='log'."
    )


def _counted(sample: Sample, variable: str) -> str:
    zeros = int((sample.values == 0.0).sum())
    return f"Variable {variable!r}: {zeros} of {sample.size} values are 0"


def warn_of_heap(law: Law | None, sample: Sample, variable: Variable, stated: Support) -> None:
    """Warn of many equal values at an end of those of one task, if its law is left open.

    Values that are rounded have heaps everywhere, and so have no more at the end than the next ones
    lead one to expect. Zeros that have a probability of their own are no such heap.
    """
    known = sample.values[~sample.is_interval]
    if not _is_open(law) or known.size == 0:
        return
    values, counts = np.unique(known, return_counts=True)
    # zeros that a stated support makes numbers are meant to be
    meant = stated is not None or has_zeros(sample, within(stated, variable.attrs))
    if not (meant and values[0] == 0.0) and _is_heap(counts):
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
