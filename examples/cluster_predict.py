"""Predict a large grid on a dask cluster and write it to Zarr, block by block.

python examples/cluster_predict.py cadmium.zarr --scheduler tcp://10.0.0.1:8786 --side 10000

Without ``--scheduler`` a cluster of local processes is started. Every worker needs xcopula, and
must see the folder of the output.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

import numpy as np
import xarray as xr
from distributed import Client, LocalCluster, progress, wait

import xcopula


def make_grid(samples: xr.Dataset, side: int) -> xr.Dataset:
    """Return a square grid of cells over the extent of the samples."""
    axes = {}
    for name in ("y", "x"):
        low, high = float(samples[name].min()), float(samples[name].max())
        axes[name] = (name, np.linspace(low, high, side), samples[name].attrs)
    return xr.Dataset(coords=axes)


def write_zarr(prediction: xr.Dataset, path: Path) -> None:
    """Write to a sibling and rename it, so that the path holds a whole prediction or none."""
    temporary = path.with_name(f".{path.name}.part")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        # compute=False writes the coordinates now and leaves the blocks to the cluster.
        written = prediction.to_zarr(temporary, compute=False, consolidated=False).persist()
        progress(written)
        wait(written)
        written.compute()  # raises what went wrong on a worker, if anything did
        if path.exists():
            shutil.rmtree(path)
        temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path, help="Zarr store to write")
    parser.add_argument("--scheduler", help="address, such as tcp://10.0.0.1:8786")
    parser.add_argument("--workers", type=int, default=2, help="processes of a local cluster")
    parser.add_argument("--side", type=int, default=4000, help="cells along each side")
    parser.add_argument("--chunk", type=int, default=1000, help="cells along each side of a block")
    parser.add_argument("--overwrite", action="store_true", help="replace the output")
    parser.add_argument("--quick", action="store_true", help="few samples, few cells")
    options = parser.parse_args()
    if options.quick:
        options.side, options.chunk = 60, 30
    if options.output.exists() and not (options.overwrite and options.output.is_dir()):
        parser.error(f"{options.output} exists. Choose another name; --overwrite replaces a store.")
    if not options.output.absolute().parent.is_dir():
        parser.error(f"The folder of {options.output} does not exist. Create it first.")
    return options


def run(options: argparse.Namespace) -> None:
    samples = xcopula.datasets.jura(hide="Cd").isel(
        site=slice(None, None, 6 if options.quick else 2)
    )
    model = xcopula.fit(samples, "Cd", "Ni", marginals="lognormal", kernels="matern32")
    grid = make_grid(samples, options.side)
    prediction = model.predict(grid, chunks=options.chunk)
    print(
        f"{prediction['Cd'].data.npartitions} blocks, {prediction.nbytes / 1e9:.2f} GB of results"
    )
    began = time.perf_counter()
    write_zarr(prediction, options.output.absolute())
    seconds = time.perf_counter() - began
    cells = options.side**2
    print(f"\nwrote {options.output}: {cells:,} cells in {seconds:.1f} s")
    print(f"{cells / seconds:,.0f} cells per second")


def main() -> None:
    options = parse()
    if options.scheduler:
        with Client(options.scheduler):
            run(options)
        return
    cluster = LocalCluster(n_workers=options.workers, threads_per_worker=1, dashboard_address=":0")
    with cluster, Client(cluster):
        run(options)


if __name__ == "__main__":
    main()
