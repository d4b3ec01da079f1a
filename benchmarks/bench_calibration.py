"""Measure how honest intervals are: coverage by number of sites and of secondaries.

Run as ``python benchmarks/bench_calibration.py`` (``--quick`` for two worlds of one size;
``--methods full transductive`` for both ways to fit). A world
is a draw of a multi-task process in the plane. The primary is known at some sites, the secondaries
at twice as many. The model has the true parameters, or is fitted with laws and kernels given, or
with the defaults, and predicts the primary where nothing was observed. Coverage is that of central
90 % intervals, with its standard error over worlds; the CRPS is relative to the true parameters'.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Iterator, Sequence

import numpy as np
import xarray as xr

import xcopula
from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import LogNormal
from xcopula.process import Moments, Process, Sample, Targets, scores
from xcopula.solvers import Exact

HELD_OUT = 200
LAW = LogNormal(0.3, 0.7)


def world(seed: int, sites: int, secondaries: int) -> tuple[xr.Dataset, xr.Dataset, tuple]:
    """Draw a world: the data, the truth at held-out places, and the process that made it."""
    rng = np.random.default_rng(seed)
    tasks = 1 + secondaries
    covariance = Covariance((KERNELS["matern32"],) * tasks, (InputGroup(2),), coupling="icm")
    theta = np.zeros(covariance.size)
    covariance.part(theta, "length")[:] = np.log(rng.uniform(0.15, 0.35))
    covariance.part(theta, "logit")[:] = np.log(0.8 / 0.2)
    covariance.part(theta, "correlation")[:] = rng.uniform(0.6, 1.1, (1, tasks * secondaries // 2))
    process = Process(covariance, (LAW,) * tasks)
    theta = process.join(theta)
    data, truth, kept = draw(rng, process, theta, sites)
    return data, truth, (process, kept, theta)


def draw(
    rng: np.random.Generator, process: Process, theta: np.ndarray, sites: int
) -> tuple[xr.Dataset, xr.Dataset, Sample]:
    """Draw a process: the data, the truth at held-out places, and the data as a sample."""
    laws, tasks = process.marginals, len(process.marginals)
    # Places of the primary, those that are held out, and others of the secondaries alone.
    places = rng.uniform(size=(2 * sites + HELD_OUT, 2))
    first, last = np.arange(sites), sites + HELD_OUT + np.arange(sites)
    rows = [np.arange(sites + HELD_OUT)] + [np.concatenate([first, last])] * (tasks - 1)
    sample = Sample.of([places[r] for r in rows], [np.ones(len(r)) for r in rows])
    factor = np.tril(Exact().condition(process, sample, None, theta).factor)
    z = factor @ rng.normal(size=sample.size)
    values = [law.from_normal(z[sample.task(i)]) for i, law in enumerate(laws)]
    names = ["primary", *(f"secondary{i}" for i in range(1, tasks))]
    known = [first, *(np.arange(len(r)) for r in rows[1:])]
    data = {}
    for i, name in enumerate(names):
        whole = np.full(len(places), np.nan)
        whole[rows[i][known[i]]] = values[i][known[i]]
        data[name] = ("site", whole)
    coords = {c: ("site", places[:, k]) for k, c in enumerate("xy")}
    truth = xr.Dataset(
        {"primary": ("site", values[0][sites:])},
        coords={c: ("site", places[sites : sites + HELD_OUT, k]) for k, c in enumerate("xy")},
    )
    kept = Sample.of(
        [places[r][k] for r, k in zip(rows, known, strict=True)],
        [v[k] for v, k in zip(values, known, strict=True)],
    )
    return xr.Dataset(data, coords=coords), truth, kept


def judged(moments: Moments, law: LogNormal, observed: np.ndarray) -> tuple[float, float]:
    """Return coverage of 90 % intervals and the mean CRPS."""
    found = scores(moments, law, observed)
    return float(((observed >= found.lower) & (observed <= found.upper)).mean()), float(
        found.crps.mean()
    )


def rows_of(
    seed: int, sites: int, secondaries: int, methods: Sequence[str]
) -> Iterator[tuple[str, float, float]]:
    """Yield how each way to predict one world did."""
    data, truth, (process, kept, theta) = world(seed, sites, secondaries)
    observed = truth["primary"].values
    exact = Exact().condition(process, kept, None, theta)
    points = np.ascontiguousarray(np.stack([truth["x"].values, truth["y"].values]))
    yield ("true parameters", *judged(exact.moments(Targets.nowhere(points)), LAW, observed))
    ways = {
        "laws and kernels given": {"marginals": "lognormal", "kernels": "matern32"},
        "defaults": {},
    }
    others = [n for n in data.data_vars if n != "primary"]
    for method, (name, options) in itertools.product(methods, ways.items()):
        model = xcopula.fit(data, "primary", others, method=method, uncertainty="plugin", **options)
        latent = model.posterior(truth).latent
        moments = Moments(latent["mean"].values, latent["std"].values ** 2)
        yield (f"{method}, {name}", *judged(moments, model.marginals[0], observed))


def main(
    worlds: int, sizes: Sequence[int], secondaries: Sequence[int], methods: Sequence[str]
) -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print(f"{worlds} worlds, {HELD_OUT} held-out values in each; coverage of 90 % intervals in %")
    for n in sizes:
        for s in secondaries:
            each: dict[str, list[tuple[float, float]]] = {}
            for seed in range(worlds):
                for name, coverage, crps in rows_of(seed, n, s, methods):
                    each.setdefault(name, []).append((coverage, crps))
            base = np.array(each["true parameters"])[:, 1].mean()
            for name, found in each.items():
                coverage, crps = np.array(found).T
                error = coverage.std(ddof=1) / np.sqrt(worlds)
                print(
                    f"{n:4d} sites, {s} secondaries, {name:38}"
                    f"{100 * coverage.mean():6.1f} +- {100 * error:3.1f}"
                    f"   CRPS {crps.mean() / base:.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--worlds", type=int, default=40)
    parser.add_argument("--sites", type=int, nargs="+", default=(35, 60, 120))
    parser.add_argument("--secondaries", type=int, nargs="+", default=(0, 1, 2))
    parser.add_argument("--methods", nargs="+", default=("transductive", "full"))
    arguments = parser.parse_args()
    if arguments.quick:
        main(2, (35,), (0, 1), arguments.methods)
    else:
        main(arguments.worlds, arguments.sites, arguments.secondaries, arguments.methods)
