"""Fit a large sample on a dask cluster, predict from it, and write the result to Zarr.

python examples/cluster_fit.py filled.zarr --scheduler tcp://10.0.0.1:8786

Without ``--scheduler`` a cluster of two local processes is started. The sample is a simulated
satellite image of chlorophyll, full of clouds, with temperature as a secondary. Nothing is computed
here: the fit is a graph (``compute=False``), the prediction extends it, and the blocks are written
where they are computed. Every worker needs xcopula, and must see the folder of the output.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from cluster_predict import write_zarr
from distributed import Client, LocalCluster
from satellite import make_image, simulate

import xcopula


def make_sample(shape: tuple[int, int]) -> xr.Dataset:
    """Return chlorophyll between clouds, and a temperature that clouds do not hide, at fewer cells.

    The image is chunked: it is read where it is needed, chunk by chunk.
    """
    image = make_image(0, shape)
    rng = np.random.default_rng(1)
    signal = np.log(image["truth"]) - np.log(image["truth"]).mean()
    temperature = 18.0 - 1.5 * signal + 0.5 * simulate(rng, shape, 20.0)
    coarse = np.zeros(shape, bool)
    coarse[::3, ::3] = True
    temperature = temperature.where(coarse).assign_attrs(units="degC", long_name="temperature")
    return image[["chlorophyll"]].assign(temperature=temperature).chunk({"y": 100, "x": 100})


def run(sample: xr.Dataset, output: Path, client: Client) -> None:
    """Fit, predict and write."""
    print(f"{len(client.scheduler_info()['workers'])} workers")
    began = time.perf_counter()
    lazy = xcopula.fit(
        sample,
        "chlorophyll",
        "temperature",
        marginals={"chlorophyll": "lognormal", "temperature": "normal"},
        kernels="matern32",
        compute=False,
    )
    fitted = lazy.persist()  # the model stays on the cluster
    print(fitted.node.compute().summary())  # a copy, to look at
    print(f"\nfitted in {time.perf_counter() - began:.0f} s")
    began = time.perf_counter()
    # The image is its own target: cells that were seen keep their values.
    write_zarr(fitted.predict(sample), output.absolute())
    seconds = time.perf_counter() - began
    cells = sample["chlorophyll"].size
    print(f"\nwrote {output}: {cells:,} cells in {seconds:.0f} s")


def draw(sample: xr.Dataset, output: Path, picture: Path) -> None:
    """Draw what was seen beside what was written."""
    filled = xr.open_zarr(output, consolidated=False)["chlorophyll"].sel(quantile=0.5, drop=True)
    top = float(sample["chlorophyll"].quantile(0.99))
    titles = ["Chlorophyll between clouds", "Temperature, at every ninth cell", "Filled: median"]
    fields = [sample["chlorophyll"], sample["temperature"][::3, ::3], filled]
    figure, axes = plt.subplots(1, 3, figsize=(11, 2.8), layout="constrained", sharey=True)
    for ax, title, field in zip(axes, titles, fields, strict=True):
        limits = {} if field.name == "temperature" else {"vmin": 0.0, "vmax": top}
        image = ax.pcolormesh(field["x"], field["y"], field, rasterized=True, **limits)
        figure.colorbar(image, ax=ax, label=field.attrs["units"], shrink=0.8)
        ax.set_title(title, loc="left", fontsize=10)
        ax.set(xlabel="km", aspect="equal")
    figure.savefig(picture, dpi=90)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("output", type=Path, help="Zarr store to write")
    parser.add_argument("--scheduler", help="address, such as tcp://10.0.0.1:8786")
    parser.add_argument("--workers", type=int, default=2, help="processes of a local cluster")
    parser.add_argument("--quick", action="store_true", help="a small image")
    parser.add_argument("--picture", type=Path, help="also draw the result, as a PNG file")
    options = parser.parse_args(arguments)
    if options.output.exists():
        parser.error(f"{options.output} exists. Choose another name, or remove it.")
    sample = make_sample((60, 100) if options.quick else (300, 500))
    if options.scheduler:
        with Client(options.scheduler) as client:
            run(sample, options.output, client)
    else:
        # One thread each: a likelihood uses as many threads as OMP_NUM_THREADS says, and workers of
        # dask start with one.
        cluster = LocalCluster(
            n_workers=options.workers, threads_per_worker=1, dashboard_address=":0"
        )
        with cluster, Client(cluster) as client:
            run(sample, options.output, client)
    if options.picture:
        draw(sample, options.output, options.picture)


if __name__ == "__main__":
    main()
