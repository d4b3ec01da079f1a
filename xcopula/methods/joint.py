"""The one Gaussian model of all variables that the parameters of any method define.

Methods that split the sample predict one place and one variable at a time. What needs several at
once, such as draws, is asked of the joint process at the same parameters: all of a transductive
model's pairs are pairs of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xcopula.methods.transductive import Combined
from xcopula.process import Process, Sample
from xcopula.solvers import Conditioned, Gaussian, Sequential, Solver, settle

__all__ = ["Origin", "is_joint", "joint"]

FloatArray = npt.NDArray[np.float64]


class Origin(NamedTuple):
    """What a conditioned process was made of.

    Attributes
    ----------
    process : Process
    theta : ndarray
    sample : Sample
    solver : Solver
    """

    process: Process
    theta: FloatArray
    sample: Sample
    solver: Solver


def is_joint(conditioned: Conditioned, tasks: int) -> bool:
    """Tell whether predictions come from one Gaussian model of all tasks, of so many."""
    if isinstance(conditioned, Combined):
        return len(conditioned.models) == tasks <= 2 and conditioned.rule.kind != "stacked"
    return isinstance(conditioned, Gaussian) and conditioned.sample.tasks == tasks


def joint(conditioned: Conditioned, origin: Origin) -> Gaussian:
    """Return the one Gaussian model of all variables at the parameters of a conditioned process.

    It is the conditioned one itself where that is such. Else it is exact where all values together
    are few enough, and by neighbours where they are not.
    """
    process, theta, sample, solver = origin
    if is_joint(conditioned, sample.tasks):
        whole = conditioned.models[-1] if isinstance(conditioned, Combined) else conditioned
        assert isinstance(whole, Gaussian)
        return whole
    if not isinstance(solver, Sequential):
        solver = settle(None, [sample.sizes])
    return solver.condition(process, sample, solver.prepare(process, theta, sample), theta)
