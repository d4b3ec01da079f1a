"""Measure what a million values cost, stage by stage: seconds of one processor, and peak memory.

Run as ``python benchmarks/bench_million.py`` (``--quick`` takes 20,000 values; names of stages
choose among them). Each pair of numbers is one call: the seconds of a first run, and the MB that
numpy allocates at the peak of a second one, beside the arguments.
"""

from __future__ import annotations

import argparse
import os
import time
import tracemalloc
from collections.abc import Callable, Mapping

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import xarray as xr

from xcopula.fitting.alone import Alone
from xcopula.fitting.defaults import start_marginal
from xcopula.fitting.directions import input_groups
from xcopula.fitting.select import select
from xcopula.kernels import KERNELS
from xcopula.labels.observations import observe
from xcopula.labels.sites import find_sites
from xcopula.marginals import MARGINALS, Marginal, by, regress
from xcopula.process import Sample
from xcopula.solvers import Exact

MONTHS = 12
Call = Callable[[], object]


def measure(call: Call) -> tuple[float, float]:
    """Return the seconds of one call and the MB of another."""
    began = time.process_time()
    call()
    seconds = time.process_time() - began
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return seconds, peak / 1e6


def header(title: str, columns: list[str]) -> None:
    print(f"\n{title:<26}" + "".join(f"{name:>14}" for name in [*columns, "all"]))


def row(label: str, calls: Mapping[str, Call]) -> None:
    """Print one line of a table: a cell for each call, then their sum and the highest peak."""
    cells = [measure(call) for call in calls.values()]
    cells.append((sum(s for s, _ in cells), max(mb for _, mb in cells)))
    print(f"{label:<26}" + "".join(f"{s:6.2f} s{mb:4.0f} MB" for s, mb in cells), flush=True)


def uses(law: Marginal, values: np.ndarray) -> dict[str, Call]:
    """Return what is asked of a fitted law that is bound to the rows of the values."""
    scores = law.to_normal(values)
    return {
        "scores": lambda: law.to_normal(values),
        "values": lambda: law.from_normal(scores),
        "density": lambda: law.log_density(values),
        "gradient": lambda: (law.score_pullback(values, scores), law.density_pullback(values)),
        "dof, bounds": lambda: (law.dof, law.bounds),
    }


def laws(size: int) -> None:
    """Each family: its fit, then what it is asked for."""
    values = np.random.default_rng(0).gamma(2.0, 3.0, size)
    header("laws", ["fit", *uses(MARGINALS["normal"](), values)])
    for name, family in MARGINALS.items():
        fit = {"fit": lambda family=family: family.fit(values)}
        row(name, fit | uses(family.fit(values), values))


def varying(size: int) -> None:
    """Regressions, laws by month, and both at once."""
    rng = np.random.default_rng(0)
    columns = {"x": rng.uniform(0.0, 3.0, size), "month": rng.integers(0, MONTHS, size)}
    values = np.exp(0.3 * columns["x"]) * rng.gamma(2.0, 3.0, size)
    header("varying laws", ["fit", "rows", *uses(MARGINALS["normal"](), values)])
    for name in MARGINALS:
        for recipe in (
            regress(name, on="x"),
            by("month", name),
            regress(by("month", name), on="x"),
            by("month", regress(name, on="x")),
        ):
            rows = np.column_stack([columns[field] for field in recipe.fields])
            law = recipe.fit(values, rows)
            calls: dict[str, Call] = {
                "fit": lambda recipe=recipe, rows=rows: recipe.fit(values, rows),
                "rows": lambda law=law, rows=rows: law.at(rows),
            }
            row(recipe.name, calls | uses(law.at(rows), values))


def reading(size: int) -> None:
    """Labels to arrays: three variables at stations over days, on a grid, and scattered."""
    rng = np.random.default_rng(0)
    days = np.datetime64("2000-01-01") + np.arange(size // 3000).astype("m8[D]")
    east = ("station", rng.uniform(0.0, 10.0, 1000), {"units": "degrees_east"})
    north = ("station", rng.uniform(40.0, 50.0, 1000), {"units": "degrees_north"})
    stations = {"time": days, "lon": east, "lat": north}
    plane = {c: ("point", rng.uniform(0.0, 9.0, size // 3), {"units": "km"}) for c in "xy"}
    shapes = {
        "stations x days": (("time", "station"), stations),
        "scattered": (("point",), plane),
    }
    header("reading", ["observe", "find sites", "select"])
    for label, (dims, coords) in shapes.items():
        empty = xr.Dataset(coords=coords)
        shape = [empty.sizes[d] for d in dims]
        data = empty.assign({v: (dims, rng.lognormal(size=shape)) for v in "abc"})
        seen = observe(data, list("abc"))
        positions = np.split(seen.positions, seen.sample.offsets[1:-1])
        sample = seen.sample.select([0])
        # The covariance is fitted to a part of a large variable, marginals start from all of it.
        part = sample.take(np.arange(0, sample.size, max(1, sample.size // 300)))
        alone = Alone(part, input_groups(seen), 1, Exact())
        row(
            label,
            {
                "observe": lambda data=data: observe(data, list("abc")),
                "find sites": lambda seen=seen, p=positions: find_sites(seen.coordinates, p),
                "select": lambda alone=alone, sample=sample: selection(alone, sample),
            },
        )


def selection(alone: Alone, sample: Sample) -> None:
    """Compare all marginals and kernels."""
    select(
        alone,
        list(KERNELS.values()),
        list(MARGINALS.values()),
        lambda law: start_marginal(law, sample, {}, None, "a"),
    )


# Each takes the number of values and prints a table.
STAGES: list[Callable[[int], None]] = [reading, laws, varying]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="20,000 values")
    parser.add_argument("stage", nargs="*", help="names of stages; all by default")
    arguments = parser.parse_args()
    for stage in STAGES:
        if not arguments.stage or stage.__name__ in arguments.stage:
            stage(20_000 if arguments.quick else 1_000_000)


if __name__ == "__main__":
    main()
