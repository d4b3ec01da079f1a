"""Predict on the cells or points of a file."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xcopula.cli.cluster import block_progress, cluster, cluster_options
from xcopula.cli.files import (
    InputPath,
    check_output,
    checksum,
    make_grid,
    output_option,
    overwrite_option,
    read_data,
    write_dataset,
)
from xcopula.cli.options import numbers_by_name

if TYPE_CHECKING:
    import xarray as xr

    from xcopula.model import CopulaModel

__all__ = ["predict"]

# Blocks of a grid without chunks: some hundred thousand cells, a second or so for each.
_BLOCK = "16 MB"


@click.command(short_help="Predict on a grid or at points.")
@click.argument("model", type=InputPath)
@click.argument("grid", type=InputPath, required=False)
@click.option(
    "--axis",
    "axes",
    metavar="NAME=START:STOP:STEP",
    multiple=True,
    help="An axis of the grid in place of a file; repeatable. NAME=VALUE is one number or date.",
)
@click.option(
    "-q",
    "--quantile",
    "quantiles",
    type=float,
    multiple=True,
    default=(0.05, 0.5, 0.95),
    show_default=True,
    help="A level between 0 and 1; repeatable.",
)
@click.option(
    "--exceed",
    type=float,
    multiple=True,
    metavar="THRESHOLD",
    help="Also the probability of more than this, in the variable's units; repeatable.",
)
@click.option("--mean", is_flag=True, help="Also the mean.")
@click.option("--std", is_flag=True, help="Also the standard deviation.")
@click.option("--variable", metavar="NAME", help="Which variable; the primary by default.")
@click.option(
    "--of",
    type=click.Choice(["observation", "signal"]),
    default="observation",
    show_default=True,
    help="A value as it would be observed, or without the nugget.",
)
@click.option("--mask", metavar="NAME", help="A variable of GRID: cells where it is 0 are skipped.")
@click.option(
    "--chunks",
    metavar="[DIM=]CELLS",
    multiple=True,
    help="Size of the blocks that are computed and written at a time; repeatable.",
)
@output_option("The prediction.")
@overwrite_option
@click.option("--resume", is_flag=True, help="Go on with an interrupted .zarr output.")
@cluster_options
def predict(
    model: Path,
    grid: Path | None,
    axes: tuple[str, ...],
    chunks: tuple[str, ...],
    output: Path,
    overwrite: bool,
    resume: bool,
    scheduler: str | None,
    workers: int | None,
    **quantities: Any,
) -> None:
    """Predict with MODEL on GRID: a NetCDF file, a Zarr store or a table of points (.csv).

    The output has quantiles under the name of the variable, and on request NAME_exceedance,
    NAME_mean and NAME_std. Blocks are computed and written one after the other: grids may be larger
    than the memory. A .zarr output that was interrupted goes on with --resume.

    \b
    Examples:
      xcopula predict model.nc grid.nc -q 0.05 -q 0.5 -q 0.95 --exceed 0.8 -o out.nc
      xcopula predict model.nc --axis x=0:6:0.1 --axis y=0:6:0.1 -o out.zarr
    """
    if (grid is None) == (not axes):
        raise click.UsageError("Give a GRID or --axis options, and not both.")
    if resume and output.suffix != ".zarr":
        raise click.UsageError("--resume needs an output that ends in .zarr.")
    check_output(output, [model, grid], overwrite=overwrite)
    sizes = numbers_by_name(chunks, "--chunks", int)

    from xcopula.model import load

    fitted = load(model)
    target = make_grid(axes) if grid is None else read_data(grid, known=fitted.coordinates.names)
    options: dict[str, Any] = {}
    if output.suffix == ".zarr":
        options = {
            "resume": resume,
            "made_from": {
                "the model": checksum(model),
                "the grid": checksum(grid) if grid else json.dumps(axes),
                "the options": json.dumps({**quantities, "chunks": sizes}, sort_keys=True),
            },
        }
    with cluster(scheduler, workers) as on_cluster:
        began = time.perf_counter()
        result = _lazily(fitted, target, sizes or (None if target.chunks else _BLOCK), quantities)
        with block_progress(on_cluster=on_cluster):
            write_dataset(result, output, overwrite=overwrite, **options)
    first = next(iter(result.data_vars.values()))
    cells = math.prod(n for d, n in first.sizes.items() if d != "quantile")
    click.echo(f"Predicted {cells} cells in {time.perf_counter() - began:.1f} s.")
    click.echo(f"Wrote {output}.")


def _lazily(
    model: CopulaModel, target: xr.Dataset, chunks: Any, quantities: dict[str, Any]
) -> xr.Dataset:
    """Return the requested quantities, not computed yet."""
    import xarray as xr

    mask = quantities["mask"]
    if mask in target.variables and target[mask].dtype.kind in "iu":
        target = target.assign({mask: target[mask] != 0})
    posterior = model.posterior(
        target, variable=quantities["variable"], chunks=chunks, of=quantities["of"], mask=mask
    )
    arrays = [posterior.quantile(list(quantities["quantiles"]))]
    if quantities["exceed"]:
        arrays.append(posterior.exceedance(list(quantities["exceed"])))
    arrays += [getattr(posterior, name)() for name in ("mean", "std") if quantities[name]]
    return xr.merge(arrays, compat="override", join="exact", combine_attrs="override")
