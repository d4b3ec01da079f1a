"""What places have in common once the data are known: covariances of one Gaussian posterior."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xcopula.arrays import FloatArray
from xcopula.kernels.assembly import between, cross, scaled_inputs
from xcopula.kernels.covariance import CovarianceState
from xcopula.process import Targets
from xcopula.solvers import Gaussian
from xcopula.solvers.batches import batches

__all__ = ["Places", "covariance_between", "variance_at"]


class Places(NamedTuple):
    """Where a variable is asked for, as an observation or as the signal without its nugget.

    Attributes
    ----------
    targets : Targets
        Places that are to share a nugget have one number, be they sites of the data or not.
    task : int
    nugget : bool
    """

    targets: Targets
    task: int
    nugget: bool


def covariance_between(
    gaussian: Gaussian, state: CovarianceState, measured: Targets, task: int, places: Places
) -> FloatArray:
    """Return the covariance (k, m) of observations to be made with places, given the data.

    Parameters
    ----------
    gaussian : Gaussian
        Conditioned on the data.
    state : CovarianceState
        Its covariance.
    measured : Targets
        Where (k) the observations would be made.
    task : int
        Which variable they would measure.
    places : Places
        Of (m) targets.
    """
    sample, (targets, other, nugget) = gaussian.sample, places
    inputs = scaled_inputs(sample.inputs, state)
    out = np.empty((measured.size, targets.size))
    for part in batches(measured.size, sample.size):
        some = measured.take(part)
        points = scaled_inputs(some.inputs, state)
        rows = cross(state, points, some.sites, task, inputs, sample.sites, sample.offsets)
        # The mean is linear in the scores: of scores that are covariances it is what they explain.
        out[part] = -gaussian.means(targets, rows, task=other, nugget=nugget)
    for part in batches(targets.size, measured.size):
        some = targets.take(part)
        both = measured.inputs, measured.sites, task, some.inputs, some.sites, other
        out[:, part] += between(state, *both, nugget=nugget)
    return out


def variance_at(gaussian: Gaussian, places: Places) -> FloatArray:
    """Return the variance (m,) of places given the data.

    That of a value that is known as an interval is what stands in for it leaves.
    """
    targets, task, nugget = places
    variance = gaussian.moments(targets, task=task, nugget=nugget).variance
    if gaussian.extra is None or not nugget:
        return variance
    datum = gaussian.sample.observed(task, targets.sites)
    extra = np.where(datum >= 0, gaussian.extra[datum], 0.0)
    with np.errstate(invalid="ignore"):
        both = variance * extra / (variance + extra)
    return np.where(extra > 0.0, both, variance)
