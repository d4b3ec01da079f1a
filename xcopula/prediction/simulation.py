r"""Realizations of a posterior on the cells of a block: one function of place each.

A draw z of the prior (:mod:`xcopula.process.paths`) is conditioned on the data pathwise. With p the
draw at the data, :math:`z(x) + k(x)' K^{-1} (w - p)` is a draw of the posterior: its mean plus a
deviation, :math:`z(x) - k(x)' K^{-1} p`. By neighbours the weights are those of each cell. A method
that splits the sample has means and variances of its own; there the deviation comes from the joint
process of its parameters, in units of that process's standard deviation.

At a datum the deviation is zero. At a value that is known as an interval the deviation says which
quantile of its law is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from xcopula.arrays import FloatArray
from xcopula.labels.observations import to_targets
from xcopula.methods.posterior_covariance import Places, variance_at
from xcopula.prediction.blocks import slices, wanted_cells
from xcopula.prediction.lattice import find_lattice
from xcopula.prediction.predictor import ConditionedProcess, Predictor
from xcopula.process import Targets
from xcopula.process.bounded import Bounded
from xcopula.process.paths import KeyArray, Waves, add_numbers, place_keys, site_keys

__all__ = ["Realizations", "realize", "simulate"]

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
    rows : ndarray (k, n)
        The prior, with the nugget, at the observations.
    waves : tuple of Waves
        The signal.
    """

    seed: int
    numbers: tuple[int, ...]
    rows: FloatArray
    waves: tuple[Waves, ...]


def realize(predictor: Predictor, seed: int, start: int, count: int) -> Realizations:
    """Draw realizations of the prior at the data, from a number on.

    Raises
    ------
    ValueError
        If the spectrum of a kernel is not known.
    """
    numbers = tuple(range(start, start + count))
    process = predictor.process
    waves = tuple(process.prior.draw(seed, number) for number in numbers)
    pairs = zip(numbers, waves, strict=True)
    rows = np.stack([_at_data(process, drawn, seed, number) for number, drawn in pairs])
    return Realizations(seed, numbers, rows, waves)


def _at_data(process: ConditionedProcess, waves: Waves, seed: int, number: int) -> FloatArray:
    """Return the prior (n,) at the observations, as they are known."""
    joint, sample = process.joint, process.joint.sample
    row = waves.on(sample)
    for task in range(sample.tasks):
        where = sample.task(task)
        row[where] += process.prior.nuggets(task, site_keys(sample.sites[where]), seed, number)
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
    frame : ndarray (2, ...), or a list of it
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
    shape = around.shape[1:]
    around = around.reshape(len(around), math.prod(shape))
    axes = len(predictor.coordinates.axes)
    coordinates, mask, fields = whole[:axes], whole[axes], whole[axes + 1 :]
    spread = [np.broadcast_to(c, shape) for c in coordinates]
    cells = wanted_cells(spread, np.broadcast_to(mask, shape))
    out = np.full((len(realizations.numbers), math.prod(shape)), np.nan)
    if not cells.size:
        return out.reshape(len(out), *shape)
    by_lattice = out.shape[1] <= _MASKED * cells.size
    lattice = find_lattice(predictor.coordinates, coordinates, shape) if by_lattice else None
    process, seed = predictor.process, realizations.seed
    drawn = realizations.waves
    if lattice is not None:
        for row, waves in zip(out, drawn, strict=True):
            row[cells] = lattice.signal(waves, task).reshape(-1)[cells]
    laws = [np.broadcast_to(f, shape) for f in fields]
    means = process.joint.means_of(realizations.rows)
    # Beside the result only what is of some cells is held.
    for part in slices(cells.size, max(_LEAST, _NUMBERS // len(out))):
        where = cells[part]
        numbers = [c.flat[where] for c in spread]
        targets = to_targets(predictor.coordinates, predictor.sites, numbers)
        if lattice is None:
            prior = np.stack([waves.at(targets.inputs, task) for waves in drawn])
        else:
            prior = out[:, where]
        if nugget:
            keys = _keys(predictor, targets, numbers)
            for row, number in zip(prior, realizations.numbers, strict=True):
                row += process.prior.nuggets(task, keys, seed, number)
        places = Places(targets, task, nugget)
        prior -= means(targets, task, nugget)
        latent = _condition(process, places, prior, *around[:, where])
        law = predictor.law(task, [f.flat[where] for f in laws])
        for row, z in zip(out, latent, strict=True):
            row[where] = law.from_normal(z)
    return out.reshape(len(out), *shape)


def _keys(predictor: Predictor, targets: Targets, numbers: Sequence[FloatArray]) -> KeyArray:
    """Return what the nugget of each cell belongs to: a site of the data, or its own place."""
    system, tolerance = predictor.coordinates, predictor.sites.tolerance
    exact, single = system.places(numbers), system.places_in_single(numbers)
    # Where sites lie closer than single precision tells, places do too.
    close = (np.abs(single - exact) <= tolerance[:, None]).all(axis=0)
    places = np.where(close, single, exact)
    return np.where(targets.sites >= 0, site_keys(targets.sites), place_keys(places, tolerance))


def _condition(
    process: ConditionedProcess,
    places: Places,
    prior: FloatArray,
    mean: FloatArray,
    ratio: FloatArray,
) -> FloatArray:
    """Return latent paths (k, m) at places, from deviations there, which are overwritten."""
    (targets, task, nugget), joint = places, process.joint
    datum = joint.sample.observed(task, targets.sites)
    known = np.flatnonzero((datum >= 0) & nugget)
    deviations = prior[:, known]  # a copy: they say which quantile of an interval is drawn
    prior[:, known] = 0.0
    prior *= ratio
    prior += mean
    if known.size and process.limits is not None:
        inside = np.isfinite(process.limits.at(targets.sites[known], task)).any(axis=0)
        at = known[inside]
        if at.size:
            prior[:, at] = _truncated(process, targets.take(at), task, deviations[:, inside])
    return prior


def _truncated(
    process: ConditionedProcess, targets: Targets, task: int, deviations: FloatArray
) -> FloatArray:
    """Return scores (k, m) of values that are known as intervals, from deviations there."""
    assert process.limits is not None
    std = np.sqrt(variance_at(process.joint, Places(targets, task, nugget=True)))
    moments = process.moments(targets, task)
    limits = process.limits.at(targets.sites, task)
    law = Bounded(moments.mean, np.sqrt(moments.variance), *limits)
    return np.stack([law.quantile(ndtr(row / std)) for row in deviations])
