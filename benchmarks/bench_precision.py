"""Measure standard errors: how often 90 % intervals made of them hold the true parameters.

Run as ``python benchmarks/bench_precision.py`` (``--quick`` for four small worlds, ``--worlds 50``
for fewer, ``--method transductive`` or ``--solver neighbours`` for other likelihoods).

A world is a draw of a process of two log-normal variables at common sites in a square of 100 km,
by the covariance that is fitted. Fits have the kernel and the marginal family of the truth.
Intervals are normal on a scale without ends: logarithms of lengths, logits of nuggets, Fisher's z
of correlations, by the delta method from the errors in ``model.parameters``. Beside coverage, with
its standard error, stands the root mean square of (estimate - truth) / error, 1 where errors are
right, the mean of the same, 0 without bias, and how many fits have no error: a parameter is then
at an end of its box.
"""

from __future__ import annotations

import argparse

import numpy as np
import xarray as xr

import xcopula
from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import LogNormal
from xcopula.process import Process, Sample
from xcopula.solvers import Exact

SITES, EXTENT, KERNEL = 200, 100.0, "matern32"
TRUTH = {
    "log length, first": np.log(12.0),
    "log length, second": np.log(18.0),
    "logit nugget, first": np.log(0.2 / 0.8),
    "logit nugget, second": np.log(0.3 / 0.7),
    "z of correlation": np.arctanh(0.7),
    "z of nugget correlation": np.arctanh(0.3),
    "location, first": 1.0,
    "log scale, first": np.log(0.5),
}
LAWS = (LogNormal(1.0, 0.5), LogNormal(0.0, 0.8))
Z90 = 1.6448536


def world(seed: int, sites: int) -> xr.Dataset:
    """Draw two variables by the covariance that is fitted."""
    rng = np.random.default_rng(seed)
    covariance = Covariance((KERNELS[KERNEL],) * 2, (InputGroup(2),))
    theta = np.zeros(covariance.size)
    lengths = [TRUTH["log length, first"], TRUTH["log length, second"]]
    covariance.part(theta, "length")[:] = np.subtract(lengths, np.log(EXTENT))
    nuggets = [TRUTH["logit nugget, first"], TRUTH["logit nugget, second"]]
    covariance.part(theta, "logit")[:] = np.negative(nuggets)
    covariance.part(theta, "correlation")[:] = TRUTH["z of correlation"]
    covariance.part(theta, "noise_correlation")[:] = TRUTH["z of nugget correlation"]
    process = Process(covariance, LAWS)
    places = rng.uniform(size=(sites, 2))
    sample = Sample.of([places] * 2, [np.ones(sites)] * 2)
    conditioned = Exact().condition(process, sample, None, process.join(theta))
    scores = np.tril(conditioned.factor) @ rng.normal(size=sample.size)
    values = {
        f"v{i}": ("site", law.from_normal(scores[sample.task(i)])) for i, law in enumerate(LAWS)
    }
    km = {"units": "km"}
    coords = {c: ("site", EXTENT * places[:, k], km) for k, c in enumerate("xy")}
    return xr.Dataset(values, coords)


def estimates(model: xcopula.CopulaModel) -> np.ndarray:
    """Return estimates and their errors (2, parameters) on scales without ends."""
    p = model.parameters
    rows = []

    def add(name: str, where: dict, scale: np.ufunc, slope: object) -> None:
        value, error = float(p[name].isel(where)), float(p[f"{name}_error"].isel(where))
        rows.append((scale(value), error * slope(value)))

    for task in (0, 1):
        where = {"structure": 0, "group": 0, "task": task}
        add("length_scale", where, np.log, lambda v: 1.0 / v)
    for task in (0, 1):
        add("nugget", {"task": task}, lambda v: np.log(v / (1.0 - v)), lambda v: 1 / (v * (1 - v)))
    pair = {"task": 0, "other": 1}
    add("correlation", {"structure": 0, **pair}, np.arctanh, lambda v: 1.0 / (1.0 - v * v))
    add("nugget_correlation", pair, np.arctanh, lambda v: 1.0 / (1.0 - v * v))
    place = {name: k for k, name in enumerate(p["parameter"].values)}
    location, scale = (n for n in model.marginals[0].parameters)
    add("marginal_parameter", {"task": 0, "parameter": place[location]}, float, lambda v: 1.0)
    add("marginal_parameter", {"task": 0, "parameter": place[scale]}, np.log, lambda v: 1.0 / v)
    return np.array(rows).T


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--sites", type=int, default=SITES)
    parser.add_argument("--method", default="full")
    parser.add_argument("--solver", default="exact")
    args = parser.parse_args()
    worlds, sites = (4, 60) if args.quick else (args.worlds, args.sites)
    found = []
    for seed in range(worlds):
        model = xcopula.fit(
            world(seed, sites),
            "v0",
            "v1",
            kernels=KERNEL,
            marginals="lognormal",
            anisotropy=False,
            method=args.method,
            solver=args.solver,
        )
        found.append(estimates(model))
    truth = np.array(list(TRUTH.values()))
    value, error = np.moveaxis(np.array(found), 1, 0)
    print(f"{worlds} worlds of {sites} sites, method {args.method}, solver {args.solver}\n")
    print("| parameter | coverage of 90 % | rms of errors | mean | without error |")
    print("|---|---|---|---|---|")
    for k, name in enumerate(TRUTH):
        known = np.isfinite(error[:, k])
        ratio = (value[known, k] - truth[k]) / error[known, k]
        cover = float((np.abs(ratio) < Z90).mean()) if ratio.size else np.nan
        spread = np.sqrt(cover * (1.0 - cover) / max(ratio.size, 1))
        print(
            f"| {name} | {100 * cover:.1f} ± {100 * spread:.1f} % | "
            f"{np.sqrt((ratio**2).mean()):.2f} | {ratio.mean():+.2f} | {int((~known).sum())} |"
        )


if __name__ == "__main__":
    main()
