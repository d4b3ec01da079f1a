"""What an evaluation costs, known from the sizes of the data before anything is allocated."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["MEMORY_SHARE", "Cost", "machine_memory"]

# What else runs on the machine has a share of its memory.
MEMORY_SHARE = 0.8

# What a core of a common processor does in LAPACK, and what a fit asks for; for estimates.
_FLOPS_PER_SECOND = 2e10
_EVALUATIONS = 150


class Cost(NamedTuple):
    """Memory in bytes, and operations of one evaluation of the likelihood with its gradient."""

    bytes: float
    flops: float
    evaluations: int = _EVALUATIONS  # of a fit

    @property
    def seconds(self) -> float:
        """Time of one evaluation on one core."""
        return self.flops / _FLOPS_PER_SECOND

    @property
    def hours(self) -> float:
        """Time of all evaluations of a fit on one core."""
        return self.evaluations * self.seconds / 3600.0

    @classmethod
    def total(cls, costs: Sequence[Cost]) -> Cost:
        """Add up the costs of models that are evaluated together and kept."""
        return cls(
            sum(c.bytes for c in costs),
            sum(c.flops for c in costs),
            max(c.evaluations for c in costs),
        )


def machine_memory() -> float:
    """Return the memory of the machine, or of its container, in bytes; infinity if unknown."""
    try:
        memory = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # not a POSIX system
        return float("inf")
    try:
        return min(memory, float(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):  # no container, or no limit
        return memory
