"""What a method is: which likelihood over the tasks is maximised, and how a prediction is made."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from xcopula.process import Process, Sample, Targets
from xcopula.solvers import Conditioned, Cost, Solver

__all__ = ["Locate", "Method", "check_integer", "is_labelled"]

FloatArray = npt.NDArray[np.float64]
# Turns labelled points, whose name in messages comes first, into targets.
Locate = Callable[[str, Any], Targets]


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
    solves : bool
        Whether the likelihood and the prediction use the solver. Step one always does.
    law, coupling : str, optional
        The only marginal law, and the only coupling, that the method knows.
    """

    name: ClassVar[str]
    likelihood: ClassVar[str] = "log-likelihood"
    pairwise: ClassVar[bool] = False
    polish: bool = True
    informs: ClassVar[bool] = False
    solves: ClassVar[bool] = True
    law: ClassVar[str | None] = None
    coupling: ClassVar[str | None] = None

    @abstractmethod
    def prepare(self, solver: Solver, process: Process, theta: FloatArray, sample: Sample) -> Any:
        """Return the structure of a sample, made for parameters near theta; it keeps the solver."""

    @abstractmethod
    def objective(
        self, process: Process, sample: Sample, structure: Any, theta: FloatArray
    ) -> tuple[float, FloatArray]:
        """Return the negative log-likelihood and its gradient.

        Infinite, with a zero gradient, where a value has no density under its law.
        """

    @abstractmethod
    def condition(
        self, process: Process, sample: Sample, structure: Any, theta: FloatArray
    ) -> Conditioned:
        """Condition the process at theta on a sample."""

    @abstractmethod
    def cost(self, solver: Solver, sizes: Sequence[int]) -> Cost:
        """Estimate an evaluation from the number of observations of each task."""

    def labelled(self) -> Mapping[str, Any]:
        """Return the labelled points among the options, by the names of these."""
        return {}

    def located(self, locate: Locate, names: Sequence[str]) -> Self:
        """Return the method with labelled points turned into inputs.

        ``names`` are the variables, in the order of the tasks.
        """
        return self


def is_labelled(points: object) -> bool:
    """Tell whether points carry labels, as a Dataset does."""
    return hasattr(points, "coords") and hasattr(points, "data_vars")


def check_integer(name: str, value: object, *, least: int = 0) -> int:
    """Return a whole number of any integer type.

    Raises
    ------
    TypeError
        If it is no whole number.
    ValueError
        If it is less than ``least``.
    """
    try:
        if isinstance(value, bool | np.bool_):  # numpy 2.0 only warns of the latter
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"`{name}` must be an integer, found {value!r}.") from None
    if number < least:
        raise ValueError(f"`{name}` must be at least {least}, found {number}.")
    return number
