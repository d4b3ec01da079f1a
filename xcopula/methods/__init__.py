"""Inference methods: how a process learns from a sample.

A method is a module with two functions:

* ``objective(process, sample, theta, settings)`` returns the negative log-likelihood and its
  gradient;
* ``condition(process, sample, theta, settings)`` returns an object whose ``moments(targets)`` are
  the latent mean and variance of the primary at new inputs, whose ``leave_one_out()`` are those of
  each observation given the others, and whose ``information(targets)`` is what each secondary adds,
  where the method can tell.

A new method is a file beside these and a line here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from xcopula.methods import cokriging, committee, exact, sparse, transductive
from xcopula.solvers.cost import (
    Cost,
    committee_cost,
    exact_cost,
    machine_memory,
    pairwise_cost,
    sparse_cost,
)
from xcopula.methods.settings import Settings
from xcopula.process.copula import Moments, Process, Sample

__all__ = [
    "METHODS",
    "Conditioned",
    "Cost",
    "Method",
    "Settings",
    "machine_memory",
    "resolve_method",
]

FloatArray = npt.NDArray[np.float64]


class Conditioned(Protocol):
    """A process conditioned on a sample."""

    def moments(self, targets: FloatArray, *, nugget: bool = True) -> Moments:
        """Return the latent moments of the primary at targets (d, m)."""

    def leave_one_out(self) -> Moments:
        """Return the moments of each observation's score given all others."""

    def information(self, targets: FloatArray, *, nugget: bool = True) -> FloatArray:
        """Return the precision (t - 1, m) that each secondary adds."""

    def describe(self) -> list[str]:
        """Return lines for the model's summary."""


@dataclass(frozen=True)
class Method:
    """An inference method: the functions of its module, and what it asks of a fit.

    Attributes
    ----------
    objective, condition : callable
    cost : callable
        Memory and operations, from the number of observations of each task and the settings.
    prepare : callable
        Resolves settings once for a sample, before the first likelihood.
    pairwise : bool
        Whether pairs with the primary are fitted before all parameters together.
    law : str, optional
        The only marginal law that the method knows.
    coupling : str, optional
        The only coupling that the method knows.
    """

    objective: Callable[[Process, Sample, FloatArray, Settings], tuple[float, FloatArray]]
    condition: Callable[[Process, Sample, FloatArray, Settings], Conditioned]
    cost: Callable[[Sequence[int], Settings], Cost] = exact_cost
    prepare: Callable[[Sample, Settings], Settings] = lambda sample, settings: settings
    pairwise: bool = False
    law: str | None = None
    coupling: str | None = None


def _sparse(kind: str) -> Method:
    return Method(
        functools.partial(sparse.objective, kind=kind),
        functools.partial(sparse.condition, kind=kind),
        sparse_cost,
        functools.partial(sparse.prepare, kind),
    )


METHODS: dict[str, Method] = {
    "transductive": Method(
        transductive.objective, transductive.condition, pairwise_cost, pairwise=True
    ),
    "full": Method(exact.objective, exact.condition),
    "dtc": _sparse("dtc"),
    "fitc": _sparse("fitc"),
    "pitc": _sparse("pitc"),
    "bcm": Method(committee.objective, committee.condition, committee_cost, committee.prepare),
    "cokriging": Method(cokriging.objective, cokriging.condition, law="normal", coupling="lmc"),
}


def resolve_method(name: object) -> Method:
    """Return the inference method of that name."""
    if isinstance(name, str) and name in METHODS:
        return METHODS[name]
    raise ValueError(f"Unknown method {name!r}. Choose one of {', '.join(map(repr, METHODS))}.")
