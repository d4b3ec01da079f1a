"""Minimise in stages: on some terms of a likelihood, with neighbours that suit, then on all terms.

A likelihood of many terms is costly, and which observations are neighbours depends on the length
scales. So a search begins on terms that stand for all, chooses neighbours anew when lengths have
moved, and ends on all terms. There few evaluations are needed: the part says how the whole bends,
and only its slope is corrected.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from xcopula.errors import NotPositiveDefiniteError
from xcopula.fitting.optimiser import (
    UNWATCHED,
    Objective,
    Optimum,
    Watching,
    minimise,
    minimise_from,
    units,
)

__all__ = ["Staged", "minimise_in_stages"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
# Makes the objective with a structure for parameters near theta: of so many terms, or of all.
Prepare = Callable[[FloatArray, int | None], Objective]

_log = logging.getLogger("xcopula")

# Length scales that moved by this share have other neighbours. They are chosen anew so often at
# most; on some terms, which say less, less often.
_MOVED = 0.1
_ROUNDS, _ROUNDS_ON_SOME = 4, 2
# On some terms two iterations that gain less nats than this are the last, in nats of these terms:
# they say no more of the others. Roughly, while neighbours are still to be chosen anew or all terms
# are to follow. On all terms there are so many steps, until one promises to gain less.
_ROUGH_GAIN, _PART_GAIN = 0.05, 0.01
_STEPS = 12
_GAIN = 0.3
# A step is a search on the part, until two iterations gain less than this; and so long, since what
# it finds far away is the part's and not the whole's.
_STEP_GAIN, _STEP_SIZE = 0.03, 25
# A spring keeps steps short where the part is flat: so many nats for a unit of a parameter, more
# after a step that fails. Where it is so stiff, what it leaves to gain says little.
_LEAST_STIFFNESS, _STIFFER, _MOST_STIFFNESS = 1.0, 10.0, 1e3


@dataclass(frozen=True)
class Staged:
    """Where a search in stages ended, and the parameters that its last structure was made for."""

    optimum: Optimum
    prepared: FloatArray


def minimise_in_stages(
    prepare: Prepare,
    starts: Sequence[FloatArray],
    bounds: FloatArray,
    *,
    terms: int | None,
    size: int,
    lengths: IntArray,
    anew: bool,
    whole: bool = True,
    watch: Watching = UNWATCHED,
    **options: Any,
) -> Staged:
    """Minimise on some terms, choose neighbours anew until they suit, then minimise on all terms.

    Parameters
    ----------
    prepare : callable
    starts : sequence of ndarray
        Neighbours are first chosen for the first of them.
    bounds : ndarray (size, 2)
    terms : int or None
        How many terms stand for all; None for all of them, and then there is one stage only.
    size : int
        How many there are.
    lengths : ndarray of int
        Where the length scales, in logarithms, stand in theta.
    anew : bool
        Whether the structure depends on the lengths.
    whole : bool
        Whether to end on all terms; else what the part says is enough.
    watch : Watching, optional
        Follows every stage; ``progress`` of the options follows the first search only.
    **options
        Of :func:`~xcopula.fitting.optimiser.minimise_from`, for the first search.
    """
    ends_on_all = terms is not None and whole
    each = 1.0 if terms is None else size / terms
    rough: dict[str, Any] = {"gain": _ROUGH_GAIN * each} if anew or ends_on_all else {}
    fine: dict[str, Any] = {} if terms is None else {"gain": _PART_GAIN * each}
    made = starts[0]
    objective = prepare(made, terms)
    optimum = minimise_from(objective, starts, bounds, watch=watch, **(rough or fine), **options)
    rounds = _ROUNDS if terms is None else _ROUNDS_ON_SOME
    for _ in range(rounds if anew else 0):
        if _is_near(optimum.theta, made, lengths):
            break
        made = optimum.theta
        objective = prepare(made, terms)
        optimum = _go_on(optimum, objective, bounds, watch, **rough)
    if not ends_on_all:
        if rough:
            optimum = _go_on(optimum, objective, bounds, watch, **fine)
        return Staged(optimum, made)
    if anew and not _is_near(optimum.theta, made, lengths):
        # The part has the neighbours of the whole: what is corrected is who is in it, no more.
        made = optimum.theta
        objective = prepare(made, terms)
    optimum = _correct(prepare(made, None), objective, optimum, bounds, watch)
    if anew and not _is_near(optimum.theta, made, lengths):
        # Steps on all terms have moved them: once more, with the neighbours that suit.
        made = optimum.theta
        objective = prepare(made, terms)
        optimum = _correct(prepare(made, None), objective, optimum, bounds, watch)
    return Staged(optimum, made)


def _go_on(
    begun: Optimum, objective: Objective, bounds: FloatArray, watch: Watching, **options: Any
) -> Optimum:
    """Minimise from where another search has ended."""
    watch.stage()
    again = minimise(
        objective, begun.theta, bounds, progress=watch, curvature=begun.curvature, **options
    )
    return replace(again, evaluations=again.evaluations + begun.evaluations)


def _is_near(theta: FloatArray, made: FloatArray, lengths: IntArray) -> bool:
    return bool(np.abs(theta[lengths] - made[lengths]).max(initial=0.0) < _MOVED)


def _correct(
    whole: Objective, part: Objective, begun: Optimum, bounds: FloatArray, watch: Watching
) -> Optimum:
    """Minimise the whole from the part's minimum.

    The part, its slope corrected to that of the whole at the present point, is minimised; where it
    promises next to nothing the whole is at its minimum. Each step costs one evaluation of the
    whole. A step that does not gain is tried again with a stiffer spring.
    """
    theta, evaluations = begun.theta, begun.evaluations + 1
    value, slope = whole(theta)
    if not np.isfinite(value):
        return replace(begun, converged=False, message="a value left the support of its law")
    stiffness, curvature = _LEAST_STIFFNESS, begun.curvature
    watch.stage()
    for number in range(1, 1 + _STEPS):
        watch(number, value, theta)
        _, own = part(theta)
        corrected = _tilted(part, slope - own, theta, stiffness / units(bounds) ** 2)
        step = minimise(
            corrected, theta, bounds, curvature=curvature, gain=_STEP_GAIN, iterations=_STEP_SIZE
        )
        curvature = step.curvature
        promised = corrected(theta)[0] - step.value
        _log.debug("All terms: value %.2f, %.2f nats promised", value, promised)
        if promised < _GAIN:
            message = f"{promised:.2g} nats are left to gain"
            return Optimum(theta, value, stiffness < _MOST_STIFFNESS, message, evaluations)
        evaluations += 1
        try:
            new_value, new_slope = whole(step.theta)
        except NotPositiveDefiniteError:
            new_value, new_slope = np.inf, slope
        if np.isfinite(new_value) and new_value < value:
            theta, value, slope = step.theta, new_value, new_slope
            stiffness = max(stiffness / _STIFFER, _LEAST_STIFFNESS)
        else:
            stiffness *= _STIFFER
    message = f"{_STEPS} steps on all terms were not enough"
    return Optimum(theta, value, False, message, evaluations)


def _tilted(
    objective: Objective, tilt: FloatArray, theta: FloatArray, stiffness: FloatArray
) -> Objective:
    """Return an objective with a slope added, and a spring that holds it at theta."""

    def value(point: FloatArray) -> tuple[float, FloatArray]:
        own, slope = objective(point)
        away = point - theta
        pull = stiffness * away
        return own + float((tilt + 0.5 * pull) @ away), slope + tilt + pull

    return value
