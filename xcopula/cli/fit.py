"""Fit a model, cross-validate it, and add observations to it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from xcopula.cli.cluster import cluster, cluster_options, on_terminal
from xcopula.cli.files import (
    InputPath,
    check_output,
    output_option,
    overwrite_option,
    read_data,
    write_dataset,
)
from xcopula.cli.options import FitOptions, fit_options, numbers_by_name

if TYPE_CHECKING:
    import xarray as xr

    from xcopula.model import CopulaModel

__all__ = ["condition", "fit", "fit_with_summary", "validate"]


def fit_with_summary(data: xr.Dataset, options: FitOptions, *, progress: bool) -> CopulaModel:
    """Fit a model, and print the time, the likelihood and the summary."""
    from xcopula.fitting import fit
    from xcopula.model import CopulaModel
    from xcopula.model.summary import likelihood_of

    others = f" with {', '.join(options.secondary)}" if options.secondary else ""
    click.echo(f"Fitting {options.primary}{others}: the first run compiles for some seconds.")
    began = time.perf_counter()
    model = fit(data, options.primary, options.secondary, **options.options, progress=progress)
    assert isinstance(model, CopulaModel)
    click.echo(
        f"Fitted in {time.perf_counter() - began:.1f} s: "
        f"{likelihood_of(model)} {model.log_likelihood:.2f}, without priors.\n"
    )
    click.echo(model.summary())
    return model


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
    **options: Any,
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
    request = FitOptions.of(config, options)
    dataset = request.read(data)
    with cluster(scheduler, workers) as on_cluster:
        model = fit_with_summary(dataset, request, progress=on_terminal() and not on_cluster)
    model.save(output, overwrite=overwrite)
    click.echo(f"\nWrote {output}.")


@click.command(short_help="Cross-validate a model.")
@click.argument("data", type=InputPath)
@fit_options
@click.option(
    "--folds",
    default="10",
    show_default=True,
    metavar="WHICH",
    help="What is withheld together: a number of random folds, blocks, stations, time, or the name "
    "of a variable.",
)
@click.option("--count", type=int, metavar="N", help="How many blocks, stations or spans of time.")
@click.option(
    "--buffer",
    multiple=True,
    metavar="[GROUP=]DISTANCE",
    help="Use nothing within this distance of a withheld value; repeatable.",
)
@click.option(
    "--secondaries",
    type=click.Choice(["keep", "drop"]),
    default="keep",
    show_default=True,
    help="Whether the secondaries are known at the withheld places.",
)
@click.option("--refit/--fixed", default=True, help="Fit each fold anew (default), or fit once.")
@output_option("Predictions and scores of every value.", required=False)
@overwrite_option
@cluster_options
def validate(
    data: Path,
    config: Path | None,
    folds: str,
    count: int | None,
    buffer: tuple[str, ...],
    secondaries: Literal["keep", "drop"],
    refit: bool,
    output: Path | None,
    overwrite: bool,
    scheduler: str | None,
    workers: int | None,
    **options: Any,
) -> None:
    """Withhold values of DATA in folds, predict them from the rest, and print their scores.

    Blocks ask how well gaps are filled, stations how well a place without one is predicted.

    \b
    Examples:
      xcopula validate samples.csv --primary Cd --secondary Ni --folds blocks --fixed
      xcopula validate stations.csv --primary rain --folds stations -o scores.nc
    """
    if output is not None:
        check_output(output, [data, config], overwrite=overwrite)
    request = FitOptions.of(config, options)
    distance = numbers_by_name(buffer, "--buffer", float)
    dataset = request.read(data)

    import xcopula

    with cluster(scheduler, workers):
        scores = xcopula.cross_validate(
            dataset,
            request.primary,
            request.secondary,
            folds=int(folds) if folds.isdigit() else folds,
            count=count,
            buffer=distance,
            secondaries=secondaries,
            refit=refit,
            **request.options,
        )
    click.echo(xcopula.format_validation(scores))
    if output is not None:
        write_dataset(scores, output, overwrite=overwrite)
        click.echo(f"\nWrote {output}.")


@click.command(short_help="Add observations, without a refit.")
@click.argument("model", type=InputPath)
@click.argument("new", type=InputPath)
@click.option(
    "--replace", is_flag=True, help="New values take the place of old ones at their site."
)
@click.option(
    "--as-stored",
    is_flag=True,
    help="Take all new values as they are stored, not as limits where the fit would.",
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

    from xcopula.model import load

    old = load(model)
    flags = [p for v in old.variables if v.censored.kind == "flag" for p in v.censored.parts]
    data = read_data(new, numbers=old.tasks, known=old.coordinates.names, flags=flags)
    updated = old.condition(data, replace=replace, censored=None if as_stored else "auto")
    updated.save(output, overwrite=overwrite)
    before, after = (m.observations.sample.size for m in (old, updated))
    click.echo(f"The model had {before} observations and has {after}.")
    click.echo(f"Wrote {output}.")
