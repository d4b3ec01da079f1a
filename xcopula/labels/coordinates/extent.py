"""What is known of a coordinate that is not in memory: how far it reaches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Extent"]


class Extent(NamedTuple):
    """The least and the greatest value of a coordinate, and whether some are missing.

    Both are NaN, or NaT, where there is no value.
    """

    low: Any
    high: Any
    gaps: bool

    @classmethod
    def of(cls, values: npt.NDArray[Any]) -> Extent | None:
        """Return the extent of numbers or dates; None for none of them, and for anything else."""
        if not values.size or values.dtype.kind not in "iufmM":
            return None
        # Of two values, these take the one that is there.
        low, high = (f.reduce(values, axis=None) for f in (np.fmin, np.fmax))
        gaps = values.dtype.kind in "fmM" and bool(np.isnan(values).any())
        return cls(low, high, gaps)

    @classmethod
    def joined(cls, parts: Iterable[Extent | None]) -> Extent | None:
        """Return the extent of all parts together."""
        known = [part for part in parts if part is not None]
        if not known:
            return None
        low, high = np.array([p.low for p in known]), np.array([p.high for p in known])
        return cls(np.fmin.reduce(low), np.fmax.reduce(high), any(p.gaps for p in known))

    @property
    def varies(self) -> bool:
        """Whether there are different values, or gaps among them."""
        return self.gaps or bool(self.low != self.high)
