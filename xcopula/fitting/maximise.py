"""The one way to maximise a likelihood: of a variable alone, of a pair, of all together.

A likelihood of many terms is expensive, and the choice of neighbours depends on the length scales.
So a search begins on a subsample of the terms, chooses neighbours anew when lengths have moved, and
ends on all terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from xcopula.arrays import FloatArray, IntArray
from xcopula.fitting.newton import Loss, Optimum, minimise, minimise_from
from xcopula.fitting.watch import Watch
from xcopula.kernels import TaskKernel
from xcopula.kernels.covariance import Covariance
from xcopula.marginals import Marginal
from xcopula.process import Process, Sample
from xcopula.solvers import Sequential, Solver

__all__ = [
    "Fit",
    "length_parameters",
    "maximise",
    "minimise_in_stages",
    "penalised",
    "subsample_size",
]

# Makes the loss with neighbours and blocks for parameters near theta: of so many terms, or of all.
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
class Fit:
    """A process at the parameters where a search ended.

    Attributes
    ----------
    process : Process
    theta : ndarray
    log_likelihood : float
        Without weak priors.
    optimum : Optimum
        How the search ended; its value includes weak priors.
    prepared : ndarray
        Parameters at which neighbours and blocks were chosen.
    """

    process: Process
    theta: FloatArray
    log_likelihood: float
    optimum: Optimum
    prepared: FloatArray

    @classmethod
    def of(cls, process: Process, optimum: Optimum) -> Fit:
        """Return the fit of a process by a search over all of its parameters."""
        theta = optimum.theta
        prepared = theta if optimum.prepared is None else optimum.prepared
        log_likelihood = -optimum.value - process.log_prior(theta)[0]
        return cls(process, theta, log_likelihood, optimum, prepared)

    @property
    def covariance(self) -> Covariance:
        """The covariance of the process."""
        return self.process.covariance

    @property
    def kernel(self) -> TaskKernel:
        """The kernel of the first variable."""
        return self.covariance.kernels[0]

    @property
    def marginal(self) -> Marginal:
        """The marginal of the first variable, at its fitted parameters."""
        return self.process.split(self.theta)[1][0]

    @property
    def nugget(self) -> float:
        """Share of the nugget in the variance of the first variable."""
        return float(self.covariance.matrices(self.theta[: self.covariance.size])[-1, 0, 0])

    @property
    def aic(self) -> float:
        """Akaike's information criterion of a single-task process."""
        return 2.0 * (self.covariance.size + self.marginal.dof - self.log_likelihood)


def maximise(
    process: Process,
    prepare: Prepare,
    starts: Sequence[FloatArray],
    *,
    free: IntArray | None = None,
    **stages: Any,
) -> Fit:
    """Maximise a likelihood with weak priors, from the best of some starting points.

    Parameters
    ----------
    process : Process
    prepare : callable
        Makes the loss for parameters near theta, of some terms or of all.
    starts : sequence of ndarray
    free : ndarray of int, optional
        Parameters that are searched; the others are held at the first start. All by default.
    **stages
        Of :func:`minimise_in_stages`.
    """
    free = np.arange(process.size) if free is None else free

    def filled(part: FloatArray) -> FloatArray:
        point = starts[0].copy()
        point[free] = part
        return point

    def prepare_free(part: FloatArray, terms: int | None) -> Loss:
        whole = prepare(filled(part), terms)

        def loss(point: FloatArray) -> tuple[float, FloatArray, FloatArray | None]:
            value, gradient, matrix = whole(filled(point))
            return value, gradient[free], None if matrix is None else matrix[np.ix_(free, free)]

        return loss

    optimum = minimise_in_stages(
        prepare if free.size == process.size else prepare_free,
        [start[free] for start in starts],
        process.bounds()[free],
        lengths=np.flatnonzero(np.isin(free, length_parameters(process))),
        **stages,
    )
    assert optimum.prepared is not None
    whole = replace(optimum, theta=filled(optimum.theta), prepared=filled(optimum.prepared))
    if free.size < process.size:
        whole = replace(whole, information=None)
    return Fit.of(process, whole)


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
) -> Optimum:
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
        return replace(optimum, prepared=made)
    if terms is not None:
        optimum = _go_on(optimum, objective, bounds, watch, **fine, promise=fine["gain"])
    elif first:
        optimum = _go_on(optimum, objective, bounds, watch, **fine)
    if not ends_on_all:
        return replace(optimum, prepared=made)
    return _end_on_all(prepare, optimum, bounds, lengths=lengths, anew=anew, watch=watch)


def _end_on_all(
    prepare: Prepare,
    optimum: Optimum,
    bounds: FloatArray,
    *,
    lengths: IntArray,
    anew: bool,
    watch: Watch | None = None,
) -> Optimum:
    """Go on with all terms from where a search on some terms has ended.

    Parameters
    ----------
    prepare, bounds, lengths, anew, watch
        As in :func:`minimise_in_stages`.
    optimum : Optimum
        Where the search on a subsample ended.
    """
    all_terms: dict[str, Any] = {"gain": _GAIN, "iterations": _STEPS, "promise": _PROMISE}
    made = optimum.theta
    optimum = _go_on(optimum, prepare(made, None), bounds, watch, **all_terms)
    if anew and not _is_near(optimum.theta, made, lengths):
        # Steps on all terms have moved them: once more, with the neighbours that suit.
        made = optimum.theta
        optimum = _go_on(optimum, prepare(made, None), bounds, watch, **all_terms)
    return replace(optimum, prepared=made)


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


def penalised(
    process: Process,
    objective: Callable[[FloatArray], tuple[float, FloatArray]],
    information: Callable[[FloatArray], Any] | None = None,
) -> Loss:
    """Return the negative log posterior density, with its information where there is one."""

    def value(theta: FloatArray) -> tuple[float, FloatArray, FloatArray | None]:
        if information is None:
            (nll, gradient), matrix = objective(theta), None
        else:
            nll, gradient, matrix = information(theta)
        prior, prior_gradient = process.log_prior(theta)
        if matrix is not None:
            matrix = matrix + process.prior_information(theta)
        return nll - prior, gradient - prior_gradient, matrix

    return value


def subsample_size(solver: Solver, sample: Sample, terms: int) -> int | None:
    """Return the number of terms in a subsample; None where it would save little."""
    return terms if isinstance(solver, Sequential) and sample.size > 2 * terms else None


def length_parameters(process: Process) -> IntArray:
    """Return where the length scales, and the scales of columns, stand in theta."""
    theta = np.arange(process.covariance.size)
    parts = [process.covariance.part(theta, name).ravel() for name in ("length", "scaling")]
    return np.concatenate(parts)
