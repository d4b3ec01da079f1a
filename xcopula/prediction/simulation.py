r"""Realizations of a posterior on the cells of a block: one function of place each.

A draw z of the prior (:mod:`xcopula.process.paths`) is conditioned on the data pathwise. With p the
draw at the data, :math:`z(x) + k(x)' K^{-1} (w - p)` is a draw of the posterior: its mean plus a
deviation, :math:`z(x) - k(x)' K^{-1} p`. By neighbours the weights are those of each cell. A method
that splits the sample has means and variances of its own; there the deviation comes from the joint
process of its parameters, in units of that process's standard deviation.

At a datum the deviation is zero. At a value that is known as an interval the deviation says which
quantile of its law is drawn. Where a prediction is a mixture, each realization belongs to one of
its components, and to one scale of its errors, in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from xcopula.labels.observations import to_targets
from xcopula.methods.between import Places, variance_at
from xcopula.prediction.blocks import slices, wanted_cells
from xcopula.prediction.lattice import find_lattice
from xcopula.prediction.predictor import Component, Predictor
from xcopula.process import Targets
from xcopula.process.bounded import Bounded
from xcopula.process.paths import KeyArray, Waves, add_numbers, place_keys, site_keys

__all__ = ["Realizations", "realize", "simulate"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Components and scales are taken in turn by steps that fill the unit square evenly.
_STEPS = 0.7548776662466927, 0.5698402909980532
# So many numbers, of all realizations, are worked on at a time; and so many cells at least.
_NUMBERS, _LEAST = 2**21, 2**10
# A lattice is worth its masked cells up to so many for each that is wanted.
_MASKED = 16


@dataclass(frozen=True)
class Realizations:
    """Some realizations of the prior at the data.

    Attributes
    ----------
    seed : int
    numbers : tuple of int
        Which realizations.
    components : ndarray (k,), int
        The component of a mixture that each belongs to.
    levels : ndarray (k,)
        Which scale of the errors each has, as a level of their mixture.
    rows : ndarray (k, n)
        The prior, with the nugget, at the observations.
    """

    seed: int
    numbers: tuple[int, ...]
    components: IntArray
    levels: FloatArray
    rows: FloatArray

    def waves(self, k: int, component: Component) -> Waves:
        """Draw the signal of the k-th of them."""
        return component.prior.draw(self.seed, self.numbers[k])


def realize(predictor: Predictor, seed: int, start: int, count: int) -> Realizations:
    """Draw realizations of the prior at the data, from a number on.

    Raises
    ------
    ValueError
        If the spectrum of a kernel is not known.
    """
    numbers = tuple(range(start, start + count))
    first = np.random.default_rng([seed]).random(2)
    turns = (first[:, None] + np.outer(_STEPS, numbers)) % 1.0
    shares = np.cumsum([c.weight for c in predictor.components])
    components = np.searchsorted(shares / shares[-1], turns[0], side="right")
    found = Realizations(seed, numbers, components, turns[1], np.empty((count, 0)))
    rows = [_at_data(found, k, predictor.components[which]) for k, which in enumerate(components)]
    return Realizations(seed, numbers, components, turns[1], np.stack(rows))


def _at_data(realizations: Realizations, k: int, component: Component) -> FloatArray:
    """Return the prior (n,) at the observations, as they are known."""
    seed, number, joint = realizations.seed, realizations.numbers[k], component.joint
    sample = joint.sample
    row = realizations.waves(k, component).on(sample)
    for task in range(sample.tasks):
        own = sample.task(task)
        row[own] += component.prior.nuggets(task, site_keys(sample.sites[own]), seed, number)
    if joint.extra is not None:
        # What stands in for an interval has an error of its own.
        keys = site_keys(np.arange(sample.size))
        errors = np.zeros(sample.size)
        add_numbers(errors, keys, 1.0, seed, number, sample.tasks)
        row += np.sqrt(joint.extra) * errors
    return row


def simulate(
    frame: FloatArray | list[FloatArray],
    *arrays: npt.NDArray[Any],
    missing: Sequence[tuple[int, ...]],
    predictor: Predictor,
    realizations: Realizations,
    task: int,
    nugget: bool,
) -> FloatArray:
    """Return realizations (k, ...) of a variable on a block.

    Parameters
    ----------
    frame : ndarray (2 c, ...), or a list of it
        What :meth:`Predictor.frame` returns, of all cells. Dask makes a list of the one block
        there is; were it to join blocks, what follows would not be part of the same task.
    *arrays : ndarray
        One coordinate for each axis of the system, a boolean mask, and the fields of the law; each
        with the dims that it has, in the order of the block's.
    missing : sequence of tuple of int
        For each array, the dims of the block that it lacks.
    predictor : Predictor
    realizations : Realizations
    task : int
        Which variable.
    nugget : bool
    """
    whole = [np.expand_dims(a, axes) for a, axes in zip(arrays, missing, strict=True)]
    around = frame[0] if isinstance(frame, list) else frame
    shape, around = around.shape[1:], around.reshape(len(around), -1)
    axes = len(predictor.coordinates.axes)
    coordinates, mask, fields = whole[:axes], whole[axes], whole[axes + 1 :]
    spread = [np.broadcast_to(c, shape) for c in coordinates]
    cells = wanted_cells(spread, np.broadcast_to(mask, shape))
    out = np.full((len(realizations.numbers), int(np.prod(shape))), np.nan)
    if not cells.size:
        return out.reshape(-1, *shape)
    by_lattice = out.shape[1] <= _MASKED * cells.size
    lattice = find_lattice(predictor.coordinates, coordinates, shape) if by_lattice else None
    drawn = [
        realizations.waves(k, predictor.components[c])
        for k, c in enumerate(realizations.components)
    ]
    if lattice is not None:
        for row, waves in zip(out, drawn, strict=True):
            row[cells] = lattice.signal(waves, task).reshape(-1)[cells]
    laws = [np.broadcast_to(f, shape) for f in fields]
    # Beside the result only what is of some cells is held.
    for part in slices(cells.size, max(_LEAST, _NUMBERS // len(out))):
        where = cells[part]
        numbers = [c.flat[where] for c in spread]
        targets = to_targets(predictor.coordinates, predictor.sites, numbers)
        if lattice is None:
            out[:, where] = np.stack([w.at(targets.inputs, task) for w in drawn])
        keys = _keys(predictor, targets, numbers) if nugget else None
        beside = [f.flat[where] for f in laws]
        block = out[:, where]
        for which in sorted(set(realizations.components.tolist())):
            own = np.flatnonzero(realizations.components == which)
            some = _Some(predictor.components[which], realizations, own, task, nugget)
            at = around[which :: len(predictor.components), where]
            latent = some.latent(targets, block[own], keys, *at)
            law = predictor.law(which, task, beside)
            for k, row in zip(own, latent, strict=True):
                block[k] = law.from_normal(row)
        out[:, where] = block
    return out.reshape(-1, *shape)


def _keys(predictor: Predictor, targets: Targets, numbers: Sequence[FloatArray]) -> KeyArray:
    """Return what the nugget of each cell belongs to: a site of the data, or its own place."""
    places = predictor.coordinates.places(numbers)
    return np.where(
        targets.sites >= 0,
        site_keys(targets.sites),
        place_keys(places, predictor.sites.tolerance),
    )


@dataclass(frozen=True)
class _Some:
    """The realizations that belong to one component."""

    component: Component
    realizations: Realizations
    own: IntArray
    task: int
    nugget: bool

    def latent(
        self,
        targets: Targets,
        signal: FloatArray,
        keys: KeyArray | None,
        mean: FloatArray,
        ratio: FloatArray,
    ) -> FloatArray:
        """Return latent paths (k, m) at targets, from the prior's signal there."""
        component, task, joint = self.component, self.task, self.component.joint
        if keys is not None:
            for row, k in zip(signal, self.own, strict=True):
                number = self.realizations.numbers[k]
                row += component.prior.nuggets(task, keys, self.realizations.seed, number)
        rows = self.realizations.rows[self.own]
        signal -= joint.means(targets, rows, task=task, nugget=self.nugget)
        spread = component.spread(task)
        which = np.searchsorted(np.cumsum(spread.weights)[:-1], self.realizations.levels[self.own])
        scales = spread.scales[which][:, None]
        datum = joint.sample.observed(task, targets.sites)
        known = np.flatnonzero((datum >= 0) & self.nugget)
        met = signal[:, known]  # a copy: what it says of intervals
        signal[:, known] = 0.0
        signal *= ratio
        signal *= scales
        signal += mean
        if known.size and component.limits is not None:
            inside = np.isfinite(component.limits.at(targets.sites[known], task)).any(axis=0)
            at = known[inside]
            if at.size:
                signal[:, at] = self._within(targets.take(at), met[:, inside])
        return signal

    def _within(self, targets: Targets, deviations: FloatArray) -> FloatArray:
        """Return scores (k, m) of values that are known as intervals, from deviations there."""
        component, joint = self.component, self.component.joint
        assert component.limits is not None
        spread = np.sqrt(variance_at(joint, Places(targets, self.task, nugget=True)))
        own = component.conditioned.moments(targets, task=self.task)
        law = Bounded(
            own.mean,
            np.sqrt(own.variance),
            component.spread(self.task),
            *component.limits.at(targets.sites, self.task),
        )
        return np.stack([law.quantile(ndtr(row / spread)) for row in deviations])
