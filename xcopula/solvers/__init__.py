"""Solvers: how one Gaussian sample is evaluated and conditioned.

A new solver is a file beside these that fulfils :class:`~xcopula.solvers.contract.Solver`, and a
line here.
"""

from __future__ import annotations

from collections.abc import Sequence

from xcopula.solvers.contract import (
    Conditioned,
    Gaussian,
    Informed,
    Joint,
    LeavesOut,
    Sequential,
    Solver,
)
from xcopula.solvers.cost import Cost
from xcopula.solvers.exact import Exact
from xcopula.solvers.neighbours import Neighbours

__all__ = [
    "MOST_EXACT",
    "SOLVERS",
    "Conditioned",
    "Cost",
    "Exact",
    "Gaussian",
    "Informed",
    "Joint",
    "LeavesOut",
    "Neighbours",
    "Sequential",
    "Solver",
    "resolve_solver",
    "settle",
]

SOLVERS: dict[str, Solver] = {"exact": Exact(), "neighbours": Neighbours()}

_CONTRACT = ("prepare", "objective", "condition", "cost")
_SAYS = ("name", "mean_is_cheaper")


# A sub-model of so many values is evaluated exactly in some seconds.
MOST_EXACT = 4000


def settle(solver: Solver | None, submodels: Sequence[Sequence[int]]) -> Solver:
    """Return the solver for sub-models of these sizes; None leaves the choice.

    Exact where every sub-model is small enough, by neighbours where one is not.
    """
    if solver is not None:
        return solver
    largest = max((sum(sizes) for sizes in submodels), default=0)
    return SOLVERS["exact" if largest <= MOST_EXACT else "neighbours"]


def resolve_solver(spec: object) -> Solver | None:
    """Return the solver that a name or an object stands for; None for "auto".

    Raises
    ------
    ValueError
        If the name is unknown.
    TypeError
        If it is neither a name nor a solver.
    """
    names = ", ".join(map(repr, ("auto", *SOLVERS)))
    if isinstance(spec, str):
        if spec == "auto":
            return None
        if spec in SOLVERS:
            return SOLVERS[spec]
        raise ValueError(f"Unknown solver {spec!r}. Choose one of {names}.")
    if isinstance(spec, type) and hasattr(spec, "condition"):
        raise TypeError(f"`solver` is a class. Give an object instead: {spec.__name__}().")
    does = all(callable(getattr(spec, part, None)) for part in _CONTRACT)
    if does and all(hasattr(spec, part) for part in _SAYS):
        return spec  # type: ignore[return-value]
    raise TypeError(
        f"`solver` must be {names} or an object of xcopula.solvers; found {type(spec).__name__}."
    )
