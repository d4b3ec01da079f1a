"""Options of inference methods, as arrays and plain values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """What a method may be told beside its data and parameters; each reads what concerns it.

    Attributes
    ----------
    weights : {"auto", "calibrated", "stacked", "report"}
        How transductive sub-models are combined.
    anchors : "auto", "block", None or ndarray (d, m)
        Query points that every cell shares, in the model's scaled inputs.
    inducing : int or tuple of ndarray (d, m_i)
        Number of inducing points over all tasks, or the points of each task.
    blocks : int or tuple of ndarray of int
        Number of blocks of data, or the observations of each.
    """

    weights: str = "auto"
    anchors: str | npt.NDArray[np.float64] | None = "auto"
    inducing: int | tuple[npt.NDArray[np.float64], ...] = 200
    blocks: int | tuple[npt.NDArray[np.int64], ...] = 4
