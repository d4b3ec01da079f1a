"""What a method is: which likelihood over the tasks is maximised, and how a prediction is made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from xcopula.arrays import FloatArray
from xcopula.marginals.base import Marginal
from xcopula.process import Process, Sample
from xcopula.solvers import Conditioned, Cost, Informed, Solver

__all__ = ["Method"]


class Method(ABC):
    """A method of inference: a frozen object that holds its own options.

    It splits the sample into Gaussian sub-models and asks the solver that it is given to evaluate
    and condition them. A *structure* holds what it makes of a sample once; it does not depend on
    the marginal laws.

    Attributes
    ----------
    name : str
        As users ask for it.
    likelihood : str
        What the objective is minus the value of.
    pairwise : bool
        Whether pairs with the primary are fitted before all parameters together.
    polish : bool
        Whether all parameters are fitted together at the end.
    informs : bool
        Whether the method tells what each secondary adds to a prediction.
    law, coupling : str, optional
        The only marginal law, and the only coupling, that the method knows.
    intervals : bool
        Whether values may be known as intervals only, or be the atom of their law.
    """

    name: ClassVar[str]
    likelihood: ClassVar[str] = "log-likelihood"
    pairwise: ClassVar[bool] = False
    polish: bool = True
    informs: ClassVar[bool] = False
    has_information: ClassVar[bool] = False
    law: ClassVar[str | None] = None
    coupling: ClassVar[str | None] = None
    intervals: ClassVar[bool] = True

    @abstractmethod
    def prepare(
        self,
        solver: Solver,
        process: Process,
        theta: FloatArray,
        sample: Sample,
        *,
        terms: int | None = None,
    ) -> Any:
        """Return the structure of a sample, made for parameters near theta; it keeps the solver.

        With ``terms`` about so many terms of each sub-model's likelihood stand for all, where its
        solver is sequential.
        """

    @abstractmethod
    def objective(
        self, process: Process, sample: Sample, structure: Any, theta: FloatArray
    ) -> tuple[float, FloatArray]:
        """Return the negative log-likelihood and its gradient.

        Infinite, with a zero gradient, where a value has no density under its law.
        """

    def information(
        self, process: Process, sample: Sample, structure: Any, theta: FloatArray
    ) -> Informed:
        """Return the objective with its information matrix, where ``has_information`` is set."""
        raise NotImplementedError(f"{self.name} has no information matrix.")

    @abstractmethod
    def condition(
        self, process: Process, sample: Sample, structure: Any, theta: FloatArray
    ) -> Conditioned:
        """Condition the process at theta on a sample."""

    @abstractmethod
    def submodels(self, sizes: Sequence[int]) -> list[list[int]]:
        """Return the sizes of the Gaussian sub-models, from the number of values of each task."""

    def cost(self, solver: Solver, sizes: Sequence[int], correlations: int = 1) -> Cost:
        """Estimate an evaluation from the number of observations of each task.

        An entry of the covariance is made of so many correlations: groups times structures.
        """
        return Cost.total([solver.cost(own, correlations) for own in self.submodels(sizes)])

    def check_intervals(
        self, sample: Sample, laws: Sequence[Marginal | None], names: Sequence[str]
    ) -> None:
        """Refuse values that are known as intervals, and laws with an atom, if it must.

        Raises
        ------
        ValueError
            It names the method and the variables, and says which methods can.
        """
        if self.intervals:
            return
        for i, (name, law) in enumerate(zip(names, laws, strict=True)):
            low, high = sample.limits_of(i)
            if law is not None and law.atom is not None:
                found = f"the law of {name!r} gives {law.atom:g} a probability of its own"
                instead = "choose another law"
            elif (low < high).any():
                count = int((low < high).sum())
                found = f"{count} values of {name!r} are known as intervals"
                instead = "pass `censored=None` to take the values as they are stored"
            else:
                continue
            raise ValueError(
                f"method={self.name!r} takes numbers only, but {found}. Use method='full', "
                f"'transductive' or 'bcm', or {instead}."
            )

    @property
    def needs_joint(self) -> bool:
        """Whether its options need the joint law of many places, which not every solver has."""
        return False

    def mean_is_cheaper(self, solver: Solver | None, tasks: int, task: int) -> bool:
        """Tell whether the mean of a task, of so many, costs less than mean and variance.

        None is a solver that is not known yet: then a mean is never dearer.
        """
        return False

    def for_variables(self, names: Sequence[str]) -> Self:
        """Return the method with options by variable in the order of the tasks.

        Raises
        ------
        KeyError
            If an option names other variables.
        """
        return self
