"""Add observations to a model without a refit."""

from __future__ import annotations

from pathlib import Path

import click

from xcopula.cli.inputs import InputPath, read_data, read_model
from xcopula.cli.outputs import check_output, output_option, overwrite_option

__all__ = ["condition"]


@click.command(short_help="Add observations, without a refit.")
@click.argument("model", type=InputPath)
@click.argument("new", type=InputPath)
@click.option(
    "--replace", is_flag=True, help="New values take the place of old ones at their site."
)
@click.option(
    "--as-stored",
    is_flag=True,
    help="Take all new values as they are stored. Else limits are told as in the fit.",
)
@output_option("The model with the new observations.")
@overwrite_option
def condition(
    model: Path, new: Path, replace: bool, as_stored: bool, output: Path, overwrite: bool
) -> None:
    """Add the observations of NEW to MODEL: yesterday's model, today's hour.

    Parameters and laws stay as they were fitted. NEW has values of any of the model's variables.

    \b
    Examples:
      xcopula condition model.nc today.csv -o model2.nc
      xcopula condition model.nc corrected.nc --replace -o model2.nc
    """
    check_output(output, [new], overwrite=overwrite)
    fitted = read_model(model)
    flags = [p for v in fitted.variables if v.censored.kind == "flag" for p in v.censored.parts]
    data = read_data(new, numbers=fitted.tasks, known=fitted.coordinates.names, flags=flags)
    updated = fitted.condition(data, replace=replace, censored=None if as_stored else "auto")
    updated.save(output, overwrite=overwrite)
    before, after = (m.observations.sample.size for m in (fitted, updated))
    click.echo(f"The model had {before} observations and has {after}.")
    click.echo(f"Wrote {output}.")
