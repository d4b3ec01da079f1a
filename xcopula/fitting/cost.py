"""Refuse a fit that cannot be afforded, before anything is allocated, and say what can."""

from __future__ import annotations

import logging

import numpy as np

from xcopula.errors import CostError
from xcopula.methods import METHODS, Settings, machine_memory, resolve_method
from xcopula.labels.observations import Observations

__all__ = ["check_cost"]

_log = logging.getLogger("xcopula")

# What else runs on the machine has a share of its memory.
_SHARE = 0.8


def check_cost(
    observations: Observations, method: str, settings: Settings, max_hours: float | None
) -> None:
    """Refuse a fit that would take more memory than there is, or more time than was allowed.

    Raises
    ------
    CostError
        With the estimate and what to do instead.
    """
    sizes = [int(n) for n in np.diff(observations.sample.offsets)]
    cost = resolve_method(method).cost(sizes, settings)
    _log.info("Method %r on %s values: %s", method, sizes, cost.describe())
    memory = machine_memory()
    if max_hours is None or (cost.bytes < _SHARE * memory and cost.hours <= max_hours):
        return
    pairs = "method='transductive', which takes variables in pairs"
    advice = []
    cheaper = METHODS["transductive"].cost(sizes, settings)
    if method == "full" and cheaper.hours < cost.hours:
        advice.append(f"{pairs} ({cheaper.describe()})")
    sparse = METHODS["fitc"].cost(sizes, settings)
    if sparse.hours < cost.hours:
        advice.append(
            f"a sparse method such as method='fitc' ({sparse.describe()}), with more `inducing` "
            "points where correlations are short"
        )
    times = [a.name for a in observations.coordinates.axes if a.epoch]
    thin = next((f"thin={{{name!r}: 7}}" for name in times if name in observations.dims), "thin=3")
    advice.append(f"a part of the data: a window of it, or {thin} for every so many along a dim")
    alone = method == "full" and len(sizes) == 1
    raise CostError(
        f"method={method!r} on {sum(sizes):,} values ({', '.join(f'{n:,}' for n in sizes)}) needs "
        f"{cost.describe()}; a fit may take {_SHARE * memory / 1e9:.2g} GB, and `max_hours` is "
        f"{max_hours:g}. "
        f"Use {'; or '.join(advice)}. `max_hours=None` fits all the same."
        + (f" (For several variables there is also {pairs}.)" if alone else "")
    )
