"""What a fit takes where nothing was asked for: told by values, units and coordinates, never tried.

Values that cannot be negative have a marginal that ends at zero, or one whose part below zero is
seen as zero. One structure describes space, two describe space and time: what lasts and what
passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from xcopula.arrays import FloatArray
from xcopula.errors import SupportError
from xcopula.kernels import KERNELS, Kernel, Nested, TaskKernel
from xcopula.labels.observations import Observations
from xcopula.marginals import (
    Labels,
    Law,
    Marginal,
    Parzen,
    Recipe,
    SinhArcsinh,
    check_law,
    check_scores,
)
from xcopula.marginals.censored import Censored
from xcopula.marginals.estimation import maximise
from xcopula.marginals.intervals import check_limits
from xcopula.marginals.recipe import fit_law
from xcopula.marginals.truncation import Truncated
from xcopula.marginals.varying import innermost
from xcopula.process import Sample

__all__ = [
    "ROUGH",
    "SMOOTH",
    "Support",
    "check_values",
    "count_structures",
    "default_kernel",
    "fit_within",
    "has_censored_end",
    "is_flexible",
    "start_marginal",
    "support_of",
]

# Ends of the values that a variable can have; None where nothing was stated.
Support = tuple[float, float] | None

# The kernel of one structure, and the one of what lasts where there are several. The latter is also
# that of fields without noise.
ROUGH, SMOOTH = KERNELS["matern12"], KERNELS["matern32"]
# Units whose zero is a convention: nothing is special about it.
_ARBITRARY = {
    *("c", "°c", "degc", "deg_c", "deg c", "celsius", "degree_c", "degree_celsius"),
    *("degrees_c", "degrees_celsius", "degree celsius", "degrees celsius", "deg_celsius"),
    *("f", "°f", "degf", "deg_f", "deg f", "fahrenheit", "degree_f", "degree_fahrenheit"),
    *("degrees_f", "degrees_fahrenheit", "degree fahrenheit", "degrees fahrenheit"),
}


def count_structures(observations: Observations, coupling: str) -> int:
    """Return the number of nested structures: one in space, two where a second group joins it.

    Variables with too few values for two have one, and so has the coupling that allows no more.
    """
    groups = len(observations.coordinates.groups)
    enough = min(observations.sample.sizes) >= 2 * (1 + groups)
    return 2 if groups > 1 and enough and coupling != "icm" else 1


def default_kernel(structures: int) -> TaskKernel:
    """Return the kernel of a variable with so many structures."""
    if structures == 1:
        return ROUGH
    kernels: list[Kernel] = [SMOOTH, *[ROUGH] * (structures - 1)]
    return Nested(tuple(kernels))


def is_flexible(law: Law) -> bool:
    """Tell whether a law is of the default family."""
    if isinstance(law, Marginal):
        return False
    family = law.family if isinstance(law, Recipe) else law
    return family is SinhArcsinh


def _exact(sample: Sample) -> FloatArray:
    """Return the values of one task that are not intervals."""
    return np.asarray(sample.values[~sample.is_interval])


def support_of(law: Law, sample: Sample, stated: Support, attrs: Mapping[str, Any]) -> Support:
    """Return the ends of a variable's values: as stated, or from zero on where none is below.

    Only the default family has ends that were not stated. Units whose zero is a convention have
    none.
    """
    if stated is not None or not is_flexible(law):
        return stated
    if str(attrs.get("units", "")).strip().lower() in _ARBITRARY:
        return None
    values = _exact(sample)
    return (0.0, np.inf) if values.size and values.min() >= 0.0 else None


def has_censored_end(law: Law, sample: Sample, support: Support) -> bool:
    """Tell whether values stand for all below them: at the end of a law that goes on beyond it."""
    if support is None:
        return False
    if isinstance(law, Marginal):
        goes_on = law.support[0] < support[0]
    else:
        goes_on = (law.family if isinstance(law, Recipe) else law).link != "log"
    return goes_on and bool((_exact(sample) == support[0]).any())


def check_values(sample: Sample, support: Support, variable: str) -> None:
    """Refuse values outside the support that was stated.

    Raises
    ------
    SupportError
        It counts them, shows the first, and says what to do.
    """
    if support is None:
        return
    (lower, upper), values = support, _exact(sample)
    bad = values[(values < lower) | (values > upper)]
    if bad.size:
        first = ", ".join(f"{value:g}" for value in bad[:3])
        raise SupportError(
            f"`support` of {variable!r} is from {lower:g} to {upper:g}, but {bad.size} of "
            f"{values.size} values lie outside (first: {first}). Mask them, or state a wider one."
        )


def start_marginal(
    law: Law, sample: Sample, labels: Labels, support: Support, variable: str
) -> Marginal:
    """Fit a marginal to the values of one task, as if independent: bad input ends a fit here.

    Raises
    ------
    ValueError
        If it does not admit the values, or they lie outside the support.
    """
    check_values(sample, support, variable)
    _check_spread(sample, variable)
    covariates = sample.covariates_of(0)
    try:
        fitted = fit_within(law, sample, labels, support)
        check_law(fitted)
    except ValueError as error:
        kind = SupportError if isinstance(error, SupportError) else ValueError
        raise kind(f"Variable {variable!r}: {error}") from None
    if isinstance(law, Marginal):
        fitted.check_support(_exact(sample), variable)
    bound = fitted.at(covariates)
    check_scores(bound, sample.values, variable, ~sample.is_interval)
    if sample.limits is not None:
        check_limits(bound, sample.limits, variable)
    return fitted


def _check_spread(sample: Sample, variable: str) -> None:
    """Refuse values that may all be the same number, as far as their limits say.

    Raises
    ------
    ValueError
        It names the number, and says what to do.
    """
    if sample.limits is None:
        return
    low, high = float(sample.limits[0].max()), float(sample.limits[1].min())
    if low <= high and np.isfinite([low, high]).all():
        raise ValueError(
            f"Variable {variable!r} may be constant: all {sample.size} values may lie between "
            f"{low:g} and {high:g}, so wide are their limits. Correct the limits, give some exact "
            "values, or leave the variable out."
        )


def fit_within(law: Law, sample: Sample, labels: Labels | None, support: Support) -> Marginal:
    """Fit a marginal to the values of one task, cut off or censored at the ends of its support."""
    values, limits = sample.values, sample.limits
    covariates = sample.covariates_of(0)
    if support is None:
        return fit_law(law, values, covariates, labels, limits)
    if not has_censored_end(law, sample, support):
        return _cut(fit_law(law, values, covariates, labels, limits), sample, support)
    lower, upper = support
    limits = np.stack([values, values]) if limits is None else limits.copy()
    at_end = (values == lower) & ~sample.is_interval
    limits[0, at_end] = -np.inf
    link = law.link if isinstance(law, Recipe) else "identity"
    if link == "log" or _has_no_likelihood(law):
        # A start without intervals: logarithms need values above the end.
        filled = np.where(at_end, _below(values[~at_end], lower, link), values)
        fitted = fit_law(law, filled, covariates, labels, sample.limits)
        if link == "log" and innermost(fitted).theta.size:
            fitted = maximise(fitted, filled, covariates, limits=limits)
    else:
        fitted = fit_law(law, values, covariates, labels, limits)
    if np.isfinite(upper):
        fitted = Truncated(fitted, upper=upper)
    return fitted if fitted.support[0] >= lower else Censored(fitted, lower)


def _has_no_likelihood(law: Law) -> bool:
    """Tell whether a law is made of the values themselves, as a smoothed sample is."""
    if isinstance(law, Marginal):
        return True
    return (law.family if isinstance(law, Recipe) else law) is Parzen


def _below(above: FloatArray, lower: float, link: str) -> float:
    """Return a number in place of values at the lower end, where a fit starts."""
    least = float(above.min(initial=np.inf))
    return lower + 0.5 * (least - lower) if link == "log" and np.isfinite(least) else lower


def _cut(law: Marginal, sample: Sample, support: tuple[float, float]) -> Marginal:
    """Return a law without values outside a support: cut off, unless it has none there already."""
    (lower, upper), (low, high) = support, law.support
    if low >= lower and high <= upper:
        return law
    cut = Truncated(law, lower, upper)
    if innermost(law).theta.size == 0:  # a smoothed sample has nothing that could move
        return cut
    return maximise(cut, sample.values, sample.covariates_of(0), limits=sample.limits)
