"""Who competes in the whole model: laws and kernels of the primary, structures, couplings.

Step one tried them on each variable alone. Those that are close to the best there, by AIC, are
worth a second look where it counts: in the model of all variables, by values that are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from xcopula.fitting.selection import common_kernel, shortlist
from xcopula.fitting.suggestion import suggest
from xcopula.kernels import Nested, TaskKernel
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.model.candidates import Candidate
from xcopula.process import Process, Sample

__all__ = ["Rival", "name_of", "rivals_of"]

FloatArray = npt.NDArray[np.float64]

# Kernels and structures further behind than this have next to no weight; and so many are looked at,
# fewer where the first has several structures: its rivals mostly have them too, and take longer.
_CLOSE = 10.0
_MOST, _MOST_NESTED = 4, 3


@dataclass(frozen=True)
class Rival:
    """Another process of all variables, and where to start with it.

    Attributes
    ----------
    process : Process
    start : ndarray
    behind : float
        By how much the AIC of the primary alone is above that of the best.
    """

    process: Process
    start: FloatArray
    behind: float


def name_of(process: Process) -> str:
    """Name what candidates differ in: law and kernel of the primary, structures, coupling."""
    covariance = process.covariance
    name = f"{process.marginals[0].name}, {covariance.kernels[0].name}"
    if covariance.structures > 1:
        name += f", {covariance.structures} structures"
    if covariance.tasks > 1 and covariance.coupling != "convolution":
        name += f", {covariance.coupling}"
    return name


def rivals_of(
    process: Process,
    theta: FloatArray,
    tables: Sequence[Sequence[Candidate]],
    sample: Sample,
    *,
    other_coupling: bool = False,
) -> list[Rival]:
    """Return the rivals of a process that was fitted to all variables, the closest first.

    Parameters
    ----------
    process, theta
        What was fitted, with the first candidate of each table.
    tables : sequence of sequence of Candidate
        What step one tried for each variable, what was chosen first.
    other_coupling : bool
        Whether the coupling was left open.
    """
    found = [
        *_other_laws(process, theta, list(tables[0])),
        *_other_kernels(process, theta, tables),
        *_other_structures(process, theta, tables, sample),
    ]
    if other_coupling and process.covariance.tasks > 1:
        found += _other_couplings(process, theta)
    most = _MOST if process.covariance.structures == 1 else _MOST_NESTED
    return sorted(found, key=lambda rival: rival.behind)[:most]


def _other_laws(process: Process, theta: FloatArray, table: list[Candidate]) -> Iterator[Rival]:
    """Take other laws of the primary; the covariance starts where it is."""
    covariance_theta, marginals = process.split(theta)
    tried = [c for c in table if c.kernel.name == common_kernel(table)]
    aic = {c.marginal.name: c.aic for c in sorted(tried, key=lambda c: -c.aic)}
    for law in shortlist(table):
        if law.name != marginals[0].name:
            other = Process(process.covariance, (law, *marginals[1:]))
            behind = aic[law.name] - min(aic.values())
            yield Rival(other, other.join(covariance_theta), behind)


def _other_kernels(
    process: Process, theta: FloatArray, tables: Sequence[Sequence[Candidate]]
) -> Iterator[Rival]:
    """Take other kernels of the primary, or of all variables that share one."""
    best, covariance = tables[0][0], process.covariance
    alike = [
        c
        for c in tables[0]
        if c.structures == best.structures and c.marginal.name == best.marginal.name
    ]
    for candidate in alike:
        # What was chosen may have directions, which the others were not tried with.
        null = next((c for c in alike if _kind(c) == (best.kernel, candidate.groups)), None)
        if candidate.kernel == best.kernel or null is None or candidate.aic - null.aic > _CLOSE:
            continue
        if covariance.tasks > 1 and _has_each(candidate.kernel) != _has_each(best.kernel):
            continue  # all tasks have a kernel for each structure, or none: that is settled
        kernels = (candidate.kernel, *covariance.kernels[1:])
        if covariance.shared:
            kernels = (candidate.kernel,) * covariance.tasks
        other = replace(covariance, kernels=kernels)
        start = theta.copy()
        _shift(other, start, candidate, null)
        yield Rival(replace(process, covariance=other), start, candidate.aic - null.aic)


def _kind(candidate: Candidate) -> tuple[TaskKernel, tuple[InputGroup, ...]]:
    return candidate.kernel, candidate.groups


def _has_each(kernel: TaskKernel) -> bool:
    return isinstance(kernel, Nested)


def _shift(covariance: Covariance, start: FloatArray, to: Candidate, null: Candidate) -> None:
    """Move the primary's lengths and shares as they moved from one candidate to the other."""
    alone = Covariance((to.kernel,), to.groups, structures=to.structures)
    own = start[: covariance.size]
    for name in ("length", "logit"):
        covariance.part(own, name)[..., :1] += alone.part(to.theta, name) - alone.part(
            null.theta, name
        )


def _other_structures(
    process: Process,
    theta: FloatArray,
    tables: Sequence[Sequence[Candidate]],
    sample: Sample,
) -> Iterator[Rival]:
    """Take more structures or fewer, where step one has tried them for every variable."""
    covariance, best = process.covariance, tables[0][0]
    for number in sorted({c.structures for c in tables[0]} - {best.structures}):
        chosen = [next((c for c in t if c.structures == number), None) for t in tables]
        known = [c for c in chosen if c is not None]
        if len(known) < len(chosen) or any(c.groups != known[0].groups for c in known):
            continue
        # What was chosen may have directions, which the others were not tried with.
        alike = [c for c in tables[0] if c.structures == best.structures]
        null = next((c for c in alike if _kind(c) == (best.kernel, known[0].groups)), best)
        behind = known[0].aic - null.aic
        if behind > _CLOSE:
            continue
        kernels = tuple(c.kernel for c in known)
        coupling = covariance.coupling
        if covariance.shared:
            kernels = kernels[:1] * len(kernels)
            coupling = "icm" if number == 1 else "lmc"
        other = Covariance(kernels, known[0].groups, coupling, number, covariance.noise)
        plain, suggested = suggest(other, known, sample)
        new = replace(plain, covariance=replace(other, groups=covariance.groups))
        start = new.join(_refined(covariance, theta, new.covariance, other, suggested))
        yield Rival(new, start, behind)


def _refined(
    covariance: Covariance,
    theta: FloatArray,
    other: Covariance,
    suggested: Covariance,
    start: FloatArray,
) -> FloatArray:
    """Take lengths and shares as step one suggests, and of all else what is known.

    Its correlations are rough, and it may have none of the directions.
    """
    known, found = theta[: covariance.size], np.zeros(other.size)
    for name in ("length", "logit"):
        other.part(found, name)[:] = suggested.part(start[: suggested.size], name)
    other.part(found, "scaling")[:] = covariance.part(known, "scaling")
    other.part(found, "correlation")[:] = covariance.part(known, "correlation").mean(axis=0)
    other.part(found, "noise_correlation")[:] = covariance.part(known, "noise_correlation")
    return found


def _other_couplings(process: Process, theta: FloatArray) -> Iterator[Rival]:
    """Take the primary's kernel and lengths for all variables: correlations are then free.

    Convolutions of kernels with different lengths have a correlation that is below one.
    """
    covariance = process.covariance
    if covariance.shared:
        return
    other = replace(
        covariance,
        kernels=covariance.kernels[:1] * covariance.tasks,
        coupling="icm" if covariance.structures == 1 else "lmc",
    )
    own, start = theta[: covariance.size], np.zeros(other.size)
    other.part(start, "length")[:] = covariance.part(own, "length")[..., :1]
    for name in ("scaling", "logit", "correlation", "noise_correlation"):
        other.part(start, name)[:] = covariance.part(own, name)
    new = Process(other, process.split(theta)[1])
    yield Rival(new, new.join(start), 0.0)
