"""The recipe for a regression, before it is fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from xcopula.arguments import check_options
from xcopula.errors import SupportError
from xcopula.marginals.base import Marginal
from xcopula.marginals.design import reduce_columns, standardise
from xcopula.marginals.estimation import maximise
from xcopula.marginals.lognormal import LogNormal
from xcopula.marginals.normal import Normal
from xcopula.marginals.parzen import Parzen
from xcopula.marginals.recipe import FEWEST, Labels, Recipe, check_once, contains, ingredient
from xcopula.marginals.regression import Regression, regression_name
from xcopula.marginals.tails import Array

__all__ = ["Regress", "regress"]

_LINKS = ("identity", "log")
_HIGHEST_DEGREE = 4


@dataclass(frozen=True)
class Regress(Recipe):
    """A recipe for a :class:`~xcopula.marginals.regression.Regression`; see :func:`regress`.

    Attributes
    ----------
    on : tuple of str
        Names of the covariates.
    degree : int
    own_link : {"identity", "log"}, optional
        None means the link of the family.
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
        return self.family.link if self.own_link is None else self.own_link

    @property
    def name(self) -> str:
        """The family and its covariates."""
        return regression_name(self.law.name, self.on, self.degree, self.link, self.family.link)

    def _fit(self, y: Array, table: Array, labels: Labels, *, residuals: bool) -> Marginal:
        own = table.shape[1] - len(self.on)
        inner, covariates = table[:, :own], table[:, own:]
        design = standardise(covariates, self.on, self.degree)
        matrix = design.matrix(covariates)
        if y.size < matrix.shape[1] + FEWEST:
            raise ValueError(
                f"{self.name} has {matrix.shape[1]} coefficients and needs at least "
                f"{matrix.shape[1] + FEWEST} values; found {y.size}. Use fewer covariates or a "
                "lower degree."
            )
        multiplicative = self.link == "log"
        if multiplicative and not (y > 0.0).all():
            bad = y[~(y > 0.0)]
            raise SupportError(
                f"{self.name} takes logarithms and needs positive values: {bad.size} of {y.size} "
                f"are not (first: {', '.join(map(str, bad[:3].tolist()))}). Choose link='identity' "
                "with a marginal of wider support ('normal', 'gev', 't', 'parzen'), or mask them."
            )
        working = np.log(y) if multiplicative else y
        # each group has a level of its own
        key = inner[:, 0] if own else np.zeros(working.size)
        codes = np.unique(key, return_inverse=True)[1]
        reduced = reduce_columns(matrix, working, codes)
        reduced.check_rank(design.labels, self.keys[0] if own else "")
        coefficients = reduced.coefficients()
        trend = matrix @ coefficients
        rest = y * np.exp(-trend) if multiplicative else y - trend
        try:
            base = self._fit_inner(rest, inner, labels, residuals=not multiplicative)
        except SupportError as error:
            raise SupportError(
                f"{self.name}: without the trend, values lie outside the support of the law. "
                f"{error} With link='log' the trend is a factor, which keeps values positive."
            ) from None
        law = Regression(base, design, coefficients, multiplicative, float(working.std()))
        return law if self._is_maximum() else maximise(law, y, table)

    def _is_maximum(self) -> bool:
        """Tell whether least squares, then a fit to the residuals, is the final answer.

        For normal errors of one scale it is the maximum of the likelihood. For a smoothed sample it
        is kept because the maximum would follow the bumps of the sample.
        """
        least_squares = self.law in (Normal, LogNormal) and self.link == self.law.link
        return least_squares or self.family is Parzen


@check_options
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
        The law at the mean covariates; "auto" is the flexible one. ``by(...)`` gives each group its
        own law, and all groups the same slopes.
    on : str or sequence of str
        Names of the covariates: coordinates, or variables of the data.
    degree : int
        Highest total degree of the monomials of the covariates, 1 to 4.
    link : {"identity", "log"}, optional
        "identity" adds the trend to the values; "log" multiplies them by its exponential. The
        default is "log" for families of positive values (log-normal, gamma, exponential), else
        "identity".

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
    inner = ingredient(law, "regress")
    names = (on,) if isinstance(on, str) else tuple(on)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError(
            f"regress needs the names of covariates, such as on='elevation'; found on={on!r}."
        )
    if len(set(names)) < len(names):
        raise ValueError(f"on={list(names)} names a covariate twice. Name each once.")
    if (
        isinstance(degree, bool)
        or not isinstance(degree, int)
        or not 1 <= degree <= _HIGHEST_DEGREE
    ):
        raise ValueError(
            f"degree must be a whole number from 1 to {_HIGHEST_DEGREE}, found {degree!r}. "
            "Leave a trend of higher degree to the kernel."
        )
    if link is not None and link not in _LINKS:
        raise ValueError(
            f"Unknown link {link!r}. Choose 'identity' or 'log', or None for the law's own link."
        )
    if contains(inner, Regress):
        raise ValueError(
            "regress cannot contain another regress: two trends cannot be told apart. Name all "
            "covariates in one, as in regress(law, on=['elevation', 'x'])."
        )
    recipe = Regress(inner, names, degree, link)
    check_once(recipe)
    return recipe
