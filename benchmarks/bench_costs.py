"""Compare the costs that methods declare with what an evaluation takes.

Run as ``python benchmarks/bench_costs.py``. Each line is one evaluation of the likelihood with its
gradient on simulated values in space and time, one thread of BLAS: time as the best of three, and
the peak of what numpy allocates, beside the estimates by which a fit is refused or let pass.
"""

from __future__ import annotations

import os
import time
import tracemalloc

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from xcopula.methods import Settings, resolve_method
from xcopula.kernels import resolve_kernel
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import Normal
from xcopula.process.copula import Process, Sample
from xcopula.fitting.selection import starting_point

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


def measure(method: str, tasks: int, size: int) -> str:
    """Evaluate once for the memory and three times for the time."""
    rng = np.random.default_rng(0)
    sample = Sample.of(
        [rng.uniform(-0.5, 0.5, (size, 3)) for _ in range(tasks)],
        [rng.normal(size=size) for _ in range(tasks)],
    )
    kernel = resolve_kernel("matern32")
    covariance = Covariance((kernel,) * tasks, (InputGroup(2), InputGroup(1)))
    process = Process(covariance, (Normal(),) * tasks)
    theta = process.join(starting_point(covariance))
    chosen = resolve_method(method)
    settings = chosen.prepare(sample, Settings())
    cost = chosen.cost([size] * tasks, settings)

    def evaluate() -> None:
        chosen.objective(process, sample, theta, settings)

    evaluate()  # compiles
    tracemalloc.start()
    evaluate()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    times = []
    for _ in range(3):
        began = time.perf_counter()
        evaluate()
        times.append(time.perf_counter() - began)
    return (
        f"{method:>12}, {tasks} x {size:>6,} values: {min(times):7.3f} s, estimated "
        f"{cost.seconds:7.3f} s; {peak / 1e6:6.0f} MB, estimated {cost.bytes / 1e6:6.0f} MB"
    )


if __name__ == "__main__":
    for case in CASES:
        print(measure(*case), flush=True)
