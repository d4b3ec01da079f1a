"""Let processes of all variables compete by values that are left out, and share the prediction.

A likelihood says how well a process describes the values, a score of left-out values how well it
predicts them. Candidates that are close are averaged, not picked: which one is best is not known.
Where values are many one is picked: the simplest of those that are not surely worse than the best.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from xcopula.errors import NotPositiveDefiniteError
from xcopula.fitting.rivals import Rival, name_of
from xcopula.fitting.stacking import akaike_weights, stack
from xcopula.fitting.together import Fitted, LeftOut, Together
from xcopula.fitting.watch import Watch, best_of
from xcopula.model.candidates import Trial
from xcopula.progress.run import UNHEARD, Step
from xcopula.solvers import Sequential

__all__ = ["compete"]

FloatArray = npt.NDArray[np.float64]

_log = logging.getLogger("xcopula")

# A candidate with less weight than this is not worth its share of every prediction.
_LEAST = 0.05
# Several structures have many parameters, and a few iterations do not bring all of them to where
# they are best. A candidate that this leaves no further behind in AIC goes on.
_CLOSE = 4.0
# More than chance: so many standard errors of a mean difference of scores.
_ERRORS = 2.0


@dataclass(frozen=True)
class _Tried:
    fitted: Fitted
    scores: LeftOut


def _aic(fitted: Fitted) -> float:
    """Return Akaike's criterion of the whole model."""
    return 2.0 * (_size(fitted) - fitted.log_likelihood)


def _size(fitted: Fitted) -> float:
    """Return how many parameters a whole model has."""
    process = fitted.process
    return process.covariance.size + sum(law.dof for law in process.marginals)


def compete(
    together: Together, first: Fitted, rivals: Sequence[Rival], step: Step = UNHEARD
) -> Fitted:
    """Fit rivals for a few iterations from where they start, and weigh them all.

    Those with several structures that come close are fitted to the end. Where some terms stand for
    all, the candidates know no others: all of them are for the one that is picked.

    Returns
    -------
    Fitted
        The one with the largest weight, fitted to the end. Those with which it shares the
        prediction are its ``others``.
    """
    fits = [first]
    for rival in rivals:
        name = name_of(rival.process)
        try:
            with step.run.step("rival", step.names[:1], name, counts=False) as own:
                fitted = together.fit(rival.process, rival.start, scout=True, watch=Watch(own))
        except NotPositiveDefiniteError:
            continue  # no candidate: there are others
        if np.isfinite(fitted.optimum.value):
            fits.append(fitted)
    keep = best_of(together.request.ticket).keep_whole
    if len(fits) == 1:
        return together.end(first, watch=Watch(step, keep(first.process)))
    fits = _gone_on(together, fits, step)
    where = together.to_leave_out(first)
    tried = [_Tried(f, together.left_out(f, where)) for f in fits]
    weights = _weights(together, tried)
    best = int(np.argmax(weights))
    trials = [
        Trial(
            name_of(t.fitted.process),
            t.fitted.log_likelihood,
            t.scores.mean_crps,
            t.scores.mean_log_score,
            float(w),
        )
        for t, w in zip(tried, weights, strict=True)
    ]
    _log.info("Candidates of the whole model: %s", trials)
    leader = tried[best].fitted
    evaluations = sum(t.fitted.optimum.evaluations for t in tried)
    watch = Watch(step, keep(leader.process))
    if leader is not first:
        leader = together.fit(leader.process, leader.theta, watch=watch)
        evaluations += leader.optimum.evaluations
    else:
        leader = together.end(first, watch=watch)
        evaluations += leader.optimum.evaluations - first.optimum.evaluations
    kept = [(tried[k].fitted, float(weights[k])) for k in np.flatnonzero(weights) if k != best]
    return replace(
        leader,
        others=tuple(kept),
        trials=tuple(sorted(trials, key=lambda t: -t.weight)),
        optimum=replace(leader.optimum, evaluations=evaluations),
    )


def _gone_on(together: Together, fits: Sequence[Fitted], step: Step) -> list[Fitted]:
    """Fit to the end what was cut short, has several structures and is close to the least AIC."""
    if isinstance(together.request.solver, Sequential):
        return list(fits)  # AIC has no say, and the one that is picked goes on in any case
    least, found = min(map(_aic, fits)), []
    for fitted in fits:
        short = not fitted.optimum.converged and fitted.process.covariance.structures > 1
        if short and _aic(fitted) - least <= _CLOSE:
            name, begun = name_of(fitted.process), fitted.optimum.evaluations
            with step.run.step("rival", step.names[:1], name, counts=False) as own:
                fitted = together.fit(fitted.process, fitted.theta, restart=False, watch=Watch(own))
            total = fitted.optimum.evaluations + begun
            fitted = replace(fitted, optimum=replace(fitted.optimum, evaluations=total))
        found.append(fitted)
    return found


def _weights(together: Together, tried: Sequence[_Tried]) -> FloatArray:
    """Return the weights of candidates, zero for those that are not worth a share."""
    if isinstance(together.request.solver, Sequential):
        return np.asarray(np.arange(len(tried)) == _picked(tried), np.float64)
    densities = np.stack([t.scores.log_densities for t in tried], axis=1)
    weights = stack(densities, akaike_weights(np.array([_aic(t.fitted) for t in tried])))
    weights = np.where(weights < _LEAST, 0.0, weights)
    return np.asarray(weights / weights.sum())


def _picked(tried: Sequence[_Tried]) -> int:
    """Return the candidate with the least CRPS, or a simpler one that is as good but for chance.

    Values that are left out are a sample of all: a small difference of means is no reason for more
    parameters.
    """
    scores = [t.scores for t in tried]
    best = scores[int(np.argmin([s.mean_crps for s in scores]))]
    as_good = [
        k for k, s in enumerate(scores) if s.mean_crps - best.mean_crps <= _ERRORS * s.error(best)
    ]
    return min(as_good, key=lambda k: (_size(tried[k].fitted), scores[k].mean_crps))
