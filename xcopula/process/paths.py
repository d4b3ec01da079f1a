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

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xcopula.jit import waves as loops
from xcopula.kernels.assembly import floats
from xcopula.kernels.base import Kernel, SpectralKernel
from xcopula.kernels.covariance import Covariance
from xcopula.kernels.nested import family
from xcopula.process.sample import Sample

__all__ = [
    "KeyArray",
    "Waves",
    "check_spectra",
    "draw_waves",
    "nuggets",
    "place_keys",
    "site_keys",
    "stream",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
KeyArray = npt.NDArray[np.uint64]

# Waves of a structure. The covariance of one realization is within a few percent of the model's;
# that of all together is the model's.
WAVES = 2048
_LEAST = 2.0**-54  # even numbers are above zero


def check_spectra(covariance: Covariance) -> None:
    """Refuse kernels whose spectrum is not known.

    Raises
    ------
    ValueError
        It names the kernel, and what it lacks.
    """
    for kernel in (k for tasks in covariance.families for k in tasks):
        _spectral(kernel)


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


def draw_waves(covariance: Covariance, theta: FloatArray, seed: int, realization: int) -> Waves:
    """Draw a realization of the signal.

    Parameters
    ----------
    covariance : Covariance
    theta : ndarray
        Its parameters.
    seed, realization : int
        The same numbers give the same realization.
    """
    generator = np.random.default_rng([seed, realization])
    lengths = np.exp(covariance.part(theta, "length"))
    roots = [_root(a) for a in covariance.matrices(theta)[:-1]]
    parts = []
    for q, root in enumerate(roots):
        kernels = [_spectral(family(k, q)) for k in covariance.kernels[: lengths.shape[2]]]
        frequencies, shares = _frequencies(covariance, kernels, lengths[q], generator, WAVES)
        normal = generator.standard_normal((2, covariance.tasks, WAVES)) / np.sqrt(WAVES)
        parts.append((frequencies, *(shares * (root @ normal))))
    frequencies, cosines, sines = (np.concatenate(p, axis=1) for p in zip(*parts, strict=True))
    # Inputs are mapped linearly; it is the same to map frequencies instead, by the transpose.
    return Waves(_mapping(covariance, theta).T @ frequencies, cosines, sines)


def _mapping(covariance: Covariance, theta: FloatArray) -> FloatArray:
    mapping = np.zeros((covariance.columns, covariance.columns))
    stop = 0
    for group, own in zip(covariance.groups, covariance.metrics(theta), strict=True):
        columns = slice(stop, stop := stop + group.size)
        mapping[columns, columns] = group.mapping(own)
    return mapping


def _root(matrix: FloatArray) -> FloatArray:
    """Return L with L L' = A; tasks may be perfectly correlated."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _frequencies(
    covariance: Covariance,
    kernels: list[SpectralKernel],
    lengths: FloatArray,
    generator: np.random.Generator,
    count: int,
) -> tuple[FloatArray, FloatArray]:
    """Return frequencies (d, w) of a structure, and what they are multiplied by in each task.

    ``lengths`` are (groups, tasks), or (groups, 1) where all share them; so are the shares.
    """
    sizes = [g.size for g in covariance.groups]
    even = _even_numbers(1 + sum(sizes) + len(sizes), count, generator)
    chosen = np.minimum((even[0] * len(kernels)).astype(np.int64), len(kernels) - 1)
    groups, start = [], 1
    for g, size in enumerate(sizes):
        own = even[start : (start := start + size + 1)]
        of = {kernel: kernel.frequencies(own) for kernel in set(kernels)}
        drawn = np.stack([of[kernel] for kernel in kernels])
        groups.append(np.take_along_axis(drawn, chosen[None, None], 0)[0] / lengths[g, chosen])
    logs = np.zeros((len(kernels), count))
    for g, (size, own) in enumerate(zip(sizes, groups, strict=True)):
        squares = np.einsum("dw,dw->w", own, own)
        for i, kernel in enumerate(kernels):
            length = lengths[g, i]
            scaled = kernel.log_spectrum(length**2 * squares, size)
            logs[i] += size * np.log(length) + scaled
    mean = np.logaddexp.reduce(logs) - np.log(len(kernels))
    return np.concatenate(groups), np.exp(0.5 * (logs - mean))


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


def nuggets(
    nugget: FloatArray, task: int, keys: KeyArray, seed: int, realization: int
) -> FloatArray:
    """Return the nugget (m,) of a task at sites, by their keys, in one realization.

    ``nugget`` (t, t) is its covariance between tasks, which share it at one site.
    """
    out = np.zeros(keys.size)
    for factor, scale in enumerate(_root(nugget)[task]):
        loops.normals(keys, stream(seed, realization, factor), scale, out)
    return out
