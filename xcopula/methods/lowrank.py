r"""The covariance of the sparse methods: low rank plus blocks, factorised once.

.. math:: S = Q + \Lambda, \qquad Q = K_{fu} K_{uu}^{-1} K_{uf}, \qquad
    \Lambda_b = N_b + M \circ (K_b - Q_b)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xcopula.arrays import FloatArray, IntArray
from xcopula.kernels.assembly import (
    add_signal_contraction,
    no_contraction,
    scaled_inputs,
    signal,
)
from xcopula.kernels.covariance import Contraction, CovarianceState
from xcopula.linalg import cholesky, log_determinant, solve_lower
from xcopula.process import Process, Sample

__all__ = ["Blocks", "LowRank", "factorise", "pull_back"]

Blocks = tuple[IntArray, ...]

# Keeps inducing points that are all but redundant from breaking the factorisation.
_JITTER = 1e-8


@dataclass(frozen=True)
class LowRank:
    """The approximate covariance S at given parameters, factorised."""

    state: CovarianceState
    inputs: FloatArray  # (d, n), scaled
    points: FloatArray  # (d, m), scaled
    point_offsets: IntArray
    blocks: Blocks  # each (blocks, size)
    root: FloatArray  # lower factor of K_uu
    white: FloatArray  # (m, n): root^-1 K_uf
    inverses: tuple[FloatArray, ...]  # Lambda^-1, each (blocks, size, size)
    core: FloatArray  # lower factor of I + white Lambda^-1 white'
    half: FloatArray  # (m, n): core^-1 white Lambda^-1
    log_determinant: float

    def solve(self, rows: FloatArray) -> FloatArray:
        """Return rows (k, n) times S^-1."""
        out = _times_blocks(self.inverses, self.blocks, rows)
        out -= (rows @ self.half.T) @ self.half
        return out

    def precision(self) -> FloatArray:
        """Return the diagonal (n,) of S^-1."""
        precision: FloatArray = -np.einsum("ij,ij->j", self.half, self.half)
        for index, inverse in zip(self.blocks, self.inverses, strict=True):
            precision[index] += np.diagonal(inverse, axis1=1, axis2=2)
        return precision

    def missing(self, sample: Sample) -> FloatArray:
        """Return the variance (n,) of the signal that inducing points do not explain."""
        task = _task_of(sample)
        whole = self.state.amplitudes.sum(axis=0)[task, task]
        explained = np.einsum("ij,ij->j", self.white, self.white)
        return np.asarray(np.maximum(whole - explained, 0.0))

    def whiten(self, targets: FloatArray, task: int) -> FloatArray:
        """Return rows (k, m) of root^-1 k(u) for the signal of a task at targets (d, k)."""
        points = scaled_inputs(targets, self.state)
        offsets = np.zeros(len(self.point_offsets), np.int64)
        offsets[task + 1 :] = points.shape[1]
        rows = signal(self.state, points, offsets, self.points, self.point_offsets)
        return solve_lower(self.root, rows)

    def uncertain(self, white: FloatArray) -> FloatArray:
        """Return rows whose squares sum to what is not known of the inducing values."""
        return solve_lower(self.core, white.copy())


def _times_blocks(matrices: tuple[FloatArray, ...], blocks: Blocks, rows: FloatArray) -> FloatArray:
    """Multiply rows (k, n) by a block-diagonal matrix from the right."""
    out = np.empty_like(rows)
    for matrix, index in zip(matrices, blocks, strict=True):
        # (k, blocks, size) with (blocks, size, size)
        out[:, index] = np.einsum("kbi,bij->kbj", rows[:, index], matrix, optimize=True)
    return out


def _offsets_within(sample: Sample, index: IntArray) -> IntArray:
    """Return where tasks begin among sorted observations."""
    return np.searchsorted(index, sample.offsets).astype(np.int64)


def _task_of(sample: Sample) -> IntArray:
    return np.repeat(np.arange(sample.tasks), sample.sizes)


def factorise(
    kind: str,
    process: Process,
    sample: Sample,
    inducing: tuple[FloatArray, ...],
    blocks: Blocks,
    theta: FloatArray,
) -> LowRank:
    """Factorise S at theta, with the inducing points (d, m_i) of each task."""
    state = process.state(theta)
    inputs = scaled_inputs(sample.inputs, state)
    points = scaled_inputs(np.concatenate(inducing, axis=1), state)
    point_offsets = np.cumsum([0, *(p.shape[1] for p in inducing)], dtype=np.int64)

    def inner() -> FloatArray:
        matrix = signal(state, points, point_offsets, points, point_offsets)
        matrix.flat[:: len(matrix) + 1] += _JITTER
        return matrix

    root, _ = cholesky(inner, lambda: process.describe(theta))
    white = signal(state, inputs, sample.offsets, points, point_offsets)
    white = np.ascontiguousarray(solve_lower(root, white).T)
    inverses, log_det = [], 0.0
    for matrix in _residuals(kind, sample, state, inputs, white, blocks):
        sign, logs = np.linalg.slogdet(matrix)
        if (sign <= 0).any():
            matrix = matrix + _JITTER * np.eye(matrix.shape[-1])
            sign, logs = np.linalg.slogdet(matrix)
        inverses.append(np.asarray(np.linalg.inv(matrix), np.float64))
        log_det += float(logs.sum())
    weighted = _times_blocks(tuple(inverses), blocks, white)
    gram = weighted @ white.T
    gram.flat[:: len(gram) + 1] += 1.0
    core, _ = cholesky(gram.copy, lambda: process.describe(theta))
    half = np.ascontiguousarray(solve_lower(core, np.ascontiguousarray(weighted.T)).T)
    return LowRank(
        state=state,
        inputs=inputs,
        points=points,
        point_offsets=point_offsets,
        blocks=blocks,
        root=root,
        white=white,
        inverses=tuple(inverses),
        core=core,
        half=half,
        log_determinant=log_det + log_determinant(core),
    )


def _residuals(
    kind: str,
    sample: Sample,
    state: CovarianceState,
    inputs: FloatArray,
    white: FloatArray,
    blocks: Blocks,
) -> list[FloatArray]:
    """Return Lambda, each (blocks, size, size)."""
    task = _task_of(sample)
    residuals = []
    for index in blocks:
        matrix = state.nugget[task[index][:, :, None], task[index][:, None, :]]
        matrix = matrix * _same_site(sample, index)
        if kind == "fitc":
            diagonal = state.amplitudes.sum(axis=0)[task[index], task[index]]
            left = diagonal - np.einsum("mbi,mbi->bi", white[:, index], white[:, index])
            matrix = matrix + np.maximum(left, 0.0)[:, :, None] * np.eye(index.shape[1])
        elif kind == "pitc":
            (members,) = index
            offsets = _offsets_within(sample, members)
            own = np.require(inputs[:, members], np.float64, ["C", "W"])
            explained = white[:, members].T @ white[:, members]
            matrix = matrix + (signal(state, own, offsets, own, offsets) - explained)[None]
        residuals.append(matrix)
    return residuals


def _same_site(sample: Sample, index: IntArray) -> npt.NDArray[np.bool_]:
    """Tell which observations of blocks (blocks, size) share a site: (blocks, size, size)."""
    sites = sample.sites[index]
    return np.asarray(sites[:, :, None] == sites[:, None, :])


def pull_back(kind: str, sample: Sample, pieces: LowRank, alpha: FloatArray) -> Contraction:
    r"""Contract G = S^-1 - alpha alpha' with the derivatives of S, through Q and through Lambda."""
    state = pieces.state
    by = no_contraction(state)
    # B = K_uu^-1 K_uf and B S^-1, whose core is A^-1 white Lambda^-1.
    gain = solve_lower(pieces.root, np.ascontiguousarray(pieces.white.T), transposed=True).T
    lifted = solve_lower(pieces.core, np.ascontiguousarray(pieces.half.T), transposed=True)
    through = solve_lower(pieces.root, lifted, transposed=True).T - np.outer(gain @ alpha, alpha)
    task = _task_of(sample)
    for index, inverse in zip(pieces.blocks, pieces.inverses, strict=True):
        half, own = pieces.half[:, index], alpha[index]
        g = inverse - np.einsum("mbi,mbj->bij", half, half, optimize=True)
        g = g - own[:, :, None] * own[:, None, :]
        high = np.maximum(task[index][:, :, None], task[index][:, None, :])
        low = np.minimum(task[index][:, :, None], task[index][:, None, :])
        np.add.at(by.nugget, (high, low), 0.5 * g * _same_site(sample, index))
        if kind == "fitc":
            diagonal = np.diagonal(g, axis1=1, axis2=2)
            through[:, index] -= gain[:, index] * diagonal
            for q in range(len(by.amplitudes)):
                np.add.at(by.amplitudes[q], (task[index], task[index]), 0.5 * diagonal)
        elif kind == "pitc":
            (members,) = index
            through[:, members] -= gain[:, members] @ g[0]
            own_inputs = np.require(pieces.inputs[:, members], np.float64, ["C", "W"])
            offsets = _offsets_within(sample, members)
            add_signal_contraction(by, state, 0.5 * g[0], own_inputs, offsets, own_inputs, offsets)
    points, offsets = pieces.points, pieces.point_offsets
    add_signal_contraction(by, state, through, points, offsets, pieces.inputs, sample.offsets)
    inner = -0.5 * (through @ gain.T)
    add_signal_contraction(by, state, inner, points, offsets, points, offsets)
    return by
