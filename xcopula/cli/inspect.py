"""Describe and draw what a file holds: a model, a prediction or data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xcopula.cli.files import (
    InputPath,
    check_output,
    is_model,
    output_option,
    overwrite_option,
    read_data,
    split,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

__all__ = ["describe", "info", "plot"]

_OF_MODEL = ("correlations", "laws", "loo", "pit", "reliability")
_OF_PREDICTION = ("map", "exceedance")


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
        from xcopula.model import load

        click.echo(load(file).summary())
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
    header = ("variable", "values", "limits", "gaps", "dims", "units", "least", "largest")
    variables: list[tuple[str, ...]] = [header]
    for name, v in data.data_vars.items():
        present = int((v.notnull() & (v != "") if v.dtype.kind in "OU" else v.notnull()).sum())
        counts = (str(n) for n in (present, _limits(v, data), v.size - present))
        variables.append((str(name), *counts, _dims(v), _units(v), *_ends(v)))
    parts = [f"Sizes: {sizes or 'none'}"]
    for rows in (coordinates, variables):
        parts.append("\n".join(aligned(rows)) if len(rows) > 1 else f"No {rows[0][0]}s.")
    return "\n\n".join(parts)


def _roles(data: xr.Dataset) -> dict[str, str]:
    from xcopula.labels.coordinates.roles import coordinates_of, guessed_roles

    roles = guessed_roles(coordinates_of(data))
    return {name: role for role, names in roles.items() for name in names}


def _limits(array: xr.DataArray, data: xr.Dataset) -> str:
    """Return the number of values flagged as limits; ? if the flag is not readable."""
    from xcopula.labels.flags import find_beside_variable, read_flags

    flag = find_beside_variable(array, data).flag
    if flag is None:
        return "0"
    try:
        flags = read_flags(flag, repr(array.name))
    except ValueError:  # a fit raises it
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


@click.command(short_help="Draw a prediction or a model.")
@click.argument("file", type=InputPath)
@click.option(
    "--kind",
    type=click.Choice([*_OF_MODEL, *_OF_PREDICTION]),
    help="Of a model: correlations (default), laws, loo, pit or reliability. Of a prediction: map "
    "(default) or exceedance.",
)
@click.option("--variable", metavar="NAME", help="Which variable; the primary, or the only one.")
@click.option("--threshold", type=float, help="Of --kind reliability, in the variable's units.")
@click.option("--sites", type=InputPath, metavar="FILE", help="Data to draw as dots on a map.")
@click.option(
    "--select",
    metavar="DIM=LABEL",
    multiple=True,
    help="Which slice to draw, as in time=2024-05-31; repeatable.",
)
@click.option("--dpi", type=click.IntRange(min=30), default=150, show_default=True)
@output_option("The picture.", (".png", ".pdf", ".svg"))
@overwrite_option
def plot(
    file: Path,
    kind: str | None,
    variable: str | None,
    threshold: float | None,
    sites: Path | None,
    select: tuple[str, ...],
    dpi: int,
    output: Path,
    overwrite: bool,
) -> None:
    """Draw FILE: a map of a prediction, or how well a model describes its data.

    \b
    Examples:
      xcopula plot out.nc --sites samples.csv -o map.png
      xcopula plot model.nc --kind laws -o laws.png
    """
    check_output(output, [file, sites], overwrite=overwrite)
    of_model = is_model(file)
    kinds = _OF_MODEL if of_model else _OF_PREDICTION
    kind = kind or kinds[0]
    if kind not in kinds:
        what = "model" if of_model else "prediction"
        raise click.UsageError(f"{file} is a {what}, which has the kinds {', '.join(kinds)}.")
    if of_model:
        figure = _of_model(file, kind, variable, threshold)
    else:
        figure = _of_prediction(file, kind, variable, sites, select)

    from xcopula.storage import write_figure

    write_figure(figure, output, overwrite=overwrite, dpi=dpi)
    click.echo(f"Wrote {output}.")


def _of_model(file: Path, kind: str, variable: str | None, threshold: float | None) -> Figure:
    if (threshold is None) == (kind == "reliability"):
        raise click.UsageError("--kind reliability needs a --threshold, and no other kind has one.")
    from xcopula.model import load

    arguments = [variable] if threshold is None else [threshold, variable]
    figure: Figure = getattr(load(file).plot, kind)(*arguments)
    return figure


def _of_prediction(
    file: Path, kind: str, variable: str | None, sites: Path | None, select: tuple[str, ...]
) -> Figure:
    from xcopula.plot import exceedance_map, prediction_map

    prediction = _selected(read_data(file), select)
    names = [str(name).removesuffix("_exceedance") for name in prediction.data_vars]
    dots = None if sites is None else read_data(sites, numbers=names)
    draw = prediction_map if kind == "map" else exceedance_map
    return draw(prediction, variable, sites=dots)


def _selected(data: xr.Dataset, select: tuple[str, ...]) -> xr.Dataset:
    """Return the slice of a Dataset for options such as time=2024-05-31."""
    for dim, label in (split(text, "--select") for text in select):
        if dim not in data.dims:
            raise KeyError(f"There is no dim {dim!r} to select; there are {list(data.sizes)}.")
        try:
            numeric = data[dim].dtype.kind in "iuf"
            data = data.sel({dim: float(label) if numeric else label})
        except (KeyError, ValueError):
            first, last = data[dim].values[[0, -1]]
            raise KeyError(
                f"There is no {dim}={label}; the labels of {dim!r} go from {first} to {last}."
            ) from None
        if data.sizes.get(dim) == 1:  # a date of a time with hours is a range
            data = data.squeeze(dim)
    return data
