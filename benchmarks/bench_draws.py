"""Measure draws of a posterior: how right, how fast, how much memory, on how many workers.

Run as ``python benchmarks/bench_draws.py STAGE`` (``--quick`` for the smallest case of each):

* ``moments``: 4,000 draws of the prior of every family, coupling, number of variables and of
  dimensions, against its covariance.
* ``peers``: conditional draws on a grid, beside those of GSTools, which is asked in a process of
  its own: ``--gstools`` names the Python that has it.
* ``stream``: the area above a threshold by region, on a large grid, streamed by one worker process
  and by two, with the memory that they take.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import xarray as xr

import xcopula
from xcopula.kernels import KERNELS
from xcopula.kernels.covariance import COUPLINGS, Covariance, InputGroup
from xcopula.process import paths
from xcopula.process.paths import Prior, site_keys

KM = {"units": "km"}
GIVEN = {"marginals": "normal", "kernels": "matern32", "uncertainty": "plugin"}

# What GSTools does: simple kriging with the same covariance, then draws of as many waves.
SCRIPT = """
import sys, time
import gstools
import numpy as np
data = np.load(sys.argv[1])
model = gstools.Matern(dim=2, nu=1.5, var=1 - data["nugget"], len_scale=data["length"],
                       nugget=data["nugget"], rescale=np.sqrt(3))
krige = gstools.krige.Simple(model, cond_pos=data["sites"], cond_val=data["values"])
draws = gstools.CondSRF(krige, mode_no=2048)
draws.set_pos([data["x"], data["y"]], "structured")
draws(seed=0)
began = time.process_time()
for seed in range(int(sys.argv[2])):
    draws(seed=seed)
print(time.process_time() - began)
"""


def field(values: int, seed: int = 0) -> xr.Dataset:
    """Return scattered values of a smooth field on 100 by 100 km."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(0.0, 100.0, (2, values))
    v = np.sin(x / 9.0) + np.cos(y / 7.0) + 0.3 * rng.normal(size=values)
    return xr.Dataset({"v": ("site", v)}, {"x": ("site", x, KM), "y": ("site", y, KM)})


def grid(side: int) -> xr.Dataset:
    """Return a square grid of the field."""
    along = np.linspace(0.0, 100.0, side)
    return xr.Dataset(coords={"y": ("y", along, KM), "x": ("x", along, KM)})


def moments(quick: bool) -> None:
    """Compare the covariance of draws with the model's, and their kurtosis with three."""
    draws, points = (500 if quick else 4000), 5
    paths.WAVES = 128  # over draws the covariance is exact whatever their number
    cases = list(itertools.product(KERNELS, COUPLINGS, (1, 2, 3), (1, 2, 3)))
    print(f"Errors are in standard errors of {draws} draws; the largest is of all entries.\n")
    print("| kernel | coupling | cases | largest error | rms error | kurtosis |")
    print("|---|---|---|---|---|---|")
    for kernel, coupling in itertools.product(KERNELS, COUPLINGS):
        errors, kurtosis = [], []
        mine = [c for c in cases if c[:2] == (kernel, coupling)]
        for _, _, tasks, dimension in mine[:1] if quick else mine:
            rng = np.random.default_rng([tasks, dimension])
            own = Covariance((KERNELS[kernel],) * tasks, (InputGroup(dimension),), coupling)
            theta = 0.5 * rng.normal(size=own.size)
            x = rng.uniform(-0.5, 0.5, (dimension, points))
            prior, keys = Prior.of(own, theta), site_keys(np.arange(points))
            rows = []
            for r in range(draws):
                waves = prior.draw(0, r)
                rows.append([waves.at(x, i) + prior.nuggets(i, keys, 0, r) for i in range(tasks)])
            drawn = np.array(rows).reshape(draws, -1)
            want = _covariance(own, theta, x)
            off = (drawn.T @ drawn / draws - want) / np.sqrt((1.0 + want**2) / draws)
            errors.append(off[np.tril_indices_from(off)])
            kurtosis.append(((drawn**4).mean(axis=0) / (drawn**2).mean(axis=0) ** 2).mean())
        every = np.concatenate(errors)
        print(
            f"| {kernel} | {coupling} | {len(errors)} | {abs(every).max():.2f} of {every.size} | "
            f"{np.sqrt((every**2).mean()):.2f} | {np.mean(kurtosis):.2f} |",
            flush=True,
        )


def _covariance(own: Covariance, theta: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the covariance of all variables at common sites."""
    from xcopula.kernels.assembly import lower, scaled_inputs

    state, count = own.state(theta), x.shape[1]
    inputs = scaled_inputs(np.tile(x, own.tasks), state)
    sites = np.tile(np.arange(count), own.tasks)
    matrix = np.tril(lower(state, inputs, sites, count * np.arange(own.tasks + 1)))
    return matrix + np.tril(matrix, -1).T


def peers(quick: bool, gstools: str) -> None:
    """Time conditional draws on a grid, with one core, beside GSTools."""
    known = subprocess.run([gstools, "-c", "import gstools"], capture_output=True, check=False)
    print("| values | cells | xcopula, exact | xcopula, neighbours | GSTools |")
    print("|---|---|---|---|---|")
    for values, side, draws in [(100, 40, 2)] if quick else [(200, 200, 20), (1000, 300, 20)]:
        data, own = field(values), {}
        for solver in ("exact", "neighbours"):
            model = xcopula.fit(data, "v", solver=solver, anisotropy=False, **GIVEN)
            posterior = model.posterior(grid(side))
            posterior.sample(1)  # compiled loops are loaded, means known
            began = time.process_time()
            posterior.sample(draws)
            own[solver] = (time.process_time() - began) / draws
            if solver == "exact":
                told = model.parameters
        other = "not installed"
        if known.returncode == 0:
            other = f"{_gstools(gstools, data, told, side, draws):.3f} s"
        row = " | ".join(f"{seconds:.3f} s" for seconds in own.values())
        print(f"| {values:,} | {side**2:,} | {row} | {other} |", flush=True)


def _gstools(python: str, data: xr.Dataset, parameters: xr.Dataset, side: int, draws: int) -> float:
    """Return the CPU seconds of a draw of GSTools, at the parameters of a fit."""
    nugget, length = (float(parameters[n].values.ravel()[0]) for n in ("nugget", "length_scale"))
    along = np.linspace(0.0, 100.0, side)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        places = np.stack([data["x"].values, data["y"].values])
        values = (data["v"] - data["v"].mean()).values
        np.savez(path, sites=places, values=values, x=along, y=along, nugget=nugget, length=length)
        command = [python, "-c", SCRIPT, str(path), str(draws)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1]) / draws


def stream(quick: bool) -> None:
    """Time the area above a threshold by region, by one worker process and by two."""
    from dask.distributed import Client, LocalCluster

    values, side, chunk, draws = (200, 100, 50, 20) if quick else (1000, 1000, 250, 200)
    model = xcopula.fit(field(values), "v", anisotropy=False, solver="exact", **GIVEN)
    target = grid(side)
    part = (np.arange(side) * 4 // side)[:, None] * 5 + (np.arange(side) * 5 // side)[None, :]
    regions = xr.DataArray(part, dims=("y", "x"), coords=target.coords, name="region")
    times = {}
    for workers in (1, 2):
        with (
            LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=":0"
            ) as cluster,
            Client(cluster) as client,
            _Peak(client) as peak,
        ):
            small = model.posterior(target.isel(x=slice(60), y=slice(60)), chunks=30)
            client.gather(
                [
                    client.submit(_warm, model, pure=False, workers=[w])
                    for w in client.scheduler_info()["workers"]
                ]
            )
            small.area_above(1.0, n=4).compute()
            began = time.perf_counter()
            posterior = model.posterior(target, chunks=chunk)
            found = posterior.area_above(1.0, regions=regions, n=draws).compute()
            times[workers] = time.perf_counter() - began
        print(
            f"{workers} worker{'s' * (workers > 1)}: {draws} draws of {side**2:,} cells in "
            f"{times[workers]:.1f} s, at most {peak.most / 1e6:.0f} MB each; the ensemble would "
            f"take {8e-9 * draws * side**2:.2f} GB",
            flush=True,
        )
    print(f"two workers against one: {times[1] / times[2]:.2f} x")
    first = found.isel(region=0)
    print(
        f"region 0: {float(first['mean']):.0f} km2 above, 90 % between "
        f"{float(first['quantiles'][0]):.0f} and {float(first['quantiles'][-1]):.0f} km2"
    )


def _warm(model: xcopula.CopulaModel) -> None:
    """Load compiled loops in a worker."""
    model.posterior(grid(8)).sample(1)


class _Peak:
    """The most memory that a worker of a cluster has, while it is watched."""

    def __init__(self, client: object) -> None:
        self.client, self.most, self.over = client, 0.0, threading.Event()
        self.thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while not self.over.wait(0.5):
            told = self.client.scheduler_info(n_workers=-1)["workers"].values()
            self.most = max([self.most, *(w["metrics"].get("memory", 0.0) for w in told)])

    def __enter__(self) -> _Peak:
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self.thread.join()


def main() -> None:
    """Run a stage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage", choices=["moments", "peers", "stream"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--gstools", default=sys.executable, help="a Python that has GSTools")
    asked = parser.parse_args()
    if asked.stage == "peers":
        peers(asked.quick, asked.gstools)
    else:
        {"moments": moments, "stream": stream}[asked.stage](asked.quick)


if __name__ == "__main__":
    main()
