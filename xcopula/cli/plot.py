"""Draw a model or a prediction."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xcopula.cli.inputs import InputPath, is_model, read_data, read_model, split
from xcopula.cli.outputs import check_output, output_option, overwrite_option

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

__all__ = ["plot"]

_OF_MODEL = ("correlations", "laws", "loo", "pit", "reliability")
_OF_PREDICTION = ("map", "exceedance")


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
    own = _OF_MODEL if is_model(file) else _OF_PREDICTION
    kind = kind or own[0]
    if kind not in own:
        what = "model" if own is _OF_MODEL else "prediction"
        raise click.UsageError(f"{file} is a {what}, which has the kinds {', '.join(own)}.")
    if own is _OF_MODEL:
        figure = _of_model(file, kind, variable, threshold)
    else:
        figure = _of_prediction(file, kind, variable, sites, select)

    from xcopula.storage import write_figure

    write_figure(figure, output, overwrite=overwrite, dpi=dpi)
    click.echo(f"Wrote {output}.")


def _of_model(file: Path, kind: str, variable: str | None, threshold: float | None) -> Figure:
    if (threshold is None) == (kind == "reliability"):
        raise click.UsageError("--kind reliability needs a --threshold, and no other kind has one.")
    given: list[Any] = [variable] if threshold is None else [threshold, variable]
    draw = getattr(read_model(file).plot, kind)
    figure: Figure = draw(*given)
    return figure


def _of_prediction(
    file: Path, kind: str, variable: str | None, sites: Path | None, select: tuple[str, ...]
) -> Figure:
    from xcopula.plot import exceedance_map, prediction_map

    found = _selected(read_data(file), select)
    names = [str(name).removesuffix("_exceedance") for name in found.data_vars]
    dots = None if sites is None else read_data(sites, numbers=names)
    if kind == "map":
        return prediction_map(found, variable, sites=dots)
    return exceedance_map(found, variable, sites=dots)


def _selected(found: xr.Dataset, select: tuple[str, ...]) -> xr.Dataset:
    """Return the slice of a Dataset that options such as time=2024-05-31 ask for."""
    for dim, label in (split(text, "--select") for text in select):
        if dim not in found.dims:
            raise KeyError(f"There is no dim {dim!r} to select; there are {list(found.sizes)}.")
        try:
            numeric = found[dim].dtype.kind in "iuf"
            found = found.sel({dim: float(label) if numeric else label})
        except (KeyError, ValueError):
            raise KeyError(
                f"There is no {dim}={label}; the labels of {dim!r} go from "
                f"{found[dim].values[0]} to {found[dim].values[-1]}."
            ) from None
        if found.sizes.get(dim) == 1:  # a date of a time with hours is a range
            found = found.squeeze(dim)
    return found
