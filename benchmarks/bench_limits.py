"""Compare ways to treat values below a detection limit, on simulated fields.

Run as ``python benchmarks/bench_limits.py`` (``--quick`` for one small world).

A log-normal variable has 120 sites in the plane; 30 % of its values, the lowest, are below the
limit. A second variable that goes with it is known at all sites. Each treatment is a fit by
`xcopula.fit` with the law and the kernel given; it predicts 200 values that are hidden, which may
be below the limit too. With ``--values 20000`` there is one variable, solved by neighbours.
``--rows file.csv`` keeps each fit as soon as it is done, and goes on with a file that is there.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

import xcopula

SITES, HIDDEN, BELOW = 120, 200, 0.3
LENGTH, NUGGET, CORRELATION, SCALE = 20.0, 0.1, 0.7, 0.8
KM = {"units": "km"}
TREATMENTS = ("intervals", "half the limit", "dropped", "values known")
AS_INTERVALS, HALVED, DROPPED, KNOWN = TREATMENTS


def world(seed: int, sites: int, hidden: int) -> tuple[xr.Dataset, xr.Dataset, float]:
    """Return a field with its true values, hidden ones, and the limit."""
    rng = np.random.default_rng(seed)
    # More sites cover a larger square, so that the density stays.
    places = 100.0 * np.sqrt(sites / SITES) * rng.random((sites + hidden, 2))
    if sites > 2000:
        signals = [_many(rng, places)]
    else:
        apart = np.linalg.norm(places[:, None] - places, axis=-1) * np.sqrt(3.0) / LENGTH
        factor = np.linalg.cholesky((1.0 + apart) * np.exp(-apart) + 1e-9 * np.eye(len(places)))
        first, other = factor @ rng.normal(size=(2, len(places), 1))
        rest = np.sqrt(1.0 - CORRELATION**2)
        signals = [first[:, 0], CORRELATION * first[:, 0] + rest * other[:, 0]]
    noise = np.sqrt(NUGGET) * rng.normal(size=(len(signals), len(places)))
    values = np.exp(SCALE * (np.sqrt(1.0 - NUGGET) * np.stack(signals) + noise))
    coords = {c: ("site", places[:, k], KM) for k, c in enumerate("xy")}
    both = xr.Dataset({f"v{k}": ("site", own) for k, own in enumerate(values)}, coords)
    data = both.isel(site=slice(sites))
    return data, both.isel(site=slice(sites, None)), float(data["v0"].quantile(BELOW))


def _many(rng: np.random.Generator, places: np.ndarray, waves: int = 4000) -> np.ndarray:
    """Return a Matern 3/2 signal at many places, as a sum of random waves."""
    # Its spectrum is a Student t of three degrees of freedom in the plane.
    scale = np.sqrt(3.0 / rng.chisquare(3.0, size=(waves, 1))) / LENGTH
    frequency = scale * rng.normal(size=(waves, 2))
    phase, total = 2.0 * np.pi * rng.random(waves), np.empty(len(places))
    for start in range(0, len(places), 1000):
        part = slice(start, start + 1000)
        total[part] = np.cos(places[part] @ frequency.T + phase).sum(axis=1)
    return np.sqrt(2.0 / waves) * total


def treatments(data: xr.Dataset, limit: float) -> Iterator[tuple[str, xr.Dataset, dict]]:
    """Yield each treatment: its name, the data as it takes them, and options of the fit."""
    below = data["v0"] <= limit
    stored = data.assign(v0=data["v0"].where(~below, limit), below=below)
    yield AS_INTERVALS, stored, {"censored": {"v0": "below"}}
    yield HALVED, data.assign(v0=data["v0"].where(~below, 0.5 * limit)), {}
    yield DROPPED, data.assign(v0=data["v0"].where(~below)), {}
    yield KNOWN, data, {}


def run(seed: int, sites: int, hidden: int) -> Iterator[dict[str, object]]:
    """Yield how each treatment did in one world."""
    truth, tests, limit = world(seed, sites, hidden)
    others = [name for name in truth.data_vars if name != "v0"]
    targets = tests.drop_vars("v0")
    for name, data, options in treatments(truth, limit):
        began = time.process_time()
        model = xcopula.fit(
            data, "v0", others, marginals="lognormal", kernels="matern32", structures=1, **options
        )
        spent = time.process_time() - began
        posterior = model.posterior(targets)
        crps, level = posterior.crps(tests["v0"]).values, posterior.cdf(tests["v0"]).values
        law, p = model.marginals[0].parameters, model.parameters
        yield {
            "seed": seed,
            "treatment": name,
            "crps": crps.mean(),
            "coverage": 100.0 * (np.abs(level - 0.5) <= 0.45).mean(),
            "length": float(p["length_scale"].values.ravel()[0]),
            "nugget": float(p["nugget"].values.ravel()[0]),
            "location": law["location"] if "location" in law else law["mu"],
            "scale": law["scale"] if "scale" in law else law["sigma"],
            "seconds": spent,
        }


def collect(seeds: int, sites: int, hidden: int, kept: Path | None) -> pd.DataFrame:
    """Return a row for each world and treatment; whole worlds of a file are not done again."""
    done = pd.read_csv(kept).to_dict("records") if kept and kept.exists() else []
    rows = [row for row in done if row["seed"] < seeds]
    for seed in range(seeds):
        if sum(row["seed"] == seed for row in rows) == len(TREATMENTS):
            continue
        rows = [row for row in rows if row["seed"] != seed]
        for row in run(seed, sites, hidden):
            rows.append(row)
            if kept:
                pd.DataFrame(rows).to_csv(kept, index=False)
    return pd.DataFrame(rows)


def table(rows: pd.DataFrame) -> str:
    """Return means over worlds, and CRPS against intervals in per cent, paired."""
    wide = rows.pivot(index="seed", columns="treatment", values="crps")
    heads = ["treatment", "worlds", "CRPS", "against intervals", "coverage of 90 %", "length (km)"]
    heads += ["nugget", "location", "scale", "CPU s"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, own in rows.groupby("treatment", sort=False):
        gap = 100.0 * (wide[name] / wide[AS_INTERVALS] - 1.0)
        cells = [name, str(len(own)), f"{own['crps'].mean():.4f}"]
        cells.append(f"{gap.mean():+.1f} ± {gap.sem():.1f} %" if gap.any() else "")
        cells.append(f"{own['coverage'].mean():.1f} ± {own['coverage'].sem():.1f} %")
        cells += [f"{own['length'].mean():.1f}", f"{own['nugget'].mean():.3f}"]
        cells += [f"{own[k].mean():+.3f}" for k in ("location", "scale")]
        cells.append(f"{own['seconds'].mean():.1f}")
        lines.append(f"| {' | '.join(cells)} |")
    truth = f"length {LENGTH:.0f} km, nugget {NUGGET}, location 0 and scale {SCALE} of logarithms"
    return "\n".join([*lines, f"\nTruth: {truth}.\n"])


def main() -> None:
    """Run worlds, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=20, help="worlds; 20 by default")
    parser.add_argument("--values", type=int, default=SITES, help="sites of a world")
    parser.add_argument("--rows", type=Path, help="a CSV file to which each fit is added")
    asked = parser.parse_args()
    sites, hidden, seeds = (40, 20, 1) if asked.quick else (asked.values, HIDDEN, asked.seeds)
    hidden = max(hidden, sites // 20)
    print(table(collect(seeds, sites, hidden, asked.rows)))


if __name__ == "__main__":
    main()
