"""Observations and targets as arrays, and the moments that are asked of a process."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from xcopula.arrays import FloatArray, IntArray
from xcopula.process.sites import NO_SITE, number_sites

__all__ = ["Moments", "Sample", "Targets", "keep_data", "keep_scores", "known_data"]

# Inputs without labels have unit extent: nearer than this, two of them are one site.
_SAME_SITE = 1e-9


class Moments(NamedTuple):
    """Mean and variance of the latent process at targets, each (m,)."""

    mean: FloatArray
    variance: FloatArray


@dataclass(frozen=True)
class Targets:
    """Points where a process is asked for.

    Attributes
    ----------
    inputs : ndarray (d, m)
        Scaled like those of the sample.
    sites : ndarray (m,), int64
        Numbers of the sites of the data at which they stand; -1 elsewhere.
    """

    inputs: FloatArray
    sites: IntArray

    @classmethod
    def nowhere(cls, inputs: FloatArray) -> Targets:
        """Return points that are no site of the data."""
        return cls(inputs, np.full(inputs.shape[1], NO_SITE, np.int64))

    @property
    def size(self) -> int:
        """Number of points."""
        return self.sites.size

    def take(self, which: slice | npt.NDArray[np.bool_] | IntArray) -> Targets:
        """Return some of the points."""
        return Targets(np.ascontiguousarray(self.inputs[:, which]), self.sites[which])


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
    sites : ndarray (n,), int64
        Observations with one number stand at one site, and share its nugget.
    covariates : tuple of ndarray (n_i, c_i)
        What the tasks' marginal laws vary with, for each task; empty where none varies.
    limits : ndarray (2, n), optional
        Between which numbers each value lies, where some are known as intervals only. Both are
        the value itself where that is known; -inf and +inf leave a side open. The value of an
        interval is a finite number within it.
    """

    inputs: FloatArray
    offsets: IntArray
    values: FloatArray
    sites: IntArray
    covariates: tuple[FloatArray, ...] = ()
    limits: FloatArray | None = None

    @classmethod
    def of(
        cls,
        inputs: Sequence[FloatArray],
        values: Sequence[FloatArray],
        covariates: Sequence[FloatArray] | None = None,
        sites: IntArray | None = None,
        limits: Sequence[FloatArray] | None = None,
    ) -> Sample:
        """Join the tasks' inputs, each (n_i, d), values, covariates (n_i, c_i), limits (2, n_i).

        Sites that are not numbered yet are told apart by their inputs. Limits that hold no
        interval are dropped.
        """
        joined = np.require(np.concatenate(inputs).T, np.float64, ["C", "W"])
        if sites is None:
            _, sites = number_sites(joined, np.full(len(joined), _SAME_SITE))
        ends = np.concatenate(limits, axis=1) if limits else None
        return cls(
            inputs=joined,
            offsets=np.cumsum([0, *map(len, values)], dtype=np.int64),
            values=np.concatenate(values),
            sites=sites,
            covariates=tuple(covariates or ()),
            limits=ends if ends is not None and (ends[0] < ends[1]).any() else None,
        )

    def __post_init__(self) -> None:
        sizes = np.diff(self.offsets).tolist()
        shapes = [c.shape for c in self.covariates]
        if shapes and [s[:1] for s in shapes if len(s) == 2] != [(n,) for n in sizes]:
            raise ValueError(
                f"Each observation needs a row of covariates: the tasks have {sizes} observations, "
                f"the covariates have shapes {shapes}."
            )
        if self.limits is not None and self.limits.shape != (2, self.size):
            raise ValueError(
                f"Each observation needs two limits: there are {self.size} observations, the "
                f"limits have shape {self.limits.shape}."
            )

    @property
    def is_interval(self) -> npt.NDArray[np.bool_]:
        """Which values (n,) are known as intervals only."""
        if self.limits is None:
            return np.zeros(self.size, np.bool_)
        return np.asarray(self.limits[0] < self.limits[1])

    @property
    def size(self) -> int:
        """Number of observations."""
        return self.values.size

    @property
    def sizes(self) -> list[int]:
        """Number of observations of each task."""
        return [int(n) for n in np.diff(self.offsets)]

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.offsets) - 1

    def task(self, i: int) -> slice:
        """Return where the observations of a task stand."""
        return slice(int(self.offsets[i]), int(self.offsets[i + 1]))

    def covariates_of(self, i: int) -> FloatArray:
        """Return the covariates (n_i, c_i) of a task; c_i is 0 where it has none."""
        if not self.covariates:
            return np.empty((int(self.offsets[i + 1] - self.offsets[i]), 0))
        return self.covariates[i]

    def limits_of(self, i: int) -> FloatArray:
        """Return the limits (2, n_i) of a task; both are the value where it has no intervals."""
        own = self.task(i)
        if self.limits is None:
            return np.stack([self.values[own]] * 2)
        return self.limits[:, own]

    def targets(self, which: slice | IntArray) -> Targets:
        """Return the sites of some observations as targets."""
        return Targets(np.ascontiguousarray(self.inputs[:, which]), self.sites[which])

    def observed(self, task: int, sites: IntArray) -> IntArray:
        """Return which observation (m,) of a task stands at each of some sites; -1 for none."""
        ordered, rows = self._by_site[task]
        if rows.size == 0:
            return np.full(sites.shape, NO_SITE, np.int64)
        place = np.minimum(np.searchsorted(ordered, sites), rows.size - 1)
        return np.where(ordered[place] == sites, rows[place], NO_SITE)

    @functools.cached_property
    def _by_site(self) -> list[tuple[IntArray, IntArray]]:
        """The sites of each task in order, and the observations there."""
        tasks = [self.task(i) for i in range(self.tasks)]
        rows = [own.start + np.argsort(self.sites[own], kind="stable") for own in tasks]
        return [(self.sites[own], own) for own in rows]

    def __getstate__(self) -> dict[str, Any]:
        # What follows from the rest is made anew where it is needed.
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def sites_at(self, inputs: FloatArray) -> IntArray:
        """Return the numbers (m,) of the sites that stand at inputs (d, m); -1 for none."""
        sites, _ = number_sites(self.inputs, np.full(len(self.inputs), _SAME_SITE))
        # The observations at a place tell the number that the sample gives it; replicates, which
        # have several, stand at none.
        own = sites.find(self.inputs)
        least = np.full(own.max() + 1, np.iinfo(np.int64).max)
        most = np.full(own.max() + 1, NO_SITE, np.int64)
        np.minimum.at(least, own, self.sites)
        np.maximum.at(most, own, self.sites)
        found = sites.find(inputs)
        return np.where((found >= 0) & (least == most)[found], most[found], NO_SITE)

    def select(self, tasks: Sequence[int]) -> Sample:
        """Return the sample of some tasks, in that order."""
        if list(tasks) == list(range(self.tasks)):
            return self
        return Sample.of(
            [self.inputs[:, self.task(i)].T for i in tasks],
            [self.values[self.task(i)] for i in tasks],
            [self.covariates[i] for i in tasks] if self.covariates else None,
            np.concatenate([self.sites[self.task(i)] for i in tasks]),
            None if self.limits is None else [self.limits_of(i) for i in tasks],
        )

    def take(self, index: IntArray) -> Sample:
        """Return the sample of some observations, by their numbers in increasing order."""
        offsets = np.searchsorted(index, self.offsets).astype(np.int64)
        return Sample(
            np.require(self.inputs[:, index], np.float64, ["C", "W"]),
            offsets,
            self.values[index],
            self.sites[index],
            tuple(
                rows[index[offsets[i] : offsets[i + 1]] - self.offsets[i]]
                for i, rows in enumerate(self.covariates)
            ),
            None if self.limits is None else self.limits[:, index],
        )


def known_data(
    scores: FloatArray, extra: FloatArray | None, leave_one_out: Callable[[], Moments]
) -> Moments:
    """Return what is known of each observation (n,): numbers exactly, of an interval its cavity.

    Parameters
    ----------
    scores : ndarray (n,)
    extra : ndarray (n,), optional
        Variances of the stand-ins for intervals, zero for numbers.
    leave_one_out : callable
        Returns what all others say of each.
    """
    if extra is None or not extra.any():
        return Moments(scores, np.zeros(scores.shape))
    left, interval = leave_one_out(), extra > 0.0
    return Moments(np.where(interval, left.mean, scores), np.where(interval, left.variance, 0.0))


def keep_data(
    moments: Moments, sample: Sample, known: Moments, targets: Targets, task: int
) -> Moments:
    """Return moments of an observation, with what is known (n,) of it where it was made."""
    datum = sample.observed(task, targets.sites)
    met = datum >= 0
    if not met.any():
        return moments
    return Moments(
        np.where(met, known.mean[datum], moments.mean),
        np.where(met, known.variance[datum], moments.variance),
    )


def keep_scores(
    mean: FloatArray, sample: Sample, known: Moments, targets: Targets, task: int
) -> FloatArray:
    """Return means (m,) of an observation, with the datum where the task was observed."""
    datum = sample.observed(task, targets.sites)
    return np.where(datum >= 0, known.mean[datum], mean)
