"""What prediction needs of a fitted model, and nothing else: one object for a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xcopula.labels.coordinates import CoordinateSystem
from xcopula.labels.observations import Variable, to_targets
from xcopula.marginals import Marginal
from xcopula.process import Sites
from xcopula.solvers import Conditioned

__all__ = ["Predictor"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Predictor:
    """A conditioned process, with the inputs and the laws of its variables.

    Attributes
    ----------
    coordinates : CoordinateSystem
    sites : Sites
        Of the data: there an observation is known, or shares its nugget with others.
    conditioned : Conditioned
    variables : tuple of Variable
    laws : tuple of Marginal
        Of each variable, at its fitted parameters.
    """

    coordinates: CoordinateSystem
    sites: Sites
    conditioned: Conditioned
    variables: tuple[Variable, ...]
    laws: tuple[Marginal, ...]

    def law(self, task: int, values: Sequence[npt.NDArray[Any]]) -> Marginal:
        """Return the law of a variable at cells, given its fields there, each (m,)."""
        fields = self.variables[task].fields
        if not fields:
            return self.laws[task]
        columns = [f.encode(v) for f, v in zip(fields, values, strict=True)]
        return self.laws[task].at(np.column_stack(columns))

    def latent(self, numbers: Sequence[FloatArray], task: int, nugget: bool) -> FloatArray:
        """Return the latent mean and standard deviation (2, m) at coordinates, each (m,)."""
        targets = to_targets(self.coordinates, self.sites, numbers)
        moments = self.conditioned.moments(targets, task=task, nugget=nugget)
        return np.stack([moments.mean, np.sqrt(moments.variance)])

    def mean(self, numbers: Sequence[FloatArray], task: int, nugget: bool) -> FloatArray:
        """Return the latent mean (1, m) alone at coordinates, each (m,)."""
        targets = to_targets(self.coordinates, self.sites, numbers)
        return self.conditioned.mean(targets, task=task, nugget=nugget)[None]

    def information(self, numbers: Sequence[FloatArray], task: int, nugget: bool) -> FloatArray:
        """Return the precision (t - 1, m) that each secondary adds at coordinates, each (m,)."""
        targets = to_targets(self.coordinates, self.sites, numbers)
        added: FloatArray = self.conditioned.information(targets, nugget=nugget)  # type: ignore[attr-defined]
        return added
