"""The copula process on arrays: a covariance, a marginal law for each task, one flat theta."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xcopula.kernels.covariance import Covariance
from xcopula.marginals.base import Marginal

__all__ = ["Moments", "Process", "Sample"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class Moments(NamedTuple):
    """Mean and variance of the latent process at targets, each (m,)."""

    mean: FloatArray
    variance: FloatArray


@dataclass(frozen=True)
class Sample:
    """Observations of all tasks, sorted by task.

    Attributes
    ----------
    inputs : ndarray (d, n)
        Coordinates, centred and scaled to about unit extent.
    offsets : ndarray (t + 1,)
        Task i has columns ``offsets[i]:offsets[i + 1]``.
    values : ndarray (n,)
    covariates : tuple of ndarray (n_i, c_i)
        What the tasks' marginal laws vary with, for each task; empty where none varies.
    """

    inputs: FloatArray
    offsets: IntArray
    values: FloatArray
    covariates: tuple[FloatArray, ...] = ()

    @classmethod
    def of(
        cls,
        inputs: Sequence[FloatArray],
        values: Sequence[FloatArray],
        covariates: Sequence[FloatArray] | None = None,
    ) -> Sample:
        """Join the tasks' inputs, each (n_i, d), values, and covariates, each (n_i, c_i)."""
        return cls(
            inputs=np.require(np.concatenate(inputs).T, np.float64, ["C", "W"]),
            offsets=np.cumsum([0, *map(len, values)], dtype=np.int64),
            values=np.concatenate(values),
            covariates=tuple(covariates or ()),
        )

    def __post_init__(self) -> None:
        sizes = np.diff(self.offsets).tolist()
        shapes = [c.shape for c in self.covariates]
        if shapes and [s[:1] for s in shapes if len(s) == 2] != [(n,) for n in sizes]:
            raise ValueError(
                f"Covariates have a row for each observation: tasks of {sizes} observations, "
                f"covariates of shapes {shapes}."
            )

    @property
    def size(self) -> int:
        """Number of observations."""
        return self.values.size

    def task(self, i: int) -> slice:
        """Return where the observations of a task stand."""
        return slice(int(self.offsets[i]), int(self.offsets[i + 1]))

    def covariates_of(self, i: int) -> FloatArray:
        """Return the covariates (n_i, c_i) of a task; c_i is 0 where it has none."""
        if not self.covariates:
            return np.empty((int(self.offsets[i + 1] - self.offsets[i]), 0))
        return self.covariates[i]

    def select(self, tasks: list[int]) -> Sample:
        """Return the sample of some tasks, in that order."""
        return Sample.of(
            [self.inputs[:, self.task(i)].T for i in tasks],
            [self.values[self.task(i)] for i in tasks],
            [self.covariates[i] for i in tasks] if self.covariates else None,
        )

    def take(self, index: IntArray) -> Sample:
        """Return the sample of some observations, by their numbers in increasing order."""
        offsets = np.searchsorted(index, self.offsets).astype(np.int64)
        return Sample(
            np.require(self.inputs[:, index], np.float64, ["C", "W"]),
            offsets,
            self.values[index],
            tuple(
                rows[index[offsets[i] : offsets[i + 1]] - self.offsets[i]]
                for i, rows in enumerate(self.covariates)
            ),
        )


@dataclass(frozen=True)
class Process:
    """A multi-task Gaussian copula process, apart from its parameters' values.

    Attributes
    ----------
    covariance : Covariance
    marginals : tuple of Marginal
        One for each task; their parameters are the starting values.

    Notes
    -----
    The flat vector theta holds the covariance's parameters, then each marginal's in task order.
    """

    covariance: Covariance
    marginals: tuple[Marginal, ...]

    @property
    def slices(self) -> list[slice]:
        """Where each marginal's parameters stand in theta."""
        stops = itertools.accumulate(
            (m.theta.size for m in self.marginals), initial=self.covariance.size
        )
        return [slice(a, b) for a, b in itertools.pairwise(stops)]

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.covariance.size + sum(m.theta.size for m in self.marginals)

    def join(self, covariance_theta: FloatArray) -> FloatArray:
        """Return theta with these covariance parameters and the marginals' own."""
        return np.concatenate([covariance_theta, *(m.theta for m in self.marginals)])

    def split(self, theta: FloatArray) -> tuple[FloatArray, tuple[Marginal, ...]]:
        """Return the covariance's parameters and the marginals at theta."""
        marginals = tuple(
            m.with_theta(theta[where]) for m, where in zip(self.marginals, self.slices, strict=True)
        )
        return theta[: self.covariance.size], marginals

    def laws(self, theta: FloatArray, sample: Sample) -> tuple[Marginal, ...]:
        """Return the marginals at theta, each bound to its rows of the sample if it varies."""
        _, marginals = self.split(theta)
        return tuple(
            m.at(sample.covariates_of(i)) if m.fields else m for i, m in enumerate(marginals)
        )

    def with_primary(self, task: int | None) -> tuple[Process, IntArray]:
        """Return the process of the first task, alone or with one other.

        Also where its parameters stand in theta: models that share parameters are coherent.
        """
        covariance, index = self.covariance.with_primary(task)
        tasks = [0] if task is None else [0, task]
        where = [np.arange(self.slices[i].start, self.slices[i].stop) for i in tasks]
        process = Process(covariance, tuple(self.marginals[i] for i in tasks))
        return process, np.concatenate([index, *where])

    def bounds(self) -> FloatArray:
        """Return the box of the parameters, (size, 2)."""
        return np.concatenate([self.covariance.bounds(), *(m.bounds for m in self.marginals)])

    def log_prior(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the weak log prior of all parameters and its gradient."""
        covariance_theta, marginals = self.split(theta)
        parts = [self.covariance.log_prior(covariance_theta), *(m.log_prior() for m in marginals)]
        return sum(value for value, _ in parts), np.concatenate([g for _, g in parts])

    def scores(self, theta: FloatArray, sample: Sample) -> FloatArray:
        """Return the normal scores (n,) of a sample."""
        return np.concatenate(
            [
                m.to_normal(sample.values[sample.task(i)])
                for i, m in enumerate(self.laws(theta, sample))
            ]
        )

    def describe(self, theta: FloatArray) -> str:
        """Name the covariance parameters, for errors: lengths are in units of the extent."""
        covariance_theta, _ = self.split(theta)
        lengths = np.exp(self.covariance.part(covariance_theta, "length")).ravel()
        state_nugget = np.diagonal(self.covariance.matrices(covariance_theta)[-1])
        return (
            f"length_scale={np.array2string(lengths, precision=3)} (of the extent), "
            f"nugget={np.array2string(state_nugget, precision=2)}"
        )
