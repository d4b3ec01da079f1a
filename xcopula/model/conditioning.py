"""Other data for a fitted model, at its parameters.

What was fitted stays: theta, the laws and their groups, the scale of the coordinates, points that a
method was given, and the parameters that neighbours are chosen by. What a method makes of the data
is made of those that the model holds, as a fit on them would: neighbours, anchors, inducing points
that k-means finds, blocks of a committee, weights that leave-one-out calibrates, the means of
co-kriging.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from xcopula.arguments import check_flag
from xcopula.errors import CostError
from xcopula.labels.additions import join, read_new, renumber, select
from xcopula.labels.censoring import AUTO, Censored
from xcopula.labels.observations import Observations
from xcopula.labels.points import renumber_anchors
from xcopula.labels.rows import Rows
from xcopula.labels.variables import Data
from xcopula.marginals import check_scores
from xcopula.marginals.intervals import check_limits
from xcopula.model.extremes import warn_of_extreme
from xcopula.solvers.cost import MEMORY_SHARE, machine_memory

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from xcopula.model.record import CopulaModel

__all__ = ["Since", "condition", "with_only", "with_rows"]


class Since(NamedTuple):
    """What has happened to the data of a model since it was fitted.

    Attributes
    ----------
    fitted : int
        Observations of the fit.
    other : bool
        Whether they were put aside, by ``with_only``.
    added : int
        Observations that came since, by ``condition``.
    replaced : int
        How many of these took the place of others.
    """

    fitted: int
    other: bool = False
    added: int = 0
    replaced: int = 0


def condition(
    model: CopulaModel, new: Data, *, replacing: bool, censored: Censored = AUTO
) -> CopulaModel:
    """Return a model with more observations; see :meth:`CopulaModel.condition`."""
    replacing = check_flag("replace", replacing)
    found = read_new(new, model.observations, same_date=True, censored=censored)
    _check_values(model, found.rows)
    joined = join(model.observations, found, replacing=replacing)
    before = _since(model)
    since = before._replace(
        added=before.added + sum(r.values.size for r in found.rows.values()),
        replaced=before.replaced + joined.replaced,
    )
    return _with(model, joined.observations, since)


def with_only(model: CopulaModel, data: Data, *, censored: Censored = AUTO) -> CopulaModel:
    """Return a model with other observations alone; see :meth:`CopulaModel.with_only`."""
    found = read_new(data, model.observations, same_date=False, censored=censored)
    _check_values(model, found.rows)
    since = Since(_since(model).fitted, other=True)
    return _with(model, renumber(model.observations, found), since)


def with_rows(model: CopulaModel, rows: npt.NDArray[np.int64]) -> CopulaModel:
    """Return a model with some of its own observations, by their increasing numbers."""
    since = Since(_since(model).fitted, other=True)
    # Sites keep their numbers: given points of the method do too.
    return dataclasses.replace(model, observations=select(model.observations, rows), since=since)


def _since(model: CopulaModel) -> Since:
    return model.since or Since(model.observations.sample.size)


def _with(model: CopulaModel, observations: Observations, since: Since) -> CopulaModel:
    _check_memory(model, observations.sample.sizes)
    method = renumber_anchors(model.method, observations.sample)
    method.check_intervals(observations.sample, model.marginals, model.tasks)
    return dataclasses.replace(model, observations=observations, method=method, since=since)


def _check_memory(model: CopulaModel, sizes: Sequence[int]) -> None:
    """Refuse more values than the model's solver has memory for."""
    needed, memory = model.method.cost(model.solver, sizes).bytes, MEMORY_SHARE * machine_memory()
    if needed > memory:
        raise CostError(
            f"The model would hold {sum(sizes):,} values, for which method={model.method.name!r} "
            f"with solver={model.solver.name!r} needs about {needed / 1e9:.2g} GB; the limit is "
            f"{memory / 1e9:.2g} GB. Condition on fewer, or fit anew with solver='neighbours'."
        )


def _check_values(model: CopulaModel, rows: Mapping[int, Rows]) -> None:
    """Refuse values outside the support of their law, and warn of those at its far ends."""
    for task, own in rows.items():
        lower, upper = own.both_limits
        exact, name = own.take(np.flatnonzero(lower == upper)), model.tasks[task]
        every = model.marginals[task].at(own.covariates)
        check_limits(every, own.both_limits, name)
        if not exact.values.size:
            continue
        law = model.marginals[task].at(exact.covariates)
        law.check_support(exact.values, name)
        check_scores(law, exact.values, name)
        warn_of_extreme(name, law, exact.values, law.to_normal(exact.values))
