"""Follow searches: tell of their iterations, and keep the best parameters that they found."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from xcopula.arrays import FloatArray
from xcopula.progress.run import SILENT_STEP, Step

__all__ = ["Best", "Watch", "best_of", "keep_best"]

Evaluate = Callable[[FloatArray], Any]


class Best:
    """The best parameters of a fit so far, for whoever interrupts it.

    Attributes
    ----------
    given : tuple, optional
        Observations, request, each variable alone and the table of what was compared, once the
        joint fit has begun.
    pairs : dict of int to ndarray
        Parameters of pair models, by the number of the secondary.
    whole : tuple of (Process, ndarray), optional
        All parameters.
    log_posterior : float
        There: the log-likelihood of the step with weak priors.
    evaluations : int
        Of step two.
    """

    def __init__(self) -> None:
        self.given: tuple[Any, Any, Any, Any] | None = None
        self.pairs: dict[int, FloatArray] = {}
        self.whole: tuple[Any, FloatArray] | None = None
        self.log_posterior = np.nan
        self._count = itertools.count()
        self.evaluations = 0

    def keep_pair(self, task: int, theta: FloatArray, log_posterior: float) -> None:
        """Keep the parameters of a pair model."""
        self.pairs[task] = theta

    def keep_whole(self, process: Any) -> Callable[[FloatArray, float], None]:
        """Return what keeps all parameters of a process."""

        def keep(theta: FloatArray, log_posterior: float) -> None:
            self.whole, self.log_posterior = (process, theta), log_posterior

        return keep

    def counted(self, evaluate: Evaluate) -> Evaluate:
        """Return a function whose evaluations are counted here."""

        def counts(theta: FloatArray) -> Any:
            self.evaluations = 1 + next(self._count)  # of several threads, without a lock
            return evaluate(theta)

        return counts


_kept: dict[int, Best] = {}


@contextmanager
def keep_best(ticket: int) -> Iterator[Best]:
    """Keep the best parameters of the fit with this ticket."""
    _kept[ticket] = Best()
    try:
        yield _kept[ticket]
    finally:
        del _kept[ticket]


def best_of(ticket: int) -> Best:
    """Return where the best parameters of a fit are kept; nowhere, if it is of another process."""
    return _kept.get(ticket) or Best()


class Watch:
    """Follows one search, which may have several starts and several stages.

    Values of one stage can be compared; the next one has another structure, or all terms, and
    begins where the last one ended.

    Parameters
    ----------
    step : Step
        Who is told.
    keep : callable, optional
        Called as ``keep(theta, log_posterior)`` with each point that is better than the last.
    """

    def __init__(
        self,
        step: Step = SILENT_STEP,
        keep: Callable[[FloatArray, float], object] | None = None,
    ) -> None:
        self._step, self._keep = step, keep
        self._value = np.inf

    def stage(self) -> None:
        """Forget the value of the best point: those that follow are of another function."""
        self._value = np.inf

    def begin(self, start: int, starts: int) -> None:
        """Go on with one of several starting points."""
        self._step = self._step.begun_at(start, starts)

    def __call__(self, iteration: int, value: float, theta: FloatArray) -> None:
        """Note an iteration: the least value that its search has met, and where."""
        if value < self._value:
            self._value = value
            if self._keep is not None:
                self._keep(theta, -value)
        self._step.report("go", iteration=iteration, log_posterior=-float(value))
