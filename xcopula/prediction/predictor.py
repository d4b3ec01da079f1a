"""What prediction needs of a fitted model, and nothing else: one small object for a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xcopula.labels.coordinates import CoordinateSystem
from xcopula.labels.fields import Field
from xcopula.methods import Conditioned
from xcopula.marginals import Marginal

__all__ = ["Predictor"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Predictor:
    """A conditioned process with its coordinate system and the primary's marginal law."""

    coordinates: CoordinateSystem
    conditioned: Conditioned
    marginal: Marginal
    fields: tuple[Field, ...] = ()

    def law(self, values: Sequence[npt.NDArray[Any]]) -> Marginal:
        """Return the law at cells, given its fields there, each (m,)."""
        if not self.fields:
            return self.marginal
        columns = [f.encode(v) for f, v in zip(self.fields, values, strict=True)]
        return self.marginal.at(np.column_stack(columns))

    def latent(self, columns: FloatArray, nugget: bool) -> FloatArray:
        """Return the latent mean and standard deviation (2, m) at scaled inputs (d, m)."""
        moments = self.conditioned.moments(columns, nugget=nugget)
        return np.stack([moments.mean, np.sqrt(moments.variance)])

    def information(self, columns: FloatArray, nugget: bool) -> FloatArray:
        """Return the precision (t - 1, m) that each secondary adds at scaled inputs (d, m)."""
        return self.conditioned.information(columns, nugget=nugget)
