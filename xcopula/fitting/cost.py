"""Refuse a fit that cannot be afforded, before anything is allocated, and say what can."""

from __future__ import annotations

import logging

from xcopula.errors import CostError
from xcopula.labels.observations import Observations
from xcopula.methods import METHODS, Method
from xcopula.solvers import SOLVERS, Solver
from xcopula.solvers.cost import MEMORY_SHARE, machine_memory

__all__ = ["check_cost"]

_log = logging.getLogger("xcopula")


def check_cost(
    observations: Observations, method: Method, solver: Solver, max_hours: float | None
) -> None:
    """Refuse a fit that would take more memory than there is, or more time than was allowed.

    Raises
    ------
    CostError
        With the estimate and what to do instead.
    """
    sizes = observations.sample.sizes
    cost = method.cost(solver, sizes)
    _log.info("Method %r on %s values: %s", method.name, sizes, cost.describe())
    memory = machine_memory()
    if max_hours is None or (cost.bytes < MEMORY_SHARE * memory and cost.hours <= max_hours):
        return
    pairs = "method='transductive', which takes variables in pairs"
    advice = []
    nearby = method.cost(SOLVERS["neighbours"], sizes)
    if method.submodels(sizes) and nearby.hours < cost.hours:
        advice.append(f"solver='neighbours', for samples of any size ({nearby.describe()})")
    cheaper = METHODS["transductive"].cost(solver, sizes)
    if method.name == "full" and cheaper.hours < cost.hours:
        advice.append(f"{pairs} ({cheaper.describe()})")
    sparse = METHODS["fitc"].cost(solver, sizes)
    if sparse.hours < cost.hours:
        advice.append(
            f"a sparse method such as method='fitc' ({sparse.describe()}), with more `inducing` "
            "points where correlations are short"
        )
    times = [a.name for a in observations.coordinates.axes if a.epoch]
    dims = observations.variables[0].dims
    thin = next((f"thin={{{name!r}: 7}}" for name in times if name in dims), "thin=3")
    advice.append(f"a part of the data: a window, or {thin} to skip some along a dim")
    alone = method.name == "full" and len(sizes) == 1
    raise CostError(
        f"method={method.name!r} with solver={solver.name!r} on {sum(sizes):,} values "
        f"({', '.join(f'{n:,}' for n in sizes)}) "
        f"needs {cost.describe()}. The limits are {MEMORY_SHARE * memory / 1e9:.2g} GB and "
        f"{max_hours:g} hours (`max_hours`). "
        f"Use {'; or '.join(advice)}. With `max_hours=None` nothing is refused."
        + (f" (For several variables there is also {pairs}.)" if alone else "")
    )
