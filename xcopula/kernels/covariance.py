r"""The covariance of the latent process: its parameters, its matrices and their derivatives.

.. math::

    \mathrm{Cov}(z_i(x), z_j(x')) = \sum_q A^q_{ij} \prod_g \kappa^{q,g}_{ij}(r_g)
        + N_{ij} [x, x' \text{ the same site}], \qquad \sum_q A^q_{ii} + N_{ii} = 1

Each task shares its unit variance between the structures and the nugget (a softmax), and each
structure and the nugget has a correlation matrix between tasks. So the variance is one at every
site whatever the parameters are, and every real parameter vector is valid. Distances are taken in
the metric of each group (:mod:`xcopula.kernels.metric`), which all tasks and structures share.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from xcopula.arrays import FloatArray, IntArray
from xcopula.jit.pairs import Contraction, CovarianceState
from xcopula.kernels.base import Kernel
from xcopula.kernels.checks import check_convolution, check_positive_definite
from xcopula.kernels.correlation import correlation, correlation_pullback
from xcopula.kernels.metric import InputGroup
from xcopula.kernels.nested import Nested, TaskKernel, check_count, family
from xcopula.kernels.tables import CELLS, cross_tables, same_table

__all__ = ["COUPLINGS", "NOISES", "Contraction", "Covariance", "CovarianceState", "InputGroup"]

COUPLINGS = ("convolution", "icm", "lmc")
NOISES = ("correlated", "independent")

Vector = TypeVar("Vector", FloatArray, IntArray)

# Bounds: length scales in units of the inputs' extent (which is one), shares of variance as
# logits against the nugget (so the nugget is never below 1e-6), correlations up to 0.9993.
_LENGTH_BOUNDS = (1e-3, 20.0)
_LOGIT_BOUNDS = (-9.0, 13.0)
_CORRELATION_BOUNDS = (-4.0, 4.0)
_SCALING_BOUNDS = (-5.0, 5.0)

# Weak priors, mean and standard deviation: a length scale is a fifth of the extent give or take a
# factor of four, most of the variance is signal, nothing is perfectly correlated. Metrics shrink to
# equal ranges in all directions: see :attr:`InputGroup.deviation`.
_LENGTH_PRIOR = (np.log(0.2), 1.4)
_LOGIT_PRIOR = (1.0, 2.5)
# Of the inverse hyperbolic tangents of correlations: next to uniform for those of the signal. The
# nuggets of variables have less in common.
_CORRELATION_PRIOR, _NUGGET_CORRELATION_PRIOR = (0.0, 0.75), (0.0, 0.5)


@dataclass(frozen=True)
class Covariance:
    """The layout of a multi-task covariance: what there is, apart from the parameters' values.

    Attributes
    ----------
    kernels : tuple of Kernel or Nested
        One for each task, or one for each of its structures; all tasks have the same where the
        coupling shares them.
    groups : tuple of InputGroup
    coupling : {"convolution", "icm", "lmc"}
    structures : int
        Number of nested structures.
    noise : {"correlated", "independent"}
    """

    kernels: tuple[TaskKernel, ...]
    groups: tuple[InputGroup, ...]
    coupling: str = "convolution"
    structures: int = 1
    noise: str = "correlated"

    def __post_init__(self) -> None:
        if self.coupling not in COUPLINGS:
            raise ValueError(f"Unknown coupling {self.coupling!r}. Choose one of {COUPLINGS}.")
        if self.noise not in NOISES:
            raise ValueError(f"Unknown noise {self.noise!r}. Choose one of {NOISES}.")
        if self.structures < 1:
            raise ValueError(f"structures must be at least 1, found {self.structures}.")
        if self.coupling == "icm" and self.structures > 1:
            raise ValueError(
                f"coupling='icm' takes only one structure, found structures={self.structures}. "
                "Use coupling='lmc' for several shared kernels."
            )
        if self.coupling != "convolution" and len(set(self.kernels)) > 1:
            names = sorted({k.name for k in self.kernels})
            raise ValueError(
                f"coupling={self.coupling!r} needs one kernel for all tasks, found {names}. "
                "Give one kernel, or use coupling='convolution'."
            )
        for each in self.kernels:
            check_count(each, self.structures)
        for dimension in {g.size for g in self.groups}:
            for tasks in self.families:
                for kernel in tasks:
                    check_positive_definite(kernel, dimension)
                if not self.shared:
                    for first, second in itertools.combinations(tasks, 2):
                        check_convolution(first, second, dimension)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.kernels)

    @property
    def families(self) -> tuple[tuple[Kernel, ...], ...]:
        """The kernels of the tasks in each structure, or once where all structures have the same.

        A file may claim any number of structures.
        """
        differ = any(isinstance(kernel, Nested) for kernel in self.kernels)
        return tuple(
            tuple(family(kernel, q) for kernel in self.kernels)
            for q in range(self.structures if differ else 1)
        )

    @property
    def columns(self) -> int:
        """Number of input columns."""
        return sum(g.size for g in self.groups)

    @property
    def shared(self) -> bool:
        """Whether all tasks share the kernels."""
        return self.coupling != "convolution"

    @functools.cached_property
    def layout(self) -> dict[str, tuple[slice, tuple[int, ...]]]:
        """Where each block of parameters stands in theta, and its shape."""
        t, q = self.tasks, self.structures
        pairs = t * (t - 1) // 2
        shapes = {
            "length": (q, len(self.groups), 1 if self.shared else t),
            "scaling": (sum(g.parameters for g in self.groups),),
            "logit": (q, t),
            "correlation": (q, pairs),
            "noise_correlation": (pairs if self.noise == "correlated" else 0,),
        }
        layout, start = {}, 0
        for name, shape in shapes.items():
            stop = start + int(np.prod(shape))
            layout[name] = (slice(start, stop), shape)
            start = stop
        return layout

    @property
    def size(self) -> int:
        """Number of parameters."""
        return int(self.layout["noise_correlation"][0].stop)

    def part(self, theta: Vector, name: str) -> Vector:
        """Return one block of theta as a view of its shape."""
        where, shape = self.layout[name]
        return theta[where].reshape(shape)

    def with_tasks(self, tasks: tuple[int, ...]) -> tuple[Covariance, IntArray]:
        """Return the covariance of the first task, alone or with one other, and its parameters.

        The correlation of task i with the first is tanh of one parameter of the whole, so the
        parameters of a pair are a selection of the parameters of all. This holds for no other
        choice of tasks.

        Parameters
        ----------
        tasks : tuple of int
            ``(0,)``, or ``(0, i)`` with another task i.

        Returns
        -------
        Covariance
        ndarray of int
            Where its parameters stand in theta.
        """
        tasks = tuple(tasks)
        others = tasks[1:]
        if tasks[:1] != (0,) or len(others) > 1 or not all(0 < i < self.tasks for i in others):
            raise ValueError(
                f"Only the first task, alone or with one other, has parameters of its own, found "
                f"tasks={tasks!r} of {self.tasks}. Give (0,) or (0, i) with 0 < i < {self.tasks}."
            )
        chosen = list(tasks)
        pair = [i * (i - 1) // 2 for i in others]
        kept = {
            "length": np.s_[..., :] if self.shared else np.s_[..., chosen],
            "scaling": np.s_[:],
            "logit": np.s_[..., chosen],
            "correlation": np.s_[..., pair],
            "noise_correlation": np.s_[pair] if self.noise == "correlated" else np.s_[:],
        }
        theta = np.arange(self.size)
        index = [self.part(theta, name)[where].ravel() for name, where in kept.items()]
        return replace(self, kernels=tuple(self.kernels[i] for i in tasks)), np.concatenate(index)

    def carry_over(
        self,
        old: Covariance,
        theta: FloatArray,
        onto: FloatArray | None = None,
        *,
        task: int | None = None,
    ) -> FloatArray:
        """Return the parameters of this covariance that say what ``theta`` says of another one.

        Structures that the other one lacks get its last one's lengths and correlations, and the
        least share of the variance; a metric that is free here alone gets equal ranges in all
        directions, and correlated nuggets that were independent no correlation.

        Parameters
        ----------
        old : Covariance
            Of the same groups and tasks, with as many structures or fewer.
        theta : ndarray
            Its parameters; others may follow.
        onto : ndarray (size,), optional
            What stays where the other one says nothing; zeros by default.
        task : int, optional
            Which task the only one of the other covariance is here.

        Raises
        ------
        ValueError
            If this covariance cannot say the same.
        """
        self._check_carried(old, task)
        out = np.zeros(self.size) if onto is None else onto.copy()
        tasks = slice(None) if task is None else slice(task, task + 1)
        rows = np.minimum(np.arange(self.structures), old.structures - 1)
        lengths = old.part(theta, "length")[rows]
        self.part(out, "length")[..., slice(None) if self.shared else tasks] = lengths
        logits = old.part(theta, "logit")[rows]
        logits[old.structures :] = _LOGIT_BOUNDS[0]
        self.part(out, "logit")[:, tasks] = logits
        for metric, before in zip(self.metrics(out), old.metrics(theta), strict=True):
            metric[:] = before if before.size else 0.0
        if task is None:
            self.part(out, "correlation")[:] = old.part(theta, "correlation")[rows]
            nuggets = old.part(theta, "noise_correlation") if old.noise == "correlated" else 0.0
            self.part(out, "noise_correlation")[:] = nuggets
        return out

    def _check_carried(self, old: Covariance, task: int | None) -> None:
        """Refuse a covariance of which this one cannot say the same."""
        tasks, several = self.tasks if task is None else 1, old.tasks > 1
        metrics = list(zip(self.groups, old.groups, strict=False))
        differ = {
            "other groups of coordinates": len(self.groups) != len(old.groups)
            or any(a.size != b.size for a, b in metrics),
            "a metric of other directions": any(
                b.freedom and (a.ard, a.directions) != (b.ard, b.directions) for a, b in metrics
            ),
            f"{old.tasks} tasks, not {tasks}": old.tasks != tasks,
            f"{old.structures} structures, not {self.structures}": old.structures > self.structures,
            "different lengths": several and self.shared and not old.shared,
            "correlated nuggets": several and self.noise != old.noise == "correlated",
        }
        wrong = [what for what, is_so in differ.items() if is_so]
        if wrong:
            raise ValueError(
                f"`old` has {' and '.join(wrong)}: this covariance cannot say the same. Carry over "
                "to one that has all that the other has."
            )

    def bounds(self) -> FloatArray:
        """Return the box of the parameters, (size, 2)."""
        box = np.empty((self.size, 2))
        for name, limits in {
            "length": tuple(np.log(_LENGTH_BOUNDS)),
            "scaling": _SCALING_BOUNDS,
            "logit": _LOGIT_BOUNDS,
            "correlation": _CORRELATION_BOUNDS,
            "noise_correlation": _CORRELATION_BOUNDS,
        }.items():
            box[self.layout[name][0]] = limits
        return box

    def log_prior(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the weak log prior and its gradient."""
        mean, precision = self._prior
        score = theta - mean
        return -0.5 * float(precision @ score**2), -precision * score

    @property
    def prior_precision(self) -> FloatArray:
        """Minus the second derivatives (size,) of the log prior."""
        return self._prior[1]

    @functools.cached_property
    def _prior(self) -> tuple[FloatArray, FloatArray]:
        """Means and precisions (size,) of the normal priors."""
        means, deviations = np.empty(self.size), np.empty(self.size)
        for name, (mean, deviation) in {
            "length": _LENGTH_PRIOR,
            "logit": _LOGIT_PRIOR,
            "correlation": _CORRELATION_PRIOR,
            "noise_correlation": _NUGGET_CORRELATION_PRIOR,
        }.items():
            where = self.layout[name][0]
            means[where], deviations[where] = mean, deviation
        where = self.layout["scaling"][0]
        means[where], deviations[where] = 0.0, self._metric_deviations
        return means, deviations**-2

    @functools.cached_property
    def _metric_deviations(self) -> FloatArray:
        """Prior standard deviations of the parameters of all metrics."""
        each = [np.full(g.parameters, g.deviation) for g in self.groups]
        return np.concatenate([np.empty(0), *each])

    def _shares(self, theta: FloatArray) -> FloatArray:
        """Return the shares (q + 1, t) of each task's variance, the nugget last."""
        logits = np.vstack([self.part(theta, "logit"), np.zeros(self.tasks)])
        shares = np.exp(logits - logits.max(axis=0))
        return np.asarray(shares / shares.sum(axis=0))

    def _correlations(self, theta: FloatArray) -> FloatArray:
        """Return the correlation matrices (q + 1, t, t), the nugget's last."""
        rows = list(self.part(theta, "correlation"))
        if self.noise == "correlated":
            rows.append(self.part(theta, "noise_correlation"))
        else:
            rows.append(np.zeros(self.tasks * (self.tasks - 1) // 2))
        return np.stack([correlation(a, self.tasks) for a in rows])

    def matrices(self, theta: FloatArray) -> FloatArray:
        """Return the task matrices (q + 1, t, t) of the structures and, last, of the nugget."""
        root = np.sqrt(self._shares(theta))
        return self._correlations(theta) * root[:, :, None] * root[:, None, :]

    def state(self, theta: FloatArray) -> CovarianceState:
        """Evaluate the task matrices and tabulate the kernels at theta."""
        matrices = self.matrices(theta)
        tables, coefficients, sensitivities, ranges = self._tabulate(theta)
        return CovarianceState(
            amplitudes=matrices[:-1],
            nugget=np.ascontiguousarray(matrices[-1]),
            tables=tables,
            groups=np.cumsum([0, *(g.size for g in self.groups)], dtype=np.int64),
            coefficients=coefficients,
            sensitivities=sensitivities,
            ranges=ranges,
            mapping=self.mapping(theta),
            freedom=np.array([g.freedom for g in self.groups], np.int64),
        )

    def mapping(self, theta: FloatArray) -> FloatArray:
        """Return what inputs are multiplied by (d, d), group by group."""
        mapping = np.zeros((self.columns, self.columns))
        for group, own, columns in self._metrics(theta):
            mapping[columns, columns] = group.mapping(own)
        return mapping

    def metrics(self, theta: FloatArray) -> list[FloatArray]:
        """Return the parameters of each group's metric, as views of theta."""
        return [own for _, own, _ in self._metrics(theta)]

    def _metrics(self, theta: FloatArray) -> list[tuple[InputGroup, FloatArray, slice]]:
        """List the groups with the parameters of their metrics and their columns."""
        scaling = self.part(theta, "scaling")
        ends = np.cumsum([g.parameters for g in self.groups])
        stops = np.cumsum([g.size for g in self.groups])
        return [
            (g, scaling[end - g.parameters : end], slice(stop - g.size, stop))
            for g, end, stop in zip(self.groups, ends, stops, strict=True)
        ]

    def _pairs(self) -> list[tuple[int, int, int, int]]:
        """List the tables there are: (structure, group, first, second task), first <= second."""
        tasks = range(1) if self.shared else range(self.tasks)
        return [
            (q, g, i, j)
            for q in range(self.structures)
            for g in range(len(self.groups))
            for j in tasks
            for i in range(j + 1)
        ]

    def _tabulate(self, theta: FloatArray) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        lengths = np.exp(self.part(theta, "length"))
        pairs = self._pairs()
        index = np.zeros((self.structures, len(self.groups), self.tasks, self.tasks), np.int64)
        coefficients = np.empty((len(pairs), CELLS + 1, 6))
        sensitivities = np.zeros((len(pairs), CELLS + 1, 4))
        spans = np.empty(len(pairs))
        for k, (q, g, i, j) in enumerate(pairs):
            first, second = family(self.kernels[i], q), family(self.kernels[j], q)
            l1, l2 = lengths[q, g, i], lengths[q, g, j]
            spans[k] = max(first.reach * l1, second.reach * l2)
            if i == j:
                coefficients[k] = same_table(first)
            else:
                coefficients[k], sensitivities[k] = cross_tables(
                    first, second, l1, l2, self.groups[g].size, spans[k]
                )
            where = (q, g) if self.shared else (q, g, [i, j], [j, i])
            index[where] = k
        return index, coefficients, sensitivities, 1.0 / spans

    def slopes(self, theta: FloatArray) -> FloatArray:
        """Return the matrix (size, s) of :meth:`pullback`, with the derivatives in one row."""
        shapes = self._contraction_shapes()
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        active = self._contracted()
        units = np.zeros((len(active), ends[-1]))
        units[np.arange(len(active)), active] = 1.0
        by = Contraction(
            *(
                block.reshape(len(active), *shape)
                for block, shape in zip(np.split(units, ends[:-1], axis=1), shapes, strict=True)
            )
        )
        out = np.zeros((self.size, ends[-1]))
        out[:, active] = self.pullback(theta, by).T
        return out

    def _contraction_shapes(self) -> list[tuple[int, ...]]:
        tables, t = len(self._pairs()), self.tasks
        return [
            (self.structures, t, t),
            (t, t),
            (tables,),
            (tables,),
            (self.columns, self.columns),
        ]

    def _contracted(self) -> list[int]:
        """List the numbers of a contraction, in one row, that can differ from zero."""
        t, columns, pairs = self.tasks, self.columns, self._pairs()
        lower = [i * t + j for i in range(t) for j in range(i + 1)]
        active = [q * t * t + k for q in range(self.structures) for k in lower]
        start = self.structures * t * t
        active += [start + i * t + j for i in range(t) for j in range(i)]
        start += t * t
        active += range(start, start + len(pairs))
        start += len(pairs)
        active += [start + k for k, (_, _, i, j) in enumerate(pairs) if i != j]
        start += len(pairs)
        for group, _, where in self._metrics(np.zeros(self.size)):
            if group.freedom:
                rows = range(where.start, where.stop)
                active += [start + c * columns + e for c in rows for e in rows if e <= c]
        return active

    def pullback(self, theta: FloatArray, by: Contraction) -> FloatArray:
        """Turn derivatives by the state, as the contraction leaves them, into those by theta.

        Of several contractions, stacked along a first axis, all at once.
        """
        batch = by.slope.shape[:-1]
        lengths = np.zeros((*batch, *self.layout["length"][1]))
        for k, (q, g, i, j) in enumerate(self._pairs()):
            # Scale invariance: the derivatives by log l_i, log l_j and log r add up to zero.
            lengths[..., q, g, i] += by.sensitivity[..., k]
            lengths[..., q, g, j] -= by.slope[..., k] + by.sensitivity[..., k]
        by_metric = [
            group.pullback(parameters, by.moments[..., columns, columns])
            for group, parameters, columns in self._metrics(theta)
        ]
        shares = self._shares(theta)
        root = np.sqrt(shares)
        by_matrix = np.concatenate([by.amplitudes, by.nugget[..., None, :, :]], axis=-3)
        by_correlation = by_matrix * root[:, :, None] * root[:, None, :]
        half = 0.5 * by_correlation * self._correlations(theta)
        by_log_share = half.sum(axis=-2) + half.sum(axis=-1)
        by_logit = by_log_share - shares * by_log_share.sum(axis=-2, keepdims=True)
        blocks = {
            "length": lengths,
            "scaling": np.concatenate(by_metric, axis=-1),
            "logit": by_logit[..., :-1, :],
            "correlation": correlation_pullback(
                self.part(theta, "correlation"), self.tasks, by_correlation[..., :-1, :, :]
            ),
        }
        if self.noise == "correlated":
            blocks["noise_correlation"] = correlation_pullback(
                self.part(theta, "noise_correlation"), self.tasks, by_correlation[..., -1, :, :]
            )
        gradient = np.zeros((*batch, self.size))
        for name, block in blocks.items():
            gradient[..., self.layout[name][0]] = block.reshape(*batch, -1)
        return gradient
