"""Cross-validation in a few lines of text."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import xarray as xr

from xcopula.validation.results import CLIMATOLOGY, LEVELS, MODEL, SINGLE_TASK, covered
from xcopula.warn import shown

__all__ = ["format_validation", "skill"]

_NAMES = {MODEL: "model", SINGLE_TASK: "single task", CLIMATOLOGY: "climatology"}
_KINDS = {"sites": "random sites", "time": "spans of time", "given": "given"}


def skill(
    crps: npt.ArrayLike, reference: npt.ArrayLike, folds: npt.ArrayLike
) -> tuple[float, float]:
    """Return the skill 1 - CRPS / CRPS of a reference, and its standard error; NaN of one fold.

    The error is paired: of the differences between the two at the same values. Values of one fold
    are taken for one: they are predicted from the same data, and near each other they err alike.

    Parameters
    ----------
    crps, reference, folds : array-like (n,)

    Examples
    --------
    >>> skill([1.0, 1.0, 2.0, 2.0], [2.0, 2.0, 4.0, 4.0], [0, 0, 1, 1])
    (0.5, 0.0)
    """
    own, other = np.asarray(crps, np.float64), np.asarray(reference, np.float64)
    ratio = own.mean() / other.mean()
    # How each value moves the ratio, summed over folds: the linearised ratio of two means.
    _, cluster = np.unique(np.asarray(folds), return_inverse=True)
    moved = np.bincount(cluster, (own - ratio * other) / other.mean()) / own.size
    if moved.size == 1:  # nothing to compare it with
        return float(1.0 - ratio), float("nan")
    error = np.sqrt(moved.size / (moved.size - 1) * np.sum(moved**2))
    return float(1.0 - ratio), float(error)


def _known(result: xr.Dataset) -> npt.NDArray[np.bool_]:
    """Tell which values are numbers, not intervals."""
    if "observed_lower" not in result:
        return np.ones(result["observed"].size, bool)
    found = result["observed_lower"].values == result["observed_upper"].values
    return np.asarray(found)


def format_validation(result: xr.Dataset) -> str:
    """Return a cross-validation as a text table.

    Parameters
    ----------
    result : Dataset
        Of :func:`xcopula.cross_validate`.

    Returns
    -------
    str
        For the model and its references: the mean absolute error and the root mean square error of
        the median and the mean CRPS, in the variable's units, and how many values lie within the
        central 50, 80, 90 and 95 %. Then the skill in CRPS against each reference, with paired
        standard errors: folds are taken for independent, values of one fold are not. One fold
        alone has no standard error. Values that are known as intervals have no error of their
        own: they are left out of the first two, and the table says how many are left.
    """
    needed = {"observed", "fold", *(n + CLIMATOLOGY for n in ("median", "pit", "crps"))}
    if not isinstance(result, xr.Dataset) or not needed <= set(result.data_vars):
        raise TypeError(f"Pass the Dataset that `cross_validate` returned, found {shown(result)}.")
    observed = result["observed"].values
    ends = [end for end in _NAMES if f"crps{end}" in result]
    attrs = result.attrs
    units = result["observed"].attrs.get("units", "")
    folds = np.unique(result["fold"].values).size
    counted = "1 fold" if folds == 1 else f"{folds} folds"
    kind = _KINDS.get(attrs.get("folds", ""), attrs.get("folds", ""))
    beside = ""
    if attrs.get("secondary"):
        beside = f"; at withheld places {attrs['secondary']} are "
        beside += "known" if attrs.get("secondaries") == "keep" else "withheld too"
    lines = [
        f"{attrs.get('primary', '')}: {observed.size} values in {counted} ({kind})"
        + (f", buffer {attrs['buffer']}" if "buffer" in attrs else ""),
        f"  parameters {attrs.get('parameters', '')}{beside}",
        "  {:12} {:>9} {:>9} {:>9} {:>6} {:>6} {:>6} {:>6}".format(
            f"[{units}]" if units else "", "MAE", "RMSE", "CRPS", *(f"{q:.0%}" for q in LEVELS)
        ),
    ]
    known = _known(result)
    for end in ends:
        error = (observed - result[f"median{end}"].values)[known]
        inside = covered(result[f"pit{end}"].values).mean(axis=1)
        lines.append(
            "  {:12} {:9.4g} {:9.4g} {:9.4g} {:6.1%} {:6.1%} {:6.1%} {:6.1%}".format(
                _NAMES[end],
                np.abs(error).mean() if error.size else np.nan,
                np.sqrt((error**2).mean()) if error.size else np.nan,
                result[f"crps{end}"].values.mean(),
                *inside,
            )
        )
    if not known.all():
        lines.append(f"  MAE and RMSE are of the {known.sum()} values that are no intervals")
    for end in reversed(ends[1:]):
        value, error = skill(result["crps"], result[f"crps{end}"], result["fold"])
        beside = "" if np.isnan(error) else f" (standard error {error:.3f})"
        lines.append(f"  skill against {_NAMES[end]:12} {value:+.3f}{beside}")
    return "\n".join(lines)
