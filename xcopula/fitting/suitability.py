"""Which laws suit a variable: zeros have a law of their own, and positive values stay positive.

What was asked for is taken as it is. These are the rules for what was left open.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from xcopula.errors import SupportError
from xcopula.marginals import Labels, Law, Marginal, Recipe, check_law, check_scores, fit_law
from xcopula.marginals.intervals import check_limits
from xcopula.marginals.truncation import Truncate, bounded
from xcopula.marginals.zero_inflated import with_zeros
from xcopula.process import Sample

__all__ = [
    "Support",
    "begin_law",
    "check_values",
    "has_zeros",
    "stays_positive",
    "suited",
    "within",
]

FloatArray = npt.NDArray[np.float64]
# The ends of the values that a variable can have; None where nothing was stated.
Support = tuple[float, float] | None

# So many zeros are no accident, where no value is negative.
_FEWEST_ZEROS = 3
# More than this below zero is too much, where all values are above it. With that much, the 5 %
# quantile is negative in 1 of 100 to 1 of 1000 cells; a normal law keeps it if its mean is more
# than 3.1 standard deviations above zero.
_HAIR = 1e-3
# Units whose zero is a convention: nothing is special about it.
_ARBITRARY = {
    *("c", "°c", "degc", "deg_c", "deg c", "celsius", "degree_c", "degree_celsius"),
    *("degrees_c", "degrees_celsius", "degree celsius", "degrees celsius", "deg_celsius"),
    *("f", "°f", "degf", "deg_f", "deg f", "fahrenheit", "degree_f", "degree_fahrenheit"),
    *("degrees_f", "degrees_fahrenheit", "degree fahrenheit", "degrees fahrenheit"),
}


def within(stated: Support, attrs: Mapping[str, Any]) -> Support:
    """Return the support of a variable: as stated, or all numbers if its zero is a convention."""
    if stated is None and str(attrs.get("units", "")).strip().lower() in _ARBITRARY:
        return -np.inf, np.inf
    return stated


def _known(sample: Sample) -> FloatArray:
    """Return the values of one task that are known, not as intervals."""
    return np.asarray(sample.values[~sample.is_interval])


def has_zeros(sample: Sample, support: Support) -> bool:
    """Tell whether zero has a probability of its own.

    It has one if at least three values of a variable are exactly zero and none is negative. Where
    the support was stated, one zero at its lower end is enough.
    """
    values = _known(sample)
    zeros = int((values == 0.0).sum())
    if support is not None:
        return support[0] == 0.0 and zeros > 0
    return zeros >= _FEWEST_ZEROS and bool(values.min() == 0.0)


def suited(law: Law, sample: Sample, support: Support) -> Law | None:
    """Return a law that may be chosen, as it suits the values of one task; None if it does not."""
    if isinstance(law, Marginal):
        return law if support is None else bounded(law, support)
    chosen = with_zeros(law) if has_zeros(sample, support) else law
    return None if chosen is None else _cut(chosen, support)


def _cut(law: type[Marginal] | Recipe, support: Support) -> type[Marginal] | Recipe:
    """Return a law that is cut off at the ends of its support, if it has any."""
    if support is None or np.isinf(support).all():
        return law
    return Truncate(law, *support)


def begin_law(
    law: Law | None, sample: Sample, labels: Labels, support: Support, variable: str
) -> Law | None:
    """Fit the law that was asked for to the values of one task: bad input ends a fit here.

    A law that is yet to be chosen is returned as it is.

    Raises
    ------
    ValueError
        If the law does not admit the values, or they lie outside the support that was stated.
    """
    known = _known(sample)
    check_values(sample, support, variable)
    if law is None or (isinstance(law, Recipe) and law.family is None):
        return law
    covariates = sample.covariates_of(0)
    try:
        if isinstance(law, Marginal):
            fitted = law if support is None else bounded(law, support)
        else:
            own = _cut(law, support)
            fitted = fit_law(own, sample.values, covariates, labels, sample.limits)
            check_law(fitted)
    except ValueError as error:
        kind = SupportError if isinstance(error, SupportError) else ValueError
        raise kind(f"Variable {variable!r}: {error}") from None
    if isinstance(law, Marginal):
        fitted.check_support(known, variable)
    bound = fitted.at(covariates)
    check_scores(bound, sample.values, variable, ~sample.is_interval)
    if sample.limits is not None:
        check_limits(bound, sample.limits, variable)
    return fitted


def stays_positive(law: Marginal, sample: Sample, support: Support) -> bool:
    """Tell whether a law, bound to its rows, puts at most a hair below zero.

    It need not where a value is zero or negative, or where the support was stated.
    """
    values = _known(sample)
    if support is not None or not values.size or not values.min() > 0.0:
        return True
    if law.support[0] >= 0.0:
        return True
    below = ndtr(law.to_normal(np.zeros(sample.size) if law.fields else 0.0))
    return bool(np.nanmean(below) <= _HAIR)


def check_values(sample: Sample, support: Support, variable: str) -> None:
    """Refuse values outside the support that was stated.

    Raises
    ------
    SupportError
        It counts them, shows the first, and says what to do.
    """
    if support is None:
        return
    (lower, upper), values = support, _known(sample)
    bad = values[(values < lower) | (values > upper)]
    if bad.size:
        first = ", ".join(f"{value:g}" for value in bad[:3])
        raise SupportError(
            f"`support` of {variable!r} is from {lower:g} to {upper:g}, but {bad.size} of "
            f"{values.size} values lie outside (first: {first}). Mask them, or state a wider one."
        )
