"""A field that is longer in one direction: the picture of ``docs/coordinates.md``.

Run as ``python examples/directions.py``; it takes some seconds. The truth is drawn on a grid, with
ranges four times as long along N 52 E as across, and known at 80 sites. One model has the same
range in all directions, the other is anisotropic.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

import xcopula

EXTENT, BEARING, LONG, SHORT = 100.0, 52.0, 40.0, 10.0  # km, degrees, km, km
KM = {"units": "km"}


def draw_truth(size: int, seed: int = 0) -> xr.Dataset:
    """Draw a skewed field on a grid: the exponential of a Gaussian one."""
    axis = np.linspace(0.0, EXTENT, size)
    east, north = (a.ravel() for a in np.meshgrid(axis, axis))
    b = np.deg2rad(BEARING)
    along = (np.sin(b) * east + np.cos(b) * north) / LONG
    across = (np.cos(b) * east - np.sin(b) * north) / SHORT
    r = np.sqrt(3.0) * np.hypot(along[:, None] - along, across[:, None] - across)
    factor = np.linalg.cholesky((1.0 + r) * np.exp(-r) + 1e-6 * np.eye(r.shape[0]))
    z = factor @ np.random.default_rng(seed).normal(size=r.shape[0])
    field = np.exp(0.7 * z).reshape(size, size)
    return xr.Dataset(
        {"dust": (("y", "x"), field, {"units": "mg/kg"})},
        coords={"x": ("x", axis, KM), "y": ("y", axis, KM)},
    )


def sample(truth: xr.Dataset, count: int, seed: int = 1) -> xr.Dataset:
    """Return the field at some cells, as sites."""
    stacked = truth.stack(site=("y", "x")).reset_index("site")
    chosen = np.random.default_rng(seed).permutation(stacked.sizes["site"])[:count]
    sites = stacked.isel(site=np.sort(chosen))
    return sites.assign_coords(x=sites["x"].assign_attrs(KM), y=sites["y"].assign_attrs(KM))


def compare(
    panels: Mapping[str, xr.DataArray], sites: xr.Dataset, model: xcopula.CopulaModel
) -> Figure:
    """Draw fields side by side in the same colours, and the fitted ranges."""
    figure = Figure(figsize=(3.6 * len(panels), 3.7), layout="compressed")
    axes = figure.subplots(1, len(panels), sharey=True)
    top = float(panels["truth"].quantile(0.98))
    for ax, (title, field) in zip(axes, panels.items(), strict=True):
        image = ax.pcolormesh(field["x"], field["y"], field, vmin=0.0, vmax=top, rasterized=True)
        ax.plot(sites["x"], sites["y"], "o", ms=2.2, mew=0, color="white")
        ax.set_title(title, loc="left", fontsize=10)
        ax.set(xlabel="x, km", aspect=1.0, xlim=(0.0, EXTENT), ylim=(0.0, EXTENT))
        ax.tick_params(labelsize=8)
    axes[0].set_ylabel("y, km")
    found = model.parameters.sel(group="space")
    length, root = float(found["length_scale"].squeeze()), float(found["anisotropy_ratio"]) ** 0.5
    ellipse = Ellipse(
        (0.5 * EXTENT, 0.5 * EXTENT),
        2.0 * length * root,
        2.0 * length / root,
        angle=90.0 - float(found["anisotropy_angle"]),
        fill=False,
        color="white",
        lw=1.5,
    )
    axes[-1].add_patch(ellipse)
    figure.colorbar(image, ax=axes, label="dust, mg/kg", shrink=0.8, extend="max")
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw the truth, fit both models, print their errors and draw them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("docs/coordinates"), help="folder")
    parser.add_argument("--quick", action="store_true", help="a coarse grid")
    given = parser.parse_args(arguments)
    given.output.mkdir(parents=True, exist_ok=True)
    truth = draw_truth(16 if given.quick else 50)
    sites = sample(truth, 80)
    options = {"marginals": "lognormal", "kernels": "matern32"}
    grid = truth.drop_vars("dust")
    panels = {"truth": truth["dust"]}
    for title, anisotropy in (("isotropic", False), ("anisotropic", True)):
        model = sites.mtcopula.fit("dust", anisotropy=anisotropy, **options)
        panels[title] = model.predict(grid, 0.5)["dust"].squeeze(drop=True)
        error = float(np.abs(panels[title] - truth["dust"]).mean())
        print(f"{title}: mean error {error:.3f} mg/kg\n{model.summary()}\n")
    compare(panels, sites, model).savefig(given.output / "directions.png", dpi=90)


if __name__ == "__main__":
    main()
