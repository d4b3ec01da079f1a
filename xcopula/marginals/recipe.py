"""Recipes: laws that vary from observation to observation, before they are fitted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from xcopula.errors import SupportError
from xcopula.marginals.base import Marginal, reject_outside
from xcopula.marginals.estimation import maximise
from xcopula.marginals.families import MARGINALS
from xcopula.marginals.flexible import SinhArcsinh
from xcopula.marginals.intervals import is_interval, starting_values
from xcopula.marginals.parzen import Parzen
from xcopula.marginals.tails import Array

__all__ = ["FEWEST", "Labels", "Law", "Recipe", "check_once", "contains", "fit_law", "ingredient"]

Labels = Mapping[str, tuple[str, ...]]

# Fewest values for a group, and for a regression beyond one for each coefficient.
FEWEST = 5


@dataclass(frozen=True)
class Recipe(ABC):
    """A law that varies with covariates, before it is fitted; see ``regress`` and ``by``.

    Attributes
    ----------
    law : type of Marginal or Recipe
        The law that varies.
    """

    law: type[Marginal] | Recipe

    @property
    @abstractmethod
    def fields(self) -> tuple[str, ...]:
        """Names of the covariates: a key of groups first, then those of a regression."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The fields that define groups."""
        return self.law.keys if isinstance(self.law, Recipe) else ()

    @property
    @abstractmethod
    def name(self) -> str:
        """What varies and with what, such as "gamma ~ elevation"."""

    @property
    def family(self) -> type[Marginal]:
        """The family of the innermost law."""
        return self.law.family if isinstance(self.law, Recipe) else self.law

    def with_family(self, family: type[Marginal]) -> Self:
        """Return the recipe with another family in the place of its own."""
        law = self.law.with_family(family) if isinstance(self.law, Recipe) else family
        return replace(self, law=law)

    @property
    def link(self) -> str:
        """How a trend enters the law."""
        return self.law.link

    @property
    def remedy(self) -> str:
        """What to do about values that the law does not admit."""
        return self.law.remedy

    def fit(
        self, values: npt.ArrayLike, covariates: npt.ArrayLike, labels: Labels | None = None
    ) -> Marginal:
        """Fit the law to independent values.

        Parameters
        ----------
        values : array-like (n,)
            Without NaN.
        covariates : array-like (n, c)
            Columns in the order of ``fields``. The column of a key has group numbers, from 0.
        labels : mapping of str to tuple of str, optional
            Names of the groups of each key; "0", "1", ... by default.

        Returns
        -------
        Marginal
            Not bound to rows: see :meth:`Marginal.at`.

        Raises
        ------
        SupportError
            If a value lies outside the support of the family.
        ValueError
            If the covariates do not determine the parameters, or a group has too few values.
        """
        family = self.family
        y, table = self._check(values, covariates)
        if family.link == "log":
            reject_outside(y, family, (0.0, np.inf), family.needs)
        return self._fit(y, table, labels or {}, residuals=False)

    def _check(self, values: npt.ArrayLike, covariates: npt.ArrayLike) -> tuple[Array, Array]:
        y = np.asarray(values, dtype=np.float64)
        table = np.asarray(covariates, dtype=np.float64)
        if y.ndim != 1:
            raise ValueError(
                f"{self.name} needs a 1-D array of values, found shape {y.shape}. Flatten it."
            )
        if table.shape != (y.size, len(self.fields)):
            raise ValueError(
                f"{self.name} needs covariates of shape ({y.size}, {len(self.fields)}), with the "
                f"columns {', '.join(self.fields)}; found shape {table.shape}."
            )
        for what, column in zip(("values", *self.fields), (y, *table.T), strict=True):
            count = int((~np.isfinite(column)).sum())
            if count:
                raise ValueError(
                    f"{self.name}: {count} of {y.size} {what} are NaN or infinite. Drop them."
                )
        return y, table

    @abstractmethod
    def _fit(self, y: Array, table: Array, labels: Labels, *, residuals: bool) -> Marginal:
        """Fit the law to checked values; :meth:`Parzen.fit` explains ``residuals``."""

    def _fit_inner(self, y: Array, table: Array, labels: Labels, *, residuals: bool) -> Marginal:
        if isinstance(self.law, Recipe):
            return self.law._fit(y, table, labels, residuals=residuals)
        if issubclass(self.law, Parzen):
            return self.law.fit(y, residuals=residuals)
        return self.law.fit(y)


Law = Marginal | type[Marginal] | Recipe


def ingredient(law: object, maker: str) -> type[Marginal] | Recipe:
    """Return what a recipe is made of: a family, that of "auto" is flexible, or another recipe."""
    if isinstance(law, str) and law == "auto":
        return SinhArcsinh
    if isinstance(law, Recipe) or (isinstance(law, type) and issubclass(law, Marginal)):
        return law
    names = ", ".join(repr(name) for name in MARGINALS)
    if isinstance(law, Marginal):
        raise TypeError(
            f"{maker} fits the parameters itself, so it takes no instance; found one of "
            f"{type(law).__name__}. Pass its name, {law.name!r}, or its class."
        )
    if not isinstance(law, str):
        raise TypeError(
            f"{maker} needs a law: 'auto', one of {names}, a Marginal class, or another recipe; "
            f"found {type(law).__name__}."
        )
    if law not in MARGINALS:
        raise ValueError(f"Unknown marginal {law!r}. Choose 'auto' or one of {names}.")
    return MARGINALS[law]


def contains(law: type[Marginal] | Recipe, kind: type[Recipe]) -> bool:
    """Tell whether a law is a recipe of this kind, or contains one."""
    while isinstance(law, Recipe):
        if isinstance(law, kind):
            return True
        law = law.law
    return False


def check_once(recipe: Recipe) -> None:
    """Raise if a field is both a key of groups and a covariate."""
    repeated = {name for name in recipe.fields if recipe.fields.count(name) > 1}
    if repeated:
        raise ValueError(
            f"{recipe.name} groups by {', '.join(map(repr, sorted(repeated)))} and regresses on "
            "it. It is constant within each group and has no slope there: do one of the two."
        )


def fit_law(
    law: Law,
    values: npt.ArrayLike,
    covariates: npt.ArrayLike | None = None,
    labels: Labels | None = None,
    limits: Array | None = None,
) -> Marginal:
    """Return a law, fitted to independent values unless it is already an instance.

    Parameters
    ----------
    law : Marginal, type of Marginal or Recipe
        An instance is returned unchanged. A class is fitted to the values, and a recipe to values
        and covariates.
    values, covariates, labels
        See :meth:`Recipe.fit`.
    limits : ndarray (2, n), optional
        Between which numbers each value lies, where some are known as intervals only.

    Returns
    -------
    Marginal
        Not bound to rows.

    Raises
    ------
    SupportError
        If the law does not admit the values, or, as the Parzen law, no intervals.
    """
    if isinstance(law, Marginal):
        return law
    if covariates is None:
        covariates = np.empty((np.size(values), 0))
    if limits is not None and is_interval(limits).any():
        return _fit_to_intervals(law, np.asarray(values, np.float64), covariates, labels, limits)
    return law.fit(values, covariates, labels) if isinstance(law, Recipe) else law.fit(values)


def _fit_to_intervals(
    law: type[Marginal] | Recipe,
    values: Array,
    covariates: npt.ArrayLike,
    labels: Labels | None,
    limits: Array,
) -> Marginal:
    """Fit a law to values of which some are intervals, from a fit to numbers in their place."""
    open_ = is_interval(limits)
    family = law.family if isinstance(law, Recipe) else law
    if issubclass(family, Parzen):
        raise SupportError(
            f"{law.name} is made of the values themselves and takes no intervals: {open_.sum()} of "
            f"{values.size} values are known as intervals only. Choose another marginal, such as "
            "'gamma', 'lognormal' or 'gev'."
        )
    if family.link == "log" and (limits[1, open_] <= 0.0).any():
        ends = limits[1, open_ & (limits[1] <= 0.0)]
        raise SupportError(
            f"{law.name} needs positive values: {ends.size} of {open_.sum()} intervals end at or "
            f"below zero (first: {ends[0]:g}). Check the limits and their units, or choose a "
            "marginal with wider support ('normal', 'gev', 't')."
        )
    known = starting_values(values, limits)
    start = fit_law(law, known, covariates, labels)
    return maximise(start, known, np.asarray(covariates, np.float64), limits=limits)
