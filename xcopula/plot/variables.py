"""Which variables of a model a picture shows."""

from __future__ import annotations

from collections.abc import Sequence

from xcopula.model import CopulaModel
from xcopula.warn import shown

__all__ = ["chosen"]


def chosen(model: CopulaModel, variables: str | Sequence[str] | None) -> list[int]:
    """Return the numbers of some variables, in the order of the model; all by default.

    Raises
    ------
    KeyError
        If the model has no such variable.
    ValueError
        If there is none.
    """
    if variables is None:
        return list(range(len(model.tasks)))
    names = [variables] if isinstance(variables, str) else variables
    if not isinstance(names, Sequence) or not names:
        raise ValueError(
            f"`variables` must name at least one variable, found {shown(variables)}. "
            f"Choose from {list(model.tasks)}."
        )
    return sorted({model.task(name) for name in names})
