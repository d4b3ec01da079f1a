r"""Sparse inference with inducing points: DTC, FITC and PITC in one.

The signal is explained by its values u at inducing points, :math:`Q = K_{fu} K_{uu}^{-1} K_{uf}`,
and what is left is taken for independent between blocks of observations:

.. math:: S = Q + \Lambda, \qquad \Lambda_b = N_b + M \circ (K_b - Q_b)

DTC leaves nothing but the nugget N (M = 0), FITC restores the variance (M = I), PITC restores whole
blocks of neighbouring sites (M = 1). The nugget is never divided: for DTC and FITC a block is a
site. The cost is O(n m^2) with m inducing points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from xcopula.errors import warn_user
from xcopula.solvers.exact import BATCH_BYTES
from xcopula.methods.partition import by_cluster, by_site, centres, site_numbers
from xcopula.methods.settings import Settings
from xcopula.kernels.assembly import (
    add_signal_contraction,
    cross,
    no_contraction,
    scaled_inputs,
    signal,
)
from xcopula.kernels.covariance import Contraction, CovarianceState
from xcopula.linalg import cholesky, log_determinant, solve_lower
from xcopula.process.copula import Moments, Process, Sample

__all__ = ["Sparse", "condition", "objective", "prepare"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Keeps inducing points that are all but redundant from breaking the factorisation.
_JITTER = 1e-8
# Observations of a PITC block, on average.
_BLOCK_SIZE = 100


def prepare(kind: str, sample: Sample, settings: Settings) -> Settings:
    """Choose inducing points and blocks once, so that the likelihood is one function of theta."""
    inducing = settings.inducing
    if isinstance(inducing, int):
        if inducing > sample.size:
            warn_user(
                f"inducing={inducing} is more than the {sample.size} observations; "
                "taking one at each."
            )
        # Each task has its share, by its number of observations.
        sizes = np.diff(sample.offsets)
        shares = np.maximum(1, np.floor(min(inducing, sample.size) * sizes / sample.size))
        inducing = tuple(
            centres(sample.inputs[:, sample.task(i)], int(m)) for i, m in enumerate(shares)
        )
    blocks = tuple(
        by_cluster(sample, max(1, round(sample.size / _BLOCK_SIZE)))
        if kind == "pitc"
        else by_site(sample)
    )
    return replace(settings, inducing=inducing, blocks=blocks)


@dataclass(frozen=True)
class _Pieces:
    """The approximate covariance S at given parameters, factorised."""

    state: CovarianceState
    inputs: FloatArray  # (d, n), scaled
    points: FloatArray  # (d, m), scaled
    point_offsets: IntArray
    root: FloatArray  # lower factor of K_uu
    white: FloatArray  # (m, n): root^-1 K_uf
    inverses: list[FloatArray]  # Lambda^-1, each (blocks, size, size)
    core: FloatArray  # lower factor of I + white Lambda^-1 white'
    half: FloatArray  # (m, n): core^-1 white Lambda^-1
    log_determinant: float

    def solve(self, blocks: tuple[IntArray, ...], rows: FloatArray) -> FloatArray:
        """Return rows (k, n) times S^-1."""
        out = _times_blocks(self.inverses, blocks, rows)
        out -= (rows @ self.half.T) @ self.half
        return out


def _times_blocks(
    matrices: list[FloatArray], blocks: tuple[IntArray, ...], rows: FloatArray
) -> FloatArray:
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
    return np.repeat(np.arange(len(sample.offsets) - 1), np.diff(sample.offsets))


def _build(
    kind: str, process: Process, sample: Sample, theta: FloatArray, settings: Settings
) -> _Pieces:
    covariance_theta, _ = process.split(theta)
    state = process.covariance.state(covariance_theta)
    inputs = scaled_inputs(sample.inputs, state)
    assert isinstance(settings.inducing, tuple)
    assert isinstance(settings.blocks, tuple)
    points = scaled_inputs(np.concatenate(settings.inducing, axis=1), state)
    point_offsets = np.cumsum([0, *(p.shape[1] for p in settings.inducing)], dtype=np.int64)

    def inner() -> FloatArray:
        matrix = signal(state, points, point_offsets, points, point_offsets)
        matrix.flat[:: len(matrix) + 1] += _JITTER
        return matrix

    root, _ = cholesky(inner, lambda: process.describe(theta))
    white = signal(state, inputs, sample.offsets, points, point_offsets)
    white = np.ascontiguousarray(solve_lower(root, white).T)
    residuals = _residuals(kind, sample, state, inputs, white, settings.blocks)
    inverses, log_det = [], 0.0
    for matrix in residuals:
        sign, logs = np.linalg.slogdet(matrix)
        if (sign <= 0).any():
            matrix = matrix + _JITTER * np.eye(matrix.shape[-1])
            sign, logs = np.linalg.slogdet(matrix)
        inverses.append(np.asarray(np.linalg.inv(matrix), np.float64))
        log_det += float(logs.sum())
    weighted = _times_blocks(inverses, settings.blocks, white)
    gram = weighted @ white.T
    gram.flat[:: len(gram) + 1] += 1.0
    core, _ = cholesky(gram.copy, lambda: process.describe(theta))
    half = np.ascontiguousarray(solve_lower(core, np.ascontiguousarray(weighted.T)).T)
    return _Pieces(
        state,
        inputs,
        points,
        point_offsets,
        root,
        white,
        inverses,
        core,
        half,
        log_det + log_determinant(core),
    )


def _residuals(
    kind: str,
    sample: Sample,
    state: CovarianceState,
    inputs: FloatArray,
    white: FloatArray,
    blocks: tuple[IntArray, ...],
) -> list[FloatArray]:
    """Return Lambda, each (blocks, size, size)."""
    task, site = _task_of(sample), site_numbers(sample)
    residuals = []
    for index in blocks:
        same = site[index][:, :, None] == site[index][:, None, :]
        matrix = state.nugget[task[index][:, :, None], task[index][:, None, :]] * same
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


def objective(
    process: Process, sample: Sample, theta: FloatArray, settings: Settings, *, kind: str
) -> tuple[float, FloatArray]:
    """Return the negative approximate log-likelihood and its gradient."""
    covariance = process.covariance
    covariance_theta, marginals = theta[: covariance.size], process.laws(theta, sample)
    values = [sample.values[sample.task(i)] for i in range(covariance.tasks)]
    w = np.concatenate([m.to_normal(y) for m, y in zip(marginals, values, strict=True)])
    log_density = sum(float(m.log_density(y).sum()) for m, y in zip(marginals, values, strict=True))
    if not np.isfinite(w).all() or not np.isfinite(log_density):
        return np.inf, np.zeros(process.size)
    assert isinstance(settings.blocks, tuple)
    pieces = _build(kind, process, sample, theta, settings)
    alpha = pieces.solve(settings.blocks, w[None])[0]
    value = 0.5 * float(w @ (alpha - w)) + 0.5 * pieces.log_determinant - log_density

    by = _pull_back(kind, sample, pieces, alpha, settings.blocks)
    gradient = np.empty(process.size)
    gradient[: covariance.size] = covariance.pullback(covariance_theta, by)
    for i, (marginal, where) in enumerate(zip(marginals, process.slices, strict=True)):
        by_score, by_density = marginal.sensitivity(values[i])
        gradient[where] = (alpha - w)[sample.task(i)] @ by_score - by_density.sum(axis=0)
    return value, gradient


def _pull_back(
    kind: str,
    sample: Sample,
    pieces: _Pieces,
    alpha: FloatArray,
    blocks: tuple[IntArray, ...],
) -> Contraction:
    r"""Contract G = S^-1 - alpha alpha' with the derivatives of S, through Q and through Lambda."""
    state = pieces.state
    by = no_contraction(state)
    # B = K_uu^-1 K_uf and B S^-1, whose core is A^-1 white Lambda^-1.
    gain = solve_lower(pieces.root, np.ascontiguousarray(pieces.white.T), transposed=True).T
    lifted = solve_lower(pieces.core, np.ascontiguousarray(pieces.half.T), transposed=True)
    through = solve_lower(pieces.root, lifted, transposed=True).T - np.outer(gain @ alpha, alpha)
    task, site = _task_of(sample), site_numbers(sample)
    for index, inverse in zip(blocks, pieces.inverses, strict=True):
        half, own = pieces.half[:, index], alpha[index]
        g = inverse - np.einsum("mbi,mbj->bij", half, half, optimize=True)
        g = g - own[:, :, None] * own[:, None, :]
        same = site[index][:, :, None] == site[index][:, None, :]
        high = np.maximum(task[index][:, :, None], task[index][:, None, :])
        low = np.minimum(task[index][:, :, None], task[index][:, None, :])
        np.add.at(by.nugget, (high, low), 0.5 * g * same)
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


@dataclass(frozen=True)
class Sparse:
    """A sparse process conditioned on a sample."""

    kind: str
    sample: Sample
    pieces: _Pieces
    blocks: tuple[IntArray, ...]
    alpha: FloatArray
    scores: FloatArray

    def moments(self, targets: FloatArray, *, nugget: bool = True) -> Moments:
        """Return the latent mean and variance of the primary at targets (d, m)."""
        size = targets.shape[1]
        mean, variance = np.empty(size), np.empty(size)
        step = max(1, BATCH_BYTES // (8 * (self.sample.size + len(self.pieces.root))))
        for start in range(0, size, step):
            where = slice(start, min(start + step, size))
            mean[where], variance[where] = self._batch(targets[:, where], nugget)
        return Moments(mean, np.maximum(variance, 0.0))

    def _batch(self, targets: FloatArray, nugget: bool) -> tuple[FloatArray, FloatArray]:
        pieces, state = self.pieces, self.pieces.state
        points = scaled_inputs(targets, state)
        offsets = np.array([0, points.shape[1]], np.int64)
        white = solve_lower(
            pieces.root, signal(state, points, offsets, pieces.points, pieces.point_offsets)
        )
        explained = np.einsum("ij,ij->i", white, white)
        rest = solve_lower(pieces.core, white.copy())
        own = float(state.nugget[0, 0]) if nugget else 0.0
        prior = float(state.amplitudes[:, 0, 0].sum()) + own
        mean = white @ (pieces.white @ self.alpha)
        variance = prior - explained + np.einsum("ij,ij->i", rest, rest)
        if nugget:
            self._meet_sites(points, white, prior, mean, variance)
        return mean, variance

    def _meet_sites(
        self,
        points: FloatArray,
        white: FloatArray,
        prior: float,
        mean: FloatArray,
        variance: FloatArray,
    ) -> None:
        """Correct cells that are sites of the data, where the nugget is shared."""
        pieces, state = self.pieces, self.pieces.state
        shared = cross(state, points, 0, pieces.inputs, self.sample.offsets, structures=False)
        (met,) = np.nonzero(shared.any(axis=1))
        if met.size:
            rows = white[met] @ pieces.white + shared[met]
            mean[met] = rows @ self.alpha
            variance[met] = prior - np.einsum("ij,ij->i", pieces.solve(self.blocks, rows), rows)

    def leave_one_out(self) -> Moments:
        """Return the moments of each score given all others, under the approximate law."""
        precision = -np.einsum("ij,ij->j", self.pieces.half, self.pieces.half)
        for index, inverse in zip(self.blocks, self.pieces.inverses, strict=True):
            precision[index] += np.diagonal(inverse, axis1=1, axis2=2)
        variance = 1.0 / precision
        return Moments(self.scores - self.alpha * variance, variance)

    def information(self, targets: FloatArray, *, nugget: bool = True) -> FloatArray:
        """Raise ValueError: one joint model does not tell its secondaries apart."""
        raise ValueError(
            f"method={self.kind!r} cannot tell what each secondary adds. "
            "Fit with method='transductive'."
        )

    def describe(self) -> list[str]:
        """Return lines for the model's summary."""
        return [f"{self.kind.upper()} with {len(self.pieces.root)} inducing points"]


def condition(
    process: Process, sample: Sample, theta: FloatArray, settings: Settings, *, kind: str
) -> Sparse:
    """Condition the sparse process on a sample."""
    assert isinstance(settings.blocks, tuple)
    pieces = _build(kind, process, sample, theta, settings)
    w = process.scores(theta, sample)
    alpha = pieces.solve(settings.blocks, w[None])[0]
    return Sparse(kind, sample, pieces, settings.blocks, alpha, w)
