"""The copula process on arrays: a covariance, a marginal law for each task, one flat theta."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from xcopula.arrays import FloatArray, IntArray
from xcopula.errors import NotPositiveDefiniteError
from xcopula.kernels.covariance import Covariance, CovarianceState
from xcopula.marginals.base import Marginal
from xcopula.process.intervals import typical_scores
from xcopula.process.sample import Sample

__all__ = ["Process"]

_STEP = 1e-6  # of differences, in widths of the bounds


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

    def state(self, theta: FloatArray) -> CovarianceState:
        """Evaluate the covariance at theta.

        Raises
        ------
        NotPositiveDefiniteError
            If a parameter is not finite: an unknown distance would be taken for a far one.
        """
        own = theta[: self.covariance.size]
        if not np.isfinite(own).all():
            with np.errstate(invalid="ignore"):
                found = self.describe(theta)
            raise NotPositiveDefiniteError(
                f"The covariance has parameters that are not finite: {found}."
            )
        return self.covariance.state(own)

    def laws(self, theta: FloatArray, sample: Sample) -> tuple[Marginal, ...]:
        """Return the marginals at theta, each bound to its rows of the sample if it varies."""
        _, marginals = self.split(theta)
        return tuple(
            m.at(sample.covariates_of(i)) if m.fields else m for i, m in enumerate(marginals)
        )

    def with_tasks(self, tasks: tuple[int, ...]) -> tuple[Process, IntArray]:
        """Return the process of the first task, alone or with one other, or of all.

        Also where its parameters stand in theta: models that share parameters are coherent.
        """
        if tasks not in self._parts:
            self._parts[tasks] = self._of(tasks)
        return self._parts[tasks]

    @functools.cached_property
    def _parts(self) -> dict[tuple[int, ...], tuple[Process, IntArray]]:
        """What was asked of :meth:`with_tasks`: each likelihood asks again."""
        return {}

    def _of(self, tasks: tuple[int, ...]) -> tuple[Process, IntArray]:
        if tasks == tuple(range(self.covariance.tasks)):
            return self, np.arange(self.size)
        covariance, index = self.covariance.with_tasks(tasks)
        where = [np.arange(self.slices[i].start, self.slices[i].stop) for i in tasks]
        process = Process(covariance, tuple(self.marginals[i] for i in tasks))
        return process, np.concatenate([index, *where])

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def bounds(self) -> FloatArray:
        """Return the box of the parameters, (size, 2)."""
        return np.concatenate([self.covariance.bounds(), *(m.bounds for m in self.marginals)])

    def log_prior(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the weak log prior of all parameters and its gradient."""
        covariance_theta, marginals = self.split(theta)
        parts = [self.covariance.log_prior(covariance_theta), *(m.log_prior() for m in marginals)]
        return sum(value for value, _ in parts), np.concatenate([g for _, g in parts])

    def prior_information(self, theta: FloatArray) -> FloatArray:
        """Return minus the second derivatives (size, size) of the log prior, by differences."""
        steps = _STEP * np.maximum(np.ptp(self.bounds(), axis=1), 1e-12)
        before = self.log_prior(theta)[1]
        rows = np.empty((self.size, self.size))
        size = self.covariance.size
        rows[:] = 0.0
        rows[:size, :size] = np.diag(self.covariance.prior_precision)
        for k in range(size, self.size):
            point = theta.copy()
            point[k] += steps[k]
            rows[k] = (before - self.log_prior(point)[1]) / steps[k]
        return 0.5 * (rows + rows.T)

    def scores(self, theta: FloatArray, sample: Sample) -> FloatArray:
        """Return the normal scores (n,) of a sample; see :func:`typical_scores` of intervals."""
        return typical_scores(self.laws(theta, sample), sample)

    def describe(self, theta: FloatArray) -> str:
        """Name the covariance parameters, for errors: lengths are in units of the extent."""
        covariance_theta, _ = self.split(theta)
        lengths = np.exp(self.covariance.part(covariance_theta, "length")).ravel()
        state_nugget = np.diagonal(self.covariance.matrices(covariance_theta)[-1])
        return (
            f"length_scale={np.array2string(lengths, precision=3)} (of the extent), "
            f"nugget={np.array2string(state_nugget, precision=2)}"
        )
