"""Check the marginal laws that users define, once, before a fit."""

from __future__ import annotations

import inspect
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from xcopula.marginals.base import Marginal
from xcopula.marginals.families import MARGINALS
from xcopula.marginals.tails import Array, log_phi
from xcopula.marginals.varying import Varying, innermost
from xcopula.warn import shown

__all__ = ["check_family", "check_law"]

_SCORES = np.linspace(-3.0, 3.0, 25)
_STEP = 1e-4  # of scores, for the slope of the values
_TOLERANCE = 1e-6
# Of log densities. A law may have kinks, where differences miss the slope: the median counts.
_DENSITY_TOLERANCE = 1e-2


def check_family(law: type[Marginal]) -> None:
    """Refuse a class that cannot be fitted to values.

    Raises
    ------
    TypeError
        If it lacks a member, or ``fit``.
    """
    names = ", ".join(map(repr, MARGINALS))
    if issubclass(law, Varying):
        raise TypeError(
            f"{law.__name__} is fitted by a recipe. Give `regress(...)` or `by(...)` instead of "
            "the class."
        )
    if inspect.isabstract(law):
        missing = ", ".join(sorted(law.__abstractmethods__))
        raise TypeError(
            f"{law.__name__} is no law: it lacks {missing}. Choose one of {names}, or define them."
        )
    if getattr(law.fit, "__func__", None) is Marginal.fit.__func__:  # type: ignore[attr-defined]
        raise TypeError(
            f"{law.__name__} has no fit. Pass an instance with starting parameters instead."
        )


def check_law(law: Marginal) -> None:
    """Refuse a law that does not keep the contract of :class:`Marginal`.

    The package's own laws do. Of a law that is made of another, that one is looked at.

    Raises
    ------
    ValueError
        With what was found, and what to do.
    """
    law = innermost(law)
    if type(law) in MARGINALS.values():
        return
    with np.errstate(all="ignore"):
        _check_parameters(law)
        _check_maps(law)
        _check_density(law)


def _refuse(law: Marginal, found: str, remedy: str) -> NoReturn:
    raise ValueError(f"{type(law).__name__} is no law: {found}. {remedy}.")


def _check_parameters(law: Marginal) -> None:
    theta = np.asarray(law.theta)
    if theta.ndim != 1 or theta.dtype.kind not in "iuf" or not np.isfinite(theta).all():
        _refuse(law, f"its theta is {shown(law.theta)}", "Give it a 1-D array of finite numbers")
    again = law.with_theta(theta)
    if not isinstance(again, Marginal):
        _refuse(law, f"with_theta returns {shown(again)}", "Return the law at that theta")


def _evaluate(law: Marginal, method: str, x: npt.NDArray[np.float64]) -> Array:
    """Call a map of a law, and refuse anything but numbers in the shape of its argument."""
    result = np.asarray(getattr(law, method)(x), np.float64)
    if result.shape != x.shape:
        found = f"{method} returns shape {result.shape} for an array of shape {x.shape}"
        _refuse(law, found, "Return an array of the shape of its argument")
    return result


def _check_maps(law: Marginal) -> None:
    z = _SCORES
    y = _evaluate(law, "from_normal", z)
    if not np.isfinite(y).all():
        found = f"from_normal({z[~np.isfinite(y)][0]:g}) is {y[~np.isfinite(y)][0]}"
        _refuse(law, found, "Return a finite value for every finite score")
    rise = np.diff(y)
    if not (rise > 0.0).all():
        k = int(np.argmin(rise))
        found = f"from_normal goes from {y[k]:g} to {y[k + 1]:g} as the score grows from {z[k]:g}"
        _refuse(law, found, "It must increase")
    back = _evaluate(law, "to_normal", y)
    worst = int(np.argmax(np.where(np.isnan(back), np.inf, np.abs(back - z))))
    if not abs(back[worst] - z[worst]) <= _TOLERANCE * max(1.0, abs(z[worst])):
        found = f"to_normal(from_normal({z[worst]:g})) is {back[worst]:g}"
        _refuse(law, found, "Let each be the inverse of the other")


def _check_density(law: Marginal) -> None:
    """Compare the density with the slope of the map to normal scores."""
    z = _SCORES
    y = _evaluate(law, "from_normal", z)
    above, below = (_evaluate(law, "from_normal", z + step) for step in (_STEP, -_STEP))
    expected = log_phi(z) - np.log((above - below) / (2.0 * _STEP))
    missed = np.abs(_evaluate(law, "log_density", y) - expected)
    if not np.median(missed) <= _DENSITY_TOLERANCE:
        k = int(np.argmax(np.where(np.isnan(missed), np.inf, missed)))
        density = _evaluate(law, "log_density", y)[k]
        found = f"log_density({y[k]:g}) is {density:g}, where to_normal has {expected[k]:g}"
        _refuse(law, found, "Give the logarithm of the derivative of its distribution function")
