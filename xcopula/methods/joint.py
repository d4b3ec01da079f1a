"""The one Gaussian model of all variables that the parameters of any method define.

Methods that split the sample predict one place and one variable at a time. What needs several at
once, such as draws, is asked of the joint process at the same parameters: all of a transductive
model's pairs are pairs of it.
"""

from __future__ import annotations

from typing import NamedTuple

from xcopula.arrays import FloatArray, IntArray
from xcopula.methods.transductive import Combined
from xcopula.process import Process, Sample
from xcopula.solvers import Conditioned, Gaussian, Sequential, Solver, settle

__all__ = ["Origin", "is_joint", "joint", "joint_origin"]


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

    def condition(self) -> Gaussian:
        """Condition the process on all of the sample at once."""
        process, theta, sample, solver = self
        return solver.condition(process, sample, solver.prepare(process, theta, sample), theta)

    def given(self, rows: IntArray) -> Origin:
        """Return it with some observations alone, by their increasing numbers.

        A variable may be left without any value.
        """
        return self._replace(sample=self.sample.take(rows))


def is_joint(conditioned: Conditioned, tasks: int) -> bool:
    """Tell whether predictions come from one Gaussian model of all tasks, of so many."""
    if isinstance(conditioned, Combined):
        return len(conditioned.models) == tasks <= 2
    return isinstance(conditioned, Gaussian) and conditioned.sample.tasks == tasks


def joint(conditioned: Conditioned, origin: Origin) -> Gaussian:
    """Return the one Gaussian model of all variables at the parameters of a conditioned process.

    It is the conditioned one itself where that is such. Else it is exact where all values together
    are few enough, and by neighbours where they are not.
    """
    if is_joint(conditioned, origin.sample.tasks):
        whole = conditioned.models[-1] if isinstance(conditioned, Combined) else conditioned
        assert isinstance(whole, Gaussian)
        return whole
    return joint_origin(conditioned, origin).condition()


def joint_origin(conditioned: Conditioned, origin: Origin) -> Origin:
    """Return what :func:`joint` is made of: the solver is one that takes all values together."""
    tasks, solver = origin.sample.tasks, origin.solver
    if is_joint(conditioned, tasks) or isinstance(solver, Sequential):
        return origin
    return origin._replace(solver=settle(None, [origin.sample.sizes]))
