"""Names that results need for themselves: no variable and no input may have them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from xcopula.errors import CoordinateError

__all__ = ["DIMS", "check_inputs", "check_variables"]

# First dims of results; "observation" is one that a target may have too, as ``loo`` gives it.
DIMS = ("quantile", "threshold", "bound", "secondary", "realization")
_OF_VARIABLES = (*DIMS, "observation")
# What ``loo`` and ``latent`` return beside the coordinates.
_SCORES = ("observed", "median", "lower", "upper", "pit", "crps", "log_score", "score")
_OF_INPUTS = (*DIMS, *_SCORES, "mean", "std")


def check_variables(names: Iterable[str]) -> None:
    """Refuse variables that are named like a dim of a result, or whose name cannot be written.

    Raises
    ------
    ValueError
        With the name, and what to do.
    """
    for name in names:
        if name in _OF_VARIABLES:
            raise ValueError(
                f"A variable is called {name!r}, which results need as the name of a dim. Rename "
                f"it, as in `ds.rename({name}='{name}_value')`."
            )
        if not name or name != name.encode("utf-8", "ignore").decode():
            raise ValueError(
                f"A variable is called {name!a}, which cannot be shown or written to a file. "
                f"Rename it, as in `ds.rename({{{name!a}: 'value'}})`."
            )


def check_inputs(names: Iterable[str], also: Collection[str] = ()) -> None:
    """Refuse inputs that are named like a part of a result.

    Parameters
    ----------
    names : iterable of str
        Of the inputs.
    also : collection of str
        What a result needs beside the names that every model keeps free.

    Raises
    ------
    CoordinateError
        With the name, and what to do.
    """
    for name in names:
        if name in _OF_INPUTS or name in also:
            raise CoordinateError(
                f"An input is called {name!r}, which results need for a part of their own. Rename "
                f"the coordinate, as in `ds.rename({name}='{name}_axis')`."
            )
