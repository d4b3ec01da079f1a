"""What a method costs, from the sizes of its data alone: known before anything is allocated."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from xcopula.methods.settings import Settings

__all__ = [
    "Cost",
    "committee_cost",
    "exact_cost",
    "machine_memory",
    "pairwise_cost",
    "sparse_cost",
]

# What a core of a common processor does in LAPACK, and what a fit asks for; for estimates.
_FLOPS_PER_SECOND = 2e10
_EVALUATIONS = 150
# The covariance beside its inverse, and the copy that leave-one-out makes.
_MATRICES = 2


class Cost(NamedTuple):
    """Memory in bytes, and operations of one evaluation of the likelihood with its gradient."""

    bytes: float
    flops: float

    @property
    def seconds(self) -> float:
        """Time of one evaluation on one core."""
        return self.flops / _FLOPS_PER_SECOND

    @property
    def hours(self) -> float:
        """Time of a whole fit on one core."""
        return _EVALUATIONS * self.seconds / 3600.0

    def describe(self) -> str:
        """Return memory and time in words."""
        if self.hours < 1.0:
            return f"about {self.bytes / 1e9:.2g} GB and {60.0 * self.hours:.2g} minutes"
        return f"about {self.bytes / 1e9:.2g} GB and {self.hours:.2g} hours"


def exact_cost(sizes: Sequence[int], settings: Settings) -> Cost:
    """One dense covariance of all observations: factor and inverse take n^3."""
    n = float(sum(sizes))
    return Cost(_MATRICES * 8.0 * n * n, n**3)


def pairwise_cost(sizes: Sequence[int], settings: Settings) -> Cost:
    """The primary alone and with each secondary; all are kept for prediction."""
    pairs = [sizes[0], *(sizes[0] + n for n in sizes[1:])]
    each = [exact_cost([n], settings) for n in pairs]
    return Cost(sum(c.bytes for c in each), sum(c.flops for c in each))


def sparse_cost(sizes: Sequence[int], settings: Settings) -> Cost:
    """Covariances of all observations with the inducing points."""
    given = settings.inducing
    m = float(given if isinstance(given, int) else sum(p.shape[1] for p in given))
    n = float(sum(sizes))
    # The factors are measured (benchmarks/bench_costs.py): contracting the gradient weighs most.
    return Cost(8.0 * (9.0 * n * m + 3.0 * m * m), 20.0 * n * m * m)


def committee_cost(sizes: Sequence[int], settings: Settings) -> Cost:
    """A dense covariance for each block of data."""
    blocks = settings.blocks if isinstance(settings.blocks, int) else len(settings.blocks)
    one = exact_cost([-(-sum(sizes) // blocks)], settings)
    return Cost(blocks * one.bytes, blocks * one.flops)


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
