"""Processes that share a prediction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xcopula.process import Process

__all__ = ["Share"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Share:
    """A process of all variables that has a share of a model's predictions.

    Attributes
    ----------
    process : Process
    theta : ndarray (p,)
        Its fitted parameters.
    prepared : ndarray (p,)
        Those for which what the method makes of the data is made.
    weight : float
    """

    process: Process
    theta: FloatArray
    prepared: FloatArray
    weight: float
