"""What prediction needs of a fitted model, and nothing else: one object for a graph."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from xcopula.labels.coordinates import CoordinateSystem
from xcopula.labels.observations import Variable, to_targets
from xcopula.marginals import Marginal
from xcopula.methods.joint import Origin, is_joint, joint
from xcopula.process import NORMAL, Moments, Predictive, Sites, Spread, Student
from xcopula.process.bounded import Limits
from xcopula.process.paths import Prior
from xcopula.solvers import Conditioned, Gaussian, Joint

__all__ = ["Component", "Predictor", "mixed"]

FloatArray = npt.NDArray[np.float64]

# A tail up to this index has a mean whatever the latent variance, which is about one at most.
_HEAVY = 0.5


@dataclass(frozen=True)
class Component:
    """One of the processes that a prediction is a mixture of, conditioned on the data.

    Attributes
    ----------
    conditioned : Conditioned
    origin : Origin
        What it was conditioned from.
    laws : tuple of Marginal
        Of each variable, at the parameters of the component.
    weight : float
        Those of all components add up to one.
    students : tuple of Student
        What the errors of each variable were learnt from; empty where they are taken for normal.
    limits : Limits, optional
        Between which scores values lie that are known as intervals, under these laws.
    """

    conditioned: Conditioned
    origin: Origin
    laws: tuple[Marginal, ...]
    weight: float = 1.0
    students: tuple[Student, ...] = ()
    limits: Limits | None = None

    def spread(self, task: int) -> Spread:
        """Return the law of the errors of a variable, in units of their deviation."""
        return self.students[task].spread if self.students else NORMAL

    @property
    def is_joint(self) -> bool:
        """Whether its predictions are those of one Gaussian model of all variables."""
        return is_joint(self.conditioned, len(self.laws))

    @functools.cached_property
    def prior(self) -> Prior:
        """Its process before any data, ready to be drawn."""
        covariance = self.origin.process.covariance
        return Prior.of(covariance, self.origin.theta[: covariance.size])

    @functools.cached_property
    def joint(self) -> Gaussian:
        """The one Gaussian model of all variables that its parameters define."""
        return joint(self.conditioned, self.origin)

    def __getstate__(self) -> dict[str, Any]:
        # What follows from the rest is made anew where it is needed.
        return {f.name: getattr(self, f.name) for f in fields(self)}


def mixed(
    components: Sequence[Component],
    task: int,
    moments: Sequence[Moments],
    rows: FloatArray | None = None,
) -> Predictive:
    """Return the predictive law of a variable, given what each component says of its moments.

    Parameters
    ----------
    components : sequence of Component
    task : int
    moments : sequence of Moments
        Of the components.
    rows : ndarray (m, c), optional
        Covariates that the laws vary with.
    """
    means = np.stack([m.mean for m in moments])
    stds = np.sqrt(np.stack([m.variance for m in moments]))
    return _predictive(components, task, means, stds, rows, None)


def _predictive(
    components: Sequence[Component],
    task: int,
    means: FloatArray,
    stds: FloatArray,
    rows: FloatArray | None,
    limits: FloatArray | None,
) -> Predictive:
    laws = [c.laws[task] for c in components]
    return Predictive(
        means,
        stds,
        tuple(laws if rows is None else [law.at(rows) for law in laws]),
        np.array([c.weight for c in components]),
        tuple(c.spread(task) for c in components),
        limits,
    )


@dataclass(frozen=True)
class Predictor:
    """Conditioned processes, with the inputs and the laws of their variables.

    Attributes
    ----------
    coordinates : CoordinateSystem
    sites : Sites
        Of the data: there an observation is known, or shares its nugget with others.
    variables : tuple of Variable
    components : tuple of Component
        What a prediction is a mixture of; as a rule there is one.
    """

    coordinates: CoordinateSystem
    sites: Sites
    variables: tuple[Variable, ...]
    components: tuple[Component, ...]

    def predictive(
        self, task: int, moments: FloatArray, values: Sequence[npt.NDArray[Any]]
    ) -> Predictive:
        """Return the predictive law of a variable at cells.

        Parameters
        ----------
        task : int
        moments : ndarray (2 k, m) or (4 k, m)
            What :meth:`latent` returns. One row is a mean alone: the deviation does not count, and
            is zero.
        values : sequence of ndarray (m,)
            The fields of its law there.
        """
        rows = self._rows(task, values)
        count = len(self.components)
        stds = moments[count : 2 * count] if len(moments) > 1 else np.zeros_like(moments)
        limits = moments[2 * count :].reshape(2, count, -1) if len(moments) > 2 * count else None
        return _predictive(self.components, task, moments[:count], stds, rows, limits)

    def law(self, component: int, task: int, values: Sequence[npt.NDArray[Any]]) -> Marginal:
        """Return the law of a variable in a component, at cells with these fields, each (m,)."""
        law, rows = self.components[component].laws[task], self._rows(task, values)
        return law if rows is None else law.at(rows)

    def _rows(self, task: int, values: Sequence[npt.NDArray[Any]]) -> FloatArray | None:
        """Return what the law of a variable varies with, (m, c); None if it does not."""
        fields = self.variables[task].fields
        columns = [f.encode(v) for f, v in zip(fields, values, strict=True)]
        return np.column_stack(columns) if fields else None

    def bounds(self, task: int, nugget: bool) -> bool:
        """Tell whether a variable has sites where an observation is known as an interval."""
        return nugget and any(
            c.limits is not None and c.limits.holds(task) for c in self.components
        )

    def rows(self, quantity: str, task: int, nugget: bool) -> int:
        """Return how many numbers of a cell :meth:`latent` or :meth:`frame` returns."""
        bounded = quantity == "latent" and self.bounds(task, nugget)
        return (4 if bounded else 2) * len(self.components)

    def latent(self, numbers: Sequence[FloatArray], task: int, nugget: bool) -> FloatArray:
        """Return latent means and standard deviations (2 k, m) at coordinates, each (m,).

        Where values are known as intervals, lower and upper limits (4 k, m) follow them.
        """
        targets = to_targets(self.coordinates, self.sites, numbers)
        each = [c.moments(targets, task=task, nugget=nugget) for c in self._conditioned()]
        both = [*(m.mean for m in each), *(np.sqrt(m.variance) for m in each)]
        if self.bounds(task, nugget):
            open_ = np.array([[-np.inf], [np.inf]]) + np.zeros(targets.size)
            ends = [
                c.limits.at(targets.sites, task) if c.limits else open_ for c in self.components
            ]
            both += [*(low for low, _ in ends), *(high for _, high in ends)]
        return np.stack(both)

    def mean(self, numbers: Sequence[FloatArray], task: int, nugget: bool) -> FloatArray:
        """Return the latent mean (1, m) alone at coordinates, each (m,); of one component."""
        targets = to_targets(self.coordinates, self.sites, numbers)
        (only,) = self._conditioned()
        mean: FloatArray = only.mean(targets, task=task, nugget=nugget)
        return mean[None]

    def frame(self, numbers: Sequence[FloatArray], task: int, nugget: bool) -> FloatArray:
        """Return what draws need at coordinates: means, and what deviations are multiplied by.

        The latter (of (2 k, m) in all, means first) is the deviation of the component in units of
        that of the joint process.
        """
        targets = to_targets(self.coordinates, self.sites, numbers)
        asked: dict[str, Any] = {"task": task, "nugget": nugget}
        means, ratios = [], []
        for component in self.components:
            if component.is_joint:
                means.append(component.conditioned.mean(targets, **asked))
                ratios.append(np.ones(targets.size))
                continue
            own = component.conditioned.moments(targets, **asked)
            total = component.joint.moments(targets, **asked).variance
            means.append(own.mean)
            ratios.append(np.sqrt(own.variance / np.where(total > 0.0, total, np.inf)))
        return np.stack([*means, *ratios])

    def correlation(
        self, numbers: Sequence[FloatArray], task: tuple[int, int], nugget: bool
    ) -> FloatArray:
        """Return the latent correlation (k, m) of two variables at coordinates, given the data."""
        targets = to_targets(self.coordinates, self.sites, numbers)
        found = []
        for component in self.components:
            assert isinstance(component.joint, Joint)
            found.append(component.joint.correlation(targets, task, nugget=nugget))
        return np.stack(found)

    @property
    def has_correlations(self) -> bool:
        """Whether the joint law of several variables is known in closed form."""
        return all(isinstance(c.joint, Joint) for c in self.components)

    def endless(self, numbers: Sequence[FloatArray], task: int, nugget: bool) -> FloatArray:
        """Return 1 at coordinates, each (m,), where a variable has no mean, else 0, as (1, m).

        Its tail is then too heavy for the latent deviation. A law that varies has its heaviest.
        """
        heaviest = [
            float(np.max(c.laws[task].tail_index)) * float(c.spread(task).scales.max()) ** 2
            for c in self.components
        ]
        found = np.zeros((1, len(numbers[0])))
        if max(heaviest) >= _HEAVY:
            stds = self.latent(numbers, task, nugget)[len(heaviest) : 2 * len(heaviest)]
            found[0] = (np.array(heaviest)[:, None] * stds**2 >= 1.0).any(axis=0)
        return found

    def information(self, numbers: Sequence[FloatArray], task: int, nugget: bool) -> FloatArray:
        """Return the precision (t - 1, m) that each secondary adds at coordinates, each (m,)."""
        targets = to_targets(self.coordinates, self.sites, numbers)
        added = [c.information(targets, nugget=nugget) for c in self._conditioned()]
        weights = [c.weight for c in self.components]
        found: FloatArray = added[0] if len(added) == 1 else np.tensordot(weights, added, 1)
        return found

    def _conditioned(self) -> Iterator[Any]:
        return (c.conditioned for c in self.components)
