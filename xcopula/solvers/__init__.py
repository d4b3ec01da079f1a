"""Solvers: how one Gaussian sample is evaluated and conditioned.

A new solver is a file beside these that fulfils :class:`~xcopula.solvers.contract.Solver`, and a
line here.
"""

from __future__ import annotations

from xcopula.solvers.contract import Conditioned, Gaussian, Solver
from xcopula.solvers.cost import Cost
from xcopula.solvers.exact import Exact

__all__ = ["SOLVERS", "Conditioned", "Cost", "Exact", "Gaussian", "Solver", "resolve_solver"]

SOLVERS: dict[str, Solver] = {"exact": Exact()}

_CONTRACT = ("prepare", "objective", "condition", "cost")


def resolve_solver(spec: object) -> Solver:
    """Return the solver that a name or an object stands for; "auto" is the exact one.

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
            return SOLVERS["exact"]
        if spec in SOLVERS:
            return SOLVERS[spec]
        raise ValueError(f"Unknown solver {spec!r}. Choose one of {names}.")
    if isinstance(spec, type) and hasattr(spec, "condition"):
        raise TypeError(f"`solver` is a class. Give an object instead: {spec.__name__}().")
    if all(callable(getattr(spec, part, None)) for part in _CONTRACT):
        return spec  # type: ignore[return-value]
    raise TypeError(
        f"`solver` must be {names} or an object of xcopula.solvers; found {type(spec).__name__}."
    )
