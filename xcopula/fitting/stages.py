"""Minimise in stages: on some terms of a likelihood, with neighbours that suit, then on all terms.

A likelihood of many terms is costly, and which observations are neighbours depends on the length
scales. So a search begins on terms that stand for all, chooses neighbours anew when lengths have
moved, and ends on all terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from xcopula.arrays import FloatArray, IntArray
from xcopula.fitting.newton import Loss, Optimum, minimise, minimise_from
from xcopula.fitting.watch import Watch

__all__ = ["Staged", "minimise_in_stages"]

# Makes the objective with a structure for parameters near theta: of so many terms, or of all.
Prepare = Callable[[FloatArray, int | None], Loss]

# Length scales that moved by this share have other neighbours. They are chosen anew so often at
# most; on some terms, which say less, less often.
_MOVED = 0.1
_ROUNDS, _ROUNDS_ON_SOME = 4, 2
# On some terms two iterations that gain less nats than this are the last, in nats of these terms:
# they say no more of the others. Roughly, while neighbours are still to be chosen anew or all terms
# are to follow. On all terms there are so many steps at most, and none that promises less nats than
# the last number.
_ROUGH_GAIN, _PART_GAIN = 0.05, 0.01
# The same where all terms are there, but another search goes on.
_START_GAIN = 0.03
_STEPS, _GAIN, _PROMISE = 20, 0.3, 0.1


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
    rough: bool = False,
    watch: Watch | None = None,
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
    rough : bool
        Whether the result is only where another search starts.
    watch : Watch, optional
        Follows every stage.
    """
    ends_on_all = terms is not None and whole
    each = 1.0 if terms is None else size / terms
    first: dict[str, Any] = {"gain": _ROUGH_GAIN * each} if anew or ends_on_all else {}
    exact = {"gain": _START_GAIN} if rough else {}
    fine: dict[str, Any] = exact if terms is None else {"gain": _PART_GAIN * each}
    made = starts[0]
    objective = prepare(made, terms)
    optimum = minimise_from(objective, starts, bounds, watch=watch, **(first or fine))
    rounds = _ROUNDS if terms is None else _ROUNDS_ON_SOME
    for _ in range(rounds if anew else 0):
        if _is_near(optimum.theta, made, lengths):
            break
        made = optimum.theta
        objective = prepare(made, terms)
        optimum = _go_on(optimum, objective, bounds, watch, **first)
    if rough and terms is not None:
        return Staged(optimum, made)
    if terms is not None:
        optimum = _go_on(optimum, objective, bounds, watch, **fine, promise=fine["gain"])
    elif first:
        optimum = _go_on(optimum, objective, bounds, watch, **fine)
    staged = Staged(optimum, made)
    if not ends_on_all:
        return staged
    return _end_on_all(prepare, staged, bounds, lengths=lengths, anew=anew, watch=watch)


def _end_on_all(
    prepare: Prepare,
    begun: Staged,
    bounds: FloatArray,
    *,
    lengths: IntArray,
    anew: bool,
    watch: Watch | None = None,
) -> Staged:
    """Go on with all terms from where a search on some terms has ended.

    Parameters
    ----------
    prepare, bounds, lengths, anew, watch
        As in :func:`minimise_in_stages`.
    begun : Staged
        Where the search on a subsample ended.
    """
    optimum = begun.optimum
    all_terms: dict[str, Any] = {"gain": _GAIN, "iterations": _STEPS, "promise": _PROMISE}
    made = optimum.theta
    optimum = _go_on(optimum, prepare(made, None), bounds, watch, **all_terms)
    if anew and not _is_near(optimum.theta, made, lengths):
        # Steps on all terms have moved them: once more, with the neighbours that suit.
        made = optimum.theta
        optimum = _go_on(optimum, prepare(made, None), bounds, watch, **all_terms)
    return Staged(optimum, made)


def _go_on(
    begun: Optimum, objective: Loss, bounds: FloatArray, watch: Watch | None, **options: Any
) -> Optimum:
    """Minimise from where another search has ended."""
    if watch is not None:
        watch.stage()
    again = minimise(objective, begun.theta, bounds, watch=watch, **options)
    return replace(again, evaluations=again.evaluations + begun.evaluations)


def _is_near(theta: FloatArray, made: FloatArray, lengths: IntArray) -> bool:
    return bool(np.abs(theta[lengths] - made[lengths]).max(initial=0.0) < _MOVED)
