"""Marginal laws: maps between the values of one variable and normal scores."""

from __future__ import annotations

from xcopula.marginals.base import Marginal
from xcopula.marginals.exponential import Exponential
from xcopula.marginals.gamma import Gamma
from xcopula.marginals.gev import GEV
from xcopula.marginals.lognormal import LogNormal
from xcopula.marginals.normal import Normal
from xcopula.marginals.parzen import Parzen
from xcopula.marginals.student import StudentT

__all__ = [
    "GEV",
    "MARGINALS",
    "Exponential",
    "Gamma",
    "LogNormal",
    "Marginal",
    "Normal",
    "Parzen",
    "StudentT",
    "resolve",
]

MARGINALS: dict[str, type[Marginal]] = {
    "normal": Normal,
    "lognormal": LogNormal,
    "exponential": Exponential,
    "gev": GEV,
    "gamma": Gamma,
    "t": StudentT,
    "parzen": Parzen,
}


def resolve(spec: str | Marginal | type[Marginal]) -> type[Marginal] | Marginal:
    """Return the marginal law that a name, a class or an instance stands for.

    Parameters
    ----------
    spec : str, Marginal or type of Marginal
        A name is looked up in :data:`MARGINALS`; a class (to be fitted) or an instance (with its
        parameters) is returned as it is.

    Returns
    -------
    type of Marginal, or Marginal

    Raises
    ------
    ValueError
        If the name is unknown.
    TypeError
        If ``spec`` is none of the three.

    Examples
    --------
    >>> resolve("gamma").__name__
    'Gamma'
    """
    if isinstance(spec, Marginal) or (isinstance(spec, type) and issubclass(spec, Marginal)):
        return spec
    names = ", ".join(repr(name) for name in MARGINALS)
    if not isinstance(spec, str):
        raise TypeError(f"A marginal is one of {names}, or a Marginal; got {type(spec).__name__}.")
    if spec not in MARGINALS:
        raise ValueError(f"Unknown marginal {spec!r}. Choose one of {names}, or pass a Marginal.")
    return MARGINALS[spec]
