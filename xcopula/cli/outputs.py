"""Files to write: their endings are checked first, their places before any work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["DATA", "check_output", "output_option", "overwrite_option", "write_dataset"]

# Endings of files that hold data or a model.
DATA = (".nc", ".zarr")

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class _Output(click.Path):
    """A path with one of some endings."""

    def __init__(self, endings: tuple[str, ...]) -> None:
        super().__init__(path_type=Path)
        self.endings = endings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(str(super().convert(value, param, ctx)))
        if path.suffix not in self.endings:
            self.fail(f"{path} must end in {' or '.join(self.endings)}.", param, ctx)
        return path


def output_option(
    what: str, endings: tuple[str, ...] = DATA, *, required: bool = True
) -> Decorator:
    """Return the option -o for a file of some kind."""
    return click.option(
        "-o",
        "--output",
        type=_Output(endings),
        required=required,
        help=f"{what} Ends in {' or '.join(endings)}.",
    )


overwrite_option = click.option(
    "--overwrite", is_flag=True, help="Replace an output that is already there."
)


def check_output(path: Path, inputs: Sequence[Path | None] = (), *, overwrite: bool) -> None:
    """Refuse a place that cannot be written, and one of the inputs, also by the name of a link.

    Raises
    ------
    OSError, ImportError, ValueError
    """
    from xcopula.storage import check_free, is_zarr, require_zarr

    for given in inputs:
        if given is None or not given.exists():  # said when it is read
            continue
        if path.resolve() in (given.resolve(), *given.resolve().parents) or (
            path.exists() and path.samefile(given)
        ):
            raise ValueError(f"The output {path} is the input {given}. Choose another name.")
    check_free(path, overwrite=overwrite)
    if is_zarr(path):
        require_zarr()


def write_dataset(dataset: xr.Dataset, path: Path, *, overwrite: bool, **options: Any) -> None:
    """Write a Dataset in the format that the ending says; options are those of Zarr."""
    from xcopula.storage import is_zarr, write_netcdf, write_zarr

    if is_zarr(path):
        write_zarr(dataset, path, overwrite=overwrite, **options)
    else:
        write_netcdf(dataset, path, overwrite=overwrite)
