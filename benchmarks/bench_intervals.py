"""Fit samples of which a part is known as intervals, and the same samples of numbers.

Run as ``python benchmarks/bench_intervals.py`` (``--quick`` takes small sizes; ``exact`` or
``neighbours`` takes one solver). A field with a nugget and a log-normal law is simulated; its
smallest 30 % are below a limit, or all values are rounded to a coarse step. Kernel and law are
given, their parameters are fitted from the same start. A line has the processor time of both fits
and their ratio, the evaluations, and the parameters that were found: length scale, nugget, mean and
deviation of the logarithm.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import replace
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt

from xcopula.fitting.alone import Alone, starting_points
from xcopula.fitting.maximise import length_parameters, minimise_in_stages, subsample_size
from xcopula.kernels import resolve_kernel
from xcopula.kernels.covariance import InputGroup
from xcopula.marginals import LogNormal
from xcopula.methods.part import Part
from xcopula.process import Sample
from xcopula.solvers import Exact, Neighbours, Solver

FloatArray = npt.NDArray[np.float64]

LENGTH, NUGGET, LAW = 0.1, 0.15, LogNormal(0.5, 0.8)
SIZES = {"exact": (200, 500, 1000), "neighbours": (5000, 20000)}
QUICK = {"exact": (60,), "neighbours": (200,)}
_FEATURES = 4000
_TERMS = 4000


class Fitted(NamedTuple):
    """What a fit took and found."""

    seconds: float
    evaluations: int
    found: FloatArray


def simulate(size: int, seed: int = 0) -> Sample:
    """Return values of a Matern 3/2 field at random sites of the unit square, with a nugget."""
    rng = np.random.default_rng(seed)
    inputs = rng.uniform(size=(size, 2))
    # The spectrum of the kernel is a t law with 3 degrees of freedom.
    normal = rng.normal(size=(_FEATURES, 2)) / LENGTH
    frequencies = normal * np.sqrt(3.0 / rng.chisquare(3.0, size=(_FEATURES, 1)))
    phases, weights = rng.uniform(0.0, 2.0 * np.pi, _FEATURES), rng.normal(size=_FEATURES)
    field = np.concatenate(
        [
            np.cos(part @ frequencies.T + phases) @ weights
            for part in np.array_split(inputs, max(size // 500, 1))
        ]
    )
    field *= np.sqrt(2.0 / _FEATURES)
    z = np.sqrt(1.0 - NUGGET) * field + np.sqrt(NUGGET) * rng.normal(size=size)
    return Sample.of([inputs], [LAW.from_normal(z)])


def censor(sample: Sample, share: float = 0.3) -> Sample:
    """Return the sample with its smallest values below a limit."""
    limit = np.quantile(sample.values, share)
    below = sample.values < limit
    limits = np.stack([np.where(below, -np.inf, sample.values), np.maximum(sample.values, limit)])
    return replace(sample, values=np.maximum(sample.values, limit), limits=limits)


def round_off(sample: Sample, step: float = 1.0) -> Sample:
    """Return the sample with every value known to a step only."""
    low = np.floor(sample.values / step) * step
    return replace(sample, values=low + 0.5 * step, limits=np.stack([low, low + step]))


def fit(sample: Sample, solver: Solver) -> Fitted:
    """Fit the parameters from a start that knows nothing of them."""
    alone = Alone(sample, (InputGroup(2),), 1, solver)
    process = alone.process(resolve_kernel("matern32"), LogNormal.fit(sample.values))
    began = time.process_time()
    optimum = minimise_in_stages(
        lambda theta, terms: alone.objective(
            process, Part.of(solver, process, theta, sample, terms=terms)
        ),
        [process.join(start) for start in starting_points(process.covariance)],
        process.bounds(),
        terms=subsample_size(solver, sample, _TERMS),
        size=sample.size,
        lengths=length_parameters(process),
        anew=False,
        whole=True,
    )
    seconds = time.process_time() - began
    theta = optimum.theta
    own, (law,) = process.split(theta)
    length = float(np.exp(process.covariance.part(own, "length")).ravel()[0])
    nugget = float(process.covariance.matrices(own)[-1][0, 0])
    found = np.array([length, nugget, *law.parameters.values()])
    return Fitted(seconds, optimum.evaluations, found)


def main() -> None:
    """Print a line for each solver, size and kind of interval."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("solvers", nargs="*", default=["exact", "neighbours"])
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    solvers: dict[str, Solver] = {"exact": Exact(), "neighbours": Neighbours()}
    print("| solver | values | known as | seconds | evaluations | x numbers | found |")
    print("|---|---|---|---|---|---|---|")
    for name in given.solvers:
        for small in (simulate(60), censor(simulate(60))):
            fit(small, solvers[name])  # compiles
        for size in (QUICK if given.quick else SIZES)[name]:
            numbers = simulate(size)
            kinds = {
                "numbers": numbers,
                "30 % below a limit": censor(numbers),
                "rounded": round_off(numbers),
            }
            base = None
            for kind, sample in kinds.items():
                done = fit(sample, solvers[name])
                base = base or done
                found = " ".join(f"{x:.3f}" for x in done.found)
                ratio = done.seconds / base.seconds
                print(
                    f"| {name} | {size} | {kind} | {done.seconds:.2f} | {done.evaluations} | "
                    f"{ratio:.1f} | {found} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
