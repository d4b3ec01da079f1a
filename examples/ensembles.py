"""Areas above a limit, and cells against points: the pictures of ``docs/ensembles.md``.

Run as ``python examples/ensembles.py``; it takes half a minute. A map of medians says one thing
about the area with too much cadmium, draws that keep the errors of neighbours together another.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import xcopula
from xcopula.prediction.posterior import Posterior

LIMIT = 0.8  # mg/kg
SIDE = 5  # small cells along the side of a large one
LAWS = {"Cd": "lognormal", "Ni": "gamma", "Zn": "lognormal"}


def to_cells(draws: xr.DataArray, dims: tuple[str, ...]) -> xr.DataArray:
    """Return the mean of each large cell."""
    large = draws.coarsen(dict.fromkeys(dims, SIDE), boundary="trim").mean()
    return large.rename({d: f"cell_{d}" for d in dims})


def show_draws(posterior: Posterior, samples: xr.Dataset) -> Figure:
    """Draw the median beside two realizations, in the same colours."""
    fields = {"median": posterior.median()}
    for field in posterior.sample(2, seed=0):
        fields[f"realization {int(field['realization'])}"] = field
    figure = Figure(figsize=(9.6, 4.0), layout="compressed")
    axes = figure.subplots(1, 3, sharey=True)
    for ax, (title, field) in zip(axes, fields.items(), strict=True):
        image = ax.pcolormesh(field["x"], field["y"], field, vmin=0.0, vmax=4.0, rasterized=True)
        ax.plot(samples["x"], samples["y"], "o", ms=1.2, mew=0, color="white")
        ax.set_title(title, loc="left", fontsize=10)
        ax.set(xlabel="x, km", aspect=1.0)
        ax.tick_params(labelsize=8)
    axes[0].set_ylabel("y, km")
    figure.colorbar(image, ax=axes, label="cadmium, mg/kg", shrink=0.8, extend="max")
    return figure


def show_areas(ax: Axes, areas: xr.Dataset, naive: xr.DataArray) -> None:
    """Draw the intervals of areas by rock, and what the map of medians says."""
    height = np.arange(areas.sizes["region"])
    low, middle, high = areas["quantiles"].transpose("quantile", "region").values
    ax.hlines(height, low, high, lw=5, alpha=0.4, label="draws: 90 % interval")
    ax.plot(middle, height, "o", label="draws: median")
    ax.plot(naive, height, "x", color="C3", label="cells with a median above")
    ax.set_yticks(height, areas["region"].values)
    ax.set(xlabel=f"area above {LIMIT} mg/kg, km²", xlim=(0.0, None))
    ax.legend(fontsize=8, loc="lower right", frameon=False)


def show_cells(ax: Axes, means: xr.DataArray, medians: xr.DataArray) -> None:
    """Draw means of cells against medians at their centres."""
    ax.plot(medians, means, "o", ms=3, mew=0, alpha=0.6, color="C0")
    top = float(means.max())
    ax.plot([0.0, top], [0.0, top], color="0.5", lw=1)
    ax.set(
        xlabel="median at the centre, mg/kg",
        ylabel=f"mean of the cell of {50 * SIDE} m, mg/kg",
        aspect=1.0,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit cadmium, ask for areas and for means of cells, print and draw them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("docs/ensembles"), help="folder")
    parser.add_argument("--quick", action="store_true", help="a small window and few draws")
    given = parser.parse_args(arguments)
    given.output.mkdir(parents=True, exist_ok=True)
    samples, grid = xcopula.datasets.jura(hide="Cd"), xcopula.datasets.jura_grid()
    if given.quick:
        samples, grid = samples[["Cd", "Ni"]], grid.isel(x=slice(30, 60), y=slice(40, 70))
        model = samples.mtcopula.fit("Cd", marginals="lognormal", kernels="matern32")
    else:
        model = samples.mtcopula.fit("Cd", ["Ni", "Zn"], marginals=LAWS, kernels="matern32")
    count = 10 if given.quick else 200
    posterior = model.posterior(grid, mask="inside")
    show_draws(posterior, samples).savefig(given.output / "draws.png", dpi=80)

    areas = posterior.area_above(LIMIT, regions=grid["rock"], n=count)
    medians = posterior.median()
    above = medians > LIMIT
    naive = xr.concat([above.where(grid["rock"] == r).sum() for r in areas["region"]], "region")
    naive = 0.05**2 * naive
    for rock, number in zip(areas["region"].values, naive.values, strict=True):
        low, middle, high = areas["quantiles"].sel(region=rock).values
        print(f"{rock}: {middle:.2f} km2 ({low:.2f} to {high:.2f}), by medians {number:.2f}")

    cells = posterior.reduce(to_cells, ("y", "x"), n=count)["mean"]
    middle = slice(SIDE // 2, None, SIDE)
    centres = medians.isel(y=middle, x=middle)
    centres = centres.isel(y=slice(cells.sizes["cell_y"]), x=slice(cells.sizes["cell_x"]))
    known = centres.notnull().values & cells.notnull().values
    points, means = centres.values[known], cells.values[known]
    print(f"{known.sum()} cells: mean {means.mean():.2f}, median at the centre {points.mean():.2f}")
    figure = Figure(figsize=(9.6, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    show_areas(left, areas, naive)
    show_cells(right, xr.DataArray(means), xr.DataArray(points))
    figure.savefig(given.output / "areas.png", dpi=80)


if __name__ == "__main__":
    main()
