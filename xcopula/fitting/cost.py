"""Refuse a fit that cannot be afforded, before anything is allocated, and say what can."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from xcopula.errors import CostError
from xcopula.fitting.alone import TERMS_ALONE, VALUES_ALONE
from xcopula.fitting.request import Request
from xcopula.labels.observations import Observations
from xcopula.methods import METHODS, Method
from xcopula.solvers import SOLVERS, Sequential, Solver
from xcopula.solvers.cost import MEMORY_SHARE, machine_memory

__all__ = ["Estimate", "check_cost"]

_log = logging.getLogger("xcopula")

# Evaluations of one of its fits, and what each takes besides its operations, in seconds; measured.
_EVALUATIONS = 20
_OVERHEAD = 3e-3
# From so many seconds on an estimate is worth a line in the log.
_LONG = 30.0


class Estimate(NamedTuple):
    """What a fit takes: memory in bytes, and seconds of its two steps on one core."""

    bytes: float
    alone: float
    together: float

    @classmethod
    def of(
        cls,
        method: Method,
        solver: Solver,
        sizes: Sequence[int],
        candidates: Sequence[int],
        correlations: int = 1,
    ) -> Estimate:
        """Estimate a fit from the number of values of each variable, and of its candidates.

        Parameters
        ----------
        candidates : sequence of int
            How many single-task processes are fitted to each variable.
        correlations : int
            Of which an entry of the covariance is made: groups of coordinates times structures.
        """
        most = TERMS_ALONE if isinstance(solver, Sequential) else VALUES_ALONE
        alone = sum(
            count
            * _EVALUATIONS
            * (solver.cost([min(size, most)], correlations).seconds + _OVERHEAD)
            for count, size in zip(candidates, sizes, strict=True)
        )
        cost = method.cost(solver, sizes, correlations)
        parts = max(1, len(method.submodels(sizes)))
        together = cost.evaluations * (cost.seconds + parts * _OVERHEAD)
        return cls(cost.bytes, alone, together)

    @property
    def hours(self) -> float:
        """Time of the whole fit."""
        return (self.alone + self.together) / 3600.0

    def describe(self) -> str:
        """Return memory and time in words."""
        size, unit = (self.bytes / 1e9, "GB") if self.bytes >= 1e9 else (self.bytes / 1e6, "MB")
        return f"about {_rounded(size)} {unit} and {_in_words(self.alone + self.together)}"


def _in_words(seconds: float) -> str:
    """Return a time with two digits in seconds, minutes or hours."""
    for unit, length in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= length:
            return f"{_rounded(seconds / length)} {unit}"
    return f"{_rounded(seconds)} seconds"


def _rounded(number: float) -> str:
    """Return two digits, and never an exponent for hundreds."""
    return f"{float(f'{number:.2g}'):g}"


def _count_alone(request: Request) -> list[int]:
    """Return the number of single-task processes that are fitted to each variable."""
    return [
        len(request.law_options(i)) + len(request.kernel_options(i)) - 1
        for i in range(len(request.laws))
    ]


def check_cost(
    observations: Observations,
    method: Method,
    solver: Solver,
    request: Request,
) -> Estimate:
    """Refuse a fit that would take more memory than there is, or more time than was allowed.

    Returns the estimate.

    Raises
    ------
    CostError
        With the estimate and what to do instead.
    """
    sizes, max_hours = observations.sample.sizes, request.max_hours
    correlations = (request.structures or 1) * len(observations.coordinates.groups)
    given = sizes, _count_alone(request), correlations
    cost = Estimate.of(method, solver, *given)
    _log.log(
        logging.INFO if cost.alone + cost.together > _LONG else logging.DEBUG,
        "Method %r on %s values: %s on one core (each variable alone %s, all together %s)",
        method.name,
        sizes,
        cost.describe(),
        _in_words(cost.alone),
        _in_words(cost.together),
    )
    memory = machine_memory()
    if max_hours is None or (cost.bytes < MEMORY_SHARE * memory and cost.hours <= max_hours):
        return cost
    pairs = "method='transductive', which takes variables in pairs"
    advice = []
    nearby = Estimate.of(method, SOLVERS["neighbours"], *given)
    if method.submodels(sizes) and nearby.hours < cost.hours:
        advice.append(f"solver='neighbours', for samples of any size ({nearby.describe()})")
    cheaper = Estimate.of(METHODS["transductive"], solver, *given)
    if method.name == "full" and cheaper.hours < cost.hours:
        advice.append(f"{pairs} ({cheaper.describe()})")
    sparse = Estimate.of(METHODS["fitc"], solver, *given)
    if sparse.hours < cost.hours:
        advice.append(
            f"a sparse method such as method='fitc' ({sparse.describe()}), with more `inducing` "
            "points where correlations are short"
        )
    times = [a.name for a in observations.coordinates.axes if a.epoch]
    dims = observations.variables[0].dims
    step = next((f"isel({name}=slice(None, None, 7))" for name in times if name in dims), "thin(3)")
    advice.append(f"a part of the data: a window, or data.{step} to skip some along a dim")
    alone = method.name == "full" and len(sizes) == 1
    raise CostError(
        f"method={method.name!r} with solver={solver.name!r} on {sum(sizes):,} values "
        f"({', '.join(f'{n:,}' for n in sizes)}) "
        f"needs {cost.describe()}. The limits are {MEMORY_SHARE * memory / 1e9:.2g} GB and "
        f"{max_hours:g} hours (`max_hours`). "
        f"Use {'; or '.join(advice)}. With `max_hours=None` nothing is refused."
        + (f" (For several variables there is also {pairs}.)" if alone else "")
    )
