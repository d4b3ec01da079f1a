"""The worked example."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from xcopula.cli.cluster import on_terminal
from xcopula.cli.files import overwrite_option
from xcopula.cli.fit import fit_with_summary
from xcopula.cli.options import FitOptions

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["demo"]


@click.command(short_help="Map cadmium in the Swiss Jura.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Folder for the NetCDF file and the map.",
)
@overwrite_option
def demo(output: Path, overwrite: bool) -> None:
    """Map cadmium in the Swiss Jura from 259 samples, with nickel and zinc at 359.

    \b
    Example:
      xcopula demo -o demo
    """
    from xcopula.storage import check_free, write_figure, write_netcdf

    grid_file, map_file = output / "cadmium.nc", output / "cadmium.png"
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(
            f"The folder {output} cannot be created: {error.strerror}. "
            "Choose another with --output."
        ) from None
    for path in (grid_file, map_file):
        try:
            check_free(path, overwrite=overwrite)
        except OSError as error:
            if not isinstance(error, FileExistsError):
                error.add_note("Choose another folder with --output.")
            raise

    import xcopula

    samples, grid = xcopula.datasets.jura(hide="Cd"), xcopula.datasets.jura_grid()
    progress = on_terminal()
    model = fit_with_summary(samples, FitOptions("Cd", ["Ni", "Zn"], {}), progress=progress)
    began = time.perf_counter()
    predicted = model.predict(grid, [0.05, 0.5, 0.95], mask="inside", progress=progress)
    cells = int(grid["inside"].sum())
    click.echo(f"\nPredicted {cells} cells in {time.perf_counter() - began:.1f} s.")

    withheld = xcopula.datasets.jura().query(site="split == 'validation'")
    click.echo(_score(model.predict(withheld)["Cd"], withheld["Cd"]))

    predicted = predicted.assign_attrs(title=grid.attrs.get("title", ""))
    figure = xcopula.plot.prediction_map(predicted, "Cd", sites=samples[["Cd"]].dropna("site"))
    write_netcdf(predicted, grid_file, overwrite=overwrite)
    write_figure(figure, map_file, overwrite=overwrite, dpi=150)
    click.echo(f"Wrote {grid_file} and {map_file}.")


def _score(predicted: xr.DataArray, observed: xr.DataArray) -> str:
    lower, median, upper = predicted
    error = abs(median - observed).mean()
    inside = ((observed >= lower) & (observed <= upper)).mean()
    return (
        f"At the 100 withheld sites: mean absolute error {float(error):.3f} mg/kg, "
        f"{100 * float(inside):.0f} % of them within the 90 % band."
    )
