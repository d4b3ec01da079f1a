"""What the parameters do not know, and how a prediction counts it.

A prediction is a mixture of components: processes at parameters of their own, each conditioned on
the data, with weights. As a rule there is one component, the model at its fitted parameters. "t"
widens its errors; "laplace" puts weighted draws of the parameters in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from xcopula.errors import CostError
from xcopula.methods import Method
from xcopula.model.candidates import Share
from xcopula.model.laplace import DRAWS, Objective, draw
from xcopula.model.naming import parameter_names
from xcopula.process import Process, Sample, Student, parts_told
from xcopula.solvers import Sequential, Solver
from xcopula.solvers.cost import MEMORY_SHARE, machine_memory
from xcopula.warn import shown

if TYPE_CHECKING:
    from xcopula.model.record import CopulaModel

__all__ = [
    "UNCERTAINTIES",
    "Member",
    "Uncertainty",
    "account",
    "check_room",
    "check_uncertainty",
    "students_of",
]

FloatArray = npt.NDArray[np.float64]
Wrap = Callable[[Objective], Objective]

UNCERTAINTIES = ("auto", "plugin", "t", "laplace")

# "auto" draws parameters where t is too wide, as it is where parameters are more than this share of
# the values; but not of models of more values than this, which take too long.
_CROWDED, _MOST_DRAWN = 0.2, 600
# Student's t needs a variance.
_FEWEST_DEGREES = 3.0
# Fewer draws than this say little; so many has a process with a small share of the prediction.
_FEWEST_DRAWS = 2.0
_FEWEST_OF_ONE = 6
# A parameter this near to the end of its box, in units of it, lies on it; a box has so many units.
_ON_BOUND, _UNITS = 1e-3, 8.0


@dataclass(frozen=True)
class Member:
    """A process with weighted draws of its parameters: each is a component of the mixture.

    Attributes
    ----------
    process : Process
    prepared : ndarray (p,)
        Parameters near them, for which what the method makes of the data is made.
    thetas : ndarray (s, p)
    weights : ndarray (s,)
        Those of all members together add up to one.
    students : tuple of Student
        What the errors of each variable were learnt from; empty where they are taken for normal.
    """

    process: Process
    prepared: FloatArray
    thetas: FloatArray
    weights: FloatArray
    students: tuple[Student, ...] = ()


@dataclass(frozen=True)
class Uncertainty:
    """What a model says about its parameters.

    Attributes
    ----------
    kind : {"plugin", "t", "laplace"}
    reason : str
        Why, in words.
    members : tuple of Member
        None for the fitted parameters alone.
    effective : float
        As how many draws of equal weight those of "laplace" count.
    of : ndarray, optional
        The model's parameters that this was made for; None in files that did not keep them.
    """

    kind: str
    reason: str
    members: tuple[Member, ...] = ()
    effective: float = 1.0
    of: FloatArray | None = None

    def check(self, theta: FloatArray) -> None:
        """Refuse parameters that it was not made for: predictions would stay where they were.

        Raises
        ------
        ValueError
        """
        if self.members and self.of is not None and not np.array_equal(self.of, theta):
            raise ValueError(
                "`theta` is not that of the model's mixture, whose predictions would not move with "
                "it. Give `uncertainty=None, others=()` together with `theta`; then "
                "`model.with_uncertainty('t')`, if you like, makes a mixture anew."
            )

    def given(self, sample: Sample) -> Uncertainty:
        """Return it without draws under which a value of other data is impossible.

        Raises
        ------
        ValueError
            If none is left.
        """
        kept = []
        for member in self.members:
            scores = [member.process.scores(theta, sample) for theta in member.thetas]
            fine = np.array([bool(np.isfinite(z).all()) for z in scores])
            if fine.any():
                thetas, weights = member.thetas[fine], member.weights[fine]
                kept.append(replace(member, thetas=thetas, weights=weights))
        if self.members and not kept:
            raise ValueError(
                "A new value lies outside the support of its law in every draw of the parameters. "
                "Use `model.with_uncertainty('t')`, or mask the value."
            )
        total = sum(float(m.weights.sum()) for m in kept)
        members = tuple(replace(m, weights=m.weights / total) for m in kept)
        return replace(self, members=members)

    def describe(self, tasks: Sequence[str]) -> list[str]:
        """Return lines for the model's summary."""
        if self.kind == "t":
            values, parameters = self.members[0].students[0]
            found = (
                f"Student's t with {values - parameters:.4g} degrees of freedom "
                f"({_number(values)} values of {tasks[0]}, {parameters:.3g} parameters)"
            )
        elif self.kind == "laplace":
            count = sum(m.weights.size for m in self.members)
            found = (
                f"{count} draws of the parameters, as good as {self.effective:.1f} of equal weight"
            )
            if self.effective < _FEWEST_DRAWS:
                found += "; these are FEW, compare with uncertainty='t'"
        else:
            found = "parameters are taken for certain"
        if len(self.members) > 1:
            found = f"a mixture of {len(self.members)} candidates, {found}"
        return [f"intervals: {found}{f'; {self.reason}' if self.reason else ''}"]


def check_uncertainty(kind: Any) -> str:
    """Return how parameters are to be counted, if that is known."""
    if not isinstance(kind, str):
        names = ", ".join(UNCERTAINTIES)
        raise TypeError(f"`uncertainty` must be one of {names}; found {shown(kind)}.")
    if kind not in UNCERTAINTIES:
        raise ValueError(f"Unknown uncertainty {kind!r}. Choose one of {', '.join(UNCERTAINTIES)}.")
    return kind


def account(model: CopulaModel, kind: str, wrap: Wrap | None = None) -> CopulaModel:
    """Return a model whose predictions count what its parameters do not know.

    Parameters
    ----------
    kind : {"auto", "plugin", "t", "laplace"}
    wrap : callable, optional
        Turns the likelihood into one that can be interrupted.

    Raises
    ------
    ValueError
        If there are too few values for "t", or "laplace" finds no optimum to go by.
    """
    found: Uncertainty | None
    if kind == "plugin":
        found = _certain(model, "")
    elif kind == "t":
        found = _student(model, "")
    elif kind == "laplace":
        check_room(model.method, model.solver, model.observations.sample)
        found = _laplace(model, "", wrap)
    else:
        found = _chosen(model, wrap)
    if found is model.uncertainty:
        return model
    return replace(model, uncertainty=found and replace(found, of=model.theta))


def _chosen(model: CopulaModel, wrap: Wrap | None) -> Uncertainty | None:
    """Count what simulation shows to be right for the size at hand."""
    sample = model.observations.sample
    if isinstance(model.solver, Sequential):
        return _certain(model, f"{sample.size:,} values leave little open")
    first, count = _counts(model.process, model.theta, sample, model.method)[0]
    reason = "few parameters for so many values"
    if count > _CROWDED * first and sample.size <= _MOST_DRAWN and _has_optimum(model):
        few = f"{count:.3g} parameters are many for {_number(first)} values of {model.tasks[0]}"
        try:
            found = _laplace(model, few, wrap)
        except ValueError as error:
            reason = f"no draws: {error}"
        else:
            if found.effective >= _FEWEST_DRAWS:
                return found
            reason = f"only {found.effective:.1f} draws of {DRAWS} would count"
    try:
        return _student(model, reason)
    except ValueError as error:
        return _certain(model, str(error))


def _shares(model: CopulaModel) -> tuple[Share, ...]:
    """Return the processes that share a prediction, the model's own first."""
    weight = 1.0 - sum(share.weight for share in model.others)
    return (Share(model.process, model.theta, model.prepared, weight), *model.others)


def _at_optimum(share: Share, students: tuple[Student, ...] = ()) -> Member:
    weights = np.array([share.weight])
    return Member(share.process, share.prepared, share.theta[None], weights, students)


def _certain(model: CopulaModel, reason: str) -> Uncertainty | None:
    """Take parameters for certain; who shares a prediction still does."""
    if model.others:
        return Uncertainty("plugin", reason, tuple(map(_at_optimum, _shares(model))))
    return Uncertainty("plugin", reason) if reason else None


def _student(model: CopulaModel, reason: str) -> Uncertainty:
    sample = model.observations.sample
    members = [
        _at_optimum(
            share, students_of(share.process, share.theta, sample, model.tasks, model.method)
        )
        for share in _shares(model)
    ]
    return Uncertainty("t", reason, tuple(members))


def students_of(
    process: Process, theta: FloatArray, sample: Sample, tasks: Sequence[str], method: Method
) -> tuple[Student, ...]:
    """Return what the errors of each variable were learnt from.

    A value that is known as an interval counts as the part of a value that it tells.

    Raises
    ------
    ValueError
        If a variable has not enough values.
    """
    found = _counts(process, theta, sample, method)
    for name, (values, parameters) in zip(tasks, found, strict=True):
        if values - parameters < _FEWEST_DEGREES:
            raise ValueError(
                f"`uncertainty='t'` needs at least {_FEWEST_DEGREES:.0f} values more than there "
                f"are parameters; variable {name!r} has {_number(values)} values and "
                f"{parameters:.3g} parameters. Use uncertainty='plugin', fewer secondaries or "
                "structures, or a law with fewer parameters."
            )
    return found


def _number(values: float) -> str:
    """Return a number of values, which intervals make a fraction."""
    return f"{values:,.1f}".removesuffix(".0")


def _counts(
    process: Process, theta: FloatArray, sample: Sample, method: Method
) -> tuple[Student, ...]:
    """Count values and parameters of each variable: its own, and its correlations with others."""
    covariance = process.covariance
    alone, _ = covariance.with_tasks((0,))
    each = covariance.structures + (covariance.noise == "correlated")
    found, parts = [], parts_told(process.laws(theta, sample), sample)
    for i, law in enumerate(process.marginals):
        # A secondary of a transductive model meets the primary only.
        others = 1 if method.pairwise and i else sample.tasks - 1
        values = float(parts[sample.task(i)].sum())
        found.append(Student(values, float(alone.size + law.dof + each * others)))
    return tuple(found)


def _has_optimum(model: CopulaModel) -> bool:
    return model.method.polish


def _laplace(model: CopulaModel, reason: str, wrap: Wrap | None) -> Uncertainty:
    """Draw parameters around the optimum of each process that shares the prediction.

    Raises
    ------
    ValueError
        If the method ends at no optimum, or that of the model lies on a bound or beside a cliff.
    """
    if not _has_optimum(model):
        raise ValueError(
            f"`uncertainty='laplace'` needs the optimum of all parameters together, which "
            f"{model.method!r} does not look for. Use polish=True, or uncertainty='t'."
        )
    first, *others = _shares(model)
    drawn = [_drawn(model, first, wrap)]
    for share in others:
        own = replace(
            model,
            process=share.process,
            theta=share.theta,
            prepared=share.prepared,
            others=(),
            uncertainty=None,
        )
        try:
            drawn.append(_drawn(own, share, wrap))
        except ValueError:  # its optimum lies on a bound: it has no draws, and keeps its share
            drawn.append((_at_optimum(share), 1.0))
    members = tuple(member for member, _ in drawn)
    effective = 1.0 / sum(float(m.weights.sum()) ** 2 / n for m, n in drawn)
    return Uncertainty("laplace", reason, members, effective)


def _drawn(model: CopulaModel, share: Share, wrap: Wrap | None) -> tuple[Member, float]:
    """Draw parameters of a process around its optimum; also say as how many they count."""
    process, theta = model.process, model.theta
    bounds = process.bounds()
    width = np.ptp(bounds, axis=1)
    unit = np.where(width > 0.0, width, 1.0) / _UNITS
    _check_bounds(model, np.abs(bounds - theta[:, None]) < _ON_BOUND * unit[:, None])
    likelihood = model.objective if wrap is None else wrap(model.objective)
    count = max(_FEWEST_OF_ONE, 2 * round(0.5 * DRAWS * share.weight))
    try:
        draws = draw(likelihood, process.log_prior, theta, unit, count)
    except FloatingPointError as error:
        name = _names(model)[error.args[0]]
        raise ValueError(
            f"`uncertainty='laplace'` needs a likelihood that is smooth at the optimum, but a "
            f"small step of the {name} makes it zero. Use uncertainty='t', or another law."
        ) from None
    weights = share.weight * draws.weights
    return Member(process, model.prepared, draws.thetas, weights), draws.effective


def _check_bounds(model: CopulaModel, at: npt.NDArray[np.bool_]) -> None:
    """Refuse an optimum at the end of a parameter's range (p, 2)."""
    found = np.flatnonzero(at.any(axis=1))
    if found.size:
        k = int(found[0])
        end = "lower" if at[k, 0] else "upper"
        raise ValueError(
            "`uncertainty='laplace'` needs an optimum inside the range of every parameter, but "
            f"the {_names(model)[k]} ended at the {end} end of its range. Use uncertainty='t', or "
            "fix what the data do not tell: fewer structures, noise='independent', another law or "
            "kernel."
        )


def _names(model: CopulaModel) -> list[str]:
    groups = [g.name for g in model.coordinates.groups]
    return parameter_names(model.process, model.tasks, groups)


def check_room(method: Method, solver: Solver, sample: Sample) -> None:
    """Refuse draws whose conditioned processes do not fit into memory.

    Raises
    ------
    CostError
    """
    needed = DRAWS * method.cost(solver, sample.sizes).bytes
    memory = MEMORY_SHARE * machine_memory()
    if needed > memory:
        raise CostError(
            f"`uncertainty='laplace'` keeps {DRAWS} conditioned models of {sample.size:,} values, "
            f"which takes about {needed / 1e9:.2g} GB; the limit is {memory / 1e9:.2g} GB. Use "
            "uncertainty='t', which costs nothing."
        )
