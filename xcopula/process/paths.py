r"""Draws of the multi-task prior: each realization is one function of the inputs.

.. math::

    z_i(x) = \sum_q M^{-1/2} \sum_k \sqrt{S^q_i(\omega_k) / p^q(\omega_k)}
        \, (a^q_{ik} \cos \omega_k' x + b^q_{ik} \sin \omega_k' x) + e_i(x)

Frequencies of a structure q are drawn from the mean p of the tasks' spectra :math:`S_i`; a and b
are normal with covariance :math:`A^q` between tasks. So the covariance is
:math:`A^q_{ij} \int \sqrt{S_i S_j} \cos \omega' h`: that of the convolution coupling, and of the
others where all :math:`S_i` are one. Frequencies are drawn anew for each realization, so over
realizations the covariance is exact whatever their number M. In a group of coordinates each has its
own; spectra multiply.

The nugget is a normal number that belongs to the seed, the realization and the site, whichever
others are asked for beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xcopula.arrays import FloatArray, IntArray
from xcopula.jit import waves as loops
from xcopula.kernels.assembly import floats
from xcopula.kernels.base import Kernel, SpectralKernel
from xcopula.kernels.covariance import Covariance
from xcopula.kernels.nested import family
from xcopula.process.sample import Sample

__all__ = [
    "KeyArray",
    "Prior",
    "Waves",
    "add_numbers",
    "place_keys",
    "site_keys",
    "stream",
]

KeyArray = npt.NDArray[np.uint64]

# Waves of a structure. The covariance of one realization is within a few percent of the model's;
# that of all together is the model's.
WAVES = 2048
_LEAST = 2.0**-54  # even numbers are above zero


def _spectral(kernel: Kernel) -> SpectralKernel:
    if isinstance(kernel, SpectralKernel):
        return kernel
    raise ValueError(
        f"Draws need the spectrum of a kernel, which {kernel.name!r} does not tell. Give it the "
        "methods `frequencies` and `log_spectrum` of xcopula.kernels.SpectralKernel, or fit with "
        "another kernel."
    )


class Waves(NamedTuple):
    """One realization of the signal of all tasks.

    Attributes
    ----------
    frequencies : ndarray (d, w)
        Of the inputs, before the metric.
    cosines, sines : ndarray (t, w)
        Amplitudes in each task.
    """

    frequencies: FloatArray
    cosines: FloatArray
    sines: FloatArray

    def at(self, inputs: FloatArray, task: int) -> FloatArray:
        """Return the signal (m,) of a task at inputs (d, m)."""
        out = np.zeros(inputs.shape[1])
        loops.add_waves(
            floats(inputs),
            self.frequencies,
            np.ascontiguousarray(self.cosines[task]),
            np.ascontiguousarray(self.sines[task]),
            out,
        )
        return out

    def on(self, sample: Sample) -> FloatArray:
        """Return the signal (n,) at all observations of a sample."""
        tasks = range(sample.tasks)
        return np.concatenate([self.at(sample.inputs[:, sample.task(i)], i) for i in tasks])


class _Structure(NamedTuple):
    """What a nested structure is drawn from."""

    kernels: tuple[SpectralKernel, ...]  # of the tasks, or one where all share it
    lengths: FloatArray  # (groups, tasks) or (groups, 1)
    root: FloatArray  # (t, t)


@dataclass(frozen=True)
class Prior:
    """The prior of all tasks at given parameters, ready to be drawn.

    Attributes
    ----------
    sizes : tuple of int
        Columns of each group of inputs.
    mapping : ndarray (d, d)
        What inputs are multiplied by.
    structures : tuple of _Structure
    nugget : ndarray (t, t)
        A root of the covariance of the nugget between tasks.
    """

    sizes: tuple[int, ...]
    mapping: FloatArray
    structures: tuple[_Structure, ...]
    nugget: FloatArray

    @classmethod
    def of(cls, covariance: Covariance, theta: FloatArray) -> Prior:
        """Take a covariance at parameters.

        Raises
        ------
        ValueError
            If the spectrum of a kernel is not known; it names the kernel, and what it lacks.
        """
        lengths = np.exp(covariance.part(theta, "length"))
        *signal, nugget = (_root(matrix) for matrix in covariance.matrices(theta))
        own = covariance.kernels[: lengths.shape[2]]
        structures = [
            _Structure(tuple(_spectral(family(k, q)) for k in own), lengths[q], root)
            for q, root in enumerate(signal)
        ]
        sizes = tuple(g.size for g in covariance.groups)
        mapping = covariance.mapping(theta)
        return cls(sizes, mapping, tuple(structures), nugget)

    def draw(self, seed: int, realization: int) -> Waves:
        """Draw a realization of the signal: the same numbers give the same one."""
        generator = np.random.default_rng([seed, realization])
        parts = []
        for structure in self.structures:
            frequencies, shares = self._frequencies(structure, generator, WAVES)
            normal = generator.standard_normal((2, len(structure.root), WAVES)) / np.sqrt(WAVES)
            parts.append((frequencies, *(shares * (structure.root @ normal))))
        frequencies, cosines, sines = (np.concatenate(p, axis=1) for p in zip(*parts, strict=True))
        # Inputs are mapped linearly; it is the same to map frequencies instead, by the transpose.
        return Waves(self.mapping.T @ frequencies, cosines, sines)

    def _frequencies(
        self, structure: _Structure, generator: np.random.Generator, count: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return frequencies (d, w), and what they are multiplied by in each task."""
        kernels, lengths, _ = structure
        even = _even_numbers(1 + sum(self.sizes) + len(self.sizes), count, generator)
        chosen = np.minimum((even[0] * len(kernels)).astype(np.int64), len(kernels) - 1)
        logs, groups, start = np.zeros((len(kernels), count)), [], 1
        for size, own in zip(self.sizes, lengths, strict=True):
            numbers = even[start : (start := start + size + 1)]
            drawn = {kernel: kernel.frequencies(numbers) for kernel in set(kernels)}
            each = np.stack([drawn[kernel] for kernel in kernels])
            found = np.take_along_axis(each, chosen[None, None], 0)[0] / own[chosen]
            squares = np.einsum("dw,dw->w", found, found)
            for log, kernel, length in zip(logs, kernels, own, strict=True):
                log += size * np.log(length) + kernel.log_spectrum(length**2 * squares, size)
            groups.append(found)
        mean = np.logaddexp.reduce(logs) - np.log(len(kernels))
        return np.concatenate(groups), np.exp(0.5 * (logs - mean))

    def nuggets(self, task: int, keys: KeyArray, seed: int, realization: int) -> FloatArray:
        """Return the nugget (m,) of a task at sites, by their keys, in one realization."""
        out = np.zeros(keys.size)
        for factor, scale in enumerate(self.nugget[task]):
            add_numbers(out, keys, scale, seed, realization, factor)
        return out


def _root(matrix: FloatArray) -> FloatArray:
    """Return L with L L' = A; tasks may be perfectly correlated."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _even_numbers(rows: int, count: int, generator: np.random.Generator) -> FloatArray:
    """Return numbers (rows, count) that fill the cube evenly, shifted at random.

    Steps of powers of the root of x^(rows + 1) = x + 1, the golden section in one dimension. Each
    number alone is uniform, so means over draws are right; together they leave fewer gaps.
    """
    root = 2.0
    for _ in range(64):
        root = (1.0 + root) ** (1.0 / (rows + 1.0))
    steps = root ** -np.arange(1.0, rows + 1.0)
    even = generator.random(rows)[:, None] + np.outer(steps, np.arange(count))
    return np.maximum(even % 1.0, _LEAST)


def stream(*numbers: int) -> np.uint64:
    """Return a number that stands for several, such as a seed, a realization and a variable."""
    words: list[int] = []
    for n in numbers:
        parts = range(0, max(n.bit_length(), 1), 64)  # a seed may be as long as it likes
        words += [len(parts), *(n >> shift & (2**64 - 1) for shift in parts)]
    key = np.zeros(1, np.uint64)
    loops.fold(np.array(words, np.uint64)[:, None], key)
    return np.uint64(key[0])


def site_keys(sites: IntArray) -> KeyArray:
    """Return the keys (m,) of sites of the data, from their numbers."""
    keys = np.full(sites.size, stream(1), np.uint64)
    loops.fold(sites.astype(np.uint64)[None], keys)
    return keys


def place_keys(places: FloatArray, tolerance: FloatArray) -> KeyArray:
    """Return the keys (m,) of positions (k, m): the same where they agree to the tolerance (k,)."""
    steps = np.rint(places / tolerance[:, None]).astype(np.int64)
    keys = np.full(places.shape[1], stream(2), np.uint64)
    loops.fold(np.ascontiguousarray(steps).view(np.uint64), keys)
    return keys


def add_numbers(out: FloatArray, keys: KeyArray, scale: float, *numbers: int) -> None:
    """Add normal numbers to out (m,): each belongs to its key, and to all of these numbers."""
    loops.normals(keys, stream(*numbers), scale, out)
