"""Whether correlation has a direction: what is asked of a fit, and how it is found out.

Each variable, with the kernel, law and structures that were chosen for it, is tried with a metric
that is free in one group of coordinates, from where it is without. First its score: how much of the
likelihood the slope and the bend there promise, for a few evaluations. Only if that is more than
little is it fitted. All variables of a model share a metric, so they decide together: the gain of
all at one metric, against its parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xcopula.errors import CoordinateError, NotPositiveDefiniteError
from xcopula.fitting.alone import Alone
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.labels.coordinates import CoordinateGroup, CoordinateSystem, Cycle
from xcopula.labels.observations import Observations
from xcopula.model.candidates import Candidate
from xcopula.model.extremes import EXTREME_SCORE
from xcopula.process import Process
from xcopula.warn import shown

__all__ = [
    "Anisotropy",
    "Turned",
    "asked_of_groups",
    "check_directions",
    "choose_directions",
    "input_groups",
    "open_groups",
    "try_directions",
]

FloatArray = npt.NDArray[np.float64]
# What a user may ask for, and what that is for each group: directions, none, or None to choose.
Anisotropy = bool | str | Sequence[str] | Mapping[str, bool | str]
Asked = tuple[bool | None, ...]

# By itself a metric is tried in groups of no more coordinates: seven have 27 parameters.
_MOST_COLUMNS = 3
# It is not tried where a variable has fewer sites for each of its parameters.
_SITES_EACH = 10
# Values that are looked at first to count sites.
_LOOKED_AT = 1000
# The bend of the likelihood is taken over a step that makes ranges differ by a tenth.
_STEP = 0.1
# A fit is worth while if so many nats are promised for each parameter.
_PROMISED = 0.5
# A parameter has to gain a nat, as for AIC, and so many more, divided by the number of values. In
# every sixth sample of 50 values AIC finds a direction that is not there, and that costs a tenth of
# the score; with two nats it is every fiftieth. In samples of hundreds it does little harm.
_FEW = 50.0
# More than chance: so many standard errors of a difference, where terms stand for others.
_ERRORS = 2.0


def asked_of_groups(given: Anisotropy, system: CoordinateSystem) -> Asked:
    """Return what is asked for each group of coordinates.

    Raises
    ------
    TypeError, ValueError, CoordinateError
        If it is not understood, names no group, or names one that can have no directions.
    """
    groups = system.groups
    if isinstance(given, str) and given == "auto":
        return tuple(None if _may_choose(g) else False for g in groups)
    if isinstance(given, bool | np.bool_):
        if not given:
            return (False,) * len(groups)
        several = [g for g in groups if _has_directions(g)]
        if not several:
            raise ValueError(
                "`anisotropy=True` needs a group of at least two coordinates that is no cycle, "
                f"found {[g.name for g in groups]}. Leave it out."
            )
        return tuple(_checked(g) if g in several else False for g in groups)
    each = _by_name(given)
    unknown = [name for name in each if name not in [g.name for g in groups]]
    if unknown:
        raise CoordinateError(
            f"`anisotropy` names groups {unknown}; the groups of coordinates are "
            f"{[g.name for g in groups]}. Name one of these, or give 'auto', True or False."
        )
    rest = "auto" if isinstance(given, Mapping) else False
    found: list[bool | None] = []
    for group in groups:
        wanted = each.get(group.name, rest)
        if wanted == "auto":
            found.append(None if _may_choose(group) else False)
        else:
            found.append(_checked(group) if wanted else False)
    return tuple(found)


def _by_name(given: object) -> dict[str, bool | str]:
    """Return what is asked of groups by their names."""
    if isinstance(given, Mapping):
        for name, wanted in given.items():
            if not isinstance(wanted, bool | np.bool_) and wanted != "auto":
                raise TypeError(
                    f"`anisotropy` of {name!r} must be 'auto', True or False, found "
                    f"{shown(wanted)}."
                )
        return dict(given)
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, Iterable) or isinstance(names, bytes):
        raise TypeError(
            f"`anisotropy` is 'auto', True, False or the names of groups, found {shown(given)}."
        )
    return dict.fromkeys(names, True)


def _has_directions(group: CoordinateGroup) -> bool:
    return group.columns > 1 and not isinstance(group, Cycle)


def _may_choose(group: CoordinateGroup) -> bool:
    return _has_directions(group) and not group.ard and group.columns <= _MOST_COLUMNS


def _checked(group: CoordinateGroup) -> bool:
    """Return True for a group that can have directions."""
    if not _has_directions(group):
        why = "is a cycle" if isinstance(group, Cycle) else "has only one coordinate"
        raise ValueError(
            f"`anisotropy` needs at least two coordinates in a group; {group.name!r} {why}. Leave "
            "it out."
        )
    if group.ard:
        raise ValueError(
            f"`anisotropy` and `ard` are both asked for group {group.name!r}. Directions include "
            "those of the axes: leave `ard` out."
        )
    return True


def check_directions(observations: Observations, asked: Asked) -> Asked:
    """Refuse directions that the sites cannot tell; do not choose among them either.

    Raises
    ------
    ValueError, CoordinateError
        If a variable has fewer sites than the metric has parameters, or sites all over the globe.
    """
    found, system, sample = list(asked), observations.coordinates, observations.sample
    for k, wanted in enumerate(asked):
        if wanted is False:
            continue
        group, own = system.groups[k], system.directions[k]
        if not own:
            if wanted:
                raise CoordinateError(
                    f"`anisotropy` of {group.name!r} needs sites on less than half the globe: "
                    "others have no east and north in common. Leave it out."
                )
            found[k] = False
            continue
        needed = InputGroup(group.columns, directions=own).parameters + 1  # and a length scale
        columns = slice(system.starts[k], system.starts[k] + group.columns)
        for i, name in enumerate(observations.names):
            places = _count_places(sample.inputs[columns, sample.task(i)], _SITES_EACH * needed)
            if wanted and places < needed:
                raise ValueError(
                    f"`anisotropy` of {group.name!r} has {needed} parameters with the length "
                    f"scale, but variable {name!r} has only {places} sites. Leave it out, or give "
                    "more sites."
                )
            if places < _SITES_EACH * needed:
                found[k] = wanted or False
    return tuple(found)


def _count_places(columns: FloatArray, enough: int) -> int:
    """Return how many places columns (k, n) have, or some number that is ``enough``."""
    for some in (columns[:, :: max(1, columns.shape[1] // _LOOKED_AT)], columns):
        count = int(np.unique(some, axis=1).shape[1])
        if count >= enough:
            break
    return count


def input_groups(observations: Observations, asked: Asked = ()) -> tuple[InputGroup, ...]:
    """Return the columns of each group of coordinates, as the covariance wants them.

    Those that were asked for have directions; those to be chosen have none yet.
    """
    system = observations.coordinates
    groups = tuple(InputGroup(g.columns, g.ard) for g in system.groups)
    for k, wanted in enumerate(asked):
        if wanted:
            groups = _with_directions(groups, k, system)
    return groups


def _with_directions(
    groups: tuple[InputGroup, ...], k: int, system: CoordinateSystem
) -> tuple[InputGroup, ...]:
    turned = replace(groups[k], directions=system.directions[k])
    return (*groups[:k], turned, *groups[k + 1 :])


def open_groups(asked: Asked) -> list[int]:
    """Return the groups whose directions are to be chosen."""
    return [k for k, wanted in enumerate(asked) if wanted is None]


class Turned(NamedTuple):
    """A variable's candidate with a free metric in one group.

    It is the one without where no such covariance can be factorised. The gain is in log-likelihood,
    with a standard error where terms stand for others.
    """

    candidate: Candidate
    gain: float
    error: float


def try_directions(
    alone: Alone, null: Candidate, asked: Asked, system: CoordinateSystem
) -> list[Turned]:
    """Try a variable's candidate with a metric that is free in each group to be chosen."""
    found = []
    for k in open_groups(asked):
        turned = replace(
            alone, groups=_with_directions(null.groups, k, system), structures=null.structures
        )
        try:
            found.append(_try(turned, null))
        except NotPositiveDefiniteError:
            found.append(Turned(null, 0.0, 0.0))
    return found


def _try(turned: Alone, null: Candidate) -> Turned:
    """Fit a candidate with a free metric if that promises something; else take one step."""
    process = turned.process(null.kernel, null.marginal)
    start, where = _widened(process, null)
    if _is_distorted(null):
        return Turned(turned.judge(null.kernel, process, start), 0.0, 0.0)
    # Terms that suit the candidate without: one choice of them serves all that is asked here.
    plain = turned.like(null)
    part = plain.part(plain.process(null.kernel, null.marginal), null.theta, turned.terms)
    objective = turned.objective(process, part)
    value, slope = objective(start)
    bend = np.empty((where.size, where.size))
    for row, place in zip(bend, where, strict=True):
        moved = start.copy()
        moved[place] += _STEP
        row[:] = (objective(moved)[1] - slope)[where] / _STEP
    bend = 0.5 * (bend + bend.T)
    low = float(np.linalg.eigvalsh(bend)[0]) if np.isfinite(bend).all() else 0.0
    step = -np.linalg.solve(bend, slope[where]) if low > 0.0 else np.zeros(where.size)
    # What terms promise by chance counts as often as they do.
    each = 1.0 if turned.terms is None else turned.sample.size / turned.terms
    if low > 0.0 and -0.5 * float(slope[where] @ step) < _PROMISED * each * where.size:
        before = -value - process.log_prior(start)[0]
        start[where] += step
        found = turned.judge(null.kernel, process, start, objective)
        return Turned(found, found.log_likelihood - before, 0.0)
    fitted = turned.fit(null.kernel, null.marginal, [start[: process.covariance.size]])
    return Turned(fitted, *_gain(turned, null, fitted))


def _is_distorted(null: Candidate) -> bool:
    """Tell whether a variable has no say: a metric may be all about one value far in the tail."""
    return null.largest_score > EXTREME_SCORE


def _gain(alone: Alone, null: Candidate, other: Candidate) -> tuple[float, float]:
    """Return what a candidate gains in log-likelihood, and the standard error of that."""
    before, after = alone.on_common_terms([null, other])
    # Where all terms are there, AIC knows the difference.
    error = 0.0 if alone.terms is None else 0.5 * max(before.error, after.error)
    return after.log_likelihood - before.log_likelihood, error


def _widened(process: Process, null: Candidate) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """Return a candidate's parameters with a metric like the one it has, and where this stands."""
    covariance = process.covariance
    old = Covariance((null.kernel,), null.groups, structures=null.structures, noise="independent")
    theta = np.zeros(process.size)
    theta[covariance.size :] = null.theta[old.size :]
    for name in covariance.layout:
        if name != "scaling":
            covariance.part(theta, name)[:] = old.part(null.theta, name)
    numbers, new = np.arange(float(process.size)), []
    for own, other, before, after in zip(
        old.metrics(null.theta),
        covariance.metrics(theta),
        old.groups,
        covariance.groups,
        strict=True,
    ):
        if before == after:
            other[:] = own
    for place, before, after in zip(
        covariance.metrics(numbers), old.groups, covariance.groups, strict=True
    ):
        if before != after:
            new.append(place)
    return theta, np.concatenate(new).astype(np.int64)


class _Trial(NamedTuple):
    """A variable alone, without directions in a group and with them."""

    alone: Alone
    null: Candidate
    found: Turned

    @property
    def turned(self) -> Candidate:
        """The candidate with directions."""
        return self.found.candidate

    def gain(self, metric: FloatArray, k: int) -> tuple[float, float]:
        """Return what the variable gains by a metric of a group, and the standard error of that."""
        if _is_distorted(self.null) or np.array_equal(metric, self.metric(k)):
            return self.found.gain, self.found.error
        return _gain(self.alone, self.null, self._at(metric, k))

    def metric(self, k: int) -> FloatArray:
        """Return the parameters of the metric of a group."""
        return self._process.covariance.metrics(self.turned.theta)[k]

    def _at(self, metric: FloatArray, k: int) -> Candidate:
        """Return the candidate with another metric of a group."""
        theta = self.turned.theta.copy()
        self._process.covariance.metrics(theta)[k][:] = metric
        return self._alone.judge(self.turned.kernel, self._process, theta)

    @property
    def _alone(self) -> Alone:
        return replace(self.alone, groups=self.turned.groups, structures=self.turned.structures)

    @property
    def _process(self) -> Process:
        return self._alone.process(self.turned.kernel, self.turned.marginal)


def choose_directions(
    tables: Sequence[Sequence[Candidate]],
    trials: Sequence[Sequence[Turned]],
    alone: Sequence[Alone],
    asked: Asked,
) -> list[list[Candidate]]:
    """Put candidates with directions first, in the groups where these gain more than they cost.

    Parameters
    ----------
    tables : sequence of sequences of Candidate
        Of each variable, the one to use first.
    trials : sequence of sequences of Turned
        Of each variable, with directions in each group to be chosen.
    alone : sequence of Alone
        The variables.
    """
    chosen = [table[0] for table in tables]
    kept: list[int] = []
    for number, k in enumerate(open_groups(asked)):
        each = [
            _Trial(one, table[0], trial[number])
            for one, table, trial in zip(alone, tables, trials, strict=True)
        ]
        if _worth_while(each, k):
            kept.append(k)
            turned = [t.turned for t in each]
            chosen = turned if len(kept) == 1 else _joined(alone, chosen, turned, k)
    if not kept:
        return [list(table) for table in tables]
    return [[first, *table] for first, table in zip(chosen, tables, strict=True)]


def _worth_while(trials: Sequence[_Trial], k: int) -> bool:
    """Tell whether a metric that all variables share gains more than its parameters cost."""
    if any(t.turned is t.null for t in trials):
        return False
    each = 1.0 + _FEW / max(t.alone.sample.size for t in trials)
    cost = each * trials[0].turned.groups[k].parameters
    if sum(max(t.found.gain, 0.0) for t in trials) <= cost:
        return False
    metrics = [t.metric(k) for t in trials]
    # That of the variable that gains most, that of the primary, and one in the midst of all.
    leaders = {0, int(np.argmax([t.found.gain for t in trials]))}
    for metric in (*(metrics[i] for i in leaders), np.mean(metrics, axis=0)):
        at = [t.gain(metric, k) for t in trials]
        total, error = sum(g for g, _ in at), np.sqrt(sum(e**2 for _, e in at))
        if total - cost > _ERRORS * error:
            return True
    return False


def _joined(
    alone: Sequence[Alone], chosen: Sequence[Candidate], turned: Sequence[Candidate], k: int
) -> list[Candidate]:
    """Give candidates that have directions in one group those of another group too."""
    found = []
    for one, first, second in zip(alone, chosen, turned, strict=True):
        groups = (*first.groups[:k], second.groups[k], *first.groups[k + 1 :])
        own = replace(one, groups=groups, structures=first.structures)
        process = own.process(first.kernel, first.marginal)
        theta, _ = _widened(process, first)
        single = replace(process.covariance, groups=second.groups)
        process.covariance.metrics(theta)[k][:] = single.metrics(second.theta)[k]
        found.append(own.judge(first.kernel, process, theta))
    return found
