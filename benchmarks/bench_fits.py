"""Measure whole fits without options: CPU seconds, peak memory and evaluations of the last search.

Run as ``python benchmarks/bench_fits.py`` (``--quick`` takes small samples; names of fits choose
among them). Each fit runs in a process of its own, on one thread, after a small fit that compiles.
Seconds are also in units of the LAPACK work of one exact evaluation for 977 values, a factorisation
and an inverse, measured in the same process. ``--search quasi-newton`` hides the information matrix
from the search, which then has secant corrections only. Simulated panels have 50 stations or more.
"""

from __future__ import annotations

import os

# Before numpy: one thread, so that CPU seconds can be compared.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
import worlds
import xarray as xr

import xcopula
from xcopula.linalg import cholesky, inverse_from_cholesky

JURA = 977


@dataclass(frozen=True)
class Fit:
    """A fit: its data by a share of their full size, its options, and the budget in seconds."""

    data: Callable[[float], xr.Dataset]
    options: dict[str, Any]
    budget: str = ""
    predicts: bool = False


def jura(primary: str) -> Callable[[float], xr.Dataset]:
    """Return the metals, the primary at 259 sites."""
    return lambda share: xcopula.datasets.jura(hide=primary)


def scattered(values: int, variables: int = 1) -> Callable[[float], xr.Dataset]:
    """Return values of variables at common places of a plane."""
    return lambda share: worlds.scattered(0, int(share * values) // variables, variables).data


def panel(stations: int, times: int) -> Callable[[float], xr.Dataset]:
    """Return daily values at stations of a plane."""
    return lambda share: worlds.stations(0, stations, max(4, int(share * times)))


def globe(places: int, times: int, variables: int) -> Callable[[float], xr.Dataset]:
    """Return monthly values at places of the globe, whose fields are waves of chords and time."""

    def data(share: float) -> xr.Dataset:
        rng, count = np.random.default_rng(0), max(6, int(share * times))
        points = rng.normal(size=(places, 3))
        points /= np.linalg.norm(points, axis=1)[:, None]
        days = 30.0 * np.arange(count)
        fields = []
        for _ in range(variables):
            space = worlds.frequencies(rng, 1.5, 0.3, 3)
            time_ = worlds.frequencies(rng, 1.5, 120.0, 1)
            fields.append(worlds.waves(rng, space @ points.T, time_ * days))
        coords = {
            "lon": ("place", np.degrees(np.arctan2(points[:, 1], points[:, 0]))),
            "lat": ("place", np.degrees(np.arcsin(points[:, 2]))),
            "time": np.datetime64("2001-01-01", "ns") + days.astype(int) * np.timedelta64(1, "D"),
        }
        noisy = {
            f"v{k}": (("place", "time"), np.sqrt(0.9) * f + np.sqrt(0.1) * rng.normal(size=f.shape))
            for k, f in enumerate(worlds.mix(rng, fields, 0.7))
        }
        return xr.Dataset(noisy, coords)

    return data


FITS: dict[str, Fit] = {
    "Jura Cd with Ni, Zn": Fit(jura("Cd"), {"variables": ["Cd", "Ni", "Zn"]}, "20 x"),
    "the same, full": Fit(jura("Cd"), {"variables": ["Cd", "Ni", "Zn"], "method": "full"}, "45 x"),
    "Jura Cu with Pb, Ni, Zn": Fit(jura("Cu"), {"variables": ["Cu", "Pb", "Ni", "Zn"]}),
    "200 values": Fit(scattered(200), {}, "0.1 s"),
    "17,000 values, 50 stations, and a map": Fit(panel(50, 340), {}, "15 s", predicts=True),
    "38,000 values, 100 stations": Fit(panel(100, 380), {}, "60 s"),
    "75,000 values, 3 variables, globe and time": Fit(globe(250, 100, 3), {}, "100 s"),
    "105,000 values in space": Fit(scattered(105_000), {}, "25 s"),
    "100,000 values, 3 variables in space": Fit(scattered(99_999, 3), {}, "30 s"),
    "1,000,000 values in space": Fit(scattered(1_000_000), {}, "60 s"),
}


def run(fit: Fit, data: xr.Dataset) -> Any:
    """Fit, and predict the panel's first day on a grid where that is part of the work."""
    options = dict(fit.options)
    first, *rest = options.pop("variables", data.data_vars)
    model = xcopula.fit(data, first, rest, progress=False, **options)
    if fit.predicts:
        axis = np.linspace(0.0, 100.0, 100)
        grid = xr.Dataset(coords={c: (c, axis, worlds.KM) for c in "xy"})
        model.predict(grid.assign_coords(time=data["time"][:10]))
    return model


def lapack() -> float:
    """Return the CPU seconds of one factorisation and one inverse for 977 values."""
    matrix, times = np.eye(JURA) + 0.1, []
    for _ in range(6):
        began = time.process_time()
        inverse_from_cholesky(cholesky(lambda: matrix.copy(), str)[0])
        times.append(time.process_time() - began)
    return min(times)


def without_information() -> None:
    """Hide the information matrix from the search."""
    from xcopula.fitting import alone, together

    penalised = alone.penalised
    for module in (alone, together):
        module.penalised = lambda process, objective, information=None: penalised(
            process, objective
        )


def one(name: str, share: float, search: str) -> None:
    """Run one fit and print its line."""
    if search != "newton":
        without_information()
    fit = FITS[name]
    data = fit.data(share)
    if data[next(iter(data.data_vars))].size < 3000:
        run(fit, data)
    else:
        small = {d: slice(0, 40) for d in data.dims if d != "time"} | {"time": slice(0, 6)}
        part = data.isel({d: s for d, s in small.items() if d in data.dims})
        for solver in ("exact", "neighbours"):
            run(Fit(fit.data, {**fit.options, "solver": solver}, predicts=fit.predicts), part)
    unit, began = lapack(), time.process_time()
    model = run(fit, data)
    seconds = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"| {name} | {model.observations.sample.size:,} | {seconds:.2f} | {seconds / unit:.0f} "
        f"| {fit.budget} | {model.evaluations} | {model.log_likelihood:.2f} | {peak:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the values")
    parser.add_argument("--search", choices=("newton", "quasi-newton"), default="newton")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(FITS)}; all by default")
    options = parser.parse_args()
    share = 0.02 if options.quick else 1.0
    if options.one:
        with dask.config.set(scheduler="synchronous"):
            one(options.one, share, options.search)
        return
    heads = ("fit", "values", "CPU s", "x LAPACK", "budget", "evaluations", "log-likelihood", "MB")
    print(f"search by {options.search}\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for name in options.names or FITS:
        command = [sys.executable, __file__, "--one", name, "--search", options.search]
        command += ["--quick"] * options.quick
        done = subprocess.run(command, capture_output=True, text=True)
        print(done.stdout.rstrip() if done.returncode == 0 else done.stderr, flush=True)


if __name__ == "__main__":
    main()
