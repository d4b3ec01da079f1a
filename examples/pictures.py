"""Make every picture of a model and of a posterior, as ``docs/pictures.md`` shows them.

Run as ``python examples/pictures.py``; it takes about a minute. Cadmium in the Swiss Jura with
nickel and zinc; the maximum temperature in Colorado in the spring of 1985, by elevation; a toy on
a line.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import xcopula

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIMIT = 0.8  # mg/kg of cadmium, above which soil counts as polluted
# Given laws and kernels make a fit quick, and worse.
QUICK: dict[str, Any] = {"kernels": "matern32", "coupling": "icm", "structures": 1}


def of_jura(options: dict[str, Any], *, quick: bool) -> Iterator[tuple[str, Figure]]:
    """Yield the pictures of a model of cadmium, by name."""
    samples = xcopula.datasets.jura(hide="Cd")
    laws = {"marginals": "lognormal"} if quick else {}
    model = samples.mtcopula.fit("Cd", ["Ni", "Zn"], **options, **laws)
    print(model.summary(), "\n")
    yield "correlations", model.plot.correlations()
    yield "laws", model.plot.laws()
    yield "loo", model.plot.loo()
    yield "pit", model.plot.pit()
    yield "reliability", model.plot.reliability(LIMIT)
    grid = xcopula.datasets.jura_grid()
    step = 4 if quick else 1
    grid = grid.isel(x=slice(None, None, step), y=slice(None, None, step))
    posterior = model.posterior(grid, mask="inside")
    yield "map", posterior.plot.map(sites=samples)
    yield "exceedance", posterior.plot.exceedance(LIMIT, sites=samples)
    yield "information", posterior.plot.information()
    withheld = xcopula.datasets.jura().query(site="split == 'validation'")
    yield "points", model.posterior(withheld).plot.exceedance(LIMIT)


def of_colorado(options: dict[str, Any], *, quick: bool) -> Iterator[tuple[str, Figure]]:
    """Yield the pictures of a model of three months, by name."""
    spring = xcopula.datasets.colorado().sel(time=slice("1985-03", "1985-05"))
    if quick:
        spring = spring.isel(station=slice(None, None, 4))
    law = xcopula.by("time.month", xcopula.regress("normal", on="elevation"))
    model = spring.mtcopula.fit("tmax", marginals=law, **options)
    print(model.summary(), "\n")
    yield "lags", model.plot.correlations()
    yield "varying", model.plot.laws()
    step = 12 if quick else 2
    grid = xcopula.datasets.colorado_grid()
    grid = grid.isel(lat=slice(None, None, step), lon=slice(None, None, step))
    april = grid.assign_coords(time=spring["time"].isel(time=1))
    yield "date", model.posterior(april).plot.map(sites=spring)


def of_toy(options: dict[str, Any]) -> Iterator[tuple[str, Figure]]:
    """Yield the picture of a line."""
    toy = xcopula.datasets.toy()
    model = toy.mtcopula.fit("primary", "cotask", **options)
    line = xcopula.datasets.toy_truth(np.linspace(0.0, 1.0, 201))[["x"]]
    yield "line", model.posterior(line).plot.map(sites=toy)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the pictures as PNG files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/pictures"), help="folder")
    parser.add_argument("--quick", action="store_true", help="coarser, for a test")
    given = parser.parse_args(arguments)
    given.output.mkdir(parents=True, exist_ok=True)
    options = QUICK if given.quick else {}
    for pictures in (
        of_jura(options, quick=given.quick),
        of_colorado(options, quick=given.quick),
        of_toy(options),
    ):
        for name, figure in pictures:
            figure.savefig(given.output / f"{name}.png", dpi=40 if given.quick else 90)
    print(f"Wrote {len(list(given.output.glob('*.png')))} pictures to {given.output}.")


if __name__ == "__main__":
    main()
