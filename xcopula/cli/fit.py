"""Fit a model to the data of a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from xcopula.cli import progress
from xcopula.cli.cluster import cluster, cluster_options
from xcopula.cli.inputs import InputPath, read_data
from xcopula.cli.options import Asked, fit_options
from xcopula.cli.outputs import check_output, output_option, overwrite_option

__all__ = ["fit"]


@click.command(short_help="Fit a model to data.")
@click.argument("data", type=InputPath)
@fit_options
@output_option("The model.")
@overwrite_option
@cluster_options
def fit(
    data: Path,
    config: Path | None,
    output: Path,
    overwrite: bool,
    scheduler: str | None,
    workers: int | None,
    **given: Any,
) -> None:
    """Fit a model to DATA: a NetCDF file, a Zarr store or a table of text (.csv).

    In a table a row is a measurement and a column a variable or a coordinate. Empty cells are gaps.
    Dates are written as 2024-05-31. "<0.2" is a value below 0.2, and ">50" one above 50.

    \b
    Examples:
      xcopula fit samples.csv --primary Cd --secondary Ni --secondary Zn -o model.nc
      xcopula fit stations.csv --coords lon --coords lat --coords time \\
          --primary rain --marginal rain=~elevation -o model.nc
    """
    check_output(output, [data, config], overwrite=overwrite)
    asked = Asked.of(config, given)
    dataset = read_data(data, asked.coordinates, asked.names, flags=asked.flags)
    asked.check_signs(dataset)

    import xcopula

    with cluster(scheduler, workers) as on_cluster:
        others = f" with {', '.join(asked.secondary)}" if asked.secondary else ""
        click.echo(f"Fitting {asked.primary}{others}: the first run compiles for some seconds.")
        began = time.perf_counter()
        watched = progress.fit_options(on_cluster=on_cluster)
        model = xcopula.fit(dataset, asked.primary, asked.secondary, **asked.options, **watched)
    assert isinstance(model, xcopula.CopulaModel)
    progress.told(model, began)
    click.echo(model.summary())
    model.save(output, overwrite=overwrite)
    click.echo(f"\nWrote {output}.")
