"""The recipe for one law per group, before it is fitted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from xcopula.arguments import check_options
from xcopula.arrays import IntArray
from xcopula.errors import SupportError
from xcopula.marginals.base import Marginal
from xcopula.marginals.grouping import Grouped, check_codes, rows_of_groups
from xcopula.marginals.recipe import FEWEST, Labels, Recipe, check_once, contains, ingredient
from xcopula.marginals.tails import Array

__all__ = ["By", "by"]


@dataclass(frozen=True)
class By(Recipe):
    """A recipe for a :class:`~xcopula.marginals.grouping.Grouped` law; see :func:`by`.

    Attributes
    ----------
    key : str
        What to group by.
    """

    key: str

    @property
    def fields(self) -> tuple[str, ...]:
        """The key, then the covariates of the law."""
        return (self.key, *(self.law.fields if isinstance(self.law, Recipe) else ()))

    @property
    def keys(self) -> tuple[str, ...]:
        """The key."""
        return (self.key,)

    @property
    def name(self) -> str:
        """The family and the key."""
        return f"{self.law.name} by {self.key}"

    def _fit(self, y: Array, table: Array, labels: Labels, *, residuals: bool) -> Marginal:
        codes = table[:, 0]
        names = labels.get(self.key)
        if names is None:
            names = tuple(str(g) for g in range(int(codes.max(initial=-1.0)) + 1))
        members = rows_of_groups(check_codes(codes, self.key, names), len(names))
        self._check_groups(y, members, names)
        laws = []
        for name, rows in zip(names, members, strict=True):
            try:
                law = self._fit_inner(y[rows], table[rows, 1:], labels, residuals=residuals)
            except (SupportError, ValueError) as error:
                kind = SupportError if isinstance(error, SupportError) else ValueError
                raise kind(f"{self.key}={name}: {error}") from None
            laws.append(law)
        return Grouped(self.key, names, tuple(laws))

    def _check_groups(
        self, y: Array, members: tuple[IntArray, ...], names: tuple[str, ...]
    ) -> None:
        groups = list(zip(names, members, strict=True))
        few = [f"{name} ({rows.size})" for name, rows in groups if rows.size < FEWEST]
        if not names:
            raise ValueError(f"{self.name} needs at least one group, and there is none.")
        if few:
            raise ValueError(
                f"{self.name} needs at least {FEWEST} values in each group; these have "
                f"fewer: {', '.join(few)}. Choose larger groups, or leave these out."
            )
        flat = [name for name, rows in groups if np.ptp(y[rows]) == 0.0]
        if flat:
            raise ValueError(
                f"{self.name}: all values of {', '.join(flat)} are the same. No law can be "
                "fitted to a constant: choose larger groups, or leave these out."
            )


@check_options
def by(key: str, law: str | type[Marginal] | Recipe = "auto") -> By:
    """Describe a law that differs from group to group, such as from month to month.

    Parameters
    ----------
    key : str
        What to group by: a coordinate, a variable, or a part of a time, such as "time.month" or
        "time.season".
    law : str, type of Marginal or recipe
        The law of each group; "auto" is the flexible one. ``regress(...)`` gives each group its own
        trend.

    Returns
    -------
    By

    Raises
    ------
    ValueError
        If a name is unknown.
    TypeError
        If the law is an instance, or the key is not a string.

    Examples
    --------
    >>> from xcopula import regress
    >>> by("time.month", regress("gamma", on="elevation")).fields
    ('time.month', 'elevation')
    """
    if not isinstance(key, str) or not key:
        raise TypeError(f"by needs the name of what to group by, found {key!r}.")
    inner = ingredient(law, "by")
    if contains(inner, By):
        raise ValueError(
            "by cannot contain another by: a law has one key. Make a coordinate that names the "
            "combinations, such as 'JJA north', and group by that."
        )
    recipe = By(inner, key)
    check_once(recipe)
    return recipe
