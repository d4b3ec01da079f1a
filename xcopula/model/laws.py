"""The laws of a model's variables, in the order of the variables and by their names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xcopula.marginals import Marginal
from xcopula.warn import shown

__all__ = ["NamedLaws"]


class NamedLaws(tuple[Marginal, ...]):
    """A tuple of laws that can also be asked by name.

    Attributes
    ----------
    names : tuple of str
        The variables, in the order of the laws.

    Examples
    --------
    >>> from xcopula.marginals import Gamma, Normal
    >>> laws = NamedLaws([Gamma(), Normal()], ["pm10", "temperature"])
    >>> laws["pm10"] is laws[0], len(laws)
    (True, 2)
    """

    names: tuple[str, ...]

    def __new__(cls, laws: Iterable[Marginal], names: Iterable[str]) -> NamedLaws:
        """Name some laws."""
        self = super().__new__(cls, tuple(laws))
        self.names = tuple(names)
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self), self.names

    def __getitem__(self, key: Any) -> Any:
        """Return the law of a variable, by its name or its number.

        Raises
        ------
        KeyError
            If there is no variable of this name.
        """
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key not in self.names:
            raise KeyError(
                f"The model has no variable {shown(key)}; it has {list(self.names)}. "
                "Choose one of these."
            )
        return super().__getitem__(self.names.index(key))
