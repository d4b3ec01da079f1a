"""Compare kernels and marginal laws for each variable alone, as the report does before a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import kolmogorov

from xcopula.arguments import check_flag, check_integer, check_options
from xcopula.arrays import FloatArray
from xcopula.errors import SupportError
from xcopula.fitting.alone import Alone, largest_score
from xcopula.fitting.defaults import check_values, start_marginal, support_of
from xcopula.fitting.directions import Anisotropy, free_groups, input_groups
from xcopula.fitting.maximise import Fit
from xcopula.fitting.request import as_names, check_structures, check_supports
from xcopula.kernels import KERNELS, KernelSpec, resolve_kernels
from xcopula.kernels.nested import check_count, simplest
from xcopula.labels.censoring import Censored, rules_of
from xcopula.labels.coordinates import Coords
from xcopula.labels.observations import observe
from xcopula.labels.variables import Data
from xcopula.marginals import MARGINALS, Law, Marginal, Recipe
from xcopula.marginals import resolve as resolve_marginal
from xcopula.solvers import Solver, resolve_solver, settle
from xcopula.warn import shown

__all__ = ["compare", "format_comparison"]

_MEASURES = {
    "log_likelihood": "log-likelihood of the single-task copula process",
    "aic": "Akaike information criterion",
    "loo_log_score": "mean leave-one-out log predictive density",
    "loo_crps": "mean leave-one-out continuous ranked probability score",
    "pit_pvalue": "p-value of uniform leave-one-out PIT (Kolmogorov-Smirnov)",
    "largest_score": "largest absolute normal score",
}


@check_options
def compare(
    data: Data,
    variables: str | Sequence[str],
    *,
    coords: Coords = None,
    kernels: Sequence[KernelSpec] = tuple(KERNELS),
    marginals: Sequence[str] = tuple(MARGINALS),
    solver: str | Solver = "auto",
    structures: int = 1,
    ard: bool | Sequence[str] = False,
    anisotropy: Anisotropy = True,
    censored: Censored = "auto",
    replicates: bool = False,
    support: object = None,
) -> xr.Dataset:
    """Fit every kernel with every marginal law to each variable alone.

    Parameters
    ----------
    data, coords, solver, structures, ard, anisotropy, censored, replicates, support
        As in :func:`xcopula.fit`.
    variables : str or sequence of str
    kernels, marginals : sequence of str
        What to compare; everything there is by default. A list among the kernels has one for each
        of the ``structures``.

    Returns
    -------
    Dataset
        On dims (task, kernel, marginal): ``log_likelihood``, ``aic``, ``loo_log_score``,
        ``loo_crps``, ``pit_pvalue`` and ``largest_score``; NaN where values lie outside the support
        of a law. All laws are compared, also those that put some probability below zero.
        :func:`format_comparison` prints it.
    """
    names = as_names("variables", variables)
    if not names or len(set(names)) < len(names):
        raise ValueError(
            f"`variables` must name at least one variable, and each only once, found {names}."
        )
    several = [resolve_kernels(k) for k in _several("kernels", kernels)]
    laws = [_constant(resolve_marginal(m)) for m in _several("marginals", marginals)]
    structures, asked = check_integer("structures", structures, least=1), resolve_solver(solver)
    for kernel in several:
        check_count(kernel, structures)
    shapes = [simplest(kernel) for kernel in several]
    observations = observe(
        data,
        names,
        coords,
        ard=ard,
        censored=rules_of(censored, names),
        replicates=check_flag("replicates", replicates),
    )
    check_structures(observations, structures)
    ends = check_supports(support, names)
    groups = input_groups(observations, free_groups(anisotropy, observations.coordinates))
    shape = (len(names), len(shapes), len(laws))
    tables = {measure: np.full(shape, np.nan) for measure in _MEASURES}
    for i in range(len(names)):
        sample = observations.sample.select([i])
        alone = Alone(sample, groups, structures, settle(asked, [sample.sizes]), rough=False)
        check_values(sample, ends[i], names[i])
        for m, law in enumerate(laws):
            support = support_of(law, sample, ends[i], observations.variables[i].attrs)
            try:
                start = start_marginal(law, sample, {}, support, names[i])
            except SupportError:
                continue
            for k, kernel in enumerate(shapes):
                for measure, value in _measure(alone, alone.fit(kernel, start)).items():
                    tables[measure][i, k, m] = value
    dims = ("task", "kernel", "marginal")
    return xr.Dataset(
        {name: (dims, values, {"long_name": _MEASURES[name]}) for name, values in tables.items()},
        coords={
            "task": names,
            "kernel": [k.name for k in shapes],
            "marginal": [m.name for m in laws],
        },
    )


def _several(option: str, given: Any) -> list[Any]:
    """Return what is to be compared as a list; one name stands for itself."""
    if isinstance(given, str):
        return [given]
    try:
        several = list(given)
    except TypeError:
        several = []
    if not several or isinstance(given, Mapping):
        raise TypeError(f"`{option}` must be a list of at least one, found {shown(given)}.")
    return several


def _constant(law: Law) -> Law:
    if isinstance(law, Recipe | Marginal) and law.fields:
        raise TypeError(
            f"`marginals`: {law.name!r} varies with fields, and `compare` takes none. Name a "
            "family, or give this law to `fit`."
        )
    return law


def _measure(alone: Alone, single: Fit) -> dict[str, float]:
    found = alone.scores(single)
    return {
        "log_likelihood": single.log_likelihood,
        "aic": single.aic,
        "loo_log_score": float(found.log_score.mean()),
        "loo_crps": float(found.crps.mean()),
        "pit_pvalue": _uniformity(found.pit),
        "largest_score": largest_score(single.marginal, alone.sample),
    }


def _uniformity(pit: FloatArray) -> float:
    """Return the Kolmogorov-Smirnov p-value of uniform values."""
    n = pit.size
    ordered = np.sort(pit)
    steps = np.arange(n + 1) / n
    distance = max((steps[1:] - ordered).max(), (ordered - steps[:-1]).max())
    # The limit law, with Stephens' correction for finite samples.
    return float(kolmogorov(distance * (np.sqrt(n) + 0.12 + 0.11 / np.sqrt(n))))


@check_options
def format_comparison(comparison: xr.Dataset, *, most: int = 5) -> str:
    """Return a comparison as a text table, the best AIC of each variable first."""
    check_integer("most", most, least=1)
    if not isinstance(comparison, xr.Dataset) or not set(_MEASURES) <= set(comparison.data_vars):
        raise TypeError(f"Pass the Dataset that `compare` returned, found {shown(comparison)}.")
    lines = []
    for task in comparison["task"].values:
        own = comparison.sel(task=task).stack(candidate=("kernel", "marginal"))
        own = own.dropna("candidate", subset=["aic"]).sortby("aic").isel(candidate=slice(most))
        lines.append(f"{task}")
        header = (
            "kernel",
            "marginal",
            "log-lik.",
            "AIC",
            "LOO log",
            "LOO CRPS",
            "PIT p",
            "max |z|",
        )
        lines.append("  {:9} {:12} {:>10} {:>10} {:>9} {:>9} {:>7} {:>8}".format(*header))
        for n in range(own.sizes["candidate"]):
            row = own.isel(candidate=n)
            values = [float(row[name]) for name in _MEASURES]
            lines.append(
                "  {:9} {:12} {:10.2f} {:10.2f} {:9.4f} {:9.4g} {:7.3f} {:8.2f}".format(
                    str(row["kernel"].values), str(row["marginal"].values), *values
                )
            )
    return "\n".join(lines)
