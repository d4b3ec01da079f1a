"""Recipes: laws that vary from observation to observation, before they are fitted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from xcopula.errors import SupportError
from xcopula.marginals.base import Marginal, reject_outside
from xcopula.marginals.design import check_rank, standardise
from xcopula.marginals.estimation import maximise
from xcopula.marginals.families import MARGINALS
from xcopula.marginals.grouping import Grouped, check_codes
from xcopula.marginals.lognormal import LogNormal
from xcopula.marginals.normal import Normal
from xcopula.marginals.parzen import Parzen
from xcopula.marginals.regression import Regression, regression_name
from xcopula.marginals.tails import Array

__all__ = ["By", "Labels", "Law", "Recipe", "Regress", "by", "fit_law", "regress"]

Labels = Mapping[str, tuple[str, ...]]

_LINKS = ("identity", "log")
_HIGHEST_DEGREE = 4
# Values that a group, or a regression beside its coefficients, needs.
_FEWEST = 5


@dataclass(frozen=True)
class Recipe(ABC):
    """A law that varies with covariates, to be fitted; made by :func:`regress` and :func:`by`.

    Attributes
    ----------
    law : type of Marginal, Recipe or None
        What varies; None stands for all families there are, to choose from.
    """

    law: type[Marginal] | Recipe | None

    @property
    @abstractmethod
    def fields(self) -> tuple[str, ...]:
        """Names of the covariates: a key of groups first, then those of a regression."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Those of the fields by which groups are made."""
        return self.law.keys if isinstance(self.law, Recipe) else ()

    @property
    @abstractmethod
    def name(self) -> str:
        """What varies and with what, such as "gamma ~ elevation"."""

    @property
    def family(self) -> type[Marginal] | None:
        """The family at the heart of the recipe, or None where it is to be chosen."""
        return self.law.family if isinstance(self.law, Recipe) else self.law

    @property
    def _family_name(self) -> str:
        return "auto" if self.law is None else self.law.name

    def candidates(self) -> list[Recipe]:
        """Return the recipes to choose from, each of one family: itself, if it has one."""
        if self.law is None:
            return [replace(self, law=family) for family in MARGINALS.values()]
        if isinstance(self.law, Recipe) and self.family is None:
            return [replace(self, law=law) for law in self.law.candidates()]
        return [self]

    def fit(
        self, values: npt.ArrayLike, covariates: npt.ArrayLike, labels: Labels | None = None
    ) -> Marginal:
        """Fit the law to independent values.

        Parameters
        ----------
        values : array-like (n,)
            Without NaN.
        covariates : array-like (n, c)
            Columns in the order of ``fields``; a key's holds numbers of groups, from 0.
        labels : mapping of str to tuple of str, optional
            Names of the groups of each key; "0", "1", ... by default.

        Returns
        -------
        Marginal
            Not bound to rows: see :meth:`Marginal.at`.

        Raises
        ------
        SupportError
            If the family does not admit the values.
        ValueError
            If the covariates cannot tell the parameters, or a group has too few values.
        """
        family = self.family
        if family is None:
            raise ValueError(
                f"{self.name} has no family yet. Fit one of its candidates(), or name one of "
                f"{', '.join(map(repr, MARGINALS))}."
            )
        y, table = self._check(values, covariates)
        if family.link == "log":
            reject_outside(y, family, (0.0, np.inf), family.needs)
        return self._fit(y, table, labels or {}, residuals=False)

    def _check(self, values: npt.ArrayLike, covariates: npt.ArrayLike) -> tuple[Array, Array]:
        y = np.asarray(values, dtype=np.float64)
        table = np.asarray(covariates, dtype=np.float64)
        if y.ndim != 1:
            raise ValueError(
                f"{self.name} is fitted to a 1-D array, got shape {y.shape}. Ravel it."
            )
        if table.shape != (y.size, len(self.fields)):
            raise ValueError(
                f"{self.name} needs covariates of shape ({y.size}, {len(self.fields)}), with the "
                f"columns {', '.join(self.fields)}; got shape {table.shape}."
            )
        bad = (~np.isfinite(np.column_stack([y, table]))).sum(axis=0)
        for what, count in zip(("values", *self.fields), bad.tolist(), strict=True):
            if count:
                raise ValueError(
                    f"{self.name}: {count} of {y.size} {what} are NaN or infinite. Drop them."
                )
        return y, table

    @abstractmethod
    def _fit(self, y: Array, table: Array, labels: Labels, *, residuals: bool) -> Marginal:
        """Fit what was checked; the origin of residuals means nothing."""

    def _fit_inner(self, y: Array, table: Array, labels: Labels, *, residuals: bool) -> Marginal:
        if isinstance(self.law, Recipe):
            return self.law._fit(y, table, labels, residuals=residuals)
        assert self.law is not None
        if issubclass(self.law, Parzen):
            return self.law.fit(y, residuals=residuals)
        return self.law.fit(y)


Law = Marginal | type[Marginal] | Recipe


@dataclass(frozen=True)
class Regress(Recipe):
    """The recipe of a :class:`~xcopula.marginals.regression.Regression`; see :func:`regress`.

    Attributes
    ----------
    on : tuple of str
        Names of its covariates.
    degree : int
    own_link : {"identity", "log"}, optional
        The family's own if None.
    """

    on: tuple[str, ...]
    degree: int = 1
    own_link: str | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """The key of groups, if there is one, then the covariates."""
        return (self.law.fields if isinstance(self.law, Recipe) else ()) + self.on

    @property
    def link(self) -> str:
        """How the trend enters."""
        if self.own_link is not None:
            return self.own_link
        return "identity" if self.family is None else self.family.link

    @property
    def name(self) -> str:
        """The family and its covariates."""
        link, usual = self.link, "identity" if self.family is None else self.family.link
        return regression_name(self._family_name, self.on, self.degree, link, usual)

    def _fit(self, y: Array, table: Array, labels: Labels, *, residuals: bool) -> Marginal:
        own = table.shape[1] - len(self.on)
        inner, covariates = table[:, :own], table[:, own:]
        design = standardise(covariates, self.on, self.degree)
        matrix = design.matrix(covariates)
        if y.size < matrix.shape[1] + _FEWEST:
            raise ValueError(
                f"{self.name} has {matrix.shape[1]} coefficients and needs at least "
                f"{matrix.shape[1] + _FEWEST} values; got {y.size}. Use fewer covariates or a "
                "lower degree."
            )
        # Each group has a level of its own.
        groups = inner[:, 0] if own else np.zeros(y.size)
        intercepts = (groups[:, None] == np.unique(groups)).astype(np.float64)
        check_rank(matrix, design.labels, intercepts, self.keys[0] if own else "")
        multiplicative = self.link == "log"
        if multiplicative and not (y > 0.0).all():
            bad = y[~(y > 0.0)]
            raise SupportError(
                f"{self.name} takes logarithms and needs positive values: {bad.size} of {y.size} "
                f"are not (first: {', '.join(map(str, bad[:3].tolist()))}). Choose link='identity' "
                "with a marginal of wider support ('normal', 'gev', 't', 'parzen'), or mask them."
            )
        working = np.log(y) if multiplicative else y
        both = np.hstack([matrix, intercepts])
        coefficients = np.linalg.lstsq(both, working, rcond=None)[0][: matrix.shape[1]]
        trend = matrix @ coefficients
        rest = y * np.exp(-trend) if multiplicative else y - trend
        try:
            base = self._fit_inner(rest, inner, labels, residuals=not multiplicative)
        except SupportError as error:
            raise SupportError(
                f"{self.name}: the values less their trend leave the support of the law. {error} "
                "With link='log' the trend is a factor, and they do not."
            ) from None
        law = Regression(base, design, coefficients, multiplicative, float(working.std()))
        return law if self._is_maximum() else law.with_theta(maximise(law.at(table), y).theta)

    def _is_maximum(self) -> bool:
        """Tell if least squares and a fit to the residuals are as good as it gets.

        They are the maximum of the likelihood of normal errors of one scale. That of a smoothed
        sample would follow its bumps.
        """
        least_squares = self.law in (Normal, LogNormal) and self.link == self.law.link
        return least_squares or self.family is Parzen


@dataclass(frozen=True)
class By(Recipe):
    """The recipe of a :class:`~xcopula.marginals.grouping.Grouped` law; see :func:`by`.

    Attributes
    ----------
    key : str
        What the groups are made by.
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
        return f"{self._family_name} by {self.key}"

    def _fit(self, y: Array, table: Array, labels: Labels, *, residuals: bool) -> Marginal:
        codes = table[:, 0]
        names = labels.get(self.key)
        if names is None:
            names = tuple(str(g) for g in range(int(codes.max(initial=-1.0)) + 1))
        numbers = check_codes(codes, self.key, names)
        self._check_groups(y, numbers, names)
        laws = []
        for g, name in enumerate(names):
            rows = numbers == g
            try:
                law = self._fit_inner(y[rows], table[rows, 1:], labels, residuals=residuals)
            except (SupportError, ValueError) as error:
                kind = SupportError if isinstance(error, SupportError) else ValueError
                raise kind(f"{self.key}={name}: {error}") from None
            laws.append(law)
        return Grouped(self.key, names, tuple(laws))

    def _check_groups(
        self, y: Array, numbers: npt.NDArray[np.intp], names: tuple[str, ...]
    ) -> None:
        counts = np.bincount(numbers, minlength=len(names))
        few = [
            f"{name} ({count})"
            for name, count in zip(names, counts, strict=True)
            if count < _FEWEST
        ]
        if few or not names:
            raise ValueError(
                f"{self.name} needs at least {_FEWEST} values in each group; these have fewer: "
                f"{', '.join(few) or 'there is no group at all'}. Choose larger groups, or leave "
                "these out."
            )
        flat = [name for g, name in enumerate(names) if np.ptp(y[numbers == g]) == 0.0]
        if flat:
            raise ValueError(
                f"{self.name}: the values of {', '.join(flat)} are constant. A constant variable "
                "has no law to fit: choose larger groups, or leave these out."
            )


def regress(
    law: str | type[Marginal] | Recipe = "auto",
    on: str | Sequence[str] = (),
    *,
    degree: int = 1,
    link: str | None = None,
) -> Regress:
    """Describe a law that moves with covariates, such as elevation.

    Parameters
    ----------
    law : str, type of Marginal or recipe
        The law at the mean covariates; "auto" chooses a family. ``by(...)`` gives each group a law
        of its own, and all of them the same slopes.
    on : str or sequence of str
        Names of the covariates: coordinates, or variables of the data.
    degree : int
        All monomials of the covariates of total degree up to this, 1 to 4.
    link : {"identity", "log"}, optional
        Whether the trend is added to the values, or its exponential multiplies them. By default
        "log" for the families of positive values (log-normal, gamma, exponential), else "identity".

    Returns
    -------
    Regress

    Raises
    ------
    ValueError
        If a name, the degree or the link is unknown, or a covariate is repeated or missing.
    TypeError
        If the law is an instance.

    Examples
    --------
    >>> regress("gamma", on="elevation").name
    'gamma ~ elevation'
    >>> regress("normal", on=["x", "y"], degree=2).name
    'normal ~ x + y (degree 2)'
    """
    inner = _ingredient(law, "regress")
    names = (on,) if isinstance(on, str) else tuple(on)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError(
            f"regress needs the names of covariates, got on={on!r}. "
            "Pass for example on='elevation'."
        )
    if len(set(names)) < len(names):
        raise ValueError(f"on={list(names)} names a covariate twice. Name each once.")
    if (
        isinstance(degree, bool)
        or not isinstance(degree, int)
        or not 1 <= degree <= _HIGHEST_DEGREE
    ):
        raise ValueError(
            f"degree is a whole number from 1 to {_HIGHEST_DEGREE}, got {degree!r}. "
            "A trend of a higher degree is better left to the kernel."
        )
    if link is not None and link not in _LINKS:
        raise ValueError(
            f"Unknown link {link!r}. Choose 'identity' or 'log', or None for the law's."
        )
    if _contains(inner, Regress):
        raise ValueError(
            "regress of a regress: two trends cannot be told apart. Name all covariates in one, "
            "as in regress(law, on=['elevation', 'x'])."
        )
    recipe = Regress(inner, names, degree, link)
    _check_once(recipe)
    return recipe


def by(key: str, law: str | type[Marginal] | Recipe = "auto") -> By:
    """Describe a law that differs from group to group, such as from month to month.

    Parameters
    ----------
    key : str
        What the groups are made by: a coordinate or variable, or a part of a time, as in
        "time.month" or "time.season".
    law : str, type of Marginal or recipe
        The law of each group; "auto" chooses a family for all of them. ``regress(...)`` gives each
        group a trend of its own.

    Returns
    -------
    By

    Raises
    ------
    ValueError
        If a name is unknown.
    TypeError
        If the law is an instance, or the key no string.

    Examples
    --------
    >>> by("time.month", regress("gamma", on="elevation")).fields
    ('time.month', 'elevation')
    """
    if not isinstance(key, str) or not key:
        raise TypeError(f"by needs the name of what groups are made by, got {key!r}.")
    inner = _ingredient(law, "by")
    if _contains(inner, By):
        raise ValueError(
            "by of a by: groups are made by one key. Make a coordinate that names the "
            "combinations, such as 'JJA north', and group by that."
        )
    recipe = By(inner, key)
    _check_once(recipe)
    return recipe


def _ingredient(law: object, maker: str) -> type[Marginal] | Recipe | None:
    if law == "auto":
        return None
    if isinstance(law, Recipe) or (isinstance(law, type) and issubclass(law, Marginal)):
        return law
    names = ", ".join(repr(name) for name in MARGINALS)
    if isinstance(law, Marginal):
        raise TypeError(
            f"{maker} fits its law itself and takes no parameters: got an instance of "
            f"{type(law).__name__}. Pass its name, {law.name!r}, or its class."
        )
    if not isinstance(law, str):
        raise TypeError(
            f"The law of {maker} is 'auto', one of {names}, a Marginal class, or another recipe; "
            f"got {type(law).__name__}."
        )
    if law not in MARGINALS:
        raise ValueError(f"Unknown marginal {law!r}. Choose 'auto' or one of {names}.")
    return MARGINALS[law]


def _contains(law: type[Marginal] | Recipe | None, kind: type[Recipe]) -> bool:
    while isinstance(law, Recipe):
        if isinstance(law, kind):
            return True
        law = law.law
    return False


def _check_once(recipe: Recipe) -> None:
    repeated = {name for name in recipe.fields if recipe.fields.count(name) > 1}
    if repeated:
        raise ValueError(
            f"{recipe.name} groups by {', '.join(map(repr, sorted(repeated)))} and regresses on "
            "it. A group has a law of its own already: leave it out of one of them."
        )


def fit_law(
    law: Law,
    values: npt.ArrayLike,
    covariates: npt.ArrayLike | None = None,
    labels: Labels | None = None,
) -> Marginal:
    """Return a law, fitted to independent values if it is not an instance already.

    Parameters
    ----------
    law : Marginal, type of Marginal or Recipe
        An instance is returned as it is, a class is fitted to the values, a recipe to values and
        covariates.
    values, covariates, labels
        See :meth:`Recipe.fit`.

    Returns
    -------
    Marginal
        Not bound to rows.
    """
    if isinstance(law, Marginal):
        return law
    if not isinstance(law, Recipe):
        return law.fit(values)
    if covariates is None:
        covariates = np.empty((np.size(values), 0))
    return law.fit(values, covariates, labels)
