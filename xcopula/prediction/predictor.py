"""What prediction needs of a fitted model, and nothing else: one object for a graph."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from xcopula.arrays import FloatArray, IntArray
from xcopula.labels.coordinates import CoordinateSystem
from xcopula.labels.observations import Variable, to_targets
from xcopula.marginals import Marginal
from xcopula.methods.joint import Origin, is_joint, joint, joint_origin
from xcopula.process import Moments, Predictive, Sites, Targets
from xcopula.process.bounded import Limits
from xcopula.process.intervals import Intervals
from xcopula.process.paths import Prior
from xcopula.solvers import Conditioned, Gaussian, Joint

__all__ = ["ConditionedProcess", "Predictor"]

# A tail up to this index has a mean whatever the latent variance, which is about one at most.
_HEAVY = 0.5


@dataclass(frozen=True)
class ConditionedProcess:
    """A copula process conditioned on the data.

    Attributes
    ----------
    conditioned : Conditioned
    origin : Origin
        What it was conditioned from.
    laws : tuple of Marginal
        Of each variable.
    factors : tuple of float
        Of the latent standard deviation of each variable; see
        :class:`~xcopula.model.uncertainty.Uncertainty`.
    limits : Limits, optional
        The intervals of scores of censored values, under these laws.
    """

    conditioned: Conditioned
    origin: Origin
    laws: tuple[Marginal, ...]
    factors: tuple[float, ...]
    limits: Limits | None = None

    @classmethod
    def of(cls, conditioned: Conditioned, origin: Origin, factors: tuple[float, ...]) -> Self:
        """Return the process with its laws and limits at the parameters of its origin."""
        process, theta, sample, _ = origin
        limits = Limits.of(Intervals.of(process.laws(theta, sample), sample), sample)
        return cls(conditioned, origin, process.split(theta)[1], factors, limits)

    @property
    def is_joint(self) -> bool:
        """Whether its predictions are those of one Gaussian model of all variables."""
        return is_joint(self.conditioned, len(self.laws))

    @functools.cached_property
    def prior(self) -> Prior:
        """The process before any data, ready to be drawn."""
        covariance = self.origin.process.covariance
        return Prior.of(covariance, self.origin.theta[: covariance.size])

    @functools.cached_property
    def joint(self) -> Gaussian:
        """The one Gaussian model of all variables that its parameters define."""
        return joint(self.conditioned, self.origin)

    def as_joint(self) -> ConditionedProcess:
        """Return the process whose predictions are those of its joint model."""
        origin = joint_origin(self.conditioned, self.origin)
        return replace(self, conditioned=self.joint, origin=origin)

    def given(self, rows: IntArray) -> ConditionedProcess:
        """Return a joint process conditioned on some observations, by increasing numbers."""
        origin = self.origin.given(rows)
        return self.of(origin.condition(), origin, self.factors)

    def inflate(self, moments: Moments, task: int) -> Moments:
        """Return moments of a variable whose deviation counts the parameters' uncertainty."""
        return Moments(moments.mean, self.factors[task] ** 2 * moments.variance)

    def moments(self, targets: Targets, task: int, nugget: bool = True) -> Moments:
        """Return latent moments of a variable at targets."""
        return self.inflate(self.conditioned.moments(targets, task=task, nugget=nugget), task)

    def law(self, task: int, rows: FloatArray | None) -> Marginal:
        """Return the law of a variable, at rows (m, c) of covariates if it varies."""
        law = self.laws[task]
        return law if rows is None else law.at(rows)

    def __getstate__(self) -> dict[str, Any]:
        # What follows from the rest is made anew where it is needed.
        return {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True)
class Predictor:
    """A conditioned process, with the inputs and the laws of its variables.

    Attributes
    ----------
    coordinates : CoordinateSystem
    sites : Sites
        Of the data: there an observation is known, or shares its nugget with others.
    variables : tuple of Variable
    process : ConditionedProcess
    """

    coordinates: CoordinateSystem
    sites: Sites
    variables: tuple[Variable, ...]
    process: ConditionedProcess

    def predictive(
        self, task: int, moments: FloatArray, values: Sequence[npt.NDArray[Any]]
    ) -> Predictive:
        """Return the predictive law of a variable at cells.

        Parameters
        ----------
        task : int
        moments : ndarray (2, m) or (4, m)
            What :meth:`latent` returns. One row is a mean alone: the deviation does not count, and
            is zero.
        values : sequence of ndarray (m,)
            The fields of its law there.
        """
        std = moments[1] if len(moments) > 1 else np.zeros_like(moments[0])
        limits = moments[2:] if len(moments) > 2 else None
        return Predictive(moments[0], std, self.law(task, values), limits)

    def law(self, task: int, values: Sequence[npt.NDArray[Any]]) -> Marginal:
        """Return the law of a variable at cells with these fields, each (m,)."""
        fields = self.variables[task].fields
        columns = [f.encode(v) for f, v in zip(fields, values, strict=True)]
        return self.process.law(task, np.column_stack(columns) if fields else None)

    def bounds(self, task: int, nugget: bool) -> bool:
        """Tell whether a variable has sites where an observation is known as an interval."""
        limits = self.process.limits
        return nugget and limits is not None and limits.holds(task)

    def rows(self, quantity: str, task: int, nugget: bool) -> int:
        """Return how many numbers of a cell :meth:`latent` returns."""
        return 4 if quantity == "latent" and self.bounds(task, nugget) else 2

    def latent(self, numbers: Sequence[FloatArray], task: int, nugget: bool) -> FloatArray:
        """Return latent means and standard deviations (2, m) at coordinates, each (m,).

        Where values are known as intervals, lower and upper limits (4, m) follow them.
        """
        targets = to_targets(self.coordinates, self.sites, numbers)
        moments = self.process.moments(targets, task, nugget)
        found = np.stack([moments.mean, np.sqrt(moments.variance)])
        if not self.bounds(task, nugget):
            return found
        assert self.process.limits is not None
        return np.concatenate([found, self.process.limits.at(targets.sites, task)])

    def mean(self, numbers: Sequence[FloatArray], task: int, nugget: bool) -> FloatArray:
        """Return the latent mean (1, m) alone at coordinates, each (m,)."""
        targets = to_targets(self.coordinates, self.sites, numbers)
        return np.asarray(self.process.conditioned.mean(targets, task=task, nugget=nugget))[None]

    def frame(self, numbers: Sequence[FloatArray], task: int, nugget: bool) -> FloatArray:
        """Return what draws need at coordinates: means, and what deviations are multiplied by.

        The latter (the second row of two) is the deviation of a prediction in units of that of the
        joint process.
        """
        targets = to_targets(self.coordinates, self.sites, numbers)
        process, factor = self.process, self.process.factors[task]
        options: dict[str, Any] = {"task": task, "nugget": nugget}
        if process.is_joint:
            mean = process.conditioned.mean(targets, **options)
            return np.stack([mean, np.full(targets.size, factor)])
        moments = process.conditioned.moments(targets, **options)
        whole = process.joint.moments(targets, **options).variance
        ratio = np.sqrt(moments.variance / np.where(whole > 0.0, whole, np.inf))
        return np.stack([moments.mean, factor * ratio])

    def correlation(
        self, numbers: Sequence[FloatArray], task: tuple[int, int], nugget: bool
    ) -> FloatArray:
        """Return the latent correlation (1, m) of two variables at coordinates, given the data."""
        targets = to_targets(self.coordinates, self.sites, numbers)
        assert isinstance(self.process.joint, Joint)
        return np.asarray(self.process.joint.correlation(targets, task, nugget=nugget))[None]

    @property
    def has_correlations(self) -> bool:
        """Whether the joint law of several variables is known in closed form."""
        return isinstance(self.process.joint, Joint)

    def endless(self, numbers: Sequence[FloatArray], task: int, nugget: bool) -> FloatArray:
        """Return 1 at coordinates, each (m,), where a variable has no mean, else 0, as (1, m).

        Its tail is then too heavy for the latent deviation. A law that varies has its heaviest.
        """
        heaviest = float(np.max(self.process.laws[task].tail_index))
        if heaviest * self.process.factors[task] ** 2 < _HEAVY:
            return np.zeros((1, len(numbers[0])))
        std = self.latent(numbers, task, nugget)[1]
        return np.asarray(heaviest * std**2 >= 1.0, np.float64)[None]

    def information(self, numbers: Sequence[FloatArray], task: int, nugget: bool) -> FloatArray:
        """Return the precision (t - 1, m) that each secondary adds at coordinates, each (m,)."""
        targets = to_targets(self.coordinates, self.sites, numbers)
        conditioned: Any = self.process.conditioned
        return np.asarray(conditioned.information(targets, nugget=nugget))
