r"""What is known of an observation at a site that has data.

An observation is the signal plus the site's nugget. Where the task was observed it is the datum
itself. Where other tasks were, their nuggets may tell a part of its nugget. The rest, and all of it
elsewhere, nothing can tell: no combination of sub-models may promise less variance than that.
"""

from __future__ import annotations

import numpy as np

from xcopula.arrays import FloatArray, IntArray
from xcopula.process import Sample

__all__ = ["unexplained", "untold"]


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


def untold(left: FloatArray, nugget: float) -> FloatArray:
    """Return the nugget (m,) where nothing at the site tells of it, and zero where something does.

    There, and only there, an observation is the signal and something apart. Elsewhere tasks at the
    site are independent given the observation, not given the signal or a part of the nugget.

    Parameters
    ----------
    left : ndarray (m,)
        What :func:`unexplained` says.
    nugget : float
        Variance of the task's nugget.
    """
    return np.where(left < nugget * (1.0 - 1e-9), 0.0, left)
