"""Where to start with several tasks: where each alone ended, and how their scores correlate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xcopula.arrays import FloatArray, IntArray
from xcopula.fitting.alone import starting_point
from xcopula.fitting.maximise import Fit
from xcopula.kernels.correlation import parameters_of
from xcopula.kernels.covariance import Covariance
from xcopula.process import Process, Sample
from xcopula.process.intervals import typical_scores

__all__ = ["score_correlation", "suggest"]


# Sites of a task that are looked at.
_MOST = 5000


def suggest(
    covariance: Covariance, singles: Sequence[Fit], sample: Sample
) -> tuple[Process, FloatArray]:
    """Return the process of all variables, and where the fits to each alone put it.

    What tasks share starts at the first one's, so that a primary stays as it was alone.
    """
    process = Process(covariance, tuple(single.marginal for single in singles))
    theta = starting_point(covariance)
    for task, single in reversed(list(enumerate(singles))):
        theta = covariance.carry_over(single.covariance, single.theta, theta, task=task)
    if covariance.tasks > 1:
        a = parameters_of(score_correlation(process, sample))
        covariance.part(theta, "correlation")[:] = a
        if covariance.noise == "correlated":
            covariance.part(theta, "noise_correlation")[:] = a
    return process, process.join(theta)


def score_correlation(process: Process, sample: Sample) -> FloatArray:
    """Estimate the correlation between tasks from each site's nearest neighbour in the other."""
    from scipy.spatial import cKDTree

    tasks = process.covariance.tasks
    # In an order of their own, so that it does not matter in which replicates were given.
    places = [sample.inputs[:, sample.task(i)] for i in range(tasks)]
    values = [sample.values[sample.task(i)] for i in range(tasks)]
    orders = [np.lexsort((y, *x)) for x, y in zip(places, values, strict=True)]
    trees = [cKDTree(x[:, order].T) for x, order in zip(places, orders, strict=True)]
    matrix = np.eye(tasks)
    for i in range(tasks):
        size = sample.sizes[i]
        rows = np.linspace(0, size, min(size, _MOST), endpoint=False).astype(np.int64)
        for j in range(i):
            distance, nearest = trees[j].query(trees[i].data[rows])
            close = distance <= np.quantile(distance, 0.5)
            own = _scores(process, sample, i, orders[i][rows[close]])
            other = _scores(process, sample, j, orders[j][nearest[close]])
            with np.errstate(invalid="ignore", divide="ignore"):  # constant scores: no correlation
                r = float(np.corrcoef(own, other)[0, 1])
            matrix[i, j] = matrix[j, i] = 0.0 if np.isnan(r) else np.clip(r, -0.95, 0.95)
    # Estimated pair by pair, the matrix may be indefinite: shrink it until it is not.
    while np.linalg.eigvalsh(matrix)[0] < 0.02:
        matrix = 0.9 * matrix + 0.1 * np.eye(tasks)
    return matrix


def _scores(process: Process, sample: Sample, task: int, rows: IntArray) -> FloatArray:
    """Return the normal scores of some observations of a task, by their places in it."""
    some, which = np.unique(rows, return_inverse=True)
    part = sample.select([task]).take(some)
    law = process.marginals[task].at(part.covariates_of(0))
    return typical_scores((law,), part)[which.reshape(-1)]
