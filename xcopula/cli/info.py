"""Say what is in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xcopula.cli.inputs import InputPath, is_model, read_data, read_model

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["describe", "info"]


@click.command(short_help="Say what is in a file.")
@click.argument("file", type=InputPath)
@click.option(
    "--coords", metavar="NAME", multiple=True, help="A column that is a coordinate; repeatable."
)
def info(file: Path, coords: tuple[str, ...]) -> None:
    """Say what is in FILE: the summary of a model, or the variables and coordinates of data.

    \b
    Examples:
      xcopula info model.nc
      xcopula info stations.csv
    """
    if is_model(file):
        click.echo(read_model(file).summary())
    else:
        click.echo(describe(read_data(file, coords, numbers=None)))


def describe(data: xr.Dataset) -> str:
    """Return the sizes, coordinates with their roles, and variables with their gaps, as text."""
    from xcopula.model.summary import aligned

    sizes = ", ".join(f"{dim}: {size}" for dim, size in data.sizes.items())
    coordinates = [("coordinate", "role", "dims", "units", "least", "largest")]
    roles = _roles(data)
    for name, c in data.coords.items():
        role = roles.get(str(name), "")
        coordinates.append((str(name), role, _dims(c), _units(c), *_ends(c)))
    variables: list[tuple[str, ...]]
    variables = [("variable", "values", "limits", "gaps", "dims", "units", "least", "largest")]
    for name, v in data.data_vars.items():
        there = int((v.notnull() & (v != "") if v.dtype.kind in "OU" else v.notnull()).sum())
        counts = (str(n) for n in (there, _limits(v, data), v.size - there))
        variables.append((str(name), *counts, _dims(v), _units(v), *_ends(v)))
    parts = [f"Sizes: {sizes or 'none'}"]
    for rows in (coordinates, variables):
        parts.append("\n".join(aligned(rows)) if len(rows) > 1 else f"No {rows[0][0]}s.")
    return "\n\n".join(parts)


def _roles(data: xr.Dataset) -> dict[str, str]:
    from xcopula.labels.coordinates.roles import coordinates_of, guessed_roles

    found = guessed_roles(coordinates_of(data))
    return {name: role for role, names in found.items() for name in names}


def _limits(array: xr.DataArray, data: xr.Dataset) -> str:
    """Return how many values a flag beside the variable calls limits; ? if it is not readable."""
    from xcopula.labels.flags import find_beside_variable, read_flags

    flag = find_beside_variable(array, data).flag
    if flag is None:
        return "0"
    try:
        flags = read_flags(flag, repr(array.name))
    except ValueError:  # a fit says what is wrong with it
        return "?"
    return str(sum(int(limit.sum()) for limit in flags if limit is not None))


def _dims(array: xr.DataArray) -> str:
    return " x ".join(map(str, array.dims)) or "-"


def _units(array: xr.DataArray) -> str:
    return str(array.attrs.get("units", "-"))


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value).removesuffix("T00:00:00.000000000")


def _ends(array: xr.DataArray) -> tuple[str, str]:
    """Return the least and the largest of numbers and dates."""
    if array.dtype.kind in "iufM" and bool(array.notnull().any()):
        return _shown(array.min().values[()]), _shown(array.max().values[()])
    return ("-", "-")
