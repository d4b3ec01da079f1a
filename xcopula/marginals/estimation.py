"""Check a sample, and climb to the maximum of its likelihood."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from xcopula.arrays import IntArray
from xcopula.marginals.base import Marginal, reject_outside
from xcopula.marginals.intervals import interval_pullback, log_evidence, starting_values
from xcopula.marginals.tails import Array

__all__ = ["check_sample", "maximise"]

_STEPS = (1e-5, 1e-7)  # of differences, in widths of the bounds
_FLAT = 1e-6  # least curvature, of the largest
_MANY = 20_000  # a sample of more values has a part that is climbed first
_SHARE = 0.02  # of the values that are in the part,
_FEWEST = 5_000  # which has at least so many,
_FEWEST_PER_GROUP = 400  # and so many of each group
_NEAR = 1e-3  # gain that ends the climb of the part
_STEERED = 15  # steps on all values that take the part's Hessian
_ROUNDING = 1e-15
_LARGEST = 1e150  # its square is a number
_CLOSEST = 1e-13  # of the largest value: closer ones differ by their rounding
_NARROWEST = 1e-6  # of the deviation of the values: a law that collapses onto ties stops there

M = TypeVar("M", bound=Marginal)


def check_sample(values: npt.ArrayLike, law: type[Marginal], *, lower: float = -np.inf) -> Array:
    """Return the values as a float64 array if the law can be fitted to them.

    Raises
    ------
    SupportError
        If a value lies at or below ``lower``, or is infinite.
    TypeError
        If they are no real numbers.
    ValueError
        If the array is not 1-D, has NaN, has fewer than two different values, or values that are
        too large or too close to each other to compute with.
    """
    y = np.asarray(values)
    if y.dtype.kind == "c":
        raise TypeError(
            f"{law.name} needs real values, found dtype {y.dtype}. Take their `.real` part, their "
            "`.imag` part or their `abs`."
        )
    y = y.astype(np.float64)
    if y.ndim != 1:
        raise ValueError(
            f"{law.name} needs a 1-D array of values, found shape {y.shape}. Flatten it."
        )
    if np.isnan(y).any():
        raise ValueError(f"{law.name}: {np.isnan(y).sum()} of {y.size} values are NaN. Drop them.")
    reject_outside(y, law, (lower, np.inf), law.needs)
    if y.size == 0 or y.min() == y.max():
        raise ValueError(
            f"{law.name} needs at least two different values, found {np.unique(y).size} in a "
            f"sample of {y.size}. No law can be fitted to a constant variable: leave it out."
        )
    _check_size(y, law)
    return y


def _check_size(y: Array, law: type[Marginal]) -> None:
    """Refuse values whose squares are no numbers, or whose differences are rounding."""
    largest = float(np.abs(y).max())
    if largest > _LARGEST:
        raise ValueError(
            f"{law.name}: values up to {largest:.3g} are too large to compute with. Rescale their "
            f"units: divide them by {largest:.0e}, say."
        )
    spread = float(np.ptp(y))
    if spread < 1.0 / _LARGEST:
        raise ValueError(
            f"{law.name}: values that spread by {spread:.3g} are too close to compute with. "
            "Rescale their units: choose smaller ones."
        )
    if spread < _CLOSEST * largest:
        raise ValueError(
            f"{law.name}: values near {largest:.3g} that spread by {spread:.3g} differ by little "
            "more than rounding. Subtract their mean before they are rounded."
        )


def maximise(
    start: M,
    values: Array,
    covariates: Array | None = None,
    *,
    limits: Array | None = None,
    iterations: int = 200,
    tolerance: float = 1e-9,
) -> M:
    """Climb from ``start`` to the maximum of the log likelihood plus the log prior.

    Each step is Newton's, with a Hessian from differences of the gradient. Where the Hessian is not
    negative definite, its positive eigenvalues change sign, so that the step still leads uphill.
    Steps are halved until the objective grows: parameters that put a value outside the support are
    never accepted.

    A large sample is climbed twice. The first climb takes a part of the values; the second takes
    all of them, starts where the first ended, and borrows only the Hessian of the part.

    Parameters
    ----------
    start : Marginal
        Not bound to rows.
    values : ndarray (n,)
    covariates : ndarray (n, c), optional
        Rows of a law that varies.
    limits : ndarray (2, n), optional
        Between which numbers each value lies, where some are known as intervals only.
    iterations : int
    tolerance : float
        A step that gains less than this is the last one.

    Returns
    -------
    Marginal
        Not bound to rows.
    """
    table = np.empty((values.size, 0)) if covariates is None else covariates
    law: Marginal = start.at(table)
    every = _Objective(values, limits=limits)
    if values.size <= _MANY:
        return start.with_theta(_climb(law, every, iterations, tolerance).theta)
    groups = table[:, 0] if len(start.parts) > 1 else np.zeros(values.size)
    typical = values if limits is None else starting_values(values, limits)
    rows, weights = _choose_rows(groups, _outwardness(law, typical))
    part = _Objective(values[rows], weights, None if limits is None else limits[:, rows])
    near = _climb(start.at(table[rows]), part, iterations, _NEAR)
    widths = np.ptp(near.bounds, axis=1)
    steering, first = part.curvature(near, widths), law.with_theta(near.theta)
    if not np.isfinite(every.value(first)):  # a value outside the part is outside the support
        return start.with_theta(_climb(law, every, iterations, tolerance).theta)
    steering /= np.outer(widths, widths)
    return start.with_theta(_climb(first, every, iterations, tolerance, steering).theta)


@dataclass(frozen=True, eq=False)
class _Objective:
    """The log likelihood of values plus the log prior, and its derivatives in theta.

    Laws are bound to the rows of the values. A value counts as often as its weight says. With
    limits, some values are known as intervals only.
    """

    values: Array
    weights: Array | None = None
    limits: Array | None = None

    def value(self, law: Marginal) -> float:
        if law.link == "identity" and law.parameters.get("scale", np.inf) < self._narrowest:
            return -np.inf
        if self.limits is None:
            each = law.log_density(self.values)
        else:
            each = log_evidence(law, self.values, self.limits)
        total = each.sum() if self.weights is None else self.weights @ each
        return float(total) + law.log_prior()[0]

    @functools.cached_property
    def _narrowest(self) -> float:
        return _NARROWEST * float(self.values.std())

    def gradient(self, law: Marginal) -> Array:
        if self.limits is None:
            out = law.density_pullback(self.values, self.weights)
        else:
            out = interval_pullback(law, self.values, self.limits, self.weights)
        out = out + law.log_prior()[1]
        return out

    def curvature(self, law: Marginal, widths: Array) -> Array:
        """Return a positive definite stand-in for minus the Hessian, in units of the widths."""
        indefinite = None
        for step in _STEPS:  # a short one close to the end of a support
            hessian = self._hessian(law, widths, step)
            if not np.isfinite(hessian).all():
                continue
            if _is_positive_definite(hessian):
                return hessian
            indefinite = hessian
        if indefinite is not None:
            # uphill along every axis: away from a saddle, not to it
            values, vectors = np.linalg.eigh(indefinite)
            steep = np.maximum(np.abs(values), _FLAT * np.abs(values).max())
            return np.asarray((vectors * steep) @ vectors.T)
        known = self.values if self.limits is None else starting_values(self.values, self.limits)
        scores = widths * law.log_density_gradient(known)
        if self.weights is not None:
            scores *= np.sqrt(self.weights)[:, None]
        return np.asarray(scores.T @ scores + 1e-8 * np.eye(widths.size))

    def _hessian(self, law: Marginal, widths: Array, step: float) -> Array:
        """Return minus the Hessian (p, p) in units of the widths, from differences of gradients."""
        theta, parts = law.theta, law.parts
        out, own = np.zeros((theta.size, theta.size)), parts[-1].stop

        def change(moved: list[int]) -> Array:
            move = np.zeros(theta.size)
            move[moved] = step * widths[moved]
            below, above = law.with_theta(theta - move), law.with_theta(theta + move)
            return widths * (self.gradient(below) - self.gradient(above)) / (2.0 * step)

        # parameters of different parts act on different values, so that all parts move at once
        for k in range(max(part.stop - part.start for part in parts)):
            moved = [part for part in parts if part.start + k < part.stop]
            by_moved = change([part.start + k for part in moved])
            for part in moved:
                out[part.start + k, part] = by_moved[part]
        for k in range(own, theta.size):
            out[k] = change([k])
            out[:own, k] = out[k, :own]
        return np.asarray(0.5 * (out + out.T))


def _is_positive_definite(matrix: Array) -> bool:
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


def _climb(
    law: Marginal,
    objective: _Objective,
    iterations: int,
    tolerance: float,
    steering: Array | None = None,
) -> Marginal:
    """Climb from a law to the maximum; ``steering`` is the curvature for the first steps."""
    best = objective.value(law)
    for count in range(iterations):
        # the box moves along: it holds back a shape, but not a location with a poor start
        theta, bounds, gradient = law.theta, law.bounds, objective.gradient(law)
        # widths of the bounds are the units, so that the data's own units do not matter
        widths = np.ptp(bounds, axis=1)
        # steering may be poor, as where a few extreme values tell most
        if steering is not None and count < _STEERED:
            curvature = np.outer(widths, widths) * steering
        else:
            curvature = objective.curvature(law, widths)
        step, size, value = _newton_step(theta, bounds, gradient, curvature), 1.0, -np.inf
        if steering is not None and 0.5 * gradient @ step < max(tolerance, _ROUNDING * abs(best)):
            break
        while size > 1e-6:
            trial = law.with_theta(np.clip(theta + size * step, bounds[:, 0], bounds[:, 1]))
            value = objective.value(trial)
            if value > best:
                break
            size /= 2.0
        if not value > best:
            break
        gain, law, best = value - best, trial, value
        if gain < tolerance:
            break
    return law


def _newton_step(theta: Array, bounds: Array, gradient: Array, curvature: Array) -> Array:
    widths = np.ptp(bounds, axis=1)
    gradient = widths * gradient
    # a parameter that presses against its bound stays there while the others move on
    low, high = bounds.T
    free = ~((theta <= low) & (gradient < 0.0)) & ~((theta >= high) & (gradient > 0.0))
    step = np.zeros(theta.size)
    curvature, gradient = curvature[np.ix_(free, free)], gradient[free]
    try:
        step[free] = np.linalg.solve(curvature, gradient)
    except np.linalg.LinAlgError:
        # singular to rounding: a step along each axis climbs too
        step[free] = gradient / np.diag(curvature)
    return np.asarray(widths * step)


def _outwardness(law: Marginal, values: Array) -> Array:
    """Rank values from the far end of the lower tail to the far end of the upper one."""
    log_density = law.log_density(values)
    return np.asarray(np.sign(law.log_density_slope(values)) * (log_density - log_density.max()))


def _choose_rows(groups: Array, outwardness: Array) -> tuple[IntArray, Array]:
    """Choose rows of each group, always the same; return them and their weights.

    The outermost values of a group are all chosen, since they tell most about tails and supports,
    and others at random. A row weighs as many rows as it stands for.
    """
    order = np.random.default_rng(0).permutation(groups.size)
    order = order[np.argsort(groups[order], kind="stable")]
    members = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
    quota = max(_FEWEST, int(_SHARE * groups.size)) // len(members)
    quota = max(quota, _FEWEST_PER_GROUP)
    chosen, weights = [], []
    for rows in members:
        few = min(quota, rows.size)
        tail = few // 10
        ranked = np.argpartition(outwardness[rows], [tail, rows.size - 1 - tail])
        outer = np.zeros(rows.size, bool)
        outer[ranked[:tail]] = outer[ranked[rows.size - tail :]] = True
        inner = rows[~outer]
        drawn = inner[: few - 2 * tail]
        chosen += [rows[outer], drawn]
        weights += [np.ones(2 * tail), np.full(drawn.size, inner.size / drawn.size)]
    return np.concatenate(chosen), np.concatenate(weights)
