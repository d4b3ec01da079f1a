"""Stand-ins for intervals by neighbours, for predictions: what the values around each one say.

A likelihood finds its own, term by term. It is a product of terms, and its inverse covariance would
give all cavities in one pass. But with errors of very different size that inverse is no covariance
any more once they are taken off. The cavity is therefore a prediction from the nearest values on
all sides, which always has a variance. With all others as neighbours it is exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xcopula.arrays import IntArray
from xcopula.errors import NotPositiveDefiniteError
from xcopula.jit.neighbours import Terms, tile_moments
from xcopula.kernels.assembly import floats, ints, ready, scaled_inputs
from xcopula.process import Evidence, Moments
from xcopula.process.intervals import Held, StandIns, settle
from xcopula.solvers.graph import Connected
from xcopula.solvers.search import search_of
from xcopula.solvers.terms import errors_of, pieces
from xcopula.solvers.threads import in_threads

__all__ = ["fill_in"]

# The variance of a cavity that is known: numbers stand at its place.
_LEAST = 1e-12


class _Around(NamedTuple):
    """Some intervals of one task, and the values around each."""

    task: int
    where: slice  # among all intervals
    rows: IntArray
    which: Terms


def fill_in(evidence: Evidence, structure: Connected) -> Evidence:
    """Return the evidence with stand-ins for its intervals.

    They are found from nothing: a prediction does not depend on what was asked before.

    Raises
    ------
    NotPositiveDefiniteError
        If the covariance of some neighbours cannot be factorised, or stand-ins do not settle.
    """
    if evidence.intervals is None:
        return evidence
    process, sample, theta = evidence.process, evidence.sample, evidence.theta
    state = ready(process.state(theta))
    inputs = scaled_inputs(sample.inputs, state)
    sites, offsets = ints(sample.sites), ints(sample.offsets)
    size = evidence.intervals.rows.size
    around = _around(structure, evidence.intervals.rows)

    def cavities(stand_ins: StandIns) -> Moments:
        filled = evidence.with_stand_ins(stand_ins)
        scores, errors = floats(filled.scores[None]), errors_of(sample, filled.extra)
        mean, variance = np.empty((1, size)), np.empty(size)

        def run(own: _Around) -> int:
            found: int = tile_moments(
                np.ascontiguousarray(inputs[:, own.rows]),
                sites[own.rows],
                np.arange(own.rows.size + 1),
                own.task,
                True,
                own.which,
                inputs,
                sites,
                offsets,
                scores,
                errors,
                state,
                mean[:, own.where],
                variance[own.where],
            )
            return found

        if max(in_threads(run, around)) >= 0:
            raise NotPositiveDefiniteError(
                f"The correlation matrix of neighbours of an interval is not positive definite at "
                f"{process.describe(theta)}. Drop or average sites that almost coincide. Kernels "
                "smoother than 'matern12' fail sooner."
            )
        return Moments(mean[0], np.maximum(variance, _LEAST))

    def describe() -> str:
        return process.describe(theta)

    return evidence.with_stand_ins(*settle(Held(), evidence.intervals, cavities, describe))


def _around(structure: Connected, rows: IntArray) -> list[_Around]:
    """Return the values around intervals, found once for a structure and these rows.

    Which values are intervals may differ by law: one has an atom, another has none.
    """
    if not np.array_equal(structure.kept.get("rows", ()), rows):
        sample = structure.sample
        # As many as a term has, but on all sides.
        most = min(structure.most, sample.size - 1)
        search = search_of(structure.process, structure.theta, sample, most)
        found = []
        for task in range(sample.tasks):
            first, last = np.searchsorted(rows, sample.offsets[task : task + 2])
            for part in pieces(last - first):
                where = slice(first + part.start, first + part.stop)
                own = rows[where]
                if not own.size:
                    continue
                points = np.ascontiguousarray(search.near.inputs[:, own])
                alone = [np.array([row]) for row in own.tolist()]
                which = search.cells(points, sample.sites[own], task, without=alone)
                found.append(_Around(task, where, own, which))
        structure.kept.update(rows=rows, around=found)
    around: list[_Around] = structure.kept["around"]
    return around
