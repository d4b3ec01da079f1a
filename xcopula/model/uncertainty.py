r"""How parameter uncertainty enters predictions.

Parameters that were estimated from n values, k of them, make plug-in errors too small. As in a
regression, the latent standard deviation of every prediction is multiplied by
:math:`\sqrt{n / (n - k)}`; errors stay normal. Where priors determine a part of the parameters, k
is the effective number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from xcopula.arrays import FloatArray
from xcopula.methods import Method
from xcopula.model.precision import effective_parameters
from xcopula.process import Process, Sample, information_content
from xcopula.warn import shown

__all__ = ["UNCERTAINTIES", "Uncertainty", "check_uncertainty"]

UNCERTAINTIES = ("inflated", "plugin")
# At least this share of the values is counted as degrees of freedom: the factor is at most two.
_LEAST_FREE = 0.25


@dataclass(frozen=True)
class Uncertainty:
    """How parameter uncertainty enters predictions, by the values and parameters of the fit.

    Attributes
    ----------
    kind : {"inflated", "plugin"}
    values : tuple of float
        Number of values of each variable; a censored value counts as its information content.
    parameters : tuple of float
        Effective number of parameters of each variable, with its correlations to others.
    """

    kind: str
    values: tuple[float, ...]
    parameters: tuple[float, ...]

    @classmethod
    def of(
        cls,
        kind: str,
        process: Process,
        theta: FloatArray,
        sample: Sample,
        method: Method,
        information: FloatArray | None = None,
    ) -> Self:
        """Count the values and the parameters of each variable.

        Without the information matrix of the fit each parameter counts as one.
        """
        covariance = process.covariance
        share = effective_parameters(process, theta, information)
        length, logit, correlation, nugget, scaling = (
            covariance.part(share, name)
            for name in ("length", "logit", "correlation", "noise_correlation", "scaling")
        )
        content = information_content(process.laws(theta, sample), sample)
        values, parameters = [], []
        for i, (law, where) in enumerate(zip(process.marginals, process.slices, strict=True)):
            # A secondary of a transductive model has a pair with the primary only.
            others = [0] if method.pairwise and i else [j for j in range(sample.tasks) if j != i]
            pairs = [max(i, j) * (max(i, j) - 1) // 2 + min(i, j) for j in others]
            count = length[..., 0 if covariance.shared else i].sum() + logit[..., i].sum()
            count += scaling.sum() + correlation[..., pairs].sum()
            if covariance.noise == "correlated":
                count += nugget[pairs].sum()
            count += share[where].sum() + law.dof - law.theta.size
            values.append(float(content[sample.task(i)].sum()))
            parameters.append(float(count))
        return cls(kind, tuple(values), tuple(parameters))

    def factor(self, task: int) -> float:
        """Return what the latent standard deviation of a variable is multiplied by."""
        n, k = self.values[task], self.parameters[task]
        if self.kind == "plugin" or n <= 0.0:
            return 1.0
        return float(np.sqrt(n / max(n - k, _LEAST_FREE * n)))

    @property
    def factors(self) -> tuple[float, ...]:
        """The factor of each variable."""
        return tuple(map(self.factor, range(len(self.values))))

    def describe(self, primary: str) -> str:
        """Return a line for the model's summary."""
        if self.kind == "plugin":
            return "errors: normal, parameters taken for certain"
        content = self.values[0]
        values = f"{content:,.1f}".removesuffix(".0")
        values += " values" if content % 1.0 == 0.0 else " effective values"
        return (
            f"errors: normal, latent deviation times {self.factor(0):.3g} "
            f"({values}, {self.parameters[0]:.3g} effective parameters of {primary})"
        )


def check_uncertainty(kind: Any) -> str:
    """Return the kind, if it is known."""
    names = " or ".join(map(repr, UNCERTAINTIES))
    if not isinstance(kind, str):
        raise TypeError(f"`uncertainty` must be {names}; found {shown(kind)}.")
    if kind not in UNCERTAINTIES:
        raise ValueError(f"Unknown uncertainty {kind!r}. Choose {names}.")
    return kind
