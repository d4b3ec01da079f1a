"""All commands under one name."""

from __future__ import annotations

import click

from xcopula.cli.condition import condition
from xcopula.cli.demo import demo
from xcopula.cli.failures import Commands
from xcopula.cli.fit import fit
from xcopula.cli.info import info
from xcopula.cli.plot import plot
from xcopula.cli.predict import predict
from xcopula.cli.validate import validate

__all__ = ["main"]


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="xcopula")
@click.option("--traceback", is_flag=True, help="Show where in the code an error came up.")
def main(traceback: bool) -> None:
    """Multi-task Gaussian copula processes for gridded and scattered data.

    From a table of measurements to a map:

    \b
      xcopula info samples.csv
      xcopula fit samples.csv --primary Cd --secondary Ni -o model.nc
      xcopula predict model.nc --axis x=0:6:0.1 --axis y=0:6:0.1 -o out.nc
      xcopula plot out.nc -o map.png

    Each command explains itself: xcopula fit --help.
    """


for _command in (fit, predict, info, validate, plot, condition, demo):
    main.add_command(_command)
