"""Compare the costs that methods declare with what an evaluation takes, and time sparse prediction.

Run as ``python benchmarks/bench_costs.py`` (``--quick`` takes small sizes). Each of the first lines
is one evaluation of the likelihood with its gradient on simulated values in space and time, one
thread of BLAS: processor time as the best of three, and the peak of what numpy allocates, beside
the estimates by which a fit is refused or let pass. The last lines are predictions of a sparse
method at cells that are no sites of the data, and at sites where secondaries are known: finding the
site of each cell counts.
"""

from __future__ import annotations

import argparse
import os
import time
import tracemalloc
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt

from xcopula.fitting.alone import starting_point
from xcopula.kernels import resolve_kernel
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import Normal
from xcopula.methods import resolve_method
from xcopula.process import Process, Sample, Targets, number_sites
from xcopula.solvers import resolve_solver

FloatArray = npt.NDArray[np.float64]

# Method, variables, values of each.
CASES = (
    ("full", 1, 1000),
    ("full", 1, 3000),
    ("full", 3, 1000),
    ("transductive", 3, 1000),
    ("bcm", 1, 4000),
    ("fitc", 1, 5000),
    ("fitc", 1, 20000),
    ("dtc", 1, 20000),
    ("pitc", 1, 6000),
)
# Method, variables, values of each, cells.
PREDICTIONS = (("fitc", 1, 20000, 2000), ("fitc", 2, 10000, 2000), ("dtc", 1, 20000, 2000))


def simulate(tasks: int, size: int) -> tuple[Process, FloatArray, Sample]:
    """Return a process, parameters to start from, and values of each task at sites of its own."""
    rng = np.random.default_rng(0)
    sample = Sample.of(
        [rng.uniform(-0.5, 0.5, (size, 3)) for _ in range(tasks)],
        [rng.normal(size=size) for _ in range(tasks)],
    )
    kernel = resolve_kernel("matern32")
    covariance = Covariance((kernel,) * tasks, (InputGroup(2), InputGroup(1)))
    process = Process(covariance, (Normal(),) * tasks)
    theta = starting_point(covariance)
    covariance.part(theta, "noise_correlation")[:] = 0.5
    return process, process.join(theta), sample


def best_of(function: Callable[[], object], repeats: int = 3) -> float:
    """Return the shortest processor time of several runs, in seconds."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return min(times)


def measure(method: str, tasks: int, size: int) -> str:
    """Evaluate once for the memory and three times for the time."""
    process, theta, sample = simulate(tasks, size)
    chosen, solver = resolve_method(method), resolve_solver("exact")
    structure = chosen.prepare(solver, process, theta, sample)
    cost = chosen.cost(solver, sample.sizes)

    def evaluate() -> None:
        chosen.objective(process, sample, structure, theta)

    evaluate()  # compiles
    tracemalloc.start()
    evaluate()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (
        f"{method:>12}, {tasks} x {size:>6,} values: {best_of(evaluate):7.3f} s, estimated "
        f"{cost.seconds:7.3f} s; {peak / 1e6:6.0f} MB, estimated {cost.bytes / 1e6:6.0f} MB"
    )


def measure_prediction(method: str, tasks: int, size: int, cells: int) -> str:
    """Time the latent moments of the primary at cells, the process being conditioned."""
    process, theta, sample = simulate(tasks, size)
    chosen = resolve_method(method)
    structure = chosen.prepare(resolve_solver("exact"), process, theta, sample)
    conditioned = chosen.condition(process, sample, structure, theta)
    sites, _ = number_sites(sample.inputs, np.full(3, 1e-9))
    elsewhere = np.random.default_rng(1).uniform(-0.5, 0.5, (3, cells))
    last = np.ascontiguousarray(sample.inputs[:, sample.task(tasks - 1)][:, :cells])

    def predict(inputs: FloatArray) -> None:
        conditioned.moments(Targets(inputs, sites.find(inputs)))

    predict(elsewhere)  # compiles
    seconds = best_of(lambda: predict(elsewhere)), best_of(lambda: predict(last))
    what = "the data's own" if tasks == 1 else "a secondary's"
    return (
        f"{method:>12}, {tasks} x {size:>6,} values, {cells:,} cells: {seconds[0]:.3f} s elsewhere,"
        f" {seconds[1]:.3f} s at {what} sites"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    share = 10 if parser.parse_args().quick else 1
    for method, tasks, size in CASES:
        print(measure(method, tasks, size // share), flush=True)
    for method, tasks, size, cells in PREDICTIONS:
        print(measure_prediction(method, tasks, size // share, cells // share), flush=True)


if __name__ == "__main__":
    main()
