"""Cross-validate a model on the data of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from xcopula.cli.cluster import cluster, cluster_options
from xcopula.cli.inputs import InputPath, read_data
from xcopula.cli.options import Asked, fit_options, numbers_by_name
from xcopula.cli.outputs import check_output, output_option, overwrite_option, write_dataset

__all__ = ["validate"]


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
    **given: Any,
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
    asked = Asked.of(config, given)
    distance = numbers_by_name(buffer, "--buffer", float)
    dataset = read_data(data, asked.coordinates, asked.names, flags=asked.flags)
    asked.check_signs(dataset)

    import xcopula

    with cluster(scheduler, workers):
        found = xcopula.cross_validate(
            dataset,
            asked.primary,
            asked.secondary,
            folds=int(folds) if folds.isdigit() else folds,
            count=count,
            buffer=distance,
            secondaries=secondaries,
            refit=refit,
            **asked.options,
        )
    click.echo(xcopula.format_validation(found))
    if output is not None:
        write_dataset(found, output, overwrite=overwrite)
        click.echo(f"\nWrote {output}.")
