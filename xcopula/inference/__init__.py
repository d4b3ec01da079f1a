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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from xcopula.inference import exact, transductive
from xcopula.inference.settings import Settings
from xcopula.process import Moments, Process, Sample

__all__ = ["METHODS", "Conditioned", "Method", "Settings", "resolve_method"]

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
    """An inference method: the two functions of its module.

    ``pairwise`` methods are fitted pair by pair before all parameters are polished together.
    """

    objective: Callable[[Process, Sample, FloatArray, Settings], tuple[float, FloatArray]]
    condition: Callable[[Process, Sample, FloatArray, Settings], Conditioned]
    pairwise: bool = False


METHODS: dict[str, Method] = {
    "full": Method(exact.objective, exact.condition),
    "transductive": Method(transductive.objective, transductive.condition, pairwise=True),
}


def resolve_method(name: object) -> Method:
    """Return the inference method of that name."""
    if isinstance(name, str) and name in METHODS:
        return METHODS[name]
    raise ValueError(f"Unknown method {name!r}. Choose one of {', '.join(map(repr, METHODS))}.")
