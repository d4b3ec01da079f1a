"""The families of marginal laws, by name."""

from __future__ import annotations

from xcopula.marginals.base import Marginal
from xcopula.marginals.exponential import Exponential
from xcopula.marginals.flexible import SinhArcsinh
from xcopula.marginals.gamma import Gamma
from xcopula.marginals.gev import GEV
from xcopula.marginals.lognormal import LogNormal
from xcopula.marginals.normal import Normal
from xcopula.marginals.parzen import Parzen
from xcopula.marginals.student import StudentT

__all__ = ["MARGINALS"]

MARGINALS: dict[str, type[Marginal]] = {
    "flexible": SinhArcsinh,
    "normal": Normal,
    "lognormal": LogNormal,
    "exponential": Exponential,
    "gev": GEV,
    "gamma": Gamma,
    "t": StudentT,
    "parzen": Parzen,
}
