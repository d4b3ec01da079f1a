"""The likelihood of a sample as a product of terms: numbers, and values known as intervals.

A term without intervals is a normal density. In a term with some, what is asked for is given what
is known of its neighbours: numbers, and that the others lie between their limits. Its density is
the probability of all of them, less that of the neighbours. Expectation propagation finds both
among these few alone, so nothing has to agree across terms, and each has its own derivative.

Neighbours are chosen by where they are, whatever is known of them. If numbers came before intervals
terms would be given values that are there because they are high.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from xcopula.arrays import FloatArray
from xcopula.jit.neighbours import interval_terms
from xcopula.kernels.assembly import floats, ints, no_contraction, ready, scaled_inputs
from xcopula.kernels.covariance import Contraction, CovarianceState
from xcopula.process import Evidence
from xcopula.process.intervals import Intervals, unsettled
from xcopula.solvers.graph import Graph, Split
from xcopula.solvers.terms import evaluate_terms, pieces, report, singular, total
from xcopula.solvers.threads import in_threads

__all__ = ["Likelihood", "evaluate"]


class Likelihood(NamedTuple):
    """What is left of an evaluation.

    Attributes
    ----------
    each : ndarray (r,)
        Log densities of the terms.
    alpha : ndarray (n,)
        The derivative by scores, as :meth:`Evidence.gradient` takes it.
    by : Contraction
        The derivatives by the covariance.
    ends : ndarray (2, n), optional
        The derivatives by limits of intervals.
    """

    each: FloatArray
    alpha: FloatArray
    by: Contraction
    ends: FloatArray | None


def evaluate(evidence: Evidence, graph: Graph, *, gradient: bool) -> Likelihood:
    """Evaluate the terms of a graph.

    Raises
    ------
    NotPositiveDefiniteError
        If the covariance of some neighbours cannot be factorised, or stand-ins do not settle.
    """
    state = ready(evidence.process.state(evidence.theta))
    own = evidence.log_densities + 0.5 * evidence.scores**2
    each = own[graph.rows]
    if evidence.intervals is None:
        plain = _numbers(evidence, state, graph, gradient)
        return Likelihood(each + plain.each, *plain[1:])
    inside = np.zeros(evidence.sample.size, np.bool_)
    inside[evidence.intervals.rows] = True
    split = graph.split(inside)
    numbers = _numbers(evidence, state, split.numbers, gradient)
    others = _intervals(evidence, state, evidence.intervals, split, gradient)
    each[~split.mixed] += numbers.each
    each[split.mixed] += others.each
    return Likelihood(
        each, numbers.alpha + others.alpha, total([numbers.by, others.by]), others.ends
    )


def _numbers(
    evidence: Evidence, state: CovarianceState, graph: Graph, gradient: bool
) -> Likelihood:
    """Evaluate terms of numbers; log densities are those of scores, less those alone."""
    passed = evaluate_terms(
        evidence.process,
        evidence.sample,
        graph,
        evidence.theta,
        evidence.scores,
        gradient=gradient,
        state=state,
    )
    return Likelihood(-0.5 * passed.each.sum(axis=1), passed.alpha, passed.by, None)


def _intervals(
    evidence: Evidence,
    state: CovarianceState,
    intervals: Intervals,
    split: Split,
    gradient: bool,
) -> Likelihood:
    """Evaluate terms that have intervals, some in each thread."""
    process, sample, theta = evidence.process, evidence.sample, evidence.theta
    inside, graph = split.inside, split.intervals
    inputs = scaled_inputs(sample.inputs, state)
    sites, offsets, w = ints(sample.sites), ints(sample.offsets), floats(evidence.scores)
    limits = np.zeros((2, sample.size))
    limits[:, intervals.rows] = intervals.low, intervals.high
    each = np.empty(graph.rows.size)

    def run(part: slice) -> tuple[FloatArray, FloatArray, Contraction, int]:
        alpha, ends = np.zeros(sample.size), np.zeros((2, sample.size))
        by = no_contraction(state)
        jittered, failed, wavers = interval_terms(
            graph.terms(part),
            inputs,
            sites,
            offsets,
            w,
            inside,
            limits,
            state,
            gradient,
            each[part],
            alpha,
            ends,
            by,
        )
        if wavers:
            row = np.append(graph.neighbours[part][failed], graph.rows[part][failed])
            raise unsettled(int(inside[row].sum()), process.describe(theta))
        if failed >= 0:
            raise singular(process, theta, graph)
        return alpha, ends, by, jittered

    results = in_threads(run, pieces(graph.rows.size))
    alphas, ends, contractions, jittered = zip(*results, strict=True)
    report(sum(jittered), graph)
    return Likelihood(
        each,
        functools.reduce(np.add, alphas),
        total(contractions),
        functools.reduce(np.add, ends),
    )
