"""Marginal laws: maps between the values of one variable and normal scores."""

from __future__ import annotations

from xcopula.marginals.base import Marginal, check_scores
from xcopula.marginals.by import by
from xcopula.marginals.censored import Censored
from xcopula.marginals.checks import check_family, check_law
from xcopula.marginals.exponential import Exponential
from xcopula.marginals.families import MARGINALS
from xcopula.marginals.flexible import SinhArcsinh
from xcopula.marginals.gamma import Gamma
from xcopula.marginals.gev import GEV
from xcopula.marginals.grouping import Grouped
from xcopula.marginals.lognormal import LogNormal
from xcopula.marginals.normal import Normal
from xcopula.marginals.parzen import Parzen
from xcopula.marginals.recipe import Labels, Law, Recipe, fit_law
from xcopula.marginals.regress import regress
from xcopula.marginals.regression import Regression
from xcopula.marginals.student import StudentT

__all__ = [
    "GEV",
    "MARGINALS",
    "Censored",
    "Exponential",
    "Gamma",
    "Grouped",
    "Labels",
    "Law",
    "LogNormal",
    "Marginal",
    "Normal",
    "Parzen",
    "Recipe",
    "Regression",
    "SinhArcsinh",
    "StudentT",
    "by",
    "check_law",
    "check_scores",
    "fit_law",
    "regress",
    "resolve",
]


def resolve(spec: str | Law) -> Law:
    """Return the marginal law that a name, a class, an instance or a recipe stands for.

    Parameters
    ----------
    spec : str, Marginal, type of Marginal, or Recipe
        A name is looked up in :data:`MARGINALS`; "auto" is the flexible one. A class, an instance,
        and a recipe made by :func:`regress` or :func:`by` are returned unchanged.

    Returns
    -------
    type of Marginal, Marginal, or Recipe

    Raises
    ------
    ValueError
        If the name is unknown, or a law of one's own does not keep the contract.
    TypeError
        If ``spec`` is anything else, or a class that cannot be fitted.

    Examples
    --------
    >>> resolve("gamma").__name__
    'Gamma'
    """
    if isinstance(spec, Marginal):
        check_law(spec)
        return spec
    if isinstance(spec, Recipe) or (isinstance(spec, type) and issubclass(spec, Marginal)):
        family = spec.family if isinstance(spec, Recipe) else spec
        if family is not None:
            check_family(family)
        return spec
    names = ", ".join(repr(name) for name in MARGINALS)
    if not isinstance(spec, str):
        raise TypeError(
            f"A marginal is one of {names}, a Marginal, or a recipe; found {type(spec).__name__}."
        )
    if spec == "auto":
        return SinhArcsinh
    if spec not in MARGINALS:
        raise ValueError(
            f"Unknown marginal {spec!r}. Choose 'auto' or one of {names}, or pass a Marginal."
        )
    return MARGINALS[spec]
