r"""How much of a value an observation tells: all of it, or less if it is an interval.

A number tells the mean of its latent score with information 1. An interval tells less: minus the
second derivative of the log probability of its limits, by that mean, is

.. math:: 1 - \operatorname{var}(z \mid a < z < b),

the part of the variance that it takes away. So an interval as narrow as a number counts as one,
"below the median" as :math:`2 / \pi`, and one that is open on both sides as nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from xcopula.marginals.base import Marginal
from xcopula.process.intervals import Intervals, truncate
from xcopula.process.sample import Moments, Sample

__all__ = ["parts_told"]


def parts_told(laws: Sequence[Marginal], sample: Sample) -> npt.NDArray[np.float64]:
    """Return which part of a value each observation (n,) tells, between 0 and 1.

    Laws are bound to the rows of the sample. Zero under a law with an atom is an interval too. What
    other data say of an interval is left out: its law alone counts.
    """
    parts, own = np.ones(sample.size), Intervals.of(laws, sample)
    if own is not None:
        alone = Moments(np.zeros(own.rows.size), np.ones(own.rows.size))
        parts[own.rows] = np.clip(truncate(alone, own.low, own.high).gain, 0.0, 1.0)
    return parts
