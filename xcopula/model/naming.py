"""The entries of theta in words, for messages."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from xcopula.process import Process

__all__ = ["parameter_names"]


def parameter_names(process: Process, tasks: Sequence[str], groups: Sequence[str]) -> list[str]:
    """Name the entries of theta: those of the covariance, then of each law.

    Parameters
    ----------
    process : Process
    tasks : sequence of str
        Names of the variables.
    groups : sequence of str
        Names of the groups of coordinates.
    """
    covariance = process.covariance
    pairs = [f"{a!r} and {b!r}" for k, b in enumerate(tasks) for a in tasks[:k]]
    structures = [f" (structure {k + 1})" for k in range(covariance.structures)]
    if covariance.structures == 1:
        structures = [""]
    own = ["all variables"] if covariance.shared else [repr(t) for t in tasks]
    words = {
        "length": [
            f"length scale of {t} in {g}{q}" for q in structures for g in groups for t in own
        ],
        "logit": [f"share of the nugget of {t!r}{q}" for q in structures for t in tasks],
        "correlation": [f"correlation of {p}{q}" for q in structures for p in pairs],
        "noise_correlation": [f"correlation of the nuggets of {p}" for p in pairs],
    }
    names: list[str] = []
    for block, (where, _) in covariance.layout.items():
        known = iter(words.get(block, ()))
        count = where.stop - where.start
        others = (f"{block.replace('_', ' ')} {k + 1}" for k in itertools.count())
        names += [next(known, None) or next(others) for _ in range(count)]
    for task, law in zip(tasks, process.marginals, strict=True):
        own = list(law.parameters)
        count = law.theta.size
        # A law has as many natural parameters as free ones, or fewer where some are fixed.
        labels = own if len(own) == count else [f"parameter {k + 1}" for k in range(count)]
        names += [f"{label} of the {law.name} law of {task!r}" for label in labels]
    return names
