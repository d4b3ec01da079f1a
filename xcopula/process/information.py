r"""Information content of observations: one of an exact value, less of an interval.

The Fisher information of an exact value about the mean of its latent score is 1. That of an
interval is less: minus the second derivative of the log probability of the interval is

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

__all__ = ["information_content"]


def information_content(laws: Sequence[Marginal], sample: Sample) -> npt.NDArray[np.float64]:
    """Return the information content (n,) of observations, between 0 and 1.

    Laws are bound to the rows of the sample. Zero under a law with an atom is an interval too. What
    other data say of an interval is left out: its law alone counts.
    """
    content, intervals = np.ones(sample.size), Intervals.of(laws, sample)
    if intervals is not None:
        rows, standard = intervals.rows, np.ones(intervals.rows.size)
        truncated = truncate(Moments(0.0 * standard, standard), intervals.low, intervals.high)
        content[rows] = np.clip(truncated.gain, 0.0, 1.0)
    return content
