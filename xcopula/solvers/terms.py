"""Evaluate the terms of a likelihood: one pass over them, some in each thread."""

from __future__ import annotations

import functools
import itertools
import logging
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from xcopula.arrays import FloatArray
from xcopula.errors import NotPositiveDefiniteError
from xcopula.jit.neighbours import term_slopes, terms
from xcopula.kernels.assembly import (
    flat_contraction,
    floats,
    ints,
    no_contraction,
    ready,
    scaled_inputs,
)
from xcopula.kernels.covariance import Contraction, CovarianceState
from xcopula.process import Process, Sample
from xcopula.solvers.graph import Graph
from xcopula.solvers.threads import in_threads, thread_count

__all__ = [
    "Evaluated",
    "InformedTerms",
    "errors_of",
    "evaluate_terms",
    "informed_terms",
    "pieces",
    "report",
    "singular",
    "total",
]

_log = logging.getLogger("xcopula")

# Terms that are worth a thread, and those whose derivatives are held at a time.
_FEWEST, _BATCH = 2000, 1024


class Evaluated(NamedTuple):
    """What one pass over terms leaves."""

    each: FloatArray  # (r, 2): u^2 and log v
    alpha: FloatArray  # (n,): Q w
    precision: FloatArray  # (n,): the diagonal of Q
    by: Contraction
    jittered: int


class InformedTerms(NamedTuple):
    """An evaluation of terms with their information."""

    each: FloatArray  # (r, 2): u and log v
    alpha: FloatArray  # (n,): Q w
    gradient: FloatArray  # (c,): by the parameters of the covariance
    information: FloatArray  # (p, p)


def evaluate_terms(
    process: Process,
    sample: Sample,
    graph: Graph,
    theta: FloatArray,
    scores: FloatArray,
    *,
    gradient: bool,
    extra: FloatArray | None = None,
    state: CovarianceState | None = None,
) -> Evaluated:
    """Evaluate the terms of a graph, some in each thread.

    Where there are ``extra`` variances (n,) scores have errors beside the process. The ``state``
    of the covariance at theta may be at hand.
    """
    state = ready(process.state(theta)) if state is None else state
    inputs = scaled_inputs(sample.inputs, state)
    sites, offsets = ints(sample.sites), ints(sample.offsets)
    each = np.empty((graph.rows.size, 2))
    w, errors = floats(scores), errors_of(sample, extra)

    def run(part: slice) -> tuple[FloatArray, FloatArray, Contraction, int]:
        alpha, precision, by = np.zeros(sample.size), np.zeros(sample.size), no_contraction(state)
        jittered, failed = terms(
            graph.terms(part),
            inputs,
            sites,
            offsets,
            w,
            errors,
            state,
            gradient,
            each[part],
            alpha,
            precision,
            by,
        )
        if failed >= 0:
            raise singular(process, theta, graph)
        return alpha, precision, by, jittered

    results = in_threads(run, pieces(graph.rows.size))
    alphas, precisions, contractions, jittered = zip(*results, strict=True)
    report(sum(jittered), graph)
    return Evaluated(
        each,
        functools.reduce(np.add, alphas),
        functools.reduce(np.add, precisions),
        total(contractions),
        sum(jittered),
    )


def informed_terms(
    process: Process,
    sample: Sample,
    graph: Graph,
    theta: FloatArray,
    scores: FloatArray,
    moves: FloatArray,
    extra: FloatArray | None = None,
) -> InformedTerms:
    r"""Evaluate the terms of a graph with their expected information, some in each thread.

    A term with mean :math:`\mu` and variance v of what is asked for adds
    :math:`\partial\mu\,\partial\mu' / v + \tfrac12 \partial\log v\,\partial\log v'`; parameters of
    the marginals, whose derivatives of the scores are ``moves`` (n, p), move the score itself. With
    :math:`u = (w - \mu) / \sqrt v` the mixed block has :math:`-u\,\partial u\,\partial\log v` too:
    the scale of a marginal and the variances of terms say much the same.
    """
    covariance = process.covariance
    size = covariance.size
    state = ready(process.state(theta))
    slopes = covariance.slopes(theta[:size])
    inputs = scaled_inputs(sample.inputs, state)
    sites, offsets = ints(sample.sites), ints(sample.offsets)
    w, errors, moves = floats(scores), errors_of(sample, extra), floats(moves)
    each = np.empty((graph.rows.size, 2))

    def run(part: slice) -> tuple[FloatArray, FloatArray, FloatArray, int]:
        flat, by = flat_contraction(state)
        alpha, gradient = np.zeros(sample.size), np.zeros(size)
        matrix, total_jittered = np.zeros((process.size, process.size)), 0
        for start in range(part.start, part.stop, _BATCH):
            batch = slice(start, min(start + _BATCH, part.stop))
            count = batch.stop - batch.start
            by_mean, by_variance = np.empty((2, count, flat.size))
            by_score = np.empty((count, moves.shape[1]))
            jittered, failed = term_slopes(
                graph.terms(batch),
                inputs,
                sites,
                offsets,
                w,
                errors,
                moves,
                state,
                by,
                flat,
                each[batch],
                alpha,
                by_mean,
                by_variance,
                by_score,
            )
            if failed >= 0:
                raise singular(process, theta, graph)
            total_jittered += jittered
            u, weights = each[batch, 0], graph.weights[batch]
            means, spreads = by_mean @ slopes.T, by_variance @ slopes.T
            gradient += (weights * (1.0 - u * u)) @ spreads - (weights * u) @ means
            root = np.sqrt(weights)[:, None]
            rows, spreads = root * np.hstack([-means, by_score]), root * spreads
            matrix += rows.T @ rows
            matrix[:size, :size] += 2.0 * spreads.T @ spreads
            mixed = -2.0 * (u[:, None] * spreads).T @ rows[:, size:]
            matrix[:size, size:] += mixed
            matrix[size:, :size] += mixed.T
        return alpha, gradient, matrix, total_jittered

    results = in_threads(run, pieces(graph.rows.size))
    alphas, gradients, matrices, jittered = zip(*results, strict=True)
    report(sum(jittered), graph)
    return InformedTerms(
        each, *(functools.reduce(np.add, part) for part in (alphas, gradients, matrices))
    )


def total(contractions: Iterable[Contraction]) -> Contraction:
    """Add up derivatives by the covariance."""
    parts = zip(*contractions, strict=True)
    return Contraction(*(functools.reduce(np.add, part) for part in parts))


def singular(process: Process, theta: FloatArray, graph: Graph) -> NotPositiveDefiniteError:
    """Return the error of neighbours whose covariance cannot be factorised."""
    return NotPositiveDefiniteError(
        f"The correlation matrix of {graph.neighbours.shape[1]} neighbours is not positive "
        f"definite at {process.describe(theta)}. The usual causes are sites that almost "
        "coincide and length scales far beyond the extent of the data: drop or average "
        "near-duplicate sites. Kernels smoother than 'matern12' fail sooner."
    )


def report(jittered: int, graph: Graph) -> None:
    """Log how many small matrices needed a jitter, if any did."""
    if jittered:
        _log.info("%d of %d small matrices needed a jitter", jittered, graph.rows.size)


def errors_of(sample: Sample, extra: FloatArray | None) -> FloatArray:
    """Return extra variances (n,) as the compiled loops take them; zeros where there are none."""
    return np.zeros(sample.size) if extra is None else floats(extra)


def pieces(size: int) -> list[slice]:
    """Cut terms into one piece for each thread, where there are enough of them."""
    count = max(1, min(thread_count(), size // _FEWEST))
    ends = np.linspace(0, size, count + 1).astype(int)
    return [slice(a, b) for a, b in itertools.pairwise(ends)]
