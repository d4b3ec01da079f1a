"""Checks of a sample, and the climb to its maximum likelihood."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from xcopula.marginals.base import Marginal, reject_outside
from xcopula.marginals.tails import Array

__all__ = ["check_sample", "maximise"]

_STEP = 1e-5  # of the width of the bounds

M = TypeVar("M", bound=Marginal)


def check_sample(values: npt.ArrayLike, law: type[Marginal], *, lower: float = -np.inf) -> Array:
    """Return the values as a float64 array if the law can be fitted to them.

    Raises
    ------
    SupportError
        If a value lies at or below ``lower``, or is infinite.
    ValueError
        If the array is not 1-D, has NaN, or has fewer than two different values.
    """
    y = np.asarray(values, dtype=np.float64)
    if y.ndim != 1:
        raise ValueError(f"{law.name} is fitted to a 1-D array, got shape {y.shape}. Ravel it.")
    if np.isnan(y).any():
        raise ValueError(f"{law.name}: {np.isnan(y).sum()} of {y.size} values are NaN. Drop them.")
    reject_outside(y, law, (lower, np.inf), law.needs)
    if y.size == 0 or y.min() == y.max():
        raise ValueError(
            f"{law.name} needs at least two different values, got {np.unique(y).size} "
            f"in a sample of {y.size}. A constant variable has no law to fit: leave it out."
        )
    return y


def maximise(start: M, values: Array, *, iterations: int = 200, tolerance: float = 1e-9) -> M:
    """Climb from ``start`` to the maximum of the log likelihood plus the log prior.

    Newton steps with a Hessian from differences of the score; an outer product of scores stands in
    where that Hessian is not negative definite. Steps are halved until the objective grows, so that
    parameters which put a value outside the support are never accepted.
    """
    law, best = start, _objective(start, values)
    for _ in range(iterations):
        # the box moves along: it holds back a shape, but not a location with a poor start
        theta, bounds = law.theta, law.bounds
        step, size, value = _newton_step(law, values), 1.0, -np.inf
        while size > 1e-6:
            trial = law.with_theta(np.clip(theta + size * step, bounds[:, 0], bounds[:, 1]))
            value = _objective(trial, values)
            if value > best:
                break
            size /= 2.0
        if not value > best:
            break
        gain, law, best = value - best, trial, value
        if gain < tolerance:
            break
    return law


def _objective(law: Marginal, values: Array) -> float:
    return float(law.log_density(values).sum()) + law.log_prior()[0]


def _gradient(law: Marginal, values: Array) -> Array:
    return np.asarray(law.log_density_gradient(values).sum(axis=0) + law.log_prior()[1])


def _newton_step(law: Marginal, values: Array) -> Array:
    # in units of the widths of the bounds, so that the data's own units do not matter
    theta, widths = law.theta, np.ptp(law.bounds, axis=1)
    gradient = widths * _gradient(law, values)
    hessian = np.empty((theta.size, theta.size))
    for k, unit in enumerate(np.eye(theta.size)):
        move = _STEP * widths * unit
        above, below = law.with_theta(theta + move), law.with_theta(theta - move)
        difference = _gradient(below, values) - _gradient(above, values)
        hessian[k] = widths * difference / (2.0 * _STEP)
    hessian = 0.5 * (hessian + hessian.T)
    if not np.isfinite(hessian).all() or np.linalg.eigvalsh(hessian)[0] <= 0.0:
        scores = widths * law.log_density_gradient(values)
        hessian = scores.T @ scores + 1e-8 * np.eye(theta.size)
    # a parameter that presses against its bound stays there while the others move on
    low, high = law.bounds.T
    free = ~((theta <= low) & (gradient < 0.0)) & ~((theta >= high) & (gradient > 0.0))
    step = np.zeros(theta.size)
    step[free] = np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
    return np.asarray(widths * step)
