"""A fitted model in a few lines of text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from scipy.special import ndtri

from xcopula.labels.dates import date_of
from xcopula.labels.fields import Field
from xcopula.marginals import Marginal
from xcopula.model.directions import find_directions, short, with_units
from xcopula.model.leave_one_out import compare_alone
from xcopula.solvers import MOST_EXACT, Sequential

if TYPE_CHECKING:
    from xcopula.model.record import CopulaModel

__all__ = ["aligned", "likelihood_of", "summarise"]

_MOST_LISTED = 5
# Of values that are nearly all positive at most this share is negative, as below a low quantile.
_FEW_NEGATIVE = _LOW = 0.05
# Columns of a terminal, with some to spare.
_WIDTH = 88


def summarise(model: CopulaModel, *, scores: bool = True) -> str:
    """Describe a model: its data, what it predicts, its parameters, how it was fitted.

    Scores need the model conditioned on its data, which takes time where these are many.
    """
    parameters = model.parameters
    lines = [
        f"Multi-task Gaussian copula process of {model.tasks[0]!r}"
        + (f" with {', '.join(map(repr, model.tasks[1:]))}" if len(model.tasks) > 1 else ""),
        f"  {model.size} observations{_date(model)}, inputs "
        + " x ".join(
            f"{g.name}({', '.join(a.name for a in g.axes)})"
            for g in model.observations.coordinates.groups
        ),
        *_since(model),
        *_intervals(model),
        *_replicates(model),
        *(_left_out(model) if scores else ()),
        "",
        *_marginals(model),
        *_zeros(model),
        *_below_zero(model),
        "",
        *_covariances(model, parameters),
        *_correlations(model, parameters),
        "",
        f"  method {model.method.name!r}{_solver(model)}, {_structure(model)}",
        *_which_method(model),
        f"  {likelihood_of(model)}{' of the fit' if model.since else ''} "
        f"{model.log_likelihood:.2f} "
        f"with {model.theta.size} parameters, "
        + ("converged" if model.converged else f"NOT converged ({model.message})")
        + f" after {model.evaluations} evaluations",
        *(f"  {remark}" for remark in (model.conditioned.describe() if scores else ())),
        f"  {model.uncertainty.describe(model.tasks[0])}",
    ]
    return "\n".join(part for line in lines for part in _wrapped(line))


def likelihood_of(model: CopulaModel) -> str:
    """Name what was maximised: of one variable every method has the likelihood itself."""
    return model.method.likelihood if len(model.tasks) > 1 else "log-likelihood"


def _structure(model: CopulaModel) -> str:
    """Name the number of structures, and what differs from the default."""
    covariance = model.process.covariance
    words = f"{covariance.structures} structure{'s' * (covariance.structures > 1)}"
    if len(model.tasks) > 1 and covariance.shared:
        words += f", coupling {covariance.coupling!r}"
    if len(model.tasks) > 1 and covariance.noise != "correlated":
        words += f", {covariance.noise} nuggets"
    return words


def _wrapped(line: str) -> list[str]:
    """Return a line as several of the width of a terminal, those that follow further in."""
    if len(line) <= _WIDTH:
        return [line]
    margin = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(
        line.strip(),
        _WIDTH,
        initial_indent=margin,
        subsequent_indent=f"{margin}    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _left_out(model: CopulaModel) -> list[str]:
    """Say how well values of the primary are predicted from all others, and from its own alone."""
    primary, units = model.tasks[0], model.variables[0].attrs.get("units", "")
    units = f" {units}" if units else ""
    score = compare_alone(model)
    size = model.observations.sample.sizes[0]
    which = "each value" if score.size == size else f"each of {score.size:,} of {size:,} values"
    kept = ", other times too" if score.stations else ""
    how = f"    {which} predicted from all others{kept}; parameters not refitted"
    line = f"  {primary}, leave-one-out: CRPS {short(score.crps)}{units}"
    if score.alone is None:
        return [line, how]
    percent = 100.0 * (score.crps / score.alone - 1.0)
    line += f", without secondaries {short(score.alone)}"
    if score.pays:
        return [f"{line} ({percent:+.2g} % by them)", how]
    return [line, how, f"  the secondaries do not pay: fit {primary!r} alone, or choose others"]


def _marginals(model: CopulaModel) -> list[str]:
    """Return a table of the marginals, with parameters where these are few."""
    names = [law.name for law in model.marginals]
    few = [law.parameters if len(law.parameters) <= _MOST_LISTED else {} for law in model.marginals]
    columns = list(dict.fromkeys(name for parameters in few for name in parameters))
    per: dict[str, str] = {}
    for variable in model.variables:
        per |= _per(variable.fields)
    rows = [("variable", "values", "marginal", *(f"{c}{per.get(c, '')}" for c in columns))]
    for task, (name, law, parameters) in enumerate(zip(model.tasks, names, few, strict=True)):
        values = model.observations.sample.sizes[task]
        cells = [f"{parameters[c]:.4g}" if c in parameters else "" for c in columns]
        rows.append((name, str(values), law, *cells))
    lines = aligned(rows)
    if max(map(len, lines)) > _WIDTH:  # a row of its own for the parameters of each
        lines = aligned([row[:3] for row in rows])
        for task, parameters in enumerate(few):
            listed = ", ".join(f"{k} {v:.4g}{per.get(k, '')}" for k, v in parameters.items())
            if listed:
                lines.append(f"  {model.tasks[task]}: {listed}")
    for variable, marginal in zip(model.variables, model.marginals, strict=True):
        lines += _laws_by_group(variable.name, marginal, variable.fields)
    return lines


def _covariances(model: CopulaModel, p: xr.Dataset) -> list[str]:
    """Return a table of kernels, nuggets and length scales, with standard errors."""
    rows = [("variable", "kernel", "nugget", "length scale")]
    for i, name in enumerate(model.tasks):
        nugget = _with_error(f"{p['nugget'].values[i]:.2g}", p["nugget_error"].values[i])
        rows.append((name, str(p["kernel"].values[i]), nugget, _lengths(model, p, i)))
    return aligned(rows)


def _correlations(model: CopulaModel, p: xr.Dataset) -> list[str]:
    """Return a table of correlations with the primary, with standard errors."""
    if len(model.tasks) == 1:
        return []
    rows = [("correlation with " + model.tasks[0], "signal", "nugget")]
    for i, name in enumerate(model.tasks[1:], start=1):
        columns = (
            (np.atleast_1d(p[what].values[..., 0, i]), np.atleast_1d(p[f"{what}_error"][..., 0, i]))
            for what in ("correlation", "nugget_correlation")
        )
        signal, nugget = (
            ", ".join(_with_error(f"{v:+.2f}", e) for v, e in zip(values, errors, strict=True))
            for values, errors in columns
        )
        rows.append((name, signal, nugget))
    return ["", *aligned(rows)]


def _with_error(number: str, error: float) -> str:
    """Return a number with its standard error, to two decimals, if it has one."""
    return f"{number} ± {error:.2f}" if np.isfinite(error) else number


def _zeros(model: CopulaModel) -> list[str]:
    """Say of which variables values stand for all below them, and how many these are."""
    lines, sample = [], model.observations.sample
    for i, (name, law) in enumerate(zip(model.tasks, model.marginals, strict=True)):
        if law.atom is not None:
            values = sample.values[sample.task(i)]
            count = f"{(values == law.atom).sum():,} of {values.size:,} values"
            lines.append(
                f"  {name} is {law.atom:g} in {count}: at or below it, of a marginal that goes on"
            )
    return lines


def _below_zero(model: CopulaModel) -> list[str]:
    """Point to `support` where values are nearly all positive and low quantiles are not."""
    lines, sample = [], model.observations.sample
    for i, (variable, law) in enumerate(zip(model.variables, model.marginals, strict=True)):
        values = sample.values[sample.task(i)]
        negative = int((values < 0.0).sum())
        if variable.fields or law.support[0] >= 0.0 or negative > _FEW_NEGATIVE * values.size:
            continue
        low = law.from_normal(ndtri(_LOW)).item()
        if low < 0.0:
            first = "set negative values to 0 and " if negative else ""
            lines.append(
                f"  {variable.name} is negative in {negative:,} of {values.size:,} values, but its "
                f"{100.0 * _LOW:.0f} % quantile is {low:.3g}: if it cannot be, {first}pass "
                f"`support={{{variable.name!r}: (0, None)}}`"
            )
    return lines


def _since(model: CopulaModel) -> list[str]:
    """Say what has happened to the data since the fit, whose parameters the model has."""
    since = model.since
    if since is None:
        return []
    what = []
    if since.other:
        what.append("on other data")
    if since.added:
        instead = f" ({since.replaced} in place of others)" if since.replaced else ""
        what.append(f"on {since.added} more values{instead}")
    return [
        f"  conditioned {' and '.join(what)}; parameters of the fit on {since.fitted} "
        "observations kept"
    ]


def _intervals(model: CopulaModel) -> list[str]:
    """Say how many values are known as intervals, and how that was told."""
    sample, lines = model.observations.sample, []
    for i, variable in enumerate(model.variables):
        lower, upper = sample.limits_of(i)
        whole = np.isfinite(lower) & np.isfinite(upper) & (lower < upper)
        counts = {
            "below a limit": int((np.isinf(lower) & np.isfinite(upper)).sum()),
            "above a limit": int((np.isfinite(lower) & np.isinf(upper)).sum()),
            "between two limits": int(whole.sum()),
        }
        found = [f"{count} {what}" for what, count in counts.items() if count]
        if found:
            lines.append(
                f"  {variable.name}: of {lower.size} values {', '.join(found)} "
                f"({variable.censored.describe()})"
            )
    return lines


def _replicates(model: CopulaModel) -> list[str]:
    """Say which variables have several values at a site."""
    observations, lines = model.observations, []
    if observations.specimens is None:
        return []
    places = observations.places()
    for i, name in enumerate(model.tasks):
        _, counts = np.unique(places[observations.sample.task(i)], return_counts=True)
        several = int((counts > 1).sum())
        if several:
            lines.append(f"  {name}: several values at {several} of {counts.size} sites")
    return lines


def _date(model: CopulaModel) -> str:
    """Say of which date the primary's observations are, where it is one and no input."""
    dates = [
        str(date_of(axis).dt.strftime("%Y-%m-%d %H:%M").item()) for axis in model.variables[0].dates
    ]
    return f" of {', '.join(d.removesuffix(' 00:00') for d in dates)}" if dates else ""


def _solver(model: CopulaModel) -> str:
    """Name the solver, and say why one that approximates is there."""
    sizes = model.method.submodels(model.observations.sample.sizes)
    if not sizes:  # no solver evaluates a sparse model
        return ""
    largest = max(map(sum, sizes))
    name = f", solver {model.solver.name!r}"
    if largest <= MOST_EXACT or not isinstance(model.solver, Sequential):
        return name
    return f"{name} ({largest:,} values in one sub-model; 'exact' is for {MOST_EXACT:,})"


def _which_method(model: CopulaModel) -> list[str]:
    """Say which method to take where neighbours make them alike (docs/large.md has figures)."""
    other = {"full": "transductive", "transductive": "full"}.get(model.method.name)
    if other is None or len(model.tasks) == 1 or not isinstance(model.solver, Sequential):
        return []
    return [f"  with neighbours {other!r} would predict as well, and take about as long to fit"]


def _lengths(model: CopulaModel, parameters: xr.Dataset, task: int) -> str:
    """Return the length scales of a task, group by group, with their units."""
    parts = []
    directions = find_directions(model.process, model.theta, model.coordinates)
    for g, (group, own) in enumerate(zip(model.coordinates.groups, directions, strict=True)):
        lengths = parameters["length_scale"].values[:, g, task]
        errors = parameters["length_scale_error"].values[:, g, task] / lengths
        percent = ", ".join(f"{100.0 * e:.0f}" if np.isfinite(e) else "?" for e in errors)
        spread = f" (± {percent} %)" if np.isfinite(errors).any() else ""
        if own is not None:
            parts.append(own.describe(lengths, group.units) + spread)
            continue
        if not group.ard:
            parts.append(with_units(lengths, group.units) + spread)
            continue
        # Each axis has its own: the group's are multiples of its scale.
        scales = parameters["scaling"].sel(axis=[a.name for a in group.axes]).values
        each = zip(group.axes, scales, strict=True)
        parts.append("; ".join(f"{a.name} {with_units(lengths * s, a.units)}" for a, s in each))
    return " x ".join(parts)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of a table as lines, with columns one below the other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _per(fields: Sequence[Field]) -> dict[str, str]:
    """Return the units of slopes, by field."""
    return {field.name: f" per {field.units}" for field in fields if field.units}


def _laws_by_group(name: str, law: Marginal, fields: Sequence[Field]) -> list[str]:
    """Return a table of many parameters: groups in rows, where there are groups."""
    parameters = law.parameters
    if len(parameters) <= _MOST_LISTED:
        return []
    cells: dict[str, dict[str, float]] = {}
    for key, value in parameters.items():
        what, _, group = key.partition("[")
        cells.setdefault(group.rstrip("]") or "all", {})[what] = value
    columns = list(dict.fromkeys(what for row in cells.values() for what in row))
    per = _per(fields)
    rows = [(f"law of {name}", *(f"{c}{per.get(c, '')}" for c in columns))]
    for group, row in cells.items():
        rows.append((group, *(f"{row[c]:.4g}" if c in row else "" for c in columns)))
    return ["", *aligned(rows)]
