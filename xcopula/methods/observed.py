r"""What is known of an observation at a site that has data.

An observation is the signal plus the site's nugget. Where the task was observed it is the datum
itself. Where other tasks were, their nuggets tell a part of its nugget; the rest of it, and all of
it elsewhere, nothing can tell: sub-models may be combined for all but that rest, which is added
afterwards. So no combination promises more than the nugget allows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xcopula.process import Moments, Sample, Targets

__all__ = ["keep_data", "unexplained"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def keep_data(
    moments: Moments, sample: Sample, scores: FloatArray, targets: Targets, task: int
) -> Moments:
    """Return moments of an observation, with the datum where the task was observed."""
    datum = sample.observed(task, targets.sites)
    known = datum >= 0
    if not known.any():
        return moments
    return Moments(
        np.where(known, scores[datum], moments.mean), np.where(known, 0.0, moments.variance)
    )


def unexplained(nugget: FloatArray, sample: Sample, sites: IntArray, task: int) -> FloatArray:
    """Return the variance (m,) of the nugget of a task that other tasks at the site leave.

    Parameters
    ----------
    nugget : ndarray (t, t)
        Covariance of the nuggets of one site.
    sample : Sample
    sites : ndarray (m,), int64
    task : int
    """
    left = np.full(sites.shape, float(nugget[task, task]))
    met = np.flatnonzero(sites >= 0)
    others = [i for i in range(sample.tasks) if i != task]
    if not met.size or not others:
        return left
    there = np.stack([sample.observed(i, sites[met]) >= 0 for i in others])
    patterns, which = np.unique(there, axis=1, return_inverse=True)
    for k, pattern in enumerate(patterns.T):
        known = [i for i, is_known in zip(others, pattern, strict=True) if is_known]
        if known:
            to_task = nugget[task, known]
            told = to_task @ np.linalg.pinv(nugget[np.ix_(known, known)]) @ to_task
            left[met[which.reshape(-1) == k]] -= told
    return np.asarray(np.maximum(left, 0.0))
